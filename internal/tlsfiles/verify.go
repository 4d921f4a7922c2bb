package tlsfiles

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"strings"
)

// verify checks a server's certificate in a handshake. It also does so when a session is resumed,
// since the certificate may have expired.
func verify(mode Mode, of *credentials, name string, state tls.ConnectionState) error {
	if len(state.PeerCertificates) == 0 {
		return errors.New("the server shows no TLS certificate")
	}
	leaf := state.PeerCertificates[0]
	opts := x509.VerifyOptions{Roots: of.roots, Intermediates: x509.NewCertPool()}
	for _, c := range state.PeerCertificates[1:] {
		opts.Intermediates.AddCert(c)
	}
	if _, err := leaf.Verify(opts); err != nil {
		return &VerificationError{
			Err:    fmt.Errorf("the server's TLS certificate cannot be verified: %w", err),
			WayOut: `put the CA that signed it into tls_ca_file, or do not ask for that with tls = "REQUIRED"`,
		}
	}
	if mode != VerifyIdentity {
		return nil
	}
	if err := verifyName(leaf, name, of.roots != nil); err != nil {
		return &VerificationError{
			Err:    fmt.Errorf("the server's TLS certificate is another server's: %w", err),
			WayOut: `name the server in tls_server_name as its certificate does, or do not ask for a name with tls = "VERIFY_CA"`,
		}
	}
	return nil
}

// VerificationError says that a server's certificate does not meet the demands.
type VerificationError struct {
	Err    error
	WayOut string // the settings to change
}

func (e *VerificationError) Error() string { return e.Err.Error() + " (" + e.WayOut + ")" }

// Unwrap returns the cause.
func (e *VerificationError) Unwrap() error { return e.Err }

// verifyName checks that a certificate is for a host. With configured CAs, a certificate without
// any list of names may have the host as its common name. MySQL's clients allow that, and many
// recipes for MySQL servers make such certificates. CAs that the system trusts do not.
func verifyName(leaf *x509.Certificate, name string, configuredCAs bool) error {
	listed := len(leaf.DNSNames) + len(leaf.IPAddresses) + len(leaf.EmailAddresses) + len(leaf.URIs)
	if listed > 0 || !configuredCAs || net.ParseIP(name) != nil || leaf.Subject.CommonName == "" {
		return leaf.VerifyHostname(name)
	}
	byCommonName := &x509.Certificate{Raw: leaf.Raw, DNSNames: []string{leaf.Subject.CommonName}}
	if err := byCommonName.VerifyHostname(name); err != nil {
		return fmt.Errorf("certificate is valid for %s, not %s", leaf.Subject.CommonName, name)
	}
	return nil
}

// NotOffered is the way out if the mode demands TLS and a server does not offer it. Each client
// library has its own error for that.
const NotOffered = `give it a certificate, or do not demand TLS with tls = "PREFERRED"`

// Explain adds the way out to an error of a connection to a server if TLS is the cause and the
// error does not name it.
func Explain(err error) error {
	var verification *VerificationError
	if err == nil || errors.As(err, &verification) {
		return err
	}
	var record tls.RecordHeaderError
	if errors.As(err, &record) {
		return fmt.Errorf(`%w (it offers TLS and then does not speak it; tls = "DISABLED" is without)`, err)
	}
	for _, failure := range handshakeFailures {
		if strings.Contains(err.Error(), failure.text) {
			return fmt.Errorf("%w (%s)", err, failure.wayOut)
		}
	}
	return err
}

// handshakeFailures are recognized by their texts: package tls has no type for them.
var handshakeFailures = []struct{ text, wayOut string }{
	{"tls: protocol version not supported", noTLS12},
	{"tls: server selected unsupported protocol version", noTLS12},
	{"tls: handshake failure", `it accepts none of our ciphers: update its TLS library, or set tls = "DISABLED"`},
	{"tls: unknown certificate authority", refusedCertificate},
	{"tls: bad certificate", refusedCertificate},
	{"tls: expired certificate", refusedCertificate},
	{"tls: certificate required", refusedCertificate},
}

const (
	noTLS12            = `it speaks no TLS 1.2, the oldest version that is spoken here: update it, or set tls = "DISABLED"`
	refusedCertificate = "it does not accept our certificate: see tls_cert_file and tls_key_file"
)
