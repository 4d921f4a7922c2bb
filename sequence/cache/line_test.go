package cache

import (
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"
)

// lineOf is a line of callers who want so many numbers each, each with one second of patience more
// than the one before.
func lineOf(wants ...uint64) (l *line, all []*waiter) {
	var pool waiterPool
	l = new(line)
	for i, n := range wants {
		w := pool.get(n, time.Duration(i+1)*time.Second)
		l.push(w)
		all = append(all, w)
	}
	return l, all
}

// order lists the wishes of those who wait, in the order they came.
func (l *line) order(t *testing.T) (wants []uint64) {
	t.Helper()
	for w := l.first; w != nil; w = w.next {
		wants = append(wants, w.n)
	}
	var back []uint64
	for w := l.last; w != nil; w = w.prev {
		back = append(back, w.n)
	}
	if slices.Reverse(back); !slices.Equal(wants, back) || len(wants) != l.length {
		t.Errorf("from the first on they are %v, from the last on %v, and counted as %d", wants, back, l.length)
	}
	return wants
}

func TestTheLineKeepsTheOrder(t *testing.T) {
	gone := errors.New("gone")
	for name, c := range map[string]struct {
		do   func(l *line, all []*waiter)
		want []uint64 // of 1, 2, 3
	}{
		"nothing":         {func(*line, []*waiter) {}, []uint64{1, 2, 3}},
		"the first goes":  {func(l *line, all []*waiter) { l.remove(all[0]) }, []uint64{2, 3}},
		"one within goes": {func(l *line, all []*waiter) { l.remove(all[1]) }, []uint64{1, 3}},
		"the last goes":   {func(l *line, all []*waiter) { l.remove(all[2]) }, []uint64{1, 2}},
		"one comes back":  {func(l *line, all []*waiter) { l.remove(all[0]); l.push(all[0]) }, []uint64{2, 3, 1}},
		"one is served":   {func(l *line, all []*waiter) { l.serve(all[0], 7, 1) }, []uint64{2, 3}},
		"one is refused":  {func(l *line, all []*waiter) { l.refuse(all[1], gone) }, []uint64{1, 3}},
		"all are":         {func(l *line, _ []*waiter) { l.refuseAll(gone) }, nil},
	} {
		l, all := lineOf(1, 2, 3)
		c.do(l, all)
		if got := l.order(t); !slices.Equal(got, c.want) {
			t.Errorf("%s: got %v, want %v", name, got, c.want)
		}
	}
}

func TestWhoLeavesTheLineIsToldWhy(t *testing.T) {
	gone := errors.New("gone")
	l, all := lineOf(1, 2)
	l.serve(all[0], 7, 3)
	l.refuse(all[1], gone)
	<-all[0].ready
	<-all[1].ready
	if w := all[0]; !w.done || w.number != 7 || w.step != 3 || w.err != nil {
		t.Errorf("the one that was served has %+v", w)
	}
	if w := all[1]; !w.done || w.number != 0 || !errors.Is(w.err, gone) {
		t.Errorf("the one that was refused has %+v", w)
	}
}

func TestOnlyThoseAreRefusedWhosePatienceIsOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begin := time.Now()
		for _, c := range []struct {
			after time.Duration
			left  []uint64
			next  time.Duration // 0: nobody waits
		}{
			{0, []uint64{1, 2, 3}, time.Second},
			{time.Second - 1, []uint64{1, 2, 3}, time.Second},
			{time.Second, []uint64{2, 3}, 2 * time.Second},
			{5 * time.Second / 2, []uint64{3}, 3 * time.Second},
			{time.Hour, nil, 0},
		} {
			l, _ := lineOf(1, 2, 3)
			next := l.refuseLate(begin.Add(c.after), func(waited time.Duration) error {
				if waited != c.after {
					t.Errorf("after %v one has waited %v", c.after, waited)
				}
				return errors.New("late")
			})
			if got := l.order(t); !slices.Equal(got, c.left) {
				t.Errorf("after %v there are %v, want %v", c.after, got, c.left)
			}
			if c.next == 0 && !next.IsZero() || c.next != 0 && next.Sub(begin) != c.next {
				t.Errorf("after %v the next is due at %v, want %v", c.after, next, c.next)
			}
		}
	})
}

func TestACrowdWantsWhatAllOfItWantButNotWithoutBound(t *testing.T) {
	for _, c := range []struct {
		wants []uint64
		most  uint64
	}{
		{nil, 0},
		{[]uint64{3}, 3},
		{[]uint64{3, 1, 5}, 9},
		{[]uint64{1 << 63, 1 << 63, 1 << 63}, maxBatch},
		{[]uint64{maxBatch - 1, 1 << 63, 1}, 2*maxBatch - 1},
	} {
		if l, _ := lineOf(c.wants...); l.wanted() != c.most {
			t.Errorf("%v: got %d, want %d", c.wants, l.wanted(), c.most)
		}
	}
}

func TestTheAlarmRingsForTheFirstWhosePatienceIsOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begin := time.Now()
		var rang []time.Duration
		a := alarm{ring: func() { rang = append(rang, time.Since(begin)) }}
		a.stop() // before anybody waits
		for _, s := range []time.Duration{5, 3, 4} {
			a.set(begin.Add(s * time.Second))
		}
		time.Sleep(10 * time.Second)
		synctest.Wait()
		a.rang()
		a.set(begin.Add(12 * time.Second))
		time.Sleep(10 * time.Second)
		synctest.Wait()
		a.rang()
		a.set(begin.Add(30 * time.Second))
		a.stop()
		time.Sleep(time.Minute)
		if want := []time.Duration{3 * time.Second, 12 * time.Second}; !slices.Equal(rang, want) {
			t.Errorf("it rang at %v, want %v", rang, want)
		}
	})
}
