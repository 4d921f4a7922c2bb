package proxy_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/go-sql-driver/mysql"

	"seqproxy/protocol"
	"seqproxy/proxy"
	"seqproxy/sequence"
)

// answers runs a query and returns its column names, rows, and the error's code and state, as text.
func answers(t testing.TB, c *sql.Conn, query string, args ...any) string {
	t.Helper()
	rows, err := c.QueryContext(context.Background(), query, args...)
	var refused *mysql.MySQLError
	if errors.As(err, &refused) {
		return fmt.Sprintf("error %d/%s", refused.Number, refused.SQLState[:])
	}
	if err != nil {
		t.Fatalf("%s: %v", query, err)
	}
	defer rows.Close()
	columns, err := rows.Columns()
	if err != nil {
		t.Fatal(err)
	}
	out := strings.Join(columns, ",")
	for rows.Next() {
		values := make([]sql.NullString, len(columns))
		into := make([]any, len(values))
		for i := range values {
			into[i] = &values[i]
		}
		if err := rows.Scan(into...); err != nil {
			t.Fatalf("%s: %v", query, err)
		}
		out += ":"
		for _, v := range values {
			if v.Valid {
				out += " " + v.String
			} else {
				out += " NULL"
			}
		}
	}
	if err := rows.Err(); err != nil {
		if errors.As(err, &refused) {
			return fmt.Sprintf("error %d/%s", refused.Number, refused.SQLState[:])
		}
		t.Fatalf("%s: %v", query, err)
	}
	return out
}

