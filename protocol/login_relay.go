package protocol

import (
	"bytes"
	"crypto/rsa"
	"fmt"

	"github.com/go-mysql-org/go-mysql/mysql"
)

// RelayedLogin lets a server check a client whose password only the server has. The server's
// questions go to the client, and the client's answers go to the server. The proxy needs no
// password. ClientLogin runs it, as the client's user.
//
// The proxy names a plugin that does not exist. So the server switches to the account's own plugin,
// with a challenge of its own, which the client then answers. But to the server the proxy is the
// client. The server might accept it for other reasons: the user id at the proxy's end of a Unix
// socket, or the proxy's host. So a login counts only if a plugin has asked for a password or a
// key, that plugin judges by nothing else, and the client has answered. Over a Unix socket that is
// not enough if an account may have several plugins: see backend.Conn.checkTrust.
//
// A password in clear may be safe on one side and not on the other. That exchange ends here: the
// client sends its password under the proxy's RSA key or over TLS, and the server gets it in the
// form that its side demands.
//
// It is for one login and one goroutine.
type RelayedLogin struct {
	// Keep stores a password that the proxy gets to see, for Password.
	Keep bool

	attempt *Attempt
	server  PacketConn
	// serverKey is the server's RSA key, nil if unknown.
	serverKey      *rsa.PublicKey
	severalFactors bool   // multi-factor authentication was agreed on with the server
	plugin         string // the server's plugin; "" before it has asked
	salt           Salt   // for sha2 and sha256 passwords
	answered       bool   // the client has answered the server's question
	answers        int    // number of answers sent to the plugin
	// the server may count a fault of the proxy's host if it refuses the client
	fault    bool
	empty    bool   // the client has said once that it has no password, and is not asked
	password []byte // stored because of Keep
}

// Relay prepares for a server to check the login.
//
// A client without plugins has one kind of password, and an empty answer to the greeting says that
// it has none. So Relay does not ask it. Some could not even be asked: a balancer's check takes
// every packet that is no error for a success.
func (a *Attempt) Relay() *RelayedLogin {
	return &RelayedLogin{attempt: a, empty: !a.Hello.Capabilities.Has(PluginAuth) && len(a.answer) == 0}
}

// Password is the password that the client sent in clear or under RSA, stored because of Keep. ok
// is false if the server did not need it or the proxy could not read it.
func (r *RelayedLogin) Password() (password string, ok bool) {
	return string(r.password), r.password != nil
}

// PasswordUsed reports whether the client gave an answer. An account without a password accepts
// only an empty one.
func (r *RelayedLogin) PasswordUsed() bool { return r.attempt.Hello.PasswordUsed }

// RelayError says that a relayed login failed on the client's side, or that the proxy refused it.
// The server is not at fault.
type RelayError struct {
	Err error
	// Unsupported says that the client is not at fault, but cannot or must not be asked.
	Unsupported bool
}

func (e *RelayError) Error() string { return fmt.Sprintf("login checked by the server: %v", e.Err) }

// Unwrap returns the cause. It is an *AuthError or *HandshakeError if the client was answered, else
// an error of the client's connection.
func (e *RelayError) Unwrap() error { return e.Err }

// noSuchPlugin is the plugin that the proxy names to a server. No account has it, so the server
// asks by the account's own plugin.
const noSuchPlugin = "seqproxy_relayed"

// Plugins whose server side judges by the client's answer alone. Those of the second group send the
// password itself.
const (
	pluginParsec = "parsec"
	pluginDialog = "dialog" // MariaDB's PAM
)

// factors returns MultiFactor if several factors can be asked for. Over a Unix socket they cannot:
// the second one may be auth_socket, and the server would check the proxy's user id and not say so.
// Without the flag the server refuses an account that needs several.
func (r *RelayedLogin) factors(server Transport, greeting *Greeting, wanted Capability) Capability {
	if overUnix(server) {
		return 0
	}
	return MultiFactor & wanted & greeting.Capabilities
}

// respond sends the response that makes the server ask. greeting comes from the server.
func (r *RelayedLogin) respond(server PacketConn, greeting *Greeting, response *HandshakeResponse) error {
	if !greeting.Capabilities.Has(PluginAuth) {
		return fmt.Errorf("the server (%s) has no authentication plugins and cannot be asked to check a client's password: give the user a [[user]]", greeting.Version)
	}
	r.server = server
	r.severalFactors = response.Capabilities.Has(MultiFactor)
	response.Plugin, response.AuthResponse = noSuchPlugin, nil
	return nil
}

// run passes on questions and answers until the server ends the login. It returns the server's OK,
// valid until the next read. An ERR is a *ServerError, which the caller sends to the client. A
// failure on the client's side is a *RelayError.
func (r *RelayedLogin) run() (ok []byte, err error) {
	for range maxAuthRounds {
		payload, err := r.ask()
		if err != nil {
			return nil, err
		}
		switch {
		case payload[0] == headerOK:
			if !r.answered {
				return nil, r.refuseTrust("the server asked for no password: it trusts whoever connects, here the proxy")
			}
			return payload, nil
		case payload[0] == headerERR:
			return nil, ParseServerError(payload)
		case payload[0] == headerAuthSwitch:
			err = r.switchTo(payload)
		case payload[0] == headerNextFactor && r.severalFactors:
			err = r.nextFactor(payload)
		default:
			err = r.more(payload)
		}
		if err != nil {
			return nil, err
		}
	}
	return nil, fmt.Errorf("the server went on asking after %d rounds of authentication", maxAuthRounds)
}

