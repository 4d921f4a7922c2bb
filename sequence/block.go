package sequence

import (
	"context"
	"errors"
	"time"
)

// Block is a run of numbers of which the last ones may turn out not to be needed: N numbers First, First+Step ... They are the
// taker's alone.
type Block struct {
	First, Step, N uint64

	of                           *cache
	generation, version, avoided uint64 // of the cache, before the block was taken
	plan                         uint64 // that its numbers were reserved under, if mixed is false
	mixed                        bool
}

// TakeBlock is TakeRun for callers that may put numbers back.
func (s *Sequences) TakeBlock(ctx context.Context, name []byte, n uint64) (Block, error) {
	if n == 0 {
		return Block{}, badOption("sequence %q: asked for 0 numbers, want at least 1", name)
	}
	begin := time.Now()
	deadline := begin.Add(s.patience(ctx))
	for again := true; ; again = false {
		c, err := s.findOrCreate(ctx, name, deadline)
		if err != nil {
			if unserved(err) { // nobody knows whether there is such a sequence, so it is one of the others
				s.scores.find(string(name)).ended(time.Since(begin), err)
			}
			return Block{}, err
		}
		b := c.block()
		b.N = n
		if b.First, b.Step, err = c.takeRun(ctx, n, deadline); err == nil {
			b.mixed = c.block().plan != b.plan // plans do not come again
			return b, nil
		}
		if !again || !errors.Is(err, ErrUnknown) {
			return Block{}, err
		}
		s.forget(name, c) // the row it was made for is gone; look once whether there is a new one
	}
}

// PutBack gives back the numbers of b behind the first used ones, none of which anybody has seen. They are given again, unless
// somebody has taken numbers since, has chosen one of his own up to there, or the sequence was changed: then they are a gap. A
// sequence with a typed CACHE n takes back only what it may hold. It reports whether they are given again, and does no I/O. Of a
// block numbers may be put back once.
func (s *Sequences) PutBack(b Block, used uint64) bool {
	return used < b.N && b.of.putBack(b, used)
}

// block returns what tells later whether numbers that are taken now may be put back.
func (c *cache) block() Block {
	c.mu.Lock()
	defer c.mu.Unlock()
	return Block{of: c, generation: c.generation, version: c.version, avoided: c.avoided, plan: c.cur.plan}
}

func (c *cache) putBack(b Block, used uint64) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	n := b.N - used
	switch {
	case c.end != nil, c.order, c.generation != b.generation, c.version != b.version, c.avoided != b.avoided,
		b.mixed, c.cur.plan != b.plan,
		c.exact > 0 && c.held+n > c.exact,
		!c.cur.PutBack(b.First+used*b.Step, b.Step, n):
		return false
	}
	c.held += n
	c.given -= n
	c.back += n
	c.measured = min(c.measured, c.given)
	c.serveLocked()
	return true
}
