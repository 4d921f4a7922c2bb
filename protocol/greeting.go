package protocol

import (
	"bytes"
	"crypto/rand"
	"encoding/binary"
	"fmt"
	"slices"
	"strings"
)

// SaltSize is the length of the random challenge for native and sha2 passwords. A NUL follows it in
// packets.
const SaltSize = 20

// Salt is the challenge that scrambles a password.
type Salt [SaltSize]byte

// NewSalt returns a fresh challenge from the system's random source. It has no NUL, which would end
// it early in clients that use it as a string. It has no '$', the separator in a stored sha2
// password, and no byte above 127.
func NewSalt() Salt {
	var s Salt
	var chunk [2 * SaltSize]byte
	for n := 0; n < SaltSize; {
		_, _ = rand.Read(chunk[:]) // never fails: it would end the process
		for _, b := range chunk {
			if b &= 0x7f; b != 0 && b != '$' && n < SaltSize {
				s[n] = b
				n++
			}
		}
	}
	return s
}

// Greeting is the server's first packet, Protocol::HandshakeV10
// (https://dev.mysql.com/doc/dev/mysql-server/latest/page_protocol_connection_phase_packets_protocol_handshake_v10.html).
type Greeting struct {
	Version      string // "8.4.3" or "5.5.5-10.11.6-MariaDB"; without NUL
	ConnectionID uint32
	Salt         Salt
	Capabilities Capability // Extended flags travel without LongPassword only
	Collation    uint8      // the low byte of the server's default collation
	Status       Status
	Plugin       string // the plugin for Salt; needs PluginAuth
}

// IsMariaDB reports whether the greeting comes from a MariaDB server.
func (g *Greeting) IsMariaDB() bool {
	return !g.Capabilities.Has(LongPassword) || strings.Contains(g.Version, "MariaDB")
}

const (
	greetingVersion = 10
	saltPart1       = 8
	// MariaDB uses the last four.
	reservedSize = 10
	// not counting the strings
	greetingMost = 1 + 1 + 4 + saltPart1 + 1 + 2 + 1 + 2 + 2 + 1 + reservedSize + SaltSize - saltPart1 + 1 + 1
)

// Append appends the packet's payload. It fails when a string holds a NUL byte.
func (g *Greeting) Append(b []byte) ([]byte, error) {
	if strings.IndexByte(g.Version, 0) >= 0 || strings.IndexByte(g.Plugin, 0) >= 0 {
		return b, fmt.Errorf("greeting: NUL byte in version %q or plugin %q", g.Version, g.Plugin)
	}
	b = slices.Grow(b, greetingMost+len(g.Version)+len(g.Plugin))
	b = append(b, greetingVersion)
	b = append(append(b, g.Version...), 0)
	b = binary.LittleEndian.AppendUint32(b, g.ConnectionID)
	b = append(append(b, g.Salt[:saltPart1]...), 0)
	b = binary.LittleEndian.AppendUint16(b, uint16(g.Capabilities))
	b = append(b, g.Collation)
	b = binary.LittleEndian.AppendUint16(b, uint16(g.Status))
	b = binary.LittleEndian.AppendUint16(b, uint16(g.Capabilities>>16))
	if g.Capabilities.Has(PluginAuth) {
		b = append(b, SaltSize+1)
	} else {
		b = append(b, 0)
	}
	b = append(b, make([]byte, reservedSize-4)...)
	b = binary.LittleEndian.AppendUint32(b, g.Capabilities.extendedWord())
	b = append(append(b, g.Salt[saltPart1:]...), 0)
	if g.Capabilities.Has(PluginAuth) {
		b = append(append(b, g.Plugin...), 0)
	}
	return b, nil
}

// ParseGreeting decodes a server's first packet. It returns a *ServerError for an ERR packet in its
// place (too many connections, host blocked). It refuses a server older than 4.1. The result does
// not share payload's memory.
func ParseGreeting(payload []byte) (*Greeting, error) {
	if len(payload) == 0 {
		return nil, fmt.Errorf("greeting: %w: empty", ErrMalformed)
	}
	if payload[0] == headerERR {
		return nil, ParseServerError(payload)
	}
	if payload[0] != greetingVersion {
		return nil, fmt.Errorf("greeting: %w: protocol version %d, only %d is spoken here: is it a MySQL server?", ErrMalformed, payload[0], greetingVersion)
	}
	end := bytes.IndexByte(payload, 0)
	if end < 0 {
		return nil, fmt.Errorf("greeting: %w: version has no end", ErrMalformed)
	}
	g := &Greeting{Version: string(payload[1:end])}
	b := payload[end+1:]

	const fixed = 4 + saltPart1 + 1 + 2 + 1 + 2 + 2 + 1 + reservedSize
	if len(b) < fixed {
		return nil, fmt.Errorf("greeting of %q: %w: %d bytes after the version, need %d", g.Version, ErrMalformed, len(b), fixed)
	}
	g.ConnectionID = binary.LittleEndian.Uint32(b)
	copy(g.Salt[:], b[4:4+saltPart1])
	b = b[4+saltPart1+1:]
	g.Capabilities = Capability(binary.LittleEndian.Uint16(b))
	g.Collation = b[2]
	g.Status = Status(binary.LittleEndian.Uint16(b[3:]))
	g.Capabilities |= Capability(binary.LittleEndian.Uint16(b[5:])) << 16
	saltLen := int(b[7])
	g.Capabilities = g.Capabilities.withExtended(binary.LittleEndian.Uint32(b[8+reservedSize-4:]))
	b = b[8+reservedSize:]

	if !g.Capabilities.Has(Protocol41 | SecureConnection) {
		return nil, fmt.Errorf("greeting of %q: the server speaks no 4.1 protocol with secure passwords", g.Version)
	}
	// The second part of the salt has at least 13 bytes with its NUL.
	part2 := max(SaltSize+1-saltPart1, saltLen-saltPart1)
	if len(b) < part2 {
		// Some servers omit the last NUL if nothing follows.
		if len(b) != SaltSize-saltPart1 {
			return nil, fmt.Errorf("greeting of %q: %w: salt of %d bytes is cut off", g.Version, ErrMalformed, saltLen)
		}
		part2 = len(b)
	}
	copy(g.Salt[saltPart1:], b)
	b = b[part2:]
	if g.Capabilities.Has(PluginAuth) {
		// Before MySQL 5.5.10 there was no NUL after the name.
		g.Plugin, _ = cutNul(b)
	}
	return g, nil
}

// cutNul splits b at the first NUL. Without a NUL the string is all of b.
func cutNul(b []byte) (string, []byte) {
	if i := bytes.IndexByte(b, 0); i >= 0 {
		return string(b[:i]), b[i+1:]
	}
	return string(b), nil
}
