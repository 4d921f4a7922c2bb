package conf

import (
	"errors"

	"go.uber.org/zap"

	"seqproxy/internal/tlsfiles"
)

// TLS is the table [tls]: both files, or neither for a proxy without TLS.
type TLS struct {
	CertFile string `toml:"cert_file"` // PEM, with the chain
	KeyFile  string `toml:"key_file"`  // PEM
	// ClientCAFile is PEM of the CAs that clients' certificates are verified with.
	// Without it clients are not asked for one.
	ClientCAFile string `toml:"client_ca_file"`
	// Required refuses every client that comes without TLS.
	Required bool `toml:"required"`
}

// Configured says whether clients may use TLS.
func (t TLS) Configured() bool { return t.CertFile != "" || t.KeyFile != "" }

// Files are the files of the table.
func (t TLS) Files() tlsfiles.ServerFiles {
	return tlsfiles.ServerFiles{Cert: t.CertFile, Key: t.KeyFile, ClientCA: t.ClientCAFile}
}

// check reads the files.
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
