package protocol

import (
	"bytes"
	"crypto/rsa"
	"errors"
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
	password       []byte // of Keep
}

// Relay makes the login one that a server is to check.
func (a *Attempt) Relay() *RelayedLogin { return &RelayedLogin{attempt: a} }

// Password is what the client gave in clear or under RSA, and Keep kept; ok is false
// where the server did not need it or it did not come by here.
func (r *RelayedLogin) Password() (password string, ok bool) {
	return string(r.password), r.password != nil
}

// RelayError says that a relayed login failed at the client's end, or was refused
// here: nothing is wrong with the server.
type RelayError struct{ Err error }

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
				return nil, r.refuseTrust("the server asked for no password: it trusts whoever connects, and that is the proxy")
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
	if plugin != mysql.AUTH_NATIVE_PASSWORD && !r.attempt.Hello.Capabilities.Has(PluginAuth) {
		return r.refusePlugin(plugin)
	}
	r.plugin = plugin
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
	return r.refuseTrust(fmt.Sprintf("the server wants to check it by the plugin %q, which may look at who connects (the proxy) rather than at a password", plugin))
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

// clear is pass for a plugin whose answer is the password.
func (r *RelayedLogin) clear(payload []byte) error {
	answer, err := r.fromClient(payload)
	if err != nil {
		return err
	}
	if password, ok := cutPassword(answer); ok {
		r.keep(password)
	}
	defer wipe(answer)
	return r.toServer(answer)
}

// sha2 goes through the exchange of caching_sha2_password in which the client gives
// the password itself. payload asks it to.
func (r *RelayedLogin) sha2(payload []byte) error {
	if !r.safe(r.attempt.pc) && !r.safe(r.server) {
		return r.underServersKey(payload, sha2RequestKey)
	}
	given, err := r.fromClient(payload)
	if err != nil {
		return err
	}
	// As in exchange.sha2: some clients do not hold their Unix socket to be safe.
	if r.safe(r.attempt.pc) && !(isKeyRequest(given, sha2RequestKey) && !r.attempt.pc.IsTLS()) {
		return r.giveClear(given, sha2RequestKey)
	}
	return r.giveUnderRSA(given, sha2RequestKey)
}

// sha256 is the whole exchange of sha256_password, which has no other way than to
// give the password itself (https://dev.mysql.com/doc/refman/8.4/en/sha256-pluggable-authentication.html).
func (r *RelayedLogin) sha256(payload []byte) error {
	if !r.safe(r.attempt.pc) && !r.safe(r.server) {
		return r.underServersKey(payload, sha256RequestKey)
	}
	given, err := r.fromClient(payload)
	switch {
	case err != nil:
		return err
	case isEmptyAnswer(given):
		return r.toServer(given)
	}
	if r.safe(r.attempt.pc) && !(isKeyRequest(given, sha256RequestKey) && !r.attempt.pc.IsTLS()) {
		return r.giveClear(given, sha256RequestKey)
	}
	return r.giveUnderRSA(given, sha256RequestKey)
}

// underServersKey passes on a password that the client encrypts with the server's key,
// past us. A client that asks for the key gets it from us if it is known here: from the
// server's side it might be anybody's.
func (r *RelayedLogin) underServersKey(payload []byte, requestKey byte) error {
	given, err := r.fromClient(payload)
	if err == nil && isKeyRequest(given, requestKey) {
		if r.serverKey == nil {
			return r.toServer(given)
		}
		var public []byte
		if public, err = encodePublicKey(r.serverKey); err == nil {
			given, err = r.fromClient(AppendAuthMoreData(nil, public))
		}
	}
	switch {
	case err != nil:
		return err
	case unencrypted(given):
		return r.refuseUnencrypted(given)
	}
	return r.toServer(given)
}

// shortestRSA is the size in bytes of what the shortest RSA keys in use encrypt.
const shortestRSA = 128

