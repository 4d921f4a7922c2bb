package protocol

import (
	"bytes"
	"fmt"
	"strings"
)

// First bytes of packets that occur only in a login.
const (
	headerMoreData   = 0x01
	headerNextFactor = 0x02 // Protocol::AuthNextFactorRequest, for relayed logins only
	headerAuthSwitch = 0xfe
)

// AuthSwitch is the server's request to start over with another plugin or salt,
// Protocol::AuthSwitchRequest
// (https://dev.mysql.com/doc/dev/mysql-server/latest/page_protocol_connection_phase_packets_protocol_auth_switch_request.html).
type AuthSwitch struct {
	Plugin string
	Data   []byte // for native and sha2 passwords: the salt and a NUL
}

// Append appends the packet's payload. It fails if the plugin's name has a NUL byte or is empty:
// without a name the packet would be a Protocol::OldAuthSwitchRequest.
func (s *AuthSwitch) Append(b []byte) ([]byte, error) {
	if s.Plugin == "" || strings.IndexByte(s.Plugin, 0) >= 0 {
		return b, fmt.Errorf("auth switch request: invalid plugin name %q", s.Plugin)
	}
	b = append(append(append(b, headerAuthSwitch), s.Plugin...), 0)
	return append(b, s.Data...), nil
}

// ParseAuthSwitch decodes the packet. Data shares payload's memory.
func ParseAuthSwitch(payload []byte) (*AuthSwitch, error) {
	if len(payload) == 0 || payload[0] != headerAuthSwitch {
		return nil, fmt.Errorf("auth switch request: %w", ErrMalformed)
	}
	if len(payload) == 1 {
		return nil, fmt.Errorf("the server asks for %w, which are not spoken here: give the account another plugin", errOldPassword)
	}
	end := bytes.IndexByte(payload, 0)
	if end <= 1 {
		return nil, fmt.Errorf("auth switch request: %w: no plugin name", ErrMalformed)
	}
	return &AuthSwitch{Plugin: string(payload[1:end]), Data: payload[end+1:]}, nil
}

// salt returns the challenge of a switch to a native or sha2 password.
func (s *AuthSwitch) salt() (Salt, error) {
	var salt Salt
	if len(s.Data) < SaltSize {
		return salt, fmt.Errorf("auth switch request: %w: salt of %d bytes", ErrMalformed, len(s.Data))
	}
	copy(salt[:], s.Data)
	return salt, nil
}

// AuthMoreData returns the payload of Protocol::AuthMoreData, a message from a plugin's server side
// to its client side
// (https://dev.mysql.com/doc/dev/mysql-server/latest/page_protocol_connection_phase_packets_protocol_auth_more_data.html).
func AuthMoreData(data []byte) []byte {
	return append([]byte{headerMoreData}, data...)
}

// ParseAuthMoreData returns the data of Protocol::AuthMoreData, a part of payload.
func ParseAuthMoreData(payload []byte) ([]byte, error) {
	if len(payload) == 0 || payload[0] != headerMoreData {
		return nil, fmt.Errorf("auth more data: %w", ErrMalformed)
	}
	return payload[1:], nil
}
