package proxy_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/go-sql-driver/mysql"

	"seqproxy/protocol"
	"seqproxy/proxy"
	"seqproxy/sequence"
)

// entity is the text by which Entity Framework inserts a row. The driver writes data into it.
func entity(title string) string {
	return "INSERT INTO `photos` (`title`)\nVALUES ('" + title + "');\nSELECT `id`\nFROM `photos`\nWHERE ROW_COUNT() = 1 AND `id` = LAST_INSERT_ID();\n\n"
}

func TestATextThatReadsTheRowCountOfItsOwnInsertIsFilledInWhateverItsData(t *testing.T) {
	o := newOracle(t, bound(filledPhotos), append([]string{
		"CREATE TABLE diagnostics (data TEXT)", "CREATE TABLE uploads (id INT PRIMARY KEY, name TEXT)", "INSERT INTO uploads VALUES (1, 'x'), (2, 'y')",
	}, filledTables...)...)
	var scripts []script
	for _, of := range [][2]string{
		{"letters", "a"}, {"quotes", `{"a": 1}`}, {"umlaut", "M\u00fcller; M\u00fcller"}, {"backslash", `C:\\tmp`}, {"row count", "\u00e9 ROW_COUNT() \\\""}, {"insert", "INSERT \u00e9"},
	} {
		text := entity(of[1])
		scripts = append(scripts, script{of[0], []string{meet, given(1, text), insertIDs, given(1, text), "DO 1; DO 2", given(1, text+"SELECT '"+of[1]+"'"), "SELECT * FROM photos ORDER BY id"}})
	}
	o.run(t, append(scripts, script{"other tables", []string{
		"INSERT INTO diagnostics (data) VALUES ('{\"a\": 1}')",
		"DO 1; DO 2",
		"INSERT INTO diagnostics (data) VALUES ('\u00e9'), ('SHOW WARNINGS')",
		"INSERT INTO uploads (id, name) VALUES (5, '\"\u00e9\"'); SELECT ROW_COUNT()",
		"UPDATE uploads SET name = '\u00e9\u00e9' WHERE id = 1; SELECT ROW_COUNT()",
		"DELETE FROM uploads WHERE name = '\u00e9\u00e9' OR id = 2; SELECT ROW_COUNT()",
		"SELECT * FROM diagnostics", "SELECT * FROM uploads",
	}}), "packets without EOF", "go-sql-driver")
}

// What the last statement left is read by the text behind it, or that is refused: the proxy's
// question about the mode would change it. A text that puts rows in is never passed on unread.
func TestARowCountOfTheStatementBeforeIsNeverLost(t *testing.T) {
	o := newOracle(t, bound(filledPhotos), append([]string{"CREATE TABLE log (a TEXT)"}, filledTables...)...)
	for _, lose := range []string{"DO 1; DO 2", "DO 1; SET sql_mode = 'ANSI_QUOTES'", "DO 1; SET sql_mode = 'NO_BACKSLASH_ESCAPES'", "DO 1; SET NAMES gbk"} {
		for _, c := range []struct {
			text    string
			refused bool // in all modes
		}{
			{"SELECT '\u00e9;', ROW_COUNT()", false},
			{"/* \u00e9; */ SELECT ROW_COUNT ()", false},
			{`SELECT 'a\\' AS a, ROW_COUNT() AS b`, false},
			{`SELECT 1 AS "a\", ROW_COUNT() AS "b" -- "`, false},
			{`SELECT 1 AS "a;\", ROW_COUNT() AS "b" -- "`, false},
			{`SELECT 'a\', ROW_COUNT() AS b -- '`, false},
			{`SELECT '\', ROW_COUNT()`, false},
			{"SELECT '\u00e9', ROW_COUNT(); SELECT ROW_COUNT()", false},
			{"SELECT SQL_CALC_FOUND_ROWS '\u00e9'; SELECT FOUND_ROWS()", false},
			{"INSERT INTO log VALUES ('\u00e9'); SELECT FOUND_ROWS(), ROW_COUNT()", true},
			{"SELECT ROW_COUNT(); INSERT INTO photos (title) VALUES ('\u00e9')", true},
			{"SELECT '\u00e9', ROW_COUNT(); INSERT INTO photos (title) VALUES ('x')", true},
			{"INSERT INTO photos (title) VALUES (CONCAT('\u00e9', ROW_COUNT()))", true},
		} {
			p := o.pairOfSchemas(t, allFraming)
			p.query(lose)
			p.query("DELETE FROM photos WHERE id < 3")
			for _, w := range []*wire{p.Proxy, p.Direct} {
				w.send(packet(command(protocol.ComQuery, c.text)))
			}
			got, want := p.Proxy.receive(protocol.ShapeResult, nil), p.Direct.receive(protocol.ShapeResult, nil)
			if got[4] == 0xff && serverError(t, got).Code == 1235 {
				continue
			}
			what := fmt.Sprintf("behind %s: %q", lose, c.text)
			if c.refused {
				t.Errorf("%s: got %q, want error 1235", what, got)
			}
			compare(t, what, got, want)
		}
	}
}

