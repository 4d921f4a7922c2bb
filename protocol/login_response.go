package protocol

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// errOldClient is a login in the protocol before 4.1, or with its passwords.
var errOldClient = errors.New("the client speaks the protocol or the passwords of before MySQL 4.1")

// HandshakeResponse is the client's login, Protocol::HandshakeResponse41
// (https://dev.mysql.com/doc/dev/mysql-server/latest/page_protocol_connection_phase_packets_protocol_handshake_response.html).
type HandshakeResponse struct {
	// Capabilities say which of the fields below travel, and in which form. Extended flags travel
	// without LongPassword only.
	Capabilities Capability
	MaxPacket    uint32
	Collation    uint8
	User         string
	AuthResponse []byte
	Database     string // with ConnectWithDB
	Plugin       string // the plugin that made AuthResponse; with PluginAuth
	Attrs        Attrs  // with ConnectAttrs
	ZstdLevel    uint8  // with CompressZstd; 0 if missing
}

// responseHead is the length of the fixed part. A Protocol::SSLRequest consists of that part alone.
const (
	responseHead   = 4 + 4 + 1 + responseFiller
	responseFiller = 23
)

// SSLRequest returns the packet that asks the server for TLS: the head of the response. It always
// sets SSL.
func (r *HandshakeResponse) SSLRequest() []byte {
	return r.appendHead(nil, r.Capabilities|SSL)
}

func (r *HandshakeResponse) appendHead(b []byte, capabilities Capability) []byte {
	b = binary.LittleEndian.AppendUint32(b, uint32(capabilities))
	b = binary.LittleEndian.AppendUint32(b, r.MaxPacket)
	b = append(b, r.Collation)
	b = append(b, make([]byte, responseFiller-4)...)
	return binary.LittleEndian.AppendUint32(b, capabilities.extendedWord())
}

// Append appends the packet's payload. It fails if a field cannot be written: a NUL byte in a name,
// or an answer of more than 255 bytes without PluginAuthLenEnc.
func (r *HandshakeResponse) Append(b []byte) ([]byte, error) {
	for _, f := range [...]struct{ name, value string }{{"user", r.User}, {"database", r.Database}, {"plugin", r.Plugin}} {
		if strings.IndexByte(f.value, 0) >= 0 {
			return b, fmt.Errorf("handshake response: NUL byte in the %s name", f.name)
		}
	}
	if !r.Capabilities.Has(Protocol41) {
		return b, fmt.Errorf("handshake response: %w", errOldClient)
	}
	const framing = 3 + 2*9 + 1 // three NULs, two lengths, the level
	b = slices.Grow(b, responseHead+len(r.User)+len(r.AuthResponse)+len(r.Database)+len(r.Plugin)+len(r.Attrs)+framing)
	b = r.appendHead(b, r.Capabilities)
	b = append(append(b, r.User...), 0)
	switch {
	case r.Capabilities.Has(PluginAuthLenEnc):
		b = AppendLenEncBytes(b, r.AuthResponse)
	case r.Capabilities.Has(SecureConnection):
		if len(r.AuthResponse) > 255 {
			return b, fmt.Errorf("handshake response: an answer of %d bytes needs length-encoding", len(r.AuthResponse))
		}
		b = append(append(b, byte(len(r.AuthResponse))), r.AuthResponse...)
	default:
		if bytes.IndexByte(r.AuthResponse, 0) >= 0 {
			return b, errors.New("handshake response: NUL byte in an answer that NUL ends")
		}
		b = append(append(b, r.AuthResponse...), 0)
	}
	if r.Capabilities.Has(ConnectWithDB) {
		b = append(append(b, r.Database...), 0)
	}
	if r.Capabilities.Has(PluginAuth) {
		b = append(append(b, r.Plugin...), 0)
	}
	if r.Capabilities.Has(ConnectAttrs) {
		b = AppendLenEncBytes(b, []byte(r.Attrs))
	}
	if r.Capabilities.Has(CompressZstd) {
		b = append(b, r.ZstdLevel)
	}
	return b, nil
}

// isSSLRequest reports whether payload, the client's first packet, asks for TLS.
func isSSLRequest(payload []byte) bool {
	return len(payload) == responseHead && Capability(binary.LittleEndian.Uint32(payload)).Has(SSL)
}

