package proxy_test

import (
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/go-sql-driver/mysql"

	"seqproxy/protocol"
	"seqproxy/proxy"
)

// routed is a row of EXPLAIN FORMAT=ROUTE, "" for NULL.
type routed struct {
	Kind, Shard, Why, Node, Sequences, Text, Pin, Code, State, Message string
}

func explainRoute(t *testing.T, c *sql.Conn, statement string, prepared bool) (r routed) {
	t.Helper()
	var values [10]sql.NullString
	var to [10]any
	for i := range values {
		to[i] = &values[i]
	}
	text := "EXPLAIN FORMAT=ROUTE " + statement
	row := func() error { return c.QueryRowContext(t.Context(), text).Scan(to[:]...) }
	if prepared {
		row = func() error {
			p, err := c.PrepareContext(t.Context(), text)
			if err != nil {
				return err
			}
			defer p.Close()
			return p.QueryRowContext(t.Context()).Scan(to[:]...)
		}
	}
	if err := row(); err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	for i, field := range []*string{&r.Kind, &r.Shard, &r.Why, &r.Node, &r.Sequences, &r.Text, &r.Pin, &r.Code, &r.State, &r.Message} {
		*field = values[i].String
	}
	return r
}

// kindCounts returns how many statements of each kind the proxy has counted.
func (e *env) kindCounts() map[proxy.Kind]uint64 {
	all := make(map[proxy.Kind]uint64)
	for _, c := range e.Proxy.Stats().Statements {
		all[c.Kind] += c.N
	}
	return all
}

