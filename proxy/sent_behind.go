package proxy

import (
	"encoding/binary"
	"errors"
	"time"

	"seqproxy/protocol"
	"seqproxy/proxy/params"
	"seqproxy/proxy/plan"
	"seqproxy/statement"
)

// errSentBehind is the end of a session whose client has sent on behind a command that did
// not come to its server, without waiting for the answer. A server does not fail BEGIN: to
// go on would run what was meant to be in a transaction outside of it.
var errSentBehind = errors.New("client had sent on behind a command that did not come to its server")

// othersDepend says whether what comes behind the command being handled may do something
// else without it.
func (s *session) othersDepend() bool {
	if len(s.batch.payload) == 0 { // it was too long to be read
		return true
	}
	kind, words := statement.Other, statement.Words(0)
	switch protocol.Command(s.batch.payload[0]) {
	case protocol.ComQuery:
		if sql, ok := textOf(s.batch.payload, s.login.Capabilities.Has(protocol.QueryAttributes)); ok {
			var st statement.Statement
			st.Analyze(sql, s.state.Mode)
			kind, words = st.Kind, st.Words
		}
	case protocol.ComStmtExecute, protocol.ComStmtBulkExecute:
		if len(s.batch.payload) < params.ExecuteHead {
			return false
		}
		if p := s.preparedAs(binary.LittleEndian.Uint32(s.batch.payload[1:])); p != nil {
			kind, words = p.shape.Kind, p.shape.Words
		}
	case protocol.ComStmtPrepare, protocol.ComPing, protocol.ComStatistics, protocol.ComFieldList, protocol.ComProcessInfo:
		return false
	}
	shape := plan.Traits{Kind: kind, Words: words}
	return !shape.LeavesNothing()
}

// sentBehind says whether the client is known to have sent on behind the command being handled:
// what is there before the answer is sent was sent without it. What was sent without it and arrives
// later cannot be told from what the client sends after it has read the answer, by nothing in the
// protocol (nor by what TCP has acknowledged, which is what the client's machine has received, not
// what the client has read). So this looks only for a moment.
func (s *session) sentBehind() bool {
	if s.batch.more() {
		return true
	}
	if s.client.until(time.Now().Add(lastCommand)) != nil {
		return false // it has ended, as is seen soon
	}
	_ = s.client.Fill() // likewise
	_ = s.client.until(time.Time{})
	return s.batch.more()
}
