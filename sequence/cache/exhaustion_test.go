package cache

import (
	"math"
	"testing"
	"time"
)

func TestEndIsEstimatedByTheRateOfTheDay(t *testing.T) {
	begin := time.Unix(1e9, 0)
	var a progress
	a.observe(begin, 1000)
	if _, ok := a.rate(begin.Add(time.Second), 5000); ok {
		t.Error("a second is enough for a rate")
	}
	position := uint64(1000)
	for hour := range 240 {
		speed := uint64(3600) // one a second
		if hour >= 120 {
			speed = 36000
		}
		position += speed
		a.observe(begin.Add(time.Duration(hour+1)*time.Hour), position)
	}
	now := begin.Add(240 * time.Hour)
	if rate, ok := a.rate(now, position); !ok || math.Abs(rate-10) > 0.1 {
		t.Errorf("after days at 10 a second got %v, %v", rate, ok)
	}
	a.observe(now, 5) // restarted
	if _, ok := a.rate(now, 5); ok {
		t.Error("a rate is told of a sequence that was just restarted")
	}

	for _, c := range []struct {
		Limits
		position uint64
		want     float64
	}{
		{Limits{1, 100}, 0, 0},
		{Limits{1, 100}, 75, 75},
		{Limits{1, 100}, 100, 100},
		{Limits{1, 100}, 101, 100},
		{Limits{51, 100}, 75, 50},
		{Limits{1, math.MaxUint64}, 1 << 63, 50},
		{Limits{1, math.MaxUint64}, math.MaxUint64, 100},
		{Limits{5, 3}, 4, 0},
	} {
		if got := c.Used(c.position); math.Abs(got-c.want) > 1e-9 {
			t.Errorf("%+v at %d: %v %% are used, want %v", c.Limits, c.position, got, c.want)
		}
	}
}

func TestAWarningIsDueOncePerMark(t *testing.T) {
	e := exhaustion{limits: Limits{1, 1000}}
	for _, c := range []struct {
		at   uint64
		used float64
		more bool
	}{
		{100, 10, false},
		{749, 74.9, false},
		{750, 75, true},
		{751, 75.1, false},
		{995, 99.5, true}, // two at once
		{1000, 100, false},
		{10, 1, false}, // restarted
		{800, 80, true},
	} {
		if used, more := e.crossed(c.at); math.Abs(used-c.used) > 1e-9 || more != c.more {
			t.Errorf("at %d: %v %% are used, a warning is due: %v; want %v, %v", c.at, used, more, c.used, c.more)
		}
	}
}

func TestTheEndIsToldAsFarAsItIsKnown(t *testing.T) {
	begin := time.Unix(1e9, 0)
	seen := progress{from: sample{begin, 0}, middle: sample{begin, 0}}
	for _, c := range []struct {
		name     string
		progress progress
		at       uint64
		rate     float64
		want     string
	}{
		{"at the end", seen, 1_000_000, 1, "exhausted now"},
		{"behind it", seen, 1_000_001, 1, "exhausted now"},
		{"nobody takes", progress{}, 500_000, 0, "unknown"},
		{"as they are taken here", progress{}, 500_000, 500, "exhausted in 17 minutes"},
		{"as the row rises", seen, 360_000, 500, "exhausted in 3 hours"},
		{"in days", progress{}, 0, 1, "exhausted in 12 days"},
		{"below two hours", progress{}, 1_000_000 - 7199, 1, "exhausted in 120 minutes"},
	} {
		e := exhaustion{limits: Limits{1, 1_000_000}, progress: c.progress}
		if got := estimate(e.seconds(begin.Add(90*time.Minute), c.at, c.rate)); got != c.want {
			t.Errorf("%s: got %q, want %q", c.name, got, c.want)
		}
	}
}

func TestANoticeIsNotRoundedUp(t *testing.T) {
	for _, c := range []struct {
		used, seconds float64
		want          string
	}{
		{99.999, math.Inf(1), "99.99% of the numbers of sequence 'photos' are used; the last is 1000"},
		{75, 0, "75% of the numbers of sequence 'photos' are used; the last is 1000; exhausted now"},
	} {
		if got := notice("photos", c.used, 1000, c.seconds); got != c.want {
			t.Errorf("got %q, want %q", got, c.want)
		}
	}
}
