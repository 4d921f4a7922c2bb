package statement

import (
	"reflect"
	"strings"
	"testing"
)

func TestReadMetadataReadsSHOW(t *testing.T) {
	for _, c := range []struct {
		sql  string
		want Metadata
	}{
		{"SHOW VARIABLES", Metadata{Show: "VARIABLES"}},
		{"show session variables like 'lower_case_%';", Metadata{Show: "VARIABLES", HasPattern: true, Pattern: "lower_case_%"}},
		{"SHOW GLOBAL STATUS LIKE \"a\\_b\"", Metadata{Show: "STATUS", HasPattern: true, Pattern: "a\\_b"}},
		{"/* tool */ SHOW LOCAL VARIABLES LIKE ''", Metadata{Show: "VARIABLES", HasPattern: true}},
		{"SHOW /*!50002 GLOBAL */ STATUS", Metadata{Show: "STATUS"}},
		{"SHOW FULL TABLES FROM `my gallery` LIKE 'p%'", Metadata{Show: "TABLES", Full: true, Schema: "my gallery", HasPattern: true, Pattern: "p%"}},
		{"show extended full columns in t", Metadata{Show: "COLUMNS", Full: true, Schema: "t"}},
		{"SHOW CHARACTER SET", Metadata{Show: "CHARACTER SET"}},
		{"SHOW CREATE TABLE t", Metadata{Show: "CREATE TABLE T"}},
		{"SHOW GRANTS FOR CURRENT_USER", Metadata{Show: "GRANTS"}},
		{"SHOW GRANTS FOR current_user ( )", Metadata{Show: "GRANTS"}},
		{"SHOW TABLES WHERE f(x) > ? LIMIT ?", Metadata{Show: "TABLES", Rest: true, Params: 2}},
		{"SHOW TABLES FROM t WHERE a = 'x' ORDER BY 1", Metadata{Show: "TABLES", Schema: "t", Rest: true, Where: &Condition{op: conditionEqual, column: "a", values: []constant{{text: "x"}}}}},
	} {
		if got, ok := ReadMetadata([]byte(c.sql), Mode{}); !ok || !reflect.DeepEqual(got, &c.want) {
			t.Errorf("%s: got %+v, %v, want %+v", c.sql, got, ok, c.want)
		}
	}
	for _, sql := range []string{
		"", "SHOW", "SHOW FULL", "SHOW VARIABLES LIKE x", "SHOW VARIABLES LIKE 'x", "SHOW VARIABLES LIKE 'x' AND 1", "SHOW VARIABLES; SELECT 1", "SHOW GRANTS FOR root",
		"SHOW TABLES FROM", "SHOW TABLES FROM 'x'", "SHOW INDEX FROM t FROM s", "DESCRIBE t", "SHOW COUNT(*) ERRORS", "SHOW TABLES WHERE (a = 1", "SHOW TABLES WHERE a = 1)",
	} {
		if got, ok := ReadMetadata([]byte(sql), Mode{}); ok {
			t.Errorf("%s: got %+v, want none", sql, got)
		}
	}
}

