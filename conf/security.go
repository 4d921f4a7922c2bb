package conf

import (
	"slices"

	"go.uber.org/zap"

	"seqproxy/internal/tlsfiles"
)

// Security says how connections to a shard's servers or to a sequence server are secured. Its keys
// are in the server's table.
type Security struct {
	// see [TLS to servers](#tls-to-servers)
	Mode tlsfiles.Mode `toml:"tls" oneof:"DISABLED,PREFERRED,REQUIRED,VERIFY_CA,VERIFY_IDENTITY" reload:"new"`
	// PEM file of the CAs that verify the server's certificate
	CAFile string `toml:"tls_ca_file" reload:"new"`
	// PEM file of a certificate to show to the server, for accounts with REQUIRE X509
	CertFile string `toml:"tls_cert_file" reload:"new"`
	// PEM file of its private key
	KeyFile string `toml:"tls_key_file" reload:"new"`
	// the name that `"VERIFY_IDENTITY"` wants in the certificate, if not the host of the address
	ServerName string `toml:"tls_server_name" reload:"new"`
	// PEM file of the server's RSA key, for logins without TLS
	PublicKeyFile string `toml:"public_key_file" reload:"new"`
}

// Files returns how to secure connections to servers at addresses. The default is that of MySQL's
// clients: VERIFY_CA with a CA, otherwise PREFERRED. If all data stay on this machine it is
// DISABLED, since TLS makes every login slower.
func (s Security) Files(addresses ...Address) tlsfiles.ClientFiles {
	mode := s.Mode
	switch {
	case mode != "":
	case s.CAFile != "":
		mode = tlsfiles.VerifyCA
	case s.CertFile != "" || slices.ContainsFunc(addresses, func(a Address) bool { return !a.isLocal() }):
		mode = tlsfiles.Preferred
	default:
		mode = tlsfiles.Disabled
	}
	return tlsfiles.ClientFiles{
		Mode: mode, CA: s.CAFile, Cert: s.CertFile, Key: s.KeyFile, ServerName: s.ServerName, PublicKey: s.PublicKeyFile,
	}
}

// Needed says whether connections to addresses use TLS or a key file.
func (s Security) Needed(addresses ...Address) bool {
	f := s.Files(addresses...)
	return f.Mode != tlsfiles.Disabled || f.PublicKey != ""
}

// paths resolves the files against the directory of the configuration.
func (c *Config) paths(s *Security) {
	for _, path := range []*string{&s.CAFile, &s.CertFile, &s.KeyFile, &s.PublicKeyFile} {
		*path = c.path(*path)
	}
}

// checkSecurity checks the keys of a table and reads the files.
func (p *checker) checkSecurity(key string, s Security, addresses ...Address) {
	before := len(p.problems)
	if s.Mode != "" {
		checkOneOf(p, key+".tls", s.Mode, tlsfiles.Disabled, tlsfiles.Preferred, tlsfiles.Required, tlsfiles.VerifyCA, tlsfiles.VerifyIdentity)
	}
	files := s.Files(addresses...)
	switch files.Mode {
	case tlsfiles.Disabled:
		for _, given := range []struct{ name, value string }{
			{"tls_ca_file", s.CAFile}, {"tls_cert_file", s.CertFile}, {"tls_key_file", s.KeyFile},
		} {
			if given.value != "" {
				p.add(key+"."+given.name, "has no meaning with tls = %q", files.Mode)
			}
		}
	case tlsfiles.Preferred, tlsfiles.Required:
		if s.CAFile != "" {
			p.add(key+".tls_ca_file", "nothing is verified with tls = %q; set tls to %q or %q", files.Mode, tlsfiles.VerifyCA, tlsfiles.VerifyIdentity)
		}
	case tlsfiles.VerifyCA:
		if s.CAFile == "" {
			p.add(key+".tls_ca_file", "is missing; tls = %q needs it", files.Mode)
		}
	case tlsfiles.VerifyIdentity:
		for _, a := range addresses {
			if network, _ := a.Split(); network == "unix" && s.ServerName == "" {
				p.add(key+".tls_server_name", "is missing; %q of a socket needs it", files.Mode)
			}
		}
	}
	if s.ServerName != "" && files.Mode != tlsfiles.VerifyIdentity {
		p.add(key+".tls_server_name", "no name is verified with tls = %q; set tls to %q", files.Mode, tlsfiles.VerifyIdentity)
	}
	if (s.CertFile == "") != (s.KeyFile == "") {
		p.add(key+".tls_cert_file", "and tls_key_file need each other")
	}
	if len(p.problems) > before || !s.Needed(addresses...) {
		return
	}
	if _, err := tlsfiles.NewStore(zap.NewNop()).Client(key, files); err != nil {
		p.add(key, "%v", err)
	}
}
