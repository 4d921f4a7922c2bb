package proxy_test

import (
	"context"
	"database/sql"
	"encoding/binary"
	"fmt"
	"strings"
	"testing"

	"github.com/go-sql-driver/mysql"

	"seqproxy/protocol"
	"seqproxy/proxy"
	"seqproxy/sequence"
	"seqproxy/test/mysqltest"
)

// statementLog is the general log of a server, in a table.
type statementLog struct {
	t  testing.TB
	db *sql.DB
}

// logStatements turns on the general log of a server that only this test uses.
func logStatements(t testing.TB, server *mysqltest.Server) *statementLog {
	t.Helper()
	server.Exec(t, "SET GLOBAL log_output = 'TABLE'", "SET GLOBAL general_log = 1")
	return &statementLog{t, server.DB(t, "")}
}

// since empties the log and returns its statements by a user's connections to schema that contain
// word.
func (l *statementLog) since(word string) []string {
	l.t.Helper()
	rows, err := l.db.Query("SELECT CONCAT(command_type, ': ', argument) FROM mysql.general_log WHERE argument LIKE CONCAT('%', ?, '%') AND argument NOT LIKE '%general_log%'", word)
	if err != nil {
		l.t.Fatal(err)
	}
	defer rows.Close()
	var all []string
	for rows.Next() {
		var s string
		if err := rows.Scan(&s); err != nil {
			l.t.Fatal(err)
		}
		all = append(all, s)
	}
	if err := rows.Err(); err != nil {
		l.t.Fatal(err)
	}
	if _, err := l.db.Exec("TRUNCATE mysql.general_log"); err != nil {
		l.t.Fatal(err)
	}
	return all
}

