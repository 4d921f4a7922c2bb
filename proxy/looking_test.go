package proxy_test

import (
	"database/sql"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/go-sql-driver/mysql"

	"seqproxy/protocol"
	"seqproxy/proxy"
	"seqproxy/sequence"
	"seqproxy/test/mysqltest"
)

// looked are queries by which programs look for sequences, and their answers where the session's
// schema %[1]s has the sequences s1 and S2, and %[2]s has s1 and a table t.
var looked = []struct {
	query string
	args  []any
	want  string
}{
	// SQLAlchemy.
	{"SELECT TABLE_NAME FROM INFORMATION_SCHEMA.TABLES WHERE TABLE_TYPE='SEQUENCE' and TABLE_NAME='s1' AND TABLE_SCHEMA='%[1]s'", nil, "s1"},
	{"SELECT TABLE_NAME FROM INFORMATION_SCHEMA.TABLES WHERE TABLE_TYPE='SEQUENCE' and TABLE_NAME=? AND TABLE_SCHEMA=?", []any{"s1", "%[2]s"}, "s1"},
	{"SELECT TABLE_NAME FROM INFORMATION_SCHEMA.TABLES WHERE TABLE_TYPE='SEQUENCE' and TABLE_NAME='nobody' AND TABLE_SCHEMA='%[1]s'", nil, ""},
	{"SELECT TABLE_NAME FROM INFORMATION_SCHEMA.TABLES WHERE TABLE_TYPE='SEQUENCE' and TABLE_NAME='t' AND TABLE_SCHEMA='%[1]s'", nil, ""},
	{"SELECT TABLE_NAME FROM INFORMATION_SCHEMA.TABLES WHERE TABLE_TYPE='SEQUENCE' and TABLE_NAME='S2' AND TABLE_SCHEMA='%[2]s'", nil, ""},
	{"SELECT TABLE_NAME FROM INFORMATION_SCHEMA.TABLES WHERE TABLE_TYPE='SEQUENCE' and TABLE_SCHEMA='%[1]s' ORDER BY LOWER(TABLE_NAME)", nil, "s1|S2"},
	{"SELECT TABLE_NAME FROM INFORMATION_SCHEMA.TABLES WHERE TABLE_TYPE='SEQUENCE' and TABLE_SCHEMA='%[2]s'", nil, "s1"},
	{"SELECT TABLE_NAME FROM INFORMATION_SCHEMA.TABLES WHERE TABLE_TYPE='SEQUENCE' and TABLE_SCHEMA='nobody'", nil, ""},
	// Hibernate.
	{"select table_name from information_schema.TABLES where table_schema=database() and table_type='SEQUENCE' order by lower(table_name) desc", nil, "S2|s1"},
	{
		"SELECT 's1' as sequence_name, minimum_value, maximum_value, start_value, increment, cache_size FROM s1 " +
			"UNION ALL SELECT 'S2' as sequence_name, minimum_value, maximum_value, start_value, increment, cache_size FROM `S2` ", nil,
		"s1 3 1000 5 10 20|S2 1 9223372036854775806 1 1 0",
	},
	// Other programs.
	{"SELECT COUNT(*) FROM information_schema.tables WHERE table_schema = ? AND table_type = 'SEQUENCE'", []any{"%[1]s"}, "2"},
	{"SELECT 1 FROM `information_schema`.`TABLES` t WHERE t.TABLE_TYPE = 'SEQUENCE' AND t.TABLE_SCHEMA = SCHEMA() AND t.TABLE_NAME = 's1'", nil, "1"},
	{"SELECT table_schema, table_name FROM information_schema.tables WHERE table_type = 'SEQUENCE' AND table_schema IN ('%[2]s')", nil, "%[2]s s1"},
	{"SELECT x.n FROM (SELECT TABLE_NAME AS n FROM information_schema.TABLES WHERE TABLE_SCHEMA='%[1]s' AND TABLE_TYPE IN ('SEQUENCE', 'BASE TABLE')) x ORDER BY LOWER(n)", nil, "s1|S2|t"},
	{"SELECT TABLE_NAME, TABLE_TYPE, ENGINE, TABLE_ROWS, TABLE_COMMENT FROM information_schema.TABLES WHERE TABLE_SCHEMA='%[1]s' AND TABLE_NAME LIKE 's%%' AND TABLE_TYPE LIKE 'SEQ%%' OR 'SEQUENCE' IS NULL ORDER BY LOWER(TABLE_NAME) LIMIT 1", nil, "s1 SEQUENCE InnoDB 1 it's"},
	{"SHOW FULL TABLES WHERE Table_type = 'SEQUENCE'", nil, "S2 SEQUENCE|s1 SEQUENCE"},
	{"SHOW FULL TABLES FROM `%[2]s` WHERE Table_type = 'SEQUENCE' AND `Tables_in_%[2]s` = 's1';", nil, "s1 SEQUENCE"},
	{"SHOW FULL TABLES WHERE Table_type IN ('SEQUENCE', 'BASE TABLE')", nil, "S2 SEQUENCE|s1 SEQUENCE|t BASE TABLE"},
	{"SELECT next_not_cached_value FROM `%[1]s`.s1", nil, "5"},
	{"SELECT * FROM s1 WHERE next_not_cached_value > 0", nil, "5 3 1000 5 10 20 0 0"},
	{"SELECT q.start_value FROM %[2]s.s1 AS q WHERE next_not_cached_value = ?", []any{5}, "5"},
	{"SELECT cycle_option, minimum_value + start_value FROM S2", nil, "1 2"},
	{"SELECT next_not_cached_value FROM nobody", nil, "error 1146"},
	{"SELECT next_not_cached_value FROM t", nil, "error 1054"},
	{"SHOW FULL TABLES FROM nobody WHERE Table_type = 'SEQUENCE'", nil, "error 1049"},
}

