package protocol

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net"

	"github.com/go-mysql-org/go-mysql/mysql"
)

var errOldPassword = errors.New("passwords of before MySQL 4.1 (mysql_old_password)")

// AuthError is a login refused for its user or password. The client has been sent ERR 1045, unless
// it was gone. The text is for the log. It has no secret, but more than the client may learn.
type AuthError struct {
	User          string
	Host          string // as in the answer: the client's address without port, or "localhost"
	Plugin        string // the plugin that decided
	UsingPassword bool
	// Reason, if set, is a reason that does not depend on the password: the server would not have
	// checked it, or the connection lacks what the account demands.
	Reason     string
	UserExists bool // false: the account does not exist
	ByServer   bool // Reason is the server's own text
	// Code and State of the client's ERR packet; 0 and "" mean 1045 and 28000.
	Code  uint16
	State string
	// Gone, if set, is why the client could not be answered: it gave a wrong password and
	// disappeared.
	Gone error
}

func (e *AuthError) Error() string {
	why := "wrong password"
	switch {
	case e.Reason != "":
		why = e.Reason
	case !e.UserExists:
		why = "unknown user"
	case !e.UsingPassword:
		why = "no password given"
	}
	if e.Gone != nil {
		why += fmt.Sprintf(", then %v", e.Gone)
	}
	return fmt.Sprintf("login of %.100q from %s refused: %s (%s)", e.User, e.Host, why, e.Plugin)
}

// message is the text for the client, as MySQL writes it (ER_ACCESS_DENIED_ERROR).
func (e *AuthError) message() string {
	using := "NO"
	if e.UsingPassword {
		using = "YES"
	}
	return fmt.Sprintf("Access denied for user '%.48s'@'%.64s' (using password: %s)", e.User, e.Host, using)
}

// HandshakeError is a login refused for its form: bytes that are no login, a packet over the limit,
// an old protocol, no TLS where it is demanded. The client has been sent an ERR packet with Code.
type HandshakeError struct {
	Code  uint16 // 1043 for a malformed packet
	State string // sent to the client with Code, or ""
	Err   error
}

func (e *HandshakeError) Error() string { return fmt.Sprintf("login refused (%d): %v", e.Code, e.Err) }

// Unwrap returns the cause.
func (e *HandshakeError) Unwrap() error { return e.Err }

// ServerError is an ERR packet of a server, as an answer to a login or in place of its greeting.
// State is "" in place of a greeting, since nothing is negotiated yet.
type ServerError struct {
	Code    uint16
	State   string // five characters, or ""
	Message string
}

// StateWarning is the SQLSTATE of a warning: SIGNAL with it leaves one, and is no error.
const StateWarning = "01000"

func (e *ServerError) Error() string {
	if e.State == "" {
		return fmt.Sprintf("server error %d: %s", e.Code, e.Message)
	}
	return fmt.Sprintf("server error %d (%s): %s", e.Code, e.State, e.Message)
}

// Errorf makes an error in a server's words. state has five characters.
func Errorf(code uint16, state, format string, args ...any) *ServerError {
	return &ServerError{Code: code, State: state, Message: fmt.Sprintf(format, args...)}
}

// NotSupported makes the error for something that the proxy recognizes and refuses. The text names
// the way out.
func NotSupported(format string, args ...any) *ServerError {
	return Errorf(mysql.ER_NOT_SUPPORTED_YET, "42000", "seqproxy: "+format, args...)
}

// ParseServerError decodes an ERR packet, with or without a SQLSTATE, to a *ServerError. For a
// malformed packet it returns another error.
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

// writeERR answers a login with an ERR packet. Without a state the packet has the form for a client
// with which nothing is negotiated yet.
func writeERR(pc Packets, code uint16, state, message string) error {
	return pc.WritePacket(AppendERR(nil, 0, code, state, message)[HeaderSize:])
}

// RefuseConnection answers a new connection with an ERR packet in place of a greeting, as servers
// do with 1040 ("Too many connections"). The packet has no SQLSTATE, since nothing is negotiated
// yet.
func RefuseConnection(pc Packets, code uint16, message string) error {
	if err := writeERR(pc, code, "", message); err != nil {
		return fmt.Errorf("refuse connection: %w", err)
	}
	return nil
}

// refuse answers a login of invalid form and returns the matching error. It ignores a failed write,
// since the caller closes the connection.
func refuse(pc Packets, code uint16, state, message string, cause error) error {
	_ = writeERR(pc, code, state, message)
	return &HandshakeError{Code: code, State: state, Err: cause}
}

// refuseMalformed refuses a packet that cannot be decoded, in the servers' words.
func refuseMalformed(pc Packets, cause error) error {
	if errors.Is(cause, errOldClient) {
		return refuse(pc, mysql.ER_NOT_SUPPORTED_AUTH_MODE, "",
			"Client does not support authentication protocol requested by server; consider upgrading MySQL client", cause)
	}
	return refuse(pc, mysql.ER_HANDSHAKE_ERROR, "08S01", "Bad handshake", cause)
}

// HostOf names a client in messages as MySQL does, by its address without port.
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
