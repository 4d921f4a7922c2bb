package sequence

import (
	"math"
	"time"
)

// paceWindow is the time constant of the rate measurement: a burst of a few milliseconds is spread over it, so that
// it does not reserve a quarter of an hour's worth of numbers, while a steady rate is known after about a minute.
const paceWindow = time.Minute

// headroom is what is held beyond the cover.
const headroom = 1.1

// ceilingShare: an adaptive segment takes at most this part of what is left to the sequence's maximum.
const ceilingShare = 1000

// pace measures how fast a sequence is used and derives from it how many numbers to reserve. It is pure: the clock is
// an argument. Its owner synchronises.
type pace struct {
	base  uint64        // the smallest size
	cover time.Duration // how long the numbers held should last

	recent float64 // numbers given, decayed with paceWindow
	peak   float64 // size before rounding, decaying with cover while the rate falls
	at     time.Time
}

// coverOf is for how long the numbers of a sequence should last, if it says so itself; else 0.
func coverOf(d *Definition) time.Duration { return time.Duration(d.Cover) * time.Second }

// observe accounts for n numbers given since the last call.
func (p *pace) observe(now time.Time, n uint64) {
	if p.at.IsZero() {
		p.at = now
	}
	dt := max(now.Sub(p.at), 0)
	p.at = now
	windows := dt.Seconds() / paceWindow.Seconds()
	recent := float64(n)
	if windows > 0 {
		// The n numbers were given all along dt, not just now: the early ones have decayed already.
		recent *= -math.Expm1(-windows) / windows
	}
	p.recent = p.recent*math.Exp(-windows) + recent
	p.peak = max(p.wanted(), p.peak*math.Exp(-dt.Seconds()/p.cover.Seconds()))
}

// rate is the measured use in numbers per second.
func (p *pace) rate() float64 { return p.recent / paceWindow.Seconds() }

// wanted is how many numbers last for cover at the measured rate, with some to spare because the measurement lags behind
// a rate that rises.
func (p *pace) wanted() float64 { return p.rate() * p.cover.Seconds() * headroom }

// plan returns the size of the next segment and the low-water mark: when fewer numbers than that are held, the next
// segment is fetched. left is how many numbers remain to the sequence's maximum.
func (p *pace) plan(left uint64) (size, low uint64) {
	limit := max(left/ceilingShare, 1)
	size = max(p.base, clampUint(p.peak))
	low = max(p.base/2, clampUint(p.wanted()))
	if size > limit {
		// Near the end (or for a small column) the water mark must not ask for what the size may not give.
		return limit, min(low, limit/2)
	}
	return size, low
}

// clampUint converts without the undefined result that Go gives for floats beyond the range.
func clampUint(f float64) uint64 {
	if f >= math.MaxUint64/2 {
		return math.MaxUint64 / 2
	}
	return uint64(math.Ceil(f))
}
