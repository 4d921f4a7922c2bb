package steps

import (
	"context"
	"database/sql"
	"fmt"
	"strings"
	"time"

	"seqproxy/sequence/change"
	"seqproxy/sequence/store"
)

// This file is how a plan keeps known who may hold numbers. A proxy registers with a member before
// it reserves there, and a frozen member gives no numbers: so who is registered with the members so
// far, once those are frozen, is everybody who holds numbers. A member that accepts the next plan
// knows them, also those that are paused or cut off and do not hear of it for long, and whoever is
// brought to it takes them over from one of these.

// enterProxies enters those who may hold numbers, in the transaction in which a member accepts a
// change. Nobody knows who was registered with a removed member alone that could not be asked: one
// entry stands for them until an operator deletes it.
func (s Store) enterProxies(ctx context.Context, tx *sql.Tx, p *change.Plan, holders change.Holders) error {
	var lists [][]store.Proxy
	for _, list := range holders.Proxies {
		if known, ok := list.([]store.Proxy); ok {
			lists = append(lists, known)
		}
	}
	if away := holders.Unasked; away != "" {
		lists = append(lists, []store.Proxy{{
			ID:   fmt.Sprintf("%.26s", strings.ReplaceAll(p.UUID, "-", "")),
			Host: "those that only " + away + " knew, which was away when it was taken out", Since: time.Now(),
			Silent: 2 * s.Config.Stale, // nobody waits for a sign of life
		}})
	}
	return s.Proxies.Add(ctx, tx, store.MergeProxies(lists))
}

// copyProxies is enterProxies on a member that is brought to a plan, in the transaction that does
// so. was is what it was before.
func (s Store) copyProxies(ctx context.Context, tx *sql.Tx, p *change.Plan, was *change.Membership, theirs []store.Proxy) error {
	if p.FollowsRemovalOf(was) {
		if _, err := tx.ExecContext(ctx, "DELETE FROM "+s.Table.Proxies); err != nil {
			return fmt.Errorf("remove the proxies that %s knew before it was taken out: %w", s.Name(), err)
		}
	} else if !change.HasMember(p.Previous, was.ID) {
		// They confirmed versions of its own, which do not compare with the versions of the others.
		if _, err := tx.ExecContext(ctx, "UPDATE "+s.Table.Proxies+" SET `version` = 0"); err != nil {
			return fmt.Errorf("have the proxies that %s knew before it was added confirm anew: %w", s.Name(), err)
		}
	}
	return s.Proxies.Add(ctx, tx, theirs)
}