// Checklist 29.
func TestAPlaceWhereNoNumberCanBeGivenIsRefusedAndNeverSentOn(t *testing.T) {
	o := newOracle(t, ownServer(t, setup{}), photosTables...)
	o.fresh(t)
	log := logStatements(t, o.Servers[0])
	c := o.Conn(t, o.Schemas[0], multi)
	w := o.Wire(t, o.Addr(), wireLogin{Schema: o.Schemas[0]})
	before := o.nextNumber(t, "photos")
	for _, test := range []struct{ form, text string }{
		{"ORDER BY", "SELECT NEXTVAL('photos'), id FROM photos ORDER BY 2, 1"},
		{"ORDER BY", "SELECT id, NEXTVAL('photos') AS n FROM photos ORDER BY ABS(`N`)"},
		{"ORDER BY", "SELECT NEXTVAL('photos') FROM photos ORDER BY `nextval('photos')`"},
		{"ORDER BY", "SELECT *, NEXTVAL('photos') FROM photos ORDER BY 3"},
		{"GROUP BY", "SELECT NEXTVAL('photos') AS n FROM photos GROUP BY n"},
		{"HAVING", "SELECT id, NEXTVAL('photos') AS n FROM photos HAVING n > 5"},
		{"SELECT ... FROM", "SELECT id FROM photos ORDER BY NEXTVAL('photos')"},
		{"SELECT ... FROM", "SELECT NEXTVAL('photos') + 1 FROM photos"},
		{"SELECT ... FROM", "(SELECT NEXTVAL('photos') FROM photos)"},
		{"two *", "SELECT photos.*, NEXTVAL('photos'), photos.* FROM photos"},
		{"LAST_INSERT_ID(expression)", "SELECT NEXTVAL('photos'), LAST_INSERT_ID(7) FROM photos"},
		{"ROLLUP", "SELECT NEXTVAL('photos') GROUP BY 1 WITH ROLLUP"},
		{"SELECT ... FROM", "SELECT id FROM photos WHERE id = NEXTVAL('photos')"},
		{"SELECT ... FROM", "SELECT * FROM (SELECT NEXTVAL('photos') AS a) d"},
		{"SELECT ... FROM", "SELECT (SELECT NEXTVAL('photos')) FROM photos"},
		{"UNION", "SELECT NEXTVAL('photos') FROM photos UNION SELECT 1"},
		{"DISTINCT", "SELECT DISTINCT NEXTVAL('photos') FROM photos"},
		{"INTO", "SELECT NEXTVAL('photos') FROM photos INTO @x"},
		{"INSERT ... SELECT", "INSERT INTO photos (id) SELECT DISTINCT NEXTVAL('photos') + id FROM auto"},
		{"IGNORE", "INSERT IGNORE INTO photos (id) SELECT NEXTVAL('photos') FROM auto"},
		{"IGNORE", "INSERT IGNORE INTO photos (id) VALUES (1), (2) ON DUPLICATE KEY UPDATE n = NEXTVAL('photos')"},
		{"functions", "INSERT INTO photos (id) SELECT 1 UNION ALL SELECT 2 ON DUPLICATE KEY UPDATE n = ABS(NEXTVAL('photos'))"},
		{"beside one for the whole statement", "INSERT INTO photos (id) SELECT NEXTVAL('photos') ON DUPLICATE KEY UPDATE n = NEXTVAL('photos')"},
		{"RETURNING", "INSERT INTO photos (id) VALUES (7), (8) RETURNING 1 + NEXTVAL('photos')"},
		{"IGNORE", "UPDATE IGNORE photos SET n = NEXTVAL('photos')"},
		{"UPDATE", "UPDATE photos SET n = (SELECT NEXTVAL('photos'))"},
		{"DELETE", "DELETE FROM photos WHERE id = NEXTVAL('photos')"},
		{"WITH", "WITH x AS (SELECT NEXTVAL('photos') AS n) SELECT n FROM x, photos"},
		{"WITH", "WITH RECURSIVE x AS (SELECT NEXTVAL('photos') AS n UNION ALL SELECT n FROM x WHERE n < 5) SELECT n FROM x"},
		{"WITH", "WITH x AS (SELECT NEXTVAL('photos') AS n) SELECT (SELECT n FROM x), (SELECT n FROM x)"},
		{"VALUES", "(VALUES ROW(NEXTVAL('photos')))"},
		{"SET STATEMENT", "SET STATEMENT lock_wait_timeout = 9 FOR SELECT NEXTVAL('photos')"},
		{"ANALYZE", "EXPLAIN ANALYZE SELECT NEXTVAL('photos')"},
		{"ANALYZE", "ANALYZE UPDATE photos SET id = NEXTVAL('photos')"},
		{"multi-statement", "SELECT 1; SELECT NEXTVAL('photos') FROM photos"},
		{"multi-statement", "SELECT NEXTVAL('photos'); SELECT NEXTVAL('photos'), LAST_INSERT_ID()"},
		{"multi-statement", "SET NAMES latin1; INSERT INTO photos (id, title) VALUES (NEXTVAL('photos'), 'ä')"},
		{"PREPARE", "PREPARE s FROM 'SELECT 1' + NEXTVAL('photos')"},
		{"EXECUTE IMMEDIATE", "EXECUTE IMMEDIATE CONCAT('SELECT ', NEXTVAL('photos'))"},
		{"expression", "SELECT NEXTVAL(CONCAT('photo', 's'))"},
		{"expression", "SELECT NEXTVAL()"},
		{"expression for the count", "SELECT NEXTVAL('photos', 5 + 5)"},
		{"variable", "SELECT NEXTVAL(@x)"},
	} {
		for _, words := range []string{test.text, strings.ToLower(test.text)} {
			_, err := c.ExecContext(context.Background(), words)
			form := test.form
			if form == "multi-statement" {
				form = "" // the error names the form of the single statement
			}
			checkError(t, words, err, 1235, "NEXTVAL", form)
			if e, ok := err.(*mysql.MySQLError); ok && string(e.SQLState[:]) != "42000" {
				t.Errorf("%s: got state %s, want 42000", words, e.SQLState)
			}
		}
		if test.form != "multi-statement" { // no server prepares these
			if e := serverError(t, w.do(protocol.ComStmtPrepare, test.text)); e.Code != 1235 {
				t.Errorf("prepare %s: got %v, want 1235", test.text, e)
			}
		}
	}
	// With a parameter these can only be prepared.
	for _, text := range []string{"SELECT NEXTVAL(?)", "SELECT NEXTVAL('photos', ?)", "SELECT NEXT ? VALUES FROM photos"} {
		if e := serverError(t, w.query(text)); e.Code != 1235 || !strings.Contains(e.Message, "parameter") {
			t.Errorf("%s: got %v, want 1235 naming the parameter", text, e)
		}
	}
	if reached := log.since("nextval"); len(reached) > 0 {
		t.Errorf("statements that reached the server: %q", reached)
	}
	if after := o.nextNumber(t, "photos"); after != before {
		t.Errorf("%d numbers were taken for refused statements, want 0", after-before)
	}
	// The session goes on, and SHOW WARNINGS has the error.
	wantError(t, c, 1235, "SELECT NEXTVAL('photos', 'a')")
	var level, message string
	var code int
	if err := c.QueryRowContext(t.Context(), "SHOW WARNINGS").Scan(&level, &code, &message); err != nil || level != "Error" || code != 1235 || !strings.Contains(message, "NEXTVAL") {
		t.Errorf("SHOW WARNINGS after a refused statement: got %s %d %q, %v", level, code, message, err)
	}
	if got := value(t, c, "SELECT ROW_COUNT()"); got != "-1" {
		t.Errorf("ROW_COUNT() after a refused statement: got %s, want -1", got)
	}
}

