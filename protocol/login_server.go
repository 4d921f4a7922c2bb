package protocol

import (
	"bytes"
	"crypto/sha256"
	"crypto/tls"
	"errors"
	"fmt"

	"github.com/go-mysql-org/go-mysql/mysql"
)

// ServerLogin logs one client in: the proxy is the server. Each connection has its own, or a copy.
// The values that its fields point to may be shared.
//
// The exchange is the connection phase of
// https://dev.mysql.com/doc/dev/mysql-server/latest/page_protocol_connection_phase.html with
// caching_sha2_password. Clients that name them may use mysql_native_password, sha256_password and,
// over TLS and Unix sockets, mysql_clear_password.
type ServerLogin struct {
	Version      string // in the greeting; a backend's own
	ConnectionID uint32
	// Capabilities are offered to the client. The flags that a login itself needs are always
	// offered, and SSL exactly if TLS is set.
	Capabilities Capability
	Collation    uint8
	Status       Status // Autocommit, usually

	TLS        *tls.Config // nil: do not offer TLS
	RequireTLS bool        // refuse clients without TLS, except on a Unix socket
	// Prove lets MariaDB's clients trust the certificate by the password: see Attempt.Proof. The
	// greeting then names mysql_native_password, as MariaDB's does, because these clients refuse a
	// plugin without a proof. TLS must show the same certificate to every client: its
	// GetConfigForClient gets no client hello.
	Prove bool

	// Old lets in clients older than MySQL 4.1 without a password, as MariaDB does: see
	// Attempt.Old.
	Old bool

	// ProxyHeader says that the peer is a balancer, which sends its client's address in a PROXY
	// header. A login without a header is refused. The greeting does not wait for it, since some
	// balancers send it only with the client's first packet.
	ProxyHeader bool
	// Arrived, if set, is called after the header was read, which has the client's address. Receive
	// returns its error and does not answer the client.
	Arrived func() error

	// RSA serves clients without TLS that give a wrong password. Like MySQL, the login asks them
	// for the password under this key before it refuses them. With nil it refuses them at once.
	RSA *RSAKeys

	// OldPasswords says that some account may have an OldPassword. Every login then compares two
	// passwords, so its time does not show which account has one.
	OldPasswords bool
}

// ClientHello is the contents of a client's login.
type ClientHello struct {
	User         string
	Database     string     // the schema asked for, not checked; "" means none
	Capabilities Capability // those that the client asked for and was offered, without Compressing
	// Compression is how the stream continues after the last OK of the login: see
	// Conn.StartCompression.
	Compression  Compression
	Collation    uint16 // above 255 only after a change of user: a login has one byte for it
	MaxPacket    uint32 // the client's; 0 if missing
	Attrs        Attrs
	Plugin       string // the plugin that checked the password; set by Verify
	PasswordUsed bool   // the client gave a password; set by Verify
	// Salt is the client's present challenge. A client without PluginAuth answers it in a
	// COM_CHANGE_USER.
	Salt Salt

	// certificate is, with Prove, the fingerprint of the certificate shown to the client.
	certificate *[sha256.Size]byte
}

// CodeTLSRequired is ER_SECURE_TRANSPORT_REQUIRED of MySQL 5.7 and later.
const CodeTLSRequired = 3159

// erWrongZstdLevel is MySQL's error for an invalid zstd level.
const erWrongZstdLevel = 3923

// loginCapabilities are offered to every client: this package needs or handles them, whatever the
// backends offer.
const loginCapabilities = Protocol41 | SecureConnection | PluginAuth | PluginAuthLenEnc | ConnectWithDB | ConnectAttrs

func (l *ServerLogin) offered() Capability {
	c := l.Capabilities&^SSL | loginCapabilities
	if l.TLS != nil {
		c |= SSL
	}
	if c.Has(LongPassword) { // with LongPassword the greeting has no room for them
		c &^= Extended
	}
	return c
}

// plugin is the plugin that the greeting names. Its salt is for that plugin.
func (l *ServerLogin) plugin() string {
	if l.Prove {
		return mysql.AUTH_NATIVE_PASSWORD
	}
	return mysql.AUTH_CACHING_SHA2_PASSWORD
}

// Receive greets the client, shakes hands for TLS if the client asks for it, and reads the login.
// Verify then judges it, or the caller goes another way.
//
// After a *HandshakeError the client has its answer, and the caller closes the connection. Any
// other error comes from the connection itself. Receive sets no deadline: the caller does.
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

// readProxyHeader reads the header that a balancer sends before the client's first packet.
func (l *ServerLogin) readProxyHeader(pc ClientConn) error {
	err := pc.ReadProxyHeader(l.ProxyHeader)
	switch {
	case errors.Is(err, errNoProxyHeader):
		// The bytes are probably a client's login. Read that packet before the answer to it.
		if _, err := l.read(pc, "handshake response"); err != nil {
			return err
		}
		return refuse(pc, mysql.ER_HANDSHAKE_ERROR, "08S01", "Bad handshake: a PROXY header is expected from this address", err)
	// The codes and texts are MariaDB's.
	case errors.Is(err, errProxyHeaderForbidden):
		return refuse(pc, mysql.ER_HOST_NOT_PRIVILEGED, "HY000", "Proxy header is not accepted from "+HostOf(pc.RemoteAddr()), err)
	case errors.Is(err, ErrMalformed):
		return refuse(pc, mysql.ER_UNKNOWN_ERROR, "HY000", "Failed to parse proxy header", err)
	case err != nil:
		return fmt.Errorf("read handshake response: %w", err)
	}
	return nil
}

// readResponse reads the client's login, after the TLS handshake if the client asks for one. The
// result shares the connection's buffer. With Prove, certificate is the fingerprint of the
// certificate shown to the client.
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
		// Flags in the request do not count: some clients set others there.
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

// read reads one packet of the login. It refuses a packet of invalid form.
func (l *ServerLogin) read(pc Packets, what string) ([]byte, error) {
	payload, err := pc.ReadPacket(loginLimit)
	if errors.Is(err, ErrMalformed) {
		return nil, refuseMalformed(pc, fmt.Errorf("%s: %w", what, err))
	}
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", what, err)
	}
	return payload, nil
}
