package proxy

import (
	"encoding/binary"

	"seqproxy/backend"
	"seqproxy/protocol"
	"seqproxy/proxy/state"
)

// connOf returns the connection of a prepared statement: the one that it was
// prepared on, in the schema of that time, even if another shard is current.
func (a *attachment) connOf(p *prepared) (*backend.Conn, error) {
	if p.conn == a.cur {
		return p.conn, a.enter(a.cur.Shard())
	}
	switch there, here := p.conn.Shard().Name(), a.cur.Shard().Name(); {
	case a.state.InTransaction():
		return nil, protocol.NotSupported("the statement was prepared on shard %s and cannot run inside a transaction on shard %s: COMMIT or ROLLBACK first",
			there, here)
	case !a.state.Status.Has(protocol.Autocommit): // it would begin a transaction there
		return nil, protocol.NotSupported("the statement was prepared on shard %s and cannot run from shard %s with autocommit = 0: USE a schema of shard %s first",
			there, here, there)
	case !p.shape.LeavesNothing():
		return nil, protocol.NotSupported("the statement was prepared on shard %s, where it changes the session, which is on shard %s now: USE a schema of shard %s first, or prepare it again",
			there, here, there)
	}
	return a.connTo(p.conn.Shard())
}

// connFor is connOf for an execution: it makes true there what the statement may
// look at.
func (a *attachment) connFor(p *prepared) (*backend.Conn, error) {
	c, err := a.connOf(p)
	if err != nil {
		return nil, err
	}
	if err := a.prepareConn(c, p); err != nil {
		return nil, err
	}
	return c, nil
}

// prepareConn makes true on c what the statement may look at.
func (a *attachment) prepareConn(c *backend.Conn, p *prepared) error {
	if err := a.bring(c, p.shape); err != nil {
		return err
	}
	a.expects(state.Effect{Kind: p.shape.Kind, Words: p.shape.Words, Runs: p.shape.Runs})
	return nil
}

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
