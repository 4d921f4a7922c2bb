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
}

// Configured says whether clients may use TLS.
func (t TLS) Configured() bool { return t.CertFile != "" || t.KeyFile != "" }

// Files are the files of the table.
func (t TLS) Files() tlsfiles.ServerFiles {
	return tlsfiles.ServerFiles{Cert: t.CertFile, Key: t.KeyFile}
}

// check reads the files.
func (t TLS) check() error {
	switch {
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
