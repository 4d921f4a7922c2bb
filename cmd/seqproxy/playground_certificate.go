package main

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"time"

	"seqproxy/conf"
)

const (
	certificateLife = 365 * 24 * time.Hour
	certificateRest = 30 * 24 * time.Hour // one that ends sooner is replaced
)

// certificate returns the playground's certificate for names of this machine. It is self-signed:
// clients can verify it with its own file as their CA. A kept directory's certificate is used
// again.
func (h home) certificate() (conf.TLS, error) {
	dir := filepath.Join(h.dir, "tls")
	files := conf.TLS{CertFile: filepath.Join(dir, "cert.pem"), KeyFile: filepath.Join(dir, "key.pem")}
	if pair, err := tls.LoadX509KeyPair(files.CertFile, files.KeyFile); err == nil && time.Until(pair.Leaf.NotAfter) > certificateRest {
		return files, nil
	}
	err := os.MkdirAll(dir, 0o700)
	if err == nil {
		err = writeCertificate(files)
	}
	if err != nil {
		return files, fmt.Errorf("make a certificate for the playground: %w", err)
	}
	return files, nil
}

// writeCertificate makes a key and a self-signed certificate. Only the owner may read the files.
func writeCertificate(files conf.TLS) error {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return err
	}
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 127))
	if err != nil {
		return err
	}
	now := time.Now()
	template := &x509.Certificate{
		SerialNumber: serial.Add(serial, big.NewInt(1)),
		Subject:      pkix.Name{CommonName: "seqproxy playground"},
		// A clock may have been set back.
		NotBefore: now.Add(-time.Hour), NotAfter: now.Add(certificateLife),
		DNSNames:    []string{"localhost"},
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1), net.IPv6loopback},
		KeyUsage:    x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
		// Some clients accept it as their CA only with this.
		IsCA: true, BasicConstraintsValid: true, MaxPathLenZero: true,
	}
	cert, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		return err
	}
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return err
	}
	return errors.Join(
		os.WriteFile(files.KeyFile, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}), 0o600),
		os.WriteFile(files.CertFile, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: cert}), 0o600),
	)
}
