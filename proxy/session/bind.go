package session

import (
	"bytes"
	"context"
	"slices"
	"strings"

	"github.com/go-mysql-org/go-mysql/mysql"

	"seqproxy/internal/logfield"
	"seqproxy/protocol"
	"seqproxy/proxy/plan"
	"seqproxy/proxy/stats"
	"seqproxy/sequence"
	"seqproxy/statement"
)

// Binding is a column that gets its numbers from a sequence.
type Binding = plan.Binding

// bindings are the columns that are bound. They do not change.
type bindings struct {
	tables plan.Bindings
	owners *sequence.Owners // that it was made of, beside the configuration; nil: not known yet
}

// newBindings makes bindings of those of the configuration, and of owners. Of several
// that name a table the first counts.
func newBindings(configured []Binding, owners *sequence.Owners) *bindings {
	b := &bindings{tables: make(plan.Bindings), owners: owners}
	for _, one := range configured {
		b.tables.Add(one)
	}
	if owners != nil {
		for _, o := range owners.List {
			b.tables.Add(Binding{Schema: o.Schema, Table: o.Table, Column: o.Column.Column, Sequence: o.Sequence, Texts: o.Form != sequence.Numbers, Bytes: o.Form == sequence.Bytes})
		}
	}
	return b
}

// bound returns the bindings that are in force; nil if nothing is bound.
func (s *Settings) bound() *bindings {
	owners := s.owners.Owners()
	b := s.bindings.Load()
	if b == nil || b.owners != owners {
		b = newBindings(s.configured, owners)
		s.bindings.Store(b)
	}
	if len(b.tables) == 0 {
		return nil
	}
	return b
}

// awaitOwners waits, before the first INSERT, until it is known which columns own a sequence, or the
// sequence server does not answer in time; that counts among what the command has waited.
func (f *facts) awaitOwners() {
	shared, owners := f.at.shared, f.at.set.owners
	if owners.Owners() != nil {
		return
	}
	begun := stats.Clock()
	defer func() { f.numbers.Patience.Spend(stats.Clock() - begun) }()
	shared.ownersAsked.Do(func() {
		if _, err := owners.LoadOwners(context.Background()); err != nil {
			shared.ownersUnknown.Store(protocol.Errorf(mysql.ER_UNKNOWN_ERROR, "HY000", "seqproxy: whether a column of this table is filled from a sequence (OWNED BY) is not known yet, "+
				"and INSERT and REPLACE wait for that where there are several shards: %s", strings.TrimPrefix(forClient(err).Message, "seqproxy: ")))
			shared.Log.Warn("owned columns not known yet", logfield.Err(err))
		}
	})
}

// ownersUnknown is an error as long as it is not known, in spite of awaitOwners, which columns own a
// sequence, where there are several shards, whose servers could generate the same keys. With one
// shard the configuration alone counts then.
func (f *facts) ownersUnknown() error {
	unknown := f.at.shared.ownersUnknown.Load()
	if unknown == nil || !f.at.routes.Many() || f.at.set.owners.Owners() != nil {
		return nil
	}
	return unknown
}

// insertsInto is the tables that a prepared statement puts rows into, and what was bound
// when that was last looked at.
type insertsInto struct {
	names  [][]byte // in UTF-8
	set    *Settings
	owners *sequence.Owners
}

// insertsOf returns that of the text just analysed, of which is still to be found out
// what has to be filled in.
func (p *planning) insertsOf() insertsInto {
	var in insertsInto
	for i := range p.stmt.Tables {
		t := &p.stmt.Tables[i]
		if t.Kind == statement.Update {
			continue
		}
		if name, err := p.InUTF8(t.Name, p.state.Charset); err == nil {
			// else it is no name that could be bound
			in.names = append(in.names, bytes.Clone(name))
		}
	}
	if len(in.names) > 0 {
		in.set, in.owners = p.at.set, p.at.set.owners.Owners()
	}
	return in
}

// errRebound: what a prepared INSERT is filled from has changed since. It would go on to
// take its keys where they were taken then, from the server perhaps.
var errRebound = protocol.Errorf(mysql.ER_NEED_REPREPARE, "HY000", "seqproxy: the statement needs to be prepared again, because since then a column of its table "+
	"was bound to a sequence, or is not any more (OWNED BY)")

// stillBound is errRebound if a statement that was prepared has to be prepared again.
func (s *Settings) stillBound(in *insertsInto) error {
	if len(in.names) == 0 {
		return nil
	}
	owners := s.owners.Owners()
	if owners == in.owners && s == in.set {
		return nil
	}
	before, now := newBindings(in.set.configured, in.owners), newBindings(s.configured, owners)
	for _, name := range in.names {
		if !slices.Equal(before.tables.Named(name), now.tables.Named(name)) {
			return errRebound
		}
	}
	in.set, in.owners = s, owners
	return nil
}