func TestReadMetadataReadsSELECT(t *testing.T) {
	col := func(name string) MetadataItem { return MetadataItem{Name: name, Column: name} }
	is := func(schema, name string) []MetadataTable { return []MetadataTable{{schema, name, name}} }
	for _, c := range []struct {
		sql  string
		want Metadata
	}{
		{"SELECT * FROM information_schema.TABLES", Metadata{Items: []MetadataItem{{All: true}}, Tables: is("information_schema", "TABLES")}},
		{"select a, b AS c, t.d e, `f` 'g' from `mysql`.user as t;", Metadata{
			Items:  []MetadataItem{col("a"), {Name: "c", Column: "b"}, {Name: "e", Column: "d", Table: "t"}, {Name: "g", Column: "f"}},
			Tables: []MetadataTable{{"mysql", "user", "t"}},
		}},
		{"SELECT t.*, NULL, 'x', 1+1, f(a , b) z, CASE WHEN a THEN 1 END kind FROM t", Metadata{
			Items: []MetadataItem{
				{All: true, Table: "t"}, {Name: "NULL"}, {Name: "x"}, {Name: "1+1"}, {Name: "z"}, {Name: "kind"},
			},
			Tables: is("", "t"),
		}},
		{"SELECT COUNT(*), max(a + 1) m FROM t", Metadata{Items: []MetadataItem{{Name: "COUNT(*)", Count: true, Rows: true}, {Name: "m"}}, Tables: is("", "t"), Total: true}},
		{"SELECT COUNT(*) + 1 FROM t GROUP BY a HAVING a > ?", Metadata{}},
		{"SELECT COUNT(*) n FROM t GROUP BY a", Metadata{Items: []MetadataItem{{Name: "n", Count: true, Rows: true}}, Tables: is("", "t"), Rest: true}},
		{"SELECT (SELECT COUNT(*) FROM x) n FROM t", Metadata{Items: []MetadataItem{{Name: "n"}}, Tables: is("", "t")}},
		{"SELECT a FROM s.t AS x LEFT JOIN (y) ON 1", Metadata{}},
		{"SELECT a FROM s.t AS x LEFT JOIN y ON x.a = f(y.a, ?), z WHERE a = ?", Metadata{
			Items: []MetadataItem{col("a")}, Tables: []MetadataTable{{"s", "t", "x"}, {"", "y", "y"}, {"", "z", "z"}}, Rest: true, Params: 2,
			Where: &Condition{op: conditionEqual, column: "a", values: []constant{{param: 2}}},
		}},
		{"SELECT a FROM t UNION ALL SELECT b FROM s.u WHERE 1 LIMIT 5", Metadata{Items: []MetadataItem{col("a")}, Tables: []MetadataTable{{"", "t", "t"}, {"s", "u", "u"}}, Others: true, Rest: true}},
		{"SELECT a FROM t WHERE 1 = 0 UNION SELECT b FROM u WHERE 1 = 0", Metadata{Items: []MetadataItem{col("a")}, Tables: []MetadataTable{{"", "t", "t"}, {"", "u", "u"}}, Others: true, Rest: true}},
		{"SELECT a FROM t WHERE c = 'x' UNION SELECT b FROM u", Metadata{Items: []MetadataItem{col("a")}, Tables: []MetadataTable{{"", "t", "t"}, {"", "u", "u"}}, Others: true, Rest: true}},
		{"SELECT a FROM t NATURAL RIGHT JOIN u", Metadata{Items: []MetadataItem{col("a")}, Tables: []MetadataTable{{"", "t", "t"}, {"", "u", "u"}}, Others: true, Rest: true}},
		{"SELECT '' a, NULL b FROM DUAL WHERE 1=0", Metadata{Items: []MetadataItem{{Name: "a"}, {Name: "b"}}, Tables: is("", "DUAL"), Never: true}},
		{"SELECT a FROM t WHERE 1 = 2 ORDER BY 1", Metadata{Items: []MetadataItem{col("a")}, Tables: is("", "t"), Never: true, Order: []MetadataOrder{{Place: 1}}}},
		{"SELECT a FROM t WHERE b = ? ORDER BY t.`x` DESC, s.t.y ASC, a, 2 LIMIT ?, 10;", Metadata{
			Items: []MetadataItem{col("a")}, Tables: is("", "t"), Where: &Condition{op: conditionEqual, column: "b", values: []constant{{param: 1}}}, Params: 2,
			Order: []MetadataOrder{{Table: "t", Column: "x", Descending: true}, {Table: "t", Column: "y"}, {Column: "a"}, {Place: 2}},
			Limit: &MetadataLimit{from: constant{param: 2}, most: constant{text: "10"}},
		}},
		{"SELECT a FROM t LIMIT 3 OFFSET 4", Metadata{Items: []MetadataItem{col("a")}, Tables: is("", "t"), Limit: &MetadataLimit{from: constant{text: "4"}, most: constant{text: "3"}}}},
		{"SELECT a FROM t ORDER BY f(a)", Metadata{Items: []MetadataItem{col("a")}, Tables: is("", "t"), Rest: true}},
		{"SELECT a FROM t ORDER BY a LIMIT ? FOR UPDATE", Metadata{Items: []MetadataItem{col("a")}, Tables: is("", "t"), Rest: true, Params: 1}},
		{"SELECT a FROM t LIMIT 1.5", Metadata{Items: []MetadataItem{col("a")}, Tables: is("", "t"), Rest: true}},
		{"SELECT a FROM t ORDER BY " + strings.Repeat("a, ", maxOrder) + "a", Metadata{Items: []MetadataItem{col("a")}, Tables: is("", "t"), Rest: true}},
		{"SELECT COUNT(1), COUNT(a), COUNT(DISTINCT a) d FROM t", Metadata{
			Items: []MetadataItem{{Name: "COUNT(1)", Count: true, Rows: true}, {Name: "COUNT(a)", Count: true}, {Name: "d", Count: true}}, Tables: is("", "t"), Total: true,
		}},
		{"SELECT a FROM t WHERE 1 = 0 OR b", Metadata{Items: []MetadataItem{col("a")}, Tables: is("", "t"), Rest: true}},
		{"SELECT a FROM t WHERE 1 = 1", Metadata{Items: []MetadataItem{col("a")}, Tables: is("", "t"), Rest: true}},
		{"SELECT DISTINCT a FROM t", Metadata{Items: []MetadataItem{col("a")}, Tables: is("", "t"), Rest: true}},
	} {
		got, ok := ReadMetadata([]byte(c.sql), Mode{})
		if c.want.Items == nil {
			if ok {
				t.Errorf("%s: got %+v, want none", c.sql, got)
			}
			continue
		}
		if !ok || !reflect.DeepEqual(got, &c.want) {
			t.Errorf("%s:\n got %+v, %v\nwant %+v", c.sql, got, ok, c.want)
		}
	}
	for _, sql := range []string{
		"SELECT 1", "SELECT FROM t", "SELECT a, FROM t", "SELECT a FROM", "SELECT a FROM (SELECT 1) x", "SELECT a FROM t; SELECT 2", "SELECT a INTO @x FROM t", "SELECT a FROM t INTO @x",
		"SELECT COUNT(*), a FROM t", "SELECT COUNT(*) FROM t HAVING 1", "SELECT COUNT(*) FROM t LIMIT 0", "SELECT BIT_AND(a) FROM t", "SELECT 1 FROM t HAVING COUNT(*) > 0",
		"SELECT COUNT(*) OVER () FROM t", "SELECT f(COUNT(*)) FROM t", "SELECT a FROM t UNION SELECT 1", "SELECT a FROM t UNION SELECT COUNT(*) FROM u", "SELECT a FROM t UNION (SELECT b FROM u)",
		"SELECT COUNT(*) FROM t UNION SELECT b FROM u", "SELECT a FROM JSON_TABLE('[]', '$' COLUMNS (a INT PATH '$')) x", "(SELECT a FROM t)", "WITH x AS (SELECT 1) SELECT a FROM x",
		"SELECT * FROM t UNION SELECT * FROM t", "SELECT a, t.* FROM t UNION SELECT 1, 2 FROM t",
		"SELECT a /*!50000 , b */ FROM t", "SELECT a FROM t WHERE (b", "SELECT a FROM t WHERE b)", "SELECT a) FROM t", "SELECT 'a", "INSERT INTO t SELECT a FROM t", "SELECT a AS FROM t",
	} {
		if got, ok := ReadMetadata([]byte(sql), Mode{}); ok {
			t.Errorf("%s: got %+v, want none", sql, got)
		}
	}
}

