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

func TestACertificateOfAnotherKeyIsRefused(t *testing.T) {
	dir, other := t.TempDir(), t.TempDir()
	writeKeyPair(t, dir)
	writeKeyPair(t, other)
	got := parseProblems(t, minimal+"[tls]\ncert_file = '"+dir+"/server.crt'\nkey_file = '"+other+"/server.key'")
	if len(got) != 1 || !strings.HasPrefix(got[0], "tls: cert_file ") || !strings.Contains(got[0], "does not match") {
		t.Errorf("got %q", got)
	}
}
