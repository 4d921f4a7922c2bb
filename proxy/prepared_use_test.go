package proxy_test

import (
	"fmt"
	"strings"
	"testing"

	"seqproxy/protocol"
)

// MariaDB can prepare USE.

// Checklist 20.
// Checklist 26.
func TestAPreparedUSEIsAnsweredAsByTheServer(t *testing.T) {
	e := newEnv(t, setup{})
	e.Servers[0].Exec(t, "CREATE DATABASE IF NOT EXISTS `"+e.Schemas[0]+" é`")
	defer e.Servers[0].Exec(t, "DROP DATABASE `"+e.Schemas[0]+" é`")
	for _, caps := range endings {
		p := e.Pair(t, 0, wireLogin{Schema: e.Schemas[0], Capabilities: caps})
		for _, name := range []string{"mysql", "`" + e.Schemas[0] + "`", "no_such_schema", "`" + e.Schemas[0] + " é`", "", "?"} {
			s := p.prepare("USE " + name)
			if s.direct == 0 {
				continue // malformed, or MySQL, which cannot
			}
			for range 2 {
				s.same(protocol.ComStmtExecute, "\x00\x01\x00\x00\x00")
				p.query("SELECT DATABASE()")
			}
			p.query("USE " + e.Schemas[0])
			s.same(protocol.ComStmtExecute, "\x00\x01\x00\x00\x00")
			p.query("SHOW WARNINGS")
			s.same(protocol.ComStmtClose, "")
		}
		p.inOneWrite("in one write", prepares("USE mysql"), executes(""), sent{protocol.ComQuery, "SELECT DATABASE()"})
	}
}

func TestAPreparedUSEGoesToTheShardThatOwnsTheSchema(t *testing.T) {
	e := newEnv(t, setup{Shards: 2})
	if !e.Servers[0].IsMariaDB() {
		t.Skip("MySQL cannot prepare USE")
	}
	w := e.Wire(t, e.Addr(), wireLogin{Schema: e.Schemas[0]})
	prepare := func(sql string) (execute func() []byte) {
		answer := w.do(protocol.ComStmtPrepare, sql)
		if answer[4] != 0 {
			t.Fatalf("%s: %v", sql, serverError(t, answer))
		}
		id := string(answer[5:9])
		return func() []byte { return w.do(protocol.ComStmtExecute, id+"\x00\x01\x00\x00\x00") }
	}
	here := func(i int) {
		t.Helper()
		if got, want := strings.Join(w.rows("SELECT DATABASE(), @@port, @x"), " "), fmt.Sprint(e.Schemas[i], " ", e.port(i), " 5"); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
	w.query("SET @x = 5")
	// Prepared on one shard, and executed from both.
	to0, to1 := prepare("USE "+e.Schemas[0]), prepare("USE "+e.Schemas[1])
	for range 2 {
		for i, to := range []func() []byte{to1, to1, to0, to0, to1} {
			want := []int{1, 1, 0, 0, 1}[i]
			if got := to(); got[4] != 0 {
				t.Fatalf("step %d: %v", i, serverError(t, got))
			}
			here(want)
		}
	}
	// A schema of no shard belongs to the default shard.
	missing := prepare("USE " + e.Schemas[1] + "_missing")
	if err := serverError(t, missing()); err.Code != 1049 {
		t.Errorf("a schema that is not there: got %v, want 1049", err)
	}
	here(1)
	w.query("BEGIN")
	if err := serverError(t, to0()); err.Code != 1235 || !strings.Contains(err.Message, "transaction") {
		t.Errorf("inside a transaction: got %v, want 1235", err)
	}
	here(1)
	w.query("COMMIT")
	if got := to0(); got[4] != 0 {
		t.Errorf("after the transaction: %v", serverError(t, got))
	}
	here(0)
	// A statement that is prepared after it is on the new shard.
	if got := to1(); got[4] != 0 {
		t.Fatal(serverError(t, got))
	}
	row := split(prepare("SELECT DATABASE()")())
	if got := string(row[2][3:]); got != e.Schemas[1] {
		t.Errorf("prepared after the USE: got schema %q, want %s", got, e.Schemas[1])
	}
}