func TestTextThatOnlyLooksLikeANumberIsNeverSpliced(t *testing.T) {
	o := newOracle(t, setup{}, append([]string{"CREATE FUNCTION nextvalue(s VARCHAR(20)) RETURNS INT RETURN 7"}, photosTables...)...)
	before := o.nextNumber(t, "photos")
	o.run(t, []script{{"as it is", []string{
		"SELECT 'NEXTVAL(''photos'')', \"NEXTVAL('photos')\", 'it''s NEXTVAL(photos)'",
		"SELECT 1 /* NEXTVAL('photos') */ -- NEXTVAL('photos')",
		"SELECT 1 # NEXTVAL('photos')",
		"SELECT 1 AS `NEXTVAL('photos')`",
		"SELECT nextvalue('photos')",
		"SELECT 'a' AS nextval",
		"CREATE VIEW v AS SELECT NEXTVAL(photos)",
		"CREATE PROCEDURE p() SELECT 'NEXTVAL(''photos'')'",
		"CREATE PROCEDURE q() BEGIN SELECT NEXTVAL(photos); END",
		"CREATE FUNCTION f() RETURNS INT RETURN NEXTVAL(photos)",
		"CREATE TRIGGER t BEFORE INSERT ON photos FOR EACH ROW SET NEW.n = NEXTVAL(photos)",
		"DROP TRIGGER t",
		"CREATE EVENT e ON SCHEDULE EVERY 1 DAY DO INSERT INTO photos (id) VALUES (NEXTVAL(photos))",
		"SHOW CREATE PROCEDURE q",
		"SELECT nowhere.NEXTVAL('photos')",
		"SELECT `nextval`('photos')",
		"PREPARE s FROM 'SELECT ''NEXTVAL'''",
		"CREATE TABLE d (nextval INT DEFAULT 3, `NEXTVAL('photos')` INT)",
		"INSERT INTO d (nextval) VALUES (4)",
		"SELECT d.nextval, nextval FROM d WHERE nextval = 4",
	}}}, "packets with EOF", "go-sql-driver")
	if after := o.nextNumber(t, "photos"); after != before {
		t.Errorf("%d numbers were taken, want 0", after-before)
	}
}

