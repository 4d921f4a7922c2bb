package sequence

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	gomysql "github.com/go-mysql-org/go-mysql/mysql"
	"go.uber.org/zap"
)

// How often changes are asked for, and how rarely while the server does not answer.
const (
	followEvery   = 300 * time.Millisecond
	followRarely  = 5 * time.Second
	followTimeout = 2 * time.Second
)

// follower sees what others change: it asks for the version of the last change, and if that has moved, for the options that changed.
type follower struct {
	begun atomic.Bool
	work  sync.Mutex // held during one round

	started bool   // guarded by Sequences.mu; its goroutine runs
	changes uint64 // guarded by Sequences.mu; rounds that brought a change

	loaded bool              // guarded by work; the options were read once
	seen   uint64            // guarded by work; the version up to which changes are obeyed
	beaten time.Time         // guarded by work; the last heartbeat
	told   uint64            // guarded by work; the version of the last heartbeat
	byName map[string]Column // guarded by work; the owners that the options name
	owners atomic.Pointer[Owners]
}

// Owner is a column whose keys are the numbers of a sequence.
type Owner struct {
	Sequence string
	Column
}

// Owners are all columns that own a sequence. They are never changed.
type Owners struct {
	Generation uint64 // another one if they differ
	List       []Owner
}

// Owners returns the columns that ALTER SEQUENCE ... OWNED BY and CREATE SEQUENCE ... OWNED BY have named, as they were at most
// a second ago; nil as long as the sequence server has not been asked. It does no I/O, and the first call has changes followed from then
// on.
func (s *Sequences) Owners() *Owners {
	if !s.follow.begun.Load() {
		s.startFollowing()
	}
	return s.follow.owners.Load()
}

// LoadOwners is Owners for callers that wait until the server has been asked. Errors are those of List.
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
	if err := s.refresh(r.ctx); err != nil {
		return nil, r.failed("", err)
	}
	return s.follow.owners.Load(), nil
}

// startFollowing has changes followed from now on.
func (s *Sequences) startFollowing() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.followLocked()
}

// obeyed counts the rounds that brought a change.
func (s *Sequences) obeyed() uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.follow.changes
}

// followLocked starts the goroutine that follows changes, unless it runs or Close has begun. s.mu is held.
func (s *Sequences) followLocked() {
	if s.follow.started || s.closed {
		return
	}
	s.follow.started = true
	s.follow.begun.Store(true)
	s.spawn(s.followChanges)
}

// followChanges runs until Close.
func (s *Sequences) followChanges() {
	ctx, cancel := context.WithCancel(s.ctx)
	defer cancel()
	s.spawn(func() {
		select {
		case <-s.stopping:
			cancel()
		case <-ctx.Done():
		}
	})
	failing := false
	for wait := followEvery; s.sleep(jitter(wait)); {
		err := s.round(ctx)
		if ctx.Err() != nil {
			return
		}
		if err == nil {
			if failing {
				s.log.Info("changes of sequences by others are seen again")
			}
			wait, failing = followEvery, false
			continue
		}
		if wait = min(2*wait, followRarely); !failing && wait == followRarely {
			failing = true
			s.log.Warn("changes of sequences by others are not seen; trying again", zap.Error(err))
		}
	}
}

// round asks once, and gives a sign of life when it is due.
func (s *Sequences) round(ctx context.Context) error {
	ctx, stop := context.WithTimeoutCause(ctx, followTimeout, errPatience)
	defer stop()
	return s.refresh(ctx)
}

// seeChanges obeys at once what was changed here, if anything here depends on it. Whatever fails, the follower repeats.
func (s *Sequences) seeChanges(ctx context.Context) {
	if s.follow.begun.Load() {
		_ = s.refresh(ctx)
	}
}

// refresh asks for changes and obeys them.
func (s *Sequences) refresh(ctx context.Context) error {
	f := &s.follow
	f.work.Lock()
	defer f.work.Unlock()
	version, changed, err := s.server.changes(ctx, f.seen, !f.loaded)
	if err != nil {
		return err
	}
	if !f.loaded || version != f.seen {
		s.obey(version, changed)
	}
	if f.told == f.seen && time.Since(f.beaten) < heartbeatEvery {
		return nil
	}
	sequences, held := s.holds()
	listed, err := s.server.beat(ctx, f.seen, sequences, held)
	if err != nil {
		return err
	}
	if !listed {
		s.log.Warn("somebody removed this proxy from the list of proxies; all numbers in memory are given up")
		s.voidAll()
	}
	f.told, f.beaten = f.seen, time.Now()
	return nil
}

// holds counts what the heartbeat tells.
func (s *Sequences) holds() (sequences int, held uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, c := range s.caches {
		held += c.tally().held
	}
	for _, c := range s.steps {
		held += c.tally().held
	}
	return len(s.caches), held
}

