package proxy

import (
	"strconv"

	"seqproxy/backend"
	"seqproxy/statement"
)

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
		if last := s.connBy(s.state.lastConn); last != nil && last != c && t.readsCounts() {
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
	return l.travels(idOfConn(c)) && t.words&(statement.ReadsWarnings|statement.ReadsFoundRows) == statement.ReadsWarnings && t.kind != statement.Show && !c.Hello().MariaDB &&
		(c.Answer.Warnings > 0 || c.Answer.ErrCode != 0)
}

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
	case l.holder == idOfConn(c):
		return nil
	case l.holder == 0:
		l.holder = idOfConn(c)
		return nil
	default:
		holder := s.connBy(l.holder)
		err := s.enterBoth(c.Shard(), holder.Shard())
		if err == nil {
			value, err = s.askLastID(holder)
		}
		if err != nil {
			return err
		}
	}
	counts := !c.Answer.Rows && c.Answer.ErrCode == 0
	text, then := l.travel(value, keep, counts, c.Hello().MariaDB)
	if _, err := s.ownQuery(c, text); err != nil {
		return err
	}
	*l = lastInsertID{holder: idOfConn(c)}
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
	switch s.state.lastOwn {
	case ownNothing:
		return nil
	case ownRows:
		if selected {
			return nil
		}
	case ownError:
		return s.raise(c, s.state.lastError)
	case ownTableRows, ownTableAnswer:
		return s.bringWarning(c)
	}
	_, err := s.ownQuery(c, s.state.standsFor())
	return err
}
