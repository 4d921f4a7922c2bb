package protocol

import (
	"bytes"
	"crypto/rsa"
	"crypto/tls"
	"errors"
	"fmt"
	"strings"

	"github.com/go-mysql-org/go-mysql/mysql"
)

// ClientLogin logs in to a backend: the proxy is the client. A login does not change it, so one
// value may serve many connections.
//
// It supports mysql_native_password, caching_sha2_password, sha256_password, MariaDB's ed25519, and
// clear text over TLS and Unix sockets. The server may switch between these in any order.
type ClientLogin struct {
	User     string
	Password string
	Database string // "" means none
	// Capabilities are the flags to agree on with the server, exactly, except for the PerLogin
	// flags: the login sets these as it needs them. A flag that the server does not offer is an
	// error, since it changes the meaning of later bytes. LongPassword says that the client does
	// not use MariaDB's extended flags.
	Capabilities Capability
	Wish         Capability // agreed on as well if the server offers it
	// Collation may be above 255, which has no room in a login. The login then changes the user to
	// itself. With Relay it does not, and the session has the server's default collation.
	Collation uint16
	// ChangeUser changes the user to itself in any case, so that the server's OK is an OK to a
	// change of user. It has no effect with Relay.
	ChangeUser bool
	Attrs      Attrs // sent if the server accepts them

	// Relay, if set, lets the client itself prove that it is User. Run then ignores Password. An
	// error on the client's side is a *RelayError.
	Relay *RelayedLogin

	TLS *tls.Config // nil means plain
	// TLSOptional continues in plain if the server does not offer TLS, which is otherwise ErrNoTLS.
	// A handshake that fails is always an error.
	TLSOptional bool
	// PublicKey is the server's RSA key. With nil the login asks the server for it where it needs
	// it, which is without TLS. An attacker in between may then give another key and read the
	// password.
	PublicKey *rsa.PublicKey
}

// ServerHello is what a server said in a successful login.
type ServerHello struct {
	Greeting     Greeting   // as the server sent it
	Capabilities Capability // agreed on by both sides
	Status       Status     // after the login
	Plugin       string     // the plugin that proved the password
	// OK is the payload of the server's OK if it has more than a status: with SessionTrack, it
	// describes the session. It is nil otherwise.
	OK []byte
}

// clientOnly are flags about the client that change no byte of the server's. A server need not
// offer them, and MariaDB does not offer LongPassword.
const clientOnly = LongPassword | LongFlag | ODBC | IgnoreSigpipe | Interactive | Reserved |
	VerifyServerCert | RememberOptions

// ErrNoTLS says that the server does not offer the TLS that is demanded.
var ErrNoTLS = errors.New("does not offer TLS, which is demanded for it")

// ErrNoGreeting says that a server's greeting could not be read. It is no fault of an account.
var ErrNoGreeting = errors.New("read greeting")

// largestPacket is the client's packet limit in a login to a server: the largest possible.
const largestPacket = 1 << 30

// maxAuthRounds bounds how many questions a server may ask.
const maxAuthRounds = 16

// ReadGreeting reads a server's greeting, for its version, collation and capabilities. It returns a
// *ServerError for an ERR in its place. If the caller then closes the connection, the server counts
// it as aborted. MySQL also counts it towards max_connect_errors, and then blocks the host. So a
// caller with credentials should log in and send COM_QUIT instead.
func ReadGreeting(pc Packets) (*Greeting, error) {
	payload, err := pc.ReadPacket(loginLimit)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrNoGreeting, err)
	}
	return ParseGreeting(payload)
}

// Run logs in, including the server's OK. The next packet on pc is a command. A refusal by the
// server is a *ServerError. After any error the caller closes the connection. The caller sets a
// deadline.
func (l *ClientLogin) Run(pc PacketConn) (*ServerHello, error) {
	greeting, err := ReadGreeting(pc)
	if err != nil {
		return nil, err
	}
	capabilities, err := l.agree(greeting)
	if err != nil {
		return nil, err
	}
	if l.Relay != nil {
		capabilities |= l.Relay.factors(pc, greeting, l.Capabilities)
	}
	response := HandshakeResponse{
		Capabilities: capabilities, MaxPacket: largestPacket, Collation: l.lowCollation(),
		User: quoted(l.User), Database: l.Database, Attrs: l.Attrs,
	}
	if capabilities.Has(SSL) {
		if err := pc.WritePacket(response.SSLRequest()); err != nil {
			return nil, fmt.Errorf("write TLS request: %w", err)
		}
		if err := pc.StartTLSClient(l.TLS); err != nil {
			return nil, err
		}
	}
	var p *prover
	if l.Relay != nil {
		l.Relay.serverKey = l.PublicKey
		err = l.Relay.respond(pc, greeting, &response)
	} else {
		p = &prover{password: l.Password, tls: pc.IsTLS(), secure: pc.IsTLS() || overUnix(pc), key: l.PublicKey}
		response.AuthResponse = p.start(greeting.Plugin, greeting.Salt)
		response.Plugin = p.plugin
	}
	if err != nil {
		return nil, err
	}
	payload, err := response.Append(nil)
	if err != nil {
		return nil, err
	}
	if err := pc.WritePacket(payload); err != nil {
		if pc.IsTLS() {
			// With TLS 1.3 the server refuses the proxy's certificate only after the handshake.
			if _, refused := pc.ReadPacket(loginLimit); refused != nil {
				err = errors.Join(err, refused)
			}
		}
		return nil, fmt.Errorf("write handshake response: %w", err)
	}
	hello := &ServerHello{Greeting: *greeting, Capabilities: capabilities}
	var ok []byte
	if l.Relay != nil {
		ok, err = l.Relay.run()
		hello.Plugin = l.Relay.plugin
	} else {
		ok, err = p.run(pc)
		hello.Plugin = p.plugin
	}
	if err == nil && (l.ChangeUser || l.Collation > 255) && p != nil {
		pc.SetPacketNum(0)
		if err = pc.WritePacket(l.changeUser(capabilities, p.plugin)); err != nil {
			return nil, fmt.Errorf("write change of user: %w", err)
		}
		p.waiting = false
		ok, err = p.run(pc)
	}
	if err != nil {
		return nil, err
	}
	ok = withoutRedirect(withoutProof(ok))
	valid := false
	if hello.Status, _, valid = ParseOKStatus(ok); !valid {
		return nil, fmt.Errorf("the server's OK to the login: %w", ErrMalformed)
	}
	if len(ok) > plainOK {
		hello.OK = bytes.Clone(ok)
	}
	return hello, nil
}

