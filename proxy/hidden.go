package proxy

import (
	"encoding/binary"

	"seqproxy/backend"
	"seqproxy/protocol"
)

// dropLongData makes the server forget what came by COM_STMT_SEND_LONG_DATA for an
// execution that failed with err before it was sent: an execution ends the data's
// life, and the next would otherwise append to it.
func (a *attachment) dropLongData(c *backend.Conn, p *prepared, err error) error {
	if !p.LongSent {
		return err
	}
	p.ForgetLong()
	id := binary.LittleEndian.AppendUint32(nil, p.backendID)
	if resetErr := a.runCommand(c, protocol.ComStmtReset, string(id)); resetErr != nil {
		return resetErr
	}
	return err
}
