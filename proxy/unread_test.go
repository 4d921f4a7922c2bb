package proxy_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/go-sql-driver/mysql"

	"seqproxy/backend"
	"seqproxy/protocol"
	"seqproxy/proxy"
	"seqproxy/test/mysqltest"
)

// tags stand before a statement, or after it, and mean nothing to any server. A proxy that does not
// skip them misreads the statement.
var tags = []struct{ before, behind string }{
	{"/*!999999 x */ ", ""},
	{"/*!99999 x /* y */ z' */", ""},
	{"/* it's */", "/* `x */"},
	{"-- x'\n", " -- '"},
	{"#'\n", "#\x00"},
	{"/*!999999 x */ /*!50000*/ ", "/*! */"},
	{"", "\x00"},
	{"", ";\x00"},
	{"", " \x00 ;; "},
	{"--\x01x\n", "-- \x00"},
}

// A tag before a statement makes no difference to what the proxy does with it.
func TestTagsAroundAStatementMeanNothing(t *testing.T) {
	e := newEnv(t, setup{Shards: 2, Proxy: func(o *proxy.Options) {
		o.Bindings = []proxy.Binding{{Table: "t", Column: "id", Sequence: "photos"}}
	}})
	c := e.Conn(t, e.Schemas[0], nil)
	exec(t, c, "CREATE SEQUENCE photos START WITH 1000")
	for i, schema := range e.Schemas {
		exec(t, e.DirectConn(t, i, schema, nil), "CREATE TABLE t (id BIGINT AUTO_INCREMENT PRIMARY KEY, a VARCHAR(9))")
	}
	want := 1000
	for i, tag := range tags {
		in := func(text string) string { return tag.before + text + tag.behind }
		for shard, schema := range e.Schemas {
			exec(t, c, in("USE `"+schema+"`"))
			for _, insert := range []string{"INSERT INTO t(a) VALUES ('b')", "REPLACE t SET a = 'b'", "INSERT INTO t SELECT NULL, 'b'"} {
				exec(t, c, in(insert))
				got := value(t, c, in("SELECT LAST_INSERT_ID()"))
				if got != fmt.Sprint(want) {
					t.Errorf("tag %d, shard %d: %q: got key %s, want %d", i, shard, in(insert), got, want)
				}
				want++
			}
		}
		if got := value(t, c, in("SELECT NEXTVAL('photos')")); got != fmt.Sprint(want) {
			t.Errorf("tag %d: NEXTVAL: got %s, want %d", i, got, want)
		}
		want++
		name := fmt.Sprintf("s%d", i)
		exec(t, c, in("CREATE SEQUENCE "+name))
		if got := value(t, c, "SELECT NEXTVAL('"+name+"')"); got != "1" {
			t.Errorf("tag %d: CREATE SEQUENCE: got %s, want 1", i, got)
		}
		exec(t, c, in("BEGIN"))
		wantError(t, c, 1235, "USE `"+e.Schemas[0]+"`", "transaction")
		exec(t, c, in("ROLLBACK"), in("SET @x = 7"), "USE `"+e.Schemas[0]+"`")
		if got := value(t, c, in("SELECT @x")); got != "7" {
			t.Errorf("tag %d: SET: got %s on the other shard, want 7", i, got)
		}
	}
	for i, schema := range e.Schemas {
		if got := value(t, e.DirectConn(t, i, schema, nil), "SELECT COUNT(*) FROM t WHERE id < 1000"); got != "0" {
			t.Errorf("shard %d: the server made %s keys", i, got)
		}
	}
}

// Code in a comment is code for the servers that run it, and for no other.
func TestCodeInACommentIsReadAsTheServerReadsIt(t *testing.T) {
	o := newOracle(t, bound(filledPhotos), filledTables...)
	o.fresh(t)
	c := o.Conn(t, o.Schemas[0], nil)
	direct := o.DirectConn(t, 0, o.Schemas[0], nil)
	for _, comment := range []string{
		"/*! 1, */", "/*!50000 1, */", "/*!50699 1, */", "/*!50700 1, */", "/*!80000 1, */", "/*!90000 1, */", "/*!99999 1, */", "/*!080000 1, */", "/*!100000 1, */",
		"/*!100000,*/", "/*!101119 1, */", "/*!101120 1, */", "/*!110809 1, */", "/*!110810 1, */", "/*!120000 1, */", "/*!999999 1, */", "/*!1000001, */", "/*!5000001, */",
		"/*M! 1, */", "/*M!50700 1, */", "/*M!100000 1, */", "/*M!999999 1, */", "/*! 1, /*! 1, */", "/*! 1, /*!999999 1, */ 1, */", "/*!999999 1, /* 1 */ 1, */",
	} {
		row := func(call string) string {
			rows, err := c.QueryContext(t.Context(), fmt.Sprintf("SELECT %s %s AS n", comment, call))
			if err != nil {
				return "error"
			}
			defer rows.Close()
			columns, _ := rows.Columns()
			return fmt.Sprint(len(columns))
		}
		columns := "error"
		if rows, err := direct.QueryContext(t.Context(), fmt.Sprintf("SELECT %s 5 AS n", comment)); err == nil {
			names, _ := rows.Columns()
			columns = fmt.Sprint(len(names))
			rows.Close()
		}
		if got := row("5"); got != columns {
			t.Errorf("%s: relayed: got %s columns, want %s", comment, got, columns)
		}
		if got := row("NEXTVAL('photos')"); got != columns {
			t.Errorf("%s: with NEXTVAL: got %s columns, want %s", comment, got, columns)
		}
	}
}

