package sequence

import (
	"context"

	"seqproxy/internal/await"
	"seqproxy/sequence/change"
	"seqproxy/sequence/steps"
)

// Fill implements [change.Servers]. It does not wait for a proxy that is silent for long.
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
