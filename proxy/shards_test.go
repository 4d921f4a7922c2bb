package proxy_test

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/go-sql-driver/mysql"

	"seqproxy/protocol"
)

// port returns the port of the server that a session's statements run on.
func port(t testing.TB, w *wire) string {
	t.Helper()
	return w.rows("SELECT @@port")[0]
}

func (e *env) port(i int) string { return strconv.Itoa(e.Servers[i].Port()) }

func TestBothShardsAreReachedByEveryClient(t *testing.T) {
	e := newEnv(t, setup{Shards: 2})
	for i, schema := range e.Schemas {
		via, direct := e.Conn(t, schema, nil), e.DirectConn(t, i, schema, nil)
		exec(t, via, "CREATE TABLE t (a INT)", "INSERT INTO t VALUES (3)")
		if got := value(t, direct, "SELECT a FROM t"); got != "3" {
			t.Errorf("shard %d: got %s, want 3", i, got)
		}
		if got, want := withoutTimes(e.CLI(t, e.Addr(), schema, "SELECT * FROM t;")), withoutTimes(e.CLI(t, e.Servers[i].Addr(), schema, "SELECT * FROM t;")); got != want {
			t.Errorf("command-line client: got\n%s\nwant\n%s", got, want)
		}
		e.Pair(t, i, wireLogin{Schema: schema}).query("SELECT * FROM t")
	}
}

func TestUSEGoesToTheShardThatOwnsTheSchema(t *testing.T) {
	e := newEnv(t, setup{Shards: 2})
	for _, how := range []string{"USE", "COM_INIT_DB"} {
		t.Run(how, func(t *testing.T) {
			w := e.Wire(t, e.Addr(), wireLogin{})
			use := func(schema string) []byte {
				if how == "USE" {
					return w.query("USE `" + schema + "`")
				}
				return w.do(protocol.ComInitDB, schema)
			}
			for _, i := range []int{1, 0, 0, 1, 1, 0} {
				if got := use(e.Schemas[i]); got[4] != 0 {
					t.Fatalf("schema %d: %v", i, serverError(t, got))
				}
				if got := w.rows("SELECT DATABASE(), @@port"); got[0] != e.Schemas[i] || got[1] != e.port(i) {
					t.Errorf("schema %d: got %v, want %s, %s", i, got, e.Schemas[i], e.port(i))
				}
			}
			use(e.Schemas[1])
			// A schema of no shard is the default shard's; one that does not exist leaves the
			// session where it was.
			if err := serverError(t, use("no_such_schema")); err.Code != 1049 {
				t.Errorf("got %v, want 1049", err)
			}
			if got := w.rows("SELECT DATABASE(), @@port"); got[0] != e.Schemas[1] || got[1] != e.port(1) {
				t.Errorf("after an unknown schema: got %v, want %s, %s", got, e.Schemas[1], e.port(1))
			}
			if got := use("mysql"); got[4] != 0 {
				t.Fatal(serverError(t, got))
			}
			if got := w.rows("SELECT DATABASE(), @@port"); got[0] != "mysql" || got[1] != e.port(0) {
				t.Errorf("a schema of no shard: got %v, want mysql, %s", got, e.port(0))
			}
		})
	}
	script := fmt.Sprintf("USE %s\nSELECT DATABASE(), @@port;\nUSE %s\nSELECT DATABASE(), @@port;\n", e.Schemas[1], e.Schemas[0])
	got := e.CLI(t, e.Addr(), "", script)
	for i := range 2 {
		if !strings.Contains(got, e.Schemas[i]) || !strings.Contains(got, e.port(i)) {
			t.Errorf("command-line client: got no %s and %s in:\n%s", e.Schemas[i], e.port(i), got)
		}
	}
}

func TestAnUnknownSchemaAsTheFirstStatementLeavesNoSchema(t *testing.T) {
	e := newEnv(t, setup{Shards: 2})
	p := e.Pair(t, 0, wireLogin{})
	p.query("USE no_such_schema")
	p.query("SELECT DATABASE()")
	p.same(protocol.ComInitDB, "no_such_schema")
	p.query("SELECT @x")
}

