package cache

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

// rateSpan is how far back the rate reaches from which the end is estimated: at least half as long.
const rateSpan = 24 * time.Hour

// Limits are the range of a sequence's numbers.
type Limits struct {
	first uint64 // the first one
	End   uint64 // the lowest of MAXVALUE, the id column, the owning column and 2^53-1 if json_safe
}

// LimitsOf returns the range of the sequence that a row is of.
func LimitsOf(r *store.Row) Limits {
	return Limits{first: max(r.Def.Min, 1), End: r.Max}
}

// Used returns how much of the numbers up to position is gone, in percent.
func (l Limits) Used(position uint64) float64 {
	switch {
	case position < l.first:
		return 0
	case position >= l.End:
		return 100
	}
	return float64(position-l.first+1) / (float64(l.End-l.first) + 1) * 100
}

// progress measures how fast the row of a sequence rises, through any proxy. It is pure: the clock
// is an argument. Its owner synchronises.
type progress struct {
	from, middle sample
}

type sample struct {
	at       time.Time
	position uint64
}

// observe records the row's position.
func (p *progress) observe(now time.Time, position uint64) {
	s := sample{now, position}
	if p.from.at.IsZero() || position < p.from.position {
		p.from, p.middle = s, s
		return
	}
	if now.Sub(p.middle.at) >= rateSpan/2 {
		p.from, p.middle = p.middle, s
	}
}

// rate is in numbers per second; false after too short a time.
func (p *progress) rate(now time.Time, position uint64) (float64, bool) {
	span := now.Sub(p.from.at)
	if p.from.at.IsZero() || span < segment.PaceWindow || position < p.from.position {
		return 0, false
	}
	return float64(position-p.from.position) / span.Seconds(), true
}

// exhaustion is how near a sequence is to its end. Its owner synchronises.
type exhaustion struct {
	limits   Limits   // where the numbers end
	progress progress // of the highest number reserved
	warned   int      // how many of warnAt were crossed
}

// seconds estimates when the numbers of a sequence at a position run out; +Inf if it is not used.
// Before its progress was observed for long enough, it assumes rate.
func (e *exhaustion) seconds(now time.Time, position uint64, rate float64) float64 {
	if e.limits.End <= position {
		return 0
	}
	if seen, ok := e.progress.rate(now, position); ok {
		rate = seen
	}
	if rate <= 0 {
		return math.Inf(1)
	}
	return float64(e.limits.End-position) / rate
}

// crossed returns how much of the numbers up to position is gone, in percent, and whether a further
// mark is crossed.
func (e *exhaustion) crossed(position uint64) (used float64, more bool) {
	used = e.limits.Used(position)
	marks := 0
	for _, mark := range warnAt {
		if used >= mark {
			marks++
		}
	}
	more = marks > e.warned
	e.warned = marks
	return used, more
}

// estimate describes when the end comes.
func estimate(seconds float64) string {
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

// percent rounds used for people: never up to the end.
func percent(used float64) float64 { return math.Floor(used*100) / 100 }

// Limits returns the range of the numbers.
func (c *Cache) Limits() Limits {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.exhaustion.limits
}

// StandsAt records how far a sequence has come whose keys are not given here, and how many were
// given.
func (c *Cache) StandsAt(now time.Time, at, given uint64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	given = max(given, c.stock.given) // a later reader may come first
	c.stock.given, c.stock.reserved = given, given
	if at > c.counter.top {
		c.counter.top = at
		c.watchEndLocked(now)
	}
}

// watchEndLocked warns when the reserved numbers cross one of the marks, once each.
func (c *Cache) watchEndLocked(now time.Time) {
	e := &c.exhaustion
	e.progress.observe(now, c.counter.top)
	if e.limits.End == 0 || c.counter.cycle || define.IsWorker(c.Name) {
		return
	}
	used, more := e.crossed(c.counter.top)
	if !more {
		return
	}
	seconds := e.seconds(now, c.counter.top, c.counter.rise(c.sizes.pace.Rate()))
	c.all.Log.Warn("sequence nears its end", logfield.Sequence(define.ShownName(c.Name)), zap.Float64("used_percent", percent(used)),
		zap.Uint64("reserved_up_to", c.counter.top), zap.Uint64("end", e.limits.End), zap.String("at_this_rate", estimate(seconds)))
	c.all.Notices.put(define.BaseRow(c.Name), notice(define.ShownName(c.Name), used, e.limits.End, seconds))
}
