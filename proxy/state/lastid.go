package state

import (
	"strconv"
)

// LastInsertID says where the session's LAST_INSERT_ID() is. It belongs to the backend connection
// that ran the last statement that could change it. A number from a SELECT that the proxy answered
// itself is pending until a statement may read or change it.
type LastInsertID struct {
	Pending bool
	Value   uint64 // the pending number
	Rows    bool   // the server has sent rows since the proxy's last row, and counted them
	Holder  ConnID // 0: none yet, and the value is 0
	// Inserted reports whether the server's last statement inserted one row with the key Value.
	// ROW_COUNT() is 1 there.
	Inserted bool
}

// Given records a number that no server has yet.
func (l *LastInsertID) Given(n uint64) {
	l.Pending, l.Value, l.Rows, l.Inserted = true, n, false, false
}

// GivenInOK is Given for a number in an OK, without a row.
func (l *LastInsertID) GivenInOK(n uint64) {
	l.Pending, l.Value, l.Rows, l.Inserted = true, n, l.Rows || !l.Pending, false
}

// Get returns the value if no server must be asked for it.
func (l *LastInsertID) Get() (value uint64, ok bool) {
	if l.Pending {
		return l.Value, true
	}
	return 0, l.Holder == 0
}

// rowCountVariable receives a value that nothing reads: no other statement without a table makes
// ROW_COUNT() 1. No client has a variable of that name.
const rowCountVariable = "@`seqproxy: row count`"

// Travel returns a text that gives LAST_INSERT_ID() on a server the session's value, and a text to
// run then that restores the rest ("": none). keep preserves the row counts and warnings of the
// last statement there. counts says that it has row counts, as a statement without rows and errors
// does.
//
// Neither SELECT nor DO changes the warnings. SELECT makes FOUND_ROWS() 1, which it is if this
// pending number was the last row sent, and ROW_COUNT() -1, which it is after rows and errors. DO
// keeps FOUND_ROWS() and makes ROW_COUNT() 0, which it is after other statements that do not change
// LAST_INSERT_ID(). With MySQL that is SET, and either clears the warnings.
func (l *LastInsertID) Travel(value uint64, keep, counts, mariaDB bool) (text, then string) {
	number := strconv.FormatUint(value, 10)
	switch {
	case keep && l.Inserted && counts:
		// makes ROW_COUNT() 1
		return "SELECT LAST_INSERT_ID(" + number + ") INTO " + rowCountVariable, ""
	case l.Pending && l.Rows, keep && !l.Pending:
		text = "DO LAST_INSERT_ID(" + number + ")"
		if !mariaDB {
			text = "SET @@session.last_insert_id = " + number
		}
		if keep && !counts {
			then = "SHOW WARNINGS LIMIT 0" // makes ROW_COUNT() -1 and keeps the rest
		}
		return text, then
	case keep && counts:
		then = "DO 0"
	}
	return "SELECT LAST_INSERT_ID(" + number + ") LIMIT 1", then // sql_select_limit may be 0
}

// Travels reports whether LAST_INSERT_ID() must be brought to a connection.
func (l *LastInsertID) Travels(to ConnID) bool {
	return l.Pending || l.Holder != 0 && l.Holder != to
}

// StandsFor returns a statement that has the effects on a server that the session's last statement
// would have had. The proxy answered that. It returns "" if the server answered it, or it failed,
// or it resets the warnings itself.
func (st *State) StandsFor() string {
	switch st.LastAnswer {
	case OurRows:
		return "SELECT 1 LIMIT 1"
	case OurOK:
		return "DO 0"
	case OurChange:
		// A derived table makes both kinds of servers clear the warnings, as a change of a table
		// does. INTO alone makes the row count 1.
		if st.LastChanged > 0 {
			return "SELECT 1 INTO " + rowCountVariable + " FROM (SELECT 1) AS seqproxy LIMIT 1"
		}
		return "DO (SELECT 1 FROM (SELECT 1) AS seqproxy)"
	}
	return ""
}
