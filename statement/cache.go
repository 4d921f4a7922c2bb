package statement

import (
	"bytes"
	"hash/maphash"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/hashicorp/golang-lru/v2/simplelru"

	"seqproxy/statement/lex"
)

// Limits of a Cache. To read a shorter text costs about as much as to look it up. A longer text
// contains data and does not come again.
const (
	minCached = 64
	maxCached = 8 << 10
	// What is known of a text may have mostPerByte for each byte, and leastKept in any case. A text
	// with more has very many calls or assignments.
	mostPerByte = 4
	leastKept   = 8 << 10
)

// Sizes of a Cache, which are powers of two.
const (
	cacheParts = 16      // so that sessions seldom wait for each other
	cacheOnce  = 1 << 12 // number of texts seen once that leave a trace
)

// Cache remembers the results of Analyze. It stores a text when it comes for the second time. So a
// text that never comes again costs only a hash, and takes no other text's place. It is safe for
// concurrent use.
type Cache struct {
	seed  maphash.Seed
	once  [cacheOnce]atomic.Uint64 // hashes of texts that came once
	parts [cacheParts]cachePart
}

type cachePart struct {
	mu      sync.Mutex
	results *simplelru.LRU[uint64, *analysed] // guarded by mu
}

// analysed is a text and its result. It is immutable.
type analysed struct {
	sql  []byte
	mode lex.Mode
	st   Statement
}

// NewCache returns a Cache for at least this many texts. Each takes at most about 50 KiB.
func NewCache(texts int) *Cache {
	c := &Cache{seed: maphash.MakeSeed()}
	size := max(1, (texts+cacheParts-1)/cacheParts)
	for i := range c.parts {
		// The only error is a size below 1.
		c.parts[i].results, _ = simplelru.NewLRU[uint64, *analysed](size, nil)
	}
	return c
}

// Analyze does what st.Analyze does. The slices of st may refer to the Cache's memory instead of
// sql. The caller must not write to that memory, but may replace the slices' elements.
func (c *Cache) Analyze(st *Statement, sql []byte, mode lex.Mode) {
	if len(sql) < minCached || len(sql) > maxCached {
		st.Analyze(sql, mode)
		return
	}
	hash := maphash.Bytes(c.seed, sql)
	part := &c.parts[hash%cacheParts]
	part.mu.Lock()
	found, ok := part.results.Get(hash)
	part.mu.Unlock()
	if ok && found.mode == mode && bytes.Equal(found.sql, sql) {
		st.copy(&found.st)
		return
	}
	st.Analyze(sql, mode)
	if st.size() > mostPerByte*len(sql)+leastKept {
		return
	}
	if once := &c.once[hash/cacheParts%cacheOnce]; once.Swap(hash) != hash {
		return
	}
	kept := &analysed{sql: bytes.Clone(sql), mode: mode}
	var read Statement
	read.Analyze(kept.sql, mode)
	kept.st.copy(&read) // without the room to grow
	part.mu.Lock()
	part.results.Add(hash, kept)
	part.mu.Unlock()
}

// size estimates the memory of the slices of st.
func (st *Statement) size() int {
	n := RecordSize*st.Records() + 160*len(st.Calls) + 80*len(st.Items)
	if st.Sequence != nil {
		n += 40 * len(st.Sequence.Names)
	}
	return n
}

// copy copies from to st. Only names share from's memory.
func (st *Statement) copy(from *Statement) {
	mine := *st
	*st = *from
	st.Calls = append(mine.Calls[:0], from.Calls...)
	st.Items = append(mine.Items[:0], from.Items...)
	st.Assignments = append(mine.Assignments[:0], from.Assignments...)
	st.Tables = append(mine.Tables[:0], from.Tables...)
	st.Kills = append(mine.Kills[:0], from.Kills...)
	st.Parts = append(mine.Parts[:0], from.Parts...)
	st.sequence = mine.sequence
	if from.Sequence != nil {
		copied := *from.Sequence
		copied.Names, copied.Schemas = slices.Clone(copied.Names), slices.Clone(copied.Schemas)
		st.Sequence = &copied
	}
	if from.Proxy != nil {
		command := *from.Proxy
		st.Proxy = &command
	}
	st.levels, st.arena = mine.levels, mine.arena[:0]
}
