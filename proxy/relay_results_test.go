package proxy_test

import (
	"encoding/binary"
	"fmt"
	"strings"
	"testing"

	"seqproxy/protocol"
	"seqproxy/test/mysqltest"
)

// resultFramings are the flags that decide how results are told apart.
func resultFramings() []protocol.Capability {
	const always = protocol.LongFlag | protocol.Transactions
	const many = always | protocol.MultiStatements | protocol.MultiResults | protocol.PSMultiResults
	return []protocol.Capability{
		always, always | protocol.MultiResults, always | protocol.PSMultiResults, many,
		many | protocol.DeprecateEOF, many | protocol.DeprecateEOF | protocol.SessionTrack, many&^protocol.PSMultiResults | protocol.DeprecateEOF,
	}
}

// procedures have results of every kind.
var procedures = []string{
	"CREATE TABLE rows_ (id INT PRIMARY KEY)",
	"INSERT INTO rows_ SELECT seq FROM %s",
	"CREATE PROCEDURE none() DO 1",
	"CREATE PROCEDURE one() SELECT 1 AS a",
	"CREATE PROCEDURE empty_() SELECT * FROM rows_ WHERE 0",
	"CREATE PROCEDURE several() BEGIN SELECT 1 AS a; SELECT id FROM rows_ ORDER BY id; SELECT 'x', NULL, ''; END",
	"CREATE PROCEDURE outs(IN i INT, OUT o INT, INOUT io VARCHAR(20)) BEGIN SELECT i AS a; SET o = i + 1; SET io = CONCAT(io, '!'); END",
	"CREATE PROCEDURE only_outs(OUT a INT, OUT b TEXT) BEGIN SET a = 7; SET b = REPEAT('y', 70000); END",
	"CREATE PROCEDURE fails() SELECT nothing FROM rows_",
	"CREATE PROCEDURE fails_later() BEGIN SELECT 1 AS a; INSERT INTO rows_ VALUES (1); SELECT 2; END",
	"CREATE PROCEDURE fails_in_rows() BEGIN SELECT 1 AS a; SELECT id, (SELECT 1 UNION SELECT IF(rows_.id = 3000, 2, 1)) FROM rows_; SELECT 3; END",
	"CREATE PROCEDURE outs_fail(OUT o INT) BEGIN SET o = 5; SELECT 1; SIGNAL SQLSTATE '45000' SET MESSAGE_TEXT = 'mine'; END",
	"CREATE PROCEDURE handled() BEGIN DECLARE CONTINUE HANDLER FOR SQLEXCEPTION SELECT 'caught'; INSERT INTO rows_ VALUES (1); SELECT 'after'; END",
	"CREATE PROCEDURE nested(OUT o INT) BEGIN CALL several(); CALL outs(1, o, @v); CALL one(); END",
	"CREATE PROCEDURE warns() BEGIN SELECT CAST('x' AS SIGNED); SELECT 1; END",
}

