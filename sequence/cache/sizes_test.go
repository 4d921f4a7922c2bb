package cache

import (
	"math"
	"testing"
	"time"
)

func TestSizesFollowTheRateOrWhatWasTyped(t *testing.T) {
	begin := time.Unix(1e9, 0)
	big := countsBy(1, 0, math.MaxUint64)
	small := countsBy(1, 0, 20_000)
	for name, c := range map[string]struct {
		sizes
		of        counter
		given     uint64 // within a minute
		size, low uint64
		whole     uint64
	}{
		"unused":              {sizes{}, big, 0, 100, 50, 100},
		"near the end":        {sizes{}, small, 0, 20, 10, 20},
		"used":                {sizes{}, big, 60_000, 6954, 6954, 100},
		"of its own cover":    {sizes{cover: time.Minute}, big, 60_000, 41_720, 41_720, 100},
		"CACHE":               {sizes{exact: 30}, big, 60_000, 30, 16, 30},
		"CACHE 1":             {sizes{exact: 1}, big, 0, 1, 0, 1},
		"CACHE near the end":  {sizes{exact: 30}, small, 0, 30, 16, 30},
		"CACHE above what is": {sizes{exact: 1000}, big, 0, 1000, 501, 100},
	} {
		s := c.sizes
		z := Sizing{Least: 100, Cover: 10 * time.Second}
		s.plan(begin, z, 0, &c.of)
		s.plan(begin.Add(time.Minute), z, c.given, &c.of)
		if s.size != c.size || s.low != c.low || s.whole() != c.whole {
			t.Errorf("%s: %d are reserved below %d, an idle one has %d; want %d, %d, %d", name, s.size, s.low, s.whole(), c.size, c.low, c.whole)
		}
	}
}

func TestOnlyNumbersThatAreGivenCountAsUse(t *testing.T) {
	begin := time.Unix(1e9, 0)
	of := countsBy(1, 0, math.MaxUint64)
	var s sizes
	for i, c := range []struct {
		after time.Duration
		given uint64
		used  time.Duration
	}{{0, 0, 0}, {time.Second, 0, 0}, {2 * time.Second, 5, 2 * time.Second}, {3 * time.Second, 5, 2 * time.Second}} {
		before := s
		rate := s.rate(begin.Add(c.after), c.given)
		if s != before {
			t.Errorf("%d: who asks for the rate changes it", i)
		}
		s.plan(begin.Add(c.after), Sizing{Least: 10, Cover: time.Second}, c.given, &of)
		if got := s.usedAt.Sub(begin); got != c.used {
			t.Errorf("%d: used after %v, want %v", i, got, c.used)
		}
		if s.pace.Rate() != rate {
			t.Errorf("%d: the rate was told as %v, and is %v", i, rate, s.pace.Rate())
		}
	}
}
