package tlsfiles

import (
	"crypto/tls"
	"crypto/x509"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"seqproxy/test/mysqltest"
)

// with returns a client's settings that show a certificate to any server.
func with(t *testing.T, roots *x509.CertPool, c *mysqltest.Certificate) *tls.Config {
	t.Helper()
	cfg := &tls.Config{RootCAs: roots, ServerName: "127.0.0.1"}
	if c != nil {
		pair, err := tls.LoadX509KeyPair(c.CertFile, c.KeyFile)
		if err != nil {
			t.Fatal(err)
		}
		cfg.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return &pair, nil }
	}
	return cfg
}

func TestAClientMayShowACertificateOfTheClientCAAndNoOther(t *testing.T) {
	ca, other := mysqltest.NewCA(t), mysqltest.NewCA(t)
	files := ca.Server(t, "127.0.0.1")
	s, _ := newStore(t)
	verifying, err := s.Server("tls", ServerFiles{Cert: files.CertFile, Key: files.KeyFile, ClientCA: ca.File})
	if err != nil {
		t.Fatal(err)
	}
	plain, err := s.Server("tls", ServerFiles{Cert: files.CertFile, Key: files.KeyFile})
	if err != nil {
		t.Fatal(err)
	}
	right, wrong := ca.Client(t, "app"), other.Client(t, "app")
	for _, c := range []struct {
		what   string
		server *tls.Config
		client *mysqltest.Certificate
		right  bool
	}{
		{"none", verifying, nil, true},
		{"of the CA", verifying, &right, true},
		{"of another CA", verifying, &wrong, false},
		{"not asked for", plain, &wrong, true},
	} {
		_, clientErr, serverErr := handshake(t, c.server, with(t, ca.Pool, c.client))
		if (serverErr == nil) != c.right || (clientErr == nil) != c.right {
			t.Errorf("%s: client got %v, server got %v", c.what, clientErr, serverErr)
		}
	}
	for what, file := range map[string]string{"no certificate": files.KeyFile, "not there": filepath.Join(t.TempDir(), "none")} {
		if _, err := s.Server("tls", ServerFiles{Cert: files.CertFile, Key: files.KeyFile, ClientCA: file}); err == nil || !strings.Contains(err.Error(), "client_ca_file") || !strings.Contains(err.Error(), file) {
			t.Errorf("%s: got %v, want an error that names the key and the file", what, err)
		}
	}
}

// A client must not resume a session from the time when its CA was still trusted.
func TestACAThatWasTakenAwayCountsNoMore(t *testing.T) {
	ca, next := mysqltest.NewCA(t), mysqltest.NewCA(t)
	files := ca.Server(t, "127.0.0.1")
	file := filepath.Join(t.TempDir(), "clients")
	write := func(ca *mysqltest.CA) {
		b, err := os.ReadFile(ca.File)
		if err == nil {
			err = os.WriteFile(file, b, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	write(ca)
	s := NewStore(nil)
	server, err := s.Server("tls", ServerFiles{Cert: files.CertFile, Key: files.KeyFile, ClientCA: file})
	if err != nil {
		t.Fatal(err)
	}
	for _, version := range []uint16{tls.VersionTLS12, tls.VersionTLS13} {
		write(ca)
		if _, err := s.Reload(); err != nil {
			t.Fatal(err)
		}
		cert := ca.Client(t, "app")
		client := with(t, ca.Pool, &cert)
		client.MaxVersion = version
		client.ClientSessionCache = tls.NewLRUClientSessionCache(1)
		for i := range 2 {
			state, clientErr, serverErr := handshake(t, server, client)
			if clientErr != nil || serverErr != nil || state.DidResume != (i == 1) {
				t.Fatalf("handshake %d: resumed %v, client got %v, server got %v", i, state.DidResume, clientErr, serverErr)
			}
		}
		write(next)
		if changed, err := s.Reload(); len(changed) != 1 || err != nil {
			t.Fatalf("got %q, %v", changed, err)
		}
		if _, _, err := handshake(t, server, client); err == nil {
			t.Errorf("%s: a certificate of the old CA was accepted", tls.VersionName(version))
		}
	}
}
