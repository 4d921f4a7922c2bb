package proxy_test

import (
	"encoding/binary"
	"fmt"
	"strings"
	"testing"

	"seqproxy/internal/mysqltest"
	"seqproxy/protocol"
	"seqproxy/proxy"
)

// tickets is an env whose sequence table is listed, and a schema with a twin of it, for
// direct connections.
type tickets struct {
	*env
	twin string
}

func newTickets(t *testing.T, listed ...proxy.TicketTable) *tickets {
	t.Helper()
	listed = append(listed, proxy.TicketTable{Table: "sequence"})
	e := newEnv(t, setup{
		Servers: []*mysqltest.Server{mysqltest.StartUnsynced(t)},
		Proxy:   func(o *proxy.Options) { o.Tickets = append(o.Tickets, listed...) },
	})
	x := &tickets{e, e.Servers[0].Schema(t)}
	for _, schema := range []string{x.twin, x.SequenceSchema} {
		x.exec("CREATE TABLE IF NOT EXISTS "+schema+".`sequence` (`name` varchar(50) NOT NULL, `id` bigint(20) unsigned NOT NULL DEFAULT '0', "+
			"PRIMARY KEY (`name`)) ENGINE=InnoDB",
			"INSERT INTO "+schema+".`sequence` (`name`, `id`) VALUES ('users', 0), ('photos', 700), ('albums', 9223372036854775807)",
			"CREATE TABLE "+schema+".photos (id BIGINT UNSIGNED NOT NULL PRIMARY KEY, n INT)")
	}
	return x
}

func (x *tickets) exec(statements ...string) { x.Servers[0].Exec(x.t, statements...) }

// pair logs in through the proxy, where the table is, and direct, where its twin is.
func (x *tickets) pair(t *testing.T, l wireLogin) *pair {
	t.Helper()
	proxied, direct := l, l
	proxied.Schema, direct.Schema = x.SequenceSchema, x.twin
	return &pair{t: t, Proxy: x.Wire(t, x.addr, proxied), Direct: x.Wire(t, x.Servers[0].Addr(), direct)}
}

// alone is query without the ping that wires send behind each command: that resets
// MariaDB's ROW_COUNT().
func (p *pair) alone(sql string) {
	p.t.Helper()
	var answers [2][]byte
	for i, w := range []*wire{p.Proxy, p.Direct} {
		argument := sql
		if w.caps.Has(protocol.QueryAttributes) {
			argument = protocol.NoAttributes + argument
		}
		w.send(packet(command(protocol.ComQuery, argument)))
		answers[i] = w.receive(protocol.ShapeResult, nil)
	}
	compare(p.t, sql, answers[0], answers[1])
}

