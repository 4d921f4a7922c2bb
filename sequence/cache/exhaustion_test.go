package cache

import (
	"math"
	"testing"
	"time"
)

func TestEndIsEstimatedByTheRateOfTheDay(t *testing.T) {
	begin := time.Unix(1e9, 0)
	var a advance
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