// settings are statements that set something, with what reads it back. {isolation} and {read_only}
// stand for the names of the transactions' variables, {timeout} for that of a statement's time;
// "MariaDB: " begins what only MariaDB has.
var settings = []struct{ set, read string }{
	{"SET NAMES latin1", "@@character_set_client, @@character_set_connection, @@character_set_results, @@collation_connection"},
	{"SET NAMES utf8mb4 COLLATE utf8mb4_bin", "@@character_set_client, @@collation_connection, 'ä'"},
	{"SET NAMES DEFAULT", "@@character_set_client, @@collation_connection"},
	{"SET CHARACTER SET latin1", "@@character_set_client, @@character_set_connection, @@character_set_results, @@collation_connection"},
	{"SET character_set_results = NULL", "@@character_set_results"},
	{"SET collation_connection = 'latin1_bin'", "@@collation_connection, @@character_set_connection"},
	{"SET SESSION sql_mode = 'ANSI_QUOTES,NO_BACKSLASH_ESCAPES'", `@@sql_mode, 'a\'`},
	{"SET sql_mode = CONCAT(@@sql_mode, ',PIPES_AS_CONCAT')", "@@sql_mode, 'a' || 'b'"},
	{"SET sql_mode = ''", "@@sql_mode"},
	{"SET sql_mode = 'ANSI'", "@@sql_mode"},
	{"SET time_zone = '+05:30'", "@@time_zone, FROM_UNIXTIME(0)"},
	{"SET autocommit = 0", "@@autocommit"},
	{"SET @@session.autocommit = OFF", "@@autocommit"},
	{"SET SESSION TRANSACTION ISOLATION LEVEL SERIALIZABLE", "@@{isolation}"},
	{"SET SESSION TRANSACTION READ ONLY", "@@{read_only}"},
	{"SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED, READ ONLY", "@@{isolation}, @@{read_only}"},
	{"SET {isolation} = 'READ-UNCOMMITTED'", "@@{isolation}"},
	{"SET @@session.{isolation} = 'READ-COMMITTED'", "@@{isolation}"},
	{"SET group_concat_max_len = 77, sort_buffer_size = 1048576", "@@group_concat_max_len, @@sort_buffer_size"},
	{"SET group_concat_max_len = @@group_concat_max_len * 2", "@@group_concat_max_len"},
	{"SET LOCAL foreign_key_checks = 0, unique_checks = OFF", "@@foreign_key_checks, @@unique_checks"},
	{"SET sql_safe_updates = ON", "@@sql_safe_updates"},
	{"SET SESSION sql_select_limit = 3", "@@sql_select_limit"},
	{"SET SESSION sql_select_limit = 0", "@@sql_select_limit LIMIT 1"},
	{"SET lc_time_names = 'de_DE'", "@@lc_time_names, MONTHNAME('2020-01-01')"},
	{"SET {timeout} = 12", "@@{timeout}"},
	{"MariaDB: SET max_statement_time = 12.5", "@@max_statement_time"},
	{"SET wait_timeout = 100, net_write_timeout = 99", "@@wait_timeout, @@net_write_timeout"},
	{"SET optimizer_switch = 'index_merge=off'", "@@optimizer_switch"},
	{"SET div_precision_increment = 9", "@@div_precision_increment, 1 / 3"},
	{"SET auto_increment_increment = 5, auto_increment_offset = 2", "@@auto_increment_increment, @@auto_increment_offset"},
	{"SET default_storage_engine = MyISAM", "@@default_storage_engine"},
	{"SET session_track_system_variables = '*'", "@@session_track_system_variables"},
	{"MariaDB: SET SESSION storage_engine = InnoDB", "@@default_storage_engine"},
	{"SET @a = 5", "@a, @b"},
	{"SET @a := 'it''s', @b = -1.50, @c = NULL, @D = 0x4142, @`e f` = 'x\\\\y\\n'", "@a, @b, @c, @d, @`e f`, CHARSET(@a), COLLATION(@a)"},
	{"SET @a = _latin1'x', @b = TRUE, @c = 1e3, @d = DATE'2020-01-02'", "@a, @b, @c, @d, CHARSET(@a)"},
	{"SET @a = 1, SESSION sql_mode = 'ANSI', @b = 2", "@a, @b, @@sql_mode"},
}