// yupoo are Yupoo's statements, and what applications send before and behind them.
var yupoo = []string{
	"SELECT LAST_INSERT_ID()",
	"UPDATE `sequence` SET `id` = LAST_INSERT_ID(`id` + 1) WHERE `name` = 'photos'",
	"SELECT LAST_INSERT_ID()", "SELECT @@identity AS i, LAST_INSERT_ID()", "SELECT ROW_COUNT()",
	"UPDATE sequence SET id = LAST_INSERT_ID(id + 1) WHERE name = 'photos'", "SELECT ROW_COUNT()", "SELECT LAST_INSERT_ID()",
	"UPDATE sequence s SET s.id = LAST_INSERT_ID(s.id + 1) WHERE s.name = 'Users';", "SELECT LAST_INSERT_ID(), ROW_COUNT()",
	"UPDATE sequence SET id = LAST_INSERT_ID(id + 1) WHERE name = 'photos'", "INSERT INTO photos (id) VALUES (LAST_INSERT_ID())",
	"SELECT ROW_COUNT(), LAST_INSERT_ID()",
	"UPDATE sequence SET id = LAST_INSERT_ID(id + 1) WHERE name = 'nobody'", "SELECT LAST_INSERT_ID()", "SELECT ROW_COUNT()",
	"UPDATE sequence SET id = LAST_INSERT_ID(id + 1) WHERE name = 'albums'", "SELECT LAST_INSERT_ID()",
	"UPDATE sequence SET id = LAST_INSERT_ID(id + 1) WHERE name = ''",
	"SELECT nonesuch FROM photos", "UPDATE sequence SET id = LAST_INSERT_ID(id + 1) WHERE name = 'users'", "SHOW WARNINGS",
	"DROP TABLE IF EXISTS nonesuch_either", "UPDATE sequence SET id = LAST_INSERT_ID(id + 1) WHERE name = 'users'", "SELECT @@warning_count",
	"DROP TABLE IF EXISTS nonesuch_either", "UPDATE sequence SET id = LAST_INSERT_ID(id + 1) WHERE name = 'nobody'", "SHOW COUNT(*) WARNINGS",
	"BEGIN", "UPDATE sequence SET id = LAST_INSERT_ID(id + 1) WHERE name = 'users'", "INSERT INTO photos VALUES (LAST_INSERT_ID() + 5000, 1)", "COMMIT",
	"SELECT LAST_INSERT_ID()",
	"SET autocommit = 0", "UPDATE sequence SET id = LAST_INSERT_ID(id + 1) WHERE name = 'users'", "SELECT 1", "COMMIT", "SELECT 1",
	"UPDATE sequence SET id = LAST_INSERT_ID(id + 1) WHERE name = 'nobody'", "SELECT 1", "COMMIT", "SET autocommit = 1", "SELECT LAST_INSERT_ID()",
	"START TRANSACTION READ ONLY", "UPDATE sequence SET id = LAST_INSERT_ID(id + 1) WHERE name = 'users'", "COMMIT",
	"UPDATE sequence SET id = LAST_INSERT_ID(id + 1) WHERE name = 'photos'; SELECT LAST_INSERT_ID()",
	"UPDATE sequence SET id = LAST_INSERT_ID(id + 1) WHERE name = 'photos'; SELECT LAST_INSERT_ID() AS id, @@identity;",
	"SELECT LAST_INSERT_ID()",
	"UPDATE sequence SET id = LAST_INSERT_ID(id + 1) WHERE name = 'photos'; ", "SELECT LAST_INSERT_ID()",
	"UPDATE sequence SET id = LAST_INSERT_ID(id + 1) WHERE name = 'nobody'; SELECT LAST_INSERT_ID()",
	"UPDATE sequence SET id = LAST_INSERT_ID(id + 1) WHERE", "SELECT LAST_INSERT_ID()",
	"INSERT INTO sequence (name) VALUES ('photos') ON DUPLICATE KEY UPDATE id = LAST_INSERT_ID(id + 1)", "SELECT LAST_INSERT_ID()",
	"INSERT INTO sequence SET name = 'users' ON DUPLICATE KEY UPDATE id = LAST_INSERT_ID(id + 1)", "SELECT ROW_COUNT() AS n, LAST_INSERT_ID()", "SELECT ROW_COUNT()", "SELECT LAST_INSERT_ID()",
	"INSERT INTO sequence (name, id) VALUES ('users', LAST_INSERT_ID(1)) ON DUPLICATE KEY UPDATE id = LAST_INSERT_ID(id + 1)",
	"CREATE TEMPORARY TABLE sequence (name VARCHAR(9) PRIMARY KEY, id INT)", "INSERT INTO sequence VALUES ('photos', 3)",
	"UPDATE sequence SET id = LAST_INSERT_ID(id + 1) WHERE name = 'photos'", "SELECT id + 0 AS id FROM sequence", "DROP TEMPORARY TABLE sequence",
}

