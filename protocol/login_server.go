package protocol

import (
	"bytes"
	"crypto/sha256"
	"crypto/tls"
	"errors"
	"fmt"

	"github.com/go-mysql-org/go-mysql/mysql"
)

// ServerLogin logs one client in: the proxy is the server. It is made (or copied)
// for each connection; what its fields point to may be shared.
//
// The exchange is the connection phase of
// https://dev.mysql.com/doc/dev/mysql-server/latest/page_protocol_connection_phase.html
// with caching_sha2_password, and with mysql_native_password, sha256_password and,
// over TLS and Unix sockets, mysql_clear_password for clients that name them.
type ServerLogin struct {
	Version      string // the greeting's, a backend's own
	ConnectionID uint32
	// Capabilities are offered to the client, apart from those that a login itself
	// needs: these are always offered, SSL exactly if TLS is set.
	Capabilities Capability
	Collation    uint8
	Status       Status // Autocommit, usually

	TLS        *tls.Config // nil: TLS is not offered
	RequireTLS bool        // refuse clients that come without it, except on a Unix socket
	// Prove lets MariaDB's clients trust a certificate by the password: see
	// Attempt.Proof. The greeting then names mysql_native_password, as MariaDB's does,
	// because they do not go on with a plugin that has no proof. TLS must then show the
	// same certificate to every client: its GetConfigForClient is not told of the hello.
	Prove bool

	// Old lets clients of before MySQL 4.1 log in that have no password, as MariaDB does:
	// see Attempt.Old.
	Old bool

	// ProxyHeader says that the connection is a balancer's, which sends the address of
	// its client in a PROXY header; without one the login is refused. The greeting does
	// not wait for it, since some balancers send it with the client's first packet only.
	ProxyHeader bool
	// Arrived, if set, is called when such a header was read: the client's address is known
	// then. Its error is that of Receive, and the client is not answered.
	Arrived func() error

	// RSA is needed by clients without TLS that give a wrong password: they get an
	// exchange under it, as from MySQL, before they are refused. With nil they are
	// refused at once.
	RSA *RSAKeys

	// OldPasswords says that some account may have an OldPassword: every login is then
	// compared with two, so that its time does not tell which account has one.
	OldPasswords bool
}

// ClientHello is what a client says of itself in its login.
type ClientHello struct {
	User         string
	Database     string     // the schema asked for, not checked; "" if none
	Capabilities Capability // what the client asked for and was offered, but for Compressing
	// Compression is how the stream goes on once the login's last OK was written: see
	// Conn.StartCompression.
	Compression  Compression
	Collation    uint16 // above 255 only after a change of user: a login has one byte for it
	MaxPacket    uint32 // the client's; 0 if it does not say
	Attrs        Attrs
	Plugin       string // by which the password was checked; set by Verify
	PasswordUsed bool   // whether the client gave one; set by Verify
	// Salt is the challenge that the client knows, to which a COM_CHANGE_USER of a
	// client without PluginAuth answers.
	Salt Salt

	certificate *[sha256.Size]byte // the fingerprint of what the client was shown, with Prove
}

// CodeTLSRequired is ER_SECURE_TRANSPORT_REQUIRED of MySQL 5.7 and later.
const CodeTLSRequired = 3159

// erWrongZstdLevel is MySQL's error for a zstd level that there is not.
const erWrongZstdLevel = 3923

// loginCapabilities are offered to every client, since this package needs or
// understands them whatever the backends do.
const loginCapabilities = Protocol41 | SecureConnection | PluginAuth | PluginAuthLenEnc | ConnectWithDB | ConnectAttrs

func (l *ServerLogin) offered() Capability {
	c := l.Capabilities&^SSL | loginCapabilities
	if l.TLS != nil {
		c |= SSL
	}
	if c.Has(LongPassword) { // their place in the greeting does not exist then
		c &^= Extended
	}
	return c
}

// plugin is what the greeting names, and its salt is meant for.
func (l *ServerLogin) plugin() string {
	if l.Prove {
		return mysql.AUTH_NATIVE_PASSWORD
	}
	return mysql.AUTH_CACHING_SHA2_PASSWORD
}

