package conf

import (
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
)

// documented reads the tables of docs/config.md: the default of each key, as the
// page writes it.
func documented(t *testing.T) map[string]string {
	t.Helper()
	text, err := os.ReadFile("../docs/config.md")
	if err != nil {
		t.Fatal(err)
	}
	defaults := make(map[string]string)
	for line := range strings.Lines(string(text)) {
		cells := strings.Split(line, "|")
		if len(cells) < 5 || !strings.HasPrefix(cells[1], " `") {
			continue
		}
		key := strings.Trim(cells[1], " `")
		if _, twice := defaults[key]; twice {
			t.Errorf("%s is documented twice", key)
		}
		defaults[key] = strings.Trim(cells[2], " `")
	}
	return defaults
}

func TestThePageDocumentsEveryKeyWithItsDefault(t *testing.T) {
	page := documented(t)
	want := make(map[string]string)
	defaultsOf(reflect.ValueOf(*Default()), "", want)
	if len(want) < 40 {
		t.Fatalf("found %d keys in Config, want more: the test does not see them", len(want))
	}
	for key, value := range want {
		got, ok := page[key]
		switch {
		case !ok:
			t.Errorf("docs/config.md does not document %s", key)
		case slices.Contains([]string{"admin_users", "proxy_protocol_from", "failed_login_exempt", "shard.schemas", "sequence.server.nodes"}, key):
			if got != "[]" {
				t.Errorf("%s: documented default %s, want []", key, got)
			}
		case key == "user.sequences": // left out is not the same as empty
			if got != `["*"]` {
				t.Errorf("%s: documented default %s, want all", key, got)
			}
		case got != "" || value != `""`:
			if shorten(got) != shorten(value) {
				t.Errorf("%s: documented default %s, want %s", key, got, value)
			}
		}
	}
	for key := range page {
		if _, ok := want[key]; !ok {
			t.Errorf("docs/config.md documents %s, which does not exist", key)
		}
	}
}

// shorten makes "15m" of "15m0s", which is the same.
func shorten(value string) string {
	return strings.Replace(strings.Replace(value, "m0s", "m", 1), "h0m", "h", 1)
}

// defaultsOf writes down all keys that hold a value with the values in v, as TOML
// has them. Elements of lists of tables have no default but the zero value.
func defaultsOf(v reflect.Value, prefix string, into map[string]string) {
	for i := range v.NumField() {
		field := v.Type().Field(i)
		switch {
		case field.Anonymous:
			defaultsOf(v.Field(i), prefix, into)
			continue
		case !field.IsExported():
			continue
		}
		key := prefix + field.Tag.Get("toml")
		if table := tableType(field.Type); table != nil {
			value := v.Field(i)
			if value.Kind() == reflect.Slice {
				value = reflect.Zero(table)
			}
			defaultsOf(value, key+".", into)
			continue
		}
		switch value := v.Field(i).Interface().(type) {
		case int, int64, bool:
			into[key] = fmt.Sprint(value)
		case Secret: // never printed
			into[key] = `""`
		default:
			into[key] = fmt.Sprintf("%q", fmt.Sprint(value))
		}
	}
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
