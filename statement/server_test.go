package statement_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/go-sql-driver/mysql"

	"seqproxy/statement"
	"seqproxy/statement/ddl"
	"seqproxy/statement/lex"
	"seqproxy/test/mysqltest"
)

func TestMain(m *testing.M) { mysqltest.Main(m) }

// querier is a *sql.DB or a *sql.Conn.
type querier interface {
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
}

// columns runs a query and returns the names of its columns.
func columns(t *testing.T, db querier, query string) (string, error) {
	t.Helper()
	rows, err := db.QueryContext(context.Background(), query)
	if err != nil {
		return "", err
	}
	defer rows.Close()
	names, err := rows.Columns()
	if err != nil {
		return "", err
	}
	for rows.Next() {
	}
	return strings.Join(names, "|"), rows.Err()
}

// withSequence reports whether a query calls one of the server's own sequences. MySQL has none.
func withSequence(query string) bool {
	return strings.Contains(strings.ReplaceAll(strings.ToLower(query), "/* x */", ""), "nextval(") ||
		strings.Contains(strings.ToLower(query), "nextval (") || strings.Contains(query, "nextval/**/(")
}

// TestRewrittenQueriesKeepTheirColumnNames runs each query with real sequences
// of the server, and rewritten with numbers.
func TestRewrittenQueriesKeepTheirColumnNames(t *testing.T) {
	server := mysqltest.Shared(t)
	schema := server.Schema(t)
	db := server.DB(t, schema)
	setup := []string{"create table t (x int)", "insert into t values (1)"}
	if server.IsMariaDB() {
		setup = append(setup, "create sequence a", "create sequence b")
	}
	for _, q := range setup {
		if _, err := db.Exec(q); err != nil {
			t.Fatalf("%s: %v", q, err)
		}
	}
	long := "concat('" + strings.Repeat("y", 300) + "', nextval(a))"
	for _, q := range []string{
		"select nextval(a)",
		"select  NextVal ( a )  , 1",
		"select nextval(`a`)",
		"select 1 + nextval(a)  -- c\n",
		"select nextval(a) /* c */ + /* d */ 1 /* e */, 2 limit 1",
		"select nextval/**/(a)",
		"select nextval(a) x, nextval(b) as y, nextval(a) 'z', nextval(b) as `w w` limit 1",
		"select (nextval(a)), ((nextval(a)))",
		"select - nextval(a), + nextval(a), not nextval(a)",
		"select distinct nextval(a)",
		"select sql_no_cache high_priority nextval(a)",
		"select all nextval(a), 5",
		"select case when nextval(a) then 1 end, case when nextval(a) then 1 end e, case nextval(a) when 1 then 2 else 3 end end",
		"select now() + interval nextval(a) day, now() + interval nextval(a) day d",
		"select nextval(a) is null, nextval(a) is not null, nextval(a) is not true, nextval(a) is unknown",
		"select nextval(a) mod 5, nextval(a) div 5, nextval(a) in (1, 2), nextval(a) between 1 and 5",
		"select nextval(a) like 'x', nextval(a) like 'x' escape '!', concat(nextval(a)) regexp 'x'",
		"select cast(nextval(a) as char) collate utf8mb4_bin, cast(nextval(a) as char)",
		"select concat(nextval(a), 'it''s', \"x\", 'a`b', 'a\\'b')",
		"select concat('\xc3\xa9', nextval(a)), concat('\xf0\x9f\x98\x80', nextval(a))",
		"select concat(nextval(a), 'a\nb\tc')",
		"select " + long,
		"select (select nextval(a))",
		"select exists (select nextval(a)), 1 in (select nextval(a))",
		"select nextval(a) union select nextval(b)",
		"(select nextval(a)) union (select nextval(b))",
		"((select nextval(a)))",
		"select nextval(a) from dual",
		"select nextval(a) from dual where 1 limit 1",
		"select /*! nextval(a) */",
		"select /*!40000 nextval(a) */, 1",
		"select connection_id(), last_insert_id(), @@identity, nextval(a)",
		"select *, connection_id() from t",
		"select t.*, connection_id() + x, x from t order by connection_id()",
		"select * from (select connection_id(), x from t) u",
		"select * from (select connection_id() c, x from t) u join (select connection_id() + 1) v",
		"select * from t, (select connection_id()) u",
		"with w as (select connection_id()) select * from w",
		"with w (c) as (select connection_id()) select *, connection_id() from w",
		"select x from t where exists (select connection_id()) group by x having connection_id() > 0",
		"select `connection_id`(), @@pseudo_thread_id, @@session.pseudo_thread_id p",
		"select\n\tconnection_id(\n)\n\n",
		"select connection_id() 'a'",
		"select connection_id()a",
		"select if(connection_id(), 'x', 'y'), coalesce(connection_id(), null) c2",
		"select date '2020-01-01' + interval connection_id() second",
		"select connection_id() = any (select 1), connection_id() <=> null",
	} {
		if !server.IsMariaDB() && withSequence(q) {
			continue
		}
		want, err := columns(t, db, q)
		if err != nil {
			t.Errorf("%s: direct: %v", q, err)
			continue
		}
		var st statement.Statement
		st.Analyze([]byte(q), lex.Mode{})
		if st.Refusal != "" {
			t.Errorf("%s: refused: %s", q, st.Refusal)
			continue
		}
		needs := st.Needs(nil, nil)
		values := statement.Replacements{Taken: []statement.Taken{{First: 1001}, {First: 2001}}, LastInsertID: 7, ConnectionID: 1 << 31}
		text := string(st.Rewrite(nil, []byte(q), st.Substitutions(nil, needs, nil, values)))
		if text == q {
			t.Errorf("%s: not rewritten", q)
		}
		got, err := columns(t, db, text)
		if err != nil {
			t.Errorf("%s\nrewritten %s: %v", q, text, err)
			continue
		}
		if got != want {
			t.Errorf("%s\nrewritten %s\n got columns %q\nwant columns %q", q, text, got, want)
		}
	}
}

