package plan

import (
	"testing"

	"seqproxy/proxy/state"
	"seqproxy/statement"
	"seqproxy/statement/lex"
)

// BenchmarkPlan plans texts that need no answer of a server, over and over.
func BenchmarkPlan(b *testing.B) {
	for _, text := range []struct{ name, sql string }{
		{"NEXTVAL", "INSERT INTO photos (id, title) VALUES (NEXTVAL('p'), 'a photo of a cat on a keyboard')"},
		{"filled in", "INSERT INTO photos (title) VALUES ('a photo of a cat on a keyboard')"},
	} {
		b.Run(text.name, func(b *testing.B) {
			bound := make(Bindings)
			bound.Add(photos)
			var (
				st statement.Statement
				s  state.State
				p  Planner
			)
			sql := []byte(text.sql)
			st.Analyze(sql, lex.Mode{})
			b.ReportAllocs()
			for b.Loop() {
				p.Facts = Facts{Charset: "utf8mb4", Server: true, Attached: true, Bound: bound, Names: p.Facts.Names[:0]}
				f, v := p.Fill(&st, sql, &s)
				p.Facts = Facts{Charset: "utf8mb4", Server: true, Attached: true, Fill: f, Names: p.Facts.Names[:0]}
				if v.Kind != Go || p.Text(&st, sql, &s).Kind != Go {
					b.Fatal(v.Kind)
				}
			}
		})
	}
}
