package session

import (
	"bytes"
	"errors"
	"slices"

	"github.com/go-mysql-org/go-mysql/mysql"

	"seqproxy/protocol"
	"seqproxy/statement"
)

// This file keeps texts that the proxy has not read to their end, and that could put rows into
// any table, from a shard whose columns are filled from sequences: the server would make the
// keys itself.

// boundHere reports whether a column on the current shard is filled from a sequence, or that is
// not known yet.
func (f *facts) boundHere() bool {
	if f.at.routes.Default() == nil {
		return false
	}
	if f.ownersUnknown() != nil {
		return true
	}
	return f.at.set.bound().bindsOn(f.at.routes.ForSchema(f.state.Schema), f.at.routes)
}

// unreadRows answers a text that could bring rows in and is not read to its end, on a shard with
// bound columns. The error is the server's if it does not take the text at all.
func (p *planning) unreadRows(sql []byte) error {
	if err := p.ownersUnknown(); err != nil {
		return err
	}
	if !p.severalIn(sql) {
		c, err := p.at.Attach()
		if err != nil {
			return err
		}
		var refused *protocol.ServerError
		if err := p.relay.tryPrepare(c, sql); err != nil && !(errors.As(err, &refused) && refused.Code == mysql.ER_UNSUPPORTED_PS) {
			return err
		}
	}
	return errUnread
}

var errUnread = protocol.NotSupported("a text that may insert rows and is not understood to its end is not supported where columns are filled from sequences (OWNED BY or [[bind]]): " +
	"write INSERT, REPLACE or LOAD DATA as a statement of its own, without control characters and in utf8mb4")

// severalIn reports whether a server may take a text for more than one statement.
func (f *facts) severalIn(sql []byte) bool {
	return f.severalAgreed() && bytes.IndexByte(bytes.TrimRight(sql, "; \t\n\v\f\r\x00"), ';') >= 0
}

// mayBringRows reports whether the text just analysed could put rows into tables that are not
// known. That matters where boundHere says so.
func (p *planning) mayBringRows(sql []byte) bool {
	st := &p.stmt
	return st.Words&statement.MayBringRows != 0 && (st.Kind != statement.CreateStored || p.severalIn(sql))
}

// meetOwners is awaitOwners if the text just analysed may put rows into tables.
func (p *planning) meetOwners(sql []byte) {
	if p.at.routes.Default() == nil {
		return
	}
	into := func(t statement.TableRef) bool { return t.Kind != statement.Update }
	if slices.ContainsFunc(p.stmt.Tables, into) || p.mayBringRows(sql) {
		p.awaitOwners()
	}
}
