package proxy_test

import (
	"context"
	"database/sql"
	"fmt"
	"strconv"
	"strings"
	"testing"

	"seqproxy/proxy"
	"seqproxy/sequence"
	"seqproxy/test/mysqltest"
)

func TestSequencesAreLookedAfterBySQL(t *testing.T) {
	e := newEnv(t, setup{})
	c := e.Conn(t, "", nil)
	show := func() string {
		t.Helper()
		columns, rows := table(t, c, "SHOW SEQUENCES")
		if got, want := strings.Join(columns, " "), "name next cached seconds_left rate cache last_reserve order_skew used_percent runway ordered kind warning"; got != want {
			t.Errorf("columns: got %s, want %s", got, want)
		}
		var all []string
		for _, row := range rows {
			all = append(all, strings.Join([]string{row[0], row[1], row[2], row[5]}, " "))
		}
		return strings.Join(all, "; ")
	}
	exec(t, c, "CREATE SEQUENCE photos", "create sequence if not exists photos", "CREATE SEQUENCE `two` START WITH 100 CACHE 7 ;", "CREATE SEQUENCE IF NOT EXISTS 'three' START 5")
	if got, want := show(), "photos 1 0 1000; three 5 0 1000; two 100 0 7"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	for _, want := range []string{"100", "101"} {
		if got := value(t, c, "SELECT NEXTVAL('two')"); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
	_, rows := table(t, c, "SHOW SEQUENCES LIKE 'two'")
	if rows[0][6] == "NULL" {
		t.Error("last_reserve is NULL after numbers were reserved")
	}
	if seconds, err := strconv.ParseFloat(rows[0][3], 64); err != nil || seconds <= 0 {
		t.Errorf("seconds_left: got %s", rows[0][3])
	}
	// The cache holds seven: with one proxy, the skew is the time that they last.
	if skew, err := strconv.ParseFloat(rows[0][7], 64); err != nil || skew <= 0 {
		t.Errorf("order_skew: got %s", rows[0][7])
	}
	if _, rows := table(t, c, "SHOW SEQUENCES LIKE 'three'"); rows[0][3] != "NULL" || rows[0][7] != "NULL" {
		t.Errorf("seconds_left and order_skew of a sequence that is not used: got %s and %s, want NULL", rows[0][3], rows[0][7])
	}
	for _, test := range []struct {
		code uint16
		text string
		word string
	}{
		{1050, "CREATE SEQUENCE photos", "photos"},
		{1050, "CREATE SEQUENCE PHOTOS", "photos"},
		{4091, "DROP SEQUENCE nobody", "nobody"},
		{1235, "CREATE SEQUENCE s INCREMENT BY -2", "INCREMENT"},
		{1225, "CREATE SEQUENCE s ORDER NOORDER", "'ORDER' used twice"},
		{1235, "CREATE SEQUENCE s MINVALUE 0", "MINVALUE"},
		{1235, "SHOW SEQUENCES WHERE name = 'photos'", "WHERE"},
		{1221, "CREATE OR REPLACE SEQUENCE IF NOT EXISTS s", "OR REPLACE"},
		{1225, "CREATE SEQUENCE s CACHE 1 CACHE 2", "'CACHE' used twice"},
		{1064, "ALTER SEQUENCE photos", "nothing"},
		{1064, "ALTER SEQUENCE photos FORCE", "option"},
		{4091, "ALTER SEQUENCE nobody CACHE 2", "nobody"},
		{4091, "SHOW CREATE SEQUENCE " + e.SequenceSchema + ".nobody", "nobody"},
		{4091, "FLUSH SEQUENCES nobody", "nobody"},
		{1235, "CREATE TEMPORARY SEQUENCE s", "TEMPORARY"},
		{1064, "CREATE SEQUENCE s START", "START"},
		{1064, "CREATE SEQUENCE", "name"},
		{1064, "CREATE SEQUENCE s FOO 3", "option"},
		{4085, "CREATE SEQUENCE s START WITH 0", "conflicting"},
		{4085, "CREATE SEQUENCE s MAXVALUE 0", "conflicting"},
		{4085, "CREATE SEQUENCE s AS INT MAXVALUE 3000000000", "conflicting"},
		{4085, "CREATE SEQUENCE s MINVALUE 5 MAXVALUE 4", "conflicting"},
		{4085, "CREATE SEQUENCE s MINVALUE 5 START 4", "conflicting"},
		{4085, "ALTER SEQUENCE photos MAXVALUE 1 MINVALUE 2", "conflicting"},
		{4085, "ALTER SEQUENCE photos RESTART 0", "conflicting"},
		{1210, "CREATE SEQUENCE " + strings.Repeat("x", 51), "name"},
	} {
		wantError(t, c, test.code, test.text, test.word)
	}
	// As with tables, existing sequences are dropped and the error names the others.
	exec(t, c, "CREATE SEQUENCE four")
	wantError(t, c, 4091, "DROP SEQUENCE nobody, four, neither", "'nobody,neither'")
	wantError(t, c, 4091, "SELECT NEXTVAL('four')")
	exec(t, c, "DROP SEQUENCE IF EXISTS nobody", "DROP SEQUENCE photos, three")
	wantError(t, c, 4091, "SELECT NEXTVAL('photos')", "photos")
	exec(t, c, "DROP SEQUENCE two")
	if got := show(); got != "" {
		t.Errorf("got %s, want no sequence", got)
	}
	// Prepared, where the driver's arguments are in a statement of their own.
	for _, text := range []string{"CREATE SEQUENCE prepared", "SHOW SEQUENCES", "DROP SEQUENCE prepared"} {
		stmt, err := c.PrepareContext(t.Context(), text)
		if err != nil {
			t.Fatalf("prepare %s: %v", text, err)
		}
		if strings.HasPrefix(text, "SHOW") {
			var name, rate, used, ordered string
			var next, cached, cache uint64
			var seconds, reserved, skew, end, kind, warning sql.NullString
			err := stmt.QueryRow().Scan(&name, &next, &cached, &seconds, &rate, &cache, &reserved, &skew, &used, &end, &ordered, &kind, &warning)
			if err != nil || reserved.Valid || name != "prepared" || next != 1 || cache != 1000 || rate != "0.0" || used != "0.00" || seconds.Valid || end.Valid || kind.Valid || warning.Valid || ordered != "NO" {
				t.Errorf("%s: got %s %d %d %s %s %v %v %s, %v", text, name, next, cache, rate, used, seconds, end, ordered, err)
			}
		} else if _, err := stmt.Exec(); err != nil {
			t.Errorf("%s: %v", text, err)
		}
		stmt.Close()
	}
	out := e.CLI(t, e.Addr(), "", "CREATE SEQUENCE photos;\nSELECT NEXTVAL('photos');\nSHOW SEQUENCES;\nDROP SEQUENCE photos;\nDROP SEQUENCE photos;\n")
	for _, want := range []string{"Query OK, 0 rows affected", "NEXTVAL('photos')", "photos", "ERROR 4091 (42S02)", "Unknown SEQUENCE: 'photos'"} {
		if !strings.Contains(out, want) {
			t.Errorf("the command-line client does not print %q:\n%s", want, out)
		}
	}
}

func TestOnlyAdminsChangeSequences(t *testing.T) {
	e := newEnv(t, setup{Proxy: func(o *proxy.Options) { o.Users[0].Admin = false }})
	if _, err := e.Sequences.Create(t.Context(), sequence.CreateOptions{Name: "photos"}); err != nil {
		t.Fatal(err)
	}
	c := e.Conn(t, "", nil)
	for _, text := range []string{
		"CREATE SEQUENCE s", "DROP SEQUENCE photos", "CREATE SEQUENCE IF NOT EXISTS photos", "DROP SEQUENCE IF EXISTS nobody",
		"SEQPROXY ADD SEQUENCE SERVER 'db2:3306'", "SHOW SEQPROXY SEQUENCE SERVERS",
	} {
		wantError(t, c, 1227, text, "Access denied", "admin_users")
		stmt, err := c.PrepareContext(t.Context(), text)
		if err == nil {
			_, err = stmt.Exec()
			stmt.Close()
		}
		checkError(t, "prepared "+text, err, 1227)
	}
	if got := value(t, c, "SELECT NEXTVAL('photos')"); got != "1" {
		t.Errorf("got %s, want 1", got)
	}
}

func TestASequenceMadeAgainGoesOnAboveTheDroppedOne(t *testing.T) {
	server := mysqltest.Shared(t)
	e := newEnv(t, setup{Servers: []*mysqltest.Server{server}})
	c := e.Conn(t, "", nil)
	exec(t, c, "CREATE SEQUENCE photos", "SELECT NEXTVAL('photos')")
	// Another proxy on the same table has cached numbers of the dropped sequence.
	other := newEnv(t, setup{Servers: []*mysqltest.Server{server}, Sequence: func(o *sequence.Options) { o.Servers[0].Database = e.SequenceSchema }})
	d := other.Conn(t, "", nil)
	given := map[string]bool{}
	take := func(where string) {
		t.Helper()
		for range 3 {
			for _, n := range []string{value(t, c, "SELECT NEXTVAL('photos')"), value(t, d, "SELECT NEXTVAL('photos')")} {
				if given[n] {
					t.Errorf("%s: %s was given twice", where, n)
				}
				given[n] = true
			}
		}
	}
	take("before")
	exec(t, c, "DROP SEQUENCE photos", "CREATE SEQUENCE photos START WITH 1")
	take("after")
	exec(t, c, "DROP SEQUENCE photos")
	wantError(t, c, 4091, "SELECT NEXTVAL('photos')")
	exec(t, c, "CREATE SEQUENCE photos START WITH 1000000")
	take("above")
}

func TestATypedCacheIsExact(t *testing.T) {
	e := newEnv(t, setup{})
	c := e.Conn(t, "", nil)
	exec(t, c, "CREATE SEQUENCE photos CACHE 10")
	row := func() (n uint64) {
		t.Helper()
		if err := e.Servers[0].DB(t, e.SequenceSchema).QueryRow("SELECT id FROM sequence WHERE name = 'photos'").Scan(&n); err != nil {
			t.Fatal(err)
		}
		return n
	}
	// A statement that needs more numbers than the cache has gets them in one segment.
	exec(t, c, "USE "+e.Schemas[0], "CREATE TABLE t (id BIGINT UNSIGNED, n INT AUTO_INCREMENT PRIMARY KEY)", "CREATE SEQUENCE many CACHE 10",
		"SELECT NEXTVAL('many')", "INSERT INTO t (id) VALUES "+strings.TrimSuffix(strings.Repeat("(NEXTVAL('many')), ", 35), ", "))
	if got := value(t, c, "SELECT CONCAT(COUNT(*), ' ', MAX(id) - MIN(id), ' ', SUM(id - n) = 35 * (MIN(id) - 1)) FROM t"); got != "35 34 1" {
		t.Errorf("thirty-five rows: got %s, want 35 34 1", got)
	}
	for n := uint64(1); n <= 55; n++ {
		if got := value(t, c, "SELECT NEXTVAL('photos')"); got != fmt.Sprint(n) {
			t.Fatalf("got %s, want %d", got, n)
		}
		if ahead := row() - n; ahead > 10 {
			t.Fatalf("after number %d: %d numbers are reserved and not given, want at most 10", n, ahead)
		}
	}
}

func TestASequenceThatHasRunOutIsTheServersError(t *testing.T) {
	e := newEnv(t, setup{})
	e.Servers[0].Exec(t, "USE "+e.SequenceSchema, "CREATE TABLE sequence (name VARCHAR(50) PRIMARY KEY, id SMALLINT UNSIGNED NOT NULL) ENGINE=InnoDB",
		"INSERT INTO sequence VALUES ('photos', 65533)")
	c := e.Conn(t, "", nil)
	for _, want := range []string{"65534", "65535"} {
		if got := value(t, c, "SELECT NEXTVAL('photos')"); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
	wantError(t, c, 4084, "SELECT NEXTVAL('photos')", "photos", "run out")
	wantError(t, c, 4084, "SELECT NEXTVAL('photos') LIMIT 1")
}

// table returns the answer to a query, with NULL for NULL.
func table(t testing.TB, c *sql.Conn, query string) (columns []string, all [][]string) {
	t.Helper()
	rows, err := c.QueryContext(context.Background(), query)
	if err != nil {
		t.Fatalf("%s: %v", query, err)
	}
	defer rows.Close()
	if columns, err = rows.Columns(); err != nil {
		t.Fatal(err)
	}
	for rows.Next() {
		values, into := make([]sql.NullString, len(columns)), make([]any, len(columns))
		for i := range values {
			into[i] = &values[i]
		}
		if err := rows.Scan(into...); err != nil {
			t.Fatal(err)
		}
		row := make([]string, len(columns))
		for i, v := range values {
			if row[i] = v.String; !v.Valid {
				row[i] = "NULL"
			}
		}
		all = append(all, row)
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	return columns, all
}
