package plan

import (
	"seqproxy/statement"
)

// Traits are what an execution needs of the statement's text.
type Traits struct {
	Plain         bool // may go in one write with others
	MovesLastID   bool
	readsLastID   bool
	readsLast     bool // reads what the last statement left
	Explained     bool // see [statement.Statement.ExplainsID]
	ChangesTables bool // see [statement.Statement.ChangesTables]
	Kind          statement.Kind
	Words         statement.Words
	Runs          statement.Runs
}

// TraitsOf returns the traits of an analysed text.
func TraitsOf(st *statement.Statement) Traits {
	reads := st.MayReadLastStatement()
	return Traits{
		Kind: st.Kind, Words: st.Words, Runs: st.Runs,
		Plain: st.Plain(),
		// INTO leaves a row count, which a later LAST_INSERT_ID(n) would change.
		MovesLastID:   st.MayChangeLastInsertID() || st.Words&statement.Into != 0,
		readsLast:     reads,
		Explained:     st.ExplainsID(),
		ChangesTables: st.ChangesTables(),
		readsLastID:   reads && readsLastID(st),
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
