package proxy

import (
	"encoding/binary"
	"errors"

	"github.com/go-mysql-org/go-mysql/mysql"

	"seqproxy/backend"
	"seqproxy/protocol"
	"seqproxy/proxy/keys"
	"seqproxy/proxy/params"
	"seqproxy/proxy/plan"
	"seqproxy/proxy/state"
)

// executeHidden executes a statement whose numbers are parameters of ours.
func (x *executor) executeHidden(p *prepared, payload []byte) error {
	c, err := x.at.connOf(p)
	if err != nil {
		return x.at.dropLongData(p.conn, p, err)
	}
	// Before anything is taken or asked: the client may have sent nonsense.
	attributes := x.at.login.Capabilities.Has(protocol.QueryAttributes)
	e, err := p.cutExecution(payload, x.at.likeMariaDB(), attributes)
	if err == nil && p.rows != nil {
		err = p.rowsExecutable(payload, x.answers.mayOmitMetadata())
	}
	if err == nil {
		err = x.fillHidden(c, p, &e, attributes)
	}
	if err != nil {
		if errors.Is(err, params.ErrMalformed) {
			err = malformed(x.at.likeMariaDB())
		}
		return x.at.dropLongData(c, p, err)
	}
	if p.Key != nil {
		err = x.executeFilled(c, p, &e, attributes)
	} else {
		p.ForgetLong()
		err = x.relay.sendRows(c, p.rows, true)
	}
	if err != nil {
		return err
	}
	if c.Answer.ErrCode == mysql.ER_MALFORMED_PACKET && !c.Hello().MariaDB { // an attribute
		p.Unbind(&e)
	}
	x.noteExecuted(c, p)
	return nil
}

// fillHidden writes the execution of a statement with hidden parameters to s.scratch, and
// makes c ready for it.
func (x *executor) fillHidden(c *backend.Conn, p *prepared, e *params.Execution, attributes bool) error {
	if p.Size(e, attributes) >= protocol.MaxFragment {
		return params.ErrTooLong // before numbers are taken for nothing
	}
	asks, err := p.Asks(p.Arguments(e), x.planning.nameOf) // the client may have sent nonsense there, too
	if err != nil {
		return err
	}
	previous, err := x.previousHidden(p)
	if err != nil {
		return err
	}
	if err := x.at.prepareConn(c, p); err != nil {
		return err
	}
	n, err := p.numbers(x.numbers, asks)
	modes := func() (state.InsertModes, error) { return x.at.insertModes(c, p.shape.Words) }
	if err == nil && p.Key != nil {
		if err = p.AddKeys(0, p.Arguments(e), modes); err == nil {
			err = p.SpaceKeys(modes)
		}
	}
	if err != nil {
		return err
	}
	values, err := x.numbers.All(n, p.rows)
	if err != nil {
		return err
	}
	p.PlacePrevious(values, previous)
	p.PlaceKeys(values, 1)
	x.relay.scratch = append(x.relay.scratch[:0], 0, 0, 0, 0)
	if x.relay.scratch, err = p.AppendExecute(x.relay.scratch, p.backendID, e, attributes, values); err != nil {
		return err
	}
	protocol.PutHeader(x.relay.scratch, len(x.relay.scratch)-protocol.HeaderSize, 0)
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

// previousHidden returns LAST_INSERT_ID() if a hidden parameter needs it.
func (x *executor) previousHidden(p *prepared) (uint64, error) {
	if !p.Previous() {
		return 0, nil
	}
	return x.at.askPrevious(p.shape.Words)
}

// numbers begins to say what an execution needs: what becomes of its keys is still to be added.
// The user may take it.
func (p *prepared) numbers(t *keys.Taker, asks []plan.Slot) (plan.Numbers, error) {
	n := plan.Numbers{Slots: asks, Lead: -1}
	if err := t.MayTake(asks); err != nil {
		return n, err
	}
	for i := range p.Hidden {
		if p.Hidden[i].Leads {
			n.Lead = i
			if err := t.MayTake(p.rows.Slots); err != nil {
				return n, err
			}
		}
	}
	if p.Key != nil {
		n.Fill = p.NewFilling(p.shape.Words)
	}
	return n, nil
}