// ask reads the server's next packet.
func (r *RelayedLogin) ask() ([]byte, error) {
	payload, err := r.server.ReadPacket(loginLimit)
	switch {
	case err != nil:
		return nil, fmt.Errorf("read the server's answer to the login: %w", err)
	case len(payload) == 0:
		return nil, fmt.Errorf("the server's answer to the login: %w: empty", ErrMalformed)
	}
	return payload, nil
}

// switchTo passes on a switch to another plugin, and the client's first answer.
func (r *RelayedLogin) switchTo(payload []byte) error {
	request, err := ParseAuthSwitch(payload)
	if err != nil {
		return err
	}
	return r.begin(payload, request.Plugin, request.Data)
}

// nextFactor is switchTo for the second and third factor, Protocol::AuthNextFactorRequest
// (https://dev.mysql.com/doc/dev/mysql-server/latest/page_protocol_connection_phase_packets_protocol_auth_next_factor_request.html).
func (r *RelayedLogin) nextFactor(payload []byte) error {
	end := bytes.IndexByte(payload, 0)
	if end < 0 {
		return fmt.Errorf("request for the next factor: %w: no plugin name", ErrMalformed)
	}
	return r.begin(payload, string(payload[1:end]), payload[end+1:])
}

// begin starts the dialogue of a plugin. payload is the server's packet that demands it.
func (r *RelayedLogin) begin(payload []byte, plugin string, data []byte) error {
	r.plugin, r.answers = plugin, 0
	if plugin != mysql.AUTH_NATIVE_PASSWORD && !r.attempt.Hello.Capabilities.Has(PluginAuth) {
		return r.refusePlugin(plugin)
	}
	if r.empty {
		return r.toServer(nil)
	}
	switch plugin {
	case mysql.AUTH_NATIVE_PASSWORD, mysql.AUTH_MARIADB_ED25519, pluginParsec:
		return r.pass(payload)
	case mysql.AUTH_CACHING_SHA2_PASSWORD, mysql.AUTH_SHA256_PASSWORD:
		if len(data) < SaltSize {
			return fmt.Errorf("the server's challenge: %w: salt of %d bytes", ErrMalformed, len(data))
		}
		copy(r.salt[:], data)
		if plugin == mysql.AUTH_SHA256_PASSWORD {
			return r.sha256(payload)
		}
		return r.pass(payload)
	case mysql.AUTH_CLEAR_PASSWORD, pluginDialog:
		if !r.attempt.pc.IsTLS() || !r.server.IsTLS() {
			return r.refuseClear()
		}
		if plugin == mysql.AUTH_CLEAR_PASSWORD {
			return r.clear(payload)
		}
		return r.pass(payload)
	}
	return r.refuseTrust(fmt.Sprintf("the server wants to check it by the plugin %q, which may check who connects (the proxy) and no password", plugin))
}

// more passes on a message from the server's plugin to the client's.
func (r *RelayedLogin) more(payload []byte) error {
	if r.plugin == "" {
		return fmt.Errorf("the server's answer to the login: %w: it begins with 0x%02x", ErrMalformed, payload[0])
	}
	if r.plugin == mysql.AUTH_CACHING_SHA2_PASSWORD && len(payload) == 2 && payload[0] == headerMoreData {
		switch payload[1] {
		case sha2FastOK:
			return r.forward(payload) // and the server speaks next
		case sha2FullAuth:
			return r.sha2(payload)
		}
	}
	return r.pass(payload)
}

// pass passes on a packet of the server and the client's answer.
func (r *RelayedLogin) pass(payload []byte) error {
	answer, err := r.fromClient(payload)
	if err != nil {
		return err
	}
	return r.toServer(answer)
}

// forward passes on a packet of the server that needs no answer.
func (r *RelayedLogin) forward(payload []byte) error {
	if err := r.attempt.pc.QueuePacket(payload); err != nil {
		return &RelayError{Err: fmt.Errorf("write auth data: %w", err)}
	}
	return nil
}

// fromClient sends the client a packet and returns the answer. The answer has a form that the
// server's plugin accepts, and is valid until the client's next. After an error the dialogue with
// the server has ended.
func (r *RelayedLogin) fromClient(payload []byte) ([]byte, error) {
	if err := r.attempt.pc.WritePacket(payload); err != nil {
		r.breakOff()
		return nil, &RelayError{Err: fmt.Errorf("write auth data: %w", err)}
	}
	answer, err := r.attempt.login.read(r.attempt.pc, "answer to the server's challenge")
	if err != nil {
		if r.answered {
			// The first answer may have been wrong. A client that does not wait for the refusal
			// must not escape it.
			gone := r.refusal("it was asked for more than its first answer")
			gone.Gone = err
			err = gone
		}
		r.breakOff()
		return nil, &RelayError{Err: err}
	}
	r.attempt.Hello.Plugin = r.plugin
	if !isEmptyAnswer(answer) {
		r.attempt.Hello.PasswordUsed = true
	}
	if !r.fits(answer) {
		return nil, r.refuseMisfit()
	}
	return answer, nil
}

func (r *RelayedLogin) toServer(answer []byte) error {
	if err := r.server.WritePacket(answer); err != nil {
		return fmt.Errorf("write auth data: %w", err)
	}
	r.answered = true
	r.answers++
	r.fault = r.fault || r.plugin == pluginParsec && r.answers > 1
	return nil
}