// ParseHandshakeResponse decodes a client's login. It first removes flags that are not in offered.
// Some clients (libmysql, libmariadb) set these anyway, but omit the fields that the server could
// not read. LongPassword stays: by this flag a client says whether it uses MariaDB's extended
// flags. As in the servers, the last fields may be missing, and bytes after them are ignored.
//
// AuthResponse and Attrs share payload's memory.
func ParseHandshakeResponse(payload []byte, offered Capability) (*HandshakeResponse, error) {
	if len(payload) < 4 {
		return nil, fmt.Errorf("handshake response: %w: %d bytes", ErrMalformed, len(payload))
	}
	r := &HandshakeResponse{Capabilities: Capability(binary.LittleEndian.Uint32(payload))}
	if !r.Capabilities.Has(Protocol41) {
		return nil, fmt.Errorf("handshake response: %w", errOldClient)
	}
	if len(payload) <= responseHead {
		return nil, fmt.Errorf("handshake response: %w: %d bytes", ErrMalformed, len(payload))
	}
	r.Capabilities = r.Capabilities.withExtended(binary.LittleEndian.Uint32(payload[responseHead-4:])) & (offered | LongPassword)
	r.MaxPacket = binary.LittleEndian.Uint32(payload[4:])
	r.Collation = payload[8]

	b := payload[responseHead:]
	end := bytes.IndexByte(b, 0)
	if end < 0 {
		return nil, fmt.Errorf("handshake response: %w: user name has no end", ErrMalformed)
	}
	r.User, b = string(b[:end]), b[end+1:]
	var ok bool
	switch {
	case r.Capabilities.Has(PluginAuthLenEnc):
		r.AuthResponse, b, ok = cutLenEnc(b)
	case r.Capabilities.Has(SecureConnection):
		r.AuthResponse, b, ok = cutShort(b)
	default:
		if end, ok = bytes.IndexByte(b, 0), true; end < 0 {
			ok = false
		} else {
			r.AuthResponse, b = b[:end], b[end+1:]
		}
	}
	if !ok {
		return nil, fmt.Errorf("handshake response: %w: answer to the challenge is cut off", ErrMalformed)
	}
	if r.Capabilities.Has(ConnectWithDB) && len(b) > 0 {
		if end = bytes.IndexByte(b, 0); end < 0 {
			return nil, fmt.Errorf("handshake response: %w: database name has no end", ErrMalformed)
		}
		r.Database, b = string(b[:end]), b[end+1:]
	}
	if r.Capabilities.Has(PluginAuth) {
		r.Plugin, b = cutNul(b)
	}
	var err error
	r.Attrs, b, err = cutAttrs(b, r.Capabilities)
	if err != nil {
		return nil, fmt.Errorf("handshake response: %w", err)
	}
	if r.Capabilities.Has(CompressZstd) && len(b) > 0 {
		r.ZstdLevel = b[0]
	}
	return r, nil
}

// cutShort reads bytes with a length of one byte.
func cutShort(b []byte) (val, rest []byte, ok bool) {
	if len(b) == 0 || len(b)-1 < int(b[0]) {
		return nil, nil, false
	}
	end := 1 + int(b[0])
	return b[1:end], b[end:], true
}

// cutLenEnc reads bytes with a length-encoded length.
func cutLenEnc(b []byte) (val, rest []byte, ok bool) {
	val, n, ok := ReadLenEncBytes(b)
	if !ok {
		return nil, nil, false
	}
	return val, b[n:], true
}

// compression returns how the client's stream continues after the login. A client that asks for
// both algorithms gets zlib, as from MySQL.
func (r *HandshakeResponse) compression() (Compression, error) {
	switch {
	case r.Capabilities.Has(Compress):
		return Compression{Algorithm: Zlib}, nil
	case !r.Capabilities.Has(CompressZstd):
		return Compression{}, nil
	case r.ZstdLevel < 1 || r.ZstdLevel > maxZstdLevel:
		return Compression{}, fmt.Errorf("handshake response: zstd level %d, must be 1 to %d", r.ZstdLevel, maxZstdLevel)
	}
	return Compression{Algorithm: Zstd, Level: int(r.ZstdLevel)}, nil
}

const maxZstdLevel = 22

// cutAttrs reads the connection attributes. They are the last field of a COM_CHANGE_USER, and near
// the end of a login.
func cutAttrs(b []byte, capabilities Capability) (attrs Attrs, rest []byte, err error) {
	if !capabilities.Has(ConnectAttrs) || len(b) == 0 {
		return nil, b, nil
	}
	raw, rest, ok := cutLenEnc(b)
	if !ok {
		return nil, nil, fmt.Errorf("connection attributes: %w: cut off", ErrMalformed)
	}
	attrs, err = ParseAttrs(raw)
	return attrs, rest, err
}