// TestSelfContainedColumnsAreNamedAsTheServerNamesThem compares ColumnName.
func TestSelfContainedColumnsAreNamedAsTheServerNamesThem(t *testing.T) {
	server := mysqltest.Shared(t)
	db := server.DB(t, server.Schema(t))
	if server.IsMariaDB() {
		if _, err := db.Exec("create sequence a"); err != nil {
			t.Fatal(err)
		}
	}
	for _, q := range []string{
		"select nextval(a)", "SELECT NEXTVAL ( a ) ;", "select nextval(a) as x, last_insert_id() y, @@identity 'z'",
		"select last_insert_id()", "select @@session . last_insert_id from dual", "select connection_id() as `a``b`",
		"set statement max_statement_time=30 for select nextval(a)",
		"select nextval/* x */(/* y */a) -- z", "select connection_id() as 'it''s \\'x\\''", "select `last_insert_id`()",
		"select connection_id() value, last_insert_id() end, @@identity nextval, connection_id() 1a",
		"select connection_id(\n\t) as \"x y\"",
	} {
		if !server.IsMariaDB() && withSequence(q) {
			continue
		}
		want, err := columns(t, db, q)
		if err != nil {
			t.Errorf("%s: direct: %v", q, err)
			continue
		}
		var st statement.Statement
		st.Analyze([]byte(q), lex.Mode{})
		if !st.SelfContained {
			t.Errorf("%s: not self-contained", q)
			continue
		}
		var names []string
		for _, it := range st.Items {
			names = append(names, string(st.ColumnName([]byte(q), it)))
		}
		if got := strings.Join(names, "|"); got != want {
			t.Errorf("%s:\n got columns %q\nwant columns %q", q, got, want)
		}
	}
}

