package statement

import (
	"fmt"
	"testing"

	"seqproxy/statement/lex"
)

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