// seqproxy's sequences give what MariaDB's own give for the same statements, but for the type:
// numbers are BIGINT UNSIGNED here.
func TestSequencesDoAsMariaDBsOwn(t *testing.T) {
	e := newEnv(t, setup{})
	if !e.Servers[0].IsMariaDB() {
		t.Skip("MySQL has no sequences")
	}
	direct, through := e.DirectConn(t, 0, e.Schemas[0], nil), e.Conn(t, e.Schemas[0], nil)
	for _, c := range []*sql.Conn{direct, through} {
		exec(t, c, "CREATE SEQUENCE s", "CREATE SEQUENCE r", "CREATE TABLE "+map[*sql.Conn]string{direct: "a", through: "b"}[c]+" (id BIGINT, n BIGINT)")
	}
	same := func(query string) {
		t.Helper()
		if got, want := answers(t, through, query), answers(t, direct, query); got != want {
			t.Errorf("%s:\n got %s\nwant %s", query, got, want)
		}
	}
	for _, query := range []string{
		"SELECT LASTVAL(s), PREVIOUS VALUE FOR s, LASTVAL(r)",
		"SELECT NEXTVAL(s)",
		"SELECT NEXT VALUE FOR s",
		"SELECT NEXT VALUE FOR s AS a, NEXTVAL(s) b, LASTVAL(s), previous  value for s, LASTVAL(r)",
		"SELECT LASTVAL(s), NEXTVAL(s), LASTVAL(s), NEXTVAL(r), LASTVAL(r)",
		"SELECT LASTVAL(s) + 1 AS a, LASTVAL(r) IS NULL, NEXT VALUE FOR r * 10",
		"SELECT LASTVAL(s) LIMIT 1",
		"SELECT LASTVAL(s) UNION SELECT 7",
		"SELECT LASTVAL(s), one FROM (SELECT 1 AS one) v WHERE one < LASTVAL(s)",
		"SELECT LASTVAL(nobody)", "SELECT NEXTVAL(nobody)", "SELECT PREVIOUS VALUE FOR nobody", "SELECT 1 + NEXT VALUE FOR nobody",
		"SELECT NEXTVAL(nowhere.s)", "SELECT LASTVAL(nowhere.s)",
		"SELECT LASTVAL(1)", "SELECT LASTVAL()", "SELECT NEXT VALUE FOR", "SELECT LASTVAL(s, 1)", "SELECT LASTVAL(@x)",
		"SELECT LASTVAL(s)",
		"SELECT SETVAL(s, 100)", "SELECT LASTVAL(s), NEXTVAL(s)", "SELECT SETVAL(s, 5), SETVAL(s, 101), SETVAL(s, -1) AS x, NEXTVAL(s), LASTVAL(s)",
		"SELECT SETVAL(s, 200, 0)", "SELECT NEXTVAL(s)", "SELECT SETVAL(s, 200, 0)", "SELECT SETVAL(s, 201, FALSE)", "SELECT SETVAL(s, 200)", "SELECT SETVAL(s, 300, 1, 0)",
		"SELECT SETVAL(s, 300, TRUE)", "SELECT SETVAL(s, 300, 0)", "SELECT SETVAL(s, 301, 0)", "SELECT SETVAL(s, +400) AS a", "SELECT NEXT VALUE FOR s, SETVAL(s, 500), NEXT VALUE FOR s, LASTVAL(s)",
		"SELECT SETVAL(nobody, 5)", "SELECT SETVAL(nobody, -5)", "SELECT SETVAL(nowhere.s, 5)",
		"DROP SEQUENCE s",
		"SELECT LASTVAL(s)",
		"CREATE SEQUENCE s START WITH 5000",
		"SELECT LASTVAL(s)",
		"SELECT NEXTVAL(s), LASTVAL(s)",
	} {
		same(query)
	}
	// A statement that fails keeps no number and returns none.
	exec(t, direct, "BEGIN", "INSERT INTO a VALUES (NEXTVAL(s), LASTVAL(s)), (NEXTVAL(s), LASTVAL(s))", "ROLLBACK", "INSERT INTO a VALUES (NEXTVAL(s), LASTVAL(s)), (LASTVAL(s), LASTVAL(r))")
	exec(t, through, "BEGIN", "INSERT INTO b VALUES (NEXTVAL(s), LASTVAL(s)), (NEXTVAL(s), LASTVAL(s))", "ROLLBACK", "INSERT INTO b VALUES (NEXTVAL(s), LASTVAL(s)), (LASTVAL(s), LASTVAL(r))")
	if got, want := answers(t, direct, "SELECT * FROM b"), answers(t, direct, "SELECT * FROM a"); got != want {
		t.Errorf("rows: got %s, want %s", got, want)
	}
	// Prepared.
	for _, query := range []string{"SELECT LASTVAL(s), LASTVAL(r)", "SELECT LASTVAL(s), ? AS a", "SELECT NEXTVAL(s), LASTVAL(s), ? AS a"} {
		for range 2 {
			var args []any
			if strings.Contains(query, "?") {
				args = []any{5}
			}
			stmt := func(c *sql.Conn) string {
				rows, err := c.PrepareContext(t.Context(), query)
				if err != nil {
					t.Fatalf("%s: %v", query, err)
				}
				defer rows.Close()
				values := make([]sql.NullInt64, strings.Count(query, ",")+1)
				into := make([]any, len(values))
				for i := range values {
					into[i] = &values[i]
				}
				if err := rows.QueryRow(args...).Scan(into...); err != nil {
					t.Fatalf("%s: %v", query, err)
				}
				return fmt.Sprint(values)
			}
			if got, want := stmt(through), stmt(direct); got != want {
				t.Errorf("prepared %s: got %s, want %s", query, got, want)
			}
		}
	}
	// Statements that make LASTVAL NULL, and others that do not.
	exec(t, direct, "CREATE SEQUENCE short MAXVALUE 2")
	if _, err := e.Sequences.Create(t.Context(), sequence.CreateOptions{Name: "short", Max: 2}); err != nil {
		t.Fatal(err)
	}
	for _, query := range []string{"SELECT NEXTVAL(short), NEXTVAL(short)", "SELECT LASTVAL(short)", "SELECT NEXTVAL(short)", "SELECT LASTVAL(short)", "SELECT NEXTVAL(short)", "SELECT LASTVAL(s)"} {
		same(query)
	}
	exec(t, direct, "ALTER SEQUENCE s RESTART WITH 9000 CACHE 5")
	restart, cache := uint64(9000), uint64(5)
	if _, err := e.Sequences.Alter(t.Context(), []byte("s"), sequence.Alteration{Restart: &restart, Cache: &cache}); err != nil {
		t.Fatal(err)
	}
	same("SELECT LASTVAL(s)")
	same("SELECT NEXTVAL(s), LASTVAL(s)")
	exec(t, direct, "CREATE OR REPLACE SEQUENCE s START WITH 20000")
	if _, err := e.Sequences.Create(t.Context(), sequence.CreateOptions{Name: "s", Start: 20000, OrReplace: true}); err != nil {
		t.Fatal(err)
	}
	same("SELECT LASTVAL(s)")
	same("SELECT NEXTVAL(s), LASTVAL(s)")
}

