package proxy

import (
	"strconv"

	"seqproxy/backend"
	"seqproxy/statement"
)

// lastInsertID is where the session's LAST_INSERT_ID() is. It belongs to the
// backend connection that ran the last statement which could move it, except for
// a number that was given by a SELECT which the proxy answered itself: that is
// pending until a statement may read it, or move it.
type lastInsertID struct {
	pending bool
	value   uint64        // of pending
	rows    bool          // the server has sent rows since the proxy's last row, and counted them
	holder  *backend.Conn // nil: nowhere yet, the value is 0
	// inserted: the server's last statement put one row in, whose key value is; ROW_COUNT()
	// is 1 there.
	inserted bool
}

// given takes note of a number that only the proxy knows.
func (l *lastInsertID) given(n uint64) {
	l.pending, l.value, l.rows, l.inserted = true, n, false, false
}

// told is given for a number that came in an OK, without a row.
func (l *lastInsertID) told(n uint64) {
	l.pending, l.value, l.rows, l.inserted = true, n, l.rows || !l.pending, false
}

// answered takes note of a server's answer, which may have had rows.
func (l *lastInsertID) answered(rows bool) {
	l.rows = l.rows || rows
	l.inserted = false
}

// known returns the value if it is known without asking a server.
func (l *lastInsertID) known() (value uint64, ok bool) {
	if l.pending {
		return l.value, true
	}
	return 0, l.holder == nil
}

// bring makes true on c what a statement may look at: LAST_INSERT_ID(), and what the
// session's last statement left (warnings, row counts), if the proxy answered that.
func (s *session) bring(c *backend.Conn, t stmtTraits) error {
	id := s.set.LastInsertIDExact || t.movesLastID || t.readsLastID
	if !t.readsLast {
		if !id {
			return nil
		}
		return s.bringLastID(c, false)
	}
	if s.state.lastOwn == ownNothing {
		if last := s.state.lastConn; last != nil && last != c && t.readsCounts() {
			return notSupported("the last statement was prepared on shard %s and ran there: its row counts and warnings "+
				"cannot be read on shard %s", last.Shard().Name(), c.Shard().Name())
		}
		// The proxy's own row was the last one if the server has sent none since.
		stale := t.words&statement.ReadsFoundRows != 0 && s.state.lastID.pending && !s.state.lastID.rows
		if !id && !stale {
			return nil
		}
		if s.losesWarnings(c, t) {
			return notSupported("the last statement's warnings and a LAST_INSERT_ID() that this server does not know yet cannot be read by one statement: " +
				"read @@warning_count into a variable first")
		}
		if s.state.lastID.inserted && t.words&statement.ReadsFoundRows != 0 {
			if t.words&statement.ReadsRowCount != 0 {
				return notSupported("ROW_COUNT() and FOUND_ROWS() in one statement, right after an INSERT that might have changed or ignored its row " +
					"and whose key was filled in: SELECT ROW_COUNT() alone first")
			}
			s.state.lastID.inserted = false // FOUND_ROWS() is what is to stay
		}
		// A statement that names LAST_INSERT_ID() and no more needs no more.
		return s.bringLastID(c, t.readsCounts() || t.words&statement.ReadsLastInsertID == 0)
	}
	if s.state.lastOwn == ownChange && t.words&statement.ReadsRowCount != 0 && s.state.lastChanged > 1 {
		return notSupported("ROW_COUNT() in this statement, right after a ticket that was taken here: SELECT ROW_COUNT() alone first")
	}
	brought := s.state.lastID.pending
	if id || brought {
		if err := s.bringLastID(c, false); err != nil {
			return err
		}
	}
	return s.bringLastStatement(c, brought)
}

// losesWarnings says whether to bring LAST_INSERT_ID() to c would clear warnings that the
// statement reads: MySQL has no statement that sets the one and keeps the other. SHOW
// VARIABLES, which has the count among hundreds, shows none then.
// FOUND_ROWS() in the statement makes a warning of its own there, which clears the others.
func (s *session) losesWarnings(c *backend.Conn, t stmtTraits) bool {
	l := &s.state.lastID
	travels := l.pending || l.holder != nil && l.holder != c
	return travels && t.words&(statement.ReadsWarnings|statement.ReadsFoundRows) == statement.ReadsWarnings && t.kind != statement.Show && !c.Hello().MariaDB &&
		(c.Answer.Warnings > 0 || c.Answer.ErrCode != 0)
}

