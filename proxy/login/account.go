package login

import (
	"cmp"
	"fmt"

	"github.com/go-mysql-org/go-mysql/mysql"

	"seqproxy/backend"
	"seqproxy/protocol"
	"seqproxy/proxy/keys"
)

// User is an account that clients log in with.
type User struct {
	Name, Password string
	OldPassword    string // accepted, too, while the password is being changed; "": none
	Require        protocol.Requirement
	Schema         string // of a login that names no schema
	Admin          bool   // may create and drop sequences, and kill sessions of other users
	Monitor        bool   // may see all that an admin sees
	// MaxConnections bounds the user's sessions in place of Policy.MaxUserConnections; 0: no limit
	// of its own.
	MaxConnections int
	// Sequences are the names, or beginnings followed by *, of sequences that the user may take
	// numbers of; nil: all.
	Sequences []string
}

// Account is the user of a session.
type Account struct {
	User
	Rights  *keys.Rights // for Sequences
	relayed bool         // a server has checked the user; the proxy has only the name
	secret  bool         // the proxy has Password of such a user, which may be empty
}

// NoAccount is the account of a session before its login. It is only read.
var NoAccount = &Account{}

// NewAccount returns the account of a user that the proxy itself checks.
func NewAccount(u *User) *Account { return &Account{User: *u, Rights: keys.NewRights(u.Sequences)} }

// Unauthenticated returns the account of an unauthenticated client, for the log.
func Unauthenticated(name string) *Account { return &Account{User: User{Name: name}} }

// Present returns the account with the passwords that its user has now: a reload may have changed
// them since the login. The client's own is the first while it is one of the two. Later it takes
// the place of a missing old one, since the servers may still have it. An account that a server has
// checked stays as it is.
func (a *Account) Present(users map[string]*Account) *Account {
	user := users[a.Name]
	if user == nil || a.relayed {
		return a
	}
	now := *a
	switch a.Password {
	case user.Password:
		now.OldPassword = user.OldPassword
	case user.OldPassword:
		now.OldPassword = user.Password
	default:
		now.Password, now.OldPassword = user.Password, cmp.Or(user.OldPassword, a.Password)
	}
	return &now
}

// MaySee reports whether the user may see all of the proxy.
func (a *Account) MaySee() bool { return a.Admin || a.Monitor }

// Credentials returns an account that may end the user's connections on a shard's server. After a
// relayed login the proxy may not know the user's password.
func (a *Account) Credentials(shard *backend.Shard) (creds backend.Credentials, ok bool) {
	itself := backend.Credentials{User: a.Name, Password: a.Password, OtherPassword: a.OldPassword}
	if a.relayed && a.secret {
		return itself, true
	}
	if !a.relayed || shard.HasCredentials() {
		return shard.Credentials(itself), true
	}
	return shard.Probe() // may have the right to end statements of other users
}

// UserCredentials returns the credentials of the user on a shard's server.
func (a *Account) UserCredentials(shard *backend.Shard) (backend.Credentials, error) {
	if a.relayed && !a.secret && !shard.HasCredentials() {
		return backend.Credentials{}, fmt.Errorf("shard %s: the proxy does not know the password of %s, whom the server itself has checked: make %s a [[user]] with that password", shard.Name(), a.Name, a.Name)
	}
	creds, _ := a.Credentials(shard)
	return creds, nil
}

// PasswordUnknown reports whether only a server knows the user's password.
func (a *Account) PasswordUnknown() bool { return a.relayed && !a.secret }

// UsesUserCredentials reports whether the session must log in to a shard with its own name and
// password even if the shard names others. The user of a relayed login stays itself on each shard
// where the proxy has its password. checker is the shard whose server has checked the user.
func (a *Account) UsesUserCredentials(shard, checker *backend.Shard) (bool, error) {
	switch {
	case !a.relayed:
		return false, nil
	case a.secret:
		return true, nil
	case shard.HasCredentials():
		return false, nil
	}
	return false, protocol.Errorf(mysql.ER_NOT_SUPPORTED_YET, "42000", "seqproxy: shard %s needs the password of %s, which only the server of shard %s has checked: "+
		"give the shard a user and password of its own, or the user a [[user]]", shard.Name(), a.Name, checker.Name())
}
