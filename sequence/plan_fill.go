package sequence

import (
	"context"
	"slices"

	"seqproxy/internal/await"
	"seqproxy/sequence/change"
	"seqproxy/sequence/steps"
	"seqproxy/sequence/store"
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
			waiting := slices.ContainsFunc(all, func(one store.Proxy) bool { return one.Version < version && !one.Stale() })
			if !waiting || !await.Pause(ctx, p.s.timing.fillPoll) {
				break
			}
		}
	}
}
