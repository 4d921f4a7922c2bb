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

// failures answers commands with errors, each after the answers to the commands before it.
type failures struct{ *ground }

// answerError answers the command being handled with err, unless that ends the session. The client
// first gets the answers to earlier commands.
func (f *failures) answerError(err error) error {
	if ends(err) {
		return err
	}
	f.numbers.Pending = "" // the answers before it have no place for it
	if err := f.relay.settle(); err != nil {
		return err
	}
	return f.failed(err)
}

// failed answers the command being handled with err, unless that ends the session.
func (f *failures) failed(err error) error {
	if ends(err) {
		return err
	}
	f.at.tally.Refused()
	if endsRebound(err, f.state) {
		err = errReboundEnds
	}
	f.relay.refuse(err)
	if errors.Is(err, errReboundEnds) || errors.Is(err, errNotMoved) {
		_ = f.client.flush() // the session ends either way
		return err
	}
	if f.at.unreached && f.othersDepend() && f.sentBehind() {
		_ = f.client.flush() // the session ends either way
		return fmt.Errorf("%w: %w", errSentBehind, err)
	}
	return nil
}

// othersDepend reports whether the commands after the one being handled may do something else if it
// does not run.
func (f *failures) othersDepend() bool {
	if len(f.relay.batch.payload) == 0 { // too long to be read
		return true
	}
	kind, words := statement.Other, statement.Words(0)
	switch protocol.Command(f.relay.batch.payload[0]) {
	case protocol.ComQuery:
		if sql, ok := f.client.textOf(f.relay.batch.payload); ok {
			var st statement.Statement
			st.Analyze(sql, f.state.Mode)
			kind, words = st.Kind, st.Words
		}
	case protocol.ComStmtExecute, protocol.ComStmtBulkExecute:
		if len(f.relay.batch.payload) < params.ExecuteHead {
			return false
		}
		if p := f.at.preparedAs(binary.LittleEndian.Uint32(f.relay.batch.payload[1:])); p != nil {
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
func (f *failures) sentBehind() bool {
	if f.relay.batch.more() {
		return true
	}
	if f.client.until(time.Now().Add(lastCommand)) != nil {
		return false // the session ends soon by itself
	}
	_ = f.client.Fill() // as above
	_ = f.client.until(time.Time{})
	return f.relay.batch.more()
}
