package protocol

import "errors"

// Attempt is a client's login, or its COM_CHANGE_USER, that was received and not yet
// judged. Nothing was sent after it, so the caller may still choose who judges:
// Verify does it here, against an account that the caller knows.
//
// It is for one goroutine, that of the connection, and for one verdict.
type Attempt struct {
	// Hello is what the client says of itself. Its Salt is the challenge that the
	// client knows: the greeting's, until a switch of plugins brings another.
	Hello ClientHello
	// UsedOld says after Verify that the client knows the account's OldPassword, not
	// its Password.
	UsedOld bool
	// Proof after Verify belongs into the OK as its text: with it the client knows that
	// it may trust our certificate. "" where it does not look for that, or has no way
	// to know; see ServerLogin.Prove.
	Proof string

	login *ServerLogin
	pc    ClientConn // the client, with the login just read: packets continue its numbering

	// What came with the response: the plugin that the client names ("" without
	// PluginAuth, or if it names none) and that plugin's answer to Hello.Salt, which
	// shares the connection's buffer and is gone with the next read. In a change of
	// user the answer is to a challenge that was used before: only a client without
	// PluginAuth is judged by it.
	plugin string
	answer []byte

	changeUser bool
}

// Verify lets the client prove that it is the user of account: everything up to,
// but not including, the last OK, which is the caller's to send (or an ERR in its
// place, such as 1049 for an unknown database). It may only be called once.
//
// known says whether there is such an account; without, account is not looked at,
// and the client is refused after the steps and the time of a wrong password. So a
// caller looks the user up in a way that takes the same time for any name.
//
// After an *AuthError or a *HandshakeError the client has its answer and the
// connection is to be closed; any other error is the connection's own.
func (a *Attempt) Verify(account Account, known bool) error {
	x := exchange{login: a.login, pc: a.pc, hello: &a.Hello, verifier: newVerifier(account, known, a.login.OldPasswords)}
	if known {
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
		// It hung up when it was asked for the password itself. That was a guess like
		// any other, and must count as one.
		refused = x.refusal()
		refused.Gone = err
		return refused
	}
	return err
}
