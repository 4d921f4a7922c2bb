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
	"seqproxy/proxy/stats"
	"seqproxy/sequence"
	"seqproxy/statement"
)

// Binding is a column that gets its numbers from a sequence.
type Binding = plan.Binding

// bindings are the columns that are bound. They do not change. nil is none.
type bindings struct {
	tables plan.Bindings
	// owners are the columns among them that own sequences, apart from those of the configuration;
	// nil: unknown.
	owners *sequence.Owners
}

// all returns the columns that are bound, by their tables.
func (b *bindings) all() plan.Bindings {
	if b == nil {
		return nil
	}
	return b.tables
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

// boundSoFar returns the bindings that are known of by now: enough for a log, and for nothing else.
func (s *Settings) boundSoFar() *bindings {
	owners := s.owners.Owners()
	b := s.bindings.Load()
	if b == nil || b.owners != owners {
		b = newBindings(s.configured, owners)
		s.bindings.Store(b)
	}
	return b
}

// bound returns the bindings that are in force, nil if nothing is bound. Whoever asks first waits
// until it is known which columns own a sequence, or the sequence server does not answer in time.
// Where there are several shards, whose servers could generate the same keys, it is an error not to
// know that. With one shard the configuration alone counts then.
func (f *facts) bound() (*bindings, error) {
	if f.at.routes.Default() == nil {
		return nil, nil // there are no tables
	}
	b := f.at.set.boundSoFar()
	if b.owners == nil {
		why := f.awaitOwners()
		if b = f.at.set.boundSoFar(); b.owners == nil && f.at.routes.Many() {
			return nil, protocol.Errorf(mysql.ER_UNKNOWN_ERROR, "HY000", "seqproxy: whether a column of this table is filled from a sequence (OWNED BY) is not known yet, "+
				"and INSERT and REPLACE wait for that where there are several shards: %s", why)
		}
	}
	if len(b.tables) == 0 {
		return nil, nil
	}
	return b, nil
}

// awaitOwners waits, once for all sessions, for the columns that own a sequence. It returns why they
// did not come then. The wait counts among what the command has waited.
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

// boundHere reports whether a column on the current shard is filled from a sequence. An error says
// that it is not known.
func (f *facts) boundHere() (bool, error) {
	b, err := f.bound()
	return b.bindsOn(f.at.routes.ForSchema(f.state.Schema), f.at.routes), err
}

// insertsInto is the tables that a prepared statement puts rows into, and what was bound when that
// was last looked at.
type insertsInto struct {
	names  [][]byte // in UTF-8
	others bool     // there may be others
	bound  *bindings
}

// none reports whether there are no tables.
func (in *insertsInto) none() bool { return len(in.names) == 0 && !in.others }

// insertsOf returns those of the text just analysed. What has to be filled in is decided later.
func (p *planning) insertsOf() (in insertsInto, err error) {
	in.others = p.stmt.Words&statement.MayBringRows != 0 // it is not read to its end
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

// errRebound: what a prepared INSERT is filled from has changed since. It would go on to
// take its keys where they were taken then, from the server perhaps.
var errRebound = protocol.Errorf(mysql.ER_NEED_REPREPARE, "HY000", "seqproxy: the statement needs to be prepared again, because since then a column of its table "+
	"was bound to a sequence, or is not any more (OWNED BY)")

// stillBound is errRebound if a statement that was prepared has to be prepared again.
func (f *facts) stillBound(in *insertsInto) error {
	if in.none() {
		return nil
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

// A text that is passed on as it is may put a row into a table with a bound column without anybody
// here having seen it: then the server's AUTO_INCREMENT gives the key, and may give it on another
// shard, too. What gives that away is the insert id in the server's OK. Where bound columns are, an
// insert id that the statement does not explain is therefore logged and counted. It is a second
// line: the row is there by then.

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

// Numbered is a table whose bound column the server numbers by AUTO_INCREMENT, too, as the server
// of another shard does. A row that comes in past the proxy gets a key there that may be on the
// other shard as well.
type Numbered struct {
	Binding Binding
	Shard   string
	// Remedy is the statement, for that shard, that has the server give no numbers any more; or
	// what to do where that is not known.
	Remedy string
}

// Name is that of the bound column, as it was bound.
func (n *Numbered) Name() string {
	if n.Binding.Schema == "" {
		return n.Binding.Table + "." + n.Binding.Column
	}
	return n.Binding.Schema + "." + n.Binding.Table + "." + n.Binding.Column
}

// Numbered looks at the columns that are bound now. The error also says that it is not known which
// columns own a sequence. See [backend.Routes.AutoIncrements].
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
