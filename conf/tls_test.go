package conf

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"math/big"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"seqproxy/internal/tlsfiles"
)

// writeKeyPair writes server.crt and server.key into dir.
func writeKeyPair(t *testing.T, dir string) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour)}
	cert, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	keyBytes, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	for name, block := range map[string]*pem.Block{
		"server.crt": {Type: "CERTIFICATE", Bytes: cert},
		"server.key": {Type: "PRIVATE KEY", Bytes: keyBytes},
	} {
		if err := os.WriteFile(filepath.Join(dir, name), pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

func TestCertificatesAreFoundBesideTheFile(t *testing.T) {
	dir := t.TempDir()
	writeKeyPair(t, dir)
	text := minimal + "[tls]\ncert_file = 'server.crt'\nkey_file = 'server.key'"
	c, err := Parse(filepath.Join(dir, "f.toml"), []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	if got, want := c.TLS.Files(), (tlsfiles.ServerFiles{Cert: filepath.Join(dir, "server.crt"), Key: filepath.Join(dir, "server.key")}); got != want || !c.TLS.Configured() {
		t.Errorf("got %+v, want %+v", got, want)
	}
	if parse(t, minimal).TLS.Configured() {
		t.Error("TLS is configured without [tls]")
	}
}

func TestUsersMayNeedCertificatesOfTheClientCA(t *testing.T) {
	dir := t.TempDir()
	writeKeyPair(t, dir)
	head := minimal + "[tls]\ncert_file = 'server.crt'\nkey_file = 'server.key'\nclient_ca_file = 'server.crt'\nrequired = true\n[[user]]\nname = 'b'\n"
	for _, c := range []struct {
		keys    string
		want    User
		needs   bool
		problem string
	}{
		{"", User{}, false, ""},
		{"require_tls = true", User{RequireTLS: true}, false, ""},
		{"require_certificate = true", User{RequireCertificate: true}, true, ""},
		{`certificate_subject = '/C=SE/O=S\xC3\xB6n \+ a/1.2.3=b/CN=c+OU=d'`, User{CertificateSubject: `/C=SE/O=S\xC3\xB6n \+ a/1.2.3=b/CN=c+OU=d`}, true, ""},
		{"certificate_issuer = '/CN=x'", User{CertificateIssuer: "/CN=x"}, true, ""},
		{"certificate_subject = 'CN=c,O=x'", User{}, true, `user["b"].certificate_subject: must be in the form "/C=SE/O=Photos/CN=app", is "CN=c,O=x"`},
		{"certificate_issuer = '/O=Sön'", User{}, true, `user["b"].certificate_issuer: must be in the form "/C=SE/O=Photos/CN=app", is "/O=Sön"`},
	} {
		got, err := Parse(filepath.Join(dir, "f.toml"), []byte(head+c.keys))
		if c.problem != "" {
			if err == nil || !strings.Contains(err.Error(), c.problem) {
				t.Errorf("%s: got %v, want %s", c.keys, err, c.problem)
			}
			continue
		}
		if err != nil {
			t.Errorf("%s: %v", c.keys, err)
			continue
		}
		c.want.Name = "b"
		if u := got.Users[1]; !reflect.DeepEqual(u, c.want) || u.NeedsCertificate() != c.needs {
			t.Errorf("%s: got %+v, want %+v", c.keys, u, c.want)
		}
		if files := got.TLS.Files(); files.ClientCA != filepath.Join(dir, "server.crt") || !got.TLS.Required {
			t.Errorf("got %+v, required %v", files, got.TLS.Required)
		}
	}
	got := parseProblems(t, minimal+"[tls]\ncert_file = '"+dir+"/server.crt'\nkey_file = '"+dir+"/server.key'\nclient_ca_file = '"+dir+"/server.key'")
	if len(got) != 1 || !strings.HasPrefix(got[0], "tls: client_ca_file ") {
		t.Errorf("a CA file without a certificate: got %q", got)
	}
}

func TestACertificateOfAnotherKeyIsRefused(t *testing.T) {
	dir, other := t.TempDir(), t.TempDir()
	writeKeyPair(t, dir)
	writeKeyPair(t, other)
	got := parseProblems(t, minimal+"[tls]\ncert_file = '"+dir+"/server.crt'\nkey_file = '"+other+"/server.key'")
	if len(got) != 1 || !strings.HasPrefix(got[0], "tls: cert_file ") || !strings.Contains(got[0], "does not match") {
		t.Errorf("got %q", got)
	}
}
