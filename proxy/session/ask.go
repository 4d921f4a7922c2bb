package session

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"seqproxy/backend"
	"seqproxy/protocol"
	"seqproxy/proxy/plan"
)

// askTimeout bounds a statement of ours on a client's connection.
const askTimeout = 30 * time.Second

// Ask runs a statement of ours on a connection of the session. If that breaks
// the connection the session ends, as it does with a statement of the client's. A
// SELECT must say LIMIT 1 to be sure of its row: the client may have set
// sql_select_limit to 0.
func (b *backends) Ask(c *backend.Conn, sql string) ([][][]byte, error) {
	var rows [][][]byte
	err := b.bounded(c, func() (err error) {
		rows, err = c.Query(sql)
		return err
	})
	return rows, err
}

// AskRow is Ask for a SELECT, without its LIMIT, of n values in one row. what
// they are is said when they are not there.
func (b *backends) AskRow(c *backend.Conn, sql string, n int, what string) ([][]byte, error) {
	rows, err := b.Ask(c, sql+" LIMIT 1")
	if err != nil {
		return nil, err
	}
	if len(rows) != 1 || len(rows[0]) != n {
		return nil, fmt.Errorf("shard %s does not tell %s", c.Shard().Name(), what)
	}
	return rows[0], nil
}

// runCommand is Ask for a command that is answered with OK.
func (b *backends) runCommand(c *backend.Conn, cmd protocol.Command, argument string) error {
	return b.bounded(c, func() error { return c.Command(cmd, argument) })
}

// raise makes an error the last one on c, as if the client's own statement had met
// with it. It is an error if the server raises another.
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
			e.Code, c.Shard().Name(), raised)
	case err != nil:
		return err
	}
	return protocol.NotSupported("the last statement was answered here with error %d, which shard %s does not take for an error",
		e.Code, c.Shard().Name())
}

// maxSignalText is the longest MESSAGE_TEXT.
const maxSignalText = 128

// bounded runs a command of ours on c, bounded in time.
func (b *backends) bounded(c *backend.Conn, run func() error) error {
	if err := c.SetDeadline(time.Now().Add(askTimeout)); err != nil {
		return b.lost(c, err, false)
	}
	begun := b.tally.Waits()
	err := run()
	b.tally.Waited(begun)
	var refused *protocol.ServerError
	if err != nil && !errors.As(err, &refused) {
		return b.lost(c, err, false)
	}
	if dlErr := c.SetDeadline(time.Time{}); dlErr != nil {
		return b.lost(c, dlErr, false)
	}
	return err
}

// literal writes a variable's value so that SET takes it: numbers bare, since
// numeric variables refuse strings.
func literal(value []byte) string {
	if value == nil {
		return "NULL"
	}
	for i, b := range value {
		if (b < '0' || b > '9') && b != '.' && (b != '-' || i > 0) || len(value) > 20 {
			return plan.Literal(string(value))
		}
	}
	if len(value) == 0 {
		return "''"
	}
	return string(value)
}

// limit cuts text to at most n bytes, between characters.
func limit(s string, n int) string {
	if len(s) <= n {
		return s
	}
	return strings.ToValidUTF8(s[:n], "")
}

// digitsInRows says whether numbers come in ASCII digits. MariaDB converts them to
// character_set_results.
func (b *backends) digitsInRows() (bool, error) {
	row, err := b.AskRow(b.cur, "SELECT 1", 1, "a number")
	return err == nil && string(row[0]) == "1", err
}
