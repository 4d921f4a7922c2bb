package proxy_test

import (
	"fmt"
	"testing"

	"seqproxy/protocol"
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
		scripts = append(scripts, script{of[0], []string{meet, given(1, text), insertIDs, given(1, text), given(1, text+"SELECT '"+of[1]+"'"), "SELECT * FROM photos ORDER BY id"}})
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
