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
	// OldPassword proves the account as well, as MySQL's second password does while
	// clients are changed over; "": there is none. It needs a Password beside it.
	OldPassword string
	Require     Requirement
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

// verifier checks one login's answers against one account, known or not. Whatever
// the account has, an answer is compared with the same number of passwords.
type verifier struct {
	known bool // the user exists
	real  bool // passwords holds the account's
	old   bool // passwords[1] is the account's old one

	// passwords are the account's, or the decoy; only with two is the second one
	// compared with.
	passwords [2]string
	two       bool

	// denied keeps everybody out, by the steps of a wrong password: the connection
	// is not what the account demands, whoever it is.
	denied bool

	usedOld bool // the old password was right, and the other was not
}

// newVerifier makes the verifier of an account; two says whether any account has
// an old password.
func newVerifier(account Account, known, two bool) verifier {
	decoy := decoyPassword()
	v := verifier{known: known, two: two, passwords: [2]string{decoy, decoy}}
	if !known || account.Password == "" {
		return v
	}
	v.real, v.passwords[0] = true, account.Password
	if account.OldPassword != "" {
		v.old, v.passwords[1] = true, account.OldPassword
	}
	return v
}

// accepts turns the comparisons' outcomes into the login's. They are made before,
// also where they cannot matter.
func (v *verifier) accepts(equal, equalOld int) bool {
	if v.denied {
		return false
	}
	right, rightOld := v.real && equal == 1, v.old && equalOld == 1
	v.usedOld = rightOld && !right
	return right || rightOld
}

// empty says whether a login without a password is right.
func (v *verifier) empty() bool { return v.known && !v.real && !v.denied }

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

// clear checks a password that came over TLS or under RSA. Digests are compared: the time to
// compare the passwords would show their length.
func (v *verifier) clear(password []byte) bool {
	got := sha256.Sum256(password)
	compare := func(password string) int {
		want := sha256.Sum256([]byte(password))
		return subtle.ConstantTimeCompare(want[:], got[:])
	}
	return v.compareAll(compare)
}

// compareAll compares an answer, by a function that gives 1 where it fits, with each
// password.
func (v *verifier) compareAll(compare func(password string) int) bool {
	equal, equalOld := compare(v.passwords[0]), 0
	if v.two {
		equalOld = compare(v.passwords[1])
	}
	return v.accepts(equal, equalOld)
}

// isEmptyAnswer says whether a client answers that it has no password: with
// nothing, or, as libmysql does, with a NUL.
func isEmptyAnswer(answer []byte) bool {
	return len(answer) == 0 || len(answer) == 1 && answer[0] == 0
}
