package protocol

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"strings"
	"testing"
)

func TestTheProofIsOfThePasswordTheChallengeAndTheCertificate(t *testing.T) {
	certificate := sha256.Sum256([]byte("a certificate"))
	hello := ClientHello{Plugin: "mysql_native_password", PasswordUsed: true, certificate: &certificate}
	copy(hello.Salt[:], "12345678901234567890")
	// SHA256(SHA1(SHA1('pw')) + salt + fingerprint), made with a server's functions: SELECT
	// SHA2(CONCAT(UNHEX(SHA1(UNHEX(SHA1('pw')))), '12345678901234567890', UNHEX(SHA2('a
	// certificate', 256))), 256)
	const want = "85EECBE34873DE81B8BA18F479A891DCFB260CC8F3513A969462E76FC9A44F8C"
	if got := hello.prove("pw"); got != "\x01"+want {
		t.Errorf("got %q, want %q", got, "\x01"+want)
	}
	for name, change := range map[string]func(*ClientHello){
		"no TLS":             func(h *ClientHello) { h.certificate = nil },
		"another plugin":     func(h *ClientHello) { h.Plugin = "caching_sha2_password" },
		"no password":        func(h *ClientHello) { h.PasswordUsed = false },
		"not MariaDB's form": func(h *ClientHello) { h.Capabilities |= LongPassword },
	} {
		h := hello
		change(&h)
		if got := h.prove("pw"); got != "" {
			t.Errorf("%s: got %q, want none", name, got)
		}
	}
}

func TestAServersProofIsTakenOutOfItsOK(t *testing.T) {
	proof := "\x01" + strings.Repeat("A", 64)
	plain := AppendOK(nil, 0, OK{Status: Autocommit})[HeaderSize:]
	with := AppendOK(nil, 0, OK{Status: Autocommit, Info: proof})[HeaderSize:]
	// An empty text, then the session's state.
	tracked := append(append(bytes.Clone(plain), 0), "\x05track"...)
	trackedWith := append(append(append(bytes.Clone(plain), 65), proof...), "\x05track"...)
	for _, c := range []struct{ ok, want []byte }{
		{plain, plain},
		{with, plain},
		{tracked, tracked},
		{trackedWith, tracked},
		{AppendOK(nil, 0, OK{Info: "a text"})[HeaderSize:], AppendOK(nil, 0, OK{Info: "a text"})[HeaderSize:]},
		{[]byte{0, 1}, []byte{0, 1}},
		{[]byte{0, 0, 0, 2, 0, 0, 0, 0xfe}, []byte{0, 0, 0, 2, 0, 0, 0, 0xfe}},
	} {
		if got := withoutProof(c.ok); !bytes.Equal(got, c.want) {
			t.Errorf("%s: got %s, want %s", hex.EncodeToString(c.ok), hex.EncodeToString(got), hex.EncodeToString(c.want))
		}
	}
	if got := WithText(tracked, proof); !bytes.Equal(got, trackedWith) {
		t.Errorf("put in: got %x, want %x", got, trackedWith)
	}
	if got := WithText(plain, proof); !bytes.Equal(got, with) {
		t.Errorf("put in: got %x, want %x", got, with)
	}
	for n := range trackedWith { // no panic for any prefix
		_ = WithText(trackedWith[:n], "x")
		_ = withoutProof(trackedWith[:n])
	}
}
