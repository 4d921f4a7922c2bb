package protocol

import (
	"bytes"
	"encoding/binary"
	"fmt"
)

// ChangeUserRequest is COM_CHANGE_USER
// (https://dev.mysql.com/doc/dev/mysql-server/latest/page_protocol_com_change_user.html).
type ChangeUserRequest struct {
	User         string
	AuthResponse []byte
	Database     string
	HasCollation bool // the client sent it: old ones end the packet before it
	Collation    uint16
	Plugin       string // with PluginAuth
	Attrs        Attrs  // with ConnectAttrs
}

// ParseChangeUser decodes the command's payload, command byte included. capabilities are those that
// the client agreed on. AuthResponse and Attrs share payload's memory.
func ParseChangeUser(payload []byte, capabilities Capability) (*ChangeUserRequest, error) {
	if len(payload) == 0 || Command(payload[0]) != ComChangeUser {
		return nil, fmt.Errorf("change user: %w", ErrMalformed)
	}
	b := payload[1:]
	r := &ChangeUserRequest{}
	end := bytes.IndexByte(b, 0)
	if end < 0 {
		return nil, fmt.Errorf("change user: %w: user name has no end", ErrMalformed)
	}
	r.User, b = string(b[:end]), b[end+1:]
	var ok bool
	if capabilities.Has(SecureConnection) {
		r.AuthResponse, b, ok = cutShort(b)
	} else if end = bytes.IndexByte(b, 0); end >= 0 {
		r.AuthResponse, b, ok = b[:end], b[end+1:], true
	}
	if !ok {
		return nil, fmt.Errorf("change user: %w: answer to the challenge is cut off", ErrMalformed)
	}
	if end = bytes.IndexByte(b, 0); end < 0 {
		return nil, fmt.Errorf("change user: %w: database name has no end", ErrMalformed)
	}
	r.Database, b = string(b[:end]), b[end+1:]
	if len(b) < 2 {
		return r, nil // old clients send no more
	}
	r.HasCollation, r.Collation, b = true, binary.LittleEndian.Uint16(b), b[2:]
	if capabilities.Has(PluginAuth) {
		r.Plugin, b = cutNul(b)
	}
	var err error
	if r.Attrs, _, err = cutAttrs(b, capabilities); err != nil {
		return nil, fmt.Errorf("change user: %w", err)
	}
	return r, nil
}

// changeUser is the command that changes the user to itself, in a collation that has no room in a
// login. It answers no challenge, so the server asks.
func (l *ClientLogin) changeUser(c Capability, plugin string) []byte {
	b := append([]byte{byte(ComChangeUser)}, l.User...)
	b = append(append(append(b, 0, 0), l.Database...), 0)
	b = binary.LittleEndian.AppendUint16(b, l.Collation)
	if c.Has(PluginAuth) {
		b = append(append(b, plugin...), 0)
	}
	if c.Has(ConnectAttrs) {
		b = AppendLenEncBytes(b, []byte(l.Attrs))
	}
	return b
}

// ReceiveChangeUser decodes the login in a COM_CHANGE_USER. payload is the command, the last packet
// read from pc. The caller keeps it unchanged until the verdict. before is the login so far; its
// capabilities stay. Errors are those of Receive.
func (l *ServerLogin) ReceiveChangeUser(pc ClientConn, payload []byte, before *ClientHello) (*Attempt, error) {
	request, err := ParseChangeUser(payload, before.Capabilities)
	if err != nil {
		return nil, refuseMalformed(pc, err)
	}
	a := &Attempt{
		Hello: ClientHello{
			User: request.User, Database: request.Database, Capabilities: before.Capabilities,
			Collation: before.Collation, MaxPacket: before.MaxPacket, Attrs: before.Attrs, Salt: before.Salt,
			certificate: before.certificate,
		},
		login: l, pc: pc, plugin: request.Plugin, answer: request.AuthResponse, changeUser: true,
	}
	if request.HasCollation {
		a.Hello.Collation = request.Collation
	}
	if request.Attrs != nil {
		a.Hello.Attrs = bytes.Clone(request.Attrs)
	}
	return a, nil
}
