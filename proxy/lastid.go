package proxy

import (
	"strconv"

	"seqproxy/backend"
	"seqproxy/proxy/state"
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
	if s.state.LastOwn == state.OwnNothing {
		if last := s.connBy(s.state.LastConn); last != nil && last != c && t.readsCounts() {
			return notSupported("the last statement was prepared on shard %s and ran there: its row counts and warnings "+
				"cannot be read on shard %s", last.Shard().Name(), c.Shard().Name())
		}
		// The proxy's own row was the last one if the server has sent none since.
		stale := t.words&statement.ReadsFoundRows != 0 && s.state.LastID.Pending && !s.state.LastID.Rows
		if !id && !stale {
			return nil
		}
		if s.losesWarnings(c, t) {
			return notSupported("the last statement's warnings and a LAST_INSERT_ID() that this server does not know yet cannot be read by one statement: " +
				"read @@warning_count into a variable first")
		}
		if s.state.LastID.Inserted && t.words&statement.ReadsFoundRows != 0 {
			if t.words&statement.ReadsRowCount != 0 {
				return notSupported("ROW_COUNT() and FOUND_ROWS() in one statement, right after an INSERT that might have changed or ignored its row " +
					"and whose key was filled in: SELECT ROW_COUNT() alone first")
			}
			s.state.LastID.Inserted = false // FOUND_ROWS() is what is to stay
		}
		// A statement that names LAST_INSERT_ID() and no more needs no more.
		return s.bringLastID(c, t.readsCounts() || t.words&statement.ReadsLastInsertID == 0)
	}
	if s.state.LastOwn == state.OwnChange && t.words&statement.ReadsRowCount != 0 && s.state.LastChanged > 1 {
		return notSupported("ROW_COUNT() in this statement, right after a ticket that was taken here: SELECT ROW_COUNT() alone first")
	}
	brought := s.state.LastID.Pending
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
	l := &s.state.LastID
	return l.Travels(idOfConn(c)) && t.words&(statement.ReadsWarnings|statement.ReadsFoundRows) == statement.ReadsWarnings && t.kind != statement.Show && !c.Hello().MariaDB &&
		(c.Answer.Warnings > 0 || c.Answer.ErrCode != 0)
}

// bringLastID makes LAST_INSERT_ID() on c what it is for the session. It is called
// before a statement that may read or move it. The value travels in a statement
// that must have succeeded before the next is sent; it is never taken from an OK
// packet, whose insert id is something else in half the cases. With keep, what the
// last statement left on c is still there afterwards: its row counts and warnings.
func (s *session) bringLastID(c *backend.Conn, keep bool) error {
	l := &s.state.LastID
	value := l.Value
	switch {
	case l.Pending:
	case l.Holder == idOfConn(c):
		return nil
	case l.Holder == 0:
		l.Holder = idOfConn(c)
		return nil
	default:
		holder := s.connBy(l.Holder)
		err := s.enterBoth(c.Shard(), holder.Shard())
		if err == nil {
			value, err = s.askLastID(holder)
		}
		if err != nil {
			return err
		}
	}
	counts := !c.Answer.Rows && c.Answer.ErrCode == 0
	text, then := l.Travel(value, keep, counts, c.Hello().MariaDB)
	if _, err := s.ownQuery(c, text); err != nil {
		return err
	}
	*l = state.LastInsertID{Holder: idOfConn(c)}
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
	switch s.state.LastOwn {
	case state.OwnNothing:
		return nil
	case state.OwnRows:
		if selected {
			return nil
		}
	case state.OwnError:
		return s.raise(c, s.state.LastError)
	case state.OwnTableRows, state.OwnTableAnswer:
		return s.bringWarning(c)
	}
	_, err := s.ownQuery(c, s.state.StandsFor())
	return err
}
