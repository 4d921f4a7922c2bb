package sequence

import (
	"hash/maphash"
	"maps"
	"sync"
	"sync/atomic"
	"time"

	"seqproxy/sequence/define"
)

// Bounds of what is remembered about names.
const (
	nameShards   = 64
	maxAliases   = 64   // per shard: spellings that differ from the table's
	maxUnknown   = 4096 // names that were not found
	maxNameBytes = 1024 // longer than any column that people make for names
)

// names finds a sequence by its name as a client typed it. The server decides which spellings mean
// the same sequence, so every spelling is asked for once and then remembered. Looking up neither
// locks nor allocates.
type names struct {
	seed   maphash.Seed
	shards [nameShards]nameShard
}

// nameShard is copied on write: the table of a proxy with thousands of sequences is filled without
// quadratic cost, and read without a lock.
type nameShard struct {
	mu        sync.Mutex // held by writers
	sequences atomic.Pointer[map[string]*sequence]
}

func newNames() *names {
	return &names{seed: maphash.MakeSeed()}
}

// get returns the sequence that name means, or nil if that spelling is not known.
func (t *names) get(name []byte) *sequence {
	m := t.shards[maphash.Bytes(t.seed, name)%nameShards].sequences.Load()
	if m == nil {
		return nil
	}
	return (*m)[string(name)]
}

// put remembers that name means q. The table's own spellings are always kept, so that numbers in
// memory can be reached while the server is away; other spellings are bounded, and forgotten
// together when there are too many.
func (t *names) put(name string, q *sequence) {
	s := t.shard(name)
	s.mu.Lock()
	defer s.mu.Unlock()
	old := s.load()
	next, aliases := make(map[string]*sequence, len(old)+1), 0
	for k, v := range old {
		next[k] = v
		if isAlias(k, v) {
			aliases++
		}
	}
	if isAlias(name, q) && aliases >= maxAliases {
		maps.DeleteFunc(next, isAlias)
	}
	next[name] = q
	s.sequences.Store(&next)
}

// isAlias reports whether name is another spelling of q than the table's. What the table adds to
// the name of a counter does not count.
func isAlias(name string, q *sequence) bool {
	return name != q.name && name != define.ShownName(q.name)
}

// drop forgets name if it still means q.
func (t *names) drop(name string, q *sequence) {
	s := t.shard(name)
	s.mu.Lock()
	defer s.mu.Unlock()
	old := s.load()
	if old[name] != q {
		return
	}
	next := maps.Clone(old)
	delete(next, name)
	s.sequences.Store(&next)
}

func (t *names) shard(name string) *nameShard {
	return &t.shards[maphash.String(t.seed, name)%nameShards]
}

func (s *nameShard) load() map[string]*sequence {
	if m := s.sequences.Load(); m != nil {
		return *m
	}
	return nil
}

// unknownNames remembers for a moment which names were not found, so that a client that keeps
// asking for a missing sequence does not become a load on the server. A row inserted by anybody is
// seen within timing.unknown.
type unknownNames struct {
	mu     sync.Mutex
	known  map[string]unknownName
	clears uint64
}

// unknownName is until when a name is not looked for, and why no sequence of that name is made by
// itself; nil: it may be.
type unknownName struct {
	until   time.Time
	refused error
}

func (u *unknownNames) has(name []byte, now time.Time) bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	known, ok := u.known[string(name)]
	return ok && now.Before(known.until)
}

// refuse remembers why no sequence is made of a name, as long as the name is remembered.
func (u *unknownNames) refuse(name string, why error) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if known, ok := u.known[name]; ok {
		u.known[name] = unknownName{known.until, why}
	}
}

// refused returns why no sequence is made of a name, nil if it may be.
func (u *unknownNames) refused(name string, now time.Time) error {
	u.mu.Lock()
	defer u.mu.Unlock()
	if known := u.known[name]; now.Before(known.until) {
		return known.refused
	}
	return nil
}

// generation changes with every clear.
func (u *unknownNames) generation() uint64 {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.clears
}

// add remembers name until a time, unless a sequence was made here since the server was asked: it
// may be that one. asked is the generation of when it was asked, not when it answered.
func (u *unknownNames) add(name string, until time.Time, asked uint64) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.clears != asked {
		return
	}
	if u.known == nil || len(u.known) >= maxUnknown {
		u.known = make(map[string]unknownName)
	}
	u.known[name] = unknownName{until: until}
}

// clear forgets all: only the server could tell which spellings a new sequence answers to.
func (u *unknownNames) clear() {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.known = nil
	u.clears++
}