// leavesNothing are texts of several statements, each of which alone would leave nothing that the
// session must keep in mind.
var leavesNothing = []string{
	"INSERT INTO photos (title) VALUES ('\u00e9'); SELECT LAST_INSERT_ID()",
	"INSERT INTO photos (title) VALUES ('\u00e9'), ('\"b\"'); SELECT LAST_INSERT_ID(), ROW_COUNT()",
	entity(`\"`),
	"REPLACE INTO photos (title, n) VALUES ('a', 1); UPDATE photos SET title = '\\\\' WHERE n = 1; SELECT ROW_COUNT(); DELETE FROM photos WHERE n = 1;",
	"WITH x AS (SELECT 1 AS a) SELECT a FROM x; SELECT SQL_CALC_FOUND_ROWS @a, id FROM photos LIMIT 1; SELECT FOUND_ROWS()",
	"/*! SELECT */ 1; SELECT COUNT(*) FROM information_schema.TABLES WHERE TABLE_NAME = 'photos'",
}

func TestATextOfPlainStatementsCostsNoQuestion(t *testing.T) {
	o := newOracle(t, setup{}, filledTables...)
	o.fresh(t)
	exec(t, o.Conn(t, o.Schemas[0], nil), "ALTER SEQUENCE photos OWNED BY "+o.Schemas[0]+".photos.id")
	for _, text := range append([]string{"INSERT INTO photos (title) VALUES ('a')"}, leavesNothing...) {
		asked := func(w *wire) int {
			w.query(text) // once the session may have to ask
			count := func() (n int) {
				_, _ = fmt.Sscan(w.rows("SHOW SESSION STATUS LIKE 'Questions'")[1], &n)
				return n
			}
			before := count()
			for range 5 {
				if a := split(w.query(text)); a[len(a)-1][0] == 0xff {
					t.Fatalf("%s: %q", text, a)
				}
			}
			return count() - before
		}
		p := o.pairOfSchemas(t, allFraming)
		if got, want := asked(p.Proxy), asked(p.Direct); got != want {
			t.Errorf("%s: got %d questions, want %d as directly", text, got, want)
		}
	}
}

func TestATextOfPlainStatementsHoldsNothing(t *testing.T) {
	e := newEnv(t, setup{Shards: 2, Proxy: func(o *proxy.Options) { o.Bindings = []proxy.Binding{filledPhotos} }})
	create(t, e, sequence.CreateOptions{Name: "photos", Start: 1001})
	for i, schema := range e.Schemas {
		d := e.DirectConn(t, i, schema, nil)
		exec(t, d, filledTables...)
		exec(t, d, "CREATE TRIGGER tr BEFORE INSERT ON photos FOR EACH ROW SET @seen = 5", "CREATE FUNCTION f() RETURNS INT DETERMINISTIC BEGIN SET @seen = 6; RETURN 1; END", "CREATE PROCEDURE p() SET @seen = 7")
	}
	const routed = "EXPLAIN FORMAT=ROUTE "
	pinned := func(text string) (pins, explained string) {
		w := e.Wire(t, e.Addr(), wireLogin{Schema: e.Schemas[0]})
		defer w.quit()
		explained = fmt.Sprint(w.rows(routed + text))
		if a := split(w.query(text)); a[len(a)-1][0] == 0xff {
			t.Fatalf("%s: %q", text, a)
		}
		id := w.rows("SELECT LAST_INSERT_ID()")[0]
		pins = e.pinsOf(w)
		switch moved := w.query("USE " + e.Schemas[1]); {
		case moved[4] == 0xff && pins == "":
			t.Errorf("%s: USE of another shard: %v", text, serverError(t, moved))
		case moved[4] != 0xff && pins != "":
			t.Errorf("%s: pinned by %s, and it went to another shard", text, pins)
		case moved[4] != 0xff:
			if got := w.rows("SELECT LAST_INSERT_ID()")[0]; got != id {
				t.Errorf("%s: LAST_INSERT_ID() is %s on the other shard, want %s", text, got, id)
			}
		}
		return pins, explained
	}
	for _, text := range append([]string{"SELECT f(); SELECT 1", "SELECT f()"}, leavesNothing...) {
		if pins, explained := pinned(text); pins != "" || strings.Contains(explained, "CALL, XA") {
			t.Errorf("%s: pinned by %q, and explained as %s", text, pins, explained)
		}
	}
	for _, text := range []string{
		"SELECT 1; DO 1", "SET @x = 1; SELECT 1", "SELECT 1; SET NAMES utf8mb4", "SELECT 1 INTO @x; SELECT 1", "SELECT @x := 1; SELECT 1",
		"USE " + e.Schemas[0] + "; SELECT 1", "SELECT 1; SELECT GET_LOCK('mine', 0)", "BEGIN; SELECT 1; COMMIT", "CREATE TEMPORARY TABLE own (a INT); SELECT 1",
		"SELECT 1; CREATE TABLE IF NOT EXISTS made (a INT)", "SELECT 1; CALL p()", "SELECT 1; SHOW TABLES", "HANDLER photos OPEN; SELECT 1",
	} {
		if pins, _ := pinned(text); !strings.Contains(pins, "opaque") {
			t.Errorf("%s: pinned by %q, want opaque", text, pins)
		}
	}
}