func TestWhatWasSetHoldsOnTheOtherShardToo(t *testing.T) {
	e := newEnv(t, setup{Shards: 2})
	names := strings.NewReplacer("{isolation}", "transaction_isolation", "{read_only}", "transaction_read_only", "{timeout}", "max_execution_time")
	mariaDB := e.Servers[0].IsMariaDB()
	if mariaDB {
		names = strings.NewReplacer("{isolation}", "tx_isolation", "{read_only}", "tx_read_only", "{timeout}", "max_statement_time")
	}
	for _, c := range settings {
		only := false
		c.set, only = strings.CutPrefix(names.Replace(c.set), "MariaDB: ")
		c.read = names.Replace(c.read)
		if only && !mariaDB {
			continue
		}
		t.Run(c.set, func(t *testing.T) {
			read := "SELECT " + c.read
			direct := e.Wire(t, e.Servers[0].Addr(), wireLogin{Schema: e.Schemas[0]})
			direct.query(c.set)
			_, want := direct.result(read)

			// Set before the second shard is ever used.
			w := e.Wire(t, e.Addr(), wireLogin{Schema: e.Schemas[0]})
			set := w.query(c.set)
			if set[4] != 0 {
				t.Fatal(serverError(t, set))
			}
			check := func(when string, shard int) {
				t.Helper()
				if got := w.query("USE " + e.Schemas[shard]); got[4] != 0 {
					err := serverError(t, got)
					if err.Code == 1235 {
						t.Skipf("%s: %s", when, err.Message)
					}
					t.Fatalf("%s: %v", when, err)
				}
				if _, got := w.result(read); fmt.Sprint(got) != fmt.Sprint(want) {
					t.Errorf("%s: got %v, want %v", when, got, want)
				}
			}
			check("on the second shard", 1)
			check("back on the first", 0)

			// Set on the second, with the first attached before.
			w = e.Wire(t, e.Addr(), wireLogin{Schema: e.Schemas[0]})
			w.query("SELECT 1")
			w.query("USE " + e.Schemas[1])
			w.query(c.set)
			check("set on the second, on the first", 0)
			check("back on the second", 1)
			// And undone again.
			w = e.Wire(t, e.Addr(), wireLogin{Schema: e.Schemas[0]})
		})
	}
}

func TestChangesAreBroughtAlongEachTime(t *testing.T) {
	e := newEnv(t, setup{Shards: 2})
	w := e.Wire(t, e.Addr(), wireLogin{Schema: e.Schemas[0]})
	for i := range 6 {
		w.query(fmt.Sprintf("SET @x = %d, group_concat_max_len = %d", i, 100+i))
		if i == 3 {
			w.query("SET @y = 'kept'")
		}
		if got := w.query("USE " + e.Schemas[(i+1)%2]); got[4] != 0 {
			t.Fatal(serverError(t, got))
		}
		want := []string{strconv.Itoa(i), strconv.Itoa(100 + i), "NULL", e.port((i + 1) % 2)}
		if i >= 3 {
			want[2] = "kept"
		}
		if got := w.rows("SELECT @x, @@group_concat_max_len, @y, @@port"); fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("round %d: got %v, want %v", i, got, want)
		}
	}
	// DEFAULT resets a value on both.
	w.query("SET group_concat_max_len = DEFAULT, @x = NULL")
	w.query("USE " + e.Schemas[1])
	if got := w.rows("SELECT @@group_concat_max_len = @@global.group_concat_max_len, @x"); fmt.Sprint(got) != "[1 NULL]" {
		t.Errorf("after DEFAULT: got %v, want 1, NULL", got)
	}
}

