package main

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/go-mysql-org/go-mysql/mysql"
)

// The protocol is written again here, without package protocol. So an error in the product's
// encoding cannot hide behind the same error in its check. Source:
// https://dev.mysql.com/doc/dev/mysql-server/latest/PAGE_PROTOCOL.html

// headerSize is the length of a packet's header: three bytes of payload length and the packet's
// number.
const headerSize = 4

// clientCapabilities are the load client's flags: those of every driver, and framing with EOF
// packets. With these a proxy that walks headers has the most packets to look at.
const clientCapabilities = mysql.CLIENT_LONG_PASSWORD | mysql.CLIENT_LONG_FLAG | mysql.CLIENT_CONNECT_WITH_DB |
	mysql.CLIENT_PROTOCOL_41 | mysql.CLIENT_TRANSACTIONS | mysql.CLIENT_SECURE_CONNECTION |
	mysql.CLIENT_MULTI_RESULTS | mysql.CLIENT_PLUGIN_AUTH

// requiredCapabilities are the flags that the load client needs in a greeting.
const requiredCapabilities = mysql.CLIENT_PROTOCOL_41 | mysql.CLIENT_SECURE_CONNECTION | mysql.CLIENT_PLUGIN_AUTH |
	mysql.CLIENT_CONNECT_WITH_DB

// charsetUTF8MB4 is the collation utf8mb4_general_ci.
const charsetUTF8MB4 = 45

var errShort = errors.New("packet ends too early")

// command returns a complete packet with a command and its argument.
func command(code byte, argument string) []byte {
	return appendCommand(nil, code, argument)
}

// appendCommand appends a complete packet with a command to b. The argument must be shorter than 16
// MiB - 1.
func appendCommand(b []byte, code byte, argument string) []byte {
	n := len(argument) + 1
	b = append(b, byte(n), byte(n>>8), byte(n>>16), 0, code)
	return append(b, argument...)
}

// packet returns payload as a whole packet with the given number.
func packet(num byte, payload []byte) []byte {
	n := len(payload)
	return append([]byte{byte(n), byte(n >> 8), byte(n >> 16), num}, payload...)
}

// executeInt64 returns a complete COM_STMT_EXECUTE packet for a statement with one BIGINT
// parameter. setExecuteInt64 changes the parameter in place.
func executeInt64(statementID uint32) []byte {
	p := []byte{mysql.COM_STMT_EXECUTE}
	p = binary.LittleEndian.AppendUint32(p, statementID)
	p = append(p, 0)                                  // no cursor
	p = binary.LittleEndian.AppendUint32(p, 1)        // iterations
	p = append(p, 0, 1, mysql.MYSQL_TYPE_LONGLONG, 0) // no NULL; types follow; signed BIGINT
	p = binary.LittleEndian.AppendUint64(p, 0)        // the parameter
	return packet(0, p)
}

func setExecuteInt64(packet []byte, v int64) {
	binary.LittleEndian.PutUint64(packet[len(packet)-8:], uint64(v))
}

// executeInsert returns a complete COM_STMT_EXECUTE packet with the title as its last parameter.
// With a key, the BIGINT before it is at keyAt.
func executeInsert(statementID uint32, withKey bool) (p []byte, keyAt int) {
	p = []byte{mysql.COM_STMT_EXECUTE}
	p = binary.LittleEndian.AppendUint32(p, statementID)
	p = append(p, 0)                           // no cursor
	p = binary.LittleEndian.AppendUint32(p, 1) // iterations
	p = append(p, 0, 1)                        // no NULL; types follow
	if withKey {
		p = append(p, mysql.MYSQL_TYPE_LONGLONG, 0x80) // unsigned
	}
	p = append(p, mysql.MYSQL_TYPE_VAR_STRING, 0)
	if withKey {
		keyAt = headerSize + len(p)
		p = append(p, 0, 0, 0, 0, 0, 0, 0, 0)
	}
	p = append(append(p, byte(len(insertTitle))), insertTitle...)
	return packet(0, p), keyAt
}

// greeting is the part of a server's first packet that the load client needs.
type greeting struct {
	version      string
	capabilities uint32
	salt         []byte // a copy of 20 bytes
	plugin       string
}

// parseGreeting reads a HandshakeV10 payload. An ERR packet (too many connections) becomes an
// error.
func parseGreeting(p []byte) (greeting, error) {
	var g greeting
	if len(p) > 0 && p[0] == mysql.ERR_HEADER {
		return g, parseError(p)
	}
	if len(p) == 0 || p[0] != 10 {
		return g, errors.New("greeting is not of protocol version 10")
	}
	end := bytes.IndexByte(p, 0)
	if end < 0 || len(p) < end+1+4+8+1+2+1+2+2+1+10+13 {
		return g, fmt.Errorf("greeting: %w", errShort)
	}
	g.version = string(p[1:end])
	p = p[end+1+4:] // behind the connection id
	g.salt = append(g.salt, p[:8]...)
	g.capabilities = uint32(binary.LittleEndian.Uint16(p[9:])) | uint32(binary.LittleEndian.Uint16(p[14:]))<<16
	if missing := requiredCapabilities &^ g.capabilities; missing != 0 {
		return g, fmt.Errorf("greeting lacks capabilities %#x", missing)
	}
	g.salt = append(g.salt, p[27:39]...)
	plugin, _, _ := bytes.Cut(p[27+max(13, int(p[16])-8):], []byte{0})
	g.plugin = string(plugin)
	return g, nil
}

