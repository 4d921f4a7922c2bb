package sequence

import (
	"context"
	"encoding/json"
	"slices"
	"strings"

	"go.uber.org/zap"

	"seqproxy/internal/logfield"
	"seqproxy/sequence/define"
	"seqproxy/sequence/store"
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
	if !s.follow.begun.Load() {
		s.startFollowing()
	}
	return s.follow.owners.Load()
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
	s.spawnBounded(func(ctx context.Context) { answer <- s.refresh(ctx) })
	var err error
	select {
	case <-s.follow.loaded:
	case err = <-answer:
	case <-r.ctx.Done():
		err = context.Cause(r.ctx)
	}
	if known := s.follow.owners.Load(); known != nil {
		return known, nil
	}
	if err == nil {
		err = s.whyNot() // of several servers none was asked just now, as they failed a moment ago
	}
	s.useKeptOwners()
	if known := s.follow.owners.Load(); known != nil {
		return known, nil
	}
	return nil, r.failed("", err)
}

// publishOwners takes over what changed of the owners; afresh if the table was made again.
func (s *Sequences) publishOwners(afresh bool, changed []store.Changed) {
	f := &s.follow
	old := f.owners.Load()
	differs := old == nil || f.byName == nil || afresh
	if f.byName == nil || afresh {
		f.byName = make(map[string]Owner)
	}
	for i := range changed {
		c := &changed[i]
		name, owner := c.Name, Owner{define.ShownName(c.Name), c.Def.OwnedBy, formOf(c.Def.Kind)}
		if c.Gone || owner.IsZero() {
			owner = Owner{}
		}
		if c.Gone {
			name = c.Option
		}
		if f.byName[name] == owner {
			continue
		}
		differs = true
		if f.byName[name] = owner; owner.IsZero() {
			delete(f.byName, name)
		}
	}
	if !differs {
		return
	}
	next := &Owners{Generation: 1}
	for _, owner := range f.byName {
		next.List = append(next.List, owner)
	}
	slices.SortFunc(next.List, func(a, b Owner) int { return strings.Compare(a.Sequence, b.Sequence) })
	if old != nil {
		if slices.Equal(old.List, next.List) {
			return // as an earlier process knew them, say
		}
		next.Generation = old.Generation + 1
	}
	f.owners.Store(next)
	f.markLoaded()
	s.keepOwners(next)
}

// keepOwners keeps the columns that own sequences for the next process.
func (s *Sequences) keepOwners(o *Owners) {
	text, err := json.Marshal(o.List)
	if err != nil {
		s.log.Warn("owned columns not kept", logfield.Err(err)) // never: they are texts
		return
	}
	s.state.KeepOwners(string(text))
}

// keptOwners are those that an earlier process, or this one, has kept; nil if none did.
func (s *Sequences) keptOwners() *Owners {
	text, ok := s.state.Owners()
	kept := new(Owners)
	if !ok || json.Unmarshal([]byte(text), &kept.List) != nil {
		return nil
	}
	return kept
}

// useKeptOwners publishes what was kept of the owners, as long as the server has not told them.
func (s *Sequences) useKeptOwners() {
	if s.follow.owners.Load() != nil {
		return
	}
	if kept := s.keptOwners(); kept != nil && s.follow.owners.CompareAndSwap(nil, kept) {
		s.follow.markLoaded()
		s.log.Warn("owned columns as known before", zap.Int("owners", len(kept.List)))
	}
}