func TestLastvalIsForgottenWithTheSession(t *testing.T) {
	e := newEnv(t, setup{})
	if !e.Servers[0].IsMariaDB() {
		t.Skip("MySQL has no sequences")
	}
	e.Servers[0].Exec(t, "CREATE SEQUENCE "+e.Schemas[0]+".s")
	p := e.Pair(t, 0, wireLogin{Schema: e.Schemas[0]})
	p.Proxy.query("CREATE SEQUENCE s")
	for _, w := range []*wire{p.Proxy, p.Direct} {
		w.query("SELECT NEXTVAL(s)")
	}
	p.same(protocol.ComQuery, "SELECT LASTVAL(s)")
	p.same(protocol.ComResetConn, "")
	p.same(protocol.ComQuery, "SELECT LASTVAL(s)")
	for _, w := range []*wire{p.Proxy, p.Direct} {
		w.query("SELECT NEXTVAL(s)")
		w.change(e.User, e.Password, e.Schemas[0], "mysql_native_password")
	}
	p.same(protocol.ComQuery, "SELECT LASTVAL(s)")
}

// A name with a dot is the sequence of that name, unless the schema is that of the table.
func TestAQualifiedNameMeansTheSameInEveryStatement(t *testing.T) {
	e := newEnv(t, setup{})
	c := e.Conn(t, e.Schemas[0], nil)
	sequenceSchema := e.SequenceSchema
	exec(t, c, "CREATE SEQUENCE "+sequenceSchema+".s", "CREATE SEQUENCE album.s START WITH 100")
	for query, want := range map[string]string{
		"SELECT NEXTVAL(" + sequenceSchema + ".s) AS a, NEXTVAL('s') AS b, NEXT VALUE FOR `" + sequenceSchema + "`.s AS c, " + sequenceSchema + ".s.CURRVAL AS d": "a,b,c,d: 1 2 3 3",
		"SELECT NEXTVAL(album.s) AS a, NEXTVAL('album.s') AS b, LASTVAL(`album.s`) AS c":                                                                          "a,b,c: 100 101 101",
		"SELECT NEXTVAL('" + sequenceSchema + ".s')": "error 4091/42S02",
		"SELECT NEXTVAL(album.t)":                    "error 4091/42S02",
		"SELECT LASTVAL(album.t)":                    "error 4091/42S02",
	} {
		if got := answers(t, c, query); got != want {
			t.Errorf("%s: got %s, want %s", query, got, want)
		}
	}
	exec(t, c, "DROP SEQUENCE "+sequenceSchema+".s, album.s")
	if got := answers(t, c, "SELECT NEXTVAL(s)"); got != "error 4091/42S02" {
		t.Errorf("a sequence that was dropped: got %s", got)
	}
}