func TestASettingByAPreparedStatementIsBroughtAlong(t *testing.T) {
	e := newEnv(t, setup{Shards: 2})
	ctx := context.Background()
	c := e.Conn(t, e.Schemas[0], nil)
	s, err := c.PrepareContext(ctx, "SET SESSION group_concat_max_len = 123")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Exec(); err != nil {
		t.Fatal(err)
	}
	exec(t, c, "USE "+e.Schemas[1])
	if got := value(t, c, "SELECT @@group_concat_max_len"); got != "123" {
		t.Errorf("got %s, want 123", got)
	}
	// A value that comes as a parameter is no literal. The proxy reads back a variable's value;
	// that of a user variable cannot be carried.
	exec(t, c, "USE "+e.Schemas[0])
	if _, err := c.ExecContext(ctx, "SET @u = ?", "from a parameter"); err != nil {
		t.Fatal(err)
	}
	_, err = c.ExecContext(ctx, "USE "+e.Schemas[1])
	if err == nil {
		if got := value(t, c, "SELECT @u"); got != "from a parameter" {
			t.Errorf("@u on the second shard: got %s", got)
		}
	} else {
		checkError(t, "USE", err, 1235, "user variable")
	}
}

func TestASessionThatCannotBeMovedIsToldSo(t *testing.T) {
	e := newEnv(t, setup{Shards: 2})
	for _, c := range []struct {
		statements []string
		word       string // a word of the message
		check      string // shows that the state still exists
		want       string
		undo       string // allows the session to move; "" if nothing does
	}{
		{[]string{"CREATE TEMPORARY TABLE tt AS SELECT 7 AS a"}, "temporary table", "SELECT a FROM tt", "7", ""},
		{[]string{"SELECT GET_LOCK('lock', 0)"}, "GET_LOCK", "SELECT IS_USED_LOCK('lock') IS NOT NULL", "1", ""},
		{[]string{"CREATE TABLE IF NOT EXISTS t (a INT)", "LOCK TABLES t WRITE"}, "LOCK TABLES", "SELECT COUNT(*) FROM t", "0", "UNLOCK TABLES"},
		{[]string{"FLUSH TABLES WITH READ LOCK"}, "READ LOCK", "SELECT 1", "1", "UNLOCK TABLES"},
		{[]string{"SET @x = (SELECT 8)"}, "user variable", "SELECT @x", "8", ""},
		{[]string{"SELECT 8 INTO @x"}, "user variable", "SELECT @x", "8", ""},
		{[]string{"SELECT @x := 8"}, "user variable", "SELECT @x", "8", ""},
		{[]string{"PREPARE s FROM 'SELECT 5'"}, "PREPARE", "EXECUTE s", "5", ""},
		{[]string{"CREATE TABLE IF NOT EXISTS t (a INT)", "HANDLER t OPEN"}, "HANDLER", "SELECT 1", "1", ""},
		{[]string{"DROP PROCEDURE IF EXISTS p", "CREATE PROCEDURE p() SET @x = 3", "CALL p()"}, "CALL", "SELECT @x", "3", ""},
		{[]string{"SELECT 1; SET @x = 3"}, "several statements", "SELECT @x", "3", ""},
		{[]string{"SET timestamp = 1000"}, "timestamp", "SELECT UNIX_TIMESTAMP()", "1000", ""},
		{[]string{"SET TRANSACTION READ ONLY"}, "SET TRANSACTION", "SELECT 1", "1", "COMMIT"},
		{[]string{"CREATE TABLE IF NOT EXISTS u (a INT)", "TRUNCATE u", "BEGIN", "INSERT INTO u VALUES (1)"}, "inside a transaction", "SELECT COUNT(*) FROM u", "1", "COMMIT"},
		{[]string{"CREATE TABLE IF NOT EXISTS u (a INT)", "TRUNCATE u", "SET autocommit = 0", "INSERT INTO u VALUES (1)"}, "inside a transaction", "SELECT COUNT(*) FROM u", "1", "ROLLBACK"},
		{[]string{"XA START 'x'"}, "", "SELECT 1", "1", ""},
	} {
		t.Run(c.statements[len(c.statements)-1], func(t *testing.T) {
			w := e.Wire(t, e.Addr(), wireLogin{Schema: e.Schemas[0]})
			for _, sql := range c.statements {
				if got := w.query(sql); got[4] == 0xff {
					t.Fatalf("%s: %v", sql, serverError(t, got))
				}
			}
			for _, use := range []func() []byte{
				func() []byte { return w.query("USE " + e.Schemas[1]) },
				func() []byte { return w.do(protocol.ComInitDB, e.Schemas[1]) },
			} {
				err := serverError(t, use())
				if err.Code != 1235 || err.State != "42000" || !strings.Contains(err.Message, c.word) || !strings.Contains(err.Message, "s1") {
					t.Errorf("got %v, want 1235 with %q and the shards", err, c.word)
				}
			}
			if got := w.rows("SELECT DATABASE(), @@port"); got[0] != e.Schemas[0] || got[1] != e.port(0) {
				t.Errorf("after the refusal: got %v, want %s, %s", got, e.Schemas[0], e.port(0))
			}
			if got := w.rows(c.check)[0]; got != c.want {
				t.Errorf("%s: got %s, want %s", c.check, got, c.want)
			}
			// Another schema of the same shard is no reason to refuse.
			if got := w.query("USE " + e.SequenceSchema); got[4] != 0 {
				t.Errorf("another schema of the shard: %v", serverError(t, got))
			}
			if c.undo == "" {
				w.query("USE " + e.Schemas[0])
				return
			}
			if got := w.query(c.undo); got[4] != 0 {
				t.Fatalf("%s: %v", c.undo, serverError(t, got))
			}
			if got := w.query("USE " + e.Schemas[1]); got[4] != 0 {
				t.Errorf("after %s: %v", c.undo, serverError(t, got))
			}
		})
	}
}

