package statement

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"seqproxy/statement/lex"
)

func TestSchemasNamedBeforeTables(t *testing.T) {
	for sql, want := range map[string][]string{
		"SELECT a.b FROM c.d JOIN `e f`.g ON a.b = h.i LEFT join c.k": {"c", "e f"},
		"INSERT INTO a.b SELECT * FROM c":                             {"a"},
		"UPDATE a.b SET c.d = 1":                                      {"a"},
		"DELETE FROM a . b WHERE x IN (SELECT y FROM z.z)":            {"a", "z"},
		"CREATE TABLE a.b (c INT); TRUNCATE TABLE d.e":                {"a", "d"},
		"SELECT * FROM from_here, a.b":                                nil,
		"SELECT 'FROM a.b' /* FROM c.d */ FROM dual":                  nil,
		"SELECT x.from FROM":                                          nil,
		"":                                                            nil,
	} {
		if got := SchemasNamed([]byte(sql), lex.Mode{}); !slices.Equal(got, want) {
			t.Errorf("%s: got %q, want %q", sql, got, want)
		}
	}
}

func TestSoManySchemasAreNamedAtMost(t *testing.T) {
	var sql strings.Builder
	for i := range 10 * maxNamed {
		fmt.Fprintf(&sql, "FROM s%d.t ", i)
	}
	if got := SchemasNamed([]byte(sql.String()), lex.Mode{}); len(got) != maxNamed || got[0] != "s0" {
		t.Errorf("got %d names from %q on, want the first %d", len(got), got[0], maxNamed)
	}
}