// A text that the proxy does not read to its end, and that could bring rows in, is not relayed.
func TestATextThatIsNotReadBringsNoRowsIn(t *testing.T) {
	o := newOracle(t, setup{Proxy: func(opts *proxy.Options) {
		opts.Bindings, opts.MaxStatement = []proxy.Binding{filledPhotos}, 1<<16
	}}, append([]string{"CREATE TABLE other (id BIGINT AUTO_INCREMENT PRIMARY KEY, title LONGTEXT)"}, filledTables...)...)
	o.fresh(t)
	one := o.Conn(t, o.Schemas[0], nil)
	several := o.Conn(t, o.Schemas[0], func(c *mysql.Config) { c.MultiStatements = true })
	maria := o.Servers[0].IsMariaDB()
	long := "('" + strings.Repeat("x", 1<<17) + "')"
	exec(t, one, "SET @half = CONCAT(_binary'INSERT INTO photos (title) VALUES (1) /* ', X'FF', _binary' */')")
	wantError(t, one, 1235, "PREPARE s FROM @half")
	refused := []string{
		"INSERT INTO photos (id, title) VALUES (0.5, 'x')",
		"INSERT INTO `" + o.Schemas[0] + "`" + strings.Repeat(" ", 1<<17) + ".photos (title) VALUES ('x')",
		"CREATE TABLE IF NOT EXISTS photos (id BIGINT AUTO_INCREMENT PRIMARY KEY) SELECT 'x' AS title",
		"INSERT INTO photos (id, title) SELECT @nothing, 'x'",
		"INSERT INTO photos (id, title) SELECT COALESCE(NULL), 'x' FROM DUAL",
		"LOAD XML INFILE 'nowhere' INTO TABLE photos",
		"LOAD DATA INFILE 'nowhere' INTO TABLE photos SET id = NULL",
		"LOAD DATA INFILE 'nowhere' INTO TABLE photos (@t) SET title = TRIM(@t)",
		"INSERT INTO photos (title) VALUES " + long,
		"/*!999999 x */ INSERT INTO photos (title) VALUES " + long,
		"ANALYZE INSERT INTO photos (title) VALUES " + long,
	}
	if maria {
		refused = append(refused,
			"SET STATEMENT lock_wait_timeout = 9 FOR INSERT INTO photos (title) VALUES ('x')",
			"SET STATEMENT `max_statement_time` = 9 FOR INSERT INTO photos (title) VALUES ('x')",
			"SET STATEMENT max_statement_time = 9 FOR EXECUTE IMMEDIATE 'INSERT INTO photos (title) VALUES (1)'",
			"SET STATEMENT max_statement_time = 9 FOR LOAD DATA INFILE 'nowhere' INTO TABLE photos (title)",
			"SET STATEMENT max_statement_time = 9 FOR IF 1 THEN SELECT 1; INSERT INTO photos (title) VALUES ('x'); END IF",
			"SET STATEMENT max_statement_time = 9 FOR SET STATEMENT max_statement_time = 8 FOR INSERT INTO photos (title) VALUES ('x')",
			"SET STATEMENT max_statement_time = 9 FOR ANALYZE INSERT INTO photos (title) VALUES ('x')",
			"IF 1 THEN INSERT INTO photos (title) VALUES ('x'); END IF",
			"FOR i IN 1 .. 2 DO INSERT INTO photos (title) VALUES ('x'); END FOR",
			"CREATE OR REPLACE TABLE photos (id BIGINT AUTO_INCREMENT PRIMARY KEY, title TEXT) VALUES ('x')",
			"SET STATEMENT max_statement_time = (SELECT 5) FOR INSERT INTO photos (title) VALUES ('x')",
			"SET STATEMENT sql_mode = REPLACE('a', 'a', '') FOR INSERT INTO photos (title) VALUES ('x')",
			"CREATE OR REPLACE TABLE photos (id BIGINT AUTO_INCREMENT PRIMARY KEY) SELECT 'x' AS title",
			"EXECUTE IMMEDIATE CONCAT('INSERT INTO photos (title) ', 'VALUES (1)')",
		)
	}
	for _, text := range refused {
		wantError(t, one, 1235, text)
		wantError(t, several, 1235, text)
	}
	for _, text := range []string{
		"CREATE PROCEDURE first() BEGIN DO 1; END; INSERT INTO photos (title) VALUES ('x'); CREATE PROCEDURE last() BEGIN DO 1; END",
		"HELP 'x'; INSERT INTO photos (title) VALUES ('x'); '",
		"SET sql_mode = 'NO_BACKSLASH_ESCAPES'; SELECT '\\'; INSERT INTO photos (title) VALUES ('x') -- '",
		"CREATE PROCEDURE first() SELECT 1; INSERT INTO photos (title) VALUES ('x')",
		"CREATE FUNCTION f(a INT) RETURNS INT DETERMINISTIC RETURN CASE WHEN a THEN IF(a > 1, 2, 3) ELSE 0 END; INSERT INTO photos (title) VALUES ('x')",
		"CREATE FUNCTION f(a INT) RETURNS INT DETERMINISTIC RETURN CASE WHEN a THEN REPEAT('x', 3) ELSE IF(1, 2, 3) END; INSERT INTO photos (title) VALUES ('x')",
		"CREATE PROCEDURE first() SELECT CASE 1 WHEN 1 THEN 2 END FOR UPDATE; INSERT INTO photos (title) VALUES ('x')",
		"CREATE PROCEDURE first() SELECT * FROM photos ORDER BY begin DESC; INSERT INTO photos (title) VALUES ('x')",
		"CREATE PROCEDURE first() SELECT 1 FROM photos WHERE 1 + begin IS NULL; INSERT INTO photos (title) VALUES ('x')",
		"CREATE PROCEDURE first() SELECT 1; XA BEGIN 'x'; INSERT INTO photos (title) VALUES ('x')",
		"CREATE PROCEDURE first() SELECT 1; BEGIN WORK; INSERT INTO photos (title) VALUES ('x')",
		"CREATE PROCEDURE first() BEGIN IF 1 THEN SELECT 1; END IF; WHILE 0 DO SELECT 1; END WHILE; END; INSERT INTO photos (title) VALUES ('x')",
		"CREATE PROCEDURE first() BEGIN SELECT 1; END; INSERT INTO photos (title) SELECT CASE WHEN 1 THEN 'x' END",
		"SET @q = 'INSERT INTO photos (title) VALUES (1)'; PREPARE s FROM @q; EXECUTE s",
	} {
		wantError(t, several, 1235, text)
	}
	wantError(t, several, 1235, "SET @q = 'ALTER TABLE photos COMMENT = 1'; PREPARE s FROM @q; EXECUTE s; DEALLOCATE PREPARE s", "PREPARE")
	// The server already has the beginning of a long text when the proxy reaches the second
	// statement.
	for _, text := range []string{
		"SELECT 1, '" + strings.Repeat("x", 1<<17) + "'; INSERT INTO photos (title) VALUES (1)",
		"INSERT INTO other (title) VALUES " + long + "; INSERT INTO photos (title) VALUES (1)",
		"INSERT INTO other (title) VALUES " + long + ";\nSET @a = 1",
		"SELECT '" + strings.Repeat("x", 1<<25) + "'; INSERT INTO photos (title) VALUES (1)",
	} {
		c := o.Conn(t, o.Schemas[0], func(c *mysql.Config) { c.MultiStatements, c.MaxAllowedPacket = true, 1<<30 })
		wantError(t, c, 1235, text)
		if err := c.PingContext(t.Context()); err == nil {
			t.Errorf("%.40s...: the session did not end", text)
		}
	}
	if got := value(t, one, "SELECT COUNT(*) FROM other"); got != "0" {
		t.Errorf("rows of the first statements: got %s, want 0", got)
	}
	for _, text := range []string{
		"INSERT INTO other (title) VALUES " + long + " ; ;",
		"INSERT INTO other (title) VALUES ('" + strings.Repeat(";--\\'/*", 1<<21) + "')",
	} {
		exec(t, several, text)
	}
	if got := value(t, one, "SELECT COUNT(*) FROM photos WHERE id > 2"); got != "0" {
		t.Errorf("rows: got %s, want 0", got)
	}
	// A statement that cannot bring rows into a bound table is relayed.
	for _, text := range []string{
		"INSERT INTO other (title) VALUES " + long,
		"INSERT INTO other SELECT NULL, 'x'",
		"CREATE TABLE made (id BIGINT AUTO_INCREMENT PRIMARY KEY) SELECT 'x' AS title",
		"CREATE TEMPORARY TABLE photos (id BIGINT AUTO_INCREMENT PRIMARY KEY) SELECT 'x' AS title",
		"DROP TEMPORARY TABLE photos",
		"HELP 'INSERT'",
	} {
		exec(t, one, text)
	}
	for _, text := range []string{
		"CREATE PROCEDURE second() BEGIN SELECT 1; INSERT INTO other (title) VALUES ('x'); END",
		"CREATE TRIGGER third BEFORE INSERT ON other FOR EACH ROW SET NEW.title = 'y'; SELECT 1",
		"SELECT 1; CALL second(); INSERT INTO other (title) VALUES (1)",
	} {
		exec(t, several, text)
	}
}

