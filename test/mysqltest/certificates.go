package mysqltest

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"

	"seqproxy/internal/mysqld"
)

// CA makes certificates for one test.
type CA struct {
	File string // PEM, of its own certificate
	Pool *x509.CertPool

	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

// Certificate is a certificate with its key, each in a PEM file.
type Certificate struct {
	CertFile, KeyFile string
}

// NewCA makes a CA that nobody else trusts.
func NewCA(t testing.TB) *CA {
	t.Helper()
	ca := &CA{Pool: x509.NewCertPool(), key: newKey(t)}
	template := &x509.Certificate{
		SerialNumber: serial(t), Subject: pkix.Name{CommonName: "seqproxy test CA"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(24 * time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageCRLSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &ca.key.PublicKey, ca.key)
	if err != nil {
		t.Fatal(err)
	}
	if ca.cert, err = x509.ParseCertificate(der); err != nil {
		t.Fatal(err)
	}
	ca.Pool.AddCert(ca.cert)
	ca.File = filepath.Join(t.TempDir(), "ca.pem")
	if err := writePEM(ca.File, "CERTIFICATE", der); err != nil {
		t.Fatal(err)
	}
	return ca
}

// Server makes a server's certificate for names and addresses.
func (ca *CA) Server(t testing.TB, names ...string) Certificate {
	t.Helper()
	return ca.Issue(t, func(c *x509.Certificate) {
		c.Subject.CommonName = "seqproxy test server"
		c.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}
		for _, name := range names {
			if ip := net.ParseIP(name); ip != nil {
				c.IPAddresses = append(c.IPAddresses, ip)
			} else {
				c.DNSNames = append(c.DNSNames, name)
			}
		}
	})
}

// Client makes a client's certificate.
func (ca *CA) Client(t testing.TB, commonName string) Certificate {
	t.Helper()
	return ca.Issue(t, func(c *x509.Certificate) {
		c.Subject.CommonName = commonName
		c.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}
	})
}

// Issue makes a certificate. change fills it in. Without a change of its times it is valid now.
func (ca *CA) Issue(t testing.TB, change func(*x509.Certificate)) Certificate {
	t.Helper()
	template := &x509.Certificate{
		SerialNumber: serial(t), NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(12 * time.Hour),
		KeyUsage: x509.KeyUsageDigitalSignature,
	}
	change(template)
	dir := t.TempDir()
	c := Certificate{CertFile: filepath.Join(dir, "cert.pem"), KeyFile: filepath.Join(dir, "key.pem")}
	if err := c.write(template, ca.cert, newKey(t), ca.key); err != nil {
		t.Fatal(err)
	}
	return c
}

// write makes a certificate of a key, which signer signs as the issuer, and writes both files.
func (c Certificate) write(template, issuer *x509.Certificate, key, signer *ecdsa.PrivateKey) error {
	der, err := x509.CreateCertificate(rand.Reader, template, issuer, &key.PublicKey, signer)
	if err != nil {
		return err
	}
	keyDER, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return err
	}
	return errors.Join(writePEM(c.CertFile, "CERTIFICATE", der), writePEM(c.KeyFile, "PRIVATE KEY", keyDER))
}

// ServerArgs returns the server's options for this certificate. The server verifies clients'
// certificates with the CA.
func (c Certificate) ServerArgs(clients *CA) []string {
	return []string{"--ssl-ca=" + clients.File, "--ssl-cert=" + c.CertFile, "--ssl-key=" + c.KeyFile}
}

// makesCertificate reports whether a server without a certificate makes one at each start. With RSA
// that takes it four times as long as all the rest.
func makesCertificate(b mysqld.Binary) bool {
	return b.Flavour == mysqld.MariaDB && b.AtLeast(11, 4)
}

// certificateIn returns the files of the certificate in a template's data directory.
func certificateIn(dataDir string) Certificate {
	return Certificate{CertFile: filepath.Join(dataDir, "server-cert.pem"), KeyFile: filepath.Join(dataDir, "server-key.pem")}
}

// writeSelfSigned makes a certificate like the one that a server makes itself.
func (c Certificate) writeSelfSigned() error {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return err
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "MariaDB Server"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().AddDate(10, 0, 0),
	}
	return c.write(template, template, key, key)
}

// WithoutTLS returns the options of a server without TLS. Some servers otherwise make a certificate
// for it.
func WithoutTLS(t testing.TB) []string {
	t.Helper()
	b, err := findBinary()
	if err != nil {
		t.Fatal(err)
	}
	if b.Flavour == mysqld.MySQL {
		return []string{"--tls-version="}
	}
	return []string{"--skip-ssl"}
}

func newKey(t testing.TB) *ecdsa.PrivateKey {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

func serial(t testing.TB) *big.Int {
	t.Helper()
	n, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 120))
	if err != nil {
		t.Fatal(err)
	}
	return n.Add(n, big.NewInt(1))
}

func writePEM(path, kind string, der []byte) error {
	return os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600)
}