// unencrypted says whether a password that is to come under RSA has not. MariaDB's
// clients up to 11.3 that ask for TLS "if there is any" send it in clear where there is
// none, which servers refuse.
func unencrypted(given []byte) bool { return !isEmptyAnswer(given) && len(given) < shortestRSA }

// safe says whether the password travels in clear to or from a peer. Both sides of a
// plugin must be of one mind: sha256_password does not hold a Unix socket to be safe.
func (r *RelayedLogin) safe(pc PacketConn) bool {
	return pc.IsTLS() || r.plugin == mysql.AUTH_CACHING_SHA2_PASSWORD && overUnix(pc)
}

// giveClear gives the server a password that the client sent in clear.
func (r *RelayedLogin) giveClear(given []byte, requestKey byte) error {
	defer wipe(given)
	password, ok := cutPassword(given)
	if !ok {
		return r.refuseWrong()
	}
	return r.give(password, requestKey)
}

// giveUnderRSA gives the server a password that the client encrypts with our key,
// which it is sent if it has asked for that.
func (r *RelayedLogin) giveUnderRSA(given []byte, requestKey byte) error {
	if r.attempt.login.RSA == nil {
		return r.refuseWrong()
	}
	keys, err := r.attempt.login.RSA.load()
	if err != nil {
		return err
	}
	if isKeyRequest(given, requestKey) {
		if given, err = r.fromClient(AppendAuthMoreData(nil, keys.public)); err != nil {
			return err
		}
	}
	if unencrypted(given) {
		return r.refuseUnencrypted(given)
	}
	password, ok := keys.decrypt(given, r.salt)
	defer wipe(password)
	if !ok { // also what is meant for another key, such as the server's own
		return r.refuseWrong()
	}
	return r.give(password, requestKey)
}

// give gives the server the password as its side of the connection demands.
func (r *RelayedLogin) give(password []byte, requestKey byte) error {
	r.keep(password)
	if r.safe(r.server) {
		answer := append(append(make([]byte, 0, len(password)+1), password...), 0)
		defer wipe(answer)
		return r.toServer(answer)
	}
	key, err := r.askKey(requestKey)
	if err != nil {
		return err
	}
	answer, err := encryptPassword(password, r.salt, key)
	if err != nil {
		return err
	}
	return r.toServer(answer)
}

// askKey returns the server's RSA key, which it is asked for if it is not known here.
func (r *RelayedLogin) askKey(requestKey byte) (*rsa.PublicKey, error) {
	if r.serverKey != nil {
		return r.serverKey, nil
	}
	if err := r.toServer([]byte{requestKey}); err != nil {
		return nil, err
	}
	payload, err := r.ask()
	if err != nil {
		return nil, err
	}
	if payload[0] == headerERR {
		return nil, ParseServerError(payload)
	}
	data, err := ParseAuthMoreData(payload)
	if err != nil {
		return nil, err
	}
	return parsePublicKey(data)
}

func (r *RelayedLogin) keep(password []byte) {
	if r.Keep {
		r.password = append(make([]byte, 0, len(password)), password...)
	}
}

// tell passes on a packet that another of the server's follows.
func (r *RelayedLogin) tell(payload []byte) error {
	if err := r.attempt.pc.QueuePacket(payload); err != nil {
		return &RelayError{fmt.Errorf("write auth data: %w", err)}
	}
	return nil
}

// fromClient sends the client a packet and returns its answer, which is valid until
// the client's next. Without one the server gets an empty answer, which ends its side
// in order: a server blocks a host that breaks off too many logins, and that host
// is the proxy for all clients.
func (r *RelayedLogin) fromClient(payload []byte) ([]byte, error) {
	if err := r.attempt.pc.WritePacket(payload); err != nil {
		return nil, r.breakOff(fmt.Errorf("write auth data: %w", err))
	}
	answer, err := r.attempt.login.read(r.attempt.pc, "answer to the server's challenge")
	if err != nil {
		if r.answered { // wrongly, perhaps, and it must not be spared a refusal by not waiting for it
			gone := r.refusal("it was asked for more than its first answer")
			gone.Gone = err
			err = gone
		}
		return nil, r.breakOff(err)
	}
	r.attempt.Hello.Plugin = r.plugin
	if !isEmptyAnswer(answer) {
		r.attempt.Hello.PasswordUsed = true
	}
	return answer, nil
}

