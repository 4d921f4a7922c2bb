package conf

import (
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
)

func TestTheLinesOfAConfigurationAreThatConfiguration(t *testing.T) {
	t.Setenv("CONF_TEST_PASSWORD", "from env")
	t.Setenv("CONF_TEST_WORKER", "7")
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "p"), []byte("from file\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	const text = `
admin_users = ["a"]
unknown_user = "backend"
default_shard = "s1"
[admin]
listen = ""
[[user]]
name = "a"
password_file = "p"
old_password_env = "CONF_TEST_PASSWORD"
sequences = []
[[user]]
name = "b \"quoted\" größe"
max_connections = 3
sequences = ["photos", "video*"]
[sequence]
cache = 5
outage_cover = "0s"
worker_id_env = "CONF_TEST_WORKER"
[[sequence.server]]
nodes = ["h:1", "h:2"]
user = "u"
[[ticket]]
table = "flickr.tickets64"
[[bind]]
column = "photos.id"
sequence = "photos"
[[shard]]
name = "s0"
schemas = ["x", "y"]
tls = "PREFERRED"
[[shard.node]]
address = "db0:3306"
[[shard]]
name = "s1"
[[shard.node]]
address = "unix:/s.sock"
`
	file := filepath.Join(dir, "f.toml")
	want, err := Parse(file, []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Join(Lines(want), "\n")
	for _, secret := range []string{"from env", "from file", redacted} {
		if strings.Contains(lines, secret) {
			t.Errorf("the lines have %q:\n%s", secret, lines)
		}
	}
	got, err := Parse(file, []byte(lines))
	if err != nil {
		t.Fatalf("%v\n%s", err, lines)
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("%s\ngot  %+v\nwant %+v", lines, got, want)
	}
}

func TestLinesWithAPasswordLoadNowhere(t *testing.T) {
	lines := strings.Join(Lines(parse(t, minimal+"password = 'hush'")), "\n")
	if strings.Contains(lines, "hush") || !strings.Contains(lines, "password = "+redacted) {
		t.Errorf("got\n%s", lines)
	}
	if _, err := Parse("f.toml", []byte(lines)); err == nil {
		t.Error("lines without their password load")
	}
}
