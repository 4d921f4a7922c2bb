package session

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/go-mysql-org/go-mysql/mysql"

	"seqproxy/backend"
	"seqproxy/internal/logfield"
	"seqproxy/protocol"
	"seqproxy/proxy/plan"
	"seqproxy/proxy/state"
	"seqproxy/proxy/stats"
	"seqproxy/sequence"
	"seqproxy/statement"
)

// Binding is a column that gets its numbers from a sequence.
type Binding = plan.Binding

// bindings are the bound columns. They are immutable. nil means none.
type bindings struct {
	tables plan.Bindings
	// owners are the columns that own sequences; nil: unknown. The configuration's columns are not
	// among them.
	owners *sequence.Owners
}

// all returns the bound columns, by their tables.
func (b *bindings) all() plan.Bindings {
	if b == nil {
		return nil
	}
	return b.tables
}

// newBindings makes bindings of configured columns and owners. The first column of a table counts.
func newBindings(configured []Binding, owners *sequence.Owners) *bindings {
	b := &bindings{tables: make(plan.Bindings), owners: owners}
	for _, one := range configured {
		one.Configured = true
		b.tables.Add(one)
	}
	if owners != nil {
		for _, o := range owners.List {
			b.tables.Add(Binding{Schema: o.Schema, Table: o.Table, Column: o.Column.Column, Sequence: o.Sequence, Texts: o.Form != sequence.Numbers, Bytes: o.Form == sequence.Bytes})
		}
	}
	return b
}

// boundSoFar returns the bindings learned so far. They may lack owners, so they are good enough
// only for a log.
func (s *Settings) boundSoFar() *bindings {
	owners := s.owners.Owners()
	b := s.bindings.Load()
	if b == nil || b.owners != owners {
		b = newBindings(s.configured, owners)
		s.bindings.Store(b)
	}
	return b
}

// bound returns the bindings in force, or nil if nothing is bound. The first caller waits until the
// columns that own a sequence are known, or the sequence server does not answer in time. With
// several shards, whose servers could generate the same keys, bound then fails. With one shard it
// uses the configuration alone.
func (f *facts) bound() (*bindings, error) {
	if f.at.routes.Default == nil {
		return nil, nil // without a shard there are no tables
	}
	// The command may have waited in a pause since it took its settings.
	set := f.at.shared.Settings.Load()
	b := set.boundSoFar()
	if b.owners == nil {
		why := f.awaitOwners()
		if b = set.boundSoFar(); b.owners == nil && f.at.routes.Many() {
			return nil, protocol.Errorf(mysql.ER_UNKNOWN_ERROR, "HY000", "seqproxy: whether a column of this table is filled from a sequence (OWNED BY) is not known yet, "+
				"and INSERT and REPLACE wait for that where there are several shards: %s", why)
		}
	}
	if len(b.tables) == 0 {
		return nil, nil
	}
	return b, nil
}

// awaitOwners waits, once for all sessions, for the columns that own a sequence. It returns why
// they did not come. The wait counts as a wait of the command.
func (f *facts) awaitOwners() (why string) {
	begun := stats.Clock()
	defer func() { f.numbers.Patience.Spend(stats.Clock() - begun) }()
	shared := f.at.shared
	shared.ownersAsked.Do(func() {
		shared.ownersUnknown = "the sequence server did not say"
		if _, err := f.at.set.owners.LoadOwners(context.Background()); err != nil {
			shared.ownersUnknown = strings.TrimPrefix(forClient(err).Message, "seqproxy: ")
			shared.Log.Warn("owned columns not known yet", logfield.Err(err))
		}
	})
	return shared.ownersUnknown
}

// boundHere reports whether a column on the current shard is filled from a sequence. It fails if
// that is unknown.
func (f *facts) boundHere() (bool, error) {
	b, err := f.bound()
	return b.bindsOn(f.at.routes.ForSchema(f.state.Schema), f.at.routes), err
}

// insertsInto is the tables that a prepared statement puts rows into, and the bindings at the last
// check.
type insertsInto struct {
	names  [][]byte // in UTF-8
	others bool     // there may be more tables
	bound  *bindings
	stale  bool // an answer has shown that a column has another name, or no AUTO_INCREMENT any more
}

// none reports whether there are no tables.
func (in *insertsInto) none() bool { return len(in.names) == 0 && !in.others }

// insertsOf returns the tables that the text just analysed puts rows into. It does not decide what
// to fill in.
func (p *planning) insertsOf() (in insertsInto, err error) {
	in.others = p.stmt.Words&statement.MayBringRows != 0 // it is not understood to its end
	for i := range p.stmt.Tables {
		t := &p.stmt.Tables[i]
		if t.Kind == statement.Update {
			continue
		}
		if name, err := p.InUTF8(t.Name, p.state.Charset); err == nil {
			in.names = append(in.names, bytes.Clone(name))
		} else {
			in.others = true
		}
	}
	if !in.none() {
		in.bound, err = p.bound()
	}
	return in, err
}

