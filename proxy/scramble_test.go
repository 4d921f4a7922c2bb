package proxy_test

import (
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha1"
	"crypto/x509"
	"encoding/pem"
	"testing"

	"github.com/go-mysql-org/go-mysql/mysql"
)

func nativeScramble(salt []byte, password string) []byte {
	return mysql.CalcNativePassword(salt, []byte(password))
}

func sha2Scramble(salt []byte, password string) []byte {
	return mysql.CalcCachingSha2Password(salt, []byte(password))
}

// sha2Encrypt encrypts a password under the server's key, as a client does without TLS.
func sha2Encrypt(t testing.TB, key, salt []byte, password string) []byte {
	t.Helper()
	block, _ := pem.Decode(key)
	if block == nil {
		t.Fatalf("got %q, want a key", key)
	}
	public, err := x509.ParsePKIXPublicKey(block.Bytes)
	if err != nil {
		t.Fatal(err)
	}
	plain := append([]byte(password), 0)
	for i := range plain {
		plain[i] ^= salt[i%len(salt)]
	}
	sealed, err := rsa.EncryptOAEP(sha1.New(), rand.Reader, public.(*rsa.PublicKey), plain, nil)
	if err != nil {
		t.Fatal(err)
	}
	return sealed
}
