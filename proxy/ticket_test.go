package proxy_test

import (
	"encoding/binary"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/go-sql-driver/mysql"

	"seqproxy/protocol"
	"seqproxy/proxy"
	"seqproxy/sequence"
	"seqproxy/test/mysqltest"
)

// ticketSQL are usual ticket tables by engine: Flickr's, one with several stubs, and one for each
// business table.
var ticketSQL = []string{
	"CREATE TABLE tickets64%[1]s (`id` bigint(20) unsigned NOT NULL auto_increment, `stub` char(1) NOT NULL default '', " +
		"PRIMARY KEY (`id`), UNIQUE KEY `stub` (`stub`)) ENGINE=%[1]s",
	"CREATE TABLE id_temp%[1]s (`id` int(11) unsigned NOT NULL AUTO_INCREMENT, `table_name` varchar(20) DEFAULT NULL, " +
		"PRIMARY KEY (`id`), UNIQUE KEY `table_name` (`table_name`)) ENGINE=%[1]s AUTO_INCREMENT=1",
	"CREATE TABLE ids_photos%[1]s (id BIGINT UNSIGNED NOT NULL AUTO_INCREMENT PRIMARY KEY) ENGINE=%[1]s",
}

var ticketEngines = []string{"InnoDB", "MyISAM"}

// tickets is an env whose sequence table is listed, and a schema with a twin of it for direct
// connections.
type tickets struct {
	*env
	twin string
}

