package protocol

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net"

	"github.com/go-mysql-org/go-mysql/mysql"
)

var errOldPassword = errors.New("passwords of before MySQL 4.1 (mysql_old_password)")

// AuthError is a login that was refused for its user or password. When it is returned, the client
// has got ERR 1045, unless it was gone. The text is for the log: it holds no secret, but more than
// the client was told.
type AuthError struct {
	User          string
	Host          string // as in the answer: the client's address without port, or "localhost"
	Plugin        string // the plugin that decided
	UsingPassword bool
	// Reason, if set, is why the login was refused whatever its password was: for what
	// the server that was to check it does not check, or for what the account demands
	// of its connections.
	Reason    string
	KnownUser bool // false: there is no such account
	ByServer  bool // Reason is what a server has said
	// Code and State are what the client was told; 0 and "" for 1045 and 28000.
	Code  uint16
	State string
	// Gone, if set, is why the client was not answered: it gave a wrong password, and
	// was not there for the rest of the dialogue.
	Gone error
}

func (e *AuthError) Error() string {
	why := "wrong password"
	switch {
	case e.Reason != "":
		why = e.Reason
	case !e.KnownUser:
		why = "unknown user"
	case !e.UsingPassword:
		why = "no password given"
	}
	if e.Gone != nil {
		why += fmt.Sprintf(", then %v", e.Gone)
	}
	return fmt.Sprintf("login of %.100q from %s refused: %s (%s)", e.User, e.Host, why, e.Plugin)
}

// message is what the client is told, in MySQL's words (ER_ACCESS_DENIED_ERROR).
func (e *AuthError) message() string {
	using := "NO"
	if e.UsingPassword {
		using = "YES"
	}
	return fmt.Sprintf("Access denied for user '%.48s'@'%.64s' (using password: %s)", e.User, e.Host, using)
}

// HandshakeError is a login that was refused for its form: bytes that are no
// login, a packet over the limit, a protocol that is too old, no TLS where it is
// demanded. The client has been answered with an ERR packet of Code.
type HandshakeError struct {
	Code  uint16 // 1043 for a malformed packet
	State string // that the client was told beside it, or ""
	Err   error
}

func (e *HandshakeError) Error() string { return fmt.Sprintf("login refused (%d): %v", e.Code, e.Err) }

// Unwrap returns the cause.
func (e *HandshakeError) Unwrap() error { return e.Err }

// ServerError is an ERR packet with which a server answered a login, also instead
// of its greeting; State is empty then, for nothing is negotiated yet.
type ServerError struct {
	Code    uint16
	State   string // five characters, or ""
	Message string
}

func (e *ServerError) Error() string {
	if e.State == "" {
		return fmt.Sprintf("server error %d: %s", e.Code, e.Message)
	}
	return fmt.Sprintf("server error %d (%s): %s", e.Code, e.State, e.Message)
}

// Errorf is an error in the words of a server. The state has five characters.
func Errorf(code uint16, state, format string, args ...any) *ServerError {
	return &ServerError{Code: code, State: state, Message: fmt.Sprintf(format, args...)}
}

// NotSupported is the error for what the proxy knows and will not do. The text names the way out.
func NotSupported(format string, args ...any) *ServerError {
	return Errorf(mysql.ER_NOT_SUPPORTED_YET, "42000", "seqproxy: "+format, args...)
}

// ParseServerError decodes an ERR packet, with or without a SQLSTATE, to a
// *ServerError (or says that it is malformed).
func ParseServerError(payload []byte) error {
	if len(payload) < 3 || payload[0] != headerERR {
		return fmt.Errorf("ERR packet: %w", ErrMalformed)
	}
	e := &ServerError{Code: binary.LittleEndian.Uint16(payload[1:])}
	text := payload[3:]
	if len(text) >= 6 && text[0] == '#' {
		e.State, text = string(text[1:6]), text[6:]
	}
	e.Message = string(text)
	return e
}

// writeERR answers a login with an ERR packet; without a state it has the form
// that is understood before anything is negotiated.
func writeERR(pc PacketConn, code uint16, state, message string) error {
	return pc.WritePacket(AppendERR(nil, 0, code, state, message)[HeaderSize:])
}

// RefuseConnection answers a new connection with an ERR packet in place of a
// greeting, as servers do with 1040 ("Too many connections"). The packet has no
// SQLSTATE, since nothing is negotiated yet.
func RefuseConnection(pc PacketConn, code uint16, message string) error {
	if err := writeERR(pc, code, "", message); err != nil {
		return fmt.Errorf("refuse connection: %w", err)
	}
	return nil
}

// refuse answers a login that has no valid form and returns the error that says
// so. That the answer cannot be written changes nothing: the caller closes.
func refuse(pc PacketConn, code uint16, state, message string, cause error) error {
	_ = writeERR(pc, code, state, message)
	return &HandshakeError{Code: code, State: state, Err: cause}
}

// refuseMalformed is refuse for a packet that cannot be understood, with the
// servers' words for it.
func refuseMalformed(pc PacketConn, cause error) error {
	if errors.Is(cause, errOldClient) {
		return refuse(pc, mysql.ER_NOT_SUPPORTED_AUTH_MODE, "",
			"Client does not support authentication protocol requested by server; consider upgrading MySQL client", cause)
	}
	return refuse(pc, mysql.ER_HANDSHAKE_ERROR, "08S01", "Bad handshake", cause)
}

// HostOf names a client in messages as MySQL does: by its address without port.
func HostOf(addr net.Addr) string {
	switch a := addr.(type) {
	case *net.TCPAddr:
		if ip := a.AddrPort().Addr(); ip.IsValid() {
			return ip.Unmap().String()
		}
	case *net.UnixAddr:
		return "localhost"
	}
	if addr == nil {
		return ""
	}
	if host, _, err := net.SplitHostPort(addr.String()); err == nil {
		return host
	}
	return addr.String()
}