// scramble answers a challenge, for plugins without a second exchange if the server knows the
// password.
func scramble(plugin, password string, salt []byte) ([]byte, error) {
	switch plugin {
	case mysql.AUTH_NATIVE_PASSWORD:
		return mysql.CalcNativePassword(salt, []byte(password)), nil
	case mysql.AUTH_CACHING_SHA2_PASSWORD:
		return mysql.CalcCachingSha2Password(salt, []byte(password)), nil
	}
	return nil, fmt.Errorf("login asks for plugin %q", plugin)
}

// handshakeResponse returns the payload of a login with this answer to the challenge.
func handshakeResponse(user, schema, plugin string, auth []byte) []byte {
	p := binary.LittleEndian.AppendUint32(nil, clientCapabilities)
	p = binary.LittleEndian.AppendUint32(p, 1<<24) // largest packet
	p = append(p, charsetUTF8MB4)
	p = append(p, make([]byte, 23)...)
	p = append(append(p, user...), 0)
	p = append(append(p, byte(len(auth))), auth...)
	p = append(append(p, schema...), 0)
	return append(append(p, plugin...), 0)
}

// parseError turns an ERR payload into an error that holds code, SQLSTATE and text.
func parseError(p []byte) error {
	if len(p) < 3 {
		return fmt.Errorf("ERR packet: %w", errShort)
	}
	code, text := binary.LittleEndian.Uint16(p[1:]), p[3:]
	state := ""
	if len(text) >= 6 && text[0] == '#' {
		state, text = "/"+string(text[1:6]), text[6:]
	}
	return fmt.Errorf("ERR %d%s: %s", code, state, text)
}

// okPacket is the fixed part of an OK packet.
type okPacket struct {
	affected, insertID uint64
	status, warnings   uint16
}

// parseOK reads the payload of an OK packet; an ERR packet comes back as the server's error.
func parseOK(p []byte) (okPacket, error) {
	var ok okPacket
	if len(p) == 0 {
		return ok, fmt.Errorf("OK packet: %w", errShort)
	}
	switch p[0] {
	case mysql.OK_HEADER:
	case mysql.ERR_HEADER:
		return ok, parseError(p)
	default:
		return ok, fmt.Errorf("got a packet that starts with %#02x, want OK", p[0])
	}
	var n int
	if ok.affected, n = lenencInt(p[1:]); n == 0 {
		return ok, fmt.Errorf("OK packet: %w", errShort)
	}
	p = p[1+n:]
	if ok.insertID, n = lenencInt(p); n == 0 || len(p) < n+4 {
		return ok, fmt.Errorf("OK packet: %w", errShort)
	}
	ok.status, ok.warnings = binary.LittleEndian.Uint16(p[n:]), binary.LittleEndian.Uint16(p[n+2:])
	return ok, nil
}

// isEOF says whether a payload is an EOF packet of the classic framing.
func isEOF(p []byte) bool { return len(p) == 5 && p[0] == mysql.EOF_HEADER }

// checkEOF refuses everything but an EOF packet without warnings that ends a command's last result.
func checkEOF(p []byte) error {
	switch {
	case len(p) > 0 && p[0] == mysql.ERR_HEADER:
		return parseError(p)
	case !isEOF(p):
		return fmt.Errorf("got a packet of %d bytes, want EOF", len(p))
	case binary.LittleEndian.Uint16(p[1:]) != 0:
		return fmt.Errorf("%d warnings", binary.LittleEndian.Uint16(p[1:]))
	case binary.LittleEndian.Uint16(p[3:])&mysql.SERVER_MORE_RESULTS_EXISTS != 0:
		return errors.New("a second result is announced, want one")
	}
	return nil
}

// lenencInt reads a length-encoded integer and returns the number of its bytes. That is 0 if p is
// too short or begins with NULL or an ERR header.
func lenencInt(p []byte) (uint64, int) {
	if len(p) == 0 {
		return 0, 0
	}
	switch first := p[0]; {
	case first < 0xfb:
		return uint64(first), 1
	case first == 0xfc && len(p) >= 3:
		return uint64(binary.LittleEndian.Uint16(p[1:])), 3
	case first == 0xfd && len(p) >= 4:
		return uint64(p[1]) | uint64(p[2])<<8 | uint64(p[3])<<16, 4
	case first == 0xfe && len(p) >= 9:
		return binary.LittleEndian.Uint64(p[1:]), 9
	}
	return 0, 0
}

// textValue returns the value of a text row with exactly one column that is not NULL. The value is
// part of p.
func textValue(p []byte) ([]byte, error) {
	n, size := lenencInt(p)
	if size == 0 || uint64(len(p)-size) != n {
		return nil, fmt.Errorf("row of %d bytes does not hold exactly one value", len(p))
	}
	return p[size:], nil
}

// binaryValue returns the value of a binary row with exactly one string column that is not NULL.
// The value is part of p.
func binaryValue(p []byte) ([]byte, error) {
	if len(p) < 3 || p[0] != 0 || p[1] != 0 {
		return nil, fmt.Errorf("got a packet of %d bytes, want a binary row without NULL", len(p))
	}
	return textValue(p[2:])
}

// parseUint reads a whole decimal number.
func parseUint(b []byte) (uint64, error) {
	if len(b) == 0 || len(b) > 19 {
		return 0, fmt.Errorf("%q is not a number", b)
	}
	var v uint64
	for _, c := range b {
		if c < '0' || c > '9' {
			return 0, fmt.Errorf("%q is not a number", b)
		}
		v = v*10 + uint64(c-'0')
	}
	return v, nil
}
