package protocol

import (
	"crypto/x509"
	"fmt"
)

// Requirement is what an account demands of its connections besides the password, as MySQL's CREATE
// USER ... REQUIRE does (https://dev.mysql.com/doc/refman/8.4/en/create-user.html#create-user-tls).
// The zero value demands nothing.
type Requirement struct {
	TLS bool // REQUIRE SSL: a Unix socket is not enough
	// Certificate is REQUIRE X509: a verified certificate. It implies TLS.
	Certificate bool
	// Subject and Issuer are REQUIRE SUBJECT and ISSUER: the names in that certificate, written as
	// servers do, "/C=SE/O=Photos/CN=app". Each implies Certificate.
	Subject, Issuer string
}

// unmet returns what the connection lacks, in words for the log, or "".
func (r *Requirement) unmet(pc ClientConn) string {
	certificate := r.Certificate || r.Subject != "" || r.Issuer != ""
	if !certificate {
		if r.TLS && !pc.IsTLS() {
			return "the user must come over TLS"
		}
		return ""
	}
	cert := pc.PeerCertificate()
	if cert == nil {
		return "the user must show a certificate of client_ca_file's"
	}
	for _, name := range [...]struct {
		what, want string
		raw        []byte
	}{{"subject", r.Subject, cert.RawSubject}, {"issuer", r.Issuer, cert.RawIssuer}} {
		if name.want == "" {
			continue
		}
		if got := certificateName(name.raw); got != name.want {
			return fmt.Sprintf("the certificate's %s must be %q, is %.300q", name.what, name.want, got)
		}
	}
	return ""
}

// PeerCertificate returns the peer's certificate if the peer has proved to own it and the TLS
// configuration could verify it, else nil.
func (c *Conn) PeerCertificate() *x509.Certificate {
	if c.tls == nil {
		return nil
	}
	state := c.tls.ConnectionState()
	if len(state.VerifiedChains) == 0 { // shown but not verified
		return nil
	}
	return state.PeerCertificates[0]
}