// TestExplainRouteSaysWhatBecomesOfAStatement explains statements and then runs them: the proxy
// counts them under the kind that it foretold.
func TestExplainRouteSaysWhatBecomesOfAStatement(t *testing.T) {
	e := newEnv(t, setup{Shards: 2})
	d := e.Schemas[0]
	e.Servers[0].Exec(t, "CREATE TABLE "+d+".t (id BIGINT PRIMARY KEY, a INT)", "CREATE TABLE "+d+".bound (id BIGINT PRIMARY KEY, a INT)")
	e.Servers[1].Exec(t, "CREATE TABLE "+e.Schemas[1]+".u (a INT)")
	c := e.Conn(t, d, nil)
	exec(t, c, "CREATE SEQUENCE photos", "CREATE SEQUENCE keys_of_bound OWNED BY "+d+".bound.id", "DO 1")
	owned := "it owns schema " + d
	node := [2]string{e.Servers[0].Addr(), e.Servers[1].Addr()}
	next := func() string {
		t.Helper()
		var all string
		rows, err := c.QueryContext(t.Context(), "SHOW SEQUENCES")
		if err != nil {
			t.Fatal(err)
		}
		defer rows.Close()
		names, err := rows.Columns()
		if err != nil {
			t.Fatal(err)
		}
		for rows.Next() {
			values := make([]sql.NullString, len(names))
			to := make([]any, len(names))
			for i := range values {
				to[i] = &values[i]
			}
			if err := rows.Scan(to...); err != nil {
				t.Fatal(err)
			}
			all += values[0].String + " " + values[1].String + ";"
		}
		return all
	}
	for _, test := range []struct {
		sql  string
		want routed
	}{
		{"SELECT 1", routed{Kind: "relay", Shard: "s0", Why: owned, Node: node[0]}},
		{"  INSERT INTO t VALUES (7000, 1)", routed{Kind: "relay", Shard: "s0", Why: owned, Node: node[0]}},
		{"SELECT CONNECTION_ID()", routed{Kind: "own"}},
		{"SELECT NEXTVAL('photos')", routed{Kind: "nextval", Sequences: "photos (1)"}},
		{"SELECT NEXTVAL('photos', 5)", routed{Kind: "nextval", Sequences: "photos (5)"}},
		{"SELECT LAST_INSERT_ID()", routed{Kind: "last_insert_id"}},
		{"INSERT INTO t VALUES (NEXTVAL('photos'), 2), (NEXTVAL('photos'), 3)", routed{
			Kind: "rewrite", Shard: "s0", Why: owned, Node: node[0], Sequences: "photos (1), photos (1)",
			Text: "INSERT INTO t VALUES (LAST_INSERT_ID(?), 2), (CAST(? AS UNSIGNED), 3)",
		}},
		{"INSERT INTO bound (a) VALUES (1), (2)", routed{
			Kind: "rewrite", Shard: "s0", Why: owned, Node: node[0], Sequences: "keys_of_bound (2)",
		}},
		{"SELECT NEXTVAL('photos'), a FROM t", routed{Kind: "rewrite", Shard: "s0", Why: owned, Node: node[0], Sequences: "photos (1 for each row)"}},
		{"USE " + e.Schemas[1], routed{Kind: "relay", Shard: "s1", Why: "it owns schema " + e.Schemas[1], Node: node[1]}},
		{"USE " + d, routed{Kind: "relay", Shard: "s0", Why: owned, Node: node[0]}},
		{"SHOW SEQUENCES", routed{Kind: "admin"}},
		{"SELECT COUNT(*) FROM t WHERE id = NEXTVAL('photos')", routed{Kind: "refused", Code: "1235", State: "42000"}},
		{"SELECT NEXTVAL('videos')", routed{Kind: "refused", Code: "4091", State: "42S02", Message: "Unknown SEQUENCE: 'videos'"}},
		{"SELECT GET_LOCK('x', 0)", routed{Kind: "relay", Shard: "s0", Why: owned, Node: node[0], Pin: "a lock was taken with GET_LOCK"}},
		// The session holds the lock.
		{"USE " + e.Schemas[1] + " ", routed{Kind: "refused", Code: "1235", State: "42000"}},
	} {
		before, shown := next(), routed{}
		for _, prepared := range []bool{false, true} {
			got := explainRoute(t, c, test.sql, prepared)
			if want := test.want; want.Text == "" && want.Kind == "rewrite" && strings.Contains(got.Text, "?") != strings.Contains(want.Sequences, "row") ||
				want.Kind == "refused" && want.Message == "" && got.Message != "" {
				want.Text, want.Message = got.Text, got.Message
				if got != want {
					t.Errorf("%s (prepared: %v):\n got %+v\nwant %+v", test.sql, prepared, got, want)
				}
			} else if got != want {
				t.Errorf("%s (prepared: %v):\n got %+v\nwant %+v", test.sql, prepared, got, want)
			}
			shown = got
		}
		if after := next(); after != before {
			t.Errorf("%s: the sequences went from %s to %s", test.sql, before, after)
		}
		counts := e.kindCounts()
		rows, err := c.QueryContext(t.Context(), test.sql)
		if err == nil {
			for rows.Next() {
			}
			err = rows.Err()
			rows.Close()
		}
		if refused := new(mysql.MySQLError); (err != nil) != (shown.Kind == "refused") || err != nil && (!errors.As(err, &refused) || fmt.Sprint(refused.Number) != shown.Code) {
			t.Errorf("%s: got %v, foretold was %+v", test.sql, err, shown)
		}
		if err := c.PingContext(t.Context()); err != nil { // a ping makes the session report its counts
			t.Fatal(err)
		}
		for kind, n := range e.kindCounts() {
			if foretold := kind.String() == shown.Kind; foretold && n == counts[kind] {
				t.Errorf("%s: was foretold as %s, but was counted as %v after %v", test.sql, shown.Kind, e.kindCounts(), counts)
			}
		}
	}
	var n int
	if err := e.DirectConn(t, 0, d, nil).QueryRowContext(t.Context(), "SELECT COUNT(*) FROM t").Scan(&n); err != nil || n != 3 {
		t.Errorf("rows: got %d, %v, want the 3 of the statements that were run", n, err)
	}
}

// TestExplainRouteRefusesATextThatIsNotReadToItsEnd: EXPLAIN refuses where the proxy does, because
// the text could bring rows in.
func TestExplainRouteRefusesATextThatIsNotReadToItsEnd(t *testing.T) {
	e := newEnv(t, bound(proxy.Binding{Table: "t", Column: "id", Sequence: "photos"}))
	c := e.Conn(t, e.Schemas[0], func(c *mysql.Config) { c.MultiStatements = true })
	exec(t, c, "CREATE TABLE t (id BIGINT PRIMARY KEY, a INT)", "CREATE SEQUENCE photos")
	for _, text := range []string{
		"HELP 'x'; INSERT INTO t (a) VALUES (1); '",
		"CREATE PROCEDURE first() SELECT 1; INSERT INTO t (a) VALUES (1)",
	} {
		wantError(t, c, 1235, text)
		if got := explainRoute(t, c, text, false); got.Kind != "refused" || got.Code != "1235" {
			t.Errorf("%s: got %+v, want it refused", text, got)
		}
	}
}

