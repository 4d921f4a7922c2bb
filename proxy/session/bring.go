package session

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"seqproxy/backend"
	"seqproxy/protocol"
	"seqproxy/proxy/plan"
	"seqproxy/proxy/state"
	"seqproxy/statement"
)

// bring makes c show what a statement may read: LAST_INSERT_ID(), and what the session's last
// statement left (warnings, row counts) if the proxy answered that.
func (a *attachment) bring(c *backend.Conn, t plan.Traits) error {
	b, refusal := plan.Bring(&t, a.state, plan.Server{
		Conn: idOfConn(c), MariaDB: c.Hello.MariaDB, Warned: c.Answer.Warnings > 0 || c.Answer.ErrCode != 0, Exact: a.set.lastInsertIDExact,
	})
	switch {
	case refusal.Why == plan.RanElsewhere:
		return protocol.NotSupported("the last statement ran on shard %s: its row counts and warnings cannot be read on shard %s",
			a.connBy(a.state.LastConn).Shard.Name(), c.Shard.Name())
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

// BringLastID gives LAST_INSERT_ID() on c the session's value. Callers run it before a statement
// that may read or change it. The value travels in a statement that must succeed before the next is
// sent. It never comes from an OK packet, whose insert id is something else in half the cases. keep
// preserves the row counts and warnings of the last statement on c.
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
		err := a.enterBoth(c.Shard, holder.Shard)
		if err == nil {
			value, err = a.askLastID(holder)
		}
		if err != nil {
			return err
		}
	}
	counts := !c.Answer.Rows && c.Answer.ErrCode == 0
	text, then := l.Travel(value, keep, counts, c.Hello.MariaDB)
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

// bringLastStatement makes the server show the session's last statement as it was, if the proxy
// answered it. selected says that the SELECT that the answer stands for has just run on c.
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

// bringBefore brings LAST_INSERT_ID() to the current connection before a statement that may change
// it.
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

// askPrevious returns LAST_INSERT_ID() for a statement that takes numbers as well. The question
// changes what the server says about the last statement.
func (a *attachment) askPrevious(words statement.Words) (uint64, error) {
	if value, ok := a.state.LastID.Get(); ok {
		return value, nil
	}
	if words&statement.ReadsCounts != 0 {
		return 0, protocol.NotSupported("NEXTVAL, LAST_INSERT_ID() and what the last statement left (ROW_COUNT(), FOUND_ROWS(), warnings) " +
			"in one statement is not supported: keep one of them in a variable first")
	}
	return a.askLastID(a.connBy(a.state.LastID.Holder))
}

// bringWarning gives c the warnings and the ROW_COUNT() of a statement that answers.warn recorded,
// or those of an error and a ping behind it.
func (b *backends) bringWarning(c *backend.Conn) error {
	// A derived table makes both kinds of servers begin the warnings anew.
	sql, rows := "DO (SELECT 1 FROM (SELECT 1) AS seqproxy)", b.state.LastAnswer == state.OurTableRows
	if rows {
		sql = "SELECT 1 FROM (SELECT 1) AS seqproxy LIMIT 1"
	}
	if _, err := b.Ask(c, sql); err != nil || b.state.LastError == nil {
		return err
	}
	if err := b.raise(c, b.state.LastError); err != nil {
		return err
	}
	if rows {
		_, err := b.Ask(c, "SHOW WARNINGS LIMIT 0") // makes ROW_COUNT() -1 and keeps the rest
		return err
	}
	if isWarning(b.state.LastError) {
		return nil
	}
	return b.runCommand(c, protocol.ComPing, "") // makes ROW_COUNT() 0 and keeps the rest
}

// raise makes e the last error on c, as if the client's own statement had caused it. It fails if
// the server raises another.
func (b *backends) raise(c *backend.Conn, e *protocol.ServerError) error {
	_, err := b.Ask(c, fmt.Sprintf("SIGNAL SQLSTATE '%s' SET MYSQL_ERRNO = %d, MESSAGE_TEXT = %s",
		e.State, e.Code, plan.Literal(limit(strings.ToValidUTF8(e.Message, "?"), maxSignalText))))
	var raised *protocol.ServerError
	switch {
	case err == nil && isWarning(e):
		return nil
	case errors.As(err, &raised) && raised.Code == e.Code:
		return nil
	case errors.As(err, &raised):
		return protocol.NotSupported("the last statement was answered here with error %d, which shard %s cannot be told to tell of: %v",
			e.Code, c.Shard.Name(), raised)
	case err != nil:
		return err
	}
	return protocol.NotSupported("the last statement was answered here with error %d, which shard %s does not take for an error",
		e.Code, c.Shard.Name())
}

// maxSignalText is the longest MESSAGE_TEXT.
const maxSignalText = 128

// limit cuts s to at most n bytes, between characters.
func limit(s string, n int) string {
	if len(s) <= n {
		return s
	}
	return strings.ToValidUTF8(s[:n], "")
}
