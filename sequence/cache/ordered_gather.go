package cache

import (
	"context"
	"runtime"
	"time"
)

// Callers of an ORDER sequence who ask again as soon as they have been answered fall into two
// halves: while the UPDATE of one is on its way the other comes back, so that everybody waits for
// two UPDATEs each time. If a batch waits a moment for those who were just served, nearly all share
// one. That brings more numbers where an UPDATE is dear, because the server is far away or its
// commits are slow. Where it is cheap the wait itself costs as much. Where callers do not come back
// at once it costs them time, which is a small part of what the UPDATE takes.
const (
	dearUpdate  = 2 * time.Millisecond // after a shorter one nobody is waited for
	gatherShare = 4                    // the wait is at most this part of the UPDATE
	leastGather = time.Millisecond     // a shorter timer may last that long, too
	mostGather  = 20 * time.Millisecond
)

// gatherTime is for how long at most a batch waits for the callers of the one before, whose UPDATE
// took so long.
func gatherTime(took time.Duration) time.Duration {
	if took < dearUpdate {
		return 0
	}
	return min(max(took/gatherShare, leastGather), mostGather)
}

// gathering is the wait of a batch for those who were just served. The cache's mu guards it.
type gathering struct {
	target int           // so many who wait are enough; 0: nobody waits for them
	full   chan struct{} // has room for one: that they are there
}

// gatherLocked says, when a reservation that began at begun has landed, for how long at most the
// next one waits for the callers who were served.
func (c *Cache) gatherLocked(begun time.Time) (most time.Duration) {
	all := c.served + c.line.length
	if !c.order || begun.IsZero() || c.served == 0 || all < 2 {
		return 0
	}
	target := all - all/16 // a few may have stopped asking
	if most = gatherTime(c.reservedAt.Sub(begun)); most == 0 || c.line.length >= target {
		return 0
	}
	if c.gathering.full == nil {
		c.gathering.full = make(chan struct{}, 1)
	}
	c.gathering.target = target
	return most
}

// gather waits as gatherLocked said. In any case those who were served have their turn before the
// next UPDATE is made, unless a processor is free: their answers are ready.
func (c *Cache) gather(ctx context.Context, most time.Duration) {
	if most == 0 {
		runtime.Gosched()
		return
	}
	timer := time.NewTimer(most)
	defer timer.Stop()
	select {
	case <-c.gathering.full: // set once, before anybody may wait
	case <-timer.C:
	case <-ctx.Done():
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.gathering.target = 0
	select {
	case <-c.gathering.full: // it came at the same moment as the end of the time
	default:
	}
}

// arrivedLocked ends the wait for callers once there are enough.
func (c *Cache) arrivedLocked() {
	if g := &c.gathering; g.target > 0 && c.line.length >= g.target {
		g.target = 0
		g.full <- struct{}{}
	}
}
