package session

import (
	"strconv"

	"seqproxy/backend"
	"seqproxy/protocol"
	"seqproxy/proxy/plan"
	"seqproxy/proxy/state"
	"seqproxy/statement"
)

// bring makes true on c what a statement may look at: LAST_INSERT_ID(), and what the
// session's last statement left (warnings, row counts), if the proxy answered that.
func (a *attachment) bring(c *backend.Conn, t plan.Traits) error {
	b, refusal := plan.Bring(&t, a.state, plan.Server{
		Conn: idOfConn(c), MariaDB: c.Hello().MariaDB, Warned: c.Answer.Warnings > 0 || c.Answer.ErrCode != 0, Exact: a.set.lastInsertIDExact,
	})
	switch {
	case refusal.Why == plan.RanElsewhere:
		return protocol.NotSupported("the last statement was prepared on shard %s and ran there: its row counts and warnings "+
			"cannot be read on shard %s", a.connBy(a.state.LastConn).Shard().Name(), c.Shard().Name())
	case refusal.Why != plan.Granted:
		return protocol.NotSupported("%s", refusal.Text)
	}
	if b.OverRow {
		a.state.LastID.Inserted = false
	}
	if b.ID {
		if err := a.BringLastID(c, b.Keep); err != nil {
			return err
		}
	}
	if !b.Last {
		return nil
	}
	return a.bringLastStatement(c, b.Selected)
}

// BringLastID makes LAST_INSERT_ID() on c what it is for the session. It is called
// before a statement that may read or move it. The value travels in a statement
// that must have succeeded before the next is sent; it is never taken from an OK
// packet, whose insert id is something else in half the cases. With keep, what the
// last statement left on c is still there afterwards: its row counts and warnings.
func (a *attachment) BringLastID(c *backend.Conn, keep bool) error {
	l := &a.state.LastID
	value := l.Value
	switch {
	case l.Pending:
	case l.Holder == idOfConn(c):
		return nil
	case l.Holder == 0:
		l.Holder = idOfConn(c)
		return nil
	default:
		holder := a.connBy(l.Holder)
		err := a.enterBoth(c.Shard(), holder.Shard())
		if err == nil {
			value, err = a.askLastID(holder)
		}
		if err != nil {
			return err
		}
	}
	counts := !c.Answer.Rows && c.Answer.ErrCode == 0
	text, then := l.Travel(value, keep, counts, c.Hello().MariaDB)
	if _, err := a.Ask(c, text); err != nil {
		return err
	}
	*l = state.LastInsertID{Holder: idOfConn(c)}
	if then == "" {
		return nil
	}
	_, err := a.Ask(c, then)
	return err
}

// askLastID asks a connection for its LAST_INSERT_ID().
func (b *backends) askLastID(c *backend.Conn) (uint64, error) {
	row, err := b.AskRow(c, "SELECT LAST_INSERT_ID()", 1, "LAST_INSERT_ID()")
	if err != nil {
		return 0, err
	}
	return strconv.ParseUint(string(row[0]), 10, 64)
}

// bringLastStatement makes what the server says of the session's last statement
// true when the proxy answered that statement itself. selected says that a SELECT of
// ours, which is what the answer stood for, has just run on c.
func (a *attachment) bringLastStatement(c *backend.Conn, selected bool) error {
	switch a.state.LastAnswer {
	case state.ByServer:
		return nil
	case state.OurRows:
		if selected {
			return nil
		}
	case state.OurError:
		return a.raise(c, a.state.LastError)
	case state.OurTableRows, state.OurTableOK:
		return a.bringWarning(c)
	}
	_, err := a.Ask(c, a.state.StandsFor())
	return err
}

// bringBefore brings LAST_INSERT_ID() to the current connection before a statement
// that may move it, if it is not there.
func (a *attachment) bringBefore() error {
	if a.cur != nil && a.state.LastID.Holder == idOfConn(a.cur) && !a.state.LastID.Pending {
		return nil
	}
	if err := a.above.settle(); err != nil {
		return err
	}
	c, err := a.Attach()
	if err != nil {
		return err
	}
	return a.BringLastID(c, false)
}

// askPrevious returns LAST_INSERT_ID() for a statement that takes numbers as well. To
// ask the server changes what it says of the last statement.
func (a *attachment) askPrevious(words statement.Words) (uint64, error) {
	if value, ok := a.state.LastID.Get(); ok {
		return value, nil
	}
	if words&(statement.ReadsRowCount|statement.ReadsFoundRows|statement.ReadsWarnings) != 0 {
		return 0, protocol.NotSupported("NEXTVAL, LAST_INSERT_ID() and what the last statement left (ROW_COUNT(), FOUND_ROWS(), warnings) " +
			"in one statement is not supported: keep one of them in a variable first")
	}
	return a.askLastID(a.connBy(a.state.LastID.Holder))
}