// A USE that the proxy has not seen does not change which columns are bound.
func TestAColumnIsBoundInTheSchemaThatIsCurrent(t *testing.T) {
	server := mysqltest.Shared(t)
	other := server.Schema(t)
	e := newEnv(t, setup{
		Proxy: func(o *proxy.Options) {
			o.Bindings = []proxy.Binding{{Schema: other, Table: "t", Column: "id", Sequence: "photos"}}
		},
		Backend: func(o *backend.Options) { o.Shards[0].Schemas = append(o.Shards[0].Schemas, other) },
	})
	createSequence(t, e, "photos")
	server.Exec(t, "CREATE TABLE "+other+".t (id BIGINT AUTO_INCREMENT PRIMARY KEY, a INT) AUTO_INCREMENT = 1000")
	hidden := []string{"USE " + other + "; SELECT nosuch", "HELP 'x'; USE " + other + "; SELECT nosuch", "CREATE PROCEDURE p() BEGIN DO 1; END; USE " + other}
	if e.Servers[0].IsMariaDB() {
		hidden = append(hidden, "EXECUTE IMMEDIATE 'USE "+other+"'", "SET STATEMENT max_statement_time = 9 FOR USE "+other)
	}
	for _, text := range hidden {
		c := e.Conn(t, e.Schemas[0], func(c *mysql.Config) { c.MultiStatements = true })
		_ = runText(t.Context(), c, text)
		if got := value(t, e.DirectConn(t, 0, other, nil), "SELECT COUNT(*) FROM t"); got != "0" {
			t.Fatalf("%s: got %s rows", text, got)
		}
		_, err := c.ExecContext(t.Context(), "INSERT INTO t (a) VALUES (1)")
		if got := value(t, e.DirectConn(t, 0, other, nil), "SELECT COUNT(*) FROM t WHERE id >= 1000"); got != "0" {
			t.Errorf("%s: the server made a key (%v)", text, err)
		}
		exec(t, e.DirectConn(t, 0, other, nil), "DELETE FROM t")

		// The server stays in the schema after a reset.
		w := e.Wire(t, e.Addr(), wireLogin{Schema: e.Schemas[0]})
		w.query(text)
		w.do(protocol.ComResetConn, "")
		answer := w.query("INSERT INTO t (a) VALUES (1)")
		if got := value(t, e.DirectConn(t, 0, other, nil), "SELECT COUNT(*) FROM t WHERE id >= 1000"); got != "0" {
			t.Errorf("%s, and a reset: the server made a key (%q)", text, answer)
		}
		exec(t, e.DirectConn(t, 0, other, nil), "DELETE FROM t")
	}
}

// A session with a lock that others wait for goes on, whatever memory they have.
func TestMemoryIsNotWaitedForByWhoHoldsALock(t *testing.T) {
	e := newEnv(t, setup{Proxy: func(o *proxy.Options) {
		o.StatementMemory, o.Bindings = 1<<20, []proxy.Binding{{Table: "t", Column: "id", Sequence: "photos"}}
	}})
	createSequence(t, e, "photos")
	a, b := e.Conn(t, e.Schemas[0], nil), e.Conn(t, e.Schemas[0], nil)
	exec(t, a, "CREATE TABLE t (id BIGINT AUTO_INCREMENT PRIMARY KEY, a LONGTEXT)", "LOCK TABLES t WRITE")
	text := "INSERT INTO t (a) VALUES ('" + strings.Repeat("x", 900<<10) + "')"
	waits := make(chan error, 1)
	go func() { _, err := b.ExecContext(t.Context(), text); waits <- err }()
	eventually(t, "the other has all memory", func() bool { _, used, _, _ := e.Proxy.StatementMemory(); return used == 1<<20 })
	exec(t, a, text, "UNLOCK TABLES")
	if err := <-waits; err != nil {
		t.Error(err)
	}
}
