package protocol

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"strings"
	"testing"
)

func TestAnRSAKeyIsReadFromPEM(t *testing.T) {
	made, err := testRSA.load()
	if err != nil {
		t.Fatal(err)
	}
	pkcs8, err := x509.MarshalPKCS8PrivateKey(made.private)
	if err != nil {
		t.Fatal(err)
	}
	for kind, der := range map[string][]byte{
		"RSA PRIVATE KEY": x509.MarshalPKCS1PrivateKey(made.private),
		"PRIVATE KEY":     pkcs8,
	} {
		keys, err := ParseRSAKeys(pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}))
		if err != nil {
			t.Errorf("%s: %v", kind, err)
			continue
		}
		if err := keys.Prepare(); err != nil {
			t.Errorf("%s: %v", kind, err)
		}
		public, err := parsePublicKey(must(keys.load()).public)
		if err != nil || !public.Equal(&made.private.PublicKey) {
			t.Errorf("%s: got another key, %v", kind, err)
		}
	}
}

func must(p *rsaPair, err error) *rsaPair {
	if err != nil {
		panic(err)
	}
	return p
}

func TestAFileWithoutAnRSAKeyIsRefusedWithAReason(t *testing.T) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	for text, want := range map[string]string{
		"":          "no PEM block",
		"something": "no PEM block",
		string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der})):            "needs RSA",
		string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: []byte("junk")})): `"CERTIFICATE"`,
	} {
		if _, err := ParseRSAKeys([]byte(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.30q: got %v, want an error with %q", text, err, want)
		}
	}
}

func TestAKeyIsMadeOnceForAllThatNeedIt(t *testing.T) {
	keys := NewRSAKeys()
	first := make(chan *rsaPair)
	for range 4 {
		go func() {
			pair, _ := keys.load()
			first <- pair
		}()
	}
	want := <-first
	for range 3 {
		if got := <-first; got == nil || got != want {
			t.Errorf("got another key for another caller")
		}
	}
}
