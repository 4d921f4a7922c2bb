package tlsfiles

import (
	"crypto/rand"
	"crypto/rsa"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/zap"

	"seqproxy/test/mysqltest"
)

func serverWith(t *testing.T, c mysqltest.Certificate) *tls.Config {
	t.Helper()
	pair, err := tls.LoadX509KeyPair(c.CertFile, c.KeyFile)
	if err != nil {
		t.Fatal(err)
	}
	return &tls.Config{Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS12}
}

func TestEachModeVerifiesWhatItsNameSays(t *testing.T) {
	ca, other := mysqltest.NewCA(t), mysqltest.NewCA(t)
	certificates := map[string]mysqltest.Certificate{
		"right":               ca.Server(t, "db1", "10.0.0.5"),
		"of another CA":       other.Server(t, "db1", "10.0.0.5"),
		"of another server":   ca.Server(t, "db2"),
		"with a wildcard":     ca.Server(t, "*.example"),
		"with no names":       ca.Issue(t, func(c *x509.Certificate) { c.Subject.CommonName = "db1" }),
		"with no names, else": ca.Issue(t, func(c *x509.Certificate) { c.Subject.CommonName = "db2" }),
		"with a name beside":  ca.Issue(t, func(c *x509.Certificate) { c.Subject.CommonName, c.DNSNames = "db1", []string{"db2"} }),
		"expired":             ca.Issue(t, func(c *x509.Certificate) { c.DNSNames, c.NotAfter = []string{"db1"}, time.Now().Add(-time.Minute) }),
		"not valid yet":       ca.Issue(t, func(c *x509.Certificate) { c.DNSNames, c.NotBefore = []string{"db1"}, time.Now().Add(time.Minute) }),
		"of a client": ca.Issue(t, func(c *x509.Certificate) {
			c.DNSNames, c.ExtKeyUsage = []string{"db1"}, []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}
		}),
	}
	for _, test := range []struct {
		certificate, address, serverName string
		ca, identity                     bool // whether the two modes that verify accept it
	}{
		{"right", "db1:3306", "", true, true},
		{"right", "DB1.:3306", "", true, true},
		{"right", "10.0.0.5:3306", "", true, true},
		{"right", "10.0.0.6:3306", "", true, false},
		{"right", "db2:3306", "", true, false},
		{"right", "db2:3306", "db1", true, true},
		{"right", "/run/s", "", true, false},
		{"right", "/run/s", "db1", true, true},
		{"of another CA", "db1:3306", "", false, false},
		{"of another server", "db1:3306", "", true, false},
		{"with a wildcard", "a.example:3306", "", true, true},
		{"with a wildcard", "a.b.example:3306", "", true, false},
		{"with no names", "db1:3306", "", true, true},
		{"with no names", "10.0.0.5:3306", "", true, false},
		{"with no names, else", "db1:3306", "", true, false},
		{"with a name beside", "db1:3306", "", true, false},
		{"with a name beside", "db2:3306", "", true, true},
		{"expired", "db1:3306", "", false, false},
		{"not valid yet", "db1:3306", "", false, false},
		{"of a client", "db1:3306", "", false, false},
	} {
		for mode, want := range map[Mode]bool{Preferred: true, Required: true, VerifyCA: test.ca, VerifyIdentity: test.identity} {
			files := ClientFiles{Mode: mode, ServerName: test.serverName}
			if mode.verifies() {
				files.CA = ca.File
			}
			c, err := NewStore(zap.NewNop()).Client("s", files)
			if err != nil {
				t.Fatal(err)
			}
			security := c.To(test.address).Security()
			if security.Optional != (mode == Preferred) {
				t.Errorf("%s: optional is %v", mode, security.Optional)
			}
			_, err, _ = handshake(t, serverWith(t, certificates[test.certificate]), security.TLS)
			if got := err == nil; got != want {
				t.Errorf("%s, certificate %s, %s (%s): got %v, want success: %v", mode, test.certificate, test.address, test.serverName, err, want)
			}
			var verification *VerificationError
			if err != nil && (!errors.As(err, &verification) || !strings.Contains(err.Error(), `tls = "`)) {
				t.Errorf("%s, certificate %s: got %v, want the way out in it", mode, test.certificate, err)
			}
		}
	}
}

func TestTheSystemsCAsAreNoneOfOurs(t *testing.T) {
	ca := mysqltest.NewCA(t)
	c, err := NewStore(zap.NewNop()).Client("s", ClientFiles{Mode: VerifyIdentity})
	if err != nil {
		t.Fatal(err)
	}
	if _, err, _ := handshake(t, serverWith(t, ca.Server(t, "db1")), c.To("db1:3306").Security().TLS); err == nil {
		t.Error("an unknown CA is trusted")
	}
}