func TestTheRestOfAStatementReachesTheServerByteForByte(t *testing.T) {
	o := newOracle(t, ownServer(t, setup{}), photosTables...)
	o.fresh(t)
	log := logStatements(t, o.Servers[0])
	logged := func(s string) string { return s }
	if o.Servers[0].IsMariaDB() { // MySQL writes bytes that are no utf8 in another way
		logged = strings.NewReplacer("\xe4", "\\xE4", "\xff", "\\xFF", "\xfe", "\\xFE").Replace
	}
	w := o.Wire(t, o.Addr(), wireLogin{Schema: o.Schemas[0], Collation: 8}) // latin1
	first := o.nextNumber(t, "photos")
	const odd = " /* \xe4 ? ' */\t'\xff\\'\x01', \"a\"\"'\", 0x41,\r\n"
	w.query("INSERT  INTO photos (title,id)VALUES\n( CONCAT(" + odd + "''), NEXTVAL( 'photos' ) ),(CONCAT(" + odd + "1),nextval(photos)) -- \xfe the end; really")
	want := fmt.Sprintf("Query: INSERT  INTO photos (title,id)VALUES\n( CONCAT("+odd+"''), LAST_INSERT_ID(%d) ),(CONCAT("+odd+"1),CAST(%d AS UNSIGNED)) -- \xfe the end; really", first, first+1)
	want = logged(want)
	if got := log.since("CONCAT("); len(got) != 1 || got[0] != want {
		t.Errorf("got  %q\nwant %q", got, want)
	}
	w.do(protocol.ComStmtPrepare, "INSERT  INTO photos (title,id)VALUES\n( CONCAT("+odd+"?), NEXTVAL( 'photos' ) )")
	want = "Prepare: INSERT  INTO photos (title,id)VALUES\n( CONCAT(" + logged(odd) + "?), LAST_INSERT_ID(?) )"
	if got := log.since("CONCAT("); len(got) != 1 || got[0] != want {
		t.Errorf("got  %q\nwant %q", got, want)
	}
}

