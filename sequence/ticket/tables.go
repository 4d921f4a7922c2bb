package ticket

import (
	"context"
	"slices"
	"sync"
	"time"

	"seqproxy/sequence/cache"
	"seqproxy/sequence/floor"
	"seqproxy/sequence/member"
)

// Options are what the counters of a process work with.
type Options struct {
	Server   *member.Server // that has the tables
	Database string         // whose tables may be named without it
	State    *floor.State   // which remembers what was reserved
	Common   *cache.Common
	Owner    Owner
	Timing   Timing
}

// Timing are the clocks of counters.
type Timing struct {
	// A look at a table that failed answers for the next ones for Again. That a table is not served
	// is said each WarnAgain.
	Again, WarnAgain time.Duration
	// Conflict is the first pause before a statement is tried again that lost against another one.
	Conflict time.Duration
}

// Owner is who has made the counters, for whose callers they ask the server.
type Owner interface {
	// Request calls f as something that it waits for before it ends, with a context that ends after
	// the patience of a caller with ctx. An error of f becomes one about the table that callers may
	// be told; [ErrNotServed] is one.
	Request(ctx context.Context, table string, f func(ctx context.Context) error) error
}

// Tables are the counters of a process, one for each table. It is safe for concurrent use.
type Tables struct {
	options Options

	mu   sync.Mutex
	all  []*Counter // guarded by mu
	shut error      // guarded by mu; not nil: they give nothing any more
}

// NewTables does no I/O.
func NewTables(o Options) *Tables { return &Tables{options: o} }

// Counter returns the one of a table. It does no I/O.
func (t *Tables) Counter(database, name string) *Counter {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, c := range t.all {
		if c.table.Database == database && c.table.Name == name {
			return c
		}
	}
	c := newCounter(&t.options, database, name)
	if t.shut != nil {
		c.cache.Shut(t.shut)
	}
	t.all = append(t.all, c)
	return c
}

// Named returns the counter that was asked for before under schema.table, or under its name alone
// if it is in the schema that needs no name; nil if there is none.
func (t *Tables) Named(name string) *Counter {
	for _, c := range t.All() {
		if name == c.table.FullName() || name == c.table.Name && c.table.Database == t.options.Database {
			return c
		}
	}
	return nil
}

// All are those that were asked for.
func (t *Tables) All() []*Counter {
	t.mu.Lock()
	defer t.mu.Unlock()
	return slices.Clone(t.all)
}

// Shut ends the caches of all counters, also of those to come, with err.
func (t *Tables) Shut(err error) {
	t.mu.Lock()
	t.shut = err
	t.mu.Unlock()
	for _, c := range t.All() {
		c.cache.Shut(err)
	}
}
