package limit

import (
	"fmt"
	"math"
	"testing"
)

func TestAWindowHoldsManyReservationsAndNeverGoesBeyondTheEnd(t *testing.T) {
	const most = math.MaxUint64
	for _, test := range []struct{ position, width, highest, end uint64 }{
		{0, 10, most, leastWindow},
		{1000, 1000, most, 1000 + leastWindow},
		{0, 1 << 20, most, windowWidths << 20},
		// a share of the rest, or one reservation, where it would exceed 64 bits
		{0, most / 2, most, most / 2},
		{most - 10, 5, most, most - 5},  // near the end one reservation
		{most - 10, 50, most, most},     // which may be less
		{0, 10, 256 * 100, 100},         // a small sequence has most of itself outside of windows
		{1 << 40, 10, 1 << 20, 1 << 20}, // a row above its end
		{5, 1, 6, 6},
		{6, 1, 6, 6},
		{0, 1 << 58, most, 1 << 58},
	} {
		end := WindowEnd(test.position, test.width, test.highest)
		if end != test.end {
			t.Errorf("WindowEnd(%d, %d, %d) = %d, want %d", test.position, test.width, test.highest, end, test.end)
		}
	}
	if !WindowLow(40_000, 10, leastWindow, most) || WindowLow(20_000, 10, leastWindow, most) || WindowLow(99, 10, 100, 100) {
		t.Error("the next window is not opened at the half of one")
	}
}

// Windows for the ticks of a worker end with the reservation, and what a new holder may give alone
// does not come from the old window.
func TestWindowsOfTicksHaveNothingThatAFailOverSkips(t *testing.T) {
	for _, test := range []struct {
		Counter
		window, floor, alone uint64
	}{
		{Counter{Position: 100, Width: 50, Max: 1000, Alone: 40}, 150, 151, 191},
		{Counter{Position: 100, Width: 1 << 40, Max: math.MaxUint64}, 100 + 1<<40, 101 + 1<<40, 101 + 1<<40},
		{Counter{Position: 990, Width: 50, Max: 1000, Alone: 40}, 1000, 1001, 1041},
		{Counter{Position: 1001, Width: 1, Max: 1000, Alone: 40}, 1000, 1001, 1041},
	} {
		test.Ticks, test.End = true, math.MaxUint64
		window := test.windowEnd()
		open, _, _ := (&Beginning{Open: true}).Of(test.Counter, window)
		closed, position, _ := (&Beginning{}).Of(test.Counter, window)
		if window != test.window || position != test.floor || open.Floor != test.floor || open.Granted != test.alone || open.Wanted != test.alone || closed.Granted != 0 || closed.Wanted > test.floor {
			t.Errorf("%+v: got a window up to %d, then %d, alone up to %+v, else %+v", test, window, position, open, closed)
		}
	}
}

// Whatever sets of nodes confirm a window and show a takeover, a later holder knows of the window,
// and of each earlier holder.
func TestTakeOversMeetWindowsAndEachOther(t *testing.T) {
	for n := 2; n <= 9; n++ {
		if c, a := Confirmations(n), takeovers(n, false); c+a <= n || 2*a <= n || c > n || a > n {
			t.Errorf("%d nodes: windows on %d, take-overs on %d: they need not meet", n, c, a)
		}
		if a := takeovers(n, true); n > 2 && a != takeovers(n, false) {
			t.Errorf("%d nodes: %d are enough after another holder, want as many as always", n, a)
		}
	}
	if a := takeovers(2, true); a != 1 {
		t.Errorf("of two nodes %d must show a take-over after the other one, want the new holder alone", a)
	}
}

func TestOnlyNodesThatAnswerAreTakenForLagging(t *testing.T) {
	behind, dead := &Witness{Err: ErrNotShown}, &Witness{Err: ErrNotAsked}
	for name, c := range map[string]struct {
		err  error
		want bool
	}{
		"nothing is missing": {nil, false},
		"another error":      {ErrNotHolder, false},
		"one lags":           {fmt.Errorf("wrapped: %w", &SeenError{Missing: []*Witness{behind}}), true},
		"one is dead":        {&SeenError{Missing: []*Witness{behind, dead}}, false},
		"one is a stranger":  {&SeenError{Missing: []*Witness{{Err: ErrStranger}}}, false},
		"another holder":     {&SeenError{Missing: []*Witness{behind}, Newer: Holder{Term: 2}}, false},
	} {
		if got := IsLagging(c.err); got != c.want {
			t.Errorf("%s: got %v, want %v", name, got, c.want)
		}
	}
}

// A window that nobody has used is no longer after a fail-over. It was twice as long after each
// fail-over of a pair, and after 14 of them a sequence of 9 digits had run out.
func TestFailOversOfAPairSkipNoMoreEachTime(t *testing.T) {
	for _, first := range []uint64{leastWindow, 1 << 30} {
		c, wanted := Counter{Name: "photos", End: math.MaxUint64}, first
		for term := uint64(2); term < 60; term++ {
			b := &Beginning{Holder: "a", Term: term, Open: true}
			l, position, _ := b.Of(c, wanted)
			if skipped := position - c.Position; skipped > first+windowWidths*term {
				t.Fatalf("fail-over %d skips %d numbers, of a window of %d", term-1, skipped, first)
			}
			if l.Granted-position < first {
				t.Fatalf("fail-over %d leaves a window of %d, of %d", term-1, l.Granted-position, first)
			}
			c.Position, wanted = position, l.Wanted
		}
	}
}
