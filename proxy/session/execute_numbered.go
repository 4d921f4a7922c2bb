package session

import (
	"errors"

	"github.com/go-mysql-org/go-mysql/mysql"

	"seqproxy/backend"
	"seqproxy/protocol"
	"seqproxy/proxy/keys"
	"seqproxy/proxy/params"
	"seqproxy/proxy/plan"
	"seqproxy/proxy/state"
	"seqproxy/statement"
)

// executeNumbered executes a statement with parameters of the proxy's own, of one row or of many.
// The numbers of a sequence are consecutive over all rows.
func (x *executor) executeNumbered(p *prepared, payload []byte) error {
	c, err := x.at.connOf(p)
	if err != nil {
		return x.at.dropLongData(p, err)
	}
	// Check the client's packet before taking or asking for anything.
	e := &x.execution
	*e, err = x.cut(p, payload)
	defer x.forgetExecution()
	n, previous, r := p.numbers, uint64(0), noRemedy
	if n.Block != nil { // each execution has a block of its own
		block := *n.Block
		n.Block = &block
	}
	for first := true; ; first = false {
		if err == nil && r != largerBlock {
			previous, err = x.ready(c, p, e, &n)
		}
		if err == nil {
			err = x.write(p, e, &n, previous)
		}
		if errors.Is(err, params.ErrMalformed) {
			err = malformed(x.at.likeMariaDB())
		}
		if err != nil {
			return x.at.dropLongData(p, err)
		}
		if n.Fill != nil && !first {
			n.Fill.Repeated = true
		}
		p.ForgetLong()
		if x.relay.share.bytes > 0 && n.Once() { // as delivery.forgetText does
			rebound := e.Params.Rebound
			x.forgetExecution()
			e.Params.Rebound, n.Slots = rebound, nil
			x.relay.batch.payload, x.relay.share.relayed = nil, true
		}
		if r, err = x.relay.sendNumbered(c, &n, true); err != nil {
			return err
		}
		if r == noRemedy {
			p.inserts.stale = n.Fill != nil && n.Fill.Stale || p.Key != nil && p.Key.Listed && c.Answer.ErrCode == mysql.ER_BAD_FIELD_ERROR
			break
		}
	}
	if c.Answer.ErrCode == mysql.ER_MALFORMED_PACKET && !c.Hello.MariaDB { // an attribute
		p.Unbind(e)
	}
	x.noteExecuted(c, p)
	return nil
}

// keptSlots bounds the slots whose memory a session keeps.
const keptSlots = 16

// forgetExecution drops what points into the client's packet.
func (x *executor) forgetExecution() {
	x.execution = params.Execution{}
	clear(x.slots)
	if cap(x.slots) > keptSlots {
		x.slots = nil
	}
}

// cut takes an execution apart. It fails if the execution could become too long with its numbers.
func (x *executor) cut(p *prepared, payload []byte) (params.Execution, error) {
	if protocol.Command(payload[0]) == protocol.ComStmtBulkExecute {
		return p.CutBulk(payload)
	}
	e, err := x.cutExecution(p, payload)
	switch {
	case err != nil:
		return e, err
	case p.numbers.Block != nil && p.LongSent:
		return e, refusedForm("NEXTVAL for each row in an execution with long data, which the server forgets with the first try,")
	case p.numbers.Rows != nil:
		if err := p.rowsExecutable(payload, x.answers.mayOmitMetadata()); err != nil {
			return e, err
		}
	}
	if p.TooLong(&e, x.client.attributed) {
		return e, params.ErrTooLong
	}
	return e, nil
}

// cutExecution takes an execution apart. All of its values must be there.
func (x *executor) cutExecution(p *prepared, payload []byte) (e params.Execution, err error) {
	e, err = p.Cut(payload, x.client.attributed)
	switch {
	case err != nil || e.Whole:
	case x.at.likeMariaDB():
		err = params.ErrArguments
	default:
		p.Unbind(&e)
		err = params.ErrMalformed
	}
	if errors.Is(err, params.ErrMalformed) {
		err = malformed(x.at.likeMariaDB())
	}
	return e, err
}

// ready finds out what an execution needs, and prepares c for it. It returns LAST_INSERT_ID() if a
// parameter needs it.
func (x *executor) ready(c *backend.Conn, p *prepared, e *params.Execution, n *keys.Numbers) (previous uint64, err error) {
	if x.slots, err = p.Asks(x.slots[:0], e, x.planning.nameOf); err != nil {
		return 0, err
	}
	n.Slots = x.slots
	if p.Previous() {
		if previous, err = x.at.askPrevious(p.shape.Words); err != nil {
			return 0, err
		}
	}
	if err := x.at.prepareConn(c, p); err != nil {
		return 0, err
	}
	if err := x.numbers.MayTakeAll(n); err != nil {
		return 0, err
	}
	if p.Key != nil {
		modes := func() (state.InsertModes, error) { return x.at.insertModes(c, p.shape.Words) }
		if n.Fill, err = p.FillKeys(e, p.shape.Words, modes); err != nil {
			return 0, err
		}
	}
	if n.Block != nil {
		err = x.planning.countable(c, n.Block, p.shape.Words)
	}
	return previous, err
}

// write takes the numbers of an execution, and writes it with them to the scratch buffer.
func (x *executor) write(p *prepared, e *params.Execution, n *keys.Numbers, previous uint64) error {
	values, err := x.numbers.All(n)
	if err != nil {
		return err
	}
	x.relay.scratch, err = p.Append(append(x.relay.scratch[:0], 0, 0, 0, 0), p.backendID, e, x.client.attributed, values, previous)
	if e.Bulk() {
		n.InsertID = 0
		p.Filling, n.Fill = nil, nil // it may cover very many rows, and does not run again
	}
	if err != nil {
		return err
	}
	return x.relay.frame()
}

// executeRows executes a statement whose rows get numbers, and that has no hidden parameters.
func (x *executor) executeRows(p *prepared, payload []byte) error {
	if err := p.rowsExecutable(payload, x.answers.mayOmitMetadata()); err != nil {
		return x.at.dropLongData(p, err)
	}
	p.toServer(payload[1:])
	c, err := x.at.connFor(p)
	if err != nil {
		return x.at.dropLongData(p, err)
	}
	p.LongSent = false
	x.state.LastAnswer = state.ByServer
	if err := x.relay.exchangeRows(c, x.relay.batch.command(), p.numbers.Rows, true); err != nil {
		return err
	}
	x.noteExecuted(c, p)
	return nil
}

// fillCalls takes from an execution the parameters of the calls in a statement that the proxy
// answers.
func (x *executor) fillCalls(st *statement.Statement, p *prepared, payload []byte, f *plan.Facts) error {
	defer p.ForgetLong()
	e, err := x.cutExecution(p, payload)
	if err != nil {
		return err
	}
	values := p.Arguments(&e, 0)
	for i := range st.Calls {
		call := &st.Calls[i]
		from := params.ArgumentOf(call)
		if !from.Any() {
			continue
		}
		a := plan.Slot{Func: call.Func, Sequence: call.Name, Count: call.Count, Set: call.Set}
		if err := params.FillIn(&a, from, values, x.planning.nameOf); err != nil {
			return err
		}
		of := f.NameOf(i)
		of.Given, of.Named = a, from.Named()
	}
	return nil
}
