package ticket

import (
	"context"
	"encoding/binary"
	"testing"

	"github.com/go-mysql-org/go-mysql/mysql"

	"seqproxy/protocol"
	"seqproxy/proxy/state"
	"seqproxy/sequence"
	"seqproxy/statement"
	"seqproxy/statement/lex"
)

// in finds the ticket of a text in a session.
func in(tables Tables, text string, s *state.State) *Ticket {
	var st statement.Statement
	s.Mode.Charset = lex.UTF8
	st.Analyze([]byte(text), s.Mode)
	return tables.In(&st, []byte(text), s)
}

func TestTicketsAreThoseOfListedTables(t *testing.T) {
	tables := NewTables([]Table{{Schema: "a", Table: "sequence"}, {Table: "tickets", Counter: new(sequence.TicketTable), Name: "tickets"}})
	for _, c := range []struct {
		text, schema string
		want         bool
		alone        bool
	}{
		{"UPDATE sequence SET id = LAST_INSERT_ID(id + 1) WHERE name = 'p'", "a", true, true},
		{"UPDATE sequence SET id = LAST_INSERT_ID(id + 1) WHERE name = 'p'; SELECT LAST_INSERT_ID()", "a", true, false},
		{"UPDATE sequence SET id = LAST_INSERT_ID(id + 1) WHERE name = 'p'", "b", false, false},
		{"SET STATEMENT max_statement_time=30 FOR UPDATE sequence SET id = LAST_INSERT_ID(id + 1) WHERE name = 'p'", "a", true, true},
		{"SET STATEMENT max_statement_time=30 FOR UPDATE sequence SET id = LAST_INSERT_ID(id + 1) WHERE name = 'p'; SELECT LAST_INSERT_ID()", "a", true, false},
		{"UPDATE a.sequence SET id = LAST_INSERT_ID(id + 1) WHERE name = 'p'", "b", true, true},
		{"UPDATE sequence SET n = LAST_INSERT_ID(n + 1) WHERE name = 'p'", "a", false, false},
		{"UPDATE sequence SET id = id + 1 WHERE name = 'p'", "a", false, false},
		{"REPLACE INTO tickets (stub) VALUES ('a')", "", true, true},
		{"REPLACE INTO sequence (name) VALUES ('a')", "a", false, false},
		{"SELECT 1", "a", false, false},
	} {
		s := state.State{Schema: c.schema}
		got := in(tables, c.text, &s)
		if (got != nil) != c.want {
			t.Errorf("%q in %q: got %v, want %v", c.text, c.schema, got != nil, c.want)
			continue
		}
		if got == nil {
			continue
		}
		if _, alone := got.Rest([]byte(c.text)); alone != c.alone {
			t.Errorf("%q: alone %v, want %v", c.text, alone, c.alone)
		}
	}
	if NewTables(nil) != nil {
		t.Error("got ticket tables without a list, want none")
	}
}

func TestTicketsAreServedWhereAServerWouldTakeThem(t *testing.T) {
	for name, c := range map[string]struct {
		st   state.State
		want bool
	}{
		"as it begins":              {state.State{}, true},
		"a read-only transaction":   {state.State{Status: protocol.InReadOnlyTrans}, false},
		"read-only transactions":    {state.State{ReadOnly: true}, false},
		"one that is not":           {state.State{ReadOnly: true, Status: protocol.InTransaction}, true},
		"SET TRANSACTION":           {state.State{NextTransaction: true}, false},
		"steps of its own":          {state.State{Sysvars: map[string]int{"auto_increment_increment": 1}}, false},
		"a variable of another use": {state.State{Sysvars: map[string]int{"sql_mode": 1}}, true},
		"tracked variables":         {state.State{Sysvars: map[string]int{"session_track_system_variables": 1, "session_track_schema": 1}}, true},
		"a tracked last_gtid":       {state.State{TracksGTID: true}, false},
		"tracked transactions":      {state.State{Sysvars: map[string]int{"session_track_transaction_info": 1}}, false},
		"tracked GTIDs":             {state.State{Sysvars: map[string]int{"session_track_gtids": 1}}, false},
		"tracked changes of state":  {state.State{Sysvars: map[string]int{"session_track_state_change": 1}}, false},
	} {
		if got := ServedIn(&c.st); got != c.want {
			t.Errorf("%s: got %v, want %v", name, got, c.want)
		}
	}
}