// TestExplainRouteOfAKill: the outcome depends on whose id it is.
func TestExplainRouteOfAKill(t *testing.T) {
	e := newEnv(t, setup{})
	c, other := e.Conn(t, e.Schemas[0], func(c *mysql.Config) { c.MultiStatements = true }), e.Conn(t, e.Schemas[0], nil)
	id := value(t, other, "SELECT CONNECTION_ID()")
	exec(t, c, "SET @other = "+id)
	for _, test := range []struct{ sql, kind, text string }{
		{"KILL " + id, "own", ""},
		{"KILL @other", "own", ""},
		{"KILL CONNECTION_ID() + 0", "relay", ""},
		{"KILL 7", "relay", ""},
		{"DO 1; KILL " + id + "; DO 2", "rewrite", "DO 1; DO 0; DO 2"},
	} {
		if got := explainRoute(t, c, test.sql, false); got.Kind != test.kind || got.Text != test.text {
			t.Errorf("%s: got %+v, want it %s as %q", test.sql, got, test.kind, test.text)
		}
	}
	if got := explainRoute(t, c, "KILL QUERY CONNECTION_ID()", false); got.Kind != "rewrite" || got.Shard != "s0" ||
		!strings.HasPrefix(got.Text, "KILL QUERY ") || strings.HasSuffix(got.Text, value(t, c, "SELECT CONNECTION_ID()")) {
		t.Errorf("got %+v, want it sent with the server's id", got)
	}
	if err := other.PingContext(t.Context()); err != nil {
		t.Errorf("EXPLAIN of a KILL carried it out: %v", err)
	}
}

// TestNoServerKnowsExplainRoute: the words shadow no statement of a server.
func TestNoServerKnowsExplainRoute(t *testing.T) {
	e := newEnv(t, setup{})
	w := e.Wire(t, e.Servers[0].Addr(), wireLogin{Schema: e.Schemas[0]})
	for _, sql := range []string{"EXPLAIN FORMAT=ROUTE SELECT 1", "explain format = route select 1"} {
		w.sendText(sql)
		code := uint16(1791) // ER_UNKNOWN_EXPLAIN_FORMAT
		w.answerError(sql, code, "")
	}
	// A text that a server reads in another way goes to the server.
	p := e.Pair(t, 0, wireLogin{Schema: e.Schemas[0]})
	for _, sql := range []string{"EXPLAIN format", "/*! EXPLAIN FORMAT=ROUTE SELECT 1 */", "SELECT 1; EXPLAIN FORMAT=ROUTE SELECT 1", "EXPLAIN FORMAT=JSON SELECT 1"} {
		p.query(sql)
	}
}

func TestExplainRouteIsForAdmins(t *testing.T) {
	e := newEnv(t, setup{Proxy: func(o *proxy.Options) { o.Users[0].Admin = false }})
	w := e.Wire(t, e.Addr(), wireLogin{Schema: e.Schemas[0]})
	w.sendText("EXPLAIN FORMAT=ROUTE SELECT 1")
	w.answerError("EXPLAIN FORMAT=ROUTE", 1227, "admin_users")
}

