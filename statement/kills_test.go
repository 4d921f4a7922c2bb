package statement

import (
	"fmt"
	"testing"

	"seqproxy/statement/lex"
)

func TestKillsAmongSeveralStatements(t *testing.T) {
	for _, c := range []struct{ sql, want string }{
		{"kill 5", "[]"},
		{"kill 5;", "[]"},
		{"select 1; select 2", "[]"},
		{"kill @x; kill connection_id()", "[]"},
		{"kill 5 + 1; select 1", "[]"},
		{"kill 5; select 1", "[kill 5/5/0]"},
		{"select 1; kill 5", "[kill 5/5/1]"},
		{"kill 5; -- c", "[kill 5/5/0]"},
		{"select 1;; kill query '6' ; kill hard connection 7", "[kill query '6'/6/1 kill hard connection 7/7/2]"},
		{"/*! kill 5 */; select 1", "[kill 5/5/0]"},
		{"/*! kill */ 5; select 1", "[]"},
		{"/*!50700 kill 5 */; select 1", "[]"},
		{"kill -1; select 1", "[kill -1/4294967295/0]"},
		{"call p(); kill 5", "[kill 5/5/-1]"},
		{"kill 5; call p()", "[kill 5/5/0]"},
		{"execute s; kill 5", "[kill 5/5/-1]"},
		{"select 'x; kill 5'; select 1", "[]"},
		{"begin not atomic kill 5; end", "[]"},
		{"create procedure p() kill 5; kill 6", "[]"},
		{"kill 5; select 'x", "[]"},
	} {
		var st Statement
		st.Analyze([]byte(c.sql), lex.Mode{})
		got := []string{}
		for _, k := range st.Kills {
			got = append(got, fmt.Sprintf("%s/%d/%d", c.sql[k.Begin:k.End], k.ID, k.Results))
		}
		if fmt.Sprint(got) != c.want {
			t.Errorf("%s: got %v, want %s", c.sql, got, c.want)
		}
	}
}
