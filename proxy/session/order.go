package session

import (
	"encoding/binary"
	"errors"
	"fmt"
	"time"

	"seqproxy/protocol"
	"seqproxy/proxy/params"
	"seqproxy/proxy/plan"
	"seqproxy/statement"
)

// order gives the client its answers in the order of its commands.
type order struct{ *ground }

// answerError answers the command being handled with err, unless that ends the session. The client
// first gets the answers to earlier commands.
func (o *order) answerError(err error) error {
	if ends(err) {
		return err
	}
	o.numbers.Pending = "" // the answers before it have no place for it
	if err := o.relay.settle(); err != nil {
		return err
	}
	return o.failed(err)
}

// failed answers the command being handled with err, unless that ends the session.
func (o *order) failed(err error) error {
	if ends(err) {
		return err
	}
	o.at.tally.Refused()
	if endsRebound(err, o.state) {
		err = errReboundEnds
	}
	o.relay.refuse(err)
	if errors.Is(err, errReboundEnds) || errors.Is(err, errNotMoved) {
		_ = o.client.flush() // the session ends either way
		return err
	}
	if o.at.unreached && o.othersDepend() && o.sentBehind() {
		_ = o.client.flush() // the session ends either way
		return fmt.Errorf("%w: %w", errSentBehind, err)
	}
	return nil
}

// answerInOrder handles a command that needs no server, without waiting for earlier answers: it
// queues the new one among them, unless it is an error. In a transaction it waits all the same,
// because the answer has the session's status and an earlier command may end the transaction.
func (o *order) answerInOrder(handle func() error) error {
	if o.relay.batch.size == 0 || o.state.InTransaction() || !o.state.Status.Has(protocol.Autocommit) || o.relay.batch.full() {
		if err := o.relay.settle(); err != nil {
			return err
		}
		return handle()
	}
	mark := len(o.client.out)
	if err := handle(); err != nil {
		return err
	}
	o.numbers.Pending = ""
	o.relay.batch.addOurs(o.client.out[mark:])
	o.client.out = o.client.out[:mark]
	return nil
}

// othersDepend reports whether the commands after the one being handled may do something else if it
// does not run.
func (o *order) othersDepend() bool {
	if len(o.relay.batch.payload) == 0 { // too long to be read
		return true
	}
	kind, words := statement.Other, statement.Words(0)
	switch protocol.Command(o.relay.batch.payload[0]) {
	case protocol.ComQuery:
		if sql, ok := o.client.textOf(o.relay.batch.payload); ok {
			var st statement.Statement
			st.Analyze(sql, o.state.Mode)
			kind, words = st.Kind, st.Words
		}
	case protocol.ComStmtExecute, protocol.ComStmtBulkExecute:
		if len(o.relay.batch.payload) < params.ExecuteHead {
			return false
		}
		if p := o.at.preparedAs(binary.LittleEndian.Uint32(o.relay.batch.payload[1:])); p != nil {
			kind, words = p.shape.Kind, p.shape.Words
		}
	case protocol.ComStmtPrepare, protocol.ComPing, protocol.ComStatistics, protocol.ComFieldList, protocol.ComProcessInfo:
		return false
	}
	shape := plan.Traits{Kind: kind, Words: words}
	return !shape.LeavesNothing()
}

// sentBehind reports whether the client has certainly sent more after the command being handled,
// without its answer. Only bytes that are here before the answer goes out prove that. Later bytes
// look like a reaction to the answer, and neither MySQL's protocol nor TCP shows the difference. So
// sentBehind looks only for a moment.
func (o *order) sentBehind() bool {
	if o.relay.batch.more() {
		return true
	}
	if o.client.until(time.Now().Add(lastCommand)) != nil {
		return false // the session ends soon by itself
	}
	_ = o.client.Fill() // as above
	_ = o.client.until(time.Time{})
	return o.relay.batch.more()
}
