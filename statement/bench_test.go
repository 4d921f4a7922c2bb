package statement

import (
	"strings"
	"testing"

	"seqproxy/statement/lex"
)

var benchTexts = []struct{ name, sql string }{
	{"PointSelect", "SELECT id, name FROM photos WHERE id = 12345"},
	{"InsertNextval", "INSERT INTO photos (id, album, title) VALUES (NEXTVAL('photos'), 12, 'a sunny day at the beach, 2024')"},
	{"SelectNextval", "SELECT NEXTVAL('photos')"},
	{"LongLiteral", "INSERT INTO photos (id, body) VALUES (1, '" + strings.Repeat("x", 64<<10) + "')"},
}

func BenchmarkAnalyze(b *testing.B) {
	for _, text := range benchTexts {
		b.Run(text.name, func(b *testing.B) {
			sql := []byte(text.sql)
			var st Statement
			b.ReportAllocs()
			b.SetBytes(int64(len(sql)))
			for b.Loop() {
				st.Analyze(sql, lex.Mode{})
			}
		})
	}
}

func BenchmarkRewrite(b *testing.B) {
	sql := []byte(benchTexts[1].sql)
	var (
		st    Statement
		needs []Need
		subs  []Substitution
		out   []byte
	)
	values := Replacements{Taken: []Taken{{First: 1001}}}
	b.ReportAllocs()
	for b.Loop() {
		st.Analyze(sql, lex.Mode{})
		needs = st.Needs(needs[:0], nil)
		subs = st.Substitutions(subs[:0], needs, nil, values)
		out = st.Rewrite(out[:0], sql, subs)
	}
}

func TestASteadyStatementAllocatesNothing(t *testing.T) {
	texts := []string{
		"insert into t values (nextval('it''s'), last_insert_id()), (?, nextval(a.b))",
		"SET @OLD_SQL_MODE=@@SQL_MODE, SQL_MODE='NO_AUTO_VALUE_ON_ZERO'",
		"create sequence a start with 5",
		"select nextval('a') as x, last_insert_id(), (((1)))",
	}
	for _, b := range benchTexts {
		texts = append(texts, b.sql)
	}
	var (
		st    Statement
		needs []Need
		subs  []Substitution
		out   []byte
	)
	values := Replacements{Taken: []Taken{{First: 1}, {First: 1}}, ConnectionID: 5}
	for _, text := range texts {
		sql := []byte(text)
		work := func() {
			st.Analyze(sql, lex.Mode{})
			needs = st.Needs(needs[:0], nil)
			subs = st.Substitutions(subs[:0], needs, nil, values)
			out = st.Rewrite(out[:0], sql, subs)
		}
		work()
		if got := testing.AllocsPerRun(20, work); got != 0 {
			t.Errorf("%.60q: got %v allocations, want 0", text, got)
		}
	}
}