// With autocommit off a statement that fails may have begun a transaction, which its error does not
// say.
func TestATransactionThatAFailedStatementBeganIsNotLeft(t *testing.T) {
	e := newEnv(t, setup{Shards: 2})
	c := e.Conn(t, e.Schemas[0], nil)
	exec(t, c, "CREATE TABLE t (a INT PRIMARY KEY)", "INSERT INTO t VALUES (1)", "SET autocommit = 0")
	wantError(t, c, 1062, "INSERT INTO t VALUES (1)", "")
	wantError(t, c, 1235, "USE "+e.Schemas[1], "inside a transaction")
	exec(t, c, "ROLLBACK")
	wantError(t, c, 1146, "SELECT * FROM missing", "")
	exec(t, c, "USE "+e.Schemas[1])
}

func TestATransactionSurvivesTheRefusalToLeaveIt(t *testing.T) {
	e := newEnv(t, setup{Shards: 2})
	ctx := context.Background()
	c := e.Conn(t, e.Schemas[0], nil)
	exec(t, c, "CREATE TABLE t (a INT)")
	tx, err := c.BeginTx(ctx, nil)
	if err != nil {
		t.Fatal(err)
	}
	for i := range 3 {
		if _, err := tx.Exec("INSERT INTO t VALUES (?)", i); err != nil {
			t.Fatal(err)
		}
		_, err := tx.Exec("USE " + e.Schemas[1])
		checkError(t, "USE", err, 1235, "inside a transaction", "COMMIT or ROLLBACK")
	}
	if err := tx.Commit(); err != nil {
		t.Fatal(err)
	}
	if got := value(t, e.DirectConn(t, 0, e.Schemas[0], nil), "SELECT COUNT(*) FROM t"); got != "3" {
		t.Errorf("committed rows: got %s, want 3", got)
	}
	exec(t, c, "USE "+e.Schemas[1])
}

