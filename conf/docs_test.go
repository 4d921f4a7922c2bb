package conf

import (
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
)

// TestTheTagsListWhatIsAllowed compares the tags oneof with the checks of values.
func TestTheTagsListWhatIsAllowed(t *testing.T) {
	n := 0
	for _, key := range Keys() {
		if len(key.OneOf) == 0 {
			continue
		}
		n++
		c := parse(t, minimal+"[[shard]]\nname = 's'\n[[shard.node]]\naddress = 'h:1'")
		v := reflect.ValueOf(c).Elem()
		for word := range strings.SplitSeq(key.Name, ".") {
			if v.Kind() == reflect.Slice {
				v = v.Index(0)
			}
			v = fieldOf(v, word)
		}
		v.SetString("nonsense")
		quoted := `"` + strings.Join(key.OneOf, `", "`) + `"`
		if i := strings.LastIndex(quoted, `, "`); i >= 0 {
			quoted = quoted[:i] + " or " + quoted[i+2:]
		}
		last := key.Name[strings.LastIndexByte(key.Name, '.')+1:]
		problems := strings.Join(c.problems(), "\n")
		if want := last + ": must be " + quoted + `, is "nonsense"`; !strings.Contains(problems, want) {
			t.Errorf("%s: got %q, want %q in it", key.Name, problems, want)
		}
	}
	if n < 9 {
		t.Errorf("found %d keys with the tag, want more", n)
	}
}

// fieldOf returns the field of a struct for a key.
func fieldOf(v reflect.Value, key string) reflect.Value {
	for i := range v.NumField() {
		switch field := v.Type().Field(i); {
		case field.Anonymous:
			if inner := fieldOf(v.Field(i), key); inner.IsValid() {
				return inner
			}
		case field.Tag.Get("toml") == key:
			return v.Field(i)
		}
	}
	return reflect.Value{}
}

func TestTheFileOnThePageLoads(t *testing.T) {
	text, err := os.ReadFile("../docs/config.md")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(text), "```toml\n")
	sample, _, ok := strings.Cut(rest, "```")
	if !ok {
		t.Fatal("docs/config.md has no sample")
	}
	dir := t.TempDir()
	for name, content := range map[string]string{"f.toml": sample, "app.password": "a", "sequence.password": "s"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	c, err := Load(filepath.Join(dir, "f.toml"))
	if err != nil {
		t.Fatal(err)
	}
	if c.DefaultShard != "main" || len(c.Warnings()) > 0 {
		t.Errorf("got default shard %q and warnings %q, want main and none", c.DefaultShard, c.Warnings())
	}
}
