package proxy_test

import (
	"encoding/binary"
	"fmt"
	"strings"
	"testing"

	"seqproxy/protocol"
)

// relayedStatements is a script of statements of many kinds, all of which the server answers. In a
// schema that is empty at first, every run has the same results.
var relayedStatements = []string{
	"SELECT 1",
	"SELECT 'a' AS `x y`, NULL, 1.5, -3, 0x41, DATE'2020-01-02', TIMESTAMP'2020-01-02 03:04:05.678'",
	"DO 1",
	"CREATE TABLE t (id INT AUTO_INCREMENT PRIMARY KEY, a VARCHAR(50) NOT NULL DEFAULT 'x', b DECIMAL(10,3), c BLOB, d DATETIME(3), e ENUM('a','b'), f FLOAT, g BIT(5), h JSON, UNIQUE (a))",
	"INSERT INTO t (a, b, c, d, e, f, g) VALUES ('one', 1.5, 'blob', '2020-01-02 03:04:05', 'a', 1.25, b'101')",
	"INSERT INTO t (a) VALUES ('two'), ('three'), ('four')",
	"SELECT LAST_INSERT_ID()",
	"SELECT LAST_INSERT_ID(77)",
	"SELECT @@last_insert_id, @@identity",
	"SELECT * FROM t",
	"SELECT * FROM t WHERE 0",
	"SELECT ROW_COUNT()",
	"SELECT SQL_CALC_FOUND_ROWS a FROM t LIMIT 1",
	"SELECT FOUND_ROWS()",
	"UPDATE t SET a = a WHERE id = 1",
	"UPDATE t SET b = 2.5",
	"UPDATE t SET b = 2.5",
	"INSERT INTO t (a) VALUES ('one')",
	"SHOW WARNINGS",
	"SHOW ERRORS",
	"SELECT @@error_count, @@warning_count",
	"INSERT IGNORE INTO t (a) VALUES ('one'), ('five')",
	"SHOW WARNINGS",
	"SHOW COUNT(*) WARNINGS",
	"INSERT INTO t (a) VALUES ('one') ON DUPLICATE KEY UPDATE b = 9",
	"REPLACE INTO t (a, b) VALUES ('one', 3)",
	"DELETE FROM t WHERE a = 'five'",
	"SELECT 1 +",
	"SELECT * FROM no_such_table",
	"SELECT no_such_column FROM t",
	"SELECT 1/0",
	"SHOW WARNINGS",
	"SET @x = 5",
	"SELECT @x, @y",
	"SET SESSION sql_mode = 'ANSI_QUOTES,NO_BACKSLASH_ESCAPES'",
	`SELECT "a", 'b\' FROM t LIMIT 1`,
	"SET SESSION sql_mode = DEFAULT",
	`SELECT "a", 'b\'' FROM t LIMIT 1`,
	"SET NAMES latin1",
	"SELECT 'ä', @@character_set_client, @@collation_connection",
	"SET NAMES utf8mb4",
	"SET time_zone = '+03:00'",
	"SELECT FROM_UNIXTIME(1), @@time_zone",
	"SET autocommit = 0",
	"INSERT INTO t (a) VALUES ('in transaction')",
	"ROLLBACK",
	"SET autocommit = 1",
	"BEGIN",
	"INSERT INTO t (a) VALUES ('in transaction')",
	"SAVEPOINT s",
	"DELETE FROM t",
	"ROLLBACK TO SAVEPOINT s",
	"COMMIT",
	"START TRANSACTION READ ONLY",
	"DELETE FROM t",
	"COMMIT AND CHAIN",
	"ROLLBACK AND NO CHAIN",
	"SELECT COUNT(*) FROM t",
	"EXPLAIN SELECT * FROM t WHERE id = 1",
	"DESCRIBE t",
	"SHOW CREATE TABLE t",
	"SHOW TABLES",
	"SHOW VARIABLES LIKE 'sql_mode'",
	"ALTER TABLE t ADD COLUMN z INT",
	"CREATE VIEW v AS SELECT id, a FROM t",
	"SELECT * FROM v ORDER BY id",
	"CREATE TEMPORARY TABLE tt (a INT)",
	"INSERT INTO tt VALUES (1), (2)",
	"SELECT * FROM tt",
	"CREATE PROCEDURE p(OUT o INT) BEGIN SELECT 1 AS a; SELECT 2 AS b, 3 AS c; SET o = 7; END",
	"CALL p(@o)",
	"SELECT @o",
	"CREATE PROCEDURE q() BEGIN SELECT 1; SELECT * FROM no_such; END",
	"CALL q()",
	"CREATE FUNCTION f(x INT) RETURNS INT DETERMINISTIC RETURN x + 1",
	"SELECT f(4)",
	"PREPARE s FROM 'SELECT ? + 1'",
	"EXECUTE s USING @x",
	"DEALLOCATE PREPARE s",
	"HANDLER t OPEN",
	"HANDLER t READ FIRST",
	"HANDLER t CLOSE",
	"LOCK TABLES t WRITE",
	"SELECT * FROM v",
	"UNLOCK TABLES",
	"SELECT GET_LOCK('seqproxy test', 0)",
	"SELECT RELEASE_LOCK('seqproxy test')",
	"SELECT REPEAT('x', 300000)",
	"SELECT a.id, b.id FROM t a, t b, t c ORDER BY 1, 2, c.id",
	"SELECT DATABASE() IS NULL, USER() = CURRENT_USER()",
	"EXECUTE IMMEDIATE 'SELECT 8'",
	"BEGIN NOT ATOMIC SELECT 1; SELECT 2; END",
	"SIGNAL SQLSTATE '45000' SET MESSAGE_TEXT = 'mine', MYSQL_ERRNO = 5000",
	"GET DIAGNOSTICS CONDITION 1 @m = MESSAGE_TEXT",
	"SELECT @m",
	"/* comment */ SELECT /*! 2 */ -- more\n",
	"SELECT 1; SELECT 2",
	"INSERT INTO t (a) VALUES ('m'); SELECT LAST_INSERT_ID(); UPDATE t SET b = 3; SELECT 1",
	"SELECT 1; SELECT nothing; SELECT 3",
	"SELECT 1 FROM t; DELETE FROM t WHERE 0;",
	"CHECK TABLE t",
	"ANALYZE TABLE t",
	"OPTIMIZE TABLE t",
	"TRUNCATE TABLE t",
	"",
	";",
	"   ",
	"-- nothing",
	"SET TRANSACTION ISOLATION LEVEL READ COMMITTED",
	"SELECT 1",
	"XA START 'x'",
	"XA END 'x'",
	"XA ROLLBACK 'x'",
	"SELECT _binary'\xff\xfe', 'not utf8 \xff'",
	"SELECT * FROM (SELECT 1 UNION SELECT 2) u WHERE (SELECT 1) ORDER BY 1",
	"WITH RECURSIVE n AS (SELECT 1 AS i UNION ALL SELECT i + 1 FROM n WHERE i < 500) SELECT i, REPEAT('y', i) FROM n",
	"SELECT 1 INTO @v",
	"SELECT @v",
	"SHOW COLLATION LIKE 'utf8mb4_general%'",
	"KILL QUERY 0",
	"FLUSH LOCAL TABLES t",
	"USE no_such_schema",
	"DROP FUNCTION f",
	"DROP TABLE t",
	"DROP TABLE IF EXISTS t",
	"SHOW WARNINGS",
}

