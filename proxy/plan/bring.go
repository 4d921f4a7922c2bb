package plan

import (
	"seqproxy/proxy/state"
	"seqproxy/statement"
)

// Bringing is what a server must get before it runs a statement that may read it.
type Bringing struct {
	ID       bool // LAST_INSERT_ID()
	Keep     bool // together with ID: keep what the last statement has left there
	OverRow  bool // together with Keep: except the ROW_COUNT() of an inserted row
	Last     bool // the effects of the last statement, which the proxy answered
	Selected bool // together with Last: the SELECT that brings ID has these effects
}

// Server describes the server that a statement goes to.
type Server struct {
	Conn    state.ConnID
	MariaDB bool
	Warned  bool // its last answer had warnings, or was an error
	Exact   bool // every statement needs LAST_INSERT_ID() there
}

// Texts of refusals.
const (
	ranElsewhere  = "the last statement ran on another shard" // the error names the shard
	losesWarnings = "the last statement's warnings and a LAST_INSERT_ID() that this server does not know yet cannot be read by one statement: " +
		"read @@warning_count into a variable first"
	twoCounts = "ROW_COUNT() and FOUND_ROWS() in one statement, right after an INSERT that might have changed or ignored its row " +
		"and whose key was filled in: SELECT ROW_COUNT() alone first"
	countOfTicket = "ROW_COUNT() in this statement, right after a ticket that was taken here: SELECT ROW_COUNT() alone first"
)

// Bring returns what a statement with these traits needs on its server. It changes nothing.
func Bring(t *Traits, st *state.State, on Server) (Bringing, Refusal) {
	there := st.LastID.Holder == on.Conn && !st.LastID.Pending
	id := !there && (on.Exact || t.MovesLastID || t.readsLastID)
	if !t.readsLast {
		return Bringing{ID: id}, Refusal{}
	}
	if st.LastAnswer != state.ByServer {
		counts := t.Words&statement.ReadsRowCount != 0 || t.Kind == statement.GetDiagnostics
		if counts && st.LastAnswer == state.OurChange && st.LastChanged > 1 {
			return Bringing{}, Refusal{Why: NotSupported, Text: countOfTicket}
		}
		pending := st.LastID.Pending
		return Bringing{ID: id || pending, Last: true, Selected: pending}, Refusal{}
	}
	if st.LastConn != 0 && st.LastConn != on.Conn && t.readsCounts() {
		return Bringing{}, Refusal{Why: RanElsewhere, Text: ranElsewhere}
	}
	// Without later rows from the server the last row is the proxy's own.
	stale := t.Words&statement.ReadsFoundRows != 0 && st.LastID.Pending && !st.LastID.Rows
	if !id && !stale {
		return Bringing{}, Refusal{}
	}
	if t.losesWarnings(st, on) {
		return Bringing{}, Refusal{Why: NotSupported, Text: losesWarnings}
	}
	// FOUND_ROWS() must stay, so ROW_COUNT() is lost.
	over := st.LastID.Inserted && t.Words&statement.ReadsFoundRows != 0
	if over && t.Words&statement.ReadsRowCount != 0 {
		return Bringing{}, Refusal{Why: NotSupported, Text: twoCounts}
	}
	// A statement that reads just LAST_INSERT_ID() needs nothing else.
	return Bringing{ID: true, Keep: t.readsCounts() || t.Words&statement.ReadsLastInsertID == 0, OverRow: over}, Refusal{}
}

// losesWarnings reports whether bringing LAST_INSERT_ID() to a server would clear warnings that the
// statement reads: MySQL has no statement that sets the one and keeps the other. SHOW VARIABLES,
// which has the count among hundreds of rows, then shows none. FOUND_ROWS() in the statement raises
// a warning of its own, which clears the others anyway.
func (t *Traits) losesWarnings(st *state.State, on Server) bool {
	return st.LastID.Travels(on.Conn) && t.Words&(statement.ReadsWarnings|statement.ReadsFoundRows) == statement.ReadsWarnings &&
		t.Kind != statement.Show && !on.MariaDB && on.Warned
}