func TestEverySpellingTakesTheNumber(t *testing.T) {
	o := newOracle(t, setup{}, append([]string{
		"CREATE TABLE links (next INT)", "INSERT INTO links VALUES (7)", "CREATE TABLE videos (nextval INT)", "INSERT INTO videos VALUES (8)",
		"CREATE TABLE chains (next INT)", "INSERT INTO chains VALUES (9)",
	}, photosTables...)...)
	o.fresh(t)
	c := o.Conn(t, o.Schemas[0], nil)
	d := o.DirectConn(t, 0, o.Schemas[0], nil)
	exec(t, c, "CREATE SEQUENCE links", "CREATE SEQUENCE videos", "CREATE SEQUENCE mycatseq_videos START WITH 500")
	for _, test := range []struct {
		query string
		takes int
		want  string // of the first row, with %d for the number
	}{
		{"SELECT NEXTVAL('photos')", 1, "NEXTVAL('photos'): %d"},
		{"SELECT NEXTVAL(" + o.SequenceSchema + ".photos)", 1, "NEXTVAL(" + o.SequenceSchema + ".photos): %d"},
		{"SELECT NEXT VALUE FOR photos", 1, "NEXT VALUE FOR photos: %d"},
		{"SELECT NEXT VALUE FOR " + o.SequenceSchema + ".photos x LIMIT 1", 1, "x: %d"},
		{"SELECT NEXT VALUE FOR MYCATSEQ_PHOTOS", 1, "NEXT VALUE FOR MYCATSEQ_PHOTOS: %d"},
		{"SELECT NEXT VALUE FOR mycatseq_photos + 0 AS a", 1, "a: %d"},
		{"SELECT NEXT VALUE FROM photos", 1, "nextval: %d"},
		{"SELECT NEXT 5 VALUES FROM photos;", 5, "nextval: %d"},
		{"SELECT NEXTVAL('photos', 10)", 10, "NEXTVAL('photos', 10): %d"},
		{"SELECT NEXTVAL('photos', 10) AS a, 1 AS b", 10, "a,b: %d 1"},
		{"SELECT photos.NEXTVAL", 1, "photos.NEXTVAL: %d"},
		{"SELECT photos . nextval AS a FROM dual", 1, "a: %d"},
		{"SELECT " + o.SequenceSchema + ".photos.NEXTVAL + 0 AS a", 1, "a: %d"},
		{"SELECT (SELECT photos.NEXTVAL) AS a", 1, "a: %d"},

		{"SELECT NEXTVAL('links')", 0, "NEXTVAL('links'): 1"},
		// The table has a column of that name, too.
		{"SELECT next value FROM links", 0, "nextval: 2"},
		{"SELECT next AS value FROM links", 0, "value: 7"},
		{"SELECT next value FROM chains", 0, answers(t, d, "SELECT next value FROM chains")},
		{"SELECT videos.nextval FROM videos", 0, "nextval: 8"},
		{"SELECT v.nextval FROM videos v", 0, "nextval: 8"},
		{"SELECT NEXT VALUE FOR MYCATSEQ_VIDEOS AS a", 0, "a: 500"},
		{"SELECT NEXT VALUE FROM videos", 0, "nextval: 1"},
		{"SELECT nobody.nextval", 0, answers(t, d, "SELECT nobody.nextval")},
		{"SELECT nowhere.photos.nextval", 0, answers(t, d, "SELECT nowhere.photos.nextval")},
		{"SELECT NEXTVAL(nowhere.photos)", 0, "error 4091/42S02"},
		{"SELECT NEXT VALUE FOR MYCATSEQ_NOBODY", 0, "error 4091/42S02"},
		{"SELECT LASTVAL('nobody')", 0, "error 4091/42S02"},
	} {
		for _, how := range []string{"text", "prepared"} {
			next := o.nextNumber(t, "photos")
			want := test.want
			if strings.Contains(want, "%d") {
				want = fmt.Sprintf(want, next)
			}
			got := ""
			if how == "text" {
				got = answers(t, c, test.query)
			} else if test.takes > 0 {
				stmt, err := c.PrepareContext(t.Context(), strings.TrimSuffix(test.query, ";"))
				if err != nil {
					t.Errorf("prepare %s: %v", test.query, err)
					continue
				}
				var n, other uint64
				into := []any{&n, &other}[:strings.Count(test.want, ",1")+strings.Count(test.want, ",b")+1]
				if err := stmt.QueryRow().Scan(into...); err != nil || n != next {
					t.Errorf("prepared %s: got %d, %v, want %d", test.query, n, err, next)
				}
				stmt.Close()
			}
			if how == "text" && got != want {
				t.Errorf("%s: got %s, want %s", test.query, got, want)
			}
			if how == "text" || test.takes > 0 {
				if after := o.nextNumber(t, "photos"); after != next+uint64(test.takes) {
					t.Errorf("%s %s: %d numbers were taken, want %d", how, test.query, after-next, test.takes)
				}
			}
		}
	}
	// In an INSERT. The number is the session's LAST_INSERT_ID() and LASTVAL().
	next := o.nextNumber(t, "photos")
	exec(t, c, "INSERT INTO photos (id) VALUES (NEXT VALUE FOR photos), (NEXTVAL('photos', 3)), (NEXT VALUE FOR MYCATSEQ_photos)")
	if got, want := answers(t, c, "SELECT GROUP_CONCAT(id ORDER BY id), LAST_INSERT_ID(), LASTVAL(photos) FROM photos WHERE id >= "+fmt.Sprint(next)),
		fmt.Sprintf(": %d,%d,%d %d %d", next, next+1, next+4, next, next+4); !strings.HasSuffix(got, want) {
		t.Errorf("got %s, want %s", got, want)
	}
}