func TestSchemasAreCreatedAndDroppedWhereTheyLive(t *testing.T) {
	e := newEnv(t, setup{Shards: 2})
	for i, from := range []string{e.Schemas[0], ""} {
		c := e.Conn(t, from, nil)
		name := fmt.Sprintf("%s_%d", e.Schemas[1], i)
		for _, schema := range []string{name, e.Schemas[1]} { // a schema of no shard, and one of the other shard
			on := 0
			if schema == e.Schemas[1] {
				on = 1
				exec(t, c, "DROP DATABASE "+schema)
			}
			exec(t, c, "CREATE DATABASE "+schema, "ALTER DATABASE "+schema+" DEFAULT CHARACTER SET koi8r")
			for shard := range 2 {
				want := "0"
				if shard == on {
					want = "1"
				}
				got := value(t, e.DirectConn(t, shard, "", nil), "SELECT COUNT(*) FROM information_schema.schemata WHERE schema_name = ? AND default_character_set_name = 'koi8r'", schema)
				if got != want {
					t.Errorf("from %q: %s on shard %d: got %s, want %s", from, schema, shard, got, want)
				}
			}
			if got := value(t, c, "SELECT @@port"); got != e.port(0) {
				t.Errorf("from %q: the session went to port %s", from, got)
			}
			exec(t, c, "USE "+schema, "USE "+e.Schemas[0])
		}
		exec(t, c, "DROP DATABASE "+name)
	}
	c := e.Conn(t, e.Schemas[0], nil)
	var refused *mysql.MySQLError
	// The proxy never creates a schema of the other shard on this one.
	_, err := c.ExecContext(context.Background(), "CREATE DATABASE "+e.Schemas[1])
	has := value(t, e.DirectConn(t, 0, "", nil), "SELECT COUNT(*) FROM information_schema.schemata WHERE schema_name = '"+e.Schemas[1]+"'")
	if has != "0" {
		t.Errorf("CREATE DATABASE of shard s1's schema made it on shard s0 (error %v)", err)
	}
	if !errors.As(err, &refused) {
		t.Errorf("CREATE DATABASE of an existing schema: got %v, want an error", err)
	}
	_, err = c.ExecContext(context.Background(), "DROP DATABASE IF EXISTS "+e.Schemas[1])
	schemas := value(t, e.DirectConn(t, 1, "", nil), "SELECT COUNT(*) FROM information_schema.schemata WHERE schema_name = '"+e.Schemas[1]+"'")
	if (err == nil) != (schemas == "0") {
		t.Errorf("DROP DATABASE of shard s1's schema: got error %v, and %s schemas there", err, schemas)
	}
}

func TestAUSEAmongSeveralStatementsStaysOnTheShard(t *testing.T) {
	e := newEnv(t, setup{Shards: 2})
	w := e.Wire(t, e.Addr(), wireLogin{Schema: e.Schemas[0]})
	for _, sql := range []string{"SELECT 1; USE %s", "SELECT 1; /* c */ use `%s`; SELECT 2", "USE %s; SELECT 1", "SELECT 1;\n-- x\nUSE %s"} {
		if err := serverError(t, w.query(fmt.Sprintf(sql, e.Schemas[1]))); err.Code != 1235 {
			t.Errorf("%s: got %v, want 1235", sql, err)
		}
		if got := w.query(fmt.Sprintf(sql, e.SequenceSchema)); got[4] == 0xff {
			t.Errorf("%s on the same shard: %v", sql, serverError(t, got))
		}
		if got := w.rows("SELECT DATABASE(), @@port"); got[0] != e.SequenceSchema || got[1] != e.port(0) {
			t.Errorf("%s: got %v, want %s, %s", sql, got, e.SequenceSchema, e.port(0))
		}
		w.query("USE " + e.Schemas[0])
	}
	if got := w.query("SELECT 'a; use b'; SELECT '; use " + e.Schemas[1] + "', 2"); got[4] == 0xff {
		t.Errorf("USE in a string: %v", serverError(t, got))
	}
}

