package protocol

import (
	"errors"
	"fmt"

	"github.com/go-mysql-org/go-mysql/mysql"
)

// How the proxy refuses a client in a relayed login.

// Refuse answers the client as if its password were wrong. It returns an error with the reason. The
// caller closes the server's connection.
func (r *RelayedLogin) Refuse(why string) error {
	e := r.refusal(why)
	// the session ends in either case
	_ = writeERR(r.attempt.pc, mysql.ER_ACCESS_DENIED_ERROR, "28000", e.message())
	return &RelayError{Err: e}
}

func (r *RelayedLogin) refusal(why string) *AuthError {
	hello := &r.attempt.Hello
	return &AuthError{
		User: hello.User, Host: HostOf(r.attempt.pc.RemoteAddr()), Plugin: r.plugin, UsingPassword: hello.PasswordUsed, Reason: why,
	}
}

// refuseTrust refuses a login that the server would not judge by a password.
func (r *RelayedLogin) refuseTrust(why string) error {
	err := r.Refuse(why)
	if r.plugin != "" {
		r.breakOff()
	}
	return err
}

// refuseWrong refuses a password that cannot be read.
func (r *RelayedLogin) refuseWrong() error {
	err := r.Refuse("the password came in a form that cannot be read here (an RSA key that is not the proxy's?)")
	r.breakOff()
	return err
}

// refuseUnencrypted refuses a password that came in clear. It is not passed on.
func (r *RelayedLogin) refuseUnencrypted(given []byte) error {
	wipe(given)
	err := r.Refuse("the client gave its password in clear without TLS, where it must encrypt it: " +
		"give the proxy a certificate, or the client --skip-ssl")
	r.breakOff()
	return err
}

// refusePlugin refuses a client without plugins if the account has one that such clients lack. They
// have mysql_native_password only. The proxy asks for that one, since the answer in the response
// was for another challenge. npm mysql, for one, accepts the switch without announcing it.
func (r *RelayedLogin) refusePlugin(plugin string) error {
	err := &RelayError{Unsupported: true, Err: refuse(r.attempt.pc, mysql.ER_NOT_SUPPORTED_AUTH_MODE, "08004",
		"Client does not support authentication protocol requested by server; consider upgrading MySQL client",
		fmt.Errorf("the account of %.100q is checked by %s, which a client without plugin authentication does not have", r.attempt.Hello.User, plugin))}
	r.breakOff()
	return err
}

// refuseClear refuses to pass on a password in clear where others could read it.
func (r *RelayedLogin) refuseClear() error {
	side := "the server"
	if !r.attempt.pc.IsTLS() {
		side = "the client"
	}
	message := fmt.Sprintf("seqproxy: the server asks for the password in clear (%s), which is passed on over TLS only, and the connection to %s has none", r.plugin, side)
	err := &RelayError{Unsupported: true, Err: refuse(r.attempt.pc, mysql.ER_NOT_SUPPORTED_AUTH_MODE, "08004", message, errors.New(message))}
	r.breakOff()
	return err
}
