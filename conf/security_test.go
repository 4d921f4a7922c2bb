package conf

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"seqproxy/internal/tlsfiles"
	"seqproxy/test/mysqltest"
)

// shardText is a configuration with a shard at address. lines are further keys of the shard.
func shardText(address, lines string) string {
	return minimal + "[[shard]]\nname = 's'\n" + lines + "\n[[shard.node]]\naddress = '" + address + "'\n"
}

func TestTheModeIsThatOfMySQLsClientsButDISABLEDWithinTheMachine(t *testing.T) {
	ca := mysqltest.NewCA(t)
	client := ca.Client(t, "c")
	withCA := "tls_ca_file = '" + ca.File + "'\n"
	withCert := "tls_cert_file = '" + client.CertFile + "'\ntls_key_file = '" + client.KeyFile + "'\n"
	for _, test := range []struct {
		address, lines string
		want           tlsfiles.Mode
	}{
		{"db1:3306", "", tlsfiles.Preferred},
		{"10.0.0.5:3306", "", tlsfiles.Preferred},
		{"[2001:db8::1]:3306", "", tlsfiles.Preferred},
		{"127.0.0.1:3306", "", tlsfiles.Disabled},
		{"127.0.1.1:3306", "", tlsfiles.Disabled},
		{"localhost:3306", "", tlsfiles.Disabled},
		{"[::1]:3306", "", tlsfiles.Disabled},
		{"unix:/run/mysqld.sock", "", tlsfiles.Disabled},
		{"db1:3306", withCA, tlsfiles.VerifyCA},
		{"127.0.0.1:3306", withCA, tlsfiles.VerifyCA},
		{"127.0.0.1:3306", withCert, tlsfiles.Preferred},
		{"db1:3306", "tls = 'DISABLED'", tlsfiles.Disabled},
		{"127.0.0.1:3306", "tls = 'REQUIRED'", tlsfiles.Required},
		{"db1:3306", "tls = 'VERIFY_IDENTITY'", tlsfiles.VerifyIdentity},
		{"unix:/run/mysqld.sock", "tls = 'VERIFY_IDENTITY'\ntls_server_name = 'db1'", tlsfiles.VerifyIdentity},
	} {
		c := parse(t, shardText(test.address, test.lines))
		shard := c.Shard("s")
		if got := shard.Security.Files(shard.Addresses()...).Mode; got != test.want {
			t.Errorf("%s with %q: got %s, want %s", test.address, test.lines, got, test.want)
		}
		if got, want := shard.Security.Needed(shard.Addresses()...), test.want != tlsfiles.Disabled; got != want {
			t.Errorf("%s with %q: needed: got %v, want %v", test.address, test.lines, got, want)
		}
	}
}

func TestKeysOfTLSThatContradictEachOtherAreRefused(t *testing.T) {
	ca := mysqltest.NewCA(t)
	client := ca.Client(t, "c")
	for _, test := range []struct{ address, lines, want string }{
		{"db1:1", "tls = 'required'", `shard["s"].tls: must be "DISABLED", "PREFERRED", "REQUIRED", "VERIFY_CA" or "VERIFY_IDENTITY", is "required"`},
		{"db1:1", "tls = 'DISABLED'\ntls_ca_file = '" + ca.File + "'", `shard["s"].tls_ca_file: has no meaning with tls = "DISABLED"`},
		{"db1:1", "tls = 'REQUIRED'\ntls_ca_file = '" + ca.File + "'", `shard["s"].tls_ca_file: nothing is verified with tls = "REQUIRED"; set tls to "VERIFY_CA" or "VERIFY_IDENTITY"`},
		{"db1:1", "tls = 'VERIFY_CA'", `shard["s"].tls_ca_file: is missing; tls = "VERIFY_CA" needs it`},
		{"db1:1", "tls_server_name = 'x'", `shard["s"].tls_server_name: no name is verified with tls = "PREFERRED"; set tls to "VERIFY_IDENTITY"`},
		{"unix:/s", "tls = 'VERIFY_IDENTITY'", `shard["s"].tls_server_name: is missing; "VERIFY_IDENTITY" of a socket needs it`},
		{"db1:1", "tls_cert_file = '" + client.CertFile + "'", `shard["s"].tls_cert_file: and tls_key_file need each other`},
		{"db1:1", "tls_cert_file = '" + client.CertFile + "'\ntls_key_file = '" + ca.File + "'", `shard["s"]: tls_cert_file "`},
		{"db1:1", "tls_ca_file = '/none/ca'", `shard["s"]: tls_ca_file: stat /none/ca: no such file or directory`},
		{"127.0.0.1:1", "public_key_file = '" + ca.File + "'", `shard["s"]: public_key_file "`},
	} {
		got := parseProblems(t, shardText(test.address, test.lines))
		if len(got) != 1 || !strings.HasPrefix(got[0], test.want) {
			t.Errorf("%s: got %q, want %q", test.lines, got, test.want)
		}
	}
	got := parseProblems(t, strings.Replace(minimal, "[[sequence.server]]", "[[sequence.server]]\ntls = 'VERIFY_CA'", 1))
	if want := `sequence.server #1.tls_ca_file: is missing; tls = "VERIFY_CA" needs it`; len(got) != 1 || got[0] != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestFilesOfAServersTLSAreFoundBesideTheFile(t *testing.T) {
	ca := mysqltest.NewCA(t)
	text := shardText("db1:1", "tls_ca_file = '"+filepath.Base(ca.File)+"'")
	c, err := Parse(filepath.Join(filepath.Dir(ca.File), "f.toml"), []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	if got := c.Shard("s").CAFile; got != ca.File {
		t.Errorf("got %s, want %s", got, ca.File)
	}
}

func TestAPrivateKeyThatEverybodyMayReadIsWarnedOf(t *testing.T) {
	dir := t.TempDir()
	writeKeyPair(t, dir)
	const pair = "tls_cert_file = 'server.crt'\ntls_key_file = 'server.key'\n"
	text := strings.Replace(shardText("db1:3306", pair), "[[sequence.server]]", "[[sequence.server]]\n"+pair, 1) +
		"[tls]\ncert_file = 'server.crt'\nkey_file = 'server.key'\n"
	key := filepath.Join(dir, "server.key")
	for mode, want := range map[os.FileMode][]string{
		0o640: nil,
		0o644: {"tls.key_file: " + key, "sequence.server #1.tls_key_file: " + key, `shard["s"].tls_key_file: ` + key},
	} {
		if err := os.Chmod(key, mode); err != nil {
			t.Fatal(err)
		}
		c, err := Parse(filepath.Join(dir, "f.toml"), []byte(text))
		if err != nil {
			t.Fatal(err)
		}
		got := c.Warnings()
		if len(got) != len(want) {
			t.Errorf("%o: got %q, want %q", mode, got, want)
			continue
		}
		for i := range want {
			if !strings.Contains(got[i], want[i]+" is readable by everybody") {
				t.Errorf("%o: got %q, want %q", mode, got[i], want[i])
			}
		}
	}
}
