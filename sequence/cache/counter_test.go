package cache

import (
	"math"
	"testing"

	"seqproxy/sequence/segment"
)

func countsBy(step, top, highest uint64) counter {
	return counter{rule: segment.Rule{Step: step, Anchor: 1}, top: top, max: highest}
}

func TestACounterKnowsWhatIsLeft(t *testing.T) {
	for _, c := range []struct {
		of         counter
		left, next uint64 // 0: there is none
	}{
		{countsBy(1, 0, 10), 10, 1},
		{countsBy(1, 9, 10), 1, 10},
		{countsBy(1, 10, 10), 0, 0},
		{countsBy(1, 11, 10), 0, 0},
		{countsBy(10, 1, 100), 9, 11},
		{countsBy(10, 91, 100), 0, 0},
		{countsBy(1, 5, math.MaxUint64), math.MaxUint64 - 5, 6},
		{countsBy(1, 5, 0), math.MaxUint64, 0}, // the end is not known
	} {
		next, ok := c.of.next()
		if remaining := c.of.remaining(); remaining != c.left || ok != (c.next != 0) || ok && next != c.next {
			t.Errorf("%+v: %d are left, next is %d, %v; want %d, %d", c.of, remaining, next, ok, c.left, c.next)
		}
	}
}

func TestACounterMovesASegmentFurtherButNotToItsEnd(t *testing.T) {
	for _, c := range []struct {
		of         counter
		n, numbers uint64
		want       uint64
	}{
		{countsBy(1, 0, 1_000_000), 500, 100, 100},
		{countsBy(1, 0, 1_000_000), 900_000, 200, 100},
		{countsBy(10, 0, 1_000_000), 500, 10, 100},
		{countsBy(10, 0, 1_000_000), 900_000, 200, 100},
		{countsBy(1, 0, 1000), 1000, 100, 0},
		{countsBy(1, 0, 1000), 2000, 100, 0},
	} {
		if got := c.of.room(c.n, c.numbers); got != c.want {
			t.Errorf("%+v: %d above %d are %d, want %d", c.of, c.numbers, c.n, got, c.want)
		}
	}
}

func TestACounterGoesForward(t *testing.T) {
	c := countsBy(1, 10, 100)
	for _, to := range []struct{ at, top, spent uint64 }{{5, 10, 5}, {20, 20, 20}, {15, 20, 20}} {
		if c.moved(to.at); c.top != to.top || c.spent != to.spent {
			t.Errorf("moved to %d it is at %d and %d are spent, want %d and %d", to.at, c.top, c.spent, to.top, to.spent)
		}
	}
	for _, to := range []struct {
		n    uint64
		news bool
	}{{0, false}, {7, true}, {7, false}, {6, false}, {8, true}} {
		if c.pass(to.n) != to.news || c.past < to.n {
			t.Errorf("that %d are passed over is news: %v; it is at %d", to.n, !to.news, c.past)
		}
	}
}
