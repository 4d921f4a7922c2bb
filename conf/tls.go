package conf

import (
	"errors"

	"go.uber.org/zap"

	"seqproxy/internal/tlsfiles"
)

// TLS is the table [tls]. It has both files, or neither if clients cannot use TLS.
type TLS struct {
	// PEM file of the certificate with its chain; without `[tls]`, clients cannot use TLS. The
	// oldest version is TLS 1.2
	CertFile string `toml:"cert_file" reload:"new"`
	// PEM file of its private key
	KeyFile string `toml:"key_file" reload:"new"`
	// PEM file of the CAs for clients' certificates. Clients may then show one; if it cannot be
	// verified, the connection ends
	ClientCAFile string `toml:"client_ca_file" reload:"new"`
	// refuse clients without TLS, with error 3159, before they are asked for a password
	Required bool `toml:"required" reload:"new"`
}

// Configured says whether clients may use TLS.
func (t TLS) Configured() bool { return t.CertFile != "" || t.KeyFile != "" }

// Files returns the files of the table.
func (t TLS) Files() tlsfiles.ServerFiles {
	return tlsfiles.ServerFiles{Cert: t.CertFile, Key: t.KeyFile, ClientCA: t.ClientCAFile}
}

// check reads the files to find out whether they are valid.
func (t TLS) check() error {
	switch {
	case !t.Configured() && t.Required:
		return errors.New("required needs cert_file and key_file")
	case !t.Configured() && t.ClientCAFile != "":
		return errors.New("client_ca_file needs cert_file and key_file")
	case !t.Configured():
		return nil
	case t.CertFile == "":
		return errors.New("cert_file is missing; key_file needs it")
	case t.KeyFile == "":
		return errors.New("key_file is missing; cert_file needs it")
	}
	_, err := tlsfiles.NewStore(zap.NewNop()).Server("tls", t.Files())
	return err
}
