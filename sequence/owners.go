package sequence

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"go.uber.org/zap"

	"seqproxy/internal/logfield"
	"seqproxy/sequence/define"
	"seqproxy/sequence/floor"
	"seqproxy/sequence/follow"
)

// Owner is a column whose keys are those of a sequence.
type Owner struct {
	Sequence string
	define.Column
	Form Form `json:",omitempty"` // of the keys
}

// Owners are all columns that own a sequence. They are never changed.
type Owners struct {
	Generation uint64 // another one if they differ
	List       []Owner
}

// Owners returns the columns that ALTER SEQUENCE ... OWNED BY and CREATE SEQUENCE ... OWNED BY have
// named, as they were at most a second ago, or when the sequence server could last be asked; nil as
// long as it has not been asked. It does no I/O, and the first call has changes followed from then
// on.
func (s *Sequences) Owners() *Owners {
	if !s.followed.Load() {
		s.startFollowing()
	}
	return s.owners.now.Load()
}

// LoadOwners is Owners for callers that wait until the server has been asked. If it does not
// answer, those count that the state directory has. Errors are those of List.
func (s *Sequences) LoadOwners(ctx context.Context) (*Owners, error) {
	if known := s.Owners(); known != nil {
		return known, nil
	}
	if !s.begin() {
		return nil, ErrClosed
	}
	defer s.tasks.Done()
	r, stop := s.request(ctx)
	defer stop()
	answer := make(chan error, 1)
	// after the owners are known it goes on, with a sign of life
	s.spawnBounded(func(ctx context.Context) { answer <- s.follower.Refresh(ctx) })
	var err error
	select {
	case <-s.owners.loaded:
	case err = <-answer:
	case <-r.ctx.Done():
		err = context.Cause(r.ctx)
	}
	if known := s.owners.now.Load(); known != nil {
		return known, nil
	}
	if err == nil {
		err = s.shared.whyNot() // of several servers none was asked just now, as they failed a moment ago
	}
	s.owners.useKept()
	if known := s.owners.now.Load(); known != nil {
		return known, nil
	}
	return nil, r.failed("", err)
}

// ownedColumns has the columns that own sequences, as the options name them, and keeps them for the
// next process.
type ownedColumns struct {
	state *floor.State
	log   *zap.Logger

	now        atomic.Pointer[Owners]
	loaded     chan struct{} // closed once there are owners
	markLoaded func()
	byName     map[string]Owner // guarded by follower.obeying; nil before a server was asked
}

func newOwnedColumns(state *floor.State, log *zap.Logger) *ownedColumns {
	known := make(chan struct{})
	return &ownedColumns{state: state, log: log, loaded: known, markLoaded: sync.OnceFunc(func() { close(known) })}
}

// publish takes over what changed of the owners. A column still owns a sequence whose row somebody
// deleted, or that the server has lost, or whose owner it has lost: else each shard would give its
// keys. So does one that an earlier process has kept.
func (c *ownedColumns) publish(n *follow.News) {
	old := c.now.Load()
	differs := old == nil || c.byName == nil
	if c.byName == nil {
		c.byName = make(map[string]Owner)
		if kept := c.kept(); kept != nil {
			for _, owner := range kept.List {
				c.byName[owner.Sequence] = owner
			}
		}
	}
	for i := range n.Changed {
		is := &n.Changed[i]
		name := is.Name
		if is.Gone {
			name = is.Option
		}
		owner := Owner{define.ShownName(name), is.Def.OwnedBy, formOf(is.Def.Kind)}
		if owner.IsZero() {
			owner = Owner{}
		}
		if shown := define.ShownName(name); shown != name && !c.byName[shown].IsZero() {
			delete(c.byName, shown) // it was kept, or is of a row that its counter has replaced
			differs = true
		}
		if c.byName[name] == owner {
			continue
		}
		if n.Back && owner.IsZero() { // as after a fail-over that has lost an ALTER
			column := c.byName[name].String()
			c.log.Warn("owner of a sequence lost", logfield.Sequence(define.ShownName(name)), zap.String("column", column),
				zap.String("remedy", "ALTER SEQUENCE "+define.Quote(define.ShownName(name))+" OWNED BY "+column))
			continue
		}
		if is.Gone && !owner.IsZero() && !n.Several { // of several another may have the row
			c.log.Warn("sequence row gone", logfield.Sequence(owner.Sequence), zap.String("remedy", define.PutBack(owner.Sequence)))
		}
		differs = true
		if c.byName[name] = owner; owner.IsZero() {
			delete(c.byName, name)
		}
	}
	if !differs {
		return
	}
	next := &Owners{Generation: 1}
	for _, owner := range c.byName {
		next.List = append(next.List, owner)
	}
	slices.SortFunc(next.List, func(a, b Owner) int { return strings.Compare(a.Sequence, b.Sequence) })
	if old != nil {
		if slices.Equal(old.List, next.List) {
			return // as an earlier process knew them, say
		}
		next.Generation = old.Generation + 1
	}
	c.now.Store(next)
	c.markLoaded()
	c.keep(next)
}

// keep keeps the columns that own sequences for the next process.
func (c *ownedColumns) keep(o *Owners) {
	text, err := json.Marshal(o.List)
	if err != nil {
		c.log.Warn("owned columns not kept", logfield.Err(err)) // never: they are texts
		return
	}
	c.state.KeepOwners(string(text))
}

// kept are those that an earlier process, or this one, has kept; nil if none did.
func (c *ownedColumns) kept() *Owners {
	text, ok := c.state.Owners()
	kept := new(Owners)
	if !ok || json.Unmarshal([]byte(text), &kept.List) != nil {
		return nil
	}
	return kept
}

// useKept publishes what was kept of the owners, as long as the server has not told them.
func (c *ownedColumns) useKept() {
	if c.now.Load() != nil {
		return
	}
	if kept := c.kept(); kept != nil && c.now.CompareAndSwap(nil, kept) {
		c.markLoaded()
		c.log.Warn("owned columns as known before", zap.Int("owners", len(kept.List)))
	}
}