// framings returns every combination of the flags that change what bytes mean.
func framings() (all []protocol.Capability) {
	const always = protocol.LongFlag | protocol.Transactions
	flags := []protocol.Capability{
		protocol.DeprecateEOF, protocol.SessionTrack, protocol.FoundRows,
		protocol.MultiStatements | protocol.MultiResults | protocol.PSMultiResults,
	}
	for set := range 1 << len(flags) {
		c := always
		for i, f := range flags {
			if set&(1<<i) != 0 {
				c |= f
			}
		}
		all = append(all, c)
	}
	return append(all, allFraming|protocol.IgnoreSpace, always|protocol.MultiResults, always|protocol.NoSchema|protocol.Interactive)
}

// Checklist 11.
// Checklist 15.
// Checklist 16.
// Checklist 17.
func TestEveryByteOfAnAnswerIsTheServersWhateverWasAgreedOn(t *testing.T) {
	e := newEnv(t, setup{})
	server, schema := e.Servers[0], e.Schemas[0]
	hello, _ := e.Shards.Routes().Greeting()
	its := hello.Capabilities & (protocol.LongPassword | protocol.Extended | protocol.QueryAttributes | protocol.OptionalMetadata)
	for _, caps := range append(framings(), allFraming|its) {
		t.Run(fmt.Sprintf("%010x", uint64(caps)), func(t *testing.T) {
			run := func(addr string) (answers [][]byte) {
				server.Exec(t, "DROP DATABASE "+schema, "CREATE DATABASE "+schema)
				w := e.Wire(t, addr, wireLogin{Schema: schema, Capabilities: caps})
				for _, sql := range relayedStatements {
					answers = append(answers, w.query(sql))
				}
				w.send(packet(command(protocol.ComQuit, "")))
				w.ended()
				return answers
			}
			want, got := run(server.Addr()), run(e.Addr())
			for i, sql := range relayedStatements {
				compare(t, sql, got[i], want[i])
			}
		})
	}
}