func TestYupoosTicketsAreAnsweredAsByTheServer(t *testing.T) {
	x := newTickets(t)
	for _, l := range []wireLogin{
		{Capabilities: allFraming},
		{Capabilities: allFraming | protocol.FoundRows},
		{Capabilities: allFraming &^ (protocol.DeprecateEOF | protocol.SessionTrack | protocol.MultiStatements)},
	} {
		p := x.pair(t, l)
		before := x.Sequences.Stats()
		off := false
		for _, sql := range yupoo {
			// MySQL tells of the end of a transaction that was begun in words, as ours is here.
			off = sql == "SET autocommit = 0" || off && sql != "SET autocommit = 1"
			if off && l.Capabilities.Has(protocol.SessionTrack) && !x.Servers[0].IsMariaDB() {
				continue
			}
			if l.Capabilities == allFraming {
				p.query(sql) // with a ping behind it
			} else {
				p.alone(sql)
			}
		}
		if after := x.Sequences.Stats(); after.Given-before.Given < 12 {
			t.Errorf("numbers that came from memory: got %d, want at least 12", after.Given-before.Given)
		}
	}
}

// stringParameter and numberParameter are values of prepared statements, with their
// types.
func stringParameter(s string) [2][]byte {
	return [2][]byte{{0xfd, 0}, append([]byte{byte(len(s))}, s...)}
}

func numberParameter(n int32) [2][]byte {
	return [2][]byte{{3, 0}, binary.LittleEndian.AppendUint32(nil, uint32(n))}
}

func nullParameter() [2][]byte { return [2][]byte{{6, 0}, nil} }

// ticketExecution is the argument of COM_STMT_EXECUTE. Without bind the types are left out.
func ticketExecution(id uint32, bind bool, params ...[2][]byte) string {
	b := append(binary.LittleEndian.AppendUint32(nil, id), 0, 1, 0, 0, 0)
	if len(params) == 0 {
		return string(b)
	}
	nulls := byte(0)
	for i, p := range params {
		if p[0][0] == 6 {
			nulls |= 1 << i
		}
	}
	b = append(b, nulls)
	if bind {
		b = append(b, 1)
		for _, p := range params {
			b = append(b, p[0]...)
		}
	} else {
		b = append(b, 0)
	}
	for _, p := range params {
		b = append(b, p[1]...)
	}
	return string(b)
}

func TestPreparedTicketsAreAnsweredAsByTheServer(t *testing.T) {
	x := newTickets(t)
	const id = 1
	var p *pair
	prepare := func(sql string) {
		t.Helper()
		p = x.pair(t, wireLogin{}) // MySQL prepares some anew, and then gives ids that nobody sees
		p.same(protocol.ComStmtPrepare, sql)
	}
	run := func(bind bool, params ...[2][]byte) {
		t.Helper()
		p.same(protocol.ComStmtExecute, ticketExecution(id, bind, params...))
		p.query("SELECT LAST_INSERT_ID()")
	}
	prepare("UPDATE sequence SET id = LAST_INSERT_ID(id + 1) WHERE name = 'photos'")
	run(false)
	run(false)
	prepare("UPDATE sequence SET id = LAST_INSERT_ID(id + 1) WHERE name = ?")
	run(true, stringParameter("photos"))
	run(false, stringParameter("users"))
	run(false, stringParameter("nobody"))
	run(true, nullParameter())
	run(true, stringParameter("photos"))
	p.query("LOCK TABLES sequence READ")
	run(false, stringParameter("photos")) // the server says that it cannot be written, and has not seen the type before
	p.query("UNLOCK TABLES")
	run(false, stringParameter("photos"))
	prepare("UPDATE sequence SET id = LAST_INSERT_ID(id + ?) WHERE name = ?")
	run(true, numberParameter(1), stringParameter("photos"))
	run(false, numberParameter(1), stringParameter("photos"))
	run(true, numberParameter(-1), stringParameter("nobody"))
	run(true, numberParameter(0), stringParameter("nobody"))
	prepare("UPDATE sequence SET id = LAST_INSERT_ID(id + ?) WHERE name = ?")
	run(true, stringParameter("1"), stringParameter("users"))
	prepare("INSERT INTO sequence (name) VALUES (?) ON DUPLICATE KEY UPDATE id = LAST_INSERT_ID(id + 1)")
	run(true, stringParameter("photos"))
	run(false, stringParameter("users"))

	// Long data is for the next execution only.
	prepare("UPDATE sequence SET id = LAST_INSERT_ID(id + 1) WHERE name = ?")
	run(true, stringParameter("photos"))
	for _, w := range []*wire{p.Proxy, p.Direct} {
		w.send(packet(longDataCommand(id, 0, []byte("nobody"))))
	}
	p.same(protocol.ComStmtExecute, ticketExecution(id, false, [2][]byte{{0xfd, 0}, nil}))
	run(false, stringParameter("photos"))
	p.same(protocol.ComStmtExecute, ticketExecution(id, true)) // too short
	p.same(protocol.ComStmtExecute, ticketExecution(id, false, stringParameter("photos")))
	prepare("UPDATE sequence SET id = LAST_INSERT_ID(id + 1) WHERE name = ?")
	run(true, numberParameter(5)) // MySQL then takes the parameter for a number for ever
	if got := x.Sequences.Stats().Given; got < 12 {
		t.Errorf("numbers that came from memory: got %d, want at least 12", got)
	}
}

