package protocol

import (
	"crypto/sha1"
	"crypto/sha256"
	"crypto/tls"
	"encoding/hex"
	"strings"

	"github.com/go-mysql-org/go-mysql/mysql"
)

// MariaDB's clients since 11.4 trust a certificate that nobody they know has signed if
// the server proves that it knows the password as well, and that the certificate is
// its own: in the OK's text, behind this byte, stands in capital hex digits
// SHA256(stored password, challenge, SHA256(certificate)). Of the plugins that are
// checked here only mysql_native_password has a stored form that both sides know
// (https://mariadb.org/mission-impossible-zero-configuration-ssl/).
const proofMark = "\x01"

// prove returns the text that goes into the OK, "" if the client does not look for it.
func (h *ClientHello) prove(password string) string {
	if h.certificate == nil || h.Plugin != mysql.AUTH_NATIVE_PASSWORD || !h.PasswordUsed || h.Capabilities.Has(LongPassword) {
		return ""
	}
	once := sha1.Sum([]byte(password))
	stored := sha1.Sum(once[:])
	all := sha256.New()
	all.Write(stored[:])
	all.Write(h.Salt[:])
	all.Write(h.certificate[:])
	return proofMark + strings.ToUpper(hex.EncodeToString(all.Sum(nil)))
}

// shown returns the configuration to shake hands with in place of cfg, and the
// fingerprint of the certificate that it shows, nil if there is none. It is the one that
// GetConfigForClient gives now, taken before: package tls would not say which it was, and
// a wrapper made for one connection would lose the keys by which sessions are resumed.
func shown(cfg *tls.Config) (chosen *tls.Config, fingerprint *[sha256.Size]byte, err error) {
	if cfg.GetConfigForClient != nil {
		if chosen, err = cfg.GetConfigForClient(&tls.ClientHelloInfo{}); err != nil {
			return nil, nil, err
		}
	}
	if chosen == nil {
		chosen = cfg
	}
	if len(chosen.Certificates) > 0 && len(chosen.Certificates[0].Certificate) > 0 {
		sum := sha256.Sum256(chosen.Certificates[0].Certificate[0])
		fingerprint = &sum
	}
	return chosen, fingerprint, nil
}

// WithText returns an OK packet's payload with another text in it, in new memory.
// What it tells of the session stays. Malformed bytes are returned as they are.
func WithText(ok []byte, text string) []byte {
	head, _, rest, valid := cutText(ok)
	if !valid {
		return ok
	}
	b := append(make([]byte, 0, len(ok)+len(text)+1), head...)
	if text != "" || len(rest) > 0 {
		b = AppendLenEncBytes(b, text)
	}
	return append(b, rest...)
}

// cutText takes an OK packet apart: what is before its text, the text, what is behind.
func cutText(ok []byte) (head, text, rest []byte, valid bool) {
	at := 1
	for range 2 { // affected rows, insert id
		if at > len(ok) {
			return nil, nil, nil, false
		}
		_, n, valid := ReadLenEncInt(ok[at:])
		if !valid {
			return nil, nil, nil, false
		}
		at += n
	}
	at += 4 // status, warnings
	switch {
	case at > len(ok):
		return nil, nil, nil, false
	case at == len(ok):
		return ok, nil, nil, true
	}
	text, n, valid := ReadLenEncBytes(ok[at:])
	if !valid {
		return nil, nil, nil, false
	}
	return ok[:at], text, ok[at+n:], true
}

// withoutProof takes a server's proof out of its OK: it is about the server's own
// certificate.
func withoutProof(ok []byte) []byte {
	if len(ok) <= plainOK {
		return ok
	}
	if _, text, _, valid := cutText(ok); valid && strings.HasPrefix(string(text), proofMark) {
		return WithText(ok, "")
	}
	return ok
}
