package conf

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
)

const before = `
listen = "127.0.0.1:1"
admin_users = ["a"]
[[user]]
name = "a"
password = "p1"
[[user]]
name = "b"
[[user]]
name = "c"
schema = "x"
[sequence]
cache = 1000
[[sequence.server]]
address = "h:1"
user = "u"
[[shard]]
name = "s"
[[shard.node]]
address = "h:1"
[[bind]]
column = "photos.id"
sequence = "photos"
`

const after = `
listen = "127.0.0.1:2"
default_shard = "s"
admin_users = ["a", "c"]
[[user]]
name = "c"
sequences = ["photos"]
[[user]]
name = "a"
password = "p2"
[[user]]
name = "d"
password = "hidden"
[sequence]
cache = 2000
[[sequence.server]]
address = "h:9"
user = "u"
password = "secret"
[[shard]]
name = "s"
schemas = ["x", "y"]
[[shard.node]]
address = "h:2"
[[shard]]
name = "t"
[[shard.node]]
address = "unix:/s"
`

func TestDifferencesAreListedByKey(t *testing.T) {
	old, now := parse(t, before), parse(t, after)
	var got []string
	for _, c := range Diff(old, now) {
		got = append(got, fmt.Sprintf("%s: %s -> %s, %s", c.Key, c.Old, c.New, c.When))
	}
	want := []string{
		`listen: "127.0.0.1:1" -> "127.0.0.1:2", restart`,
		`admin_users: ["a"] -> ["a", "c"], new`,
		`user["a"].password: [redacted] -> [redacted], new`,
		`user["b"]: {name = "b"} -> , new`,
		`user["c"].schema: "x" -> , new`,
		`user["c"].sequences: ["*"] -> ["photos"], new`,
		`user["d"]:  -> {name = "d", password = [redacted]}, new`,
		`sequence.cache: 1000 -> 2000, now`,
		`sequence.server #1.address: "h:1" -> "h:9", restart`,
		`sequence.server #1.password:  -> [redacted], restart`,
		`bind["photos.id"]: {column = "photos.id", sequence = "photos"} -> , now`,
		`shard["s"].schemas: [] -> ["x", "y"], now`,
		`shard["s"].node #1.address: "h:1" -> "h:2", now`,
		`shard["t"]:  -> {name = "t", node = [{address = "unix:/s"}]}, now`,
	}
	if !slices.Equal(got, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	if d := Diff(old, parse(t, before)); len(d) > 0 {
		t.Errorf("the same twice: got %v", d)
	}
	// Empty lists are equal, however they are written.
	if d := Diff(parse(t, "proxy_protocol_from = []\nadmin_users = []"+minimal), parse(t, minimal)); len(d) > 0 {
		t.Errorf("empty lists: got %v", d)
	}
}

func TestWhatTakesARestartStays(t *testing.T) {
	old, now := parse(t, before), parse(t, after)
	got := Reloaded(old, now)
	if got.Listen != old.Listen || !reflect.DeepEqual(got.Sequence.Servers, old.Sequence.Servers) {
		t.Errorf("got listen %s and servers %v, want the old ones", got.Listen, got.Sequence.Servers)
	}
	if got.Sequence.Cache != 2000 || len(got.Shards) != 2 || got.User("d") == nil || got.User("b") != nil {
		t.Errorf("got %+v, want the rest of the new one", got)
	}
	for _, c := range Diff(old, got) {
		if c.When == WhenRestart {
			t.Errorf("%s was changed", c.Key)
		}
	}
	for _, c := range Diff(got, now) {
		if c.When != WhenRestart {
			t.Errorf("%s was not changed", c.Key)
		}
	}
	if now.Listen != "127.0.0.1:2" {
		t.Error("the new configuration was changed")
	}
}

// The list of sequence servers needs a restart, but their accounts do not. An account goes to the
// server with the same addresses, wherever that is in the list.
func TestSequenceServersStayAndTheirAccountsDoNot(t *testing.T) {
	server := func(address, user, password string) string {
		return fmt.Sprintf("[[sequence.server]]\n%s\nuser = %q\npassword = %q\n", address, user, password)
	}
	const a, b, c = "address = 'a:1'", "address = 'b:1'", "address = 'c:1'"
	old := parse(t, "admin_users=['a']\n[[user]]\nname='a'\n"+server(a, "u", "1")+server(b, "v", "2"))
	for _, test := range []struct {
		now      string
		accounts []string // in force
		changes  []string
	}{
		{server(a, "u", "3") + server(b, "w", "2"), []string{"a:1 u 3", "b:1 w 2"}, []string{"sequence.server #1.password new", "sequence.server #2.user new"}},
		{server(b, "v", "4") + server(a, "u", "1"), []string{"a:1 u 1", "b:1 v 4"}, []string{"sequence.server #2.password new"}},
		{server(a, "u", "5") + server(c, "w", "6"), []string{"a:1 u 5", "b:1 v 2"}, []string{
			"sequence.server #1.password new", "sequence.server #2.address restart", "sequence.server #2.user restart", "sequence.server #2.password restart",
		}},
		{server(b, "v", "7"), []string{"a:1 u 1", "b:1 v 7"}, []string{"sequence.server #1 restart", "sequence.server #2.password new"}},
		{server(a, "u", "1") + server(c, "w", "6") + server(b, "v", "8"), []string{"a:1 u 1", "b:1 v 8"}, []string{"sequence.server #2.password new", "sequence.server #2 restart"}},
	} {
		now := parse(t, "admin_users=['a']\n[[user]]\nname='a'\n"+test.now)
		var changes, accounts []string
		for _, c := range Diff(old, now) {
			changes = append(changes, fmt.Sprintf("%s %s", c.Key, c.When))
		}
		got := Reloaded(old, now)
		for _, s := range got.Sequence.Servers {
			accounts = append(accounts, fmt.Sprintf("%s %s %s", s.Address, s.User, s.Password.Reveal()))
		}
		if !slices.Equal(changes, test.changes) || !slices.Equal(accounts, test.accounts) {
			t.Errorf("%s\ngot changes %q and accounts %q\nwant %q and %q", test.now, changes, accounts, test.changes, test.accounts)
		}
		for _, c := range Diff(old, got) {
			if c.When == WhenRestart {
				t.Errorf("%s\n%s was changed", test.now, c.Key)
			}
		}
		for _, c := range Diff(got, now) {
			if c.When != WhenRestart {
				t.Errorf("%s\n%s was not changed", test.now, c.Key)
			}
		}
	}
	if old.Sequence.Servers[0].Password.Reveal() != "1" {
		t.Error("the old configuration was changed")
	}
}

// Reloaded replaces other lists of tables as a whole.
func TestInAListEveryKeyOrNoneTakesARestart(t *testing.T) {
	for _, list := range Keys() {
		if !list.Table || list.When == "" || list.When == WhenRestart {
			continue
		}
		for _, key := range Keys() {
			if strings.HasPrefix(key.Name, list.Name+".") && key.When == WhenRestart {
				t.Errorf("%s takes a restart, but its list %s does not", key.Name, list.Name)
			}
		}
	}
}

func TestSettingsAreAllKeysWithoutSecrets(t *testing.T) {
	got := make(map[string]string)
	for _, s := range Settings(parse(t, after)) {
		if _, twice := got[s.Key]; twice {
			t.Errorf("%s is there twice", s.Key)
		}
		if s.When == "" {
			t.Errorf("%s has no When", s.Key)
		}
		got[s.Key] = s.Value
	}
	for key, want := range map[string]string{
		"listen": `"127.0.0.1:2"`, "max_connections": "10000", "tls.cert_file": "", "sequence.outage_cover": `"15m"`,
		`user["d"].password`: redacted, `user["a"].sequences`: `["*"]`, `shard["t"].node #1.address`: `"unix:/s"`, "sequence.server #1.database": `"seqproxy"`,
	} {
		if value, ok := got[key]; !ok || value != want {
			t.Errorf("%s: got %q, %v, want %q", key, value, ok, want)
		}
	}
	if _, ok := got[`user["a"].schema`]; ok {
		t.Error("a key without a value in a list is there")
	}
}
