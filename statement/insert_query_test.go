package statement

import (
	"bytes"
	"testing"

	"seqproxy/statement/lex"
)

// spelledOut writes an INSERT ... SELECT into t (id, title, parent, n) with the key in the text.
// The result is "" for another text, or if the text gives id other values.
func spelledOut(sql string, mode lex.Mode) (text, refusal string) {
	var st Statement
	var in Insertion
	st.Analyze([]byte(sql), mode)
	if len(st.Tables) == 0 {
		return "", ""
	}
	in.ReadInserts([]byte(sql), mode)
	if !in.Read(&st.Tables[0]) || in.Source != InsertQuery {
		return "", ""
	}
	key := Key{Column: []byte("id"), Index: in.Column(func(name []byte) bool { return bytes.EqualFold(name, []byte("id")) })}
	missing := key.Index < 0 && !in.NeedsColumns()
	columns := len(in.Columns)
	if in.NeedsColumns() {
		key.Columns, key.Index, columns = [][]byte{[]byte("id"), []byte("title"), []byte("parent"), []byte("n")}, 0, 4
	}
	q := in.ReadSelect()
	var item *InsertValue
	if !missing {
		if item = q.KeyItem(key.Index, columns); item == nil || !key.Fills(item.Kind) {
			return "", ""
		}
	}
	if q.Refusal != "" {
		return "", q.Refusal
	}
	return string(in.Spell([]byte(sql), &q, item, &key, []byte("s"))), ""
}

