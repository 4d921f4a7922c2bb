package docs

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"seqproxy/conf"
)

func TestAPageIsProseAroundTables(t *testing.T) {
	folder := t.TempDir()
	source := "package x\ntype A struct {\n\t// what it\n\t// means\n\tB string `reload:\"now\"`\n\n\tC int // not above\n}\n"
	if err := os.WriteFile(filepath.Join(folder, "a.go"), []byte(source), 0o600); err != nil {
		t.Fatal(err)
	}
	b := conf.Key{Name: "a.b", Type: "string", Default: `"x"`, When: conf.WhenNow, Struct: "A", Field: "B"}
	of := conf.Key{Name: "a.of", Type: "string", OneOf: []string{"x", "y"}, When: conf.WhenRestart, Struct: "A", Field: "B"}
	got, err := page("# A\n{{keys \"a\"}}\nThe end.\n", folder, []conf.Key{b, of})
	if err != nil {
		t.Fatal(err)
	}
	want := warning + "# A\n" + head + "| `a.b` | string | `\"x\"` | at once | what it means |\n| `a.of` | `\"x\"`, `\"y\"` | | restart | what it means |\nThe end.\n"
	if string(got) != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}

	lacking := conf.Key{Name: "a.c", Type: "integer", Struct: "A", Field: "C"}
	_, err = page("{{keys \"\"}}", folder, []conf.Key{lacking, {Name: "d", Type: "string", When: conf.WhenNew, Struct: "A", Field: "B"}})
	for _, part := range []string{"conf.A.C (a.c): needs a comment", "conf.A.C (a.c): needs a tag reload", `needs a section with {{keys "a"}}`} {
		if err == nil || !strings.Contains(err.Error(), part) {
			t.Errorf("got %v, want %q in it", err, part)
		}
	}
	if err != nil && strings.Contains(err.Error(), "A.B") {
		t.Errorf("got %v, want nothing about a key that lacks nothing", err)
	}
	if _, err := page("{{keys \"z\"}}", folder, []conf.Key{b}); err == nil || !strings.Contains(err.Error(), `"z"`) {
		t.Errorf("a table that is not there: got %v", err)
	}
}
