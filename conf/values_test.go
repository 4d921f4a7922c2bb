package conf

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"
)

func TestNothingPrintsASecret(t *testing.T) {
	const password = "hunter2"
	c := ForBackend("127.0.0.1:3306", "app", NewSecret(password), "")
	secret := c.Users[0].Password
	var out strings.Builder
	for _, value := range []any{secret, &secret, c, *c, c.Users[0], []Secret{secret}, map[string]any{"p": secret}} {
		for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%d"} {
			fmt.Fprintf(&out, verb+"\n", value)
		}
		encoded, err := json.Marshal(value)
		if err != nil {
			t.Fatal(err)
		}
		out.Write(encoded)
	}
	slog.New(slog.NewTextHandler(&out, nil)).Info("x", "secret", secret, "config", c)
	core, logs := observer.New(zapcore.DebugLevel)
	zap.New(core).Info("x", zap.Any("any", secret), zap.Reflect("reflect", c), zap.Stringer("stringer", secret))
	encoder := zapcore.NewJSONEncoder(zapcore.EncoderConfig{})
	line, err := encoder.EncodeEntry(zapcore.Entry{}, logs.All()[0].Context)
	if err != nil {
		t.Fatal(err)
	}
	out.Write(line.Bytes())

	if strings.Contains(out.String(), password) || strings.Contains(out.String(), fmt.Sprintf("%x", password)) {
		t.Error("the password was printed")
	}
	if !strings.Contains(out.String(), redacted) {
		t.Error("nothing was printed in its place")
	}
	if secret.Reveal() != password {
		t.Errorf("Reveal: got %q, want %q", secret.Reveal(), password)
	}
}

func TestSizesAreWholeNumbersWithAUnit(t *testing.T) {
	for text, want := range map[string]Size{
		"0B": 0, "512B": 512, "1KiB": 1024, "16MiB": 16 << 20, "3GiB": 3 << 30, "1000B": 1000, "8589934591GiB": (math.MaxInt64 >> 30) << 30,
	} {
		var got Size
		if err := got.UnmarshalText([]byte(text)); err != nil || got != want {
			t.Errorf("%s: got %d, %v, want %d", text, got, err, want)
		}
		var again Size
		if err := again.UnmarshalText([]byte(got.String())); err != nil || again != got {
			t.Errorf("%s prints as %s, which is %d, %v", text, got, again, err)
		}
	}
	for _, text := range []string{"", "B", "16", "16MB", "16M", "16 MiB", "-1B", "+1B", "1.5MiB", "16mib", "0x10B", "8589934592GiB", "99999999999999999999B"} {
		got := Size(7)
		if err := got.UnmarshalText([]byte(text)); err == nil || got != 7 {
			t.Errorf("%q: got %d, %v, want an error and no change", text, got, err)
		}
	}
}

func TestDurationsHaveAUnitAndAreNotNegative(t *testing.T) {
	for text, want := range map[string]time.Duration{"15m": 15 * time.Minute, "1h30m": 90 * time.Minute, "250ms": 250 * time.Millisecond, "0s": 0} {
		var got Duration
		if err := got.UnmarshalText([]byte(text)); err != nil || got.D() != want {
			t.Errorf("%s: got %s, %v, want %s", text, got, err, want)
		}
	}
	for _, text := range []string{"", "5", "-1s", "1 h", "1d", "forever"} {
		var got Duration
		if err := got.UnmarshalText([]byte(text)); err == nil {
			t.Errorf("%q: got %s, want an error", text, got)
		}
	}
}

func TestAddressesSplitForDial(t *testing.T) {
	for address, want := range map[Address][2]string{
		"db1:3306":                     {"tcp", "db1:3306"},
		"[::1]:3306":                   {"tcp", "[::1]:3306"},
		"unix:/run/mysqld/mysqld.sock": {"unix", "/run/mysqld/mysqld.sock"},
	} {
		network, dial := address.Split()
		if got := [2]string{network, dial}; got != want {
			t.Errorf("%s: got %q, want %q", address, got, want)
		}
		if err := address.check(); err != nil {
			t.Errorf("%s: %v", address, err)
		}
	}
	for _, address := range []Address{"", "db1", "db1:", "db1:0", "db1:x", "db1:65536", "db1:03306", "::1:3306", "unix:", "unix:rel/s", ":3306"} {
		if err := address.check(); err == nil {
			t.Errorf("%q is taken", address)
		}
	}
}

