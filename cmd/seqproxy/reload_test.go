package main

import (
	"fmt"
	"os"
	"strings"
	"syscall"
	"testing"

	"seqproxy/test/mysqltest"
)

// overwrite copies the contents of one file into another.
func overwrite(t *testing.T, from, to string) {
	t.Helper()
	b, err := os.ReadFile(from)
	if err == nil {
		err = os.WriteFile(to, b, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// TestTheServersMoveToAnotherCA renews everything between a running proxy and its servers: the
// server's certificate, its CA, and the certificate that the proxy shows.
func TestTheServersMoveToAnotherCA(t *testing.T) {
	ca, nextCA := mysqltest.NewCA(t), mysqltest.NewCA(t)
	serverCert, nextServerCert := ca.Server(t, "db1.example"), nextCA.Server(t, "db1.example")
	clientCert, nextClientCert := ca.Client(t, "one"), nextCA.Client(t, "two")
	s := mysqltest.Start(t, serverCert.ServerArgs(ca)...)
	s.Exec(t, "CREATE USER app@'%' IDENTIFIED BY 'p' REQUIRE X509", "GRANT ALL ON *.* TO app@'%'")
	security := fmt.Sprintf(`
tls = "VERIFY_IDENTITY"
tls_ca_file = %q
tls_cert_file = %q
tls_key_file = %q
tls_server_name = "db1.example"
`, ca.File, clientCert.CertFile, clientCert.KeyFile)
	file := write(t, "seqproxy.toml", apart+fmt.Sprintf(`
admin_users = ["app"]
[[user]]
name = "app"
password = "p"
[[sequence.server]]
address = %[1]q
user = "app"
password = "p"
%[2]s
[[shard]]
name = "s"
%[2]s
[[shard.node]]
address = %[1]q
`, s.Addr(), security))
	p := begin(t, "-config", file)
	address := p.address()
	encrypted := func() {
		t.Helper()
		got := query(t, address, "app", "p", "SELECT NEXTVAL('photos') > 0; SHOW STATUS LIKE 'Ssl_cipher'")
		if lines := strings.Split(got, "\n"); len(lines) != 2 || lines[0] != "1" || !strings.Contains(lines[1], "TLS_") {
			t.Errorf("a number and the cipher: got %q", got)
		}
	}
	if output, err := client(t, address, "app", "p", "-e", "CREATE SEQUENCE photos CACHE 1"); err != nil {
		t.Fatalf("%v: %s", err, output)
	}
	encrypted()

	for from, to := range map[string]string{nextServerCert.CertFile: serverCert.CertFile, nextServerCert.KeyFile: serverCert.KeyFile} {
		overwrite(t, from, to)
	}
	oldCA, err := os.ReadFile(ca.File) // the server also needs it, for clients
	if err != nil {
		t.Fatal(err)
	}
	overwrite(t, nextCA.File, ca.File)
	p.await(`certificates read again`) // without a signal
	if err := s.Restart(); err != nil {
		t.Fatal(err)
	}
	output, err := client(t, address, "app", "p", "-e", "SELECT 1")
	if want := "cannot be used: "; err == nil || !strings.Contains(output, want) || !strings.Contains(output, "tls_cert_file") {
		t.Errorf("with the old certificate at the new CA: got %q, %v, want %q and the key in it", output, err, want)
	}
	overwrite(t, nextClientCert.CertFile, clientCert.CertFile)
	overwrite(t, nextClientCert.KeyFile, clientCert.KeyFile)
	p.signal(syscall.SIGHUP)
	p.await("reloaded")
	encrypted()

	// A CA that did not sign the server's certificate.
	if err := os.WriteFile(ca.File, oldCA, 0o600); err != nil {
		t.Fatal(err)
	}
	p.signal(syscall.SIGHUP)
	p.awaitCount("\treloaded\t", 2)
	p.await(`"changed": ["files of sequence server", "files of shard s"]`)
	output, err = client(t, address, "app", "p", "-e", "SELECT 1")
	if want := "shard s: node " + s.Addr() + " cannot be used: TLS handshake: the server's TLS certificate cannot be verified: "; err == nil || !strings.Contains(output, want) {
		t.Errorf("with the old CA: got %q, %v, want %q", output, err, want)
	}
	p.signal(syscall.SIGTERM)
	p.end(0)
}
