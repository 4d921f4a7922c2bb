package cache

import (
	"context"
	"runtime"
	"time"
)

// Callers of an ORDER sequence that ask again at once fall into two halves: while the UPDATE of one
// is on its way the other comes back, so that each caller waits for two UPDATEs every time. If a
// batch waits a moment for those who were just served, nearly all share one. That gives more
// numbers where an UPDATE is expensive, because the server is far away or its commits are slow.
// Where it is cheap the wait itself costs as much. Where callers do not come back at once, it costs
// them time, which is a small part of the UPDATE's.
const (
	dearUpdate  = 2 * time.Millisecond // after a shorter one no batch waits
	gatherShare = 4                    // the wait is at most this part of the UPDATE
	leastGather = time.Millisecond     // a shorter timer may take as long
	mostGather  = 20 * time.Millisecond
)

// gatherTime returns how long at most a batch waits for the callers of the one before, whose UPDATE
// took so long.
func gatherTime(took time.Duration) time.Duration {
	if took < dearUpdate {
		return 0
	}
	return min(max(took/gatherShare, leastGather), mostGather)
}

// gathering is the wait of a batch for those who were just served. Its owner synchronises.
type gathering struct {
	target int           // this many waiting callers are enough; 0: no wait
	full   chan struct{} // signals that they have come; has room for one
}

// begin returns, after an UPDATE that took so long and served some callers, how long at most the
// next one waits for them, where so many wait already.
func (g *gathering) begin(took time.Duration, served, waiting int) (most time.Duration) {
	all := served + waiting
	if served == 0 || all < 2 {
		return 0
	}
	target := all - all/16 // a few may have stopped asking
	if most = gatherTime(took); most == 0 || waiting >= target {
		return 0
	}
	if g.full == nil {
		g.full = make(chan struct{}, 1)
	}
	g.target = target
	return most
}

// arrived ends the wait once enough callers wait.
func (g *gathering) arrived(waiting int) {
	if g.target > 0 && waiting >= g.target {
		g.target = 0
		g.full <- struct{}{}
	}
}

// over ends the gathering.
func (g *gathering) over() {
	g.target = 0
	select {
	case <-g.full: // it came at the same moment as the end of the time
	default:
	}
}

// gather waits as [gathering.begin] said. In any case the served callers run before the next
// UPDATE, unless a processor is free, because their answers are ready.
func (c *Cache) gather(ctx context.Context, most time.Duration) {
	if most == 0 {
		runtime.Gosched()
		return
	}
	timer := time.NewTimer(most)
	defer timer.Stop()
	select {
	case <-c.gathering.full: // set once, before any caller may wait
	case <-timer.C:
	case <-ctx.Done():
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.gathering.over()
}
