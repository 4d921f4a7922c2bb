package state

import (
	"strings"

	"github.com/go-mysql-org/go-mysql/mysql"

	"seqproxy/protocol"
	"seqproxy/statement"
)

// Effect is what the present statement may leave on its connection. Apply records it when the
// answer has come: a statement that the server refused before it ran leaves nothing.
type Effect struct {
	Kind  statement.Kind // with words and runs as in statement.Statement
	Words statement.Words
	Runs  statement.Runs
	// Procedure is the name in a CALL, "schema.name"; "": unknown.
	Procedure string
	// unknownProcedure says that the server has no procedure of that name.
	unknownProcedure bool
	unparsed         bool // the server raised the error while it read the text
	unlocks          bool // LOCK TABLES failed after it had released the earlier locks
	Expected         bool // there is a statement
}

// ProcedureOf returns the procedure that a text calls first, as servers name it in an error.
func (st *State) ProcedureOf(s *statement.Statement) string {
	if s.Procedure == nil {
		return ""
	}
	schema := st.Schema
	if s.ProcedureSchema != nil {
		schema = string(s.ProcedureSchema)
	}
	return schema + "." + string(s.Procedure)
}

// Refused records what the text of an error says about the statement.
func (e *Effect) Refused(by *protocol.ServerError) {
	e.unparsed = isUnparsed(by)
	e.unknownProcedure = e.Procedure != "" && by.Code == mysql.ER_SP_DOES_NOT_EXIST &&
		strings.Contains(strings.ToLower(by.Message), strings.ToLower("PROCEDURE "+e.Procedure+" does not exist"))
}

// Apply records the effects of an answered statement, which are expected. first and last are the
// codes of an error that is the first answer, or the last; else 0. Apply may be called again for a
// statement that is sent again.
func (st *State) Apply(e Effect, first, last uint16) {
	switch e.Kind {
	case statement.Multi, statement.Other, statement.CreateStored, statement.Execute, statement.ExecuteImmediate:
		st.SchemaUnknown = st.SchemaUnknown || e.Words&statement.PlainParts == 0
	case statement.Set:
		st.SchemaUnknown = st.SchemaUnknown || e.Words&statement.Opaque != 0
	}
	if last == 0 {
		st.transacted(e.Kind, e.Words)
	}
	if first != 0 {
		e = e.after(first, st.Pins)
	}
	if e.Expected {
		st.PinFor(e.Kind, e.Words)
	}
	if e.unlocks {
		st.unpin(PinTableLock)
	}
}

// after returns what a statement may leave whose first answer is an error: the text's first
// statement has failed, and no later one ran. If nothing is expected, the error proves that nothing
// was left. In doubt something was.
func (e Effect) after(code uint16, pinned Pins) Effect {
	nothing := Effect{}
	if e.Runs == statement.RunsOthers {
		switch {
		case e.unknownProcedure:
			return nothing
		case e.Kind == statement.Execute && code == mysql.ER_UNKNOWN_STMT_HANDLER && !pinned.Has(PinSQLPrepare) && !pinned.Has(PinOpaque):
			return nothing // no statement was prepared
		}
		return e
	}
	if e.unparsed || e.Runs == statement.RunsItself && (unparsed[code] != "" || unresolved(code)) {
		return nothing
	}
	const state = statement.TemporaryTable | statement.UserLock | statement.TableLock | statement.GlobalLock | statement.HandlerOpen |
		statement.SQLPrepare | statement.SetsUserVariable | statement.Opaque | statement.CallsProcedure
	switch e.Kind {
	case statement.Multi:
		if e.Words&state == 0 {
			return nothing
		}
	// These fail as a whole, for any reason. The effects of their expressions stay.
	case statement.CreateTemporaryTable, statement.OtherDDL:
		e.Words &^= statement.TemporaryTable
	case statement.LockTables:
		e.Words &^= statement.TableLock
		e.unlocks = code == mysql.ER_NO_SUCH_TABLE || code == mysql.ER_BAD_DB_ERROR
	case statement.Flush:
		e.Words &^= statement.GlobalLock
	case statement.Handler:
		e.Words &^= statement.HandlerOpen
	case statement.Prepare, statement.Deallocate:
		e.Words &^= statement.SQLPrepare
	case statement.CreateStored, statement.XA, statement.UnlockTables:
		return nothing
	case statement.Set:
		if e.Words&(statement.UserLock|statement.ReadsUserVariable) == 0 {
			// The text may have @x :=.
			e.Words &^= statement.SetsUserVariable
		}
	}
	return e
}

// unparsed are the errors that servers raise while they read a text, each with the beginning of its
// message. Routines and triggers can raise any error by SIGNAL, so the code proves something only
// without them. A message in another language counts as theirs.
var unparsed = map[uint16]string{
	mysql.ER_PARSE_ERROR:                    "You have an error in your SQL syntax",
	mysql.ER_SYNTAX_ERROR:                   "You have an error in your SQL syntax",
	mysql.ER_EMPTY_QUERY:                    "Query was empty",
	mysql.ER_WRONG_PARAMCOUNT_TO_NATIVE_FCT: "Incorrect parameter count in the call to native function",
}

// isUnparsed reports whether a server raised an error while it read a text.
func isUnparsed(e *protocol.ServerError) bool {
	begin, ok := unparsed[e.Code]
	return ok && strings.HasPrefix(e.Message, begin)
}

// unresolved reports whether servers raise an error while they look up the names in a text.
func unresolved(code uint16) bool {
	switch code {
	case mysql.ER_NO_DB_ERROR, mysql.ER_BAD_DB_ERROR, mysql.ER_BAD_FIELD_ERROR, mysql.ER_UNKNOWN_TABLE, mysql.ER_NO_SUCH_TABLE,
		mysql.ER_SP_DOES_NOT_EXIST, mysql.ER_FUNC_INEXISTENT_NAME_COLLISION, mysql.ER_UNKNOWN_SYSTEM_VARIABLE:
		return true
	}
	return false
}