// lookedSince115 are those of MariaDB 11.5 and later.
var lookedSince115 = []string{
	"SELECT * FROM information_schema.SEQUENCES WHERE SEQUENCE_SCHEMA='%[1]s' ORDER BY SEQUENCE_NAME",
	"SELECT COUNT(*) FROM information_schema.sequences s WHERE s.SEQUENCE_SCHEMA = SCHEMA()",
	"SELECT 1 FROM INFORMATION_SCHEMA.SEQUENCES WHERE SEQUENCE_SCHEMA = SCHEMA() AND SEQUENCE_NAME = 's1'",
	"SELECT SEQUENCE_NAME, MINIMUM_VALUE, CYCLE_OPTION FROM information_schema.SEQUENCES WHERE SEQUENCE_SCHEMA='%[2]s'",
}

// The proxy's sequences appear where MariaDB shows its own: both sides have the same ones in two
// schemas, and answer every query alike.
func TestProgramsFindSequencesWhereMariaDBShowsThem(t *testing.T) {
	e := newEnv(t, setup{})
	server := e.Servers[0]
	here, there := [2]string{e.Schemas[0], server.Schema(t)}, [2]string{server.Schema(t), server.Schema(t)}
	through, direct := e.Conn(t, here[0], nil), e.DirectConn(t, 0, there[0], nil)
	create := func(c *sql.Conn, schemas [2]string, sequences bool) {
		exec(t, c, "CREATE TABLE t (id INT)")
		if !sequences {
			return
		}
		exec(t, c, "CREATE SEQUENCE s1 START WITH 5 MINVALUE 3 MAXVALUE 1000 INCREMENT BY 10 CACHE 20 COMMENT 'it''s'",
			"CREATE SEQUENCE S2 NOCACHE CYCLE", "CREATE SEQUENCE "+schemas[1]+".s1 START WITH 5")
	}
	create(through, here, true)
	create(direct, there, server.IsMariaDB())
	has115 := server.IsMariaDB() && server.Binary().AtLeast(11, 5)
	for _, how := range []string{"text", "prepared"} {
		ask := func(c *sql.Conn, query string, args []any, schemas [2]string) (columns, rows string) {
			names := []any{schemas[0], schemas[1]}
			query += "%.0[1]s%.0[2]s"
			values := slices.Clone(args)
			for i := range values {
				if text, ok := values[i].(string); ok {
					values[i] = fmt.Sprintf(text+"%.0[1]s%.0[2]s", names...)
				}
			}
			columns, rows = lookUp(t, c, how, fmt.Sprintf(query, names...), values)
			neutral := strings.NewReplacer(schemas[0], "%[1]s", schemas[1], "%[2]s")
			return neutral.Replace(columns), neutral.Replace(rows)
		}
		for _, q := range looked {
			columns, got := ask(through, q.query, q.args, here)
			if got != q.want {
				t.Errorf("%s: %s: got %s, want %s", how, q.query, got, q.want)
			}
			if !server.IsMariaDB() {
				continue
			}
			if wantColumns, want := ask(direct, q.query, q.args, there); want != q.want || columns != wantColumns {
				t.Errorf("%s: %s: direct: got %s: %s, want %s: %s", how, q.query, wantColumns, want, columns, q.want)
			}
		}
		for _, q := range lookedSince115 {
			columns, got := ask(through, q, nil, here)
			if wantColumns, want := ask(direct, q, nil, there); got != want || columns != wantColumns {
				t.Errorf("%s: %s: got %s: %s, want %s: %s", how, q, columns, got, wantColumns, want)
			}
			if strings.HasPrefix(got, "error") == has115 {
				t.Errorf("%s: %s: got %s", how, q, got)
			}
		}
	}
}

