package plan

import (
	"seqproxy/statement"
)

// Traits are what an execution needs of the statement's text.
type Traits struct {
	Plain       bool // may go in one write with others
	MovesLastID bool
	readsLastID bool
	readsLast   bool // reads what the last statement left
	Explained   bool // see ExplainsID
	Kind        statement.Kind
	Words       statement.Words
	Runs        statement.Runs
}

// TraitsOf returns the traits of an analysed text.
func TraitsOf(st *statement.Statement) Traits {
	reads := st.MayReadLastStatement()
	return Traits{
		Kind: st.Kind, Words: st.Words, Runs: st.Runs,
		Plain: st.Plain(),
		// INTO leaves a row count, which a later LAST_INSERT_ID(n) would change.
		MovesLastID: st.MayChangeLastInsertID() || st.Words&statement.Into != 0,
		readsLast:   reads,
		Explained:   ExplainsID(st),
		readsLastID: reads && readsLastID(st),
	}
}

// readsLastID reports whether a statement that may read what the last one left may read
// LAST_INSERT_ID(), and not just row counts or warnings.
func readsLastID(st *statement.Statement) bool {
	return st.Words&statement.ReadsLastInsertID != 0 || st.Words&statement.ReadsCounts == 0 &&
		st.Kind != statement.ShowWarnings && st.Kind != statement.GetDiagnostics
}

// readsCounts reports whether the statement names row counts or warnings.
func (t *Traits) readsCounts() bool {
	return t.Words&statement.ReadsCounts != 0 ||
		t.Kind == statement.ShowWarnings || t.Kind == statement.GetDiagnostics
}

// ExplainsID reports whether an insert id is expected of a statement: it says LAST_INSERT_ID(n), or
// the tables that it inserts into are known. Bound ones among them were planned before.
func ExplainsID(st *statement.Statement) bool {
	hidden := statement.Opaque
	switch {
	case st.Kind == statement.Multi: // any of the statements may have given it
		hidden |= statement.VersionedComment
	case st.Kind == statement.Set && len(st.Tables) > 0: // SET STATEMENT ... FOR INSERT
		hidden = 0
	}
	return st.Words&hidden == 0 && (len(st.Tables) > 0 || st.Words&statement.SetsLastInsertID != 0)
}

// LeavesNothing reports whether a statement can run on another shard than the session's: nothing
// reads its effects later, except rows and LAST_INSERT_ID().
func (t *Traits) LeavesNothing() bool {
	const state = statement.TemporaryTable | statement.UserLock | statement.TableLock | statement.GlobalLock | statement.HandlerOpen |
		statement.SQLPrepare | statement.SetsUserVariable | statement.SetsUserLiteral | statement.Opaque
	switch t.Kind {
	case statement.Select, statement.Insert, statement.Replace, statement.Update, statement.Delete, statement.With,
		statement.Values, statement.Show, statement.Explain, statement.Do, statement.OtherDDL, statement.CreateStored:
		return t.Words&state == 0
	}
	return false
}
