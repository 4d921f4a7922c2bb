package segment

import (
	"math"
	"testing"
	"time"
)

func TestPlanFollowsRateWithinItsBounds(t *testing.T) {
	const cover = 15 * time.Minute
	for _, c := range []struct {
		name          string
		rate          float64 // numbers per second, for an hour
		left          uint64
		minSize, size uint64 // the size's range
	}{
		{"unused", 0, math.MaxUint64, 1000, 1000},
		{"one in ten seconds", 0.1, math.MaxUint64, 1000, 1000},
		{"ten a second", 10, math.MaxUint64, 9000, 11000},
		{"a million a second", 1e6, math.MaxUint64, 9e8, 11e8},
		{"an INT column", 1e6, math.MaxInt32, math.MaxInt32 / 1000, math.MaxInt32 / 1000},
		{"a TINYINT column", 1e6, 255, 1, 1},
		{"the end", 10, 5500, 5, 5},
		{"nothing left", 10, 0, 1, 1},
	} {
		p := Pace{Base: 1000, Cover: cover}
		now := time.Unix(1e9, 0)
		p.Observe(now, 0)
		for range 3600 {
			now = now.Add(time.Second)
			p.Observe(now, uint64(c.rate))
		}
		if c.rate > 0 && c.rate < 1 {
			p.Observe(now, 6)
		}
		size, low := p.Sizes(c.left)
		if size < c.minSize || size > c.size {
			t.Errorf("%s: size is %d, want %d to %d", c.name, size, c.minSize, c.size)
		}
		if low > size {
			t.Errorf("%s: the water mark %d is above the size %d: it would fetch without end", c.name, low, size)
		}
	}
}

func TestMeasuredRateDoesNotDependOnHowOftenItIsTold(t *testing.T) {
	for _, every := range []time.Duration{10 * time.Millisecond, time.Second, 30 * time.Second, 10 * time.Minute} {
		p := Pace{Base: 1000, Cover: 15 * time.Minute}
		now := time.Unix(1e9, 0)
		p.Observe(now, 0)
		for end := now.Add(time.Hour); now.Before(end); {
			now = now.Add(every)
			p.Observe(now, uint64(500*every.Seconds()))
		}
		if got := p.Rate(); got < 495 || got > 505 {
			t.Errorf("500/s told every %v is measured as %.1f/s", every, got)
		}
	}
}

func TestClockThatGoesBackIsHarmless(t *testing.T) {
	p := Pace{Base: 1000, Cover: 15 * time.Minute}
	now := time.Unix(1e9, 0)
	p.Observe(now, 600)
	p.Observe(now.Add(-time.Hour), 600)
	if size, low := p.Sizes(math.MaxUint64); size < 1000 || size > 30000 || low > size {
		t.Errorf("got size %d and water mark %d, want a size between 1000 and 30000", size, low)
	}
}