// lookUp returns the names of the columns that a query has, and its rows.
func lookUp(t *testing.T, c *sql.Conn, how, query string, args []any) (columns, found string) {
	t.Helper()
	if how == "text" {
		for _, a := range args {
			query = strings.Replace(query, "?", fmt.Sprintf("'%v'", a), 1)
		}
		args = nil
	}
	var rows *sql.Rows
	var err error
	if how == "text" {
		rows, err = c.QueryContext(t.Context(), query)
	} else {
		var stmt *sql.Stmt
		if stmt, err = c.PrepareContext(t.Context(), query); err == nil {
			defer stmt.Close()
			rows, err = stmt.QueryContext(t.Context(), args...)
		}
	}
	var refused *mysql.MySQLError
	switch {
	case errors.As(err, &refused):
		return "", fmt.Sprintf("error %d", refused.Number)
	case err != nil:
		t.Fatalf("%s: %v", query, err)
	}
	defer rows.Close()
	names, err := rows.Columns()
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	for rows.Next() {
		values, into := make([]sql.NullString, len(names)), make([]any, len(names))
		for i := range values {
			into[i] = &values[i]
		}
		if err := rows.Scan(into...); err != nil {
			t.Fatal(err)
		}
		var row []string
		for _, v := range values {
			row = append(row, v.String)
		}
		all = append(all, strings.Join(row, " "))
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	return strings.Join(names, ","), strings.Join(all, "|")
}

// A prepared query has the answer of the time of each execution, with new sequences and with
// numbers taken meanwhile.
func TestAPreparedQuestionSeesTheSequencesOfNow(t *testing.T) {
	e := newEnv(t, setup{})
	c, other := e.Conn(t, e.Schemas[0], nil), e.Conn(t, "", nil)
	prepare := func(query string) *sql.Stmt {
		stmt, err := c.PrepareContext(t.Context(), query)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = stmt.Close() })
		return stmt
	}
	has := prepare("SELECT COUNT(*), MAX(TABLE_NAME) FROM information_schema.TABLES WHERE TABLE_TYPE='SEQUENCE' AND TABLE_SCHEMA=? AND TABLE_NAME LIKE ?")
	exec(t, c, "CREATE SEQUENCE b")
	next := prepare("SELECT next_not_cached_value FROM b WHERE minimum_value = ?")
	check := func(when, want string) {
		t.Helper()
		var n int
		var last sql.NullString
		if err := has.QueryRowContext(t.Context(), e.Schemas[0], "%").Scan(&n, &last); err != nil {
			t.Fatalf("%s: %v", when, err)
		}
		if got := fmt.Sprintf("%d %s", n, last.String); got != want {
			t.Errorf("%s: got %s, want %s", when, got, want)
		}
	}
	checkNext := func(when, want string) {
		t.Helper()
		var got string
		err := next.QueryRowContext(t.Context(), 1).Scan(&got)
		var refused *mysql.MySQLError
		if errors.As(err, &refused) {
			got = fmt.Sprint("error ", refused.Number)
		} else if err != nil {
			t.Fatalf("%s: %v", when, err)
		}
		if got != want {
			t.Errorf("%s: got %s, want %s", when, got, want)
		}
	}
	exec(t, c, "DROP SEQUENCE b")
	check("there is none", "0 ")
	exec(t, other, "CREATE SEQUENCE a")
	check("there is one", "1 a")
	check("again", "1 a")
	exec(t, c, "CREATE SEQUENCE b NOCACHE")
	check("there are two", "2 b")
	exec(t, other, "DROP SEQUENCE a, b")
	check("there is none any more", "0 ")
	checkNext("the sequence is dropped", "error 1146")
	exec(t, other, "CREATE SEQUENCE b NOCACHE START WITH 7")
	checkNext("the sequence is there again", "7")
	if got := value(t, c, "SELECT NEXTVAL(b)"); got != "7" {
		t.Fatalf("NEXTVAL: got %s, want 7", got)
	}
	checkNext("a number was taken", "8")
	exec(t, other, "ALTER SEQUENCE b MAXVALUE 8")
	if got := value(t, c, "SELECT NEXTVAL(b)"); got != "8" {
		t.Fatalf("NEXTVAL: got %s, want 8", got)
	}
	checkNext("there is none left", "9")
	if _, rows := table(t, c, "SHOW SESSION STATUS LIKE 'Com_stmt_close'"); rows[0][1] == "0" {
		t.Error("the server closed no statement that was prepared before, want one")
	}
}

