package cache

import (
	"errors"
	"slices"
	"testing"

	"seqproxy/sequence/segment"
	"seqproxy/sequence/stats"
)

func TestABatchIsOfThoseWhoWaitAndNotWithoutBound(t *testing.T) {
	for _, c := range []struct {
		wants      []uint64
		in         int // the batch
		want, need uint64
	}{
		{nil, 0, 0, 0},
		{[]uint64{3}, 1, 3, 3},
		{[]uint64{2, 5, 1}, 3, 8, 2},
		{[]uint64{maxBatch, 1}, 1, maxBatch, maxBatch},
		{[]uint64{1, maxBatch, 1}, 1, 1, 1},
		{[]uint64{maxBatch + 5, 1}, 1, maxBatch + 5, maxBatch + 5},
		{[]uint64{1, maxBatch - 1, 1}, 2, maxBatch, 1},
	} {
		l, all := lineOf(c.wants...)
		var b batches
		want, need := b.board(l)
		in := 0
		for _, w := range all {
			if b.has(w) {
				in++
			}
		}
		if want != c.want || need != c.need || in != c.in {
			t.Errorf("of those who want %v, %d are in, who want %d and at least %d; want %d, %d, %d", c.wants, in, want, need, c.in, c.want, c.need)
		}
		if b.dissolve(); slices.ContainsFunc(all, b.has) {
			t.Errorf("of those who want %v, some are in a batch that is dissolved", c.wants)
		}
	}
}

// Numbers of a reservation are for those who waited before it was made, and for nobody else.
func TestABatchHasTheNumbersOfItsReservation(t *testing.T) {
	for name, c := range map[string]struct {
		before func(l *line, all []*waiter) // while the UPDATE is on its way
		brings segment.Segment
		served []uint64 // the first number of each of 2, 1, 3
		unused uint64
	}{
		"all are served":     {func(*line, []*waiter) {}, segment.New(11, 16), []uint64{11, 13, 14}, 0},
		"one has gone":       {func(l *line, all []*waiter) { l.remove(all[1]) }, segment.New(11, 16), []uint64{11, 0, 13}, 1},
		"all have gone":      {func(l *line, all []*waiter) { l.remove(all[0]); l.remove(all[1]); l.remove(all[2]) }, segment.New(11, 16), []uint64{0, 0, 0}, 6},
		"too few":            {func(*line, []*waiter) {}, segment.New(11, 15), []uint64{11, 13, 0}, 2},
		"one comes too late": {func(l *line, all []*waiter) { l.push(&waiter{n: 1, ready: make(chan struct{}, 1)}) }, segment.New(11, 17), []uint64{11, 13, 14}, 1},
		"in steps":           {func(*line, []*waiter) {}, segment.Stepped(11, 10, 6), []uint64{11, 31, 41}, 0},
	} {
		l, all := lineOf(2, 1, 3)
		var b batches
		b.board(l)
		c.before(l, all)
		waited := l.length
		s := new(stock)
		s.add(c.brings)
		b.land(l, s)
		for i, w := range all {
			if w.number != c.served[i] || w.done != (c.served[i] != 0) || w.done && w.step != c.brings.Step {
				t.Errorf("%s: caller %d has %d by %d, want %d", name, i, w.number, w.step, c.served[i])
			}
		}
		if s.cached != 0 || s.gaps[stats.UnusedCallerGone] != c.unused || s.gaps.Sum() != c.unused || b.served != waited-l.length {
			t.Errorf("%s: %d are in memory, %v unused, %d served; want %d unused, %d served", name, s.cached, s.gaps, b.served, c.unused, waited-l.length)
		}
		s.check(t)
	}
}

func TestOnlyTheBatchIsToldThatItIsStranded(t *testing.T) {
	l, all := lineOf(2, 1)
	var b batches
	b.board(l)
	late := &waiter{n: 1, ready: make(chan struct{}, 1)}
	l.push(late)
	lost := errors.New("lost")
	b.strand(l, lost)
	for _, w := range all {
		if !w.done || !errors.Is(w.err, lost) {
			t.Errorf("one of the batch has %+v", w)
		}
	}
	if late.done || l.first != late {
		t.Errorf("one that came later has %+v", late)
	}
}
