package statement

import (
	"fmt"
	"testing"

	"seqproxy/statement/lex"
)

func TestATextReadsCountsOfTheLastStatementBeforeItsFirstOrItsInsert(t *testing.T) {
	for _, c := range []struct {
		text string
		want Words
	}{
		{"insert into t values (row_count())", ReadsRowCount},
		{"insert into t values (1);", 0},
		{"set @a = 1; insert into t values (1); select row_count(), found_rows(); show warnings", ReadsFoundRows},
		{"set @a = 1; ; insert into t values (row_count()); insert into t values (@@warning_count)", 0},
		{"do 1; show warnings; update t set a = 1; insert into t values (row_count())", ReadsWarnings},
		{"select row_count(); select 1", ReadsRowCount},
		{"delete from t; select row_count(), 'found_rows()'", 0},
		{"select 1; select row_count(), found_rows(); show warnings", ReadsFoundRows | ReadsWarnings},
		{"do row_count (); insert into t values (1)", ReadsRowCount},
	} {
		var st Statement
		if st.Analyze([]byte(c.text), lex.Mode{}); st.ReadsOfLast() != c.want {
			t.Errorf("%q: got %b, want %b", c.text, st.ReadsOfLast(), c.want)
		}
	}
}

func TestATextKeepsItsParts(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{"SELECT 1", ""},
		{"USE a;", ""},
		{"/* ; */ USE a; ; DO 1;# ;\nUSE `b;`; SET @x = ';', autocommit = 0", "Use a 0; Do  0; Use b; 0; Set  2"},
		{"SET a = 1; CREATE /* ; */ DATABASE IF NOT EXISTS c", "Set  1; CreateDatabase c 0"},
	} {
		var st Statement
		st.Analyze([]byte(c.text), lex.Mode{})
		got := ""
		for i, p := range st.Parts {
			if i > 0 {
				got += "; "
			}
			got += fmt.Sprintf("%s %s %d", kindNames[p.Kind], p.Schema, p.To-p.From)
		}
		if got != c.want {
			t.Errorf("%q: got %q, want %q", c.text, got, c.want)
		}
	}
}
