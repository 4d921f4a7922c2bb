package conf

import (
	"crypto/tls"
	"errors"
	"fmt"
)

// TLS is the table [tls]: both files, or neither for a proxy without TLS.
type TLS struct {
	CertFile string `toml:"cert_file"` // PEM, with the chain
	KeyFile  string `toml:"key_file"`  // PEM
}

// ServerConfig reads the files and returns what the client side needs for TLS, or
// nil when TLS is not configured. TLS 1.2 is the oldest version, as with the
// servers.
func (t TLS) ServerConfig() (*tls.Config, error) {
	switch {
	case t.CertFile == "" && t.KeyFile == "":
		return nil, nil
	case t.CertFile == "":
		return nil, errors.New("cert_file is missing; key_file needs it")
	case t.KeyFile == "":
		return nil, errors.New("key_file is missing; cert_file needs it")
	}
	cert, err := tls.LoadX509KeyPair(t.CertFile, t.KeyFile)
	if err != nil {
		return nil, fmt.Errorf("cert_file %q with key_file %q: %w", t.CertFile, t.KeyFile, err)
	}
	return &tls.Config{Certificates: []tls.Certificate{cert}, MinVersion: tls.VersionTLS12}, nil
}