func TestConditionsHoldAsInSQL(t *testing.T) {
	row := map[string]string{"a": "Photos", "b": "7"} // c is NULL
	value := func(column string) (string, bool) { v, ok := row[column]; return v, ok }
	param := func(i int) (string, bool) { return []string{"photos", ""}[i], i == 0 }
	for where, want := range map[string]bool{
		"a = 'photos'": true, "`t`.`A` = 'x'": false, "a <> 'x'": true, "a != 'photos'": false, "a LIKE 'p%'": true, "a NOT LIKE 'p%'": false, "b = 7": true,
		"a IN ('x', 'photos')": true, "a NOT IN ('x', 'photos')": false, "b IN (1, 2)": false, "NOT b = 8 AND a = 'photos'": true, "b = 8 OR a = 'photos' AND b = 7": true,
		"(b = 8 OR a = 'photos') AND b = 8": false, "NOT (a = 'x' OR b = 8)": true, "c = 'x'": false, "NOT c = 'x'": false, "c = 'x' OR b = 7": true, "NOT (c = 'x' AND b = 8)": true,
		"a = ?": true, "b IN (8, ?)": false, "a NOT IN ('x', ?)": false, "a = ? AND b NOT IN ('x', ?)": false, "a = ? AND NOT b = ?": false, "a = ? AND b IN (?, 7)": true,
	} {
		m, ok := ReadMetadata([]byte("SHOW TABLES WHERE "+where), Mode{})
		if !ok || m.Where == nil || m.Rest {
			t.Errorf("%s: is not understood: %+v", where, m)
			continue
		}
		if got := m.Where.Holds(value, param); got != want {
			t.Errorf("%s: got %v, want %v", where, got, want)
		}
	}
	for _, where := range []string{
		"a", "1", "a = b", "a = 'x' 'y'", "a > 1", "a <= 1", "a < 1", "a IS NULL", "a REGEXP 'x'", "a BETWEEN 1 AND 2", "f(a) = 1", "a = f(1)", "a = -1", "a LIKE 'x' ESCAPE '|'", "a IN (SELECT 1)",
		"a = 'x' COLLATE utf8mb4_bin", "a = 'x' XOR b = 7", "a = NULL", "'x' = a", "(a = 'x') = 1", "a = \\N", strings.Repeat("NOT ", 100) + "a = 1",
	} {
		if m, ok := ReadMetadata([]byte("SHOW TABLES WHERE "+where), Mode{}); !ok || m.Where != nil || !m.Rest {
			t.Errorf("%s: got %+v, %v, want what is not understood", where, m, ok)
		}
	}
}

