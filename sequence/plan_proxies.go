package sequence

import (
	"context"
	"database/sql"
	"fmt"
	"slices"
	"strings"
	"time"

	gomysql "github.com/go-mysql-org/go-mysql/mysql"

	"seqproxy/sequence/change"
	"seqproxy/sequence/link"
)

// This file is how a plan keeps known who may hold numbers. A proxy registers with a member before
// it reserves there, and a frozen member gives no numbers: so who is registered with the members so
// far, once those are frozen, is everybody who holds numbers. A member that accepts the next plan
// knows them, also those that are paused or cut off and do not hear of it for long, and whoever is
// brought to it takes them over from one of these.

// enter enters those who may hold numbers, in the transaction in which a member accepts a change.
// Nobody knows who was registered with a removed member alone that could not be asked: one entry
// stands for them until an operator deletes it.
func (t proxyTable) enter(ctx context.Context, tx *sql.Tx, p *Plan, holders change.Holders) error {
	lists := make([][]Proxy, len(holders.Proxies))
	for i, list := range holders.Proxies {
		lists[i] = list.([]Proxy)
	}
	if away := holders.Unasked; away != "" {
		lists = append(lists, []Proxy{{
			ID:   fmt.Sprintf("%.26s", strings.ReplaceAll(p.UUID, "-", "")),
			Host: "those that only " + away + " knew, which was away when it was taken out", Since: time.Now(),
			Silent: 2 * t.timing.stale, // nobody waits for a sign of life
		}})
	}
	return t.add(ctx, tx, mergeProxies(lists))
}

// copy is add on a member that is brought to a plan, in the transaction that does so. was is what
// it was before.
func (t proxyTable) copy(ctx context.Context, tx *sql.Tx, p *Plan, was *Membership, theirs []Proxy) error {
	if was.LeftBefore(p) {
		if _, err := tx.ExecContext(ctx, "DELETE FROM "+t.table.proxies); err != nil {
			return fmt.Errorf("remove the proxies that %s knew before it was taken out: %w", t.Name(), err)
		}
	} else if !change.HasMember(p.Previous, was.ID) {
		// They confirmed versions of its own, which do not compare with the versions of the others.
		if _, err := tx.ExecContext(ctx, "UPDATE "+t.table.proxies+" SET `version` = 0"); err != nil {
			return fmt.Errorf("have the proxies that %s knew before it was added confirm anew: %w", t.Name(), err)
		}
	}
	return t.add(ctx, tx, theirs)
}

// add enters proxies that a member does not know. They have yet to tell it what they obey.
func (t proxyTable) add(ctx context.Context, tx *sql.Tx, theirs []Proxy) error {
	own, err := t.listOn(ctx, tx, "")
	if err != nil {
		return err
	}
	for i := range theirs {
		o := &theirs[i]
		if slices.ContainsFunc(own, func(known Proxy) bool { return known.ID == o.ID }) {
			continue // it gives signs of life there, which must not wait for this
		}
		_, err := tx.ExecContext(ctx, "INSERT INTO "+t.table.proxies+" (`id`, `host`, `process`, `since`, `heartbeat`, `version`, `sequences`, `held`) VALUES (?, ?, ?, "+
			"TIMESTAMPADD(MICROSECOND, ?, '1970-01-01'), TIMESTAMPADD(MICROSECOND, ?, UTC_TIMESTAMP(6)), 0, ?, ?) ON DUPLICATE KEY UPDATE `id` = VALUES(`id`)",
			o.ID, o.Host, o.process, o.Since.UnixMicro(), -o.Silent.Microseconds(), o.Sequences, o.Cached)
		if err != nil {
			return fmt.Errorf("enter a proxy on %s that is registered with another sequence server: %w", t.Name(), err)
		}
	}
	return nil
}

// isRefused reports whether the account may not use a table, or may not make it, or whether that is
// another one than ours.
func isRefused(err error) bool {
	return link.HasCode(err, gomysql.ER_NO_SUCH_TABLE, gomysql.ER_BAD_FIELD_ERROR, gomysql.ER_TABLEACCESS_DENIED_ERROR, gomysql.ER_COLUMNACCESS_DENIED_ERROR, gomysql.ER_DBACCESS_DENIED_ERROR)
}