// MariaDB's clients may mean the last prepared statement by -1. A query that the proxy prepares
// again in between does not replace it.
func TestAQuestionPreparedAgainIsNotTheLastOnePrepared(t *testing.T) {
	e := newEnv(t, setup{})
	e.Servers[0].OnMariaDB(t, "MySQL knows no such id")
	c := e.Conn(t, "", nil)
	w := e.Wire(t, e.Addr(), wireLogin{Schema: e.Schemas[0]})
	question := binary.LittleEndian.Uint32(w.do(protocol.ComStmtPrepare, "SELECT COUNT(*) FROM information_schema.TABLES WHERE TABLE_TYPE='SEQUENCE' AND TABLE_SCHEMA=DATABASE()")[5:])
	if w.do(protocol.ComStmtPrepare, "SELECT 'last'")[4] != 0 {
		t.Fatal("the statement was not prepared")
	}
	const last = 1<<32 - 1
	execute := func(id uint32) string {
		return string(w.do(protocol.ComStmtExecute, string(execution(id, nil, false)[1:])))
	}
	if got := execute(last); !strings.Contains(got, "last") {
		t.Errorf("the last statement prepared: got %q", got)
	}
	exec(t, c, "CREATE SEQUENCE photos")
	execute(question)
	if got := execute(last); !strings.Contains(got, "last") && serverError(t, []byte(got)).Code != 1243 {
		t.Errorf("the last statement prepared, after another was prepared again: got %q", got)
	}
}

