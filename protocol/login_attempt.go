package protocol

import "errors"

// Attempt is a client's login, or its COM_CHANGE_USER, that was received and not yet judged. The
// client has no answer yet, so the caller may still choose who judges. Verify judges here, against
// an account of the caller.
//
// Only the connection's goroutine may use it, and only for one verdict.
type Attempt struct {
	// Hello is the contents of the login. Its Salt is the client's present challenge: the
	// greeting's at first, a new one after each switch of plugins.
	Hello ClientHello
	// UsedOld reports, after Verify, whether the client's password is the account's OldPassword.
	UsedOld bool
	// Proof is a text for the last OK, valid after Verify. It assures the client of the proxy's
	// certificate. It is "" if the client does not look for it or the plugin has no proof; see
	// ServerLogin.Prove.
	Proof string

	login *ServerLogin
	pc    ClientConn // the last packet read is the login: packets continue its numbering

	// plugin is the plugin that the client names, or "". answer is that plugin's answer to
	// Hello.Salt. It shares the connection's buffer and is gone after the next read. In a change of
	// user the answer is to a used challenge: only a client without PluginAuth is judged by it.
	plugin string
	answer []byte

	changeUser bool
}

// Verify lets the client prove that it is the user of account. The caller sends the last OK, or an
// ERR in its place, such as 1049 for an unknown database. Verify may be called only once.
//
// exists reports whether there is such an account. If not, Verify ignores account and refuses the
// client, with the steps and the time of a wrong password. So the caller's look-up of a user should
// take the same time for any name.
//
// After an *AuthError or a *HandshakeError the client has its answer, and the caller closes the
// connection. Any other error comes from the connection itself.
func (a *Attempt) Verify(account Account, exists bool) error {
	x := exchange{login: a.login, pc: a.pc, hello: &a.Hello, verifier: newVerifier(account, exists, a.login.OldPasswords)}
	if exists {
		x.unmet = account.Require.unmet(a.pc)
		x.verifier.denied = x.unmet != ""
	}
	var err error
	if a.changeUser {
		err = x.again(a.plugin, a.answer)
	} else {
		err = x.first(a.plugin, a.answer)
	}
	a.UsedOld = x.verifier.usedOld
	if err == nil {
		password := account.Password
		if a.UsedOld {
			password = account.OldPassword
		}
		a.Proof = a.Hello.prove(password)
	}
	var refused *AuthError
	if err != nil && x.wrong && !errors.As(err, &refused) {
		// The client hung up when it was asked for the password itself. It has guessed, and that
		// counts.
		refused = x.refusal()
		refused.Gone = err
		return refused
	}
	return err
}
