package statement

import (
	"fmt"
	"testing"

	"seqproxy/statement/lex"
)

func TestDynamicStatementsAreTakenApart(t *testing.T) {
	for _, c := range []struct{ sql, want string }{
		{"PREPARE s FROM 'select 1'", `"s" "select 1" 'select 1'`},
		{"prepare `S t` from \"it's\";;", "\"s t\" \"it's\" \"it's\""},
		{"PREPARE s FROM @`v w`", "\"s\" @ @`v w`"},
		{"EXECUTE s", `"s"`},
		{"/* a */ execute S using @a, 'b', (select 1) -- x", `"s"`},
		{"EXECUTE IMMEDIATE 'do 1' USING 5;", `"" "do 1" 'do 1'`},
		{"EXECUTE IMMEDIATE @v", `"" @ @v`},
		{"DEALLOCATE PREPARE s", `"s"`},
		{"DROP PREPARE `s`", `"s"`},
		{"PREPARE s FROM CONCAT('a', 'b')", ""},
		{"PREPARE s FROM 'a' 'b'", ""},
		{"PREPARE s FROM N'a'", ""},
		{"PREPARE s FROM _utf8 'a'", ""},
		{"PREPARE s FROM 'a", ""},
		{"PREPARE s 'a'", ""},
		{"PREPARE /*! s */ FROM 'a'", ""},
		{"PREPARE", ""},
		{"EXECUTE s @a", ""},
		{"EXECUTE a.s", ""},
		{"EXECUTE IMMEDIATE 'a' || 'b'", ""},
		{"DEALLOCATE s", ""},
	} {
		got := ""
		if d, ok := ReadDynamic([]byte(c.sql), lex.Mode{}); ok {
			got = fmt.Sprintf("%q", d.Name)
			switch {
			case d.Variable:
				got += " @ " + c.sql[d.TextStart:d.TextEnd]
			case d.Text != nil:
				got += fmt.Sprintf(" %q ", d.Text) + c.sql[d.TextStart:d.TextEnd]
			}
		}
		if got != c.want {
			t.Errorf("%s: got %s, want %s", c.sql, got, c.want)
		}
	}
}
