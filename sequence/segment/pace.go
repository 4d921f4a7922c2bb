package segment

import (
	"math"
	"time"
)

// PaceWindow is the time constant of the rate measurement. It spreads a burst of a few
// milliseconds, which must not reserve a quarter of an hour's worth of numbers, and measures a
// steady rate within about a minute.
const PaceWindow = time.Minute

// Headroom is the factor on the numbers for Cover.
const Headroom = 1.1

// CeilingShare: an adaptive segment takes at most this part of what remains to the sequence's
// maximum.
const CeilingShare = 1000

// Pace measures the use of a sequence and derives how many numbers to reserve. It is pure: the
// clock is an argument. Its owner synchronises.
type Pace struct {
	Base  uint64        // the smallest size
	Cover time.Duration // how long the cached numbers should last

	Recent float64 // numbers given, decayed with PaceWindow
	Peak   float64 // size before rounding, decaying with Cover while the rate falls
	at     time.Time
}

// Observe records n numbers given since the last call.
func (p *Pace) Observe(now time.Time, n uint64) {
	if p.at.IsZero() {
		p.at = now
	}
	dt := max(now.Sub(p.at), 0)
	p.at = now
	windows := dt.Seconds() / PaceWindow.Seconds()
	recent := float64(n)
	if windows > 0 {
		// The n numbers were given all along dt: the early ones have decayed already.
		recent *= -math.Expm1(-windows) / windows
	}
	p.Recent = p.Recent*math.Exp(-windows) + recent
	p.Peak = max(p.wanted(), p.Peak*math.Exp(-dt.Seconds()/p.Cover.Seconds()))
}

// Rate returns the measured use in numbers per second.
func (p *Pace) Rate() float64 { return p.Recent / PaceWindow.Seconds() }

// wanted returns how many numbers last for Cover at the measured rate. Headroom makes up for the
// lag of the measurement behind a rising rate.
func (p *Pace) wanted() float64 { return p.Rate() * p.Cover.Seconds() * Headroom }

// Sizes returns the size of the next segment and the low-water mark: with fewer cached numbers than
// that, the next segment is reserved. rest is how many numbers remain to the sequence's maximum.
func (p *Pace) Sizes(rest uint64) (size, low uint64) {
	limit := max(rest/CeilingShare, 1)
	size = max(p.Base, clampUint(p.Peak))
	low = max(p.Base/2, clampUint(p.wanted()))
	if size > limit {
		// Near the end, or with a small column, the mark must not ask for more than the size may
		// give.
		return limit, min(low, limit/2)
	}
	return size, low
}

// clampUint converts without Go's undefined result for floats beyond the range.
func clampUint(f float64) uint64 {
	if f >= math.MaxUint64/2 {
		return math.MaxUint64 / 2
	}
	return uint64(math.Ceil(f))
}
