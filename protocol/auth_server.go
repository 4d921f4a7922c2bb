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
	pc       ClientConn
	hello    *ClientHello // salt, plugin and use of a password are filled in
	verifier verifier
	wrong    bool   // an answer that does not fit was given; the dialogue may go on
	unmet    string // what the account demands and the connection lacks, for the log
}

// first judges the answer that came with the handshake response, made by the
// plugin the client names for the salt of our greeting. An answer that is not that
// plugin's is asked for again.
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
	greeted := x.login.plugin()
	if plugin != greeted && len(answer) == 0 && x.speaks(plugin) {
		// libmysql and libmariadb give an empty answer also when they have a password,
		// if the greeting's plugin is not theirs: they then wait for the switch and
		// would take an OK for a fault.
		return x.switchTo(plugin)
	}
	fits := false
	switch plugin {
	case mysql.AUTH_NATIVE_PASSWORD:
		fits = len(answer) == nativeAnswer || isEmptyAnswer(answer)
	case mysql.AUTH_CACHING_SHA2_PASSWORD:
		fits = len(answer) == sha2Answer || isEmptyAnswer(answer)
	default:
		fits = x.speaks(plugin)
	}
	if fits {
		return x.judge(plugin, answer)
	}
	return x.switchTo(x.instead(plugin))
}

// again judges the login of a COM_CHANGE_USER. A client with PluginAuth is always
// asked anew, with a fresh salt: what came with the command answers a challenge that
// was used before.
func (x *exchange) again(plugin string, answer []byte) error {
	switch {
	case !x.hello.Capabilities.Has(PluginAuth):
		return x.native(answer)
	case x.speaks(plugin):
		return x.switchTo(plugin)
	}
	return x.switchTo(x.instead(plugin))
}

// instead is the plugin to switch a client to that names one which we do not check.
func (x *exchange) instead(plugin string) string {
	if plugin == mysql.AUTH_CLEAR_PASSWORD {
		return mysql.AUTH_CACHING_SHA2_PASSWORD // MySQL 9's clients have no other of their own
	}
	return x.login.plugin()
}

// speaks says whether a client that names the plugin is judged by it. A password in clear is never
// asked for where others could read it.
func (x *exchange) speaks(plugin string) bool {
	switch plugin {
	case mysql.AUTH_NATIVE_PASSWORD, mysql.AUTH_CACHING_SHA2_PASSWORD, mysql.AUTH_SHA256_PASSWORD:
		return true
	case mysql.AUTH_CLEAR_PASSWORD:
		return x.pc.IsTLS() || overUnix(x.pc)
	}
	return false
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
	return x.judge(plugin, answer)
}

// judge judges an answer that a plugin's client gave to the salt.
func (x *exchange) judge(plugin string, answer []byte) error {
	switch plugin {
	case mysql.AUTH_NATIVE_PASSWORD:
		return x.native(answer)
	case mysql.AUTH_SHA256_PASSWORD:
		return x.sha256(answer)
	case mysql.AUTH_CLEAR_PASSWORD:
		return x.clear(answer)
	}
	return x.sha2(answer)
}

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
	e := x.refusal()
	_ = writeERR(x.pc, mysql.ER_ACCESS_DENIED_ERROR, "28000", e.message())
	return e
}

func (x *exchange) refusal() *AuthError {
	return &AuthError{
		User: x.hello.User, Host: HostOf(x.pc.RemoteAddr()), Plugin: x.hello.Plugin,
		UsingPassword: x.hello.PasswordUsed, KnownUser: x.verifier.known, Reason: x.unmet,
	}
}
