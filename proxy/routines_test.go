package proxy_test

import (
	"strings"
	"testing"

	"seqproxy/protocol"
)

// Checklist 15.
// Checklist 18.
// Checklist 19.
// Checklist 20.
func TestRoutinesAreAnsweredAsByTheServer(t *testing.T) {
	e := newEnv(t, setup{})
	create, calls := e.Servers[0].Routines()
	e.Servers[0].Exec(t, append([]string{"USE " + e.Schemas[0]}, create...)...)
	for name, caps := range endings {
		t.Run(name, func(t *testing.T) {
			p := e.Pair(t, 0, wireLogin{Schema: e.Schemas[0], Capabilities: caps})
			p.query("SET @a = 1, @b = 2")
			mode := ""
			for _, c := range calls {
				if c.Mode != mode {
					mode = c.Mode
					p.query("SET sql_mode = '" + mode + "'")
				}
				if c.Arguments == "" {
					p.query(c.SQL)
				}
				s := p.prepare(c.SQL)
				if s.direct == 0 {
					continue
				}
				arguments := c.Arguments
				if arguments != "" {
					arguments = "\x00\x01" + arguments
				}
				for _, flags := range []string{"\x00", "\x01", "\x06"} {
					s.same(protocol.ComStmtExecute, flags+"\x01\x00\x00\x00"+arguments)
					s.same(protocol.ComStmtFetch, "\x02\x00\x00\x00")
					s.same(protocol.ComStmtFetch, "\x02\x00\x00\x00")
					s.same(protocol.ComStmtReset, "")
				}
				s.same(protocol.ComStmtClose, "")
			}
			// The proxy passes an execution on as it comes, without keeping it.
			long := strings.Repeat("x", 200_000)
			for _, flags := range []string{"\x01", "\x00", "\x04"} {
				// MySQL mixes up executions with and without a cursor.
				s := p.prepare("SELECT LENGTH(?) FROM t")
				s.same(protocol.ComStmtExecute, flags+"\x01\x00\x00\x00"+binding("\x00", typeBlob, string(protocol.AppendLenEncBytes(nil, long))))
				s.same(protocol.ComStmtFetch, "\x02\x00\x00\x00")
			}
			// Many in one write, whose answers follow one another.
			var texts []sent
			for _, c := range calls {
				if c.Arguments == "" && c.Mode == "" && !strings.Contains(c.SQL, "kills_itself") {
					texts = append(texts, sent{protocol.ComQuery, c.SQL})
				}
			}
			p.inOneWrite("in one write", texts...)
		})
	}
}
