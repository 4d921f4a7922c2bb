package session

import (
	"errors"

	"seqproxy/backend"
	"seqproxy/protocol"
	"seqproxy/proxy/plan"
	"seqproxy/statement"
	"seqproxy/statement/lex"
)

// This file says which tables of a text have a bound column.

// boundTables reports whether the text just analysed has an INSERT or REPLACE into a
// table with a bound column, as far as the name tells, or that is not known yet.
func (p *planning) boundTables() bool {
	if p.at.routes.Default() == nil {
		return false
	}
	var bound *bindings
	for i := range p.stmt.Tables {
		t := &p.stmt.Tables[i]
		if t.Kind == statement.Update {
			continue
		}
		if bound == nil {
			if p.at.set.owners.Owners() == nil && p.ownersUnknown() != nil {
				return true // planFilling tells the client
			}
			if bound = p.at.set.bound(); bound == nil {
				return false
			}
		}
		if len(bound.tables.Named(t.Name)) > 0 || !ascii(t.Name) {
			return true
		}
	}
	return false
}

// binding returns what is bound in a table of the current shard, or nil.
func (p *planning) binding(t *statement.TableRef) (*plan.Binding, error) {
	if err := p.factsOfTables(plan.Now); err != nil {
		return nil, err
	}
	for round := 0; ; round++ {
		b, v := p.planner.Bound(t, &p.stmt, p.state)
		if v.Refusal.Why == plan.Unread {
			return nil, errUnread // the text is not held, and cannot be shown to the server
		}
		if again, err := p.meet(&v, round, nil); !again {
			return b, err
		}
	}
}

// askSchema asks for the current schema.
func (b *backends) askSchema() error {
	row, err := b.AskRow(b.cur, "SELECT DATABASE()", 1, "the current schema")
	if err != nil {
		return err
	}
	b.state.Schema, b.state.SchemaUnknown = string(row[0]), false
	return nil
}

// boundLong refuses a text too long to be analysed that may put rows into a table with a bound
// column. sql is its beginning.
func (s *Session) boundLong(sql []byte) error {
	if s.routes.Default() != nil {
		s.awaitOwners()
	}
	if !s.boundHere() {
		return nil
	}
	if err := s.ownersUnknown(); err != nil {
		return err
	}
	c, err := s.Attach()
	if err != nil {
		return err
	}
	if s.severalAgreed() {
		if s.state.ModeUnknown || s.state.QuotesUnknown || s.state.EscapesUnknown {
			if err := s.askMode(c); err != nil {
				return err
			}
		}
		s.scan = &lex.Scan{Mode: s.state.Mode}
	}
	begins := statement.ReadBeginning(sql, s.state.Mode)
	s.explained = begins.Table != nil
	if begins.Table != nil {
		b, err := s.binding(begins.Table)
		if err != nil {
			return err
		}
		if b != nil {
			return protocol.NotSupported("an INSERT into %s, whose column %s is filled from sequence %s, that is longer than max_statement = %d bytes, or 16 MB: send fewer rows at once",
				b.Table, b.Column, b.Sequence, s.set.MaxStatement)
		}
	}
	if !begins.Certain {
		s.scan = nil
		return s.set.errLongUnread()
	}
	return nil
}

// errLongUnread is the error for a text that is too long to be held and may put rows into tables
// that are not known.
func (s *Settings) errLongUnread() error {
	return protocol.NotSupported("a text longer than max_statement = %d bytes, or 16 MB, that may insert rows where columns are filled from sequences (OWNED BY or [[bind]]) is not supported: "+
		"send a shorter one, or one statement that begins with INSERT, SELECT, UPDATE or DELETE", s.MaxStatement)
}

// errSecondStatement ends a session in which a text that was already on its way turns out to be
// of several statements. The server never gets the end of it, and runs nothing.
var errSecondStatement = errors.New("a long text of several statements, where columns are filled from sequences")

// scanned follows the part of a long text that stands in a piece of its packets. At what may be a
// second statement it closes c, and the rest of the text is only taken in. Not even COM_QUIT may
// come behind the beginning then: it could be the end of the text.
func (r *relay) scanned(c *backend.Conn, piece []byte) error {
	skip := min(r.scanFrom, len(piece))
	r.scanFrom -= skip
	if !r.scan.Next(piece[skip:]) {
		return nil
	}
	r.scan = nil
	r.at.forget(c)
	c.Close()
	return errSecondStatement
}