var (
	// errRebound says that the bindings of a prepared INSERT have changed since. It would go on to
	// take its keys from where they came before, which may be the server. Without AUTO_INCREMENT it
	// would go on to report no insert id.
	errRebound = protocol.Errorf(mysql.ER_NEED_REPREPARE, "HY000", "seqproxy: prepare the statement again: since it was prepared, a column of its table "+
		"was bound to a sequence, is bound no more (OWNED BY), has lost its AUTO_INCREMENT, or has another name")
	// errReboundEnds is errRebound where the session ends with it. The SQLSTATE tells pools so.
	errReboundEnds = protocol.Errorf(mysql.ER_NEED_REPREPARE, "08S01", "seqproxy: connect again: since the statement was prepared, a column of its table "+
		"was bound to a sequence, is bound no more (OWNED BY), has lost its AUTO_INCREMENT, or has another name")
)

// endsRebound reports whether a session ends with errRebound. No driver prepares again, so a pool
// would keep the statement for ever. A session goes on if its end would lose something: a pin other
// than PinOpaque.
func endsRebound(err error, st *state.State) bool {
	return errors.Is(err, errRebound) && st.AllPins()&^(1<<state.PinOpaque) == 0
}

// stillBound returns errRebound if a statement must be prepared again.
func (f *facts) stillBound(in *insertsInto) error {
	switch {
	case in.none():
		return nil
	case in.stale:
		return errRebound
	}
	if err := f.at.waitOutPause(); err != nil {
		return err
	}
	now, err := f.bound()
	if err != nil || now == in.bound {
		return err
	}
	before, after := in.bound.all(), now.all()
	if in.others && !maps.EqualFunc(before, after, slices.Equal[[]Binding]) {
		return errRebound
	}
	for _, name := range in.names {
		if !slices.Equal(before.Named(name), after.Named(name)) {
			return errRebound
		}
	}
	in.bound = now
	return nil
}

// A text that is passed on unread may put a row into a table with a bound column. Then the server's
// AUTO_INCREMENT makes the key, and may make the same one on another shard. The insert id in the
// server's OK shows it. So the session counts and logs an insert id that the statement does not
// explain, if columns are bound. It cannot prevent the row, which is there by then.

// bindsOn reports whether any column may be bound on a shard.
func (b *bindings) bindsOn(shard *backend.Shard, routes *backend.Routes) bool {
	if b == nil {
		return false
	}
	for _, list := range b.tables {
		for i := range list {
			if owner := routes.Owner(list[i].Schema); owner == nil || owner == shard {
				return true
			}
		}
	}
	return false
}

// Numbered is a table whose bound column has AUTO_INCREMENT on this shard's server and on
// another's. A row that does not come through the proxy gets a key that may be on the other shard
// as well.
type Numbered struct {
	Binding Binding
	Shard   string
	// Remedy is the statement that removes AUTO_INCREMENT on that shard, or advice if that
	// statement is unknown.
	Remedy string
}

// Name returns the name of the bound column, as it was bound.
func (n *Numbered) Name() string {
	if n.Binding.Schema == "" {
		return n.Binding.Table + "." + n.Binding.Column
	}
	return n.Binding.Schema + "." + n.Binding.Table + "." + n.Binding.Column
}

// Numbered returns the bound columns that have AUTO_INCREMENT on several shards. It also fails if
// the columns that own a sequence are unknown. See [backend.Routes.AutoIncrements].
func (s *Settings) Numbered(ctx context.Context, creds func(*backend.Shard) ([]backend.Credentials, error)) (all []Numbered, err error) {
	if !s.Routes.Many() {
		return nil, nil
	}
	_, unknown := s.owners.LoadOwners(ctx)
	if unknown != nil {
		unknown = fmt.Errorf("which columns own a sequence: %w", unknown)
	}
	var list []Binding
	for _, of := range s.boundSoFar().tables {
		list = append(list, of...)
	}
	slices.SortFunc(list, func(a, b Binding) int {
		return cmp.Or(cmp.Compare(a.Schema, b.Schema), cmp.Compare(a.Table, b.Table), cmp.Compare(a.Column, b.Column), cmp.Compare(a.Sequence, b.Sequence))
	})
	if len(list) == 0 {
		return nil, unknown
	}
	columns := make([]backend.Column, len(list))
	for i, b := range list {
		columns[i] = backend.Column{Schema: b.Schema, Table: b.Table, Column: b.Column}
	}
	found, err := s.Routes.AutoIncrements(ctx, creds, columns)
	for _, f := range found {
		all = append(all, Numbered{list[f.Column], f.Shard, f.Remedy()})
	}
	return all, errors.Join(unknown, err)
}