func TestNamesThatAreTheServersGoThereInEverySpelling(t *testing.T) {
	e := newEnv(t, setup{Proxy: func(o *proxy.Options) { o.Unknown = proxy.UnknownRelay }})
	c := e.Conn(t, e.Schemas[0], nil)
	exec(t, c, "CREATE TABLE links (next INT)", "INSERT INTO links VALUES (7)")
	d := e.DirectConn(t, 0, e.Schemas[0], nil)
	if e.Servers[0].IsMariaDB() {
		exec(t, d, "CREATE SEQUENCE theirs START WITH 100")
	}
	exec(t, c, "CREATE SEQUENCE "+e.SequenceSchema+".ours START WITH 5")
	for _, query := range []string{
		"SELECT NEXT VALUE FOR theirs > 99 AS a", "SELECT NEXTVAL(theirs) > 99 AS a", "SELECT LASTVAL(theirs) > 0 AS a", "SELECT PREVIOUS VALUE FOR theirs > 0 AS a",
		"SELECT SETVAL(theirs, 1000, 1, 1) > 0 AS a", "SELECT theirs.nextval", "SELECT next value FROM links", "SELECT NEXT 5 VALUES FROM theirs", "SELECT NEXT VALUE FROM theirs",
		"SELECT NEXTVAL(nowhere.ours)", "SELECT NEXT VALUE FOR MYCATSEQ_theirs",
	} {
		got, want := answers(t, c, query), answers(t, d, query)
		if got != want {
			t.Errorf("%s: got %s, want %s", query, got, want)
		}
	}
	if got := answers(t, c, "SELECT NEXT VALUE FOR ours, NEXTVAL(ours), LASTVAL(ours)"); !strings.HasSuffix(got, ": 5 6 6") {
		t.Errorf("ours: got %s, want 5 6 6", got)
	}
}

func TestSetvalIsDoneOnceOrNotAtAll(t *testing.T) {
	o := newOracle(t, setup{}, photosTables...)
	o.fresh(t)
	c := o.Conn(t, o.Schemas[0], multi)
	before := o.nextNumber(t, "photos")
	for _, text := range []string{
		"SELECT SETVAL('photos', 500000) + 1", "SELECT SETVAL('photos', 500000), 1", "SELECT SETVAL(photos, 500000) FROM photos", "SELECT 1 WHERE SETVAL(photos, 500000)",
		"INSERT INTO photos (id) VALUES (SETVAL('photos', 500000))", "UPDATE photos SET n = SETVAL(photos, 500000)", "DO SETVAL(photos, 500000)", "SET @x = SETVAL(photos, 500000)",
		"SELECT 1; SELECT SETVAL(photos, 500000)", "SELECT SETVAL(photos, 500000) LIMIT 0", "SELECT SETVAL(photos, 500000) UNION SELECT 1",
		"SELECT SETVAL('photos', 1 + 500000)", "SELECT SETVAL('photos', @x)", "SELECT SETVAL('photos', 500000, 1, 2)", "SELECT SETVAL('photos')", "SELECT SETVAL('photos', 500000, 1, 0, 0)",
	} {
		wantError(t, c, 1235, text, "SETVAL")
		if !strings.Contains(text, ";") {
			if stmt, err := c.PrepareContext(t.Context(), text); err == nil {
				stmt.Close()
				t.Errorf("prepare %s: no error", text)
			}
		}
	}
	wantError(t, c, 1064, "SELECT SETVAL('photos', 500000") // the server's error
	if after := o.nextNumber(t, "photos"); after != before {
		t.Errorf("the sequence went from %d to %d", before, after)
	}
	exec(t, c, "SELECT LAST_INSERT_ID(7)")
	if got := answers(t, c, "SELECT SETVAL('photos', 500000) AS a, NEXTVAL(photos) AS b, SETVAL(photos, 3, 0) c FROM dual"); got != "a,b,c: 500000 500001 NULL" {
		t.Errorf("got %s", got)
	}
	if got := answers(t, c, "SELECT SETVAL('photos', 600000) AS a, LASTVAL(photos) AS b"); got != "a,b: 600000 500001" {
		t.Errorf("got %s", got)
	}
	stmt, err := c.PrepareContext(t.Context(), "SELECT SETVAL('photos', 700000, 0) AS a")
	if err != nil {
		t.Fatal(err)
	}
	defer stmt.Close()
	var got [3]sql.NullInt64
	for i := range got {
		if i == 2 {
			exec(t, c, "SELECT NEXTVAL(photos)")
		}
		if err := stmt.QueryRow().Scan(&got[i]); err != nil {
			t.Fatal(err)
		}
	}
	if want := [3]sql.NullInt64{{Int64: 700000, Valid: true}, {Int64: 700000, Valid: true}, {}}; got != want {
		t.Errorf("prepared: got %v, want %v", got, want)
	}
}

