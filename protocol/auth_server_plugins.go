package protocol

import (
	"fmt"

	"github.com/go-mysql-org/go-mysql/mysql"
)

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
	x.wrong = true
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
	if secure && !(isKeyRequest(given, sha2RequestKey) && !x.pc.IsTLS()) {
		password, ok := cutPassword(given)
		return x.verdict(x.verifier.clear(password) && ok)
	}
	return x.underRSA(given, sha2RequestKey)
}

// sha256RequestKey is sha2RequestKey in sha256_password.
const sha256RequestKey = 0x01

// sha256 judges an answer of sha256_password: the password itself, in clear over TLS,
// elsewhere encrypted with our key
// (https://dev.mysql.com/doc/refman/8.4/en/sha256-pluggable-authentication.html). Its
// clients do not hold a Unix socket to be safe.
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

// clear judges an answer of mysql_clear_password: the password itself
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

// underRSA judges a password encrypted with our key, which the client may have to
// ask for first, with the byte that its plugin has for that.
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