func TestTheScriptShowsTheSameInTheCommandLineClient(t *testing.T) {
	e := newEnv(t, setup{})
	server, schema := e.Servers[0], e.Schemas[0]
	var script strings.Builder
	script.WriteString("delimiter $$\n")
	for _, sql := range relayedStatements {
		if strings.TrimSpace(sql) != "" && strings.IndexByte(sql, 0xff) < 0 {
			script.WriteString(sql + "\n$$\n")
		}
	}
	run := func(addr string) string {
		server.Exec(t, "DROP DATABASE "+schema, "CREATE DATABASE "+schema)
		return withoutTimes(e.CLI(t, addr, schema, script.String()))
	}
	want, got := run(server.Addr()), run(e.Addr())
	compareTexts(t, got, want)
	if n := strings.Count(want, "ERROR "); n < 10 || !strings.Contains(want, "rows in set") {
		t.Errorf("the direct script has %d errors, want more:\n%.300s", n, want)
	}
}

// withoutTimes blanks times such as "(0.001 sec)", which differ from run to run.
func withoutTimes(s string) string {
	lines := strings.Split(s, "\n")
	for i, line := range lines {
		if at := strings.LastIndex(line, "("); at >= 0 && strings.HasSuffix(line, " sec)") {
			lines[i] = line[:at] + "(time)"
		}
	}
	return strings.Join(lines, "\n")
}

func compareTexts(t testing.TB, got, want string) {
	t.Helper()
	g, w := strings.Split(got, "\n"), strings.Split(want, "\n")
	for i := range max(len(g), len(w)) {
		if i >= len(g) || i >= len(w) || g[i] != w[i] {
			from := max(0, i-5)
			t.Errorf("outputs differ at line %d:\nproxy:\n%s\ndirect:\n%s", i+1,
				strings.Join(g[from:min(len(g), i+6)], "\n"), strings.Join(w[from:min(len(w), i+6)], "\n"))
			return
		}
	}
}

// A row of text begins with the length of its first value, or with the byte of NULL. So a row may
// begin with each byte that marks another kind of packet.
//
// Checklist 15.
// Checklist 16.
func TestARowMayBeginLikeAnyOtherPacket(t *testing.T) {
	e := newEnv(t, setup{})
	e.Servers[0].Exec(t, "USE "+e.Schemas[0], "CREATE TABLE t (a LONGTEXT, n INT)",
		"INSERT INTO t VALUES ('', 1), (NULL, 2), (REPEAT('x', 250), 3), (REPEAT('x', 251), 4), (REPEAT('x', 65535), 5), (REPEAT('x', 65536), 6), ('', 7), (NULL, 8)")
	for name, caps := range endings {
		p := e.Pair(t, 0, wireLogin{Schema: e.Schemas[0], Capabilities: caps})
		for _, sql := range []string{
			"SELECT a, n FROM t ORDER BY n", "SELECT a FROM t ORDER BY n", "SELECT ''", "SELECT NULL", "SELECT '', '', '', '', '', ''", "SELECT NULL, NULL",
			"SELECT a FROM t ORDER BY n; SELECT NULL; SELECT ''",
		} {
			if got := p.query(sql); got[4] == 0xff && caps.Has(protocol.MultiStatements) {
				t.Errorf("%s, %s: %v", name, sql, serverError(t, got))
			}
		}
		for _, sql := range []string{"SELECT ''", "SELECT NULL", "SELECT a FROM t WHERE n IN (1, 2, 7, 8)"} {
			p.prepare(sql).same(protocol.ComStmtExecute, execute)
		}
	}
}

// Commands other than queries.