// What is read of a question takes more memory than its text, and time that nobody can end.
func TestAQuestionIsOfASizeThatToolsAsk(t *testing.T) {
	most := map[string]func(n int) string{
		"bytes":  func(n int) string { return "SELECT a FROM t" + strings.Repeat(" ", n-len("SELECT a FROM t")) },
		"items":  func(n int) string { return "SELECT " + strings.Repeat("a,", n-1) + "a FROM t" },
		"tables": func(n int) string { return "SELECT a FROM " + strings.Repeat("t,", n-1) + "t" },
	}
	for what, n := range map[string]int{"bytes": maxQuestion, "items": maxItems, "tables": maxTables} {
		if _, ok := ReadMetadata([]byte(most[what](n)), Mode{}); !ok {
			t.Errorf("%d %s: got none", n, what)
		}
		if _, ok := ReadMetadata([]byte(most[what](n+1)), Mode{}); ok {
			t.Errorf("%d %s: is taken", n+1, what)
		}
	}
	most = map[string]func(n int) string{
		"bytes": func(n int) string { return "SELECT 1" + strings.Repeat(" ", n-len("SELECT 1")) },
		"items": func(n int) string { return "SELECT " + strings.Repeat("1,", n-1) + "1" },
		"parts": func(n int) string { return strings.Repeat("SELECT 1 UNION ", n-1) + "SELECT 1" },
	}
	for what, n := range map[string]int{"bytes": maxQuestion, "items": maxItems, "parts": maxUnion} {
		if _, _, ok := SimpleUnion([]byte(most[what](n)), Mode{}); !ok {
			t.Errorf("constants, %d %s: got none", n, what)
		}
		if _, _, ok := SimpleUnion([]byte(most[what](n+1)), Mode{}); ok {
			t.Errorf("constants, %d %s: is taken", n+1, what)
		}
	}
}
