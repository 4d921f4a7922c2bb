package tlsfiles

import (
	"crypto/rsa"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync/atomic"
)

// Mode says how a connection to a server is secured. The words are those of MySQL's --ssl-mode
// (https://dev.mysql.com/doc/refman/8.4/en/connection-options.html#option_general_ssl-mode).
type Mode string

// The modes.
const (
	Disabled Mode = "DISABLED" // no TLS
	// Preferred uses TLS if the server offers it. It verifies nothing, and an attacker in between
	// can hide the offer.
	Preferred Mode = "PREFERRED"
	Required  Mode = "REQUIRED" // TLS, without a check of the server
	VerifyCA  Mode = "VERIFY_CA"
	// VerifyIdentity is VerifyCA, and the certificate must have the server's name.
	VerifyIdentity Mode = "VERIFY_IDENTITY"
)

// verifies reports whether the server's certificate is checked.
func (m Mode) verifies() bool { return m == VerifyCA || m == VerifyIdentity }

// ClientFiles describe how connections to a server are secured.
type ClientFiles struct {
	Mode Mode // required
	// CA is a PEM file of CAs to verify servers with. With VerifyIdentity, "" means the CAs that
	// the system trusts.
	CA        string
	Cert, Key string // PEM files of the certificate to show to the server, or ""
	// ServerName is the name that VerifyIdentity demands in the certificate. It is also sent to the
	// server (SNI). "" means the host of the server's address.
	ServerName string
	// PublicKey is a PEM file of the server's RSA key for passwords, or "".
	PublicKey string
}

// Security has the settings for one connection.
type Security struct {
	TLS *tls.Config // nil: plain
	// Optional: without TLS if the server does not offer it.
	Optional bool
	// PublicKey is the server's RSA key, or nil.
	PublicKey *rsa.PublicKey
}

// Client secures connections to a group of servers with the present contents of the files.
type Client struct {
	files   ClientFiles
	current atomic.Pointer[credentials]
}

// credentials are the contents of the files.
type credentials struct {
	roots *x509.CertPool // nil: the system's
	certs []tls.Certificate
	key   *rsa.PublicKey
}

// Client returns the settings for a group of servers. The same name and files give the same Client.
func (s *Store) Client(name string, files ClientFiles) (*Client, error) {
	use := Use{name, files}
	if c, ok := s.find(use).(*Client); ok {
		return c, nil
	}
	c := &Client{files: files}
	read := []file{
		{"tls_ca_file", files.CA}, {"tls_cert_file", files.Cert}, {"tls_key_file", files.Key}, {"public_key_file", files.PublicKey},
	}
	err := s.add(use, c, read, func(contents [][]byte) error {
		made, err := newCredentials(files, contents)
		if err == nil {
			c.current.Store(made)
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	return c, nil
}

func newCredentials(files ClientFiles, contents [][]byte) (*credentials, error) {
	ca, cert, key, public := contents[0], contents[1], contents[2], contents[3]
	c := &credentials{}
	if files.CA != "" {
		var err error
		if c.roots, err = parseCAs(ca); err != nil {
			return nil, fmt.Errorf("tls_ca_file %q: %w", files.CA, err)
		}
	}
	if files.Cert != "" {
		pair, err := tls.X509KeyPair(cert, key)
		if err != nil {
			return nil, fmt.Errorf("tls_cert_file %q with tls_key_file %q: %w", files.Cert, files.Key, err)
		}
		c.certs = []tls.Certificate{pair}
	}
	if files.PublicKey != "" {
		var err error
		if c.key, err = parsePublicKey(public); err != nil {
			return nil, fmt.Errorf("public_key_file %q: %w", files.PublicKey, err)
		}
	}
	return c, nil
}

// parseCAs reads certificates. Unlike package x509 it does not skip unreadable ones.
func parseCAs(text []byte) (*x509.CertPool, error) {
	pool, found := x509.NewCertPool(), false
	for {
		var block *pem.Block
		if block, text = pem.Decode(text); block == nil {
			break
		}
		if block.Type != "CERTIFICATE" {
			continue
		}
		cert, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			return nil, err
		}
		pool.AddCert(cert)
		found = true
	}
	if !found {
		return nil, errors.New("holds no certificate in PEM")
	}
	return pool, nil
}

// parsePublicKey reads a key in PKIX form, as in MySQL's public_key.pem, or in PKCS #1.
func parsePublicKey(text []byte) (*rsa.PublicKey, error) {
	block, _ := pem.Decode(text)
	if block == nil {
		return nil, errors.New("holds no key in PEM")
	}
	if key, err := x509.ParsePKCS1PublicKey(block.Bytes); err == nil {
		return key, nil
	}
	parsed, err := x509.ParsePKIXPublicKey(block.Bytes)
	if err != nil {
		return nil, fmt.Errorf("the PEM block %q is no public key: %w", block.Type, err)
	}
	key, ok := parsed.(*rsa.PublicKey)
	if !ok {
		return nil, fmt.Errorf("the key is a %T, but passwords are encrypted with RSA", parsed)
	}
	return key, nil
}

// Target is one server of a Client's group. It is safe for concurrent use. A nil Target means a
// plain connection.
type Target struct {
	client *Client
	name   string
	last   atomic.Pointer[present]
}

// present is a Security and the credentials that it was made of.
type present struct {
	of *credentials
	Security
}

// To returns the Target for the server at address, "host:port" or the path of a socket. A nil
// Client returns a nil Target.
func (c *Client) To(address string) *Target {
	if c == nil {
		return nil
	}
	t := &Target{client: c, name: c.files.ServerName}
	if t.name == "" {
		t.name = "localhost" // the server on a socket, whoever it is
		if host, _, err := net.SplitHostPort(address); err == nil {
			t.name = strings.TrimSuffix(host, ".")
		}
	}
	return t
}

var plain Security

// Security returns the settings for a connection opened now. It is read-only.
func (t *Target) Security() *Security {
	if t == nil {
		return &plain
	}
	of := t.client.current.Load()
	if m := t.last.Load(); m != nil && m.of == of {
		return &m.Security
	}
	// Two goroutines may do this at once. Then one cache of sessions is lost.
	m := &present{of: of, Security: Security{PublicKey: of.key}}
	if mode := t.client.files.Mode; mode != Disabled {
		m.TLS = clientConfig(mode, of, t.name)
		m.Optional = mode == Preferred
	}
	t.last.Store(m)
	return &m.Security
}

// sessions bounds the TLS sessions of a server that are kept. A connection resumes the last one,
// which saves both sides the asymmetric part of a handshake.
const sessions = 8

func clientConfig(mode Mode, of *credentials, name string) *tls.Config {
	cfg := &tls.Config{
		MinVersion: oldestVersion, Certificates: of.certs, ServerName: name,
		// The cache is for this configuration only. A session that was verified with other CAs must
		// not be resumed.
		ClientSessionCache: tls.NewLRUClientSessionCache(sessions),
		// Package tls verifies name and chain together, or nothing. verify does what the mode says.
		InsecureSkipVerify: true,
	}
	if mode.verifies() {
		cfg.VerifyConnection = func(state tls.ConnectionState) error { return verify(mode, of, name, state) }
	}
	return cfg
}
