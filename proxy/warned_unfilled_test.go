package proxy_test

import (
	"strings"
	"testing"

	"seqproxy/protocol"
	"seqproxy/proxy"
)

// The number is taken before the server says that the table has no such column, as with a temporary
// table of the same name. The statement then runs without it, and its answer has the warning.
func TestAStatementThatRunsWithoutItsNumberIsWarned(t *testing.T) {
	e := newEnv(t, setup{Proxy: func(o *proxy.Options) {
		o.Bindings = []proxy.Binding{{Table: "filled", Column: "id", Sequence: "filled"}}
	}})
	w := e.Wire(t, e.Addr(), wireLogin{Schema: e.Schemas[0]})
	ask := func(sql string) (warnings uint16, rows [][]string) {
		t.Helper()
		w.send(packet(command(protocol.ComQuery, sql)))
		answer := w.receive(protocol.ShapeResult, nil)
		if w.answer.ErrCode != 0 {
			t.Fatalf("%s: %v", sql, serverError(t, answer))
		}
		if w.answer.Rows {
			rows = w.decode(answer)
		}
		return w.answer.Warnings, rows
	}
	ask("CREATE SEQUENCE filled MAXVALUE 100 NOCACHE START 75")
	ask("CREATE TEMPORARY TABLE filled (n TINYINT)")
	if got, _ := ask("INSERT INTO filled (n) VALUES (1)"); got != 1 {
		t.Errorf("the OK counts %d warnings, want 1", got)
	}
	if _, rows := ask("SHOW WARNINGS"); len(rows) != 1 || !strings.HasPrefix(rows[0][2], "75% of the numbers of sequence 'filled'") {
		t.Errorf("SHOW WARNINGS: got %q, want one of the proxy", rows)
	}
	ask("INSERT INTO filled (n) VALUES (1)")
	if _, rows := ask("SHOW WARNINGS"); len(rows) != 0 {
		t.Errorf("SHOW WARNINGS behind the next INSERT: got %q, want nothing", rows)
	}
}
