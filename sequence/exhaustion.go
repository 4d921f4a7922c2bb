package sequence

import (
	"fmt"
	"math"
	"time"

	"go.uber.org/zap"

	"seqproxy/internal/logfield"
	"seqproxy/sequence/define"
	"seqproxy/sequence/segment"
	"seqproxy/sequence/store"
)

// warnAt are the shares of a sequence's numbers, in percent, at which a warning is due.
var warnAt = [...]float64{75, 90, 99}

// rateSpan is how long the rate that the end is estimated from looks back: at least half as long.
const rateSpan = 24 * time.Hour

// limits say where the numbers of a sequence end.
type limits struct {
	first uint64 // where they begin
	end   uint64 // the lowest of MAXVALUE, the id column, the owning column and 2^53-1 if json_safe
}

func limitsOf(r *store.Row) limits {
	l := limits{first: max(r.Def.Min, 1), end: r.Max}
	if r.Def.OwnerMax != 0 {
		l.end = min(l.end, r.Def.OwnerMax)
	}
	return l
}

// used is how much of the numbers up to position is gone, in percent.
func (l limits) used(position uint64) float64 {
	switch {
	case position < l.first:
		return 0
	case position >= l.end:
		return 100
	}
	return float64(position-l.first+1) / (float64(l.end-l.first) + 1) * 100
}

// advance measures how fast the row of a sequence rises, by whomever. It is pure: the clock is an
// argument. Its owner synchronises.
type advance struct {
	from, middle sample
}

type sample struct {
	at       time.Time
	position uint64
}

// observe takes note of the row's position.
func (a *advance) observe(now time.Time, position uint64) {
	s := sample{now, position}
	if a.from.at.IsZero() || position < a.from.position {
		a.from, a.middle = s, s
		return
	}
	if now.Sub(a.middle.at) >= rateSpan/2 {
		a.from, a.middle = a.middle, s
	}
}

// rate is in numbers per second; false if too little was seen.
func (a *advance) rate(now time.Time, position uint64) (float64, bool) {
	span := now.Sub(a.from.at)
	if a.from.at.IsZero() || span < segment.PaceWindow || position < a.from.position {
		return 0, false
	}
	return float64(position-a.from.position) / span.Seconds(), true
}

// secondsToEndLocked estimates when the sequence runs out; +Inf if it is not used. c.mu is held.
func (c *cache) secondsToEndLocked(now time.Time) float64 {
	return c.secondsToEndAt(now, c.pace.Rate())
}

// secondsToEndAt is secondsToEndLocked where numbers are taken here at a rate.
func (c *cache) secondsToEndAt(now time.Time, taken float64) float64 {
	at := c.top
	if c.limits.end <= at {
		return 0
	}
	rate, ok := c.advance.rate(now, at)
	if !ok {
		rate = taken * float64(max(c.rule.Step, 1))
	}
	if rate <= 0 {
		return math.Inf(1)
	}
	return float64(c.limits.end-at) / rate
}

// watchEndLocked warns when the numbers that were reserved cross one of the marks, once each.
func (c *cache) watchEndLocked(now time.Time) {
	c.advance.observe(now, c.top)
	if c.limits.end == 0 || c.cycle || define.IsWorker(c.name) {
		return
	}
	used := c.limits.used(c.top)
	crossed := 0
	for _, mark := range warnAt {
		if used >= mark {
			crossed++
		}
	}
	if crossed > c.warned {
		c.owner.log.Warn("sequence nears its end", logfield.Sequence(c.name), zap.Float64("used_percent", math.Floor(used*100)/100),
			zap.Uint64("reserved_up_to", c.top), zap.Uint64("end", c.limits.end), zap.String("at_this_rate", c.estimateLocked(now)))
		c.owner.notices.put(define.BaseRow(c.name), c.noticeLocked(now, used))
	}
	c.warned = crossed
}

// estimateLocked is when the end comes, for people.
func (c *cache) estimateLocked(now time.Time) string {
	seconds := c.secondsToEndLocked(now)
	switch {
	case seconds == 0:
		return "exhausted now"
	case math.IsInf(seconds, 1):
		return "unknown"
	case seconds >= 2*86400:
		return fmt.Sprintf("exhausted in %.0f days", seconds/86400)
	case seconds >= 2*3600:
		return fmt.Sprintf("exhausted in %.0f hours", seconds/3600)
	}
	return fmt.Sprintf("exhausted in %.0f minutes", math.Ceil(seconds/60))
}