// lowCollation is the collation byte of the login. It is an id that no server has if the collation
// has no room.
func (l *ClientLogin) lowCollation() uint8 {
	if l.Collation > 255 {
		return 0
	}
	return uint8(l.Collation)
}

// quoted quotes a name that already has quotes: servers remove one pair.
func quoted(name string) string {
	if len(name) > 1 && name[0] == '\'' && name[len(name)-1] == '\'' {
		return "'" + name + "'"
	}
	return name
}

// plainOK is the length of an OK with nothing but a status.
const plainOK = 7

// agree returns the flags of the login, or an error that names the missing ones.
func (l *ClientLogin) agree(g *Greeting) (Capability, error) {
	want := (l.Capabilities | l.Wish&g.Capabilities) &^ PerLogin
	if bad := want & Compressing; bad != 0 {
		return 0, fmt.Errorf("login to the server: %s is not spoken here", bad.names())
	}
	if missing := want &^ (g.Capabilities | clientOnly); missing != 0 {
		return 0, fmt.Errorf("the server (%s) does not offer %s, which the client side has agreed on", g.Version, missing.names())
	}
	c := want | Protocol41 | SecureConnection | g.Capabilities&(PluginAuth|PluginAuthLenEnc)
	if l.Database != "" {
		c |= ConnectWithDB
	}
	if len(l.Attrs) > 0 {
		c |= g.Capabilities & ConnectAttrs
	}
	if l.TLS != nil {
		switch {
		case g.Capabilities.Has(SSL):
			c |= SSL
		case !l.TLSOptional:
			return 0, fmt.Errorf("the server (%s) %w", g.Version, ErrNoTLS)
		}
	}
	return c, nil
}

// names lists the flags of c, for messages.
func (c Capability) names() string {
	var names []string
	for bit := Capability(1); bit != 0; bit <<= 1 {
		if !c.Has(bit) {
			continue
		}
		name, ok := extendedNames[bit]
		if !ok {
			name, ok = mysql.CapNames[uint32(bit)]
		}
		if !ok {
			name = fmt.Sprintf("flag 0x%x", uint64(bit))
		}
		names = append(names, name)
	}
	return strings.Join(names, ", ")
}

var extendedNames = map[Capability]string{
	Progress:         "MARIADB_CLIENT_PROGRESS",
	BulkOperations:   "MARIADB_CLIENT_STMT_BULK_OPERATIONS",
	ExtendedMetadata: "MARIADB_CLIENT_EXTENDED_METADATA",
	CacheMetadata:    "MARIADB_CLIENT_CACHE_METADATA",
	BulkUnitResults:  "MARIADB_CLIENT_BULK_UNIT_RESULTS",
}

// run answers the server until it sends OK or ERR. It returns the OK, which is valid until the next
// read.
func (p *prover) run(pc Packets) (ok []byte, err error) {
	for range maxAuthRounds {
		payload, err := pc.ReadPacket(loginLimit)
		if err != nil {
			return nil, fmt.Errorf("read the server's answer to the login: %w", err)
		}
		if len(payload) == 0 {
			return nil, fmt.Errorf("the server's answer to the login: %w: empty", ErrMalformed)
		}
		var answer []byte
		speak := true
		switch payload[0] {
		case headerOK:
			return payload, nil
		case headerERR:
			return nil, ParseServerError(payload)
		case headerAuthSwitch:
			request, err := ParseAuthSwitch(payload)
			if err != nil {
				return nil, err
			}
			answer, err = p.switchTo(request)
			if err != nil {
				return nil, err
			}
		case headerMoreData:
			data, err := ParseAuthMoreData(payload)
			if err != nil {
				return nil, err
			}
			answer, speak, err = p.more(data)
			if err != nil {
				return nil, fmt.Errorf("login: %w", err)
			}
		case headerNextFactor:
			return nil, errors.New("the server asks for a second authentication factor, which is not spoken here: use an account with one")
		default:
			return nil, fmt.Errorf("the server's answer to the login: %w: it begins with 0x%02x", ErrMalformed, payload[0])
		}
		if speak {
			if err := pc.WritePacket(answer); err != nil {
				return nil, fmt.Errorf("write auth data: %w", err)
			}
		}
	}
	return nil, fmt.Errorf("the server went on asking after %d rounds of authentication", maxAuthRounds)
}
