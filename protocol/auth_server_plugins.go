package protocol

import (
	"fmt"

	"github.com/go-mysql-org/go-mysql/mysql"
)

// native checks an answer of mysql_native_password
// (https://dev.mysql.com/doc/dev/mysql-server/latest/page_protocol_connection_phase_authentication_methods_native_password_authentication.html).
func (x *exchange) native(answer []byte) error {
	x.hello.Plugin = mysql.AUTH_NATIVE_PASSWORD
	if isEmptyAnswer(answer) {
		return x.verdict(x.verifier.empty())
	}
	x.hello.PasswordUsed = true
	return x.verdict(x.verifier.native(x.hello.Salt, answer))
}

// Messages between the two sides of caching_sha2_password
// (https://dev.mysql.com/doc/dev/mysql-server/latest/page_caching_sha2_authentication_exchanges.html).
const (
	sha2RequestKey = 0x02 // client: send me your RSA key
	sha2FastOK     = mysql.CACHE_SHA2_FAST_AUTH
	sha2FullAuth   = mysql.CACHE_SHA2_FULL_AUTH
)

// sha2 checks an answer of caching_sha2_password. If the answer does not fit, it asks for the
// password itself, as a server with an empty cache does. Only a wrong password is then refused.
func (x *exchange) sha2(answer []byte) error {
	x.hello.Plugin = mysql.AUTH_CACHING_SHA2_PASSWORD
	if isEmptyAnswer(answer) {
		return x.verdict(x.verifier.empty())
	}
	x.hello.PasswordUsed = true
	if x.verifier.sha2(x.hello.Salt, answer) {
		// The packet waits, because the caller's OK follows at once.
		if err := x.pc.QueuePacket(AuthMoreData([]byte{sha2FastOK})); err != nil {
			return fmt.Errorf("write auth data: %w", err)
		}
		return nil
	}
	x.wrong = true
	secure := x.pc.IsTLS() || overUnix(x.pc)
	if !secure && x.login.RSA == nil {
		return x.verdict(false) // there is no safe way to ask for the password
	}
	if err := x.say(sha2FullAuth); err != nil {
		return err
	}
	given, err := x.login.read(x.pc, "password")
	if err != nil {
		return err
	}
	// Some clients consider their Unix socket unsafe and ask for the key. A password in clear
	// cannot look like that request, since it ends with NUL.
	if secure && !(isKeyRequest(given, sha2RequestKey) && !x.pc.IsTLS()) {
		password, ok := cutPassword(given)
		return x.verdict(x.verifier.clear(password) && ok)
	}
	return x.underRSA(given, sha2RequestKey)
}

// sha256RequestKey asks for the key in sha256_password, as sha2RequestKey does in
// caching_sha2_password.
const sha256RequestKey = 0x01

// sha256 checks an answer of sha256_password: the password itself. It comes in clear over TLS, and
// elsewhere encrypted with the proxy's key
// (https://dev.mysql.com/doc/refman/8.4/en/sha256-pluggable-authentication.html). Clients of this
// plugin do not consider a Unix socket safe.
func (x *exchange) sha256(answer []byte) error {
	x.hello.Plugin = mysql.AUTH_SHA256_PASSWORD
	if isEmptyAnswer(answer) {
		return x.verdict(x.verifier.empty())
	}
	x.hello.PasswordUsed = true
	if x.pc.IsTLS() {
		password, ok := cutPassword(answer)
		return x.verdict(x.verifier.clear(password) && ok)
	}
	return x.underRSA(answer, sha256RequestKey)
}

// clear checks an answer of mysql_clear_password: the password itself
// (https://dev.mysql.com/doc/refman/8.4/en/cleartext-pluggable-authentication.html).
func (x *exchange) clear(answer []byte) error {
	x.hello.Plugin = mysql.AUTH_CLEAR_PASSWORD
	if isEmptyAnswer(answer) {
		return x.verdict(x.verifier.empty())
	}
	x.hello.PasswordUsed = true
	password, ok := cutPassword(answer)
	return x.verdict(x.verifier.clear(password) && ok)
}

// underRSA checks a password encrypted with the proxy's key. The client may first ask for the key
// by the byte request, which depends on its plugin.
func (x *exchange) underRSA(given []byte, request byte) error {
	if x.login.RSA == nil {
		return x.verdict(false)
	}
	keys, err := x.login.RSA.load()
	if err != nil {
		return err
	}
	if isKeyRequest(given, request) {
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

func isKeyRequest(given []byte, request byte) bool { return len(given) == 1 && given[0] == request }
