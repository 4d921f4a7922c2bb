package proxy_test

import (
	"cmp"
	"context"
	"database/sql"
	"encoding/binary"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"

	"seqproxy/protocol"
	"seqproxy/proxy"
	"seqproxy/sequence"
	"seqproxy/test/mysqltest"
)

// newDividedEnv has sequences that several servers divide in blocks. On each they are in the schema
// that it returns.
func newDividedEnv(t *testing.T, block uint64, servers ...*mysqltest.Server) (e *env, schema string) {
	t.Helper()
	e = newEnv(t, setup{
		Servers: servers[:1],
		Sequence: func(o *sequence.Options) {
			schema = o.Servers[0].Database
			o.Interleave, o.CreateTable, o.NoDirectWriters, o.Block = sequence.InterleaveBlock, true, true, block
			o.Servers[0].User, o.Servers[0].Password = "root", ""
			for _, s := range servers[1:] {
				o.Servers = append(o.Servers, sequence.ServerOptions{Addr: s.Addr(), User: "root", Database: schema})
			}
			divide(t, *o)
		},
	})
	return e, schema
}

// divide adds all sequence servers to the first one, as an operator does.
func divide(t *testing.T, o sequence.Options) {
	t.Helper()
	others := o.Servers[1:]
	o.Servers = o.Servers[:1]
	s, err := sequence.New(o)
	if err != nil {
		t.Fatal(err)
	}
	for _, other := range others {
		if _, err := s.ChangePlan(t.Context(), sequence.PlanChange{Add: other.Addr, WritersStopped: true}); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// Each of several sequence servers has a row of the sequence, and the numbers after it belong to
// another member. So the proxy relays no ticket to one of them that it cannot answer itself.
func TestTicketsAreNotLeftToOneOfSeveralSequenceServers(t *testing.T) {
	for _, test := range []struct {
		name, interleave string
		alone            bool   // no other client counts
		why              string // a part of the error for a multiple of 2
	}{
		{"blocks", sequence.InterleaveBlock, false, "another sequence server's"},
		{"steps", sequence.InterleaveStep, false, ""},
		{"steps of ours alone", sequence.InterleaveStep, true, "direct_writers"},
	} {
		t.Run(test.name, func(t *testing.T) {
			server, second := mysqltest.Shared(t), mysqltest.SharedSecond(t)
			var schema string
			e := newEnv(t, setup{
				Servers: []*mysqltest.Server{server},
				Sequence: func(o *sequence.Options) {
					schema = o.Servers[0].Database
					o.Interleave, o.CreateTable, o.NoDirectWriters = test.interleave, true, test.alone
					// Both servers have root.
					o.Servers[0].User, o.Servers[0].Password = "root", ""
					o.Servers = append(o.Servers, sequence.ServerOptions{Addr: second.Addr(), User: "root", Database: schema})
					if test.interleave == sequence.InterleaveBlock {
						o.Block = 10
						divide(t, *o)
					}
				},
				Proxy: func(o *proxy.Options) {
					o.Tickets = []proxy.TicketTable{{Schema: schema, Table: "sequence"}}
					o.MaxStatement = 100_000
				},
			})
			c, pinned := e.Conn(t, schema, nil), e.Conn(t, schema, nil)
			exec(t, c, "CREATE SEQUENCE photos CACHE 1")
			exec(t, pinned, "CREATE TEMPORARY TABLE notes (id INT)")

			given := make(map[string]bool)
			take := func(number string) {
				t.Helper()
				if given[number] {
					t.Errorf("%s comes twice", number)
				}
				given[number] = true
			}
			ticket := func(c *sql.Conn, text string, args ...any) {
				t.Helper()
				if _, err := c.ExecContext(t.Context(), text, args...); err != nil {
					t.Fatal(err)
				}
				take(value(t, c, "SELECT LAST_INSERT_ID()"))
			}
			ticket(c, "UPDATE sequence SET id = LAST_INSERT_ID(id + 2) WHERE name = 'photos'")
			ticket(c, "UPDATE sequence SET id = LAST_INSERT_ID(id + 2) WHERE name = ?", "photos")

			several := e.Conn(t, schema, func(cfg *mysql.Config) { cfg.MultiStatements = true })
			// Another proxy may have made the sequence a moment ago.
			wantError(t, several, 1235, "UPDATE sequence SET id = LAST_INSERT_ID(id + 1) WHERE name = 'later'; SELECT LAST_INSERT_ID()", "")

			why := cmp.Or(test.why, "another sequence server's")
			wantError(t, pinned, 1235, "INSERT INTO sequence (name) VALUES ('photos') ON DUPLICATE KEY UPDATE id = LAST_INSERT_ID(id + 2)", why)
			if test.why == "" {
				why = "a multiple of 2, not"
			} else {
				wantError(t, pinned, 1235, "UPDATE sequence SET id = LAST_INSERT_ID(id + 2) WHERE name = 'photos'", why)
			}
			wantError(t, pinned, 1235, "UPDATE sequence SET id = LAST_INSERT_ID(id + 1) WHERE name = 'photos'", why)
			wantError(t, pinned, 1235, "UPDATE sequence SET id = LAST_INSERT_ID(id + 3) WHERE name = 'photos'", why)
			if r := explainRoute(t, pinned, "UPDATE sequence SET id = LAST_INSERT_ID(id + 1) WHERE name = 'photos'", false); r.Code != "1235" {
				t.Errorf("EXPLAIN FORMAT=ROUTE: %+v, want error 1235", r)
			}
			prepared, err := pinned.PrepareContext(t.Context(), "UPDATE sequence SET id = LAST_INSERT_ID(id + ?) WHERE name = ?")
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = prepared.Close() }()
			var refused *mysql.MySQLError
			if _, err := prepared.ExecContext(t.Context(), 1, "photos"); !errors.As(err, &refused) || refused.Number != 1235 {
				t.Errorf("a prepared one: %v, want 1235", err)
			}
			hello, _ := e.Shards.Routes().Greeting() // MySQL has no bulk execution
			bulk := hello.Capabilities & protocol.BulkOperations
			w := e.Wire(t, e.addr, wireLogin{Schema: schema, Capabilities: bulk})
			w.query("CREATE TEMPORARY TABLE notes (id INT)")
			answer := w.do(protocol.ComStmtPrepare, "UPDATE sequence SET id = LAST_INSERT_ID(id + 1) WHERE name = ?")
			id := string(answer[5:9])
			refusedBy := func(what string, answer []byte) {
				t.Helper()
				if answer[4] != 0xff || binary.LittleEndian.Uint16(answer[5:]) != 1235 {
					t.Errorf("%s: got %q, want 1235", what, answer)
				}
			}
			execute := func(types, value string) []byte {
				return w.do(protocol.ComStmtExecute, id+"\x00\x01\x00\x00\x00"+"\x00\x01"+types+value)
			}
			for _, spaces := range []int{40_000, 120_000} {
				name := string(protocol.AppendLenEncBytes(nil, "photos"+strings.Repeat(" ", spaces)))
				refusedBy("with a long name", execute("\xfd\x00", name))
			}
			w.send(packet(command(protocol.ComStmtLongData, id+"\x00\x00photos")))
			refusedBy("with long data", execute("\xfc\x00", ""))
			refusedBy("after long data", execute("\xfd\x00", "\x06photos"))
			if bulk != 0 {
				refusedBy("in bulk", w.do(protocol.ComStmtBulkExecute, id+bulkRows(0, typeString, bulkText("photos"), bulkText("photos"))))
				for _, rows := range []int{5000, 20000} {
					// This exceeds a buffer and max_statement.
					refusedBy("in a long bulk", w.do(protocol.ComStmtBulkExecute, id+bulkRows(0, typeString, slices.Repeat([]string{bulkText("photos")}, rows)...)))
				}
			}
			if test.why == "" { // passes over the other member's blocks
				ticket(pinned, "UPDATE sequence SET id = LAST_INSERT_ID(id + 2) WHERE name = 'photos'")
				if _, err := prepared.ExecContext(t.Context(), 2, "photos"); err != nil {
					t.Fatal(err)
				}
				take(value(t, pinned, "SELECT LAST_INSERT_ID()"))
			}
			for range 50 {
				take(value(t, c, "SELECT NEXTVAL('photos')"))
			}
		})
	}
}

// A proxy that was started with the first server alone notices that it is not the only one.
func TestTicketsAreNotLeftToAServerThatIsOneOfSeveralByNow(t *testing.T) {
	for _, interleave := range []string{sequence.InterleaveBlock, sequence.InterleaveStep} {
		t.Run(interleave, func(t *testing.T) {
			server, second := mysqltest.Shared(t), mysqltest.SharedSecond(t)
			var o sequence.Options
			e := newEnv(t, setup{
				Servers: []*mysqltest.Server{server},
				Sequence: func(options *sequence.Options) {
					o = *options
				},
				Proxy: func(p *proxy.Options) {
					p.Tickets = []proxy.TicketTable{{Schema: o.Servers[0].Database, Table: "sequence"}}
				},
			})
			o.Interleave, o.CreateTable = interleave, true
			o.AllocateTimeout = 16 * time.Second // each server may take a part of this, and makes its tables in it
			o.Servers = append(o.Servers[:1:1], sequence.ServerOptions{Addr: second.Addr(), User: "root", Database: o.Servers[0].Database})
			o.Servers[0].User, o.Servers[0].Password = "root", "" // both servers have root
			if interleave == sequence.InterleaveBlock {
				o.Block = 10
				divide(t, o)
			}
			all, err := sequence.New(o)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = all.Close(context.Background()) })
			if _, err := all.Create(t.Context(), sequence.CreateOptions{Name: "photos"}); err != nil {
				t.Fatal(err)
			}
			c := e.Conn(t, o.Servers[0].Database, nil)
			exec(t, c, "CREATE TEMPORARY TABLE notes (id INT)")
			wantError(t, c, 1235, "UPDATE sequence SET id = LAST_INSERT_ID(id + 1) WHERE name = 'photos'", "")
		})
	}
}

