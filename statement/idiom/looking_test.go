package idiom

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"seqproxy/statement/lex"
	"seqproxy/test/texts"
)

// Queries of SQLAlchemy, Hibernate, Vert.x, Frappe, migrators, mariadb-dump and people, and texts
// that resemble them.
func TestQuestionsAboutSequencesAreToldByTheirShape(t *testing.T) {
	ansi := lex.Mode{SQLMode: lex.SQLMode{ANSIQuotes: true}}
	for _, c := range []struct {
		sql  string
		mode lex.Mode
		// each source as kind, text, schema, name and whether it has an alias; then the names
		// joined by a line; "" is none
		want string
	}{
		{
			"SELECT TABLE_NAME FROM INFORMATION_SCHEMA.TABLES WHERE TABLE_TYPE='SEQUENCE' and TABLE_NAME='s' AND TABLE_SCHEMA='a'",
			lex.Mode{},
			"0 <INFORMATION_SCHEMA.TABLES> INFORMATION_SCHEMA TABLES false [TABLE_NAME TABLE_TYPE TABLE_SCHEMA]",
		},
		{
			"select table_name from information_schema.TABLES where table_schema=database() and table_type='SEQUENCE'",
			lex.Mode{},
			"0 <information_schema.TABLES> information_schema TABLES false [TABLE_NAME TABLE_SCHEMA TABLE_TYPE]",
		},
		{
			"SELECT 1 FROM `information_schema` . `tables` t WHERE t.table_type = \"sequence\" LIMIT 1;",
			lex.Mode{},
			"0 <`information_schema` . `tables`> information_schema tables true [TABLE_TYPE]",
		},
		{
			"SELECT COUNT(*) FROM information_schema.tables AS t WHERE t.TABLE_TYPE IN ('BASE TABLE', 'SEQUENCE')",
			lex.Mode{},
			"0 <information_schema.tables> information_schema tables true [TABLE_TYPE]",
		},
		{
			"SELECT t.* FROM information_schema.tables t WHERE TABLE_TYPE LIKE 'SEQUENCE'",
			lex.Mode{},
			"0 <information_schema.tables> information_schema tables true [TABLE_TYPE] all",
		},
		{
			"SELECT * FROM \"information_schema\".\"TABLES\" WHERE \"TABLE_TYPE\"='SEQUENCE'", ansi,
			"0 <\"information_schema\".\"TABLES\"> information_schema TABLES false [TABLE_TYPE] all",
		},
		{
			"SELECT s.n FROM (SELECT TABLE_NAME AS n FROM information_schema.TABLES WHERE TABLE_TYPE = 'SEQUENCE') s",
			lex.Mode{},
			"0 <information_schema.TABLES> information_schema TABLES false [TABLE_NAME TABLE_TYPE]",
		},
		{
			"SELECT c.COLUMN_NAME FROM information_schema.COLUMNS c JOIN information_schema.TABLES t USING (TABLE_NAME) WHERE t.TABLE_TYPE='SEQUENCE'",
			lex.Mode{},
			"0 <information_schema.TABLES> information_schema TABLES true [COLUMN_NAME TABLE_NAME TABLE_TYPE]",
		},
		{
			"SELECT SEQUENCE_NAME FROM information_schema.SEQUENCES WHERE SEQUENCE_SCHEMA=?",
			lex.Mode{},
			"1 <information_schema.SEQUENCES> information_schema SEQUENCES false [SEQUENCE_NAME SEQUENCE_SCHEMA]",
		},
		{"SHOW FULL TABLES WHERE Table_type = 'SEQUENCE'", lex.Mode{}, "2 <SHOW FULL TABLES WHERE>   false [TABLE_TYPE]"},
		{"show full tables in `a b` where Table_type = 'SEQUENCE' and Tables_in_a = 's';", lex.Mode{}, "2 <show full tables in `a b` where> a b  false [TABLE_TYPE TABLES_IN_A]"},
		{"SELECT next_not_cached_value FROM `s`", lex.Mode{}, "3 <`s`>  s false [NEXT_NOT_CACHED_VALUE]"},
		{
			"SELECT 'x' as sequence_name, minimum_value, start_value FROM x UNION ALL SELECT 'y' as sequence_name, minimum_value, start_value FROM a.`y` q ",
			lex.Mode{},
			"3 <x>  x false 3 <a.`y`> a y true [SEQUENCE_NAME MINIMUM_VALUE START_VALUE]",
		},

		{"SELECT TABLE_NAME FROM information_schema.TABLES WHERE TABLE_SCHEMA='a'", lex.Mode{}, ""},
		{"SELECT TABLE_NAME FROM information_schema.TABLES WHERE TABLE_TYPE='BASE TABLE'", lex.Mode{}, ""},
		{"SELECT TABLE_NAME FROM information_schema.TABLES WHERE TABLE_NAME='sequence'", lex.Mode{}, ""},
		{"SELECT information_schema.TABLES.TABLE_NAME FROM information_schema.TABLES WHERE TABLE_TYPE='SEQUENCE'", lex.Mode{}, ""},
		{"SELECT TABLE_NAME FROM TABLES WHERE TABLE_TYPE='SEQUENCE'", lex.Mode{}, ""},
		{"SELECT TABLE_NAME FROM information_schema.TABLES WHERE TABLE_TYPE='SEQUENCE' /*!50000 AND 1 */", lex.Mode{}, ""},
		{"SELECT TABLE_NAME FROM information_schema.TABLES WHERE TABLE_TYPE='SEQUENCE", lex.Mode{}, ""},
		{"SELECT ROUTINE_NAME FROM information_schema.ROUTINES WHERE ROUTINE_NAME='SEQUENCE'", lex.Mode{}, ""},
		{"SHOW FULL TABLES", lex.Mode{}, ""},
		{"SHOW FULL TABLES LIKE 'SEQUENCE'", lex.Mode{}, ""},
		{"SHOW FULL TABLES WHERE Table_type = 'VIEW'", lex.Mode{}, ""},
		{"SHOW TABLES WHERE Tables_in_a = 'SEQUENCE'", lex.Mode{}, ""},
		{"SELECT value FROM s", lex.Mode{}, ""},
		{"SELECT minimum_value FROM limits", lex.Mode{}, ""},
		{"SELECT (SELECT next_not_cached_value FROM s)", lex.Mode{}, ""},
		{"UPDATE t SET minimum_value = 1", lex.Mode{}, ""},
		{"", lex.Mode{}, ""},
	} {
		var got string
		if q, ok := ReadSequenceQuestion([]byte(c.sql), c.mode); ok {
			for _, s := range q.Sources {
				got += fmt.Sprintf("%d <%s> %s %s %t ", s.Kind, c.sql[s.Start:s.End], s.Schema, s.Name, s.Aliased)
			}
			got += fmt.Sprint(slices.DeleteFunc(q.Named, func(n string) bool { return n == "INFORMATION_SCHEMA" || !strings.Contains(n, "_") }))
			if q.All {
				got += " all"
			}
		}
		if got != c.want {
			t.Errorf("%s:\n got %s\nwant %s", c.sql, got, c.want)
		}
	}
	long := "SELECT TABLE_NAME FROM information_schema.TABLES WHERE TABLE_TYPE='SEQUENCE'" + strings.Repeat(" ", maxQuestion)
	if _, ok := ReadSequenceQuestion([]byte(long), lex.Mode{}); ok {
		t.Error("a text beyond the bound was read")
	}
}

