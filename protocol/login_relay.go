package protocol

import (
	"bytes"
	"crypto/rsa"
	"fmt"

	"github.com/go-mysql-org/go-mysql/mysql"
)

// RelayedLogin lets a server check a client that only the server knows: the server's
// questions go to the client and the client's answers to the server, so that nobody
// between them needs the password. ClientLogin runs it, as the client's user.
//
// The server is named a plugin that does not exist, which makes it switch to the
// account's own with a challenge of its own, and that is what the client answers.
// The server takes us for the client, though, and would also let us in for who we
// are: for the user id at our end of a Unix socket, or the machine. So a login
// counts only if it was asked for a password (or a key) by a plugin that is known
// to look at nothing else, and the client has answered. Over a Unix socket that is
// not enough where an account may have several plugins: see backend.Shards.Dial.
//
// Where one side is safe for a password in clear and the other is not, the exchange
// that needs it ends here: the client gives it under our RSA key or over TLS, and
// the server gets it as its side demands.
//
// It is for one login, and is used by one goroutine.
type RelayedLogin struct {
	// AwaitServer, if set, is called before the server is waited for: how long the
	// client took to answer must not count as the server's silence.
	AwaitServer func() error
	// Keep keeps a password that comes by here, for Password.
	Keep bool

	attempt *Attempt
	server  PacketConn
	// serverKey is the server's RSA key if it is known here.
	serverKey      *rsa.PublicKey
	severalFactors bool   // multi-factor authentication was agreed on with the server
	plugin         string // that the server asks by, "" before it has asked
	salt           Salt   // of sha2 and sha256 passwords
	answered       bool   // the client has answered the server's question
	answers        int    // that the plugin has had from us
	// the server may count a fault of our host, if it does not let the client in
	fault    bool
	empty    bool   // the client has no password: it says so once, and is not asked
	password []byte // of Keep
}

// Relay makes the login one that a server is to check.
//
// A client that tells of no plugins has one kind of password, and an empty answer to the
// greeting says that there is none. It need not be asked, and some could not be: a
// balancer's check takes every packet that is no error for its welcome.
func (a *Attempt) Relay() *RelayedLogin {
	return &RelayedLogin{attempt: a, empty: !a.Hello.Capabilities.Has(PluginAuth) && len(a.answer) == 0}
}

// Password is what the client gave in clear or under RSA, and Keep kept; ok is false
// where the server did not need it or it did not come by here.
func (r *RelayedLogin) Password() (password string, ok bool) {
	return string(r.password), r.password != nil
}

// PasswordUsed says whether the client has answered with anything: an account without a
// password takes nothing for an answer.
func (r *RelayedLogin) PasswordUsed() bool { return r.attempt.Hello.PasswordUsed }

// RelayError says that a relayed login failed at the client's end, or was refused
// here: nothing is wrong with the server.
type RelayError struct {
	Err error
	// Unsupported: the client did nothing wrong, but cannot be asked, or must not be.
	Unsupported bool
}

func (e *RelayError) Error() string { return fmt.Sprintf("login checked by the server: %v", e.Err) }

// Unwrap returns the cause: an *AuthError or *HandshakeError if the client was
// answered, otherwise its connection's error.
func (e *RelayError) Unwrap() error { return e.Err }

// noSuchPlugin is what a server is told that the client speaks, so that it asks by
// the account's own plugin.
const noSuchPlugin = "seqproxy_relayed"

// Plugins whose server side looks at the client's answer and nothing else. Those of
// the second kind send the password itself.
const (
	pluginParsec = "parsec"
	pluginDialog = "dialog" // MariaDB's PAM
)

// factors is MultiFactor where several can be asked for. Over a Unix socket they
// cannot: with auth_socket as the second the server looks at the proxy's user id and
// does not say so. An account that needs several is then refused by the server.
func (r *RelayedLogin) factors(server PacketConn, greeting *Greeting, wanted Capability) Capability {
	if overUnix(server) {
		return 0
	}
	return MultiFactor & wanted & greeting.Capabilities
}

// respond sends the response that makes the server ask. greeting is the server's.
func (r *RelayedLogin) respond(server PacketConn, greeting *Greeting, response *HandshakeResponse) error {
	if !greeting.Capabilities.Has(PluginAuth) {
		return fmt.Errorf("the server (%s) has no authentication plugins and cannot be asked to check a client's password: give the user a [[user]]", greeting.Version)
	}
	r.server = server
	r.severalFactors = response.Capabilities.Has(MultiFactor)
	response.Plugin, response.AuthResponse = noSuchPlugin, nil
	return nil
}

// run passes questions and answers on until the server says OK, which it returns and
// which is valid until the next read, or ERR, which is a *ServerError and the caller's
// to tell. What fails at the client's end is a *RelayError.
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
	if r.AwaitServer != nil {
		if err := r.AwaitServer(); err != nil {
			return nil, err
		}
	}
	payload, err := r.server.ReadPacket(loginLimit)
	switch {
	case err != nil:
		return nil, fmt.Errorf("read the server's answer to the login: %w", err)
	case len(payload) == 0:
		return nil, fmt.Errorf("the server's answer to the login: %w: empty", ErrMalformed)
	}
	return payload, nil
}

// switchTo passes on the server's wish for a plugin, and the client's first answer.
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

// begin starts the dialogue of a plugin; payload is the server's packet that says so.
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

// more passes on what the server's plugin says to the client's.
func (r *RelayedLogin) more(payload []byte) error {
	if r.plugin == "" {
		return fmt.Errorf("the server's answer to the login: %w: it begins with 0x%02x", ErrMalformed, payload[0])
	}
	if r.plugin == mysql.AUTH_CACHING_SHA2_PASSWORD && len(payload) == 2 && payload[0] == headerMoreData {
		switch payload[1] {
		case sha2FastOK:
			return r.tell(payload) // and the server speaks on
		case sha2FullAuth:
			return r.sha2(payload)
		}
	}
	return r.pass(payload)
}

// pass passes on a packet of the server's and the client's answer to it.
func (r *RelayedLogin) pass(payload []byte) error {
	answer, err := r.fromClient(payload)
	if err != nil {
		return err
	}
	return r.toServer(answer)
}

// tell passes on a packet that another of the server's follows.
func (r *RelayedLogin) tell(payload []byte) error {
	if err := r.attempt.pc.QueuePacket(payload); err != nil {
		return &RelayError{Err: fmt.Errorf("write auth data: %w", err)}
	}
	return nil
}

// fromClient sends the client a packet and returns its answer, which is valid until
// the client's next, and has a form that the server's plugin takes. After an error the
// server's side is ended.
func (r *RelayedLogin) fromClient(payload []byte) ([]byte, error) {
	if err := r.attempt.pc.WritePacket(payload); err != nil {
		r.breakOff()
		return nil, &RelayError{Err: fmt.Errorf("write auth data: %w", err)}
	}
	answer, err := r.attempt.login.read(r.attempt.pc, "answer to the server's challenge")
	if err != nil {
		if r.answered {
			// wrongly, perhaps, and it must not be spared a refusal by not waiting for it
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