// TestExplainRouteAtTheAdminAddress: the answer is that of a session at the client address, and
// leaves nothing in the asking session, which has no servers.
func TestExplainRouteAtTheAdminAddress(t *testing.T) {
	e := newEnv(t, setup{Shards: 2, AdminAddress: true})
	d := e.Schemas[0]
	e.Servers[0].Exec(t, "CREATE TABLE "+d+".t (id BIGINT PRIMARY KEY, a INT)", "CREATE TABLE "+d+".bound (id BIGINT PRIMARY KEY, a INT)")
	c := e.Conn(t, d, nil)
	exec(t, c, "CREATE SEQUENCE photos", "CREATE SEQUENCE keys_of_bound OWNED BY "+d+".bound.id", "DO 1")
	admin := one(t, e.open(t, e.AdminAddr(), d, nil))
	for _, sql := range []string{
		"SELECT 1", "SELECT NEXTVAL('photos')", "INSERT INTO t VALUES (NEXTVAL('photos'), 2)", "INSERT INTO bound (a) VALUES (1), (2)",
		"SELECT NEXTVAL('photos'), a FROM t", "USE " + e.Schemas[1], "SHOW SEQUENCES", "SELECT NEXTVAL('videos')", "SELECT COUNT(*) FROM t WHERE id = NEXTVAL('photos')",
	} {
		for _, prepared := range []bool{false, true} {
			if got, want := explainRoute(t, admin, sql, prepared), explainRoute(t, c, sql, prepared); got != want {
				t.Errorf("%s (prepared: %v): at the admin address\n got %+v\nwant %+v", sql, prepared, got, want)
			}
		}
	}
	exec(t, admin, "USE "+e.Schemas[1])
	if got := explainRoute(t, admin, "SELECT 1", false); got.Shard != "s1" {
		t.Errorf("after USE of another shard's schema: got %+v, want s1", got)
	}
	var n int
	err := admin.QueryRowContext(t.Context(), "SELECT COUNT(*) FROM t").Scan(&n)
	if refused := new(mysql.MySQLError); !errors.As(err, &refused) || refused.Number != 1235 {
		t.Errorf("data at the admin address: got %v, want 1235", err)
	}
	for _, s := range e.Proxy.SessionList() {
		if s.AtAdmin && len(s.Shards) > 0 {
			t.Errorf("the session at the admin address keeps connections: %+v", s)
		}
	}
}

// An EXPLAIN at the admin address may wait for a paused shard, and is answered after it.
func TestExplainRouteAtTheAdminAddressWaitsForAPausedShard(t *testing.T) {
	e := newEnv(t, setup{AdminAddress: true})
	exec(t, e.Conn(t, e.Schemas[0], nil), "CREATE TABLE bound (id BIGINT PRIMARY KEY, a INT)", "CREATE SEQUENCE photos OWNED BY "+e.Schemas[0]+".bound.id")
	w := e.Wire(t, e.AdminAddr(), wireLogin{Schema: e.Schemas[0]})
	e.pause(t, "")
	w.sendText("EXPLAIN FORMAT=ROUTE INSERT INTO bound (a) VALUES (1)")
	e.awaitPausedSessions(t, 1)
	e.resume(t, "")
	if got := w.receive(protocol.ShapeResult, nil); !strings.Contains(string(got), "rewrite") {
		t.Errorf("got %q, want it rewritten", got)
	}
}

func TestExplainRouteRemarksOnSchemasOfOtherShards(t *testing.T) {
	e := newEnv(t, setup{Shards: 2})
	c := e.Conn(t, e.Schemas[0], nil)
	other := e.Schemas[1]
	for statement, remarked := range map[string]bool{
		"SELECT * FROM " + other + ".u":                            true,
		"INSERT INTO `" + other + "`.u VALUES (NEXTVAL('photos'))": true,
		"CREATE TABLE " + other + ".v (a INT)":                     true,
		"SELECT * FROM " + e.Schemas[0] + ".t":                     false,
		"SELECT * FROM information_schema.TABLES":                  false,
		"SELECT " + other + ".a FROM t AS " + other:                false,
		"SELECT NEXTVAL('photos')":                                 false,
	} {
		if strings.Contains(statement, "NEXTVAL") {
			exec(t, c, "CREATE SEQUENCE IF NOT EXISTS photos")
		}
		got := explainRoute(t, c, statement, false)
		if got.Message == "" == remarked || remarked && (!strings.Contains(got.Message, other) || !strings.Contains(got.Message, "s1") || got.Shard != "s0") {
			t.Errorf("%s: got %+v, want a remark: %v", statement, got, remarked)
		}
	}
	exec(t, c, "USE "+other)
	if got := explainRoute(t, c, "SELECT * FROM "+other+".u", false); got.Message != "" || got.Shard != "s1" {
		t.Errorf("with that schema: got %+v", got)
	}
}
