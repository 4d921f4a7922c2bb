package sequence

import (
	"context"
	"time"

	"seqproxy/internal/await"
	"seqproxy/sequence/cache"
	"seqproxy/sequence/change"
	"seqproxy/sequence/steps"
)

// Fill implements [change.Servers]. Who is silent for long is not waited for.
func (p planServers) Fill(ctx context.Context, members []change.Store) {
	for _, m := range members {
		m.(steps.Store).Announce(ctx)
	}
	for _, m := range members {
		v := m.(steps.Store)
		var version uint64
		if err := v.Pool().QueryRowContext(ctx, "SELECT `version` FROM "+v.Table.Version+" WHERE `one` = 1").Scan(&version); err != nil {
			continue
		}
		for {
			p.s.seeChanges(ctx)
			all, err := v.Proxies.List(ctx)
			if err != nil {
				break
			}
			waiting := false
			for i := range all {
				waiting = waiting || all[i].Version < version && !all[i].Stale()
			}
			if !waiting || !await.Pause(ctx, p.s.timing.fillPoll) {
				break
			}
		}
	}
}

// fillFor tops up the caches before a change of plans freezes the rows, if a server tells that one
// is proposed.
func (s *Sequences) fillFor(ctx context.Context, v *server) {
	var n int
	err := v.Pool().QueryRowContext(ctx, "SELECT COUNT(*) FROM "+v.Table.Plan+" WHERE `state` = '"+change.Proposed+"'").Scan(&n)
	if err != nil || n == 0 {
		return // most have no such table
	}
	s.mu.Lock()
	var all []*cache.Cache
	for _, q := range s.sequences {
		if q.clocked == nil { // else its ticks last as long as they are to last
			all = append(all, q.cachesLocked()...)
		}
	}
	s.mu.Unlock()
	filling := func() (more bool) {
		for _, c := range all {
			more = c.TopUp(time.Now()) || more
		}
		return more
	}
	for filling() && await.Pause(ctx, s.timing.fillPoll/10) {
	}
}
