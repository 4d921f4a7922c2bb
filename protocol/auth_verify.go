package protocol

import (
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"sync"

	"github.com/go-mysql-org/go-mysql/mysql"
)

// Account is the account that a login is checked against.
type Account struct {
	Password string // in clear; "" means no password
	// OldPassword is accepted, too, like MySQL's second password while clients change over. ""
	// means none. An account with an OldPassword needs a Password.
	OldPassword string
	Require     Requirement
}

// String hides the password, so that printing an Account cannot leak it.
func (Account) String() string { return "account" }

// GoString hides the password.
func (Account) GoString() string { return "protocol.Account{...}" }

// Lengths of the plugins' answers to a salt.
const (
	nativeAnswer = 20 // SHA1
	sha2Answer   = 32 // SHA256
)

// decoyPassword replaces the password of an account without one. So a login of an unknown user
// takes the steps and the time of a wrong password.
var decoyPassword = sync.OnceValue(rand.Text)

// verifier checks the answers of one login against one account, which may not exist. It compares
// each answer with the same number of passwords, whatever the account has.
type verifier struct {
	exists bool // the user exists
	real   bool // passwords are the account's, not decoys
	old    bool // passwords[1] is the account's old password

	// passwords are the account's or the decoy. The second is compared only if two is set.
	passwords [2]string
	two       bool

	// denied refuses every client, with the steps of a wrong password, because the connection lacks
	// what the account demands.
	denied bool

	usedOld bool // the old password was right, and the new one was wrong
}

// newVerifier makes the verifier for an account. two reports whether any account has an old
// password.
func newVerifier(account Account, exists, two bool) verifier {
	decoy := decoyPassword()
	v := verifier{exists: exists, two: two, passwords: [2]string{decoy, decoy}}
	if !exists || account.Password == "" {
		return v
	}
	v.real, v.passwords[0] = true, account.Password
	if account.OldPassword != "" {
		v.old, v.passwords[1] = true, account.OldPassword
	}
	return v
}

// accepts turns the results of the comparisons into the result of the login. The caller always
// makes the comparisons, even if they cannot matter.
func (v *verifier) accepts(equal, equalOld int) bool {
	if v.denied {
		return false
	}
	right, rightOld := v.real && equal == 1, v.old && equalOld == 1
	v.usedOld = rightOld && !right
	return right || rightOld
}

// empty reports whether a login without a password is accepted.
func (v *verifier) empty() bool { return v.exists && !v.real && !v.denied }

// native checks an answer of mysql_native_password.
func (v *verifier) native(salt Salt, answer []byte) bool {
	compare := func(password string) int {
		return subtle.ConstantTimeCompare(mysql.CalcNativePassword(salt[:], []byte(password)), answer)
	}
	return v.compareAll(compare)
}

// sha2 checks the scrambled answer of caching_sha2_password.
func (v *verifier) sha2(salt Salt, answer []byte) bool {
	compare := func(password string) int {
		return subtle.ConstantTimeCompare(mysql.CalcCachingSha2Password(salt[:], []byte(password)), answer)
	}
	return v.compareAll(compare)
}

// clear checks a password that came over TLS or encrypted. It compares digests, because the time of
// comparing passwords would show their length.
func (v *verifier) clear(password []byte) bool {
	got := sha256.Sum256(password)
	compare := func(password string) int {
		want := sha256.Sum256([]byte(password))
		return subtle.ConstantTimeCompare(want[:], got[:])
	}
	return v.compareAll(compare)
}

// compareAll compares an answer with each password. compare returns 1 if the answer fits.
func (v *verifier) compareAll(compare func(password string) int) bool {
	equal, equalOld := compare(v.passwords[0]), 0
	if v.two {
		equalOld = compare(v.passwords[1])
	}
	return v.accepts(equal, equalOld)
}

// isEmptyAnswer reports whether an answer means "no password": it is empty or, as from libmysql, a
// NUL.
func isEmptyAnswer(answer []byte) bool {
	return len(answer) == 0 || len(answer) == 1 && answer[0] == 0
}