// rowCountVariable takes a value that nobody asks for: no other statement without a table
// makes ROW_COUNT() 1. No client's variable is called so.
const rowCountVariable = "@`seqproxy: row count`"

// bringLastID makes LAST_INSERT_ID() on c what it is for the session. It is called
// before a statement that may read or move it. The value travels in a statement
// that must have succeeded before the next is sent; it is never taken from an OK
// packet, whose insert id is something else in half the cases. With keep, what the
// last statement left on c is still there afterwards: its row counts and warnings.
func (s *session) bringLastID(c *backend.Conn, keep bool) error {
	l := &s.state.lastID
	value := l.value
	switch {
	case l.pending:
	case l.holder == c:
		return nil
	case l.holder == nil:
		l.holder = c
		return nil
	default:
		err := s.enterBoth(c.Shard(), l.holder.Shard())
		if err == nil {
			value, err = s.askLastID(l.holder)
		}
		if err != nil {
			return err
		}
	}
	// Neither SELECT nor DO changes the warnings. SELECT makes FOUND_ROWS() 1, which it is
	// if this pending number was the last row sent, and ROW_COUNT() -1, which it is
	// after rows and errors. DO leaves FOUND_ROWS() as it is and makes ROW_COUNT() 0,
	// which it is after other statements that do not move LAST_INSERT_ID(). With MySQL
	// that is SET, and either clears the warnings.
	number := strconv.FormatUint(value, 10)
	text, then := "SELECT LAST_INSERT_ID("+number+") LIMIT 1", "" // sql_select_limit may be 0
	counts := !c.Answer.Rows && c.Answer.ErrCode == 0
	switch {
	case keep && l.inserted && counts:
		text = "SELECT LAST_INSERT_ID(" + number + ") INTO " + rowCountVariable // makes ROW_COUNT() 1
	case l.pending && l.rows, keep && !l.pending:
		text = "DO LAST_INSERT_ID(" + number + ")"
		if !c.Hello().MariaDB {
			text = "SET @@session.last_insert_id = " + number
		}
		if keep && !counts {
			then = "SHOW WARNINGS LIMIT 0" // makes ROW_COUNT() -1 and leaves the rest
		}
	case keep && counts:
		then = "DO 0"
	}
	if _, err := s.ownQuery(c, text); err != nil {
		return err
	}
	*l = lastInsertID{holder: c}
	if then == "" {
		return nil
	}
	_, err := s.ownQuery(c, then)
	return err
}

// askLastID asks a connection for its LAST_INSERT_ID().
func (s *session) askLastID(c *backend.Conn) (uint64, error) {
	row, err := s.ownRow(c, "SELECT LAST_INSERT_ID()", 1, "LAST_INSERT_ID()")
	if err != nil {
		return 0, err
	}
	return strconv.ParseUint(string(row[0]), 10, 64)
}

// bringLastStatement makes what the server says of the session's last statement
// true when the proxy answered that statement itself. selected says that a SELECT of
// ours, which is what the answer stood for, has just run on c.
func (s *session) bringLastStatement(c *backend.Conn, selected bool) error {
	var sql string
	switch s.state.lastOwn {
	case ownNothing:
		return nil
	case ownRows:
		if selected {
			return nil
		}
		sql = "SELECT 1 LIMIT 1"
	case ownAnswer:
		sql = "DO 0"
	case ownChange:
		// A derived table makes both kinds of servers clear the warnings, as a change of a
		// table does. INTO alone leaves a row count, which is 1.
		sql = "DO (SELECT 1 FROM (SELECT 1) AS seqproxy)"
		if s.state.lastChanged > 0 {
			sql = "SELECT 1 INTO " + rowCountVariable + " FROM (SELECT 1) AS seqproxy LIMIT 1"
		}
	case ownError:
		return s.raise(c, s.state.lastError)
	case ownTableRows, ownTableAnswer:
		return s.bringWarning(c)
	}
	_, err := s.ownQuery(c, sql)
	return err
}