// A name means in a list what it means in NEXTVAL: "photos" is a sequence of any schema,
// "album.photos" one of album.
func TestASequenceIsShownInTheSchemasWhereItsNameMeansIt(t *testing.T) {
	var name string
	e := newEnv(t, setup{Shards: 2, Proxy: func(o *proxy.Options) {
		name = o.Users[0].Name + "_1"
		o.Users = append(o.Users, proxy.User{Name: name, Password: "pw", Sequences: []string{"photos"}})
	}})
	e.Servers[0].Exec(t, "CREATE USER "+name+"@'%' IDENTIFIED BY 'pw'", "GRANT ALL ON *.* TO "+name+"@'%'")
	c := e.Conn(t, e.Schemas[0], nil)
	exec(t, c, "CREATE SEQUENCE photos", "CREATE SEQUENCE "+e.Schemas[1]+".videos", "CREATE SEQUENCE elsewhere.tags", "CREATE SEQUENCE `größe`", "CREATE SEQUENCE `.odd`")
	list := func(c *sql.Conn, schema string) string {
		t.Helper()
		_, rows := lookUp(t, c, "text", "SELECT TABLE_NAME FROM information_schema.TABLES WHERE TABLE_TYPE='SEQUENCE' AND TABLE_SCHEMA="+schema+" ORDER BY 1", nil)
		return rows
	}
	check := func(what, got, want string) {
		t.Helper()
		if got != want {
			t.Errorf("%s: got %s, want %s", what, got, want)
		}
	}
	check("the session's schema", list(c, "DATABASE()"), ".odd|größe|photos")
	check("the sequence table's schema", list(c, "'"+e.SequenceSchema+"'"), ".odd|größe|photos")
	check("a schema in front of the name", list(c, "'elsewhere'"), "tags")
	check("a schema that no name has", list(c, "'nowhere'"), "")
	exec(t, c, "USE "+e.Schemas[1])
	check("another shard's schema", list(c, "DATABASE()"), ".odd|größe|photos|videos")
	check("the schema of before", list(c, "'"+e.Schemas[0]+"'"), "")
	_, all := lookUp(t, e.Conn(t, "", nil), "text", "SELECT TABLE_SCHEMA, TABLE_NAME FROM information_schema.TABLES WHERE TABLE_TYPE='SEQUENCE' ORDER BY TABLE_NAME, 1", nil)
	q := e.SequenceSchema
	check("without a schema", all, q+" .odd|"+q+" größe|"+q+" photos|elsewhere tags|"+e.Schemas[1]+" videos")

	for name, want := range map[string]bool{"photos": true, e.Schemas[1] + ".photos": true, e.Schemas[1] + ".videos": true, q + ".photos": true, "elsewhere.tags": true, e.Schemas[0] + ".photos": false, "tags": false} {
		var shown, text string
		if err := c.QueryRowContext(t.Context(), "SHOW CREATE SEQUENCE "+name).Scan(&shown, &text); (err == nil) != want {
			t.Errorf("SHOW CREATE SEQUENCE %s in %s: got %s, %v", name, e.Schemas[1], text, err)
		}
	}

	latin1 := e.Conn(t, e.Schemas[0], nil)
	exec(t, latin1, "SET NAMES latin1")
	_, rows := lookUp(t, latin1, "text", "SELECT HEX(TABLE_NAME) FROM information_schema.TABLES WHERE TABLE_TYPE='SEQUENCE' AND TABLE_SCHEMA=DATABASE() AND TABLE_NAME='gr\xf6\xdfe'", nil)
	check("in latin1", rows, "6772C3B6C39F65")
	_, rows = lookUp(t, latin1, "text", "SELECT minimum_value + start_value - 1 FROM `gr\xf6\xdfe`", nil)
	check("in latin1, read", rows, "1")

	limited := e.Conn(t, e.Schemas[0], func(c *mysql.Config) { c.User, c.Passwd = name, "pw" })
	check("a user who may use one", list(limited, "DATABASE()"), "photos")
	_, rows = lookUp(t, limited, "text", "SELECT minimum_value, start_value FROM photos", nil)
	check("a user who may use one, read", rows, "1 1")
	_, rows = lookUp(t, limited, "text", "SELECT minimum_value + start_value - 1 FROM `größe`", nil)
	check("another's, read", rows, "error 1146")
}

// A list shows a sequence under the session's schema also where the statement is prepared.
func TestASequenceOfAListIsShownByAPreparedStatement(t *testing.T) {
	e := newEnv(t, setup{})
	c := e.Conn(t, e.Schemas[0], nil)
	exec(t, c, "CREATE SEQUENCE photos")
	show, err := c.PrepareContext(t.Context(), "SHOW CREATE SEQUENCE "+e.Schemas[0]+".photos")
	if err != nil {
		t.Fatal(err)
	}
	defer show.Close()
	for range 2 {
		var name, text string
		if err := show.QueryRowContext(t.Context()).Scan(&name, &text); err != nil || name != "photos" {
			t.Errorf("got %q, %q, %v", name, text, err)
		}
	}
}