func TestTheProxysOwnAddressIsRecognised(t *testing.T) {
	for _, test := range []struct {
		node   Address
		listen string
		want   bool
	}{
		{"127.0.0.1:4306", "127.0.0.1:4306", true},
		{"localhost:4306", "127.0.0.1:4306", true},
		{"127.0.0.1:4306", "0.0.0.0:4306", true},
		{"[::1]:4306", ":4306", true},
		{"127.0.0.1:3306", "127.0.0.1:4306", false},
		{"127.0.0.2:4306", "127.0.0.1:4306", false},
		{"db1:4306", "0.0.0.0:4306", false},
		{"db1:4306", "127.0.0.1:4306", false},
		{"unix:/run/s.sock", "127.0.0.1:4306", false},
		{"127.0.0.1:0", "127.0.0.1:0", false},
	} {
		if got := sameEndpoint(test.node, test.listen); got != test.want {
			t.Errorf("%s behind %s: got %t, want %t", test.node, test.listen, got, test.want)
		}
	}
}

func TestPasswordFilesHoldOneLine(t *testing.T) {
	path := filepath.Join(t.TempDir(), "p")
	for text, want := range map[string]string{
		"secret":                               "secret",
		"secret\n":                             "secret",
		"secret\r\n":                           "secret",
		" se cret \n":                          " se cret ",
		"":                                     "",
		"\n":                                   "",
		"a\nb\n":                               "",
		"a\x00b":                               "",
		strings.Repeat("x", maxPasswordFile+1): "",
	} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		got, _, err := ReadPasswordFile(path)
		if want == "" {
			if err == nil {
				t.Errorf("%.20q: taken as a password", text)
			} else if strings.Contains(err.Error(), "a\nb") {
				t.Errorf("the error shows the content: %v", err)
			}
			continue
		}
		if err != nil || got.Reveal() != want {
			t.Errorf("%q: got %q, %v, want %q", text, got.Reveal(), err, want)
		}
	}
	if _, _, err := ReadPasswordFile(filepath.Dir(path)); err == nil || !strings.Contains(err.Error(), "is a directory") {
		t.Errorf("a directory: got %v", err)
	}
}

func TestTheNearestKeyIsSuggested(t *testing.T) {
	for name, want := range map[string]string{
		"listn": "listen", "max_connection": "max_connections", "shard.nodes": "shard.node",
		"Sequence.Cache": "sequence.cache", "table": "sequence.table", "zzzzzz": "",
	} {
		if got := nearestKey(name); got != want {
			t.Errorf("%s: got %q, want %q", name, got, want)
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add(minimal)
	f.Add(Example)
	f.Add("[[user]]\nname = 5")
	f.Add("[sequence.server]")
	f.Fuzz(func(t *testing.T, text string) {
		if strings.Contains(text, "_file") {
			return // it would use files of this machine
		}
		c, err := Parse("f.toml", []byte(text))
		if (c == nil) == (err == nil) {
			t.Fatalf("got %v, %v", c, err)
		}
		if err == nil && c.Validate() != nil {
			t.Errorf("a parsed config is not valid: %v", c.Validate())
		}
	})
}

func TestNetworksAreComparedByTheirOwnFamily(t *testing.T) {
	for text, want := range map[string]string{
		"10.0.0.7":             "10.0.0.7/32",
		"10.0.0.0/8":           "10.0.0.0/8",
		"0.0.0.0/0":            "0.0.0.0/0",
		"::1":                  "::1/128",
		"fd00::/8":             "fd00::/8",
		"::ffff:10.0.0.7":      "10.0.0.7/32",
		"::ffff:10.0.0.0/104":  "10.0.0.0/8",
		"::ffff:10.0.0.7/128":  "10.0.0.7/32",
		"::ffff:0.0.0.0/90":    "",
		"10.0.0.1/8":           "",
		"::ffff:10.0.0.1/104":  "",
		"10.0.0.0/33":          "",
		"10.0.0":               "",
		"fe80::1%eth0":         "",
		"localhost":            "",
		"10.0.0.0/255.0.0.0":   "",
		"":                     "",
		"*":                    "",
		"10.0.0.0/8,127.0.0.1": "",
	} {
		got, err := Network(text).Prefix()
		if (err == nil) != (want != "") || err == nil && got.String() != want {
			t.Errorf("%q: got %s, %v, want %q", text, got, err, want)
		}
	}
}

// A mistyped name must not start a counter of its own, unless the configuration asks for that.
func TestUnknownSequencesAreNotCreatedUnlessAsked(t *testing.T) {
	for what, c := range map[string]*Config{"the default": Default(), "the least file": parse(t, minimal), "the sample": parse(t, Example)} {
		if c.UnknownSequence != UnknownSequenceError {
			t.Errorf("%s: got unknown_sequence = %q, want %q", what, c.UnknownSequence, UnknownSequenceError)
		}
	}
}