// Once AUTO_INCREMENT is taken away, the server no longer reports the key of an INSERT IGNORE or ON
// DUPLICATE KEY UPDATE that was prepared before.
func TestAPreparedInsertFindsOutThatAutoIncrementWasTakenAway(t *testing.T) {
	o := newOracle(t, bound(filledPhotos), filledTables...)
	const update = "INSERT INTO photos (title, n) VALUES (?, ?) ON DUPLICATE KEY UPDATE title = VALUES(title)"
	for _, c := range []struct {
		text  string
		found bool // the client counts the rows that were found
		first int  // the value of n that shows it
	}{
		{update, false, 103},
		{"INSERT IGNORE INTO photos (title, n) VALUES (?, ?)", false, 103},
		{"INSERT IGNORE INTO photos (title, n) VALUES (?, ?)", true, 103},
		// Here a row that is new cannot be told from one that is as it was.
		{update, true, 102},
	} {
		o.fresh(t)
		conn := o.Conn(t, o.Schemas[0], func(m *mysql.Config) { m.ClientFoundRows = c.found })
		exec(t, conn, "ALTER TABLE photos COMMENT = 'x'") // the proxy knows the columns of the last run
		st, err := conn.PrepareContext(t.Context(), c.text)
		if err != nil {
			t.Fatal(err)
		}
		for n := 101; n < 103; n++ {
			for _, title := range []string{"x", "x", "y"} { // new, as it was, changed
				if _, err := st.ExecContext(t.Context(), title, n); err != nil {
					t.Fatalf("%s, found %v: %v", c.text, c.found, err)
				}
			}
		}
		exec(t, o.DirectConn(t, 0, o.Schemas[0], nil), "ALTER TABLE photos MODIFY id BIGINT UNSIGNED NOT NULL")
		r, err := st.ExecContext(t.Context(), "z", c.first)
		if err != nil {
			t.Fatal(err)
		}
		if c.first > 102 {
			id, _ := r.LastInsertId()
			if got, want := value(t, conn, "SELECT LAST_INSERT_ID()"), value(t, conn, "SELECT id FROM photos WHERE n = 103"); got != want || fmt.Sprint(id) != want {
				t.Errorf("%s, found %v: LAST_INSERT_ID() is %s and the insert id %d, want the key %s", c.text, c.found, got, id, want)
			}
		}
		exec(t, conn, "BEGIN") // otherwise the session ends
		_, err = st.ExecContext(t.Context(), "x", 104)
		checkError(t, c.text, err, 1615, "AUTO_INCREMENT")
		r, err = conn.ExecContext(t.Context(), strings.Replace(c.text, "?, ?", "'x', 105", 1))
		if err != nil {
			exec(t, conn, "ROLLBACK")
			t.Fatal(err)
		}
		id, _ := r.LastInsertId()
		if want := value(t, conn, "SELECT id FROM photos WHERE n = 105"); fmt.Sprint(id) != want {
			t.Errorf("%s, found %v: as text the insert id is %d, want %s", c.text, c.found, id, want)
		}
		exec(t, conn, "ROLLBACK")
	}
}
