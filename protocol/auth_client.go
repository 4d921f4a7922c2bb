package protocol

import (
	"crypto/rsa"
	"fmt"

	"github.com/go-mysql-org/go-mysql/mysql"
)

// prover proves a password to a server: the client's side of the plugins.
type prover struct {
	password string
	tls      bool           // the connection is encrypted
	secure   bool           // the password may travel in clear: TLS or a Unix socket
	key      *rsa.PublicKey // the server's; nil: ask for it

	plugin  string // the plugin in use
	salt    Salt
	waiting bool // the prover has asked for the server's key
}

// start begins with the plugin and salt of the greeting. If it cannot answer for that plugin in the
// first packet, it answers for the default plugin. The server then switches to its own choice.
func (p *prover) start(plugin string, salt Salt) (answer []byte) {
	p.salt = salt
	if plugin == mysql.AUTH_NATIVE_PASSWORD || plugin == "" {
		p.plugin = mysql.AUTH_NATIVE_PASSWORD
		return mysql.CalcNativePassword(salt[:], []byte(p.password))
	}
	p.plugin = mysql.AUTH_CACHING_SHA2_PASSWORD
	return mysql.CalcCachingSha2Password(salt[:], []byte(p.password))
}

// switchTo starts again with the plugin that the server wants. The caller also sends an empty
// answer.
func (p *prover) switchTo(s *AuthSwitch) (answer []byte, err error) {
	p.plugin, p.waiting = s.Plugin, false
	switch s.Plugin {
	case mysql.AUTH_NATIVE_PASSWORD:
		if p.salt, err = s.salt(); err != nil {
			return nil, err
		}
		return mysql.CalcNativePassword(p.salt[:], []byte(p.password)), nil
	case mysql.AUTH_CACHING_SHA2_PASSWORD:
		if p.salt, err = s.salt(); err != nil {
			return nil, err
		}
		return mysql.CalcCachingSha2Password(p.salt[:], []byte(p.password)), nil
	case mysql.AUTH_SHA256_PASSWORD:
		if p.salt, err = s.salt(); err != nil {
			return nil, err
		}
		if p.password == "" {
			return []byte{0}, nil
		}
		return p.reveal(sha256RequestKey, p.tls) // no server takes it in clear through a socket
	case mysql.AUTH_MARIADB_ED25519:
		const nonce = 32
		if len(s.Data) < nonce {
			return nil, fmt.Errorf("auth switch to %s: %w: nonce of %d bytes", s.Plugin, ErrMalformed, len(s.Data))
		}
		answer, err = mysql.CalcEd25519Password(s.Data[:nonce], p.password)
		if err != nil {
			return nil, fmt.Errorf("auth switch to %s: %w", s.Plugin, err)
		}
		return answer, nil
	case mysql.AUTH_CLEAR_PASSWORD:
		if !p.secure {
			return nil, fmt.Errorf("the server asks for the password in clear (%s), which is given only over TLS or a Unix socket: switch TLS on for this node", s.Plugin)
		}
		return append([]byte(p.password), 0), nil
	case mysql.AUTH_MYSQL_OLD_PASSWORD:
		return nil, fmt.Errorf("the server asks for %w, which are not spoken here: give the account another plugin", errOldPassword)
	}
	return nil, fmt.Errorf("the server asks for authentication plugin %q, which is not spoken here: give the account %s, %s or %s",
		s.Plugin, mysql.AUTH_CACHING_SHA2_PASSWORD, mysql.AUTH_NATIVE_PASSWORD, mysql.AUTH_MARIADB_ED25519)
}

// more answers data from the server's plugin. If speak is false, the server speaks next.
func (p *prover) more(data []byte) (answer []byte, speak bool, err error) {
	if p.waiting {
		p.waiting = false
		key, err := parsePublicKey(data)
		if err != nil {
			return nil, false, err
		}
		answer, err = p.encrypt(key)
		return answer, true, err
	}
	if p.plugin == mysql.AUTH_CACHING_SHA2_PASSWORD && len(data) == 1 {
		switch data[0] {
		case sha2FastOK:
			return nil, false, nil
		case sha2FullAuth:
			answer, err = p.reveal(sha2RequestKey, p.secure)
			return answer, true, err
		}
	}
	return nil, false, fmt.Errorf("%w: %d bytes of data that %s does not send", ErrMalformed, len(data), p.plugin)
}

// reveal sends the password itself, in clear or encrypted with the server's key. It first asks for
// the key if it has none.
func (p *prover) reveal(requestKey byte, clear bool) ([]byte, error) {
	switch {
	case clear:
		return append([]byte(p.password), 0), nil
	case p.key != nil:
		return p.encrypt(p.key)
	}
	p.waiting = true
	return []byte{requestKey}, nil
}

func (p *prover) encrypt(key *rsa.PublicKey) ([]byte, error) {
	return encryptPassword([]byte(p.password), p.salt, key)
}