func TestATicketOfANewNameIsItsFirst(t *testing.T) {
	x := newTickets(t)
	c := x.Conn(t, x.SequenceSchema, nil)
	exec(t, c, "UPDATE sequence SET id = LAST_INSERT_ID(id + 1) WHERE name = 'photos'")
	for i, sql := range []string{
		"INSERT INTO sequence (name) VALUES ('%s') ON DUPLICATE KEY UPDATE id = LAST_INSERT_ID(id + 1)",
		"INSERT INTO sequence (name, id) VALUES ('%s', 1) ON DUPLICATE KEY UPDATE id = LAST_INSERT_ID(id + 1)",
		"INSERT INTO sequence (name, id) VALUES ('%s', LAST_INSERT_ID(1)) ON DUPLICATE KEY UPDATE id = LAST_INSERT_ID(id + 1)",
	} {
		sql = fmt.Sprintf(sql, strings.Repeat("x", i+1))
		for want := int64(1); want <= 2; want++ {
			r, err := c.ExecContext(t.Context(), sql)
			if err != nil {
				t.Fatal(err)
			}
			rows, _ := r.RowsAffected()
			if id, _ := r.LastInsertId(); id != want || rows != want { // 1 for a new row, 2 for one that was there
				t.Errorf("%s: got id %d, affected rows %d, want %d and %d", sql, id, rows, want, want)
			}
			if got := value(t, c, "SELECT LAST_INSERT_ID()"); got != fmt.Sprint(want) {
				t.Errorf("%s: LAST_INSERT_ID() is %s, want %d", sql, got, want)
			}
		}
	}
}

func TestWhatIsNotListedOrNotATicketIsRelayed(t *testing.T) {
	x := newTickets(t)
	p := x.pair(t, wireLogin{})
	for _, sql := range []string{
		"UPDATE sequence SET id = id + 1 WHERE name = 'photos'",
		"UPDATE sequence SET id = LAST_INSERT_ID(id + 1) WHERE name = 'photos' AND id < 10000",
		"UPDATE sequence SET id = LAST_INSERT_ID(id + 1)",
		"UPDATE photos SET id = LAST_INSERT_ID(id + 1) WHERE n = '1'",
		"INSERT INTO sequence (name) VALUES ('other')",
		"DELETE FROM sequence WHERE name = 'other'",
		"SELECT id + 0 AS id FROM sequence ORDER BY name",
	} {
		p.query(sql)
	}
	for _, w := range []*wire{p.Proxy, p.Direct} {
		w.do(protocol.ComQuery, "CREATE TABLE other_schema_test (name VARCHAR(9) PRIMARY KEY, id INT)")
	}
	if got := x.Sequences.Stats(); got.Given != 0 {
		t.Errorf("numbers that came from memory: got %d, want 0", got.Given)
	}
}
