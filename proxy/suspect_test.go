package proxy_test

import (
	"database/sql"
	"strings"
	"testing"

	"github.com/go-sql-driver/mysql"

	"seqproxy/backend"
	"seqproxy/protocol"
	"seqproxy/proxy"
)

// suspectTables are a bound table and one that is not, and statements whose texts the proxy does
// not see.
var suspectTables = []string{
	"CREATE TABLE photos (id BIGINT UNSIGNED AUTO_INCREMENT PRIMARY KEY, title VARCHAR(50))",
	"CREATE TABLE others (id BIGINT UNSIGNED AUTO_INCREMENT PRIMARY KEY, title VARCHAR(50), n INT UNIQUE)",
	"CREATE TABLE counter (id BIGINT UNSIGNED)", "INSERT INTO counter VALUES (7)",
	"CREATE PROCEDURE into_photos() BEGIN PREPARE hidden FROM 'INSERT INTO photos (title) VALUES (''s3cret'')'; END",
	"CREATE PROCEDURE adds() INSERT INTO photos (title) VALUES ('s3cret')",
}

// suspects runs a statement and returns the texts of the log lines about its insert id.
func (e *env) suspects(t *testing.T, c *sql.Conn, text string, args ...any) (texts []string) {
	t.Helper()
	e.Logs.TakeAll()
	before := e.Proxy.Stats().SuspectIDs
	if _, err := c.ExecContext(t.Context(), text, args...); err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	for _, line := range e.Logs.FilterMessage("insert id not explained").All() {
		if m := line.ContextMap(); m["insert_id"] != uint64(0) && m["shard"] != "" && m["node"] != "" {
			texts = append(texts, m["statement"].(string))
		}
	}
	if n := e.Proxy.Stats().SuspectIDs - before; n != uint64(len(texts)) {
		t.Errorf("%s: got %d in the counts and %d in the log, want equal numbers", text, n, len(texts))
	}
	return texts
}

func TestAnInsertIDThatItsStatementDoesNotExplainIsASuspect(t *testing.T) {
	e := newEnv(t, bound(proxy.Binding{Table: "photos", Column: "id", Sequence: "photos"}))
	createSequence(t, e, "photos")
	c := e.Conn(t, e.Schemas[0], func(c *mysql.Config) { c.MultiStatements = true })
	exec(t, c, suspectTables...)
	mariaDB := !strings.HasPrefix(value(t, c, "SELECT VERSION()"), "9.")
	for _, test := range []struct {
		text    string
		args    []any
		want    string // text in the log; "": no line
		mariaDB bool
	}{
		{text: "INSERT INTO others (title) VALUES ('s3cret')"},
		{text: "INSERT INTO others (title) VALUES (?)", args: []any{"s3cret"}},
		{text: "REPLACE INTO others SET title = 's3cret'"},
		{text: "INSERT INTO others (title, n) VALUES ('s3cret', 1) ON DUPLICATE KEY UPDATE n = 2"},
		{text: "INSERT INTO others (title) SELECT title FROM others"},
		{text: "INSERT INTO others (title) VALUES ('a'); SELECT 1; INSERT INTO others (title) VALUES ('b')"},
		{text: "INSERT INTO photos (title) VALUES ('s3cret')"},
		{text: "INSERT INTO photos (title) VALUES (?)", args: []any{"s3cret"}},
		{text: "INSERT INTO photos (title) VALUES ('a'); INSERT INTO others (title) VALUES ('b')"},
		{text: "INSERT INTO photos (id, title) VALUES (500000, 's3cret')"},
		{text: "INSERT INTO photos (id, title) VALUES (?, 's3cret')", args: []any{500001}},
		{text: "INSERT INTO photos (id, title) SELECT 500002, 's3cret'"},
		{text: "UPDATE counter SET id = LAST_INSERT_ID(id + 1)"},
		{text: "UPDATE counter SET id = LAST_INSERT_ID(id + ?)", args: []any{1}},
		{text: "UPDATE counter SET id = NEXTVAL('photos')"},
		{text: "SELECT LAST_INSERT_ID(6) INTO @x"},
		{text: "SET insert_id = 900"},
		{text: "INSERT INTO others (title) VALUES ('a')"},
		{text: "PREPARE s FROM 'INSERT INTO others (title) VALUES (''s3cret'')'"},
		{text: "EXECUTE s"},
		{text: "EXECUTE IMMEDIATE 'INSERT INTO others (title) VALUES (''s3cret'')'", mariaDB: true},
		{text: "SET STATEMENT max_statement_time = 10 FOR INSERT INTO others (title) VALUES ('a')", mariaDB: true},
		{text: "INSERT INTO others (title) VALUES ('a') RETURNING id", mariaDB: true},
		{text: "CALL adds()"}, // the answer has no insert id

		{text: "CALL into_photos()"},
		{text: "EXECUTE hidden", want: "EXECUTE hidden"},
		{text: "SELECT 's3cret'; EXECUTE hidden", want: "SELECT ?; EXECUTE hidden"},
		{text: "EXECUTE hidden; SELECT 's3cret'", want: "EXECUTE hidden;..."},
		{text: "CREATE TABLE made (id BIGINT AUTO_INCREMENT PRIMARY KEY) SELECT 's3cret' AS title"},
		{text: "DROP TABLE made"},
		{text: "CREATE TABLE made (id BIGINT AUTO_INCREMENT PRIMARY KEY) SELECT ? AS title", args: []any{"s3cret"}},
	} {
		if test.mariaDB && !mariaDB {
			continue
		}
		if got := strings.Join(e.suspects(t, c, test.text, test.args...), " and "); got != test.want {
			t.Errorf("%s: got %q, want %q", test.text, got, test.want)
		}
	}
}