// TestTheServerAcceptsWhatIsSelfContained checks that a statement which the proxy would answer
// itself is one that the server accepts.
func TestTheServerAcceptsWhatIsSelfContained(t *testing.T) {
	server := mysqltest.Shared(t)
	db := server.DB(t, server.Schema(t))
	words := strings.Fields(`where from limit into for union order group having procedure lock fetch offset select
		value values end nextval names key keys index row rows system window over of to at day date time next last
		first user role any some all in is not null true false current_user rank groups recursive except intersect
		minus sysdate rownum partition language mode offset option page begin commit xa do use if case when then else
		left right mod div xor and or like regexp rlike between exists unsigned binary char interval schema database
		table view trigger sequence collate escape comment escape slow general returning period cycle cache engine
		start stop handler help load data local session global persist signal lateral cube empty function except
		json_table grouping array member ntile lag lead nth_value dense_rank cume_dist percent_rank first_value
		last_value row_number stored virtual generated optimizer_costs tablesample qualify parallel library manual`)
	rows, err := db.Query("select lower(word) from information_schema.keywords")
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	for rows.Next() {
		var w string
		if err := rows.Scan(&w); err != nil {
			t.Fatal(err)
		}
		words = append(words, w)
	}
	if err := rows.Err(); err != nil || len(words) < 500 {
		t.Fatalf("got %d words, %v, want the server's keywords among them", len(words), err)
	}
	conn, err := db.Conn(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	for _, sqlMode := range []string{"", "ORACLE"} {
		if sqlMode == "ORACLE" && !server.IsMariaDB() {
			continue
		}
		if _, err := conn.ExecContext(context.Background(), "set sql_mode = '"+sqlMode+"'"); err != nil {
			t.Fatal(err)
		}
		for _, w := range words {
			for _, form := range []string{"select connection_id() %s", "select connection_id() as %s", "select connection_id() %s from dual"} {
				q := fmt.Sprintf(form, w)
				var st statement.Statement
				st.Analyze([]byte(q), lex.Mode{SQLMode: lex.SQLMode{ANSIQuotes: sqlMode == "ORACLE"}})
				if !st.SelfContained {
					continue
				}
				got := string(st.ColumnName([]byte(q), st.Items[0]))
				want, err := columns(t, conn, q)
				if err != nil || got != want {
					t.Errorf("sql_mode %q: %s: self-contained with column %q, but the server says %q, %v", sqlMode, q, got, want, err)
				}
			}
		}
	}
}

// TestCallsAreWhatTheServerCalls checks that the server agrees where a text calls LAST_INSERT_ID().
func TestCallsAreWhatTheServerCalls(t *testing.T) {
	server := mysqltest.Shared(t)
	db := server.DB(t, server.Schema(t))
	conn, err := db.Conn(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	for _, mode := range []string{"", "IGNORE_SPACE", "ANSI_QUOTES", "NO_BACKSLASH_ESCAPES", "ANSI_QUOTES,NO_BACKSLASH_ESCAPES"} {
		if _, err := conn.ExecContext(context.Background(), "set sql_mode = '"+mode+"'"); err != nil {
			t.Fatal(err)
		}
		m := lex.Mode{SQLMode: lex.SQLMode{ANSIQuotes: strings.Contains(mode, "ANSI"), NoBackslashEscapes: strings.Contains(mode, "BACKSLASH")}}
		for _, q := range []string{
			"select concat(last_insert_id(), '')",
			"select concat(last_insert_id ( ), '')",
			"select concat(last_insert_id/* x */(/* y */), '')",
			"select concat(`last_insert_id`(), '')",
			"select concat('last_insert_id()', '')",
			"select concat('\\', last_insert_id() -- ', '')\n)",
			"select concat('''', last_insert_id(), '''')",
			"select concat('\\'', last_insert_id(), '')",
			"select concat('x\\', last_insert_id(), '')",
			"select concat('' /* last_insert_id() */)",
			"select concat('' -- , last_insert_id()\n)",
			"select concat('' # , last_insert_id()\n)",
			"select concat('' /*! , last_insert_id() */)",
			"select concat('' /*!50000 , last_insert_id() */)",
			"select concat('' /*!40101, /* , 'x' */ last_insert_id() */)",
			"select concat(5 --last_insert_id()\n, '')",
			"select concat(5 --\tlast_insert_id()\n, '')",
			"select concat(@@identity, '')",
			"select concat(@@session . last_insert_id, '')",
		} {
			var st statement.Statement
			st.Analyze([]byte(q), m)
			if _, err := conn.ExecContext(context.Background(), "set last_insert_id = 4242"); err != nil {
				t.Fatal(err)
			}
			var value string
			if err := conn.QueryRowContext(context.Background(), q).Scan(&value); err != nil {
				if st.Kind == statement.Other || len(st.Calls) == 0 {
					continue // neither side can read it
				}
				t.Errorf("sql_mode %q: %s: found %d calls, but the server says %v", mode, q, len(st.Calls), err)
				continue
			}
			got := len(st.Calls) > 0
			if want := strings.Contains(value, "4242") || value == "4247"; got != want {
				// 5 - -4242.
				t.Errorf("sql_mode %q: %s: found a call: %v, but the server's value is %q", mode, q, got, value)
			}
		}
	}
}

// TestLoadDataSetsTheUserVariablesItNames: the variables outlive the statement.
func TestLoadDataSetsTheUserVariablesItNames(t *testing.T) {
	server := mysqltest.Shared(t)
	conn, err := server.DB(t, server.Schema(t)).Conn(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	file := filepath.Join(t.TempDir(), "rows")
	if err := os.WriteFile(file, []byte("7\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	load := "load data infile '" + file + "' into table t (@x) set v = @x"
	for _, q := range []string{"create table t (v int)", load} {
		if _, err := conn.ExecContext(context.Background(), q); err != nil {
			t.Fatalf("%s: %v", q, err)
		}
	}
	var x sql.NullString
	if err := conn.QueryRowContext(context.Background(), "select @x").Scan(&x); err != nil {
		t.Fatal(err)
	}
	var st statement.Statement
	st.Analyze([]byte(load), lex.Mode{})
	if got, want := st.Words&statement.SetsUserVariable != 0, x.Valid; got != want || !want {
		t.Errorf("%s: found a user variable set: %v, but the server says @x is %+v", load, got, x)
	}
}

// TestNextvalInCreateTableIsRefusedWhereTheServerHasNone: a server's own sequence takes no string,
// and the server decides about that.
func TestNextvalInCreateTableIsRefusedWhereTheServerHasNone(t *testing.T) {
	server := mysqltest.Shared(t)
	server.OnMariaDB(t, "sequences of its own")
	db := server.DB(t, server.Schema(t))
	if _, err := db.Exec("create sequence s"); err != nil {
		t.Fatal(err)
	}
	for _, q := range []string{
		"create or replace table t (a int default nextval(s))",
		"create or replace table t (a int default (nextval(s)))",
		"create or replace table t (a int default (1 + nextval(`s`)), nextval int)",
		"create or replace table t as select nextval(s)",
		"create or replace table t as select 'nextval(''s'')' a",
		"create or replace temporary table t as select nextval(s) from dual",
		"create or replace table t as select nextval('s')",
		"create or replace table t select 1 + nextval(\"s\") a",
		"create or replace temporary table t as select nextval('s') from dual",
		"create or replace table t (a int) as values (nextval('s'))",
	} {
		var st statement.Statement
		st.Analyze([]byte(q), lex.Mode{})
		if _, err := db.Exec(q); (err != nil) != (st.Refusal != "") {
			t.Errorf("%s: got refusal %q, but the server says %v", q, st.Refusal, err)
		}
	}
}

// TestNoServerKnowsAStatementToTheProxy proves that none of these words hides a statement of a
// server: each is a syntax error there.
func TestNoServerKnowsAStatementToTheProxy(t *testing.T) {
	db := mysqltest.Shared(t).DB(t, "")
	texts := []string{"SEQPROXY", "SHOW SEQPROXY", "SEQPROXY 'x'", "SHOW SEQPROXY LIKE 'x'", "SHOW SEQPROXY FROM mysql", "SHOW SEQPROXY WHERE 1"}
	for _, p := range ddl.ProxyStatements() {
		words, _, _ := strings.Cut(p.Text, " [")
		texts = append(texts, words)
	}
	for _, text := range texts {
		_, err := db.Exec(text)
		_, prepared := db.Prepare(text)
		for _, err := range []error{err, prepared} {
			var refusal *mysql.MySQLError
			if !errors.As(err, &refusal) || refusal.Number != 1064 {
				t.Errorf("%s: got %v from the server, want 1064", text, err)
			}
		}
		var st statement.Statement
		if st.Analyze([]byte(text), lex.Mode{}); st.Kind != statement.Seqproxy {
			t.Errorf("%s: is not read as a statement to the proxy", text)
		}
	}
}