// Checklist 15.
// Checklist 16.
// Checklist 17.
func TestProceduresAreAnsweredAsByTheServer(t *testing.T) {
	e := newEnv(t, setup{})
	setup := []string{"USE " + e.Schemas[0]}
	for _, sql := range procedures {
		setup = append(setup, strings.Replace(sql, "%s", e.Servers[0].Numbers(3000), 1))
	}
	e.Servers[0].Exec(t, setup...)
	for _, caps := range resultFramings() {
		t.Run(fmt.Sprintf("%x", uint64(caps)), func(t *testing.T) {
			p := e.Pair(t, 0, wireLogin{Schema: e.Schemas[0], Capabilities: caps})
			p.query("SET @v = 'v'")
			calls := []string{
				"CALL none()", "CALL one()", "CALL empty_()", "CALL several()", "CALL outs(1, @o, @v)", "CALL only_outs(@o, @p)", "CALL fails()",
				"CALL fails_later()", "CALL fails_in_rows()", "CALL outs_fail(@o)", "CALL handled()", "CALL nested(@o)", "CALL warns()", "CALL no_such()", "CALL one(1)",
			}
			for _, sql := range calls {
				p.query(sql)
				p.query("SHOW WARNINGS")
				p.query("SELECT @o, @v, LENGTH(@p), ROW_COUNT()")
			}
			for _, sql := range []string{
				strings.Join(calls, "; "), "SELECT 1; CALL several(); SELECT 2", "CALL fails_in_rows(); SELECT 'never'", "SELECT 1; CALL fails(); SELECT 'never'",
				"CALL none(); CALL none()", "CALL handled(); INSERT INTO rows_ VALUES (1); SELECT 'never'", "SELECT 1;;SELECT 2",
			} {
				p.query(sql)
				p.query("SHOW WARNINGS")
			}
			// Prepared. OUT parameters come as a result set of their own.
			for _, sql := range calls {
				s := p.prepare(sql)
				if s.direct == 0 {
					continue
				}
				for range 2 {
					s.same(protocol.ComStmtExecute, "\x00\x01\x00\x00\x00")
					p.query("SHOW WARNINGS")
				}
				s.same(protocol.ComStmtExecute, "\x01\x01\x00\x00\x00") // with a cursor
				s.same(protocol.ComStmtFetch, "\x02\x00\x00\x00")
				s.same(protocol.ComStmtReset, "")
				s.same(protocol.ComStmtClose, "")
				// Otherwise an error that names the statement's id remains.
				p.query("DROP TABLE IF EXISTS no_such")
			}
			out := p.prepare("CALL outs(?, ?, ?)")
			for range 2 {
				out.execute("\x00", typeLong+typeLong+typeString, "\x05\x00\x00\x00\x00\x00\x00\x00\x02io")
				out.execute("\x00", "", "\x06\x00\x00\x00\x00\x00\x00\x00\x02oi")
				out.execute("\x06", typeLong+typeLong+typeString, "\x05\x00\x00\x00")
			}
			p.prepare("CALL only_outs(?, ?)").execute("\x03", typeLong+typeString, "")
			p.prepare("CALL outs_fail(?)").execute("\x01", typeLong, "")
			p.prepare("CALL nested(?)").execute("\x01", typeLong, "")
			p.prepare("CALL outs(1, ?, @v)").execute("\x01", typeLong, "")
			p.query("SELECT @v")
		})
	}
}

// Checklist 16.
func TestRowsThatEndInAnErrorAreFollowedByNothing(t *testing.T) {
	e := newEnv(t, setup{})
	e.Servers[0].Exec(t, "USE "+e.Schemas[0], "CREATE TABLE t (id INT PRIMARY KEY)", "INSERT INTO t SELECT seq FROM "+e.Servers[0].Numbers(3000))
	for _, caps := range resultFramings() {
		p := e.Pair(t, 0, wireLogin{Schema: e.Schemas[0], Capabilities: caps})
		for _, at := range []int{1, 2, 1500, 3000} {
			failing := fmt.Sprintf("SELECT id, (SELECT 1 UNION SELECT IF(t.id = %d, 2, 1)) FROM t", at)
			p.query(failing)
			p.query("SELECT @@error_count, FOUND_ROWS()")
			if caps.Has(protocol.MultiStatements) {
				p.query("SELECT 'first'; " + failing + "; SELECT 'never'")
				p.inOneWrite("in a pipeline", sent{protocol.ComQuery, failing + "; SELECT 'never'"}, sent{protocol.ComQuery, "SELECT 'next'"}, sent{protocol.ComQuery, failing}, sent{protocol.ComPing, ""})
			}
			s := p.prepare(failing)
			s.same(protocol.ComStmtExecute, "\x00\x01\x00\x00\x00")
			s.same(protocol.ComStmtExecute, "\x01\x01\x00\x00\x00") // the rows go into the cursor's table
			s.same(protocol.ComStmtFetch, "\x05\x00\x00\x00")
			s.same(protocol.ComStmtExecute, "\x00\x01\x00\x00\x00")
		}
	}
}

