package ddl_test

import (
	"strings"
	"testing"

	"seqproxy/statement"
	"seqproxy/statement/ddl"
	"seqproxy/statement/lex"
)

// Each spelling that the page tells is read, with what may be left out and without.
func TestTheOptionsOfThePageAreRead(t *testing.T) {
	values := strings.NewReplacer(" n", " 7", " type", " INT")
	without := func(text string) string {
		for strings.Contains(text, "[") {
			open := strings.LastIndexByte(text, '[')
			end := open + strings.IndexByte(text[open:], ']')
			text = text[:open] + text[end+1:]
		}
		return text
	}
	for _, o := range ddl.SequenceOptions() {
		for _, text := range o.Texts {
			for _, option := range []string{without(text), strings.NewReplacer("[", "", "]", "").Replace(text)} {
				for _, sql := range []string{"CREATE SEQUENCE s " + values.Replace(option), "ALTER SEQUENCE s " + values.Replace(option)} {
					var st statement.Statement
					st.Analyze([]byte(sql), lex.Mode{})
					refused := st.Sequence == nil || st.Sequence.Problem != "" || st.Sequence.Unsupported != ""
					if wantRefused := strings.Contains(sql, "CREATE SEQUENCE s RESTART"); refused != wantRefused {
						t.Errorf("%s: refused %v, want %v", sql, refused, wantRefused)
					}
				}
			}
		}
	}
}
