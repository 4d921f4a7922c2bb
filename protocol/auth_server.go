package protocol

import (
	"fmt"

	"github.com/go-mysql-org/go-mysql/mysql"
)

// exchange is the dialogue in which a client proves its password to us.
//
// A wrong password and an unknown user walk exactly the same steps: nothing here
// may branch on whether the user is known, other than through the verifier.
type exchange struct {
	login    *ServerLogin
	pc       PacketConn
	hello    *ClientHello // salt, plugin and use of a password are filled in
	verifier verifier
}

// first judges the answer that came with the handshake response, made by the
// plugin the client names for the salt of our greeting, which names
// caching_sha2_password.
func (x *exchange) first(plugin string, answer []byte) error {
	if !x.hello.Capabilities.Has(PluginAuth) {
		return x.native(answer) // such a client knows nothing else
	}
	if plugin == "" {
		// Clients that name none still answer with one: its length says which.
		switch len(answer) {
		case nativeAnswer:
			plugin = mysql.AUTH_NATIVE_PASSWORD
		case sha2Answer:
			plugin = mysql.AUTH_CACHING_SHA2_PASSWORD
		}
	}
	switch plugin {
	case mysql.AUTH_NATIVE_PASSWORD:
		if len(answer) == nativeAnswer {
			return x.native(answer)
		}
		if isEmptyAnswer(answer) {
			// libmysql and libmariadb give an empty answer also when they have a
			// password, if the greeting's plugin is not their default: they then wait
			// for the switch and would take an OK for a fault.
			return x.switchTo(mysql.AUTH_NATIVE_PASSWORD)
		}
	case mysql.AUTH_CACHING_SHA2_PASSWORD:
		if len(answer) == sha2Answer || isEmptyAnswer(answer) {
			return x.sha2(answer)
		}
	}
	return x.switchTo(mysql.AUTH_CACHING_SHA2_PASSWORD)
}

// again judges the login of a COM_CHANGE_USER. A client with PluginAuth is always
// asked anew, with a fresh salt: what came with the command answers a challenge that
// was used before.
func (x *exchange) again(plugin string, answer []byte) error {
	switch {
	case !x.hello.Capabilities.Has(PluginAuth):
		return x.native(answer)
	case plugin == mysql.AUTH_NATIVE_PASSWORD:
		return x.switchTo(mysql.AUTH_NATIVE_PASSWORD)
	}
	return x.switchTo(mysql.AUTH_CACHING_SHA2_PASSWORD)
}

// switchTo starts the dialogue anew with a fresh salt.
func (x *exchange) switchTo(plugin string) error {
	x.hello.Salt = NewSalt()
	request := AuthSwitch{Plugin: plugin, Data: append(x.hello.Salt[:], 0)}
	payload, err := request.Append(nil)
	if err != nil {
		return err
	}
	if err := x.pc.WritePacket(payload); err != nil {
		return fmt.Errorf("write auth switch request: %w", err)
	}
	answer, err := x.login.read(x.pc, "auth switch response")
	if err != nil {
		return err
	}
	if plugin == mysql.AUTH_NATIVE_PASSWORD {
		return x.native(answer)
	}
	return x.sha2(answer)
}

// native judges an answer of mysql_native_password
// (https://dev.mysql.com/doc/dev/mysql-server/latest/page_protocol_connection_phase_authentication_methods_native_password_authentication.html).
func (x *exchange) native(answer []byte) error {
	x.hello.Plugin = mysql.AUTH_NATIVE_PASSWORD
	if isEmptyAnswer(answer) {
		return x.verdict(x.verifier.empty())
	}
	x.hello.PasswordUsed = true
	return x.verdict(x.verifier.native(x.hello.Salt, answer))
}

// What caching_sha2_password's two sides say to each other
// (https://dev.mysql.com/doc/dev/mysql-server/latest/page_caching_sha2_authentication_exchanges.html).
const (
	sha2RequestKey = 0x02 // client: send me your RSA key
	sha2FastOK     = mysql.CACHE_SHA2_FAST_AUTH
	sha2FullAuth   = mysql.CACHE_SHA2_FULL_AUTH
)

// sha2 judges an answer of caching_sha2_password, asking for the password itself
// if the answer does not fit: a server whose cache is empty does the same, and
// only then is it wrong.
func (x *exchange) sha2(answer []byte) error {
	x.hello.Plugin = mysql.AUTH_CACHING_SHA2_PASSWORD
	if isEmptyAnswer(answer) {
		return x.verdict(x.verifier.empty())
	}
	x.hello.PasswordUsed = true
	if x.verifier.sha2(x.hello.Salt, answer) {
		// The caller's OK follows at once.
		if err := x.pc.QueuePacket(AppendAuthMoreData(nil, []byte{sha2FastOK})); err != nil {
			return fmt.Errorf("write auth data: %w", err)
		}
		return nil
	}
	secure := x.pc.IsTLS() || overUnix(x.pc)
	if !secure && x.login.RSA == nil {
		return x.verdict(false) // nothing could protect the password
	}
	if err := x.say(sha2FullAuth); err != nil {
		return err
	}
	given, err := x.login.read(x.pc, "password")
	if err != nil {
		return err
	}
	// Some clients hold their Unix socket to be unsafe and ask for the key there; a
	// password in clear is no such request, since it ends with NUL.
	if secure && !(isKeyRequest(given) && !x.pc.IsTLS()) {
		password, ok := cutPassword(given)
		return x.verdict(x.verifier.clear(password) && ok)
	}
	return x.underRSA(given)
}

// underRSA judges a password encrypted with our key, which the client may have to
// ask for first.
func (x *exchange) underRSA(given []byte) error {
	if x.login.RSA == nil {
		return x.verdict(false)
	}
	keys, err := x.login.RSA.load()
	if err != nil {
		return err
	}
	if isKeyRequest(given) {
		if err := x.say(keys.public...); err != nil {
			return err
		}
		if given, err = x.login.read(x.pc, "encrypted password"); err != nil {
			return err
		}
	}
	password, ok := keys.decrypt(given, x.hello.Salt)
	return x.verdict(x.verifier.clear(password) && ok)
}

func isKeyRequest(given []byte) bool { return len(given) == 1 && given[0] == sha2RequestKey }

// say sends the client's plugin a message.
func (x *exchange) say(data ...byte) error {
	if err := x.pc.WritePacket(AppendAuthMoreData(nil, data)); err != nil {
		return fmt.Errorf("write auth data: %w", err)
	}
	return nil
}

// verdict ends the dialogue; a refusal is answered here.
func (x *exchange) verdict(right bool) error {
	if right {
		return nil
	}
	e := &AuthError{
		User: x.hello.User, Host: HostOf(x.pc.RemoteAddr()), Plugin: x.hello.Plugin,
		UsingPassword: x.hello.PasswordUsed, KnownUser: x.verifier.known,
	}
	_ = writeERR(x.pc, mysql.ER_ACCESS_DENIED_ERROR, "28000", e.message())
	return e
}
