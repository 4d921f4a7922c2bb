package sequence

import (
	"runtime"
	"time"
)

// Callers of an ORDER sequence who ask again as soon as they have been answered fall into two halves: while the UPDATE of one is on its way
// the other comes back, so that everybody waits for two UPDATEs each time. If a batch waits a moment for those who were just served, nearly
// all share one. Where they do not come back at once that only takes time. So both ways are tried, and the one by which more callers are
// served is kept.

const (
	gatherPeriod = 64               // landings, after which the ways are compared
	gatherEvery  = 10               // periods from one trial of the other way to the next
	gatherGain   = 1.02             // so much more must waiting bring
	gatherLate   = 4                // so many waits in vain, one after the other, end it
	leastGather  = time.Millisecond // a shorter timer may last that long, too
	mostGather   = 20 * time.Millisecond
	gatherPause  = time.Second // what was counted before such a pause says nothing
)

// gathering is what is known about waiting for those who were just served. The cache's mu guards it.
type gathering struct {
	on     bool // a batch waits for them
	trying bool // in this period it is the other way round

	since, last       time.Time // the period's begin, and the last landing
	landings, callers int       // in it
	periods           int       // that are over since the last trial
	rate              float64   // callers per second, in the last one that was no trial
	late              int       // waits in vain, one after the other

	target int           // so many who wait are enough; 0: nobody waits for them
	full   chan struct{} // has room for one: that they are there
}

// landed takes note of a batch that was served, and reports whether the next one is to wait for its callers.
func (g *gathering) landed(now time.Time, served int) bool {
	if now.Sub(g.last) > gatherPause {
		*g = gathering{full: g.full, since: now, periods: gatherEvery - 1} // the first trial comes soon
	} else {
		g.landings++
		g.callers += served
	}
	g.last = now
	if g.landings >= gatherPeriod {
		g.compare(float64(g.callers) / max(now.Sub(g.since), time.Nanosecond).Seconds())
		g.landings, g.callers, g.since = 0, 0, now
	}
	return g.on != g.trying
}

// compare ends a period in which so many callers were served per second.
func (g *gathering) compare(rate float64) {
	if !g.trying {
		g.rate = rate
		g.periods++
		g.trying = g.periods >= gatherEvery
		return
	}
	with, without := rate, g.rate
	if g.on {
		with, without = without, with
	}
	g.on, g.trying, g.periods = with > gatherGain*without, false, 0
}

// ended takes note of a wait.
func (g *gathering) ended(inVain bool) {
	if !inVain {
		g.late = 0
		return
	}
	if g.late++; g.late >= gatherLate {
		g.on, g.trying, g.periods, g.late = false, false, 0, 0
		g.landings, g.callers, g.since = 0, 0, g.last
	}
}

// gatherLocked says, when a reservation that began at begun has landed, for how long at most the next one waits for the callers who were
// served.
func (c *cache) gatherLocked(begun time.Time) (most time.Duration) {
	all := c.served + c.queued
	if !c.order || begun.IsZero() || c.served == 0 || all < 2 || !c.gathering.landed(c.reservedAt, c.served) {
		return 0
	}
	target := all - all/16 // a few may have stopped asking
	if c.queued >= target {
		return 0
	}
	if c.gathering.full == nil {
		c.gathering.full = make(chan struct{}, 1)
	}
	c.gathering.target = target
	return min(max(c.reservedAt.Sub(begun), leastGather), mostGather)
}

// gather waits as gatherLocked said. In any case those who were served have their turn before the next UPDATE is made, unless a processor is
// free: their answers are ready.
func (c *cache) gather(most time.Duration) {
	if most == 0 {
		runtime.Gosched()
		return
	}
	timer := time.NewTimer(most)
	defer timer.Stop()
	select {
	case <-c.gathering.full: // set once, before anybody may wait
	case <-timer.C:
	case <-c.owner.ctx.Done():
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.gathering.ended(c.gathering.target > 0)
	c.gathering.target = 0
	select {
	case <-c.gathering.full: // it came at the same moment as the end of the time
	default:
	}
}

// arrivedLocked ends the wait for callers once there are enough.
func (c *cache) arrivedLocked() {
	if g := &c.gathering; g.target > 0 && c.queued >= g.target {
		g.target = 0
		g.full <- struct{}{}
	}
}