// Checklist 18.
func TestCursorsMayBeReadInTurns(t *testing.T) {
	e := newEnv(t, setup{})
	e.Servers[0].Exec(t, "USE "+e.Schemas[0], "CREATE TABLE t (id INT PRIMARY KEY, a TEXT)", "INSERT INTO t SELECT seq, REPEAT('x', seq) FROM "+e.Servers[0].Numbers(500))
	const open = "\x01\x01\x00\x00\x00"
	for _, caps := range resultFramings() {
		p := e.Pair(t, 0, wireLogin{Schema: e.Schemas[0], Capabilities: caps})
		fetch := func(s stmt, n uint32) []byte {
			return s.same(protocol.ComStmtFetch, string(binary.LittleEndian.AppendUint32(nil, n)))
		}
		up, down := p.prepare("SELECT * FROM t ORDER BY id"), p.prepare("SELECT id FROM t WHERE id > ? ORDER BY id DESC")
		up.same(protocol.ComStmtExecute, open)
		down.same(protocol.ComStmtExecute, open+binding("\x00", typeLong, "\x64\x00\x00\x00"))
		for i := range 8 {
			fetch(up, 30)
			p.query("SELECT 'in between'")
			fetch(down, 70)
			if i == 3 {
				p.query("UPDATE t SET a = a WHERE id = 1")
				p.prepare("SELECT ?").execute("\x00", typeLong, "\x05\x00\x00\x00")
			}
		}
		fetch(up, 0)
		fetch(up, 1<<31)
		// After the last row.
		fetch(up, 1)
		// Again, while the cursor is open.
		down.same(protocol.ComStmtExecute, open+binding("\x00", "", "\xc8\x00\x00\x00"))
		if e.Servers[0].IsMariaDB() {
			// And without a cursor. MySQL 9 then sends an OK in place of the rows, which no client
			// understands.
			down.same(protocol.ComStmtExecute, "\x00\x01\x00\x00\x00"+binding("\x00", "", "\xf0\x01\x00\x00"))
		}
		fetch(down, 1)
		up.same(protocol.ComStmtExecute, open)
		p.query("BEGIN")
		fetch(up, 2)
		p.query("COMMIT")
		fetch(up, 2)
		p.query("DROP TABLE IF EXISTS no_such")
		up.same(protocol.ComStmtLongData, "\x00\x00abc") // some servers close the cursor by this
		fetch(up, 2)
		up.same(protocol.ComStmtReset, "")
		fetch(up, 2)
		up.same(protocol.ComStmtExecute, open)
		up.same(protocol.ComStmtClose, "")
		// A statement without rows has no cursor.
		for _, sql := range []string{"DO 1", "UPDATE t SET a = a WHERE id = 2", "SHOW TABLES", "SELECT 1 INTO @x", "SELECT * FROM t WHERE 0", "EXPLAIN SELECT * FROM t", "CHECK TABLE t", "SELECT 1 FOR UPDATE"} {
			if strings.HasPrefix(sql, "EXPLAIN") && !e.Servers[0].IsMariaDB() {
				continue // a cursor crashes this server
			}
			s := p.prepare(sql)
			// For update and scrollable: no server has these.
			kinds := []string{open, "\x02\x01\x00\x00\x00", "\x04\x01\x00\x00\x00", "\x07\x01\x00\x00\x00"}
			if !e.Servers[0].IsMariaDB() {
				kinds = kinds[:1] // other flags crash the server, see above
			}
			for _, kind := range kinds {
				s.same(protocol.ComStmtExecute, kind)
				fetch(s, 5)
			}
		}
	}
}

