package protocol

import (
	"crypto/rsa"
	"errors"

	"github.com/go-mysql-org/go-mysql/mysql"
)

// The exchanges of a relayed login in which the client sends the password itself.

// clear is pass for a plugin that answers with the password.
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

// sha2 runs the exchange of caching_sha2_password in which the client sends the password itself.
// payload is the server's question.
func (r *RelayedLogin) sha2(payload []byte) error {
	if !r.safe(r.attempt.pc) && !r.safe(r.server) {
		return r.underServersKey(payload, sha2RequestKey)
	}
	given, err := r.fromClient(payload)
	if err != nil {
		return err
	}
	// As in exchange.sha2, some clients do not consider their Unix socket safe.
	if r.safe(r.attempt.pc) && !(isKeyRequest(given, sha2RequestKey) && !r.attempt.pc.IsTLS()) {
		return r.giveClear(given, sha2RequestKey)
	}
	return r.giveUnderRSA(given, sha2RequestKey)
}

// sha256 runs the exchange of sha256_password, in which the client always sends the password itself
// (https://dev.mysql.com/doc/refman/8.4/en/sha256-pluggable-authentication.html).
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

// underServersKey passes on a password that the client encrypts with the server's key. The proxy
// cannot read it. If the proxy has the key, it gives it to the client: a key that comes over the
// server's connection might be an attacker's.
func (r *RelayedLogin) underServersKey(payload []byte, requestKey byte) error {
	given, err := r.fromClient(payload)
	if err == nil && isKeyRequest(given, requestKey) {
		if r.serverKey == nil {
			return r.toServer(given)
		}
		var public []byte
		if public, err = encodePublicKey(r.serverKey); err == nil {
			given, err = r.fromClient(AuthMoreData(public))
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

// shortestRSA is the length in bytes of a text under the shortest RSA keys in use.
const shortestRSA = 128

// unencrypted reports whether a password that should be encrypted is not. MariaDB's clients up to
// 11.3 with optional TLS send it in clear where there is no TLS. Servers refuse that.
func unencrypted(given []byte) bool { return !isEmptyAnswer(given) && len(given) < shortestRSA }

// safe reports whether a password may travel in clear to or from a peer. Both sides of a plugin
// must agree: sha256_password does not consider a Unix socket safe.
func (r *RelayedLogin) safe(t Transport) bool {
	return t.IsTLS() || r.plugin == mysql.AUTH_CACHING_SHA2_PASSWORD && overUnix(t)
}

// giveClear passes to the server a password that the client sent in clear.
func (r *RelayedLogin) giveClear(given []byte, requestKey byte) error {
	defer wipe(given)
	password, ok := cutPassword(given)
	if !ok {
		return r.refuseWrong()
	}
	return r.give(password, requestKey)
}

// giveUnderRSA passes to the server a password that the client encrypts with the proxy's key. The
// client gets the key if it asks for it.
func (r *RelayedLogin) giveUnderRSA(given []byte, requestKey byte) error {
	if r.attempt.login.RSA == nil {
		return r.refuseWrong()
	}
	keys, err := r.attempt.login.RSA.load()
	if err != nil {
		return err
	}
	if isKeyRequest(given, requestKey) {
		if given, err = r.fromClient(AuthMoreData(keys.public)); err != nil {
			return err
		}
	}
	if unencrypted(given) {
		return r.refuseUnencrypted(given)
	}
	password, ok := keys.decrypt(given, r.salt)
	defer wipe(password)
	if !ok { // also if the client used another key, such as the server's
		return r.refuseWrong()
	}
	return r.give(password, requestKey)
}

// give sends the server the password in the form that its connection demands.
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
	if errors.Is(err, rsa.ErrMessageTooLong) { // no account has such a long password
		return r.refuseWrong()
	}
	if err != nil {
		return err
	}
	return r.toServer(answer)
}

// askKey returns the server's RSA key. It asks the server once.
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

// wipe overwrites a password.
func wipe(b []byte) { clear(b) }