// The columns of LASTVAL() and SETVAL() are MariaDB's to the byte, whether the proxy answers or
// rewrites, as text and prepared.
func TestTheColumnOfLastvalIsMariaDBs(t *testing.T) {
	e := newEnv(t, setup{})
	if !e.Servers[0].IsMariaDB() {
		t.Skip("MySQL has no sequences")
	}
	e.Servers[0].Exec(t, "CREATE SEQUENCE "+e.Schemas[0]+".s", "CREATE SEQUENCE "+e.Schemas[0]+".r", "CREATE TABLE "+e.Schemas[0]+".t (a INT)", "INSERT INTO "+e.Schemas[0]+".t VALUES (1)")
	p := e.Pair(t, 0, wireLogin{Schema: e.Schemas[0]})
	p.Proxy.query("CREATE SEQUENCE s")
	p.Proxy.query("CREATE SEQUENCE r")
	for _, w := range []*wire{p.Proxy, p.Direct} {
		w.query("SELECT NEXTVAL(s)")
	}
	for _, query := range []string{
		"SELECT LASTVAL(s)", "SELECT LASTVAL(r) AS a", "SELECT PREVIOUS VALUE FOR s", "SELECT SETVAL(s, 100)", "SELECT SETVAL(s, 5) x",
		"SELECT LASTVAL(s) FROM t", "SELECT LASTVAL(r) AS a FROM t", "SELECT LASTVAL(s), PREVIOUS VALUE FOR r, a FROM t",
	} {
		p.same(protocol.ComQuery, query)
	}
	for _, w := range []*wire{p.Proxy, p.Direct} { // NEXTVAL sets it here, and not in MariaDB
		w.query("SELECT LAST_INSERT_ID(1)")
	}
	for _, query := range []string{"SELECT LASTVAL(s)", "SELECT LASTVAL(r) AS a", "SELECT LASTVAL(s), PREVIOUS VALUE FOR r FROM t"} {
		p.prepare(query).sequential(protocol.ComStmtExecute, "\x00\x01\x00\x00\x00", "DO 1")
	}
	p.same(protocol.ComResetConn, "")
	p.same(protocol.ComQuery, "SELECT LASTVAL(s)")
}