// Checklist 22.
func TestFieldListsAreTheServers(t *testing.T) {
	e := newEnv(t, setup{})
	e.Servers[0].Exec(t, "USE "+e.Schemas[0],
		"CREATE TABLE t (id INT PRIMARY KEY AUTO_INCREMENT, a VARCHAR(9) DEFAULT 'x', b DECIMAL(5,2) NOT NULL DEFAULT 1.5, c DATETIME DEFAULT CURRENT_TIMESTAMP, d INT DEFAULT NULL, e ENUM('p','q') DEFAULT 'q', f TEXT, g BIT(3) DEFAULT b'101')",
		"CREATE VIEW v AS SELECT id, a, 5 AS five FROM t", "CREATE TABLE `odd é` (`ab` INT, `aé` INT DEFAULT 3)")
	for _, caps := range append(resultFramings(), allFraming) {
		p := e.Pair(t, 0, wireLogin{Schema: e.Schemas[0], Capabilities: caps})
		p.query("CREATE TEMPORARY TABLE temporary_ (x INT DEFAULT 4)")
		for _, arg := range []string{
			"t\x00", "t\x00%", "t\x00a%", "t\x00_", "t\x00zz%", "t\x00\x00", "v\x00", "v\x00f%", "odd é\x00a_", "temporary_\x00", "no_such\x00", "\x00", "mysql.user\x00", "`t`\x00", "t",
			"t\x00" + strings.Repeat("%", 400), strings.Repeat("t", 70) + "\x00",
		} {
			p.same(protocol.ComFieldList, arg)
		}
		p.same(protocol.ComInitDB, "mysql")
		p.same(protocol.ComFieldList, "t\x00")
		p.query("SHOW WARNINGS")
	}
	p := e.Pair(t, 0, wireLogin{}) // without a schema
	p.same(protocol.ComFieldList, "t\x00")
}

// Checklist 19.
func TestAFileThatIsRefusedOrPreparedOrFollowedIsTheServersToAnswer(t *testing.T) {
	server := mysqltest.Start(t, "--local-infile=0")
	e := newEnv(t, setup{Servers: []*mysqltest.Server{server}})
	server.Exec(t, "USE "+e.Schemas[0], "CREATE TABLE t (a INT, b VARCHAR(20))")
	const load = "LOAD DATA LOCAL INFILE 'x' INTO TABLE t"
	for _, caps := range []protocol.Capability{allFraming, allFraming &^ (protocol.DeprecateEOF | protocol.SessionTrack)} {
		p := e.Pair(t, 0, wireLogin{Schema: e.Schemas[0], Capabilities: caps})
		p.query(load) // the server refuses the file
		p.query("SELECT 1; " + load + "; SELECT 2")
		p.query("SHOW WARNINGS")
		p.prepare(load)
		server.Exec(t, "SET GLOBAL local_infile = 1")
		s := p.prepare(load)
		for i, w := range []*wire{p.Direct, p.Proxy} { // where it can be prepared
			if s.direct == 0 {
				break
			}
			w.doFile(protocol.ComStmtExecute, string(binary.LittleEndian.AppendUint32(nil, []uint32{s.direct, s.proxy}[i]))+"\x00\x01\x00\x00\x00", file("1\ta\n"))
		}
		// The bytes that the client sends behind the file in the same write are the next command.
		var answers [2][]byte
		for i, w := range []*wire{p.Direct, p.Proxy} {
			w.query("TRUNCATE TABLE t")
			w.send(packet(command(protocol.ComQuery, load)))
			request, err := w.raw()
			if err != nil {
				t.Fatal(err)
			}
			answers[i] = append(answers[i], request...)
			w.send(append(numberedFrom(file("1\ta\n", "2\tb\n"), 2), packet(command(protocol.ComQuery, "SELECT COUNT(*), @@warning_count FROM t; SELECT 5"))...))
			answers[i] = append(answers[i], w.receive(protocol.ShapeOne, nil)...)
			answers[i] = append(answers[i], w.receive(protocol.ShapeResult, nil)...)
			w.ping("a file and a statement in one write")
		}
		compare(t, "a file and a statement in one write", answers[1], answers[0])
		server.Exec(t, "SET GLOBAL local_infile = 0")
		p.Proxy.quit()
	}
	// A client that goes away in the middle of its file leaves no session.
	server.Exec(t, "SET GLOBAL local_infile = 1")
	w := e.Wire(t, e.Addr(), wireLogin{Schema: e.Schemas[0]})
	w.query("TRUNCATE TABLE t")
	w.send(packet(command(protocol.ComQuery, load)))
	if _, err := w.raw(); err != nil {
		t.Fatal(err)
	}
	half := numberedFrom(file("1\ta\n"), 2)
	w.send(half[:len(half)-protocol.HeaderSize])
	w.Close()
	e.awaitSessions(t, 0)
}