// The server's own tables and sequences stay in the list.
func TestWhatTheServerHasIsShownBesideTheSequences(t *testing.T) {
	e := newEnv(t, setup{})
	c := e.Conn(t, e.Schemas[0], nil)
	exec(t, c, "CREATE TABLE photos (minimum_value INT, start_value INT)", "INSERT INTO photos VALUES (40, 2)", "CREATE SEQUENCE photos", "CREATE TABLE T (id INT)", "CREATE TABLE t (id INT)")
	if got := value(t, c, "SELECT minimum_value + start_value FROM photos"); got != "42" {
		t.Errorf("a table that is called like a sequence: got %s, want 42", got)
	}
	const types = "SELECT GROUP_CONCAT(TABLE_NAME, ' ', TABLE_TYPE ORDER BY TABLE_NAME, TABLE_TYPE) FROM information_schema.TABLES WHERE TABLE_SCHEMA=DATABASE() AND TABLE_TYPE IN ('BASE TABLE', 'SEQUENCE')"
	if got, want := value(t, c, types), "photos BASE TABLE,photos SEQUENCE"; !strings.Contains(got, want) || strings.Count(got, ",") != 3 {
		t.Errorf("got %s, want %s and two tables", got, want)
	}
	if got := value(t, c, "SELECT COUNT(*) FROM information_schema.TABLES WHERE TABLE_SCHEMA=DATABASE()"); got != "3" {
		t.Errorf("a list of tables: got %s, want 3", got)
	}
	if !e.Servers[0].IsMariaDB() {
		return
	}
	exec(t, e.DirectConn(t, 0, e.Schemas[0], nil), "CREATE SEQUENCE theirs START WITH 50", "CREATE SEQUENCE `both` START WITH 60")
	exec(t, c, "CREATE SEQUENCE `both`")
	for query, want := range map[string]string{
		"SELECT GROUP_CONCAT(TABLE_NAME ORDER BY TABLE_NAME) FROM information_schema.TABLES WHERE TABLE_SCHEMA=DATABASE() AND TABLE_TYPE='SEQUENCE'": "both,photos,theirs",
		"SELECT start_value FROM theirs WHERE minimum_value = 1": "50",
		"SELECT start_value FROM `both` WHERE minimum_value = 1": "60",
	} {
		if got := value(t, c, query); got != want {
			t.Errorf("%s: got %s, want %s", query, got, want)
		}
	}
}

// Without the sequence server the list is an error, and not empty.
func TestAListOfSequencesNeedsTheSequenceServer(t *testing.T) {
	keys := mysqltest.Start(t)
	e := newEnv(t, setup{Servers: []*mysqltest.Server{mysqltest.Shared(t)}, Sequence: func(o *sequence.Options) {
		o.Servers[0].Addr, o.Servers[0].User, o.Servers[0].Password, o.Servers[0].Database = keys.Addr(), "root", "", keys.Schema(t)
	}})
	c := e.Conn(t, e.Schemas[0], nil)
	exec(t, c, "CREATE SEQUENCE photos")
	keys.Kill()
	e.impatient()
	const list = "SELECT TABLE_NAME FROM information_schema.TABLES WHERE TABLE_TYPE='SEQUENCE' AND TABLE_SCHEMA=DATABASE()"
	if _, err := c.ExecContext(t.Context(), list); err == nil || !strings.Contains(err.Error(), "sequence") {
		t.Errorf("got %v, want an error that says what is away", err)
	}
	exec(t, c, "SELECT TABLE_NAME FROM information_schema.TABLES WHERE TABLE_SCHEMA=DATABASE()")
}

// EXPLAIN FORMAT=ROUTE shows the text that the server gets.
func TestTheRouteOfAQuestionAboutSequencesHasThemInIt(t *testing.T) {
	e := newEnv(t, setup{})
	c := e.Conn(t, e.Schemas[0], nil)
	exec(t, c, "CREATE SEQUENCE photos")
	_, rows := table(t, c, "EXPLAIN FORMAT=ROUTE SELECT TABLE_NAME FROM information_schema.TABLES WHERE TABLE_TYPE='SEQUENCE'")
	if len(rows) != 1 || rows[0][0] != "rewrite" || !strings.Contains(rows[0][5], "'photos'") {
		t.Errorf("got %q, want a rewrite with the sequence in its text", rows)
	}
	if _, rows = table(t, c, "EXPLAIN FORMAT=ROUTE SHOW FULL TABLES"); rows[0][0] != "relay" {
		t.Errorf("got %q, want relay", rows)
	}
}
