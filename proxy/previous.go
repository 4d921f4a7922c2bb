package proxy

import (
	"seqproxy/protocol"
	"seqproxy/proxy/plan"
	"seqproxy/statement"
)

// askPrevious returns LAST_INSERT_ID() for a statement that takes numbers as well. To
// ask the server changes what it says of the last statement.
func (a *attachment) askPrevious(words statement.Words) (uint64, error) {
	if value, ok := a.state.LastID.Known(); ok {
		return value, nil
	}
	if words&(statement.ReadsRowCount|statement.ReadsFoundRows|statement.ReadsWarnings) != 0 {
		return 0, protocol.NotSupported("NEXTVAL, LAST_INSERT_ID() and what the last statement left (ROW_COUNT(), FOUND_ROWS(), warnings) " +
			"in one statement is not supported: keep one of them in a variable first")
	}
	return a.askLastID(a.connBy(a.state.LastID.Holder))
}

// previousFor is askPrevious where a text's first statement needs it.
func (p *planning) previousFor(st *statement.Statement, a *plan.Action) (uint64, error) {
	if !a.Previous {
		return 0, nil
	}
	return p.at.askPrevious(st.Words)
}