// A ticket that waits for a paused shard is decided afterwards, because the set of sequence servers
// is changed in a pause.
func TestATicketThatWaitedForAPauseIsNotLeftToOneOfSeveralSequenceServers(t *testing.T) {
	server, second := mysqltest.Shared(t), mysqltest.SharedSecond(t)
	var schema string
	e := newEnv(t, setup{
		Servers: []*mysqltest.Server{server},
		Sequence: func(o *sequence.Options) {
			schema = o.Servers[0].Database
			o.NoDirectWriters, o.CreateTable = true, true
			o.Servers[0].User, o.Servers[0].Password = "root", "" // both servers have root
		},
		Proxy: func(p *proxy.Options) {
			p.Tickets = []proxy.TicketTable{{Schema: schema, Table: "sequence"}}
		},
	})
	const ticket, prepare = "UPDATE sequence SET id = LAST_INSERT_ID(id + 1) WHERE name = 'photos'", "UPDATE sequence SET id = LAST_INSERT_ID(id + 1) WHERE name = ?"
	admin := e.Conn(t, schema, nil)
	exec(t, admin, "CREATE SEQUENCE photos CACHE 1")
	hello, _ := e.Shards.Routes().Greeting() // MySQL has no bulk execution
	bulk := hello.Capabilities & protocol.BulkOperations
	connect := func() *wire {
		w := e.Wire(t, e.addr, wireLogin{Schema: schema, Capabilities: bulk | protocol.MultiStatements})
		w.query("CREATE TEMPORARY TABLE notes (id INT)")
		return w
	}
	type waiting struct {
		what string
		w    *wire
		send func()
	}
	var all []waiting
	text := func(what, sql string) {
		w := connect()
		all = append(all, waiting{what, w, func() { w.sendText(sql) }})
	}
	prepared := func(what string, cmd protocol.Command, behindID string) {
		w := connect()
		id := string(w.do(protocol.ComStmtPrepare, prepare)[5:9])
		all = append(all, waiting{what, w, func() { w.send(packet(command(cmd, id+behindID))) }})
	}
	text("a text", ticket)
	text("a text with its SELECT", ticket+"; SELECT LAST_INSERT_ID()")
	prepared("a prepared one", protocol.ComStmtExecute, "\x00\x01\x00\x00\x00"+"\x00\x01\xfd\x00\x06photos")
	if bulk != 0 {
		prepared("a prepared one, in bulk", protocol.ComStmtBulkExecute, bulkRows(0, typeString, bulkText("photos")))
	}
	e.pause(t, "")
	for _, c := range all {
		c.send()
	}
	e.awaitPausedSessions(t, len(all))
	exec(t, admin, "SEQPROXY ADD SEQUENCE SERVER '"+second.Addr()+"'")
	e.resume(t, "")
	for _, c := range all {
		c.w.answerError(c.what, 1235, "another sequence server's")
	}
}
