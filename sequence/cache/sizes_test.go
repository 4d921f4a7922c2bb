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
		s.choose(begin, z, 0, &c.of)
		s.choose(begin.Add(time.Minute), z, c.given, &c.of)
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
		s.choose(begin.Add(c.after), Sizing{Least: 10, Cover: time.Second}, c.given, &of)
		if got := s.usedAt.Sub(begin); got != c.used {
			t.Errorf("%d: used after %v, want %v", i, got, c.used)
		}
		if s.pace.Rate() != rate {
			t.Errorf("%d: the rate was told as %v, and is %v", i, rate, s.pace.Rate())
		}
	}
}

func TestTheDemandIsOfThoseWhoWaitOrAhead(t *testing.T) {
	for name, c := range map[string]struct {
		cached uint64
		wants  []uint64
		left   uint64
		idle   bool
		not    bool // nothing is fetched ahead
		want   uint64
		need   uint64
	}{
		"enough is cached":         {cached: 50, left: 1e9},
		"too little is":            {cached: 49, left: 1e9, want: 100, need: 1},
		"and none is to be":        {cached: 49, left: 1e9, not: true},
		"idle":                     {cached: 79, left: 1e9, idle: true, want: 100, need: 1},
		"idle and whole":           {cached: 80, left: 1e9, idle: true},
		"idle, none is to be":      {cached: 0, left: 1e9, idle: true, not: true},
		"one waits":                {cached: 0, wants: []uint64{3}, left: 1e9, want: 100, need: 3},
		"one waits all the same":   {cached: 0, wants: []uint64{3}, left: 1e9, not: true, want: 100, need: 3},
		"one waits for a long run": {cached: 99, wants: []uint64{300}, left: 1e9, want: 300, need: 300},
		"a crowd waits":            {wants: []uint64{90, 90, 90}, left: 1e9, want: 270, need: 90},
		"a crowd near the end":     {wants: []uint64{90, 90, 90}, left: 1000, want: 100, need: 90},
	} {
		s := sizes{size: 100, low: 50, idle: c.idle}
		s.pace.Base = 80
		l, _ := lineOf(c.wants...)
		if want, need := s.demand(c.cached, l, c.left, !c.not); want != c.want || need != c.need {
			t.Errorf("%s: got %d and at least %d, want %d and %d", name, want, need, c.want, c.need)
		}
	}
}

func TestTheDemandUnderCACHEIsNeverMoreThanThat(t *testing.T) {
	for name, c := range map[string]struct {
		cached uint64
		first  *waiter
		not    bool // nothing is fetched ahead
		want   uint64
		need   uint64
		giveUp bool
	}{
		"enough is cached":          {cached: 16},
		"too little is":             {cached: 15, want: 15, need: 1},
		"and none is to be":         {cached: 15, not: true},
		"one waits":                 {first: &waiter{n: 3}, want: 30, need: 3, giveUp: true},
		"the rest may be completed": {cached: 2, first: &waiter{n: 3}, want: 28, need: 1},
		"it was not":                {cached: 2, first: &waiter{n: 3, joinTried: true}, want: 30, need: 3, giveUp: true},
		"a rest of borders":         {cached: 30, first: &waiter{n: 3}, want: 30, need: 3, giveUp: true},
		"a longer run":              {cached: 2, first: &waiter{n: 31}, want: 31, need: 31},
	} {
		s := sizes{exact: 30, size: 30, low: 16}
		want, need, giveUp := s.demandExact(c.cached, c.first, !c.not)
		if want != c.want || need != c.need || giveUp != c.giveUp {
			t.Errorf("%s: got %d and at least %d, gives up: %v; want %d, %d, %v", name, want, need, giveUp, c.want, c.need, c.giveUp)
		}
	}
}
