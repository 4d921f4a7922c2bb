package admin

import (
	"context"
	"strings"
	"testing"

	"seqproxy/proxy"
	"seqproxy/sequence"
	"seqproxy/statement"
	"seqproxy/statement/lex"
)

// prepared is an engine with prepared answers. The tests of the real engine show its own
// answers.
type prepared struct {
	engine
	made sequence.Created
	plan sequence.Plan
}

func (e prepared) ChangePlan(context.Context, sequence.PlanChange) (sequence.Plan, error) {
	return e.plan, nil
}

func (e prepared) Create(context.Context, sequence.CreateOptions) (sequence.Created, error) {
	return e.made, nil
}

// unaudited is a session of which nothing is logged.
type unaudited struct{ proxy.CallerSession }

func (unaudited) Audit(string, error) {}

// root has all rights.
func root(s proxy.CallerSession) proxy.Caller {
	return proxy.Caller{ID: 7, Admin: true, CallerSession: s}
}

func TestCreateTellsWhatIsNotAsItWasAskedFor(t *testing.T) {
	for want, made := range map[string]sequence.Created{
		"":               {First: 1},
		"stays as it is": {Existed: true, First: 7},
		"begins at 21: a sequence of that name may have given numbers up to 20": {Raised: true, First: 21, Given: 20},
	} {
		var st statement.Statement
		st.Analyze([]byte("CREATE SEQUENCE photos"), lex.Mode{})
		table, err := NewSequences(prepared{made: made}, nil).Execute(t.Context(), &st, root(unaudited{}))
		if err != nil {
			t.Fatal(err)
		}
		if got := table.OK.Info; !strings.Contains(got, want) || want == "" && got != "" {
			t.Errorf("%+v: got %q, want %q", made, got, want)
		}
	}
}

func TestAChangeOfSequenceServersTellsWhoWasNotThere(t *testing.T) {
	for want, away := range map[string][]string{
		"plan 3 is in force, with 1 sequence server(s)":                                                                   nil,
		"plan 3 is in force, with 1 sequence server(s); could not be told, and obeys it once it can be reached: db2:3306": {"db2:3306"},
	} {
		var st statement.Statement
		st.Analyze([]byte("SEQPROXY ADD SEQUENCE SERVER 'db2:3306'"), lex.Mode{})
		table, err := NewSequences(prepared{plan: sequence.Plan{Number: 3, Away: away}}, nil).Execute(t.Context(), &st, root(unaudited{}))
		if err != nil {
			t.Fatal(err)
		}
		if table.OK.Info != want {
			t.Errorf("got %q, want %q", table.OK.Info, want)
		}
	}
}

// stopping is a proxy that only Shutdown is called on.
type stopping struct {
	whole
	asked []Shutdown
}

func (s *stopping) Shutdown(how Shutdown) { s.asked = append(s.asked, how) }

func TestShutdownIsAskedForAfterTheAnswer(t *testing.T) {
	for sql, want := range map[string]Shutdown{
		"SEQPROXY SHUTDOWN": Drain, "SEQPROXY SHUTDOWN WAIT_FOR_CLIENTS": WaitForClients, "SEQPROXY SHUTDOWN IMMEDIATE": Immediate,
	} {
		var st statement.Statement
		st.Analyze([]byte(sql), lex.Mode{})
		control := new(stopping)
		table, err := NewSequences(nil, control).Execute(t.Context(), &st, root(unaudited{}))
		if err != nil || len(control.asked) > 0 {
			t.Fatalf("%s: got %v, and %v was asked for before the answer", sql, err, control.asked)
		}
		if table.After(); len(control.asked) != 1 || control.asked[0] != want {
			t.Errorf("%s: got %v, want %v", sql, control.asked, want)
		}
	}
}