func newTickets(t *testing.T) *tickets {
	t.Helper()
	var schema string
	e := newEnv(t, setup{
		Servers:  []*mysqltest.Server{mysqltest.StartUnsynced(t)},
		Sequence: func(o *sequence.Options) { schema = o.Servers[0].Database },
		Proxy: func(o *proxy.Options) {
			o.Tickets = []proxy.TicketTable{{Schema: schema, Table: "sequence"}}
			for _, engine := range ticketEngines {
				for _, table := range []string{"tickets64", "id_temp", "ids_photos"} {
					o.Tickets = append(o.Tickets, proxy.TicketTable{
						Schema: schema, Table: table + engine, Name: "tickets",
						Counter: o.Sequences.(*sequence.Sequences).TicketTable(schema, table+engine),
					})
				}
			}
		},
	})
	x := &tickets{e, e.Servers[0].Schema(t)}
	for _, schema := range []string{x.twin, x.SequenceSchema} {
		x.exec("CREATE TABLE IF NOT EXISTS "+schema+".`sequence` (`name` varchar(50) NOT NULL, `id` bigint(20) unsigned NOT NULL DEFAULT '0', "+
			"PRIMARY KEY (`name`)) ENGINE=InnoDB",
			"INSERT INTO "+schema+".`sequence` (`name`, `id`) VALUES ('users', 0), ('photos', 700), ('albums', 9223372036854775807)",
			"CREATE TABLE "+schema+".photos (id BIGINT UNSIGNED NOT NULL PRIMARY KEY, n INT)")
		for _, engine := range ticketEngines {
			for _, text := range ticketSQL {
				x.exec("USE "+schema, fmt.Sprintf(text, engine))
			}
		}
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

// alone is query without the ping behind it, which resets MariaDB's ROW_COUNT().
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

// yupoo are Yupoo's statements, with those that applications send around them.
var yupoo = []string{
	"SET session_track_system_variables = CONCAT(@@global.session_track_system_variables, ',sql_mode')", // as MariaDB Connector/J
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
	// The sign of Kelvin is a k where Unicode folds it, and no server does.
	"INSERT INTO sequence (name) VALUES ('photos') ON DUPLICATE \u212aEY UPDATE id = LAST_INSERT_ID(id + 1)", "SELECT LAST_INSERT_ID()",
	// A row that was missing a moment ago, and one that nobody else sees yet.
	"UPDATE sequence SET id = LAST_INSERT_ID(id + 1) WHERE name = 'new'", "INSERT INTO sequence (name, id) VALUES ('new', 40)",
	"UPDATE sequence SET id = LAST_INSERT_ID(id + 1) WHERE name = 'new'", "SELECT LAST_INSERT_ID()",
	"UPDATE sequence SET id = LAST_INSERT_ID(id + 1) WHERE name = 'new'; SELECT LAST_INSERT_ID()", "DELETE FROM sequence WHERE name = 'new'",
	"SET autocommit = 0", "INSERT INTO sequence (name, id) VALUES ('newer', 50)",
	"UPDATE sequence SET id = LAST_INSERT_ID(id + 1) WHERE name = 'newer'", "SELECT LAST_INSERT_ID()", "ROLLBACK", "SET autocommit = 1",
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
		if x.Servers[0].IsMariaDB() { // a query timeout of a driver
			p.alone("SET STATEMENT max_statement_time=30 FOR UPDATE sequence SET id = LAST_INSERT_ID(id + 1) WHERE name = 'users'")
		}
		off := false
		for _, sql := range yupoo {
			// MySQL reports the end of a transaction that was begun by statement, as the proxy's is
			// here.
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

// ticketExecution is the argument of COM_STMT_EXECUTE, without types unless bind.
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
		p = x.pair(t, wireLogin{}) // MySQL prepares some statements anew, and its new ids do not show
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
	// The server's error says that it cannot be written, and that it has not seen the type before.
	run(false, stringParameter("photos"))
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

	// Long data applies to the next execution only.
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
	run(true, numberParameter(5)) // MySQL then keeps the parameter as a number
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
			if id, _ := r.LastInsertId(); id != want || rows != want {
				// An upsert counts 1 for a new row, 2 for an existing one.
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

// flickr are Flickr's statements, and those for a table of its own, with {e} for the engine.
var flickr = []string{
	"REPLACE INTO tickets64{e} (stub) VALUES ('a')", "SELECT LAST_INSERT_ID()", "SELECT ROW_COUNT()",
	"REPLACE INTO `tickets64{e}` (`stub`) VALUES (\"a\");", "SELECT ROW_COUNT(), LAST_INSERT_ID()", "SELECT LAST_INSERT_ID() AS id",
	"REPLACE INTO tickets64{e} (stub) VALUES ('a'); SELECT LAST_INSERT_ID();", "SELECT @@identity",
	"REPLACE INTO tickets64{e} SET stub = 'a'", "INSERT INTO photos (id) VALUES (1000000 + LAST_INSERT_ID())", "SELECT ROW_COUNT()",
	"REPLACE INTO id_temp{e} (table_name) value(\"tablename\") ; SELECT LAST_INSERT_ID() ;",
	"REPLACE INTO id_temp{e} (id, table_name) VALUES (NULL, 'tablename')", "SELECT LAST_INSERT_ID()",
	"DROP TABLE IF EXISTS nonesuch_either", "REPLACE INTO id_temp{e} (table_name) VALUES ('tablename')", "SHOW COUNT(*) WARNINGS",
	"INSERT INTO ids_photos{e} VALUES (NULL)", "SELECT LAST_INSERT_ID(), ROW_COUNT()",
	"INSERT INTO ids_photos{e} () VALUES ()", "INSERT INTO ids_photos{e} (id) VALUES (NULL)", "SELECT LAST_INSERT_ID()",
	"INSERT INTO ids_photos{e} SET id = DEFAULT; SELECT LAST_INSERT_ID()",
	"BEGIN", "REPLACE INTO tickets64{e} (stub) VALUES ('a')", "INSERT INTO ids_photos{e} VALUES (NULL)", "COMMIT", "SELECT LAST_INSERT_ID()",
	"SET autocommit = 0", "REPLACE INTO tickets64{e} (stub) VALUES ('a')", "SELECT 1", "COMMIT", "SET autocommit = 1",
	// Answers of the server, which use the same counter.
	"REPLACE INTO tickets64{e} (nonesuch) VALUES ('a')", "REPLACE INTO tickets64{e} VALUES ('a')",
	"INSERT INTO ids_photos{e} VALUES (NULL, 1)",
	"START TRANSACTION READ ONLY", "REPLACE INTO tickets64{e} (stub) VALUES ('a')", "COMMIT",
}

func TestFlickrsTicketsAreAnsweredAsByTheServer(t *testing.T) {
	x := newTickets(t)
	for _, engine := range ticketEngines {
		// The first use of a stub, and its row, cost a number.
		p := x.pair(t, wireLogin{Capabilities: allFraming &^ protocol.SessionTrack})
		p.Direct.do(protocol.ComQuery, "ALTER TABLE tickets64"+engine+" AUTO_INCREMENT = 2")
		p.Direct.do(protocol.ComQuery, "ALTER TABLE id_temp"+engine+" AUTO_INCREMENT = 2")
		before := x.Sequences.Stats().Given
		for _, sql := range flickr {
			p.alone(strings.ReplaceAll(sql, "{e}", engine))
		}
		if got := x.Sequences.Stats().Given - before; got != 14 {
			t.Errorf("%s: numbers that came from memory: got %d, want 14", engine, got)
		}

		p = x.pair(t, wireLogin{Capabilities: allFraming | protocol.FoundRows})
		p.same(protocol.ComStmtPrepare, "REPLACE INTO tickets64"+engine+" (stub) VALUES (?)")
		for range 2 {
			p.same(protocol.ComStmtExecute, ticketExecution(1, true, stringParameter("a")))
			p.alone("SELECT LAST_INSERT_ID()")
		}
		p.same(protocol.ComStmtExecute, ticketExecution(1, true, stringParameter("too long")))
		p.same(protocol.ComStmtPrepare, "INSERT INTO ids_photos"+engine+" VALUES (NULL)")
		p.same(protocol.ComStmtExecute, ticketExecution(2, true))
		p.alone("SELECT LAST_INSERT_ID()")
	}
}

func TestTicketsInWhateverSession(t *testing.T) {
	const ticket = "UPDATE sequence SET id = LAST_INSERT_ID(id + 1) WHERE name = 'photos'"
	x := newTickets(t)
	given := func() uint64 { return x.Sequences.Stats().Given }
	c := x.Conn(t, x.SequenceSchema, nil)
	for _, s := range []struct {
		before, after, sql string
		served             bool
	}{
		{"", "", ticket, true},
		{"USE " + x.twin, "USE " + x.SequenceSchema, ticket, false}, // another table of that name
		{"USE " + x.twin, "USE " + x.SequenceSchema, strings.Replace(ticket, "sequence", x.SequenceSchema+".sequence", 1), true},
		{"USE " + x.twin, "USE " + x.SequenceSchema, strings.Replace(ticket, "sequence", "`"+x.SequenceSchema+"`.`sequence` s", 1), true},
		{"SET NAMES latin1", "SET NAMES utf8mb4", ticket, true},
		{"SET sql_mode = 'ANSI_QUOTES'", "SET sql_mode = DEFAULT", ticket, true},
		{"LOCK TABLES sequence WRITE", "UNLOCK TABLES", ticket, false},
		{"SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED", "", ticket, true},
		{"SET SESSION TRANSACTION READ ONLY", "SET SESSION TRANSACTION READ WRITE", "SELECT 1", false},
		{"BEGIN", "COMMIT", ticket, true},
		{"SET SESSION insert_id = 5", "", strings.Replace(ticket, "photos", "users", 1), false},
	} {
		if s.before != "" {
			exec(t, c, s.before)
		}
		before := given()
		exec(t, c, s.sql)
		if got := given() > before; got != s.served {
			t.Errorf("after %q, %s: answered here %v, want %v", s.before, s.sql, got, s.served)
		}
		if s.after != "" {
			exec(t, c, s.after)
		}
	}

	// A text that fails behind its USE leaves another schema, which only the server knows.
	several := x.Conn(t, x.SequenceSchema, func(c *mysql.Config) { c.MultiStatements = true })
	for _, schema := range []string{x.twin, x.SequenceSchema} {
		for _, prepared := range []bool{false, true} {
			wantError(t, several, 1054, "USE "+schema+"; SELECT nonesuch")
			before := given()
			if prepared {
				stmt, err := several.PrepareContext(t.Context(), ticket)
				if err != nil {
					t.Fatal(err)
				}
				_, err = stmt.ExecContext(t.Context())
				if err = errors.Join(err, stmt.Close()); err != nil {
					t.Fatal(err)
				}
			} else {
				exec(t, several, ticket)
			}
			if got, want := given() > before, schema != x.twin; got != want {
				t.Errorf("in %s, prepared %v: answered here %v, want %v", schema, prepared, got, want)
			}
		}
	}

	for _, readOnly := range []string{"SET SESSION TRANSACTION READ ONLY", "SET transaction_read_only = 1", "SET tx_read_only = ON"} {
		if strings.Contains(readOnly, "transaction_read_only") == x.Servers[0].IsMariaDB() && strings.Contains(readOnly, "=") {
			continue // MariaDB 10.11 has one of the names, MySQL the other
		}
		r := x.Conn(t, x.SequenceSchema, nil)
		exec(t, r, readOnly)
		wantError(t, r, 1792, ticket)
	}

	// Other sessions see no lock, and ROLLBACK returns no number.
	one, two := x.Conn(t, x.SequenceSchema, nil), x.Conn(t, x.SequenceSchema, nil)
	exec(t, one, "BEGIN", ticket)
	first := value(t, one, "SELECT LAST_INSERT_ID()")
	exec(t, two, ticket)
	second := value(t, two, "SELECT LAST_INSERT_ID()")
	exec(t, one, "ROLLBACK", ticket)
	if third := value(t, one, "SELECT LAST_INSERT_ID()"); first == second || second == third || first == third {
		t.Errorf("got %s, %s and %s, want three numbers", first, second, third)
	}

	// Values that the proxy cannot know, and others that it does.
	exec(t, one, "REPLACE INTO tickets64InnoDB (stub) VALUES ('a')", "REPLACE INTO tickets64InnoDB (stub) VALUES ('a')")
	for _, reads := range []string{"INSERT INTO photos (id, n) VALUES (LAST_INSERT_ID(), ROW_COUNT())", "GET DIAGNOSTICS @rows = ROW_COUNT"} {
		exec(t, one, "REPLACE INTO tickets64InnoDB (stub) VALUES ('a')")
		wantError(t, one, 1235, reads, "ROW_COUNT()")
	}
	exec(t, one, "REPLACE INTO tickets64InnoDB (stub) VALUES ('a')")
	if got := value(t, one, "SELECT ROW_COUNT()"); got != "2" { // the way out
		t.Errorf("ROW_COUNT(): got %s, want 2", got)
	}
	exec(t, one, ticket, "GET DIAGNOSTICS @rows = ROW_COUNT")
	if got := value(t, one, "SELECT @rows"); got != "1" {
		t.Errorf("ROW_COUNT of the diagnostics: got %s, want 1", got)
	}
}

func TestTicketsHeedTheUsersRights(t *testing.T) {
	var schema string
	e := newEnv(t, setup{
		Sequence: func(o *sequence.Options) { schema = o.Servers[0].Database },
		Proxy: func(o *proxy.Options) {
			o.Users[0].Sequences = []string{"photos"}
			o.Tickets = []proxy.TicketTable{
				{Schema: schema, Table: "sequence"},
				{Schema: schema, Table: "ids", Name: "ids", Counter: o.Sequences.(*sequence.Sequences).TicketTable(schema, "ids")},
			}
		},
	})
	for _, name := range []string{"photos", "users"} {
		if _, err := e.Sequences.Create(t.Context(), sequence.CreateOptions{Name: name}); err != nil {
			t.Fatal(err)
		}
	}
	e.Servers[0].Exec(t, "CREATE TABLE "+schema+".ids (id BIGINT AUTO_INCREMENT PRIMARY KEY)")
	c := e.Conn(t, schema, nil)
	exec(t, c, "UPDATE sequence SET id = LAST_INSERT_ID(id + 1) WHERE name = 'photos'")
	wantError(t, c, 1227, "UPDATE sequence SET id = LAST_INSERT_ID(id + 1) WHERE name = 'users'", "users")
	wantError(t, c, 1227, "INSERT INTO sequence (name) VALUES ('new') ON DUPLICATE KEY UPDATE id = LAST_INSERT_ID(id + 1)", "new")
	wantError(t, c, 1227, "INSERT INTO ids VALUES (NULL)", "ids")
}

// Statements after a ticket in one text are handled, and explained, as without it.
func TestWhatStandsBehindATicketIsHandledAsWithoutOne(t *testing.T) {
	var schema string
	e := newEnv(t, setup{
		Sequence: func(o *sequence.Options) { schema = o.Servers[0].Database },
		Proxy: func(o *proxy.Options) {
			o.Tickets = []proxy.TicketTable{{Schema: schema, Table: "sequence"}}
			o.Bindings = []proxy.Binding{{Table: "photos", Column: "id", Sequence: "photos"}}
		},
	})
	c := e.Conn(t, e.Schemas[0], func(c *mysql.Config) { c.MultiStatements = true })
	exec(t, c, "CREATE SEQUENCE albums", "CREATE SEQUENCE photos START WITH 1000", "CREATE TABLE photos (id BIGINT AUTO_INCREMENT PRIMARY KEY, title VARCHAR(9))")
	ticket := "UPDATE " + schema + ".sequence SET id = LAST_INSERT_ID(id + 1) WHERE name = 'albums'; "
	for _, insert := range []string{"INSERT INTO photos (title) VALUES ('sea')", "REPLACE INTO photos SET title = 'sea'", "INSERT INTO photos VALUES (NULL, 'sea')"} {
		if got := explainRoute(t, c, ticket+insert, false); got.Kind != "rewrite" || got.Sequences != "photos (1)" {
			t.Errorf("%s: got %+v, want it rewritten with a number of photos", ticket+insert, got)
		}
		exec(t, c, ticket+insert)
	}
	if got := value(t, c, "SELECT GROUP_CONCAT(id ORDER BY id) FROM photos"); got != "1000,1001,1002" {
		t.Errorf("got the keys %s, want those of the sequence", got)
	}
	other := e.Conn(t, e.Schemas[0], nil)
	exec(t, c, ticket+"KILL "+value(t, other, "SELECT CONNECTION_ID()"))
	if err := other.PingContext(t.Context()); err == nil {
		t.Error("a KILL after a ticket did not end its session")
	}
	wantError(t, c, 1235, ticket+"HELP 'x'; INSERT INTO photos (title) VALUES ('sea'); '", "cannot be read to its end")
}

// TestFlushSequencesMeansTicketTables: the cached numbers become a gap.
func TestFlushSequencesMeansTicketTables(t *testing.T) {
	var schema string
	e := newEnv(t, setup{
		Sequence: func(o *sequence.Options) { schema, o.CacheSize = o.Servers[0].Database, 100 },
		Proxy: func(o *proxy.Options) {
			o.Tickets = []proxy.TicketTable{
				{Schema: schema, Table: "tickets64", Name: "tickets64", Counter: o.Sequences.(*sequence.Sequences).TicketTable(schema, "tickets64")},
			}
		},
	})
	e.Servers[0].Exec(t, "USE "+schema, fmt.Sprintf(ticketSQL[0], "InnoDB"), "RENAME TABLE tickets64InnoDB TO tickets64")
	c := e.Conn(t, schema, nil)
	last := int64(0)
	for _, flush := range []string{"DO 0", "FLUSH SEQUENCES tickets64", "FLUSH SEQUENCES " + schema + ".tickets64", "FLUSH SEQUENCES"} {
		exec(t, c, flush)
		r, err := c.ExecContext(t.Context(), "REPLACE INTO tickets64 (stub) VALUES ('a')")
		if err != nil {
			t.Fatal(err)
		}
		id, _ := r.LastInsertId()
		if last != 0 && id < last+100 {
			t.Errorf("after %s got %d, want more than the segment of %d", flush, id, last)
		}
		last = id
	}
}

// TestTicketsWithoutAServer: a keys-only proxy, whose sequence server goes away.
func TestTicketsWithoutAServer(t *testing.T) {
	server := mysqltest.StartUnsynced(t)
	e := newEnv(t, setup{
		Shards: noShards, Servers: []*mysqltest.Server{server},
		Sequence: func(o *sequence.Options) { o.CacheSize = 40 },
		Proxy:    func(o *proxy.Options) { o.Tickets = []proxy.TicketTable{{Table: "sequence"}} },
	})
	if _, err := e.Sequences.Create(t.Context(), sequence.CreateOptions{Name: "photos"}); err != nil {
		t.Fatal(err)
	}
	c := e.Conn(t, "", nil)
	exec(t, c, "SET session_track_system_variables = CONCAT(@@global.session_track_system_variables, ',tx_isolation')")
	take := func(want int64, sql string, args ...any) error {
		t.Helper()
		r, err := c.ExecContext(t.Context(), sql, args...)
		if err != nil {
			return err
		}
		if id, _ := r.LastInsertId(); id != want {
			t.Errorf("%s: got %d, want %d", sql, id, want)
		}
		if got := value(t, c, "SELECT LAST_INSERT_ID()"); got != fmt.Sprint(want) {
			t.Errorf("%s: LAST_INSERT_ID() is %s, want %d", sql, got, want)
		}
		return nil
	}
	const text = "UPDATE sequence SET id = LAST_INSERT_ID(id + 1) WHERE name = 'photos'"
	const prepared = "UPDATE sequence SET id = LAST_INSERT_ID(id + ?) WHERE name = ?"
	for i, err := range []error{take(1, text), take(2, prepared, 1, "photos"), take(3, text)} {
		if err != nil {
			t.Fatal(i, err)
		}
	}
	exec(t, c, text)
	if got := value(t, c, "SELECT ROW_COUNT()"); got != "1" {
		t.Errorf("ROW_COUNT(): got %s, want 1", got)
	}
	if err := server.Kill(); err != nil {
		t.Fatal(err)
	}
	e.impatient()
	var err error
	given := int64(4)
	for ; err == nil && given < 1000; given++ {
		err = take(given+1, text)
	}
	if given < 20 {
		t.Errorf("numbers given without the server: got up to %d, want those of the cache", given)
	}
	if err == nil || !strings.Contains(err.Error(), "photos") || !strings.Contains(err.Error(), "its sequence server is unavailable") {
		t.Errorf("with an empty cache: got %v, want an error that names the sequence and the reason", err)
	}
}