func TestInsertSelectIsSpelledOutWithItsKey(t *testing.T) {
	const call = " NEXTVAL(`s`)"
	for _, test := range []struct{ sql, want string }{
		{"INSERT INTO t (title) SELECT a FROM b", "INSERT INTO t (title, `id`) SELECT a," + call + " FROM b"},
		{"REPLACE t(title)SELECT a", "REPLACE t(title, `id`)SELECT a," + call},
		{"INSERT INTO t (title) SELECT a /* x */ ; ", "INSERT INTO t (title, `id`) SELECT a," + call + " /* x */ ; "},
		{"INSERT INTO t (title) SELECT 'a'FROM b", "INSERT INTO t (title, `id`) SELECT 'a'," + call + " FROM b"},
		{"INSERT INTO t (title, n) SELECT DISTINCT b.*, ',' AS `from` FROM b", "INSERT INTO t (title, n, `id`) SELECT DISTINCT b.*, ',' AS `from`," + call + " FROM b"},
		{"INSERT INTO t (title) SELECT TRIM(BOTH 'x' FROM b.from) WHERE 1", "INSERT INTO t (title, `id`) SELECT TRIM(BOTH 'x' FROM b.from)," + call + " WHERE 1"},
		{"INSERT INTO t (title) SELECT (SELECT a, b FROM c UNION SELECT 1) ON DUPLICATE KEY UPDATE n = 1", "INSERT INTO t (title, `id`) SELECT (SELECT a, b FROM c UNION SELECT 1)," + call + " ON DUPLICATE KEY UPDATE n = 1"},
		{"INSERT INTO t (title)((SELECT a FROM b) )", "INSERT INTO t (title, `id`)  SELECT a," + call + " FROM b   "},
		{"INSERT INTO t (title) WITH c AS (SELECT 1), d (x) AS (SELECT 2 FROM c) SELECT x FROM d", "INSERT INTO t (title, `id`) WITH c AS (SELECT 1), d (x) AS (SELECT 2 FROM c) SELECT x," + call + " FROM d"},
		{"INSERT INTO t (id, title) SELECT NULL, a FROM b", "INSERT INTO t (id, title) SELECT " + call + ", a FROM b"},
		{"INSERT INTO t (title, id) SELECT a, -0 AS x FROM b", "INSERT INTO t (title, id) SELECT a, " + call + " AS x FROM b"},
		{"INSERT INTO t (id) SELECT'0'x FROM b", "INSERT INTO t (id) SELECT" + call + " x FROM b"},
		{"INSERT INTO t (title, n, id) SELECT b.*, 0 FROM b", "INSERT INTO t (title, n, id) SELECT b.*, " + call + " FROM b"},
		{"INSERT INTO t SELECT NULL, b.* FROM b", "INSERT INTO t (`id`, `title`, `parent`, `n`)  SELECT " + call + ", b.* FROM b"},
		{"INSERT INTO t(SELECT 0, 1, 2, 3)", "INSERT INTO t (`id`, `title`, `parent`, `n`)  SELECT " + call + ", 1, 2, 3 "},
		// The query has values of its own.
		{"INSERT INTO t (id, title) SELECT id, a FROM b", ""},
		{"INSERT INTO t (id, title) SELECT NULL IS NULL, a FROM b", ""},
		{"INSERT INTO t (id, title) SELECT 0 + x, a FROM b", ""},
		{"INSERT INTO t (id, title) SELECT '0' '5', a FROM b", ""},
		{"INSERT INTO t (id, title) SELECT IFNULL(NULL, x), a FROM b", ""},
		{"INSERT INTO t (id, title) SELECT 7, a FROM b", ""},
		{"INSERT INTO t (title, id, n) SELECT b.*, NULL, b.* FROM b", ""},
		// Too many columns for any table.
		{"INSERT INTO t (title, id) SELECT *, NULL, 0 FROM b", "INSERT INTO t (title, id) SELECT *, NULL, " + call + " FROM b"},
		{"INSERT INTO t SELECT * FROM b", ""},
		{"INSERT INTO t TABLE b", ""},
	} {
		if got, refusal := spelledOut(test.sql, lex.Mode{}); got != test.want || refusal != "" {
			t.Errorf("%s:\ngot  %s %s\nwant %s", test.sql, got, refusal, test.want)
		}
	}
	for _, sql := range []string{
		"INSERT INTO t (title) TABLE b",
		"INSERT INTO t (title) SELECT a UNION SELECT b",
		"INSERT INTO t (title) (SELECT a) UNION SELECT b",
		"INSERT INTO t (title) (SELECT a) LIMIT 1",
		"INSERT INTO t (title) (SELECT a",
		"INSERT INTO t (title) SELECT a) FROM b",
		"INSERT INTO t (title) SELECT",
		"INSERT INTO t (title) SELECT , FROM b",
		"INSERT INTO t (title) SELECT a /*!80000 , b */ FROM b",
		"INSERT INTO t (title) SELECT a INTO @x FROM b",
		"INSERT INTO t (title) WITH c AS (SELECT 1) VALUES (1)",
		"INSERT INTO t (id, title) SELECT NULL, a UNION ALL SELECT NULL, b",
	} {
		if got, refusal := spelledOut(sql, lex.Mode{}); got != "" || refusal == "" {
			t.Errorf("%s: got %q, refused %q, want a refusal", sql, got, refusal)
		}
	}
}

func FuzzInsertSelect(f *testing.F) {
	for _, sql := range []string{
		"INSERT INTO t (title) SELECT a, (SELECT b) FROM c ORDER BY d LIMIT 1",
		"INSERT INTO t(SELECT NULL x, `y`.* FROM y)", "INSERT t (id) WITH a AS (SELECT 1) SELECT '0' AS b WHERE 1; SELECT 2",
	} {
		f.Add(sql, false)
	}
	f.Fuzz(func(t *testing.T, sql string, ansi bool) {
		mode := lex.Mode{SQLMode: lex.SQLMode{ANSIQuotes: ansi}}
		text, _ := spelledOut(sql, mode)
		if text == "" {
			return
		}
		var before, after Statement
		before.Analyze([]byte(sql), mode)
		after.Analyze([]byte(text), mode)
		if len(after.Calls) != len(before.Calls)+1 || before.Kind != after.Kind {
			t.Errorf("%q became %q: calls: got %d, want %d", sql, text, len(after.Calls), len(before.Calls)+1)
		}
	})
}
