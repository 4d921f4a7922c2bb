package plan

import (
	"testing"

	"seqproxy/proxy/state"
	"seqproxy/statement"
	"seqproxy/statement/lex"
)

// traits returns the traits of a text.
func traits(text string) Traits {
	var st statement.Statement
	st.Analyze([]byte(text), lex.Mode{Charset: lex.UTF8})
	return TraitsOf(&st)
}

func TestWhatAStatementLooksAtIsBrought(t *testing.T) {
	const here, there = 1, 2
	answered := func(o state.Answer) state.State { return state.State{LastAnswer: o} }
	pending := state.State{LastID: state.LastInsertID{Pending: true, Value: 7}}
	holds := state.State{LastConn: here, LastID: state.LastInsertID{Holder: here}}
	none := state.State{LastConn: here}
	elsewhere := state.State{LastConn: here, LastID: state.LastInsertID{Holder: there}}
	ran := state.State{LastConn: there, LastID: state.LastInsertID{Holder: there}}
	inserted := state.State{LastConn: here, LastID: state.LastInsertID{Pending: true, Value: 7, Inserted: true}}
	tickets := state.State{LastAnswer: state.OurChange, LastChanged: 2}
	for _, c := range []struct {
		name    string
		text    string
		st      state.State
		on      Server
		want    Bringing
		refusal string
	}{
		{"nothing is looked at", "SELECT a FROM t", pending, Server{}, Bringing{}, ""},
		{"always", "SELECT a FROM t", pending, Server{Exact: true}, Bringing{ID: true}, ""},
		{"the id may move", "INSERT INTO t VALUES (1)", pending, Server{}, Bringing{ID: true}, ""},
		{"the id", "SELECT LAST_INSERT_ID()", pending, Server{}, Bringing{ID: true}, ""},
		{"the id, which is there", "SELECT LAST_INSERT_ID()", holds, Server{Exact: true}, Bringing{}, ""},
		{"the id, which is there, and warnings", "SELECT @@warning_count, LAST_INSERT_ID()", holds, Server{Warned: true}, Bringing{}, ""},
		{"the id, which nobody has", "SELECT LAST_INSERT_ID()", none, Server{}, Bringing{ID: true}, ""},
		{"the id and a row count", "SELECT LAST_INSERT_ID(), ROW_COUNT()", elsewhere, Server{}, Bringing{ID: true, Keep: true}, ""},
		{"a row count of the server's", "SELECT ROW_COUNT()", pending, Server{}, Bringing{}, ""},
		{"found rows, the last of which is the proxy's", "SELECT FOUND_ROWS()", pending, Server{}, Bringing{ID: true, Keep: true}, ""},
		{"a row count of another shard", "SELECT ROW_COUNT()", ran, Server{}, Bringing{}, ranElsewhere},
		{"warnings and an id, MySQL", "SELECT @@warning_count, LAST_INSERT_ID()", elsewhere, Server{Warned: true}, Bringing{}, losesWarnings},
		{"warnings and an id, MariaDB", "SELECT @@warning_count, LAST_INSERT_ID()", elsewhere, Server{Warned: true, MariaDB: true}, Bringing{ID: true, Keep: true}, ""},
		{"found rows after a row that was filled", "SELECT FOUND_ROWS(), LAST_INSERT_ID()", inserted, Server{}, Bringing{ID: true, Keep: true, OverRow: true}, ""},
		{"both counts after such a row", "SELECT FOUND_ROWS(), ROW_COUNT()", inserted, Server{}, Bringing{}, twoCounts},
		{"a row count after the proxy's rows", "SELECT ROW_COUNT()", answered(state.OurRows), Server{}, Bringing{Last: true}, ""},
		{"warnings after the proxy's error", "SHOW WARNINGS", answered(state.OurError), Server{}, Bringing{Last: true}, ""},
		{"a row count after several tickets", "SELECT ROW_COUNT()", tickets, Server{}, Bringing{}, countOfTicket},
		{"diagnostics after several tickets", "GET DIAGNOSTICS @r = ROW_COUNT", tickets, Server{}, Bringing{}, countOfTicket},
	} {
		tr, before := traits(c.text), c.st.LastID
		c.on.Conn = here
		got, refusal := Bring(&tr, &c.st, c.on)
		if got != c.want || refusal.Text != c.refusal || (refusal.Why == Granted) != (c.refusal == "") {
			t.Errorf("%s: got %+v %q, want %+v %q", c.name, got, refusal.Text, c.want, c.refusal)
		}
		if c.st.LastID != before {
			t.Errorf("%s: the state has changed", c.name)
		}
	}
}

func TestWhatAStatementLeavesIsLookedForLater(t *testing.T) {
	for text, want := range map[string]bool{
		"SELECT 1": true, "INSERT INTO t VALUES (1)": true, "CREATE TABLE t (a INT)": true,
		"SELECT GET_LOCK('a', 1)": false, "SET @a = 1": false, "SELECT @a := 1": false, "CALL p()": false, "BEGIN": false,
	} {
		if tr := traits(text); tr.LeavesNothing() != want {
			t.Errorf("%s: got %v, want %v", text, !want, want)
		}
	}
}

func TestAnInsertIDIsExplainedByTablesThatAreKnown(t *testing.T) {
	for text, want := range map[string]bool{
		"INSERT INTO t VALUES (1)": true, "SELECT LAST_INSERT_ID(5)": true, "SELECT 1": false, "CALL p()": false,
	} {
		if tr := traits(text); tr.Explained != want {
			t.Errorf("%s: got %v, want %v", text, tr.Explained, want)
		}
	}
}

func TestADecisionTakesNoMemory(t *testing.T) {
	tr, st := traits("SELECT LAST_INSERT_ID()"), state.State{LastID: state.LastInsertID{Pending: true, Value: 7}}
	if n := testing.AllocsPerRun(100, func() {
		if b, _ := Bring(&tr, &st, Server{Conn: 1}); !b.ID {
			t.Error("the plan does not bring the id")
		}
	}); n != 0 {
		t.Errorf("got %v allocations, want none", n)
	}
}
