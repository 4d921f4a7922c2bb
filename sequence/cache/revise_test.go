package cache

import (
	"testing"

	"seqproxy/sequence/segment"
	"seqproxy/sequence/store"
)

func TestRevisedCacheKeepsWhatConforms(t *testing.T) {
	cacheWith := func(cur segment.Segment, queue ...segment.Segment) *Cache {
		c := cacheOf(&process{size: 10})
		c.stock.cur, c.stock.queue, c.stock.cached = cur, queue, cur.Remaining()
		for _, q := range queue {
			c.stock.cached += q.Remaining()
		}
		return c
	}
	for name, c := range map[string]struct {
		change func(*store.Row)
		want   []uint64
	}{
		"comment":         {func(e *store.Row) { e.Def.Comment = "x" }, []uint64{10, 11, 12, 20, 21, 22}},
		"CACHE":           {func(e *store.Row) { e.Def.Cache = 4 }, []uint64{10, 11, 12, 20}},
		"CACHE 1":         {func(e *store.Row) { e.Def.Cache = 1 }, []uint64{10}},
		"MAXVALUE":        {func(e *store.Row) { e.Def.Max = 20 }, []uint64{10, 11, 12, 20}},
		"low MAXVALUE":    {func(e *store.Row) { e.Def.Max = 10 }, []uint64{10}},
		"lower MAXVALUE":  {func(e *store.Row) { e.Def.Max = 9 }, nil},
		"higher MAXVALUE": {func(e *store.Row) { e.Def.Max = 1 << 60 }, []uint64{10, 11, 12, 20, 21, 22}},
		"INCREMENT":       {func(e *store.Row) { e.Def.Increment = 2 }, nil},
		"SETVAL":          {func(e *store.Row) { e.Past = 11 }, []uint64{12, 20, 21, 22}},
		"SETVAL of all":   {func(e *store.Row) { e.Past = 22 }, nil},
		"JSON":            {func(e *store.Row) { e.Def.JSONSafe = true }, []uint64{10, 11, 12, 20, 21, 22}},
		"both ends":       {func(e *store.Row) { e.Past, e.Def.Max = 12, 21 }, []uint64{20, 21}},
	} {
		cache := cacheWith(segment.New(10, 12), segment.New(20, 22))
		cache.Revise(changedRow(c.change))
		if got := cache.Tally(); got.Cached != uint64(len(c.want)) || got.Unused.Sum() != 6-got.Cached {
			t.Errorf("%s: holds %d and has given up %d, want %d and %d", name, got.Cached, got.Unused.Sum(), len(c.want), 6-len(c.want))
		}
		for _, want := range c.want {
			if got, ok := cache.stock.take(1); !ok || got != want {
				t.Errorf("%s: got %d, %v; want %d of %v", name, got, ok, want, c.want)
			}
		}
		if got, ok := cache.stock.take(1); ok {
			t.Errorf("%s: got %d after %v", name, got, c.want)
		}
	}
}

// A reservation was read back before ALTER ... CACHE, and is installed after it.
func TestAReservationOlderThanCACHEDoesNotUndoIt(t *testing.T) {
	c := cacheOf(&process{size: 10})
	c.Revise(changedRow(func(r *store.Row) { r.Def.Cache = 4 }))
	c.mu.Lock()
	c.installLocked(store.Grant{Segment: segment.New(1, 10), Max: 1<<64 - 1})
	exact := c.sizes.exact
	c.mu.Unlock()
	if cached := c.Tally().Cached; exact != 4 || cached != 4 {
		t.Errorf("CACHE 4: %d numbers are cached, and %d are reserved at once", cached, exact)
	}
}
