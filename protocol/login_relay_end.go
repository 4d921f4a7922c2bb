package protocol

import (
	"bytes"
	"crypto/rand"
	"errors"

	"github.com/go-mysql-org/go-mysql/mysql"
)

// A server counts logins that break off, and packets of invalid form. At max_connect_errors it
// blocks the host. For a relayed login that host is the proxy, so all clients would be blocked. A
// wrong password does not count. So the proxy passes on an answer only in the form that the
// server's plugin accepts, and it ends an unfinished dialogue with a wrong password.

// Lengths of clients' answers to a challenge.
const (
	ed25519Answer = 64
	parsecAnswer  = 32 + ed25519Answer // a challenge of the client, and the signature
)

// fits reports whether the client's answer has a form that the server's plugin accepts.
func (r *RelayedLogin) fits(answer []byte) bool {
	switch r.plugin {
	case mysql.AUTH_NATIVE_PASSWORD:
		return len(answer) == 0 || len(answer) == nativeAnswer
	case mysql.AUTH_MARIADB_ED25519:
		return len(answer) == ed25519Answer
	case mysql.AUTH_CACHING_SHA2_PASSWORD:
		if r.answers == 0 {
			return isEmptyAnswer(answer) || len(answer) == sha2Answer
		}
		return len(answer) > 0
	case pluginParsec:
		if r.answers == 0 { // the first answer asks for the account's salt
			return len(answer) == 0
		}
		return len(answer) == parsecAnswer
	}
	return true
}

// wrongAnswer returns an answer of the form that the plugin expects after a number of answers. It
// is never right, unless the account has no password.
func wrongAnswer(plugin string, answers int) []byte {
	switch plugin {
	case mysql.AUTH_NATIVE_PASSWORD:
		return random(nativeAnswer)
	case mysql.AUTH_MARIADB_ED25519:
		return random(ed25519Answer)
	case mysql.AUTH_CACHING_SHA2_PASSWORD:
		if answers == 0 { // the server would go on after one of the right length
			return []byte{1}
		}
	case pluginParsec:
		if answers > 0 {
			return random(parsecAnswer)
		}
	}
	return []byte{0} // an empty password in clear
}

// IsFault reports whether the server may have counted the failed login as a fault of the proxy's
// host. With parsec a wrong password is one (MariaDB 11.8). err is the login's error.
func (r *RelayedLogin) IsFault(err error) bool {
	var refused *ServerError
	if errors.As(err, &refused) {
		switch refused.Code {
		case mysql.ER_HANDSHAKE_ERROR, mysql.ER_NET_PACKETS_OUT_OF_ORDER, mysql.ER_NET_READ_ERROR, mysql.ER_NET_READ_INTERRUPTED,
			mysql.ER_INVALID_CHARACTER_STRING, mysql.ER_WRONG_VALUE_FOR_VAR:
			// MariaDB, for a malformed name of a schema; for an unknown character set
			return true
		}
	}
	return r.fault
}

func random(n int) []byte {
	b := make([]byte, n)
	_, _ = rand.Read(b) // it never fails
	return b
}

// breakOff ends the dialogue with the server when the client does not continue.
func (r *RelayedLogin) breakOff() {
	plugin, answers := r.plugin, r.answers
	for range maxAuthRounds {
		if r.server.WritePacket(wrongAnswer(plugin, answers)) != nil {
			break
		}
		r.fault = r.fault || plugin == pluginParsec && answers > 0
		answers++
		payload, err := r.ask()
		if err != nil {
			break
		}
		switch payload[0] {
		case headerERR:
			return
		case headerOK: // the account has no password
			r.server.SetPacketNum(0)
			_ = r.server.WritePacket([]byte{byte(ComQuit)}) // the connection closes in either case
			return
		case headerAuthSwitch, headerNextFactor: // an account may have several plugins
			name, _, _ := bytes.Cut(payload[1:], []byte{0})
			plugin, answers = string(name), 0
		}
	}
	r.fault = true
}

// refuseMisfit refuses an answer of a form that the plugin does not accept, as servers do.
func (r *RelayedLogin) refuseMisfit() error {
	const why = "the client's answer does not have the form of the plugin's"
	if r.plugin != mysql.AUTH_NATIVE_PASSWORD {
		err := r.Refuse(why)
		r.breakOff()
		return err
	}
	err := &RelayError{Err: refuseMalformed(r.attempt.pc, errors.New(why))}
	r.breakOff()
	return err
}
