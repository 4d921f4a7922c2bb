package protocol

import (
	"fmt"

	"github.com/go-mysql-org/go-mysql/mysql"
)

// exchange is the dialogue in which a client proves its password to the proxy.
//
// A wrong password and an unknown user take exactly the same steps. So no code here may branch on
// whether the user exists. Only the verifier may.
type exchange struct {
	login    *ServerLogin
	pc       ClientConn
	hello    *ClientHello // exchange fills in salt, plugin and use of a password
	verifier verifier
	wrong    bool   // the client has given a wrong answer; the dialogue may go on
	unmet    string // what the account demands and the connection lacks, for the log
}

// first judges the answer in the handshake response. The client made it with the plugin that it
// names, for the salt of the greeting. If the answer does not have that plugin's form, first asks
// the client again.
func (x *exchange) first(plugin string, answer []byte) error {
	if !x.hello.Capabilities.Has(PluginAuth) {
		return x.native(answer) // a client without PluginAuth has only this plugin
	}
	if plugin == "" {
		// A client that names no plugin still answers with one. The length of the answer shows
		// which.
		switch len(answer) {
		case nativeAnswer:
			plugin = mysql.AUTH_NATIVE_PASSWORD
		case sha2Answer:
			plugin = mysql.AUTH_CACHING_SHA2_PASSWORD
		}
	}
	greeted := x.login.plugin()
	if plugin != greeted && len(answer) == 0 && x.speaks(plugin) {
		// libmysql and libmariadb send an empty answer if the greeting's plugin is not theirs, even
		// with a password. They then wait for the switch. An OK would be an error to them.
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

// again judges the login of a COM_CHANGE_USER. A client with PluginAuth always gets a fresh salt,
// since the answer in its command is for a used one.
func (x *exchange) again(plugin string, answer []byte) error {
	switch {
	case !x.hello.Capabilities.Has(PluginAuth):
		return x.native(answer)
	case x.speaks(plugin):
		return x.switchTo(plugin)
	}
	return x.switchTo(x.instead(plugin))
}

// instead returns the plugin to use for a client that names one the proxy does not check.
func (x *exchange) instead(plugin string) string {
	if plugin == mysql.AUTH_CLEAR_PASSWORD {
		return mysql.AUTH_CACHING_SHA2_PASSWORD // the only built-in plugin of MySQL 9's clients
	}
	return x.login.plugin()
}

// speaks reports whether the proxy checks a client by the plugin that it names. The proxy never
// asks for a password in clear where others can read it.
func (x *exchange) speaks(plugin string) bool {
	switch plugin {
	case mysql.AUTH_NATIVE_PASSWORD, mysql.AUTH_CACHING_SHA2_PASSWORD, mysql.AUTH_SHA256_PASSWORD:
		return true
	case mysql.AUTH_CLEAR_PASSWORD:
		return x.pc.IsTLS() || overUnix(x.pc)
	}
	return false
}

// switchTo starts the dialogue again with a fresh salt.
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

// judge checks an answer of the plugin to the salt.
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

// say sends a message to the client's plugin.
func (x *exchange) say(data ...byte) error {
	if err := x.pc.WritePacket(AuthMoreData(data)); err != nil {
		return fmt.Errorf("write auth data: %w", err)
	}
	return nil
}

// verdict ends the dialogue. It answers the client if the login is refused.
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
		UsingPassword: x.hello.PasswordUsed, UserExists: x.verifier.exists, Reason: x.unmet,
	}
}
