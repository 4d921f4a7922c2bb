package protocol

import (
	"bytes"
	"encoding/binary"
	"fmt"
)

// A client older than MySQL 4.1 gets in at MariaDB if the account has no password. HAProxy's pre-41
// check is such a client. Its OK ends before the status. Its ERR has no SQLSTATE.

// OldOK is the payload of an OK for such a client.
var OldOK = []byte{headerOK, 0, 0}

// Old reports whether the client is older than MySQL 4.1. Such a client cannot read any answer to a
// statement.
func (a *Attempt) Old() bool { return !a.Hello.Capabilities.Has(Protocol41) }

// parseOldResponse decodes the login of such a client, which must have neither password nor schema.
// See Protocol::HandshakeResponse320
// (https://dev.mysql.com/doc/dev/mysql-server/latest/page_protocol_connection_phase_packets_protocol_handshake_response.html).
func parseOldResponse(payload []byte) (*HandshakeResponse, error) {
	const head = 2 + 3 // flags and packet limit
	if len(payload) <= head {
		return nil, fmt.Errorf("handshake response: %w: %d bytes", ErrMalformed, len(payload))
	}
	user, rest, ok := bytes.Cut(payload[head:], []byte{0})
	if !ok {
		return nil, fmt.Errorf("handshake response: %w: user name has no end", ErrMalformed)
	}
	if len(bytes.TrimPrefix(rest, []byte{0})) > 0 { // an old password, or a schema
		return nil, fmt.Errorf("handshake response: %w", errOldClient)
	}
	return &HandshakeResponse{
		MaxPacket: binary.LittleEndian.Uint32(append(bytes.Clone(payload[2:head]), 0)),
		User:      string(user),
	}, nil
}

// oldClientConn removes from answers to a login what an old client cannot read.
type oldClientConn struct{ ClientConn }

const stateLength = len("#HY000")

func (c oldClientConn) WritePacket(payload []byte) error {
	if len(payload) >= 3+stateLength && payload[0] == headerERR && payload[3] == '#' {
		payload = append(bytes.Clone(payload[:3]), payload[3+stateLength:]...)
	}
	return c.ClientConn.WritePacket(payload)
}
