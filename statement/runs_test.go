package statement

import (
	"testing"

	"seqproxy/statement/lex"
)

func TestWhatATextMayRunBesideItself(t *testing.T) {
	for want, texts := range map[Runs][]string{
		RunsOthers: {
			"call p()", "CALL p", "call db.p(1, (2))", "call `a b`.`p` () ;", "call p(f(1)); select 1", "call db.pkg.p(')')",
			"execute s", "execute immediate 'select 1'", "set statement max_statement_time = 1 for call p()",
			"begin not atomic set @x = 1; end", "if 1 then select 1; end if", "case 1 when 1 then select 1; end case", "x: begin not atomic end",
			"`x`: loop select 1; end loop", "<<x>> loop null; end loop", "for i in 1 .. 2 do select i; end for", "declare x int; begin null; end",
			"/*!50000 call */ p()", "/*! begin */ not atomic end",
		},
		RunsFunctions: {
			"", "select 1", "selec 1", "insert into t values (1)", "call p(", "call p(1))", "call p 1", "call 'p'()", "call p.", "call p.()", "call",
			"begin wrok", "if 1 then", "x: select", "select 'unbalanced", "select \"unbalanced", "select /* open", "(selec 1)", "123", "foo bar; call p()",
			"set @x = 'it's'", "select 1; call p()", "select f(1), get_lock('l', 1)", "select db.f(1) into @x", "select @x := a from t", "do get_lock('l', 1), f ()",
			"lock tables t read", "create procedure p() call q()", "set names utf8",
		},
		RunsItself: {
			"select get_lock(l, 1)", "do get_lock('l', nothing), release_lock('m')", "set @x = nothing", "select @x := (1 + nothing)", "select nothing into @x",
			"set @x = upper(nothing)", "select is_free in (1, 2), @x := 1",
		},
	} {
		for _, sql := range texts {
			var st Statement
			if st.Analyze([]byte(sql), lex.Mode{}); st.Runs != want {
				t.Errorf("%s: got %d, want %d", sql, st.Runs, want)
			}
		}
	}
	var st Statement
	for sql, want := range map[string]string{
		"call p()": ".p", "call `d.b` . `P q`": "d.b.P q", "select 1; call p()": ".", "call": ".", "call d.p; call q": "d.p",
	} {
		if st.Analyze([]byte(sql), lex.Mode{}); string(st.ProcedureSchema)+"."+string(st.Procedure) != want {
			t.Errorf("%s: got %s . %s, want %s", sql, st.ProcedureSchema, st.Procedure, want)
		}
	}
}