func FuzzReadSequenceQuestion(f *testing.F) {
	for _, sql := range []string{
		"SELECT COUNT(*) FROM information_schema.tables AS t WHERE t.TABLE_TYPE IN ('BASE TABLE', 'SEQUENCE')",
		"SHOW FULL TABLES FROM `a` WHERE Table_type = 'SEQUENCE' -- x", "SELECT next_not_cached_value FROM `s`, t UNION ALL SELECT 1 FROM a.b",
		"SELECT 1 FROM \"information_schema\" . SEQUENCES",
	} {
		f.Add([]byte(sql), byte(0))
		f.Add([]byte(sql), byte(2))
		f.Add([]byte(sql), byte(lex.GBK)<<2)
	}
	f.Fuzz(func(t *testing.T, sql []byte, m byte) {
		q, ok := ReadSequenceQuestion(sql, texts.ModeOf(m))
		if !ok {
			return
		}
		end := 0
		for _, s := range q.Sources {
			if s.Start < end || s.End <= s.Start || s.End > len(sql) || s.Kind != q.Sources[0].Kind && s.Kind > SourceSequences {
				t.Fatalf("%q: a source of kind %d at [%d,%d) after %d", sql, s.Kind, s.Start, s.End, end)
			}
			end = s.End
		}
		if len(q.Sources) == 0 || q.Sources[0].Kind == SourceShow && (q.End <= end || q.End > len(sql)) {
			t.Fatalf("%q: %d sources, and the end at %d", sql, len(q.Sources), q.End)
		}
	})
}
