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

func TestSeveralPlainStatementsLeaveNoMoreThanEachAlone(t *testing.T) {
	for text, want := range map[string]bool{
		"insert into t values ('it''s'); select last_insert_id(), row_count();":                            true,
		"/* x */ select /*! 1 */; ; values row (1); with x as (select 1) select * from x; table t":         true,
		"replace t set a = @a; update t set a = nextval('s'); delete from t where a = last_insert_id(5);;": true,
		"select a from t union select 1; select found_rows()":                                              true,
		"select 1;":                                   false, // it is one
		"select 1; do 1":                              false,
		"select 1; set @a = 1":                        false,
		"select @a := 1; select 1":                    false,
		"select 1 into @a; select 1":                  false,
		"select 1; select get_lock('a', 1)":           false,
		"select 1; use a":                             false,
		"select 1; call p()":                          false,
		"select 1; show tables":                       false,
		"select 1; begin":                             false,
		"select 1; create table t (a int)":            false,
		"select 1; prepare s from @x":                 false,
		"select 1; explain select 1":                  false,
		"select 1; set names utf8mb4":                 false,
		"select 1; selec 2":                           false,
		"select 1; select 'open":                      false,
		"select 1; load data infile 'a' into table t": false,
		"select 1 /*!99999 , @a := 2 */; select 1":    false,
		"select 1; alter sequence s restart":          false,
		"select 1; kill 5":                            false,
		"select 1; analyze select 1":                  false,
	} {
		var st Statement
		st.Analyze([]byte(text), lex.Mode{})
		if got := st.Words&PlainParts != 0; got != want {
			t.Errorf("%q: got %v, want %v", text, got, want)
		}
	}
}
