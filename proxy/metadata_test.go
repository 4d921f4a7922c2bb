package proxy_test

import (
	"fmt"
	"testing"

	"seqproxy/protocol"
	"seqproxy/sequence"
)

func TestWithoutResultsetMetadataNoDefinitionsAreSent(t *testing.T) {
	e := newEnv(t, setup{Shards: 2})
	e.offers(t, protocol.OptionalMetadata, "optional metadata")
	if _, err := e.Sequences.Create(t.Context(), sequence.CreateOptions{Name: "s", Start: 40}); err != nil {
		t.Fatal(err)
	}
	e.Servers[0].Exec(t, "USE "+e.Schemas[0], "CREATE TABLE t (id BIGINT, j JSON)", "INSERT INTO t VALUES (1, '{}')",
		"CREATE PROCEDURE none() SET SESSION resultset_metadata = NONE", "CREATE PROCEDURE two() BEGIN SELECT 1; SELECT 2, 3; END")
	const base = protocol.LongPassword | protocol.LongFlag | protocol.Transactions | protocol.PSMultiResults | protocol.MultiResults |
		protocol.MultiStatements | protocol.OptionalMetadata
	next := uint64(40)
	for _, caps := range []protocol.Capability{base, base | protocol.DeprecateEOF, base | protocol.DeprecateEOF | protocol.SessionTrack | protocol.QueryAttributes} {
		p := e.Pair(t, 0, wireLogin{Schema: e.Schemas[0], Capabilities: caps})
		number := func(what string) {
			t.Helper()
			got := p.Proxy.query("SELECT NEXTVAL('s') AS n")
			want := p.Direct.query(fmt.Sprintf("SELECT LAST_INSERT_ID(%d) AS n", next))
			compare(t, what, got, want)
			next++
		}
		answered := func() {
			t.Helper()
			got := p.Proxy.do(protocol.ComStmtPrepare, "SELECT NEXTVAL('s') AS n")
			want := p.Direct.do(protocol.ComStmtPrepare, "SELECT LAST_INSERT_ID(?) AS n")
			if got[16] != want[16] {
				t.Errorf("prepared: definitions follow: got %d, want %d", got[16], want[16])
			}
			run := func(w *wire, id []byte, args ...argument) []byte {
				b := execution(0, args, true)
				if w.caps.Has(protocol.QueryAttributes) {
					b = attributedExecution(0, args, nil, true)
				}
				copy(b[1:], id)
				w.send(packet(b))
				return w.receive(protocol.ShapeResult, nil)
			}
			g, w := run(p.Proxy, got[5:9]), run(p.Direct, want[5:9], unsigned(next))
			compare(t, "an execution", g, w)
			next++
		}
		relayed := func() {
			t.Helper()
			for _, sql := range []string{
				"SELECT 1, 'a', j FROM t", "SELECT 1 FROM t WHERE 0", "SELECT nothing", "SELECT 1; SELECT 2", "CALL two()", "DO 1", "SHOW TABLES", "SELECT LAST_INSERT_ID()",
			} {
				p.query(sql)
			}
			for _, sql := range []string{"SELECT ? AS x, j FROM t", "SELECT j FROM t", "DO ?"} {
				s := p.prepare(sql)
				if !caps.Has(protocol.QueryAttributes) && sql != "SELECT j FROM t" {
					s.execute("\x00", typeLong, "\x05\x00\x00\x00")
				}
			}
			p.same(protocol.ComFieldList, "t\x00")
		}
		relayed()
		number("by default")
		p.query("SET resultset_metadata = NONE")
		number("NONE")
		answered()
		relayed()
		p.query("SET SESSION resultset_metadata = 'FULL'")
		number("FULL")
		answered()
		p.query("CALL none()") // the server sends no definitions here
		number("NONE, set by a procedure")
		answered()
		relayed()
		got := split(p.Proxy.query("SHOW SEQUENCES"))
		if columns, follow, ok := protocol.ParseColumnCount(got[0], true); !ok || follow || columns == 0 {
			t.Errorf("SHOW SEQUENCES: got %x, want columns without definitions", got[0])
		}
		p.Proxy.do(protocol.ComResetConn, "")
		p.Direct.do(protocol.ComResetConn, "")
		number("after a reset")

		// The proxy's own statements on a connection have no definitions either, and the variable
		// goes along to another shard.
		w := e.Wire(t, e.Addr(), wireLogin{Schema: e.Schemas[0], Capabilities: caps})
		for _, sql := range []string{"SET resultset_metadata = NONE", "SET @x = 'abc', time_zone = '+01:00'", "SELECT NEXTVAL('s') AS n"} {
			w.query(sql)
		}
		next++
		if got := w.do(protocol.ComInitDB, e.Schemas[1]); got[4] != 0 {
			t.Fatal(serverError(t, got))
		}
		_, rows := w.result("SELECT @@resultset_metadata, @x, @@time_zone, LAST_INSERT_ID()")
		if want := fmt.Sprintf("[[NONE abc +01:00 %d]]", next-1); fmt.Sprint(rows) != want {
			t.Errorf("on the other shard: got %v, want %s", rows, want)
		}
	}
}
