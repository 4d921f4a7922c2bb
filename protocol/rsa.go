package protocol

import (
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha1"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"sync"
)

// rsaBits is the size of keys made here, as in MySQL.
const rsaBits = 2048

// RSAKeys is the key pair for clients without TLS: they encrypt their password with it in the full
// exchange of caching_sha2_password. It is safe for concurrent use.
type RSAKeys struct {
	load func() (*rsaPair, error)
}

type rsaPair struct {
	private *rsa.PrivateKey
	public  []byte // in PEM, as clients get it
}

// NewRSAKeys returns a key pair that is made when first needed. That takes about 100 ms. Prepare
// makes it in advance.
func NewRSAKeys() *RSAKeys {
	return &RSAKeys{load: sync.OnceValues(func() (*rsaPair, error) {
		key, err := rsa.GenerateKey(rand.Reader, rsaBits)
		if err != nil {
			return nil, fmt.Errorf("make an RSA key: %w", err)
		}
		return newRSAPair(key)
	})}
}

func newRSAPair(key *rsa.PrivateKey) (*rsaPair, error) {
	public, err := encodePublicKey(&key.PublicKey)
	if err != nil {
		return nil, err
	}
	return &rsaPair{private: key, public: public}, nil
}

// encodePublicKey writes a key in PEM, as clients get it.
func encodePublicKey(key *rsa.PublicKey) ([]byte, error) {
	der, err := x509.MarshalPKIXPublicKey(key)
	if err != nil {
		return nil, fmt.Errorf("RSA key: encode its public half: %w", err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der}), nil
}

// Prepare makes the key if there is none yet, and waits for it. A call in the background at the
// start spares the first client the wait.
func (k *RSAKeys) Prepare() error {
	_, err := k.load()
	return err
}

// decrypt returns the password in a client's answer. ok is false if the answer is not under this
// key, or does not end in the NUL that clients add.
func (p *rsaPair) decrypt(answer []byte, salt Salt) ([]byte, bool) {
	plain, err := rsa.DecryptOAEP(sha1.New(), nil, p.private, answer, nil)
	if err != nil {
		return nil, false
	}
	for i := range plain {
		plain[i] ^= salt[i%SaltSize]
	}
	return cutPassword(plain)
}

// encryptPassword makes the answer that decrypt reads.
func encryptPassword(password []byte, salt Salt, key *rsa.PublicKey) ([]byte, error) {
	plain := append(append(make([]byte, 0, len(password)+1), password...), 0)
	defer clear(plain)
	for i := range plain {
		plain[i] ^= salt[i%SaltSize]
	}
	answer, err := rsa.EncryptOAEP(sha1.New(), rand.Reader, key, plain, nil)
	if err != nil {
		return nil, fmt.Errorf("encrypt the password with the server's RSA key: %w", err)
	}
	return answer, nil
}

// cutPassword removes the NUL at the end of a password sent as a string.
func cutPassword(b []byte) ([]byte, bool) {
	if len(b) == 0 || b[len(b)-1] != 0 {
		return nil, false
	}
	return b[:len(b)-1], true
}

// parsePublicKey reads a server's key, in PEM.
func parsePublicKey(pemBytes []byte) (*rsa.PublicKey, error) {
	block, _ := pem.Decode(pemBytes)
	if block == nil {
		return nil, fmt.Errorf("the server's RSA key: %w: no PEM block", ErrMalformed)
	}
	key, err := x509.ParsePKIXPublicKey(block.Bytes)
	if err != nil {
		return nil, fmt.Errorf("the server's RSA key: %w", err)
	}
	public, ok := key.(*rsa.PublicKey)
	if !ok {
		return nil, fmt.Errorf("the server's key is a %T, not RSA", key)
	}
	return public, nil
}
