package protocol

import (
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"sync"

	"github.com/go-mysql-org/go-mysql/mysql"
)

// Account is what a login is checked against.
type Account struct {
	Password string // in clear; "" is the account without a password
}

// String hides the password, so that printing an Account cannot leak it.
func (Account) String() string { return "account" }

// GoString hides the password.
func (Account) GoString() string { return "protocol.Account{...}" }

// Lengths of the answers that the plugins' clients give to a salt.
const (
	nativeAnswer = 20 // SHA1
	sha2Answer   = 32 // SHA256
)

// decoyPassword is what logins of unknown users, and of users without a password,
// are compared with, so that they take the steps and the time of a wrong password.
var decoyPassword = sync.OnceValue(rand.Text)

// verifier checks one login's answers against one account, known or not.
type verifier struct {
	known    bool   // the user exists
	password string // the account's, or the decoy
	real     bool   // password is the account's
}

func newVerifier(account Account, known bool) verifier {
	decoy := decoyPassword()
	if !known || account.Password == "" {
		return verifier{known: known, password: decoy}
	}
	return verifier{known: true, password: account.Password, real: true}
}

// accepts turns a comparison's outcome into the login's. The comparison is made
// before, also where it cannot matter.
func (v verifier) accepts(equal int) bool { return v.real && equal == 1 }

// empty says whether a login without a password is right.
func (v verifier) empty() bool { return v.known && !v.real }

// native checks an answer of mysql_native_password.
func (v verifier) native(salt Salt, answer []byte) bool {
	want := mysql.CalcNativePassword(salt[:], []byte(v.password))
	return v.accepts(subtle.ConstantTimeCompare(want, answer))
}

// sha2 checks the scrambled answer of caching_sha2_password.
func (v verifier) sha2(salt Salt, answer []byte) bool {
	want := mysql.CalcCachingSha2Password(salt[:], []byte(v.password))
	return v.accepts(subtle.ConstantTimeCompare(want, answer))
}

// clear checks a password that came over TLS or under RSA. Digests are compared,
// for the time of a comparison would tell the password's length.
func (v verifier) clear(password []byte) bool {
	want, got := sha256.Sum256([]byte(v.password)), sha256.Sum256(password)
	return v.accepts(subtle.ConstantTimeCompare(want[:], got[:]))
}

// isEmptyAnswer says whether a client answers that it has no password: with
// nothing, or, as libmysql does, with a NUL.
func isEmptyAnswer(answer []byte) bool {
	return len(answer) == 0 || len(answer) == 1 && answer[0] == 0
}
