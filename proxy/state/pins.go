package state

import (
	"strings"

	"seqproxy/statement"
)

// Pin is a reason why a session must keep its connection: it has something there that no other
// connection can get. A session keeps its connections until its end in any case. With a pin it
// cannot use another shard.
type Pin uint8

// The reasons to pin.
const (
	PinTransaction     Pin = iota // a transaction is open
	PinNextTransaction            // SET TRANSACTION is in force for the next one
	PinTemporaryTable
	PinUserLock
	PinTableLock
	PinGlobalLock
	PinHandler
	PinSQLPrepare
	PinUserVariable
	PinVariableName
	PinRole
	PinInsertID
	PinTimestamp
	PinRandSeed
	PinPseudoThreadID
	PinOpaque
	PinCount
)

var pinWords = [PinCount]struct{ name, words string }{
	PinTransaction:     {"transaction", "a transaction is open"},
	PinNextTransaction: {"set_transaction", "SET TRANSACTION was said of the next transaction"},
	PinTemporaryTable:  {"temporary_table", "a temporary table was created"},
	PinUserLock:        {"user_lock", "a lock was taken with GET_LOCK"},
	PinTableLock:       {"table_lock", "LOCK TABLES is in force"},
	PinGlobalLock:      {"global_lock", "FLUSH TABLES WITH READ LOCK is in force"},
	PinHandler:         {"handler", "a HANDLER is open"},
	PinSQLPrepare:      {"sql_prepare", "a statement was prepared with PREPARE"},
	PinUserVariable:    {"user_variable", "a user variable was set to something else than a literal, or to a long one"},
	PinVariableName:    {"variable_name", "a user variable was set whose name is not ASCII"},
	PinRole:            {"role", "SET ROLE was used"},
	PinInsertID:        {"insert_id", "the variable insert_id was set"},
	PinTimestamp:       {"timestamp", "the variable timestamp was set"},
	PinRandSeed:        {"rand_seed", "the variable rand_seed1 or rand_seed2 was set"},
	PinPseudoThreadID:  {"pseudo_thread_id", "the variable pseudo_thread_id was set"},
	PinOpaque:          {"opaque", "a statement may have changed anything (CALL, XA, several statements, not all DML, or one not understood)"},
}

// String returns the reason's name in metrics and tables.
func (p Pin) String() string { return pinWords[p].name }

// Words returns the reason in words for users.
func (p Pin) Words() string { return pinWords[p].words }

// Pins is a set of reasons.
type Pins uint32

func (s Pins) Has(p Pin) bool { return s&(1<<p) != 0 }

// List returns the reasons in the set, or nil.
func (s Pins) List() (list []Pin) {
	for p := range PinCount {
		if s.Has(p) {
			list = append(list, p)
		}
	}
	return list
}

func (s Pins) Words() string {
	var all []string
	for _, p := range s.List() {
		all = append(all, p.Words())
	}
	return strings.Join(all, "; ")
}

// pin adds a reason to keep the connection.
func (st *State) pin(why Pin) { st.Pins |= 1 << why }

// Pinned reports whether a reason was added.
func (st *State) Pinned(why Pin) bool { return st.Pins.Has(why) }

// unpin removes a reason.
func (st *State) unpin(why Pin) { st.Pins &^= 1 << why }

// PinFor adds the reasons that a statement may have caused.
func (st *State) PinFor(kind statement.Kind, words statement.Words) {
	for _, r := range [...]struct {
		words statement.Words
		why   Pin
	}{
		{statement.TemporaryTable, PinTemporaryTable},
		{statement.UserLock, PinUserLock},
		{statement.TableLock, PinTableLock},
		{statement.GlobalLock, PinGlobalLock},
		{statement.HandlerOpen, PinHandler},
		{statement.SQLPrepare, PinSQLPrepare},
		{statement.SetsUserVariable, PinUserVariable},
		{statement.Opaque, PinOpaque},
	} {
		if words&r.words != 0 {
			st.pin(r.why)
		}
	}
	if words&statement.Opaque != 0 { // also for a SET after a CREATE PROCEDURE
		st.LoseMode()
	}
	switch kind {
	case statement.Other, statement.Call, statement.Multi, statement.ExecuteImmediate, statement.Execute, statement.XA:
		if words&statement.PlainParts == 0 {
			st.pin(PinOpaque)
			st.LoseMode()
		}
	case statement.Begin: // releases such locks
		st.unpin(PinTableLock)
	case statement.UnlockTables:
		st.unpin(PinTableLock)
		st.unpin(PinGlobalLock)
	case statement.Commit, statement.Rollback:
		st.NextTransaction = false
	}
}
