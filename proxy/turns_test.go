package proxy_test

import (
	"testing"

	"seqproxy/internal/mysqltest"
	"seqproxy/protocol"
	"seqproxy/sequence"
)

// Where sequence servers take turns in numbers, everything in a session that tells the keys of further rows goes by that.
func TestNumbersInStepsAreTheStepOfTheSession(t *testing.T) {
	second := mysqltest.Start(t)
	schema := second.Schema(t)
	e := newEnv(t, setup{
		Sequence: func(o *sequence.Options) {
			o.Interleave = sequence.InterleaveStep
			o.Servers = append(o.Servers, sequence.ServerOptions{Addr: second.Addr(), User: "root", Database: schema})
			o.CreateTable = true
		},
	})
	c := e.Conn(t, e.Schemas[0], nil)
	exec(t, c, "CREATE SEQUENCE photos", "CREATE TABLE photos (id BIGINT UNSIGNED PRIMARY KEY, title VARCHAR(20))", "ALTER SEQUENCE photos OWNED BY photos.id")
	one := func(text string) (n uint64) {
		t.Helper()
		if err := c.QueryRowContext(t.Context(), text).Scan(&n); err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		return n
	}
	if got := one("SELECT @@auto_increment_increment"); got != 2 {
		t.Errorf("@@auto_increment_increment: got %d, want 2", got)
	}
	first := one("SELECT NEXTVAL('photos', 5)")
	if next := one("SELECT NEXTVAL('photos')"); next <= first+8 {
		t.Errorf("five numbers from %d, and then %d: want it behind them", first, next)
	}
	exec(t, c, "INSERT INTO photos (title) VALUES ('a'), ('b'), ('c')")
	id := one("SELECT LAST_INSERT_ID()")
	for i, title := range []string{"a", "b", "c"} {
		if got, want := one("SELECT id FROM photos WHERE title = '"+title+"'"), id+2*uint64(i); got != want {
			t.Errorf("row %s: got key %d, want %d", title, got, want)
		}
	}

	// It is the session's after a reset, too, and whatever that did to the connections.
	w := e.Wire(t, e.Addr(), wireLogin{Schema: e.Schemas[0]})
	for range 3 {
		w.query("SET SESSION auto_increment_increment = 7")
		w.query("SELECT @@auto_increment_increment")
		if answer := w.do(protocol.ComResetConn, ""); answer[4] != 0 {
			t.Fatalf("reset: got %q", answer)
		}
		if got := w.rows("SELECT @@auto_increment_increment"); got[0] != "2" {
			t.Errorf("@@auto_increment_increment after COM_RESET_CONNECTION: got %s, want 2", got[0])
		}
	}
}