func TestInsertIDsAreNoSuspectsWhereNoColumnIsBound(t *testing.T) {
	e := newEnv(t, setup{Shards: 2})
	c := e.Conn(t, e.Schemas[0], nil)
	exec(t, c, suspectTables...)
	exec(t, c, "CALL into_photos()")
	if got := e.suspects(t, c, "EXECUTE hidden"); len(got) > 0 {
		t.Errorf("without bound columns: got %q", got)
	}
	// A bound table of another shard is no reason for a line. Without a log of slow statements the
	// text is known, too.
	for _, schema := range []string{e.Schemas[1], ""} {
		e.Reload(t, func(_ *backend.Options, o *proxy.Options) {
			o.SlowStatement = 0
			o.Bindings = []proxy.Binding{{Schema: schema, Table: "photos", Column: "id", Sequence: "photos"}}
		})
		exec(t, c, "INSERT INTO others (title) VALUES ('a')")
		want := ""
		if schema == "" {
			want = "EXECUTE hidden"
		}
		if got := strings.Join(e.suspects(t, c, "EXECUTE hidden"), " and "); got != want {
			t.Errorf("bound in the schema %q: got %q, want %q", schema, got, want)
		}
	}
}

// Of a text that is not kept whole the proxy knows only the beginning.
func TestALongInsertIntoAnotherTableIsNoSuspect(t *testing.T) {
	e := newEnv(t, setup{Proxy: func(o *proxy.Options) {
		o.Bindings = []proxy.Binding{{Table: "photos", Column: "id", Sequence: "photos"}}
		o.MaxStatement = 64 << 10
	}})
	createSequence(t, e, "photos")
	c := e.Conn(t, e.Schemas[0], nil)
	exec(t, c, suspectTables...)
	long := "/* " + strings.Repeat("x", 100<<10) + " */"
	if got := e.suspects(t, c, "INSERT INTO others (title) VALUES ('s3cret') "+long); len(got) > 0 {
		t.Errorf("a long INSERT: got %q", got)
	}
	exec(t, c, "CALL into_photos()")
	wantError(t, c, 1235, "EXECUTE hidden "+long)
}

func TestABulkExecutionIntoAnotherTableIsNoSuspect(t *testing.T) {
	e := newEnv(t, bound(proxy.Binding{Table: "photos", Column: "id", Sequence: "photos"}))
	e.offers(t, protocol.BulkOperations, "bulk execution")
	createSequence(t, e, "photos")
	e.Servers[0].Exec(t, append([]string{"USE " + e.Schemas[0]}, suspectTables...)...)
	p, flags := e.bulkPair(t)
	before := e.Proxy.Stats().SuspectIDs
	for _, table := range []string{"others", "photos"} {
		id := p.Proxy.do(protocol.ComStmtPrepare, "INSERT INTO "+table+" (title) VALUES (?)")[5:9]
		for _, f := range flags {
			answer := p.Proxy.do(protocol.ComStmtBulkExecute, string(id)+bulkRows(f, typeString, bulkText("a"), bulkText("b")))
			if answer[protocol.HeaderSize] == 0xff {
				t.Errorf("%s: %v", table, serverError(t, answer))
			}
		}
	}
	if n := e.Proxy.Stats().SuspectIDs - before; n != 0 {
		t.Errorf("got %d suspects, want none", n)
	}
}