func TestNoModeAndNoClientMeanPlain(t *testing.T) {
	var none *Client
	if got := none.To("db1:3306").Security(); got.TLS != nil || got.PublicKey != nil {
		t.Errorf("got %+v, want nothing", got)
	}
	c, err := NewStore(zap.NewNop()).Client("s", ClientFiles{Mode: Disabled})
	if err != nil {
		t.Fatal(err)
	}
	if got := c.To("db1:3306").Security(); got.TLS != nil {
		t.Errorf("DISABLED: got %+v, want no TLS", got)
	}
}

func TestSessionsAreResumedUntilTheFilesChange(t *testing.T) {
	ca, second := mysqltest.NewCA(t), mysqltest.NewCA(t)
	cert := ca.Server(t, "db1")
	store := NewStore(zap.NewNop())
	c, err := store.Client("s", ClientFiles{Mode: VerifyIdentity, CA: ca.File})
	if err != nil {
		t.Fatal(err)
	}
	target, server := c.To("db1:3306"), serverWith(t, cert)
	resumed := func() bool {
		t.Helper()
		state, err, _ := handshake(t, server, target.Security().TLS)
		if err != nil {
			t.Fatal(err)
		}
		return state.DidResume
	}
	if resumed() {
		t.Error("the first handshake resumed a session")
	}
	if !resumed() {
		t.Error("the second handshake resumed no session")
	}
	// With other CAs the server is no longer trusted.
	b, err := os.ReadFile(second.File)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(ca.File, b, 0o600); err != nil {
		t.Fatal(err)
	}
	if changed, err := store.Reload(); len(changed) != 1 || err != nil {
		t.Fatalf("got %v, %v, want one change", changed, err)
	}
	if _, err, _ := handshake(t, server, target.Security().TLS); err == nil {
		t.Error("a session that was verified with removed CAs was resumed")
	}
	if got := c.To("db2:1"); got.Security() == target.Security() {
		t.Error("two servers share their sessions")
	}
}

func TestFilesThatHoldSomethingElseAreRefusedByName(t *testing.T) {
	ca := mysqltest.NewCA(t)
	cert := ca.Client(t, "c")
	garbage := filepath.Join(t.TempDir(), "garbage")
	if err := os.WriteFile(garbage, []byte("-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for want, files := range map[string]ClientFiles{
		"tls_ca_file ":            {Mode: VerifyCA, CA: cert.KeyFile},
		`tls_ca_file "` + garbage: {Mode: VerifyCA, CA: garbage},
		"tls_cert_file ":          {Mode: Required, Cert: ca.File, Key: cert.KeyFile},
		"public_key_file ":        {Mode: Disabled, PublicKey: cert.CertFile},
		"no such file":            {Mode: VerifyCA, CA: "/none/ca"},
	} {
		if _, err := NewStore(zap.NewNop()).Client("s", files); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q in it", err, want)
		}
	}
}

func TestPublicKeysAreReadInBothForms(t *testing.T) {
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.MarshalPKIXPublicKey(&key.PublicKey)
	if err != nil {
		t.Fatal(err)
	}
	for _, block := range []*pem.Block{
		{Type: "PUBLIC KEY", Bytes: der},
		{Type: "RSA PUBLIC KEY", Bytes: x509.MarshalPKCS1PublicKey(&key.PublicKey)},
	} {
		path := filepath.Join(t.TempDir(), "key.pem")
		if err := os.WriteFile(path, pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
		c, err := NewStore(zap.NewNop()).Client("s", ClientFiles{Mode: Disabled, PublicKey: path})
		if err != nil {
			t.Fatal(err)
		}
		if got := c.To("a:1").Security().PublicKey; got == nil || !got.Equal(&key.PublicKey) {
			t.Errorf("%s: got another key", block.Type)
		}
	}
}

func TestASettingIsMadeOnceAndForgottenWhenNobodyUsesIt(t *testing.T) {
	ca, other := mysqltest.NewCA(t), mysqltest.NewCA(t)
	cert := ca.Server(t, "db1")
	s := NewStore(zap.NewNop())
	client := func(name string, files ClientFiles) *Client {
		t.Helper()
		c, err := s.Client(name, files)
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	one, two := ClientFiles{Mode: VerifyCA, CA: ca.File}, ClientFiles{Mode: VerifyCA, CA: other.File}
	made := client("a", one)
	if again := client("a", one); again != made {
		t.Error("the same files for the same use were read into two settings")
	}
	if made == client("a", two) || made == client("b", one) {
		t.Error("other files, or another use, gave the same setting")
	}
	server := ServerFiles{Cert: cert.CertFile, Key: cert.KeyFile}
	first, err := s.Server("tls", server)
	if err != nil {
		t.Fatal(err)
	}
	if again, err := s.Server("tls", server); err != nil || again != first {
		t.Errorf("the same files of a server: got %p, %v, want %p", again, err, first)
	}
	s.Keep([]Use{{"a", two}, {"tls", server}})
	b, err := os.ReadFile(cert.CertFile)
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range []string{ca.File, other.File} {
		if err := os.WriteFile(file, b, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if changed, err := s.Reload(); err != nil || len(changed) != 1 || changed[0] != "a" {
		t.Errorf("changed: got %q, %v, want the one that was kept", changed, err)
	}
}
