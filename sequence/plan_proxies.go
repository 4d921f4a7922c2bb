package sequence

import (
	"context"
	"database/sql"
	"fmt"
	"slices"

	gomysql "github.com/go-mysql-org/go-mysql/mysql"
)

// This file is how a plan keeps known who may hold numbers. A proxy registers with a member before it reserves there, and a frozen member gives no numbers: so who is registered with the members so far, once
// those are frozen, is everybody who holds numbers. Each member of the next plan knows them as of its start, also those that are paused or cut off and do not hear of it for long.

// proxies lists who is registered with the servers of the change, each once. A new one that does not answer has what it knows itself.
func (r *planRun) proxies() ([]Proxy, error) {
	var lists [][]Proxy
	for _, m := range r.everyone() {
		v, err := r.server(m.Address)
		if err != nil {
			continue
		}
		list, err := r.proxiesOf(v)
		if err != nil && hasMember(r.plan.Previous, m.ID) {
			return nil, err
		}
		lists = append(lists, list)
	}
	return mergeProxies(lists), nil
}

// proxiesOf lists those of one server. What one knows that left by an older plan does not count: the others have taken that over, and it was not told since who has gone.
func (r *planRun) proxiesOf(v *server) ([]Proxy, error) {
	is, _, err := v.membership(r.ctx, v.pool())
	if err != nil || is.Plan < r.plan.Number && is.leftBefore(&r.plan) {
		return nil, err
	}
	return v.proxies(r.ctx)
}

// leftBefore reports whether a server was a member of an older plan, and was taken out before p, whether it has heard of that or was away.
func (m *Membership) leftBefore(p *Plan) bool {
	return m.Plan > 0 && !hasMember(p.Previous, m.ID)
}

// adoptProxies enters proxies on a member that it does not know, in the transaction that starts a plan there. They have yet to tell it what they obey. was is what it was before.
func (v *server) adoptProxies(ctx context.Context, tx *sql.Tx, p *Plan, was *Membership, theirs []Proxy) error {
	if was.leftBefore(p) {
		if _, err := tx.ExecContext(ctx, "DELETE FROM "+v.table.proxies); err != nil {
			return fmt.Errorf("remove the proxies that %s knew before it was taken out: %w", v.name(), err)
		}
	} else if !hasMember(p.Previous, was.ID) {
		// What they told it does not compare with the versions of the others.
		if _, err := tx.ExecContext(ctx, "UPDATE "+v.table.proxies+" SET `version` = 0"); err != nil {
			return fmt.Errorf("have the proxies that %s knew before it was added confirm anew: %w", v.name(), err)
		}
	}
	own, err := v.proxiesBy(ctx, tx, "")
	if err != nil {
		return err
	}
	for i := range theirs {
		o := &theirs[i]
		if slices.ContainsFunc(own, func(known Proxy) bool { return known.ID == o.ID }) {
			continue // it gives signs of life there, which must not wait for this
		}
		_, err := tx.ExecContext(ctx, "INSERT INTO "+v.table.proxies+" (`id`, `host`, `process`, `since`, `heartbeat`, `version`, `sequences`, `held`) VALUES (?, ?, ?, "+
			"TIMESTAMPADD(MICROSECOND, ?, '1970-01-01'), TIMESTAMPADD(MICROSECOND, ?, UTC_TIMESTAMP(6)), 0, ?, ?) ON DUPLICATE KEY UPDATE `id` = VALUES(`id`)",
			o.ID, o.Host, o.process, o.Since.UnixMicro(), -o.Silent.Microseconds(), o.Sequences, o.Held)
		if err != nil {
			return fmt.Errorf("enter a proxy on %s that is registered with another sequence server: %w", v.name(), err)
		}
	}
	return nil
}

// isRefused reports whether the account may not use a table, or may not make it, or whether that is another one than ours.
func isRefused(err error) bool {
	return hasCode(err, gomysql.ER_NO_SUCH_TABLE, gomysql.ER_BAD_FIELD_ERROR, gomysql.ER_TABLEACCESS_DENIED_ERROR, gomysql.ER_COLUMNACCESS_DENIED_ERROR, gomysql.ER_DBACCESS_DENIED_ERROR)
}