// Wherever NEXTVAL('photos') gives numbers, every other spelling gives as many, and where it is an
// error, the others are, too.
func TestEverySpellingDoesInEveryPlaceWhatNextvalDoes(t *testing.T) {
	o := newOracle(t, setup{}, append([]string{
		"CREATE TABLE three (id BIGINT UNSIGNED, n BIGINT UNSIGNED)", "INSERT INTO three (n) VALUES (1), (2), (3)",
		"CREATE TABLE made (id BIGINT UNSIGNED PRIMARY KEY, n BIGINT UNSIGNED)", "CREATE PROCEDURE keep(n BIGINT UNSIGNED) SELECT n",
	}, photosTables...)...)
	o.fresh(t)
	c := o.Conn(t, o.Schemas[0], multi)
	type outcome struct {
		failed bool
		taken  uint64
	}
	run := func(text string) outcome {
		t.Helper()
		before := o.nextNumber(t, "photos")
		got := answers(t, c, text)
		return outcome{strings.HasPrefix(got, "error"), o.nextNumber(t, "photos") - before}
	}
	for _, place := range []string{
		"SELECT %s AS a", "SELECT %s AS a, n FROM three", "SELECT n, %s FROM three x WHERE n > 1 ORDER BY n DESC", "SELECT %s + 1 FROM three", "SELECT (SELECT %s) + 1",
		"INSERT INTO made (id) VALUES (%s), (%s)", "INSERT INTO made SET id = %s", "REPLACE INTO made VALUES (%s, 1)", "INSERT INTO made (id, n) SELECT %s, 5",
		"INSERT IGNORE INTO made (id) VALUES (%s) ON DUPLICATE KEY UPDATE n = 1", "INSERT INTO made (id, n) SELECT %s, n FROM three", "UPDATE three SET id = %s",
		"DELETE FROM three WHERE id = %s + 1000000", "SET @a = %s", "DO %s", "CALL keep(%s)", "SELECT 1; SELECT %s AS a; SELECT 2", "SELECT * FROM (SELECT %s AS a) d",
		"WITH x AS (SELECT 1 AS one) SELECT %s, one FROM x", "PREPARE p FROM 'SELECT %s AS a'", "SELECT %s UNION SELECT %s",
	} {
		want := run(strings.ReplaceAll(place, "%s", "NEXTVAL(photos)"))
		for _, spelling := range []string{"NEXT VALUE FOR photos", "photos.NEXTVAL", "NEXT VALUE FOR MYCATSEQ_photos", "NEXTVAL(" + o.SequenceSchema + ".photos)", "NEXTVAL(photos, 7)"} {
			want := want
			if strings.Contains(spelling, ", 7)") {
				want.taken *= 7
			}
			text := strings.ReplaceAll(place, "%s", spelling)
			if got := run(text); got != want {
				t.Errorf("%s: got %+v, want %+v as with NEXTVAL(photos)", text, got, want)
			}
		}
	}
	// No number is in two rows.
	if got := answers(t, c, "SELECT COUNT(*) - COUNT(DISTINCT id) AS twice FROM made"); got != "twice: 0" {
		t.Errorf("got %s", got)
	}
}

func TestLastvalAboveTheSignedBigint(t *testing.T) {
	e := newEnv(t, setup{})
	c := e.Conn(t, e.Schemas[0], nil)
	exec(t, c, "CREATE SEQUENCE big START WITH 9223372036854775806", "CREATE TABLE t (n INT)", "INSERT INTO t VALUES (1)")
	for _, last := range []string{"9223372036854775806", "9223372036854775807", "9223372036854775808", "18446744073709551000"} {
		if last == "18446744073709551000" {
			if got := answers(t, c, "SELECT SETVAL(big, "+last+", 0) AS a"); got != "a: "+last {
				t.Errorf("SETVAL: got %s, want %s", got, last)
			}
		}
		if got := answers(t, c, "SELECT NEXTVAL(big) AS a"); got != "a: "+last {
			t.Errorf("NEXTVAL: got %s, want %s", got, last)
		}
		for query, want := range map[string]string{
			"SELECT LASTVAL(big) AS a":                "a: " + last,
			"SELECT LASTVAL(big) AS a FROM t":         "a: " + last,
			"SELECT NEXTVAL('nobody') FROM t":         "error 4091/42S02",
			"SELECT LASTVAL(big) = " + last + " AS a": "a: 1",
		} {
			if got := answers(t, c, query); got != want {
				t.Errorf("%s: got %s, want %s", query, got, want)
			}
		}
		got := answers(t, c, "SELECT LASTVAL(big) AS a, ? AS b FROM t", 5)
		if want := "a,b: " + last + " 5"; got != want && (len(last) < 20 && last <= "9223372036854775807" || got != "error 1235/42000") {
			t.Errorf("prepared: got %s, want %s", got, want)
		}
	}
}
