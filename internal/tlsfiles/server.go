package tlsfiles

import (
	"crypto/tls"
	"fmt"
	"sync/atomic"
)

// ServerFiles are the files for connections from clients.
type ServerFiles struct {
	Cert string // PEM, with the chain; required
	Key  string // PEM; required
	// ClientCA is a PEM file of the CAs of clients' certificates. With "" the server does not ask
	// for certificates. A certificate that cannot be verified ends the handshake.
	ClientCA string
}

// Server returns the TLS configuration for connections from clients. Each handshake uses the
// present contents of the files. The same name and files give the same configuration. TLS 1.2 is
// the oldest version.
func (s *Store) Server(name string, files ServerFiles) (*tls.Config, error) {
	use := Use{name, files}
	if c, ok := s.find(use).(*tls.Config); ok {
		return c, nil
	}
	var current atomic.Pointer[tls.Config]
	made := &tls.Config{
		MinVersion:         oldestVersion,
		GetConfigForClient: func(*tls.ClientHelloInfo) (*tls.Config, error) { return current.Load(), nil },
	}
	err := s.add(use, made, []file{{"cert_file", files.Cert}, {"key_file", files.Key}, {"client_ca_file", files.ClientCA}}, func(contents [][]byte) error {
		cfg, err := serverConfig(files, contents)
		if err == nil {
			current.Store(cfg)
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	return made, nil
}

// oldestVersion is also the oldest of MySQL 8 and later.
const oldestVersion = tls.VersionTLS12

func serverConfig(files ServerFiles, contents [][]byte) (*tls.Config, error) {
	cert, err := tls.X509KeyPair(contents[0], contents[1])
	if err != nil {
		return nil, fmt.Errorf("cert_file %q with key_file %q: %w", files.Cert, files.Key, err)
	}
	cfg := &tls.Config{Certificates: []tls.Certificate{cert}, MinVersion: oldestVersion}
	if files.ClientCA != "" {
		if cfg.ClientCAs, err = parseCAs(contents[2]); err != nil {
			return nil, fmt.Errorf("client_ca_file %q: %w", files.ClientCA, err)
		}
		cfg.ClientAuth = tls.VerifyClientCertIfGiven
	}
	return cfg, nil
}