func TestUserVariablesKeepBytesAndCharacterSetOnTheOtherShard(t *testing.T) {
	e := newEnv(t, setup{Shards: 2})
	for name, sets := range map[string][]string{
		"latin1":               {"SET NAMES latin1", "SET @a = '\xe4'"},
		"latin1 before utf8":   {"SET NAMES latin1", "SET @a = '\xe4'", "SET NAMES utf8mb4"},
		"ascii under latin1":   {"SET NAMES latin1", "SET @a = 'a'", "SET NAMES utf8mb4"},
		"gbk with a backslash": {"SET NAMES gbk", "SET @a = '\xbf\\'"},
		"escapes":              {`SET @a = 'x\\y\n\0z'`, "SET sql_mode = 'NO_BACKSLASH_ESCAPES'"},
		"no escapes":           {"SET sql_mode = 'NO_BACKSLASH_ESCAPES'", `SET @a = 'x\n'`, "SET sql_mode = ''"},
		"double quotes":        {`SET @a = "it's"`, "SET sql_mode = 'ANSI_QUOTES'"},
		"empty":                {"SET @a = ''"},
		"binary":               {"SET @a = 0x00FF5C27"},
		"hexadecimal string":   {"SET @a = X'4142'"},
		"collation":            {"SET NAMES utf8mb4 COLLATE utf8mb4_bin", "SET @a = 'ä'", "SET NAMES utf8mb4"},
		"collation of results": {"SET @a = 'ä'", "SET NAMES utf8mb4 COLLATE utf8mb4_bin"},
		"results set alone":    {"SET @a = 'ä'", "SET NAMES utf8mb4 COLLATE utf8mb4_bin", "SET character_set_results = utf8mb4"},
		"number":               {"SET @a = 5"},
		"negative":             {"SET @a = -5"},
		"decimal":              {"SET @a = 1.50"},
		"double":               {"SET @a = 1.5e10"},
		"true":                 {"SET @a = TRUE"},
		"NULL":                 {"SET @a = NULL"},
		"large":                {"SET @a = 18446744073709551615"},
		"name with quotes":     {"SET @`a b``c` = 'x', @a = 'y'"},
	} {
		t.Run(name, func(t *testing.T) {
			w := e.Wire(t, e.Addr(), wireLogin{Schema: e.Schemas[0]})
			direct := e.Wire(t, e.Servers[0].Addr(), wireLogin{Schema: e.Schemas[0]})
			for _, sql := range sets {
				for _, x := range []*wire{w, direct} {
					if got := x.query(sql); got[4] != 0 {
						t.Fatal(serverError(t, got))
					}
				}
			}
			const read = "SELECT HEX(@a), CHARSET(@a), COLLATION(@a), @a, @`a b``c`"
			want := direct.query(read)
			for _, schema := range []string{e.Schemas[1], e.Schemas[0], e.Schemas[1]} {
				if got := w.query("USE " + schema); got[4] != 0 {
					err := serverError(t, got)
					if err.Code == 1235 {
						t.Skip(err)
					}
					t.Fatal(err)
				}
				compare(t, "on "+schema, w.query(read), want)
			}
		})
	}
}

func TestLastInsertIDIsBroughtAlongWhateverTheRowLimit(t *testing.T) {
	e := newEnv(t, setup{Shards: 2})
	w := e.Wire(t, e.Addr(), wireLogin{Schema: e.Schemas[0]})
	w.query("SET sql_select_limit = 0")
	w.query("SELECT LAST_INSERT_ID(5) LIMIT 1")
	for _, i := range []int{1, 0} {
		if got := w.query("USE " + e.Schemas[i]); got[4] != 0 {
			t.Fatal(serverError(t, got))
		}
		if got := w.rows("SELECT LAST_INSERT_ID(), @@port LIMIT 1"); got[0] != "5" || got[1] != e.port(i) {
			t.Errorf("shard %d: got %v, want 5, %s", i, got, e.port(i))
		}
	}
}

func TestANumberIsBroughtToTheServerWhateverTheRowLimit(t *testing.T) {
	e := newEnv(t, setup{})
	createSequence(t, e, "s")
	w := e.Wire(t, e.Addr(), wireLogin{Schema: e.Schemas[0]})
	w.query("DO 1")
	given := w.rows("SELECT NEXTVAL('s')")[0]
	w.query("SET sql_select_limit = 0")
	if got := w.rows("SELECT LAST_INSERT_ID() + 0 LIMIT 1")[0]; got != given {
		t.Errorf("got %s, want %s", got, given)
	}
}