func (r *RelayedLogin) toServer(answer []byte) error {
	if err := r.server.WritePacket(answer); err != nil {
		return fmt.Errorf("write auth data: %w", err)
	}
	r.answered = true
	return nil
}

// breakOff ends the server's side of a dialogue that the client's side does not go on
// with, and returns cause. It gives up where the server wants more than one answer.
func (r *RelayedLogin) breakOff(cause error) error {
	if r.toServer(nil) == nil {
		_, _ = r.ask() // its verdict, which changes nothing
	}
	return &RelayError{cause}
}

// Refuse answers the client that its login is refused, as one with a wrong password,
// and returns the error that says why. The caller closes the server's connection.
func (r *RelayedLogin) Refuse(why string) error {
	e := r.refusal(why)
	_ = writeERR(r.attempt.pc, mysql.ER_ACCESS_DENIED_ERROR, "28000", e.message()) // the session ends either way
	return &RelayError{e}
}

func (r *RelayedLogin) refusal(why string) *AuthError {
	hello := &r.attempt.Hello
	return &AuthError{
		User: hello.User, Host: HostOf(r.attempt.pc.RemoteAddr()), Plugin: r.plugin, UsingPassword: hello.PasswordUsed, Reason: why,
	}
}

// refuseTrust refuses a login that the server would check by something else than a
// password.
func (r *RelayedLogin) refuseTrust(why string) error {
	err := r.Refuse(why)
	if r.plugin != "" {
		_ = r.breakOff(err)
	}
	return err
}

// refuseWrong refuses a password that cannot be read.
func (r *RelayedLogin) refuseWrong() error {
	err := r.Refuse("the password came in a form that cannot be read here (an RSA key that is not the proxy's?)")
	_ = r.breakOff(err)
	return err
}

// refuseUnencrypted refuses a password that came unencrypted, which goes no further.
func (r *RelayedLogin) refuseUnencrypted(given []byte) error {
	wipe(given)
	err := r.Refuse("the client gave its password in clear over a connection without TLS, where it is to encrypt it: " +
		"give the proxy a certificate, or the client --skip-ssl")
	_ = r.breakOff(err)
	return err
}

// refusePlugin refuses a client that has told of no plugins and is asked by another
// one than it has always had. It is asked by that, though its answer in the response
// was to another challenge: npm mysql, for one, takes the switch without having told.
func (r *RelayedLogin) refusePlugin(plugin string) error {
	err := &RelayError{refuse(r.attempt.pc, mysql.ER_NOT_SUPPORTED_AUTH_MODE, "08004",
		"Client does not support authentication protocol requested by server; consider upgrading MySQL client",
		fmt.Errorf("the account of %q is checked by %s, which a client without plugin authentication does not have", r.attempt.Hello.User, plugin))}
	_ = r.breakOff(err)
	return err
}

// refuseClear refuses to pass a password on in clear where somebody could read it.
func (r *RelayedLogin) refuseClear() error {
	side := "the server"
	if !r.attempt.pc.IsTLS() {
		side = "the client"
	}
	message := fmt.Sprintf("seqproxy: the server asks for the password in clear (%s), which is passed on over TLS only, and the connection to %s has none", r.plugin, side)
	err := &RelayError{refuse(r.attempt.pc, mysql.ER_NOT_SUPPORTED_AUTH_MODE, "08004", message, errors.New(message))}
	_ = r.breakOff(err)
	return err
}

// wipe overwrites a password.
func wipe(b []byte) { clear(b) }
