package histogram_test

import (
	"testing"
	"time"

	"seqproxy/internal/histogram"
)

func TestARangeEndsWithItsBound(t *testing.T) {
	for i, bound := range histogram.Bounds {
		if got := histogram.Range(bound); got != i {
			t.Errorf("%s is in range %d, want %d", bound, got, i)
		}
		if got := histogram.Range(bound + 1); got != i+1 {
			t.Errorf("%s and 1 ns is in range %d, want %d", bound, got, i+1)
		}
		if i > 0 && bound <= histogram.Bounds[i-1] {
			t.Errorf("bound %s does not rise", bound)
		}
	}
	if got := histogram.Range(0); got != 0 {
		t.Errorf("0 is in range %d", got)
	}
}

func TestSharedCountsEach(t *testing.T) {
	var s histogram.Shared
	for _, d := range []time.Duration{0, time.Millisecond, time.Millisecond, time.Hour} {
		s.Add(d)
	}
	h := s.Read()
	if h.Count() != 4 || h.Counts[0] != 1 || h.Counts[histogram.Range(time.Millisecond)] != 2 || h.Counts[histogram.Ranges-1] != 1 {
		t.Errorf("counted %v", h.Counts)
	}
	if want := time.Hour + 2*time.Millisecond; h.Sum != want {
		t.Errorf("sum %s, want %s", h.Sum, want)
	}
	var sum histogram.Histogram
	sum.Merge(&h)
	sum.Merge(&h)
	if sum.Count() != 8 || sum.Sum != 2*h.Sum {
		t.Errorf("merged twice: %v, %s", sum.Counts, sum.Sum)
	}
}
