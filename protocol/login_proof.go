package protocol

import (
	"crypto/sha1"
	"crypto/sha256"
	"crypto/tls"
	"encoding/hex"
	"strings"

	"github.com/go-mysql-org/go-mysql/mysql"
)

// proofMark begins a proof. A MariaDB client since 11.4 trusts a certificate without a known signer
// if the server proves two things: it has the password, and the certificate is its own. The OK's
// text then has this byte and, in capital hex digits, SHA256(stored password, challenge,
// SHA256(certificate)). Of the plugins that the proxy checks only mysql_native_password has a
// stored form that both sides have
// (https://mariadb.org/mission-impossible-zero-configuration-ssl/).
const proofMark = "\x01"

// prove returns the proof for the OK's text, or "" if the client does not look for one.
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

// shown returns the configuration to shake hands with in place of cfg, and the fingerprint of its
// certificate, or nil. It calls GetConfigForClient now, because package tls would not say which
// configuration it used. A wrapper for each connection would lose the keys for resuming sessions.
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

// WithText returns an OK packet's payload with another text, in new memory. It keeps the
// description of the session. It returns malformed bytes unchanged.
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

// cutText splits an OK packet into the part before its text, the text, and the rest.
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

// withoutProof removes a server's proof from its OK: it is about the server's certificate.
func withoutProof(ok []byte) []byte {
	if len(ok) <= plainOK {
		return ok
	}
	if _, text, _, valid := cutText(ok); valid && strings.HasPrefix(string(text), proofMark) {
		return WithText(ok, "")
	}
	return ok
}
