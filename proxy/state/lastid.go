package state

import (
	"strconv"
)

// LastInsertID is where the session's LAST_INSERT_ID() is. It belongs to the
// backend connection that ran the last statement which could move it, except for
// a number that was given by a SELECT which the proxy answered itself: that is
// pending until a statement may read it, or move it.
type LastInsertID struct {
	Pending bool
	Value   uint64 // of pending
	Rows    bool   // the server has sent rows since the proxy's last row, and counted them
	Holder  ConnID // 0: nowhere yet, the value is 0
	// Inserted: the server's last statement put one row in, whose key value is; ROW_COUNT()
	// is 1 there.
	Inserted bool
}

// Given takes note of a number that only the proxy knows.
func (l *LastInsertID) Given(n uint64) {
	l.Pending, l.Value, l.Rows, l.Inserted = true, n, false, false
}

// GivenInOK is Given for a number that came in an OK, without a row.
func (l *LastInsertID) GivenInOK(n uint64) {
	l.Pending, l.Value, l.Rows, l.Inserted = true, n, l.Rows || !l.Pending, false
}

// Answered takes note of a server's answer, which may have had rows.
func (l *LastInsertID) Answered(rows bool) {
	l.Rows = l.Rows || rows
	l.Inserted = false
}

// Get returns the value if it is known without asking a server.
func (l *LastInsertID) Get() (value uint64, ok bool) {
	if l.Pending {
		return l.Value, true
	}
	return 0, l.Holder == 0
}

// rowCountVariable takes a value that nobody asks for: no other statement without a table
// makes ROW_COUNT() 1. No client's variable is called so.
const rowCountVariable = "@`seqproxy: row count`"

// Travel is what makes LAST_INSERT_ID() on a server what it is for the session: the value in a
// text, and what is to be run then to keep the rest ("": nothing). With keep, what the last
// statement left there stays: its row counts and warnings; counts says that it left row counts, as
// one without rows and without an error does.
//
// Neither SELECT nor DO changes the warnings. SELECT makes FOUND_ROWS() 1, which it is if this
// pending number was the last row sent, and ROW_COUNT() -1, which it is after rows and errors. DO
// leaves FOUND_ROWS() as it is and makes ROW_COUNT() 0, which it is after other statements that do
// not move LAST_INSERT_ID(). With MySQL that is SET, and either clears the warnings.
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
			then = "SHOW WARNINGS LIMIT 0" // makes ROW_COUNT() -1 and leaves the rest
		}
		return text, then
	case keep && counts:
		then = "DO 0"
	}
	return "SELECT LAST_INSERT_ID(" + number + ") LIMIT 1", then // sql_select_limit may be 0
}

// Travels says whether LAST_INSERT_ID() would have to be brought to a connection.
func (l *LastInsertID) Travels(to ConnID) bool {
	return l.Pending || l.Holder != 0 && l.Holder != to
}

// StandsFor is a statement that leaves on a server what the session's last one would have left,
// which was answered here; "" if it was not, or was an error, or is one that begins the warnings
// anew.
func (st *State) StandsFor() string {
	switch st.LastAnswer {
	case OurRows:
		return "SELECT 1 LIMIT 1"
	case OurOK:
		return "DO 0"
	case OurChange:
		// A derived table makes both kinds of servers clear the warnings, as a change of a
		// table does. INTO alone leaves a row count, which is 1.
		if st.LastChanged > 0 {
			return "SELECT 1 INTO " + rowCountVariable + " FROM (SELECT 1) AS seqproxy LIMIT 1"
		}
		return "DO (SELECT 1 FROM (SELECT 1) AS seqproxy)"
	}
	return ""
}