// Checklist 14.
// Checklist 20.
// Checklist 22.
// Checklist 24.
func TestEveryCommandIsAnsweredAsByTheServer(t *testing.T) {
	e := newEnv(t, setup{})
	schema := e.Schemas[0]
	e.Servers[0].Exec(t, "USE "+schema, "CREATE TABLE t (id INT, a VARCHAR(9) DEFAULT 'x', b BLOB)")
	for _, caps := range []protocol.Capability{allFraming, protocol.LongFlag | protocol.Transactions | protocol.MultiResults} {
		p := e.Pair(t, 0, wireLogin{Schema: schema, Capabilities: caps})
		for _, c := range []struct {
			cmd protocol.Command
			arg string
		}{
			{protocol.ComPing, ""},
			{protocol.ComInitDB, schema},
			{protocol.ComInitDB, "no_such_schema"},
			{protocol.ComInitDB, ""},
			{protocol.ComQuery, "SELECT DATABASE() IS NULL"},
			{protocol.ComFieldList, "t\x00"},
			{protocol.ComFieldList, "t\x00a%"},
			{protocol.ComFieldList, "no_such_table\x00"},
			{protocol.ComSetOption, "\x01\x00"},
			{protocol.ComSetOption, "\x00\x00"},
			{protocol.ComSetOption, "\x07\x00"},
			{protocol.ComSetOption, ""},
			{protocol.ComRefresh, "\x01"},
			{protocol.ComCreateDB, schema},
			{protocol.ComDropDB, "no_such_schema"},
			{protocol.ComDebug, ""},
			{protocol.ComProcessKill, "\x00\x00\x00\x00"},
			{protocol.ComResetConn, ""},
			{protocol.ComQuery, "SELECT DATABASE() IS NULL"},
			{protocol.ComStmtReset, "\xf0\x00\x00\x00"},
			{protocol.ComStmtClose, "\xf0\x00\x00\x00"},
			{protocol.ComStmtLongData, "\xf0\x00\x00\x00\x00\x00abc"},
			{protocol.ComStmtFetch, "\xf0\x00\x00\x00\x01\x00\x00\x00"},
			{protocol.ComStmtExecute, "\xf0\x00\x00\x00\x00\x01\x00\x00\x00"},
			{protocol.ComStmtExecute, "\x01"},
			{protocol.ComStmtPrepare, "SELECT 1 +"},
			{protocol.ComStmtPrepare, ""},
			{protocol.Command(mysqlComSleep), ""},
			{protocol.Command(mysqlComConnect), ""},
			{protocol.Command(mysqlComTime), ""},
			{protocol.Command(mysqlComDelayedInsert), ""},
			{protocol.Command(mysqlComConnectOut), ""},
			{protocol.Command(mysqlComDaemon), ""},
			{0x60, ""},
			{0x7f, "argument"},
			{protocol.ComQuery, "SELECT 1"},
		} {
			p.same(c.cmd, c.arg)
		}
	}
}

// Commands that servers use among themselves.
const (
	mysqlComSleep         = 0x00
	mysqlComConnect       = 0x0b
	mysqlComTime          = 0x0f
	mysqlComDelayedInsert = 0x10
	mysqlComConnectOut    = 0x14
	mysqlComDaemon        = 0x1d
)

// Checklist 14.
func TestCommandsWithFiguresThatChangeHaveTheServersForm(t *testing.T) {
	e := newEnv(t, setup{})
	p := e.Pair(t, 0, wireLogin{})
	for _, w := range []*wire{p.Direct, p.Proxy} {
		if got := w.do(protocol.ComStatistics, ""); !strings.HasPrefix(string(got[4:]), "Uptime: ") {
			t.Errorf("COM_STATISTICS: got %q", got)
		}
		got := split(w.do(protocol.ComProcessInfo, ""))
		if failed := got[0][0] == 0xff; failed == e.Servers[0].IsMariaDB() {
			// MySQL 9 has removed it.
			t.Errorf("COM_PROCESS_INFO: got %q", got[0])
		}
	}
}

// MySQL answers malformed commands that otherwise have no answer; MariaDB does not.
//
// Checklist 13.
func TestAMalformedCommandWithoutAnAnswerIsNoneToTheServerEither(t *testing.T) {
	e := newEnv(t, setup{})
	p := e.Pair(t, 0, wireLogin{Schema: e.Schemas[0]})
	s := p.prepare("SELECT ?, ?")
	// A server reads a four-byte id even from a shorter packet, with what follows in its memory. So
	// the one byte is that of no statement.
	for _, argument := range []string{"", "\x63", "id\x00", "id", "id\x01"} {
		for _, cmd := range []protocol.Command{protocol.ComStmtClose, protocol.ComStmtLongData} {
			if cmd == protocol.ComStmtClose && strings.HasPrefix(argument, "id") {
				continue
			}
			var got [2][]byte
			for i, w := range []*wire{p.Proxy, p.Direct} {
				id := binary.LittleEndian.AppendUint32(nil, []uint32{s.proxy, s.direct}[i])
				w.send(packet(command(cmd, strings.Replace(argument, "id", string(id), 1))))
				w.send(packet(command(protocol.ComPing, "")))
				for {
					b, err := w.raw()
					if err != nil {
						t.Fatal(err)
					}
					if b[4] == 0 {
						break // answer to the ping, which may count the server's own error as a warning
					}
					got[i] = append(got[i], b...)
				}
			}
			compare(t, fmt.Sprintf("command %d %q and a ping", cmd, argument), got[0], got[1])
			p.query("SELECT 1")
		}
	}
	s.execute("\x00", typeString+typeString, "\x01a\x01b")
}

// Checklist 25.
func TestAnEmptyCommandPacketDoesNotEndTheSession(t *testing.T) {
	e := newEnv(t, setup{})
	p := e.Pair(t, 0, wireLogin{})
	var got [2][]byte
	for i, w := range []*wire{p.Proxy, p.Direct} {
		w.send(packet(nil))
		got[i] = w.receive(protocol.ShapeOne, nil)
		w.ping("an empty packet")
	}
	compare(t, "empty packet", got[0], got[1])
}