func TestTheServerAnswersForItsOwnRowOnly(t *testing.T) {
	tables := NewTables([]Table{{Table: "sequence"}})
	s := state.State{}
	one := in(tables, "UPDATE sequence SET id = LAST_INSERT_ID(id + 1) WHERE name = 'p'", &s)
	six := in(tables, "UPDATE sequence SET id = LAST_INSERT_ID(id + 6) WHERE name = 'p'", &s)
	for name, c := range map[string]struct {
		t                    *Ticket
		several              bool
		multiple, configured uint64
		may                  bool
	}{
		"one server":                   {one, false, 1, 1, true},
		"blocks":                       {one, true, 1, 1, false},
		"steps, and nobody else's":     {one, true, 1, 3, false},
		"steps, that are passed over":  {six, true, 3, 3, true},
		"steps, and not all of a step": {one, true, 3, 3, false},
	} {
		if why := c.t.Refusal(c.several, c.multiple, c.configured); (why == "") != c.may {
			t.Errorf("%s: got %q", name, why)
		}
	}
}

// rows are sequences that have a row each.
type rows map[string]uint64

func (r rows) Advance(_ context.Context, name []byte, n uint64) (uint64, error) {
	if _, ok := r[string(name)]; !ok {
		return 0, &sequence.NameError{Name: string(name), Err: sequence.ErrUnknown}
	}
	r[string(name)] += n
	return r[string(name)], nil
}

func (r rows) AdvanceOrCreate(_ context.Context, name []byte, n uint64) (id uint64, created bool, err error) {
	if _, ok := r[string(name)]; !ok {
		r[string(name)] = 1
		return 1, true, nil
	}
	r[string(name)] += n
	return r[string(name)], false, nil
}

func TestAnAnswerIsThatOfTheStatement(t *testing.T) {
	tables, s, from := NewTables([]Table{{Table: "sequence"}}), state.State{}, rows{"p": 10}
	update := in(tables, "UPDATE sequence SET id = LAST_INSERT_ID(id + 5) WHERE name = 'p'", &s)
	upsert := in(tables, "INSERT INTO sequence (name, id) VALUES ('p', LAST_INSERT_ID(1)) ON DUPLICATE KEY UPDATE id = LAST_INSERT_ID(id + 1)", &s)
	if update == nil || upsert == nil {
		t.Fatal("the texts are no tickets")
	}
	for _, c := range []struct {
		name string
		t    *Ticket
		key  string
		want Answer
	}{
		{"a row that is there", update, "p", Answer{Affected: 1, ID: 15, Info: "Rows matched: 1  Changed: 1  Warnings: 0", Transactional: true}},
		{"one that is not", update, "q", Answer{Info: "Rows matched: 0  Changed: 0  Warnings: 0", Transactional: true}},
		{"one that is made", upsert, "q", Answer{Affected: 1, ID: 1, Transactional: true}},
		{"one that was made", upsert, "q", Answer{Affected: 2, ID: 2, Transactional: true}},
	} {
		if got, err := c.t.Take(t.Context(), from, []byte(c.key)); err != nil || got != c.want {
			t.Errorf("%s: got %+v, %v, want %+v", c.name, got, err, c.want)
		}
	}
}

func TestParametersOfATicketAreRead(t *testing.T) {
	s := state.State{}
	ticket := in(NewTables([]Table{{Table: "sequence"}}), "UPDATE sequence SET id = LAST_INSERT_ID(id + ?) WHERE name = ?", &s)
	if ticket == nil {
		t.Fatal("the text is no ticket")
	}
	types := []uint16{uint16(mysql.MYSQL_TYPE_LONGLONG), uint16(mysql.MYSQL_TYPE_VAR_STRING)}
	for step, want := range map[int64]bool{5: true, 0: false, -1: false} {
		values := append(binary.LittleEndian.AppendUint64(nil, uint64(step)), "\x01p"...)
		got, ok := ticket.Bound(types, &protocol.Parameters{Nulls: []byte{0}}, values)
		if ok != want || ok && (got.Step != uint64(step) || string(got.Key) != "p") {
			t.Errorf("%d: got %+v, %v", step, got, ok)
		}
	}
	if _, ok := ticket.Bound(types, &protocol.Parameters{Nulls: []byte{2}}, make([]byte, 8)); ok {
		t.Error("NULL became a name")
	}
}