func TestNamesThatAreNotServedHereAreErrorsOrCreatedOrTheServersOwn(t *testing.T) {
	server := mysqltest.Shared(t)
	policy := func(p proxy.UnknownSequence) setup {
		return setup{
			Servers: []*mysqltest.Server{server},
			Proxy:   func(o *proxy.Options) { o.Unknown = p }, Sequence: func(o *sequence.Options) { o.CreateUnknown = p == proxy.UnknownCreate },
		}
	}
	t.Run("error", func(t *testing.T) {
		o := newOracle(t, policy(proxy.UnknownError), photosTables...)
		o.fresh(t)
		c := o.Conn(t, o.Schemas[0], nil)
		w := o.Wire(t, o.Addr(), wireLogin{Schema: o.Schemas[0]})
		for _, text := range []string{
			"SELECT NEXTVAL('nobody')", "SELECT NEXTVAL(nobody) LIMIT 1", "INSERT INTO photos (id) VALUES (NEXTVAL('photos')), (NEXTVAL('nobody'))",
			"SELECT NEXTVAL('photos'), NEXTVAL('nobody')", "SELECT NEXTVAL('')",
		} {
			_, err := c.ExecContext(t.Context(), text)
			checkError(t, text, err, 4091, "Unknown SEQUENCE: '")
			if e, ok := err.(*mysql.MySQLError); ok && string(e.SQLState[:]) != "42S02" {
				t.Errorf("%s: got state %s, want 42S02", text, e.SQLState)
			}
			if e := serverError(t, w.do(protocol.ComStmtPrepare, text)); e.Code != 4091 || e.State != "42S02" {
				t.Errorf("prepare %s: got %v, want 4091/42S02", text, e)
			}
		}
		if got := value(t, c, "SELECT COUNT(*) FROM photos"); got != "3" {
			t.Errorf("rows: got %s, want the 3 from before", got)
		}
	})
	t.Run("create", func(t *testing.T) {
		o := newOracle(t, policy(proxy.UnknownCreate), photosTables...)
		o.fresh(t)
		c := o.Conn(t, o.Schemas[0], nil)
		for _, want := range []string{"1", "2"} {
			if got := value(t, c, "SELECT NEXTVAL('somebody')"); got != want {
				t.Errorf("a new sequence: got %s, want %s", got, want)
			}
		}
		exec(t, c, "INSERT INTO photos (id, parent) VALUES (NEXTVAL('photos'), NEXTVAL('fresh'))")
		if _, err := c.ExecContext(t.Context(), "INSERT INTO photos (id, n) VALUES (NEXTVAL('prepared'), ?)", 5); err == nil {
			t.Error("id 1 exists: got no error")
		}
		if got := value(t, c, "SELECT NEXTVAL('prepared')"); got != "2" {
			t.Errorf("a sequence made by a prepared statement: got %s, want 2", got)
		}
	})
	t.Run("relay", func(t *testing.T) {
		server.OnMariaDB(t, "sequences of its own")
		o := newOracle(t, policy(proxy.UnknownRelay), append([]string{"CREATE SEQUENCE theirs START WITH 50"}, photosTables...)...)
		o.run(t, []script{{"the server's own sequences", []string{
			"SELECT NEXTVAL(theirs)",
			"SELECT NEXTVAL(theirs), NEXT VALUE FOR theirs, LASTVAL(theirs)",
			insertIDs,
			"INSERT INTO photos (id) VALUES (NEXTVAL(theirs))",
			"INSERT INTO photos (id, parent) VALUES («NEXTVAL('photos')», NEXTVAL(theirs)), (NEXTVAL(theirs), «NEXTVAL('photos')»)",
			insertIDs,
			"SELECT «NEXTVAL('photos')» AS a, NEXTVAL(theirs) AS b",
			"SELECT NEXTVAL(theirs) FROM photos",
			"UPDATE photos SET n = NEXTVAL(theirs)",
			"SELECT NEXTVAL(nobody)",
			"SELECT NEXTVAL('nobody')",
			"SELECT SETVAL(theirs, 1000)",
			"SELECT * FROM photos ORDER BY id",
			"ALTER SEQUENCE theirs RESTART 7",
			"DROP SEQUENCE theirs",
			"SELECT NEXTVAL(theirs)",
		}}})
		c := o.Conn(t, o.Schemas[0], nil)
		o.fresh(t)
		for _, want := range []string{"50", "51"} {
			var got string
			if err := c.QueryRowContext(t.Context(), "SELECT NEXTVAL(theirs) + ? - 5", 5).Scan(&got); err != nil || got != want {
				t.Errorf("prepared: got %s, %v, want %s", got, err, want)
			}
		}
		wantError(t, c, 1235, "UPDATE photos SET n = (SELECT NEXTVAL('photos'))", "UPDATE")
		wantError(t, c, 1235, "UPDATE photos SET n = (SELECT NEXTVAL('photos') + NEXTVAL(theirs))", "UPDATE")
	})
}

func TestAPreparedStatementCanBeClosedAndItsIDIsUnknownThen(t *testing.T) {
	o := newOracle(t, setup{}, photosTables...)
	o.fresh(t)
	w := o.Wire(t, o.Addr(), wireLogin{Schema: o.Schemas[0]})
	for _, text := range []string{"SELECT NEXTVAL('photos')", "INSERT INTO photos (id) VALUES (NEXTVAL('photos'))"} {
		id := binary.LittleEndian.Uint32(w.do(protocol.ComStmtPrepare, text)[5:])
		name := string(binary.LittleEndian.AppendUint32(nil, id))
		w.send(packet(command(protocol.ComStmtClose, name)))
		if e := serverError(t, w.do(protocol.ComStmtExecute, string(execution(id, nil, false)[1:]))); e.Code != 1243 {
			t.Errorf("execution of a closed statement: got %v, want 1243", e)
		}
	}
}