// change is the options of a sequence, and its row unless that is gone.
type change struct {
	option string // the name as the options have it
	gone   bool
	row
}

// changes returns the version of the last change, and the options of all sequences that changed after seen, or of all.
func (v *server) changes(ctx context.Context, seen uint64, all bool) (version uint64, changed []change, err error) {
	conn, err := v.conn(ctx)
	if err != nil {
		return 0, nil, err
	}
	defer func() { _ = conn.Close() }()
	has, err := v.lookForOptions(ctx, conn)
	if err != nil || has != shapeFull {
		return 0, nil, err
	}
	err = conn.QueryRowContext(ctx, "SELECT `version` FROM "+v.table.options+" WHERE `name` = ''").Scan(&version)
	switch {
	case hasCode(err, gomysql.ER_NO_SUCH_TABLE, gomysql.ER_BAD_FIELD_ERROR):
		v.hasOptions.Store(false)
		return 0, nil, nil
	case errors.Is(err, sql.ErrNoRows):
	case err != nil:
		return 0, nil, fmt.Errorf("read the version of %s: %w", v.table.options, err)
	}
	switch {
	case all, version < seen: // or the table was made again
		seen = 0
	case version == seen:
		return version, nil, nil
	}
	changed, err = v.changedSince(ctx, conn, seen)
	return version, changed, err
}

// changedSince reads the options with versions of at least since.
func (v *server) changedSince(ctx context.Context, conn *sql.Conn, since uint64) ([]change, error) {
	rows, err := conn.QueryContext(ctx, "SELECT o.`name`, s.`name`, CAST(s.`id` AS CHAR), "+selectEntry(shapeFull)+" FROM "+v.table.options+" AS o LEFT JOIN "+
		v.table.full+" AS s ON s.`name` = o.`name` WHERE o.`version` >= ? AND o.`name` <> ''", since)
	if err != nil {
		return nil, fmt.Errorf("read changes of %s: %w", v.table.options, err)
	}
	defer func() { _ = rows.Close() }()
	var all []change
	for rows.Next() {
		var c change
		var name, id sql.NullString
		if err := rows.Scan(append([]any{&c.option, &name, &id}, c.fields()...)...); err != nil {
			return nil, fmt.Errorf("read changes of %s: %w", v.table.options, err)
		}
		if c.gone = !name.Valid; !c.gone {
			c.name = name.String
			if c.id, err = v.parseID(c.name, id); err != nil {
				continue // whoever takes of it is told
			}
		}
		v.complete(&c.row)
		all = append(all, c)
	}
	return all, rows.Err()
}

// obey brings the caches and the owners in line with the changes up to version. f.work is held.
func (s *Sequences) obey(version uint64, changed []change) {
	f := &s.follow
	s.mu.Lock()
	f.changes++
	for i := range changed {
		c := &changed[i]
		if c.gone {
			s.endLocked(c.option)
			continue
		}
		s.server.rules.set(c.name, c.rule())
		void := s.server.marks.enter(c.name, c.epoch)
		for _, cached := range s.cachesLocked(c.name) {
			if void {
				cached.void()
			}
			cached.revise(&c.row)
		}
	}
	s.mu.Unlock()
	s.unknown.clear()
	s.publishOwners(version < f.seen, changed)
	f.loaded, f.seen = true, version
}

// publishOwners takes over what changed of the owners; afresh if the table was made again.
func (s *Sequences) publishOwners(afresh bool, changed []change) {
	f := &s.follow
	differs := f.owners.Load() == nil
	if f.byName == nil || afresh {
		differs = differs || len(f.byName) > 0
		f.byName = make(map[string]Column)
	}
	for i := range changed {
		c := &changed[i]
		name, owner := c.name, c.def.OwnedBy
		if c.gone {
			name, owner = c.option, Column{}
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
	if old := f.owners.Load(); old != nil {
		next.Generation = old.Generation + 1
	}
	for name, owner := range f.byName {
		next.List = append(next.List, Owner{Sequence: name, Column: owner})
	}
	slices.SortFunc(next.List, func(a, b Owner) int { return strings.Compare(a.Sequence, b.Sequence) })
	f.owners.Store(next)
}

// void gives up all numbers in memory of one sequence.
func (s *Sequences) void(name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, c := range s.cachesLocked(name) {
		c.void()
	}
}

// cachesLocked returns the caches of a sequence by the table's spelling: that of its numbers, and those for other steps (see Advance).
// s.mu is held.
func (s *Sequences) cachesLocked(name string) []*cache {
	c := s.caches[name]
	if c == nil {
		return nil
	}
	all := []*cache{c}
	for key, stepped := range s.steps {
		if key.of == c {
			all = append(all, stepped)
		}
	}
	return all
}

func (s *Sequences) voidAll() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for name := range s.caches {
		for _, c := range s.cachesLocked(name) {
			c.void()
		}
	}
}
