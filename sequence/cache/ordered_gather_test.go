package cache

import (
	"testing"
	"time"
)

func TestABatchWaitsWhereAnUpdateIsDear(t *testing.T) {
	const ms = time.Millisecond
	for took, want := range map[time.Duration]time.Duration{
		0: 0, ms: 0, 2*ms - 1: 0, 2 * ms: ms, 4 * ms: ms, 8 * ms: 2 * ms, 80 * ms: 20 * ms, time.Second: 20 * ms,
	} {
		if got := gatherTime(took); got != want {
			t.Errorf("after an UPDATE of %v: got %v, want %v", took, got, want)
		}
	}
}

func TestABatchWaitsForThoseWhoWereServed(t *testing.T) {
	const dear = 40 * time.Millisecond
	for _, c := range []struct {
		took            time.Duration
		served, waiting int
		most            time.Duration
		enough          int // so many end the wait
	}{
		{dear, 0, 5, 0, 0},
		{dear, 1, 0, 0, 0},
		{time.Millisecond, 8, 8, 0, 0},
		{-time.Second, 8, 8, 0, 0},
		{dear, 1, 1, dear / gatherShare, 2},
		{dear, 8, 8, dear / gatherShare, 15},
		{dear, 1, 15, 0, 0}, // all but one are there already
		{dear, 100, 60, dear / gatherShare, 150},
	} {
		var g gathering
		most := g.begin(c.took, c.served, c.waiting)
		if most != c.most || g.target != c.enough {
			t.Errorf("after %v, %d served and %d waiting: waits %v for %d, want %v for %d", c.took, c.served, c.waiting, most, g.target, c.most, c.enough)
		}
		if c.enough == 0 {
			continue
		}
		if g.arrived(c.enough - 1); len(g.full) != 0 {
			t.Errorf("%d of %d end the wait", c.enough-1, c.enough)
		}
		g.arrived(c.enough)
		g.arrived(c.enough + 1) // it has no effect any more, and blocks nobody
		if len(g.full) != 1 {
			t.Errorf("%d do not end the wait", c.enough)
		}
		if g.over(); len(g.full) != 0 || g.target != 0 {
			t.Errorf("after the wait %d are waited for", g.target)
		}
	}
}