// Receive greets the client, shakes hands for TLS if it asks for that, and reads
// its login; Verify then judges it, or the caller goes another way.
//
// After a *HandshakeError the client has its answer and the connection is to be
// closed; any other error is the connection's own. The caller sets a deadline:
// Receive waits as long as reads and writes do.
func (l *ServerLogin) Receive(pc ClientConn) (*Attempt, error) {
	greeting := Greeting{
		Version: l.Version, ConnectionID: l.ConnectionID, Salt: NewSalt(), Capabilities: l.offered(),
		Collation: l.Collation, Status: l.Status, Plugin: l.plugin(),
	}
	payload, err := greeting.Append(nil)
	if err != nil {
		return nil, err
	}
	if err := pc.WritePacket(payload); err != nil {
		return nil, fmt.Errorf("write greeting: %w", err)
	}
	if err := l.readProxyHeader(pc); err != nil {
		return nil, err
	}
	if l.ProxyHeader && l.Arrived != nil {
		if err := l.Arrived(); err != nil {
			return nil, err
		}
	}
	response, certificate, err := l.readResponse(pc, greeting.Capabilities)
	if err != nil {
		return nil, err
	}
	old := !response.Capabilities.Has(Protocol41)
	if old {
		pc = oldClientConn{pc}
	}
	if l.RequireTLS && !pc.IsTLS() && !overUnix(pc) {
		return nil, refuse(pc, CodeTLSRequired, "HY000",
			"Connections using insecure transport are prohibited while --require_secure_transport=ON.",
			errors.New("the client came without TLS, which is demanded"))
	}
	if !response.Capabilities.Has(SecureConnection) && !old {
		return nil, refuseMalformed(pc, fmt.Errorf("handshake response: %w", errOldClient))
	}
	compression, err := response.compression()
	if err != nil {
		return nil, refuse(pc, erWrongZstdLevel, "HY000", "Invalid zstd compression level for algorithm 'zstd'.", err)
	}
	return &Attempt{
		Hello: ClientHello{
			User: response.User, Database: response.Database,
			Capabilities: response.Capabilities &^ Compressing, Compression: compression,
			Collation: uint16(response.Collation), MaxPacket: response.MaxPacket, Attrs: bytes.Clone(response.Attrs),
			Salt: greeting.Salt, certificate: certificate,
		},
		login: l, pc: pc, plugin: response.Plugin, answer: response.AuthResponse,
	}, nil
}

// readProxyHeader reads what a balancer sends before the client's first packet.
func (l *ServerLogin) readProxyHeader(pc ClientConn) error {
	err := pc.ReadProxyHeader(l.ProxyHeader)
	switch {
	case errors.Is(err, errNoProxyHeader):
		// A client's login, most likely: its packet comes before the answer to it.
		if _, err := l.read(pc, "handshake response"); err != nil {
			return err
		}
		return refuse(pc, mysql.ER_HANDSHAKE_ERROR, "08S01", "Bad handshake: a PROXY header is expected from this address", err)
	// The codes and words of MariaDB.
	case errors.Is(err, errProxyHeaderForbidden):
		return refuse(pc, mysql.ER_HOST_NOT_PRIVILEGED, "HY000", "Proxy header is not accepted from "+HostOf(pc.RemoteAddr()), err)
	case errors.Is(err, ErrMalformed):
		return refuse(pc, mysql.ER_UNKNOWN_ERROR, "HY000", "Failed to parse proxy header", err)
	case err != nil:
		return fmt.Errorf("read handshake response: %w", err)
	}
	return nil
}

// readResponse reads the client's login, behind the TLS handshake if it asks for
// one. The result shares the connection's buffer. With Prove certificate is the
// fingerprint of what the client was shown.
func (l *ServerLogin) readResponse(pc PacketConn, offered Capability) (response *HandshakeResponse, certificate *[sha256.Size]byte, err error) {
	payload, err := l.read(pc, "handshake response")
	if err != nil {
		return nil, nil, err
	}
	if isSSLRequest(payload) {
		if l.TLS == nil {
			return nil, nil, refuseMalformed(pc, errors.New("the client asks for TLS, which was not offered"))
		}
		cfg := l.TLS
		if l.Prove {
			if cfg, certificate, err = shown(cfg); err != nil {
				return nil, nil, fmt.Errorf("choose a certificate: %w", err)
			}
		}
		if err := pc.StartTLSServer(cfg); err != nil {
			return nil, nil, err
		}
		// The flags of the request do not count: some clients set others here.
		if payload, err = l.read(pc, "handshake response over TLS"); err != nil {
			return nil, nil, err
		}
	}
	response, err = ParseHandshakeResponse(payload, offered)
	if errors.Is(err, errOldClient) && l.Old {
		response, err = parseOldResponse(payload)
	}
	if err != nil {
		return nil, nil, refuseMalformed(pc, err)
	}
	return response, certificate, nil
}

// read reads one packet of the login and answers one that has no valid form.
func (l *ServerLogin) read(pc PacketConn, what string) ([]byte, error) {
	payload, err := pc.ReadPacket(loginLimit)
	if errors.Is(err, ErrMalformed) {
		return nil, refuseMalformed(pc, fmt.Errorf("%s: %w", what, err))
	}
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", what, err)
	}
	return payload, nil
}
