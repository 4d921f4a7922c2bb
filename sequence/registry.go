package sequence

import (
	"context"
	"crypto/rand"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"slices"
	"sync/atomic"
	"time"

	"github.com/go-sql-driver/mysql"
	"go.uber.org/zap"

	"seqproxy/internal/await"
	"seqproxy/internal/logfield"
	"seqproxy/sequence/link"
)

// createProxies makes the table of the proxies that may hold numbers. `version` is that of the last
// change (of the options table) that the proxy has seen and obeys.
const createProxies = "CREATE TABLE IF NOT EXISTS %s (`id` char(26) CHARACTER SET ascii NOT NULL, `host` varchar(255) CHARACTER SET utf8mb4 NOT NULL, " +
	"`process` varchar(255) CHARACTER SET ascii NOT NULL DEFAULT '', " +
	"`since` datetime(6) NOT NULL, `heartbeat` datetime(6) NOT NULL, `version` bigint unsigned NOT NULL, " +
	"`sequences` int unsigned NOT NULL DEFAULT 0, `held` bigint unsigned NOT NULL DEFAULT 0, PRIMARY KEY (`id`)) ENGINE=InnoDB"

// registry is this process's entry among the proxies of one server. With all members it has the
// same id.
type registry struct {
	id       string
	host     string
	anywhere *atomic.Bool // this process has registered with any of them: then it does with all

	making  await.Lock  // held while the entry is made
	listed  atomic.Bool // the entry was made: numbers may be reserved
	missing atomic.Bool // a reservation found no entry
	// the node that has the entry, as nodes.changes. Another one may have lost it.
	on atomic.Uint64
}

func newRegistry() registry {
	host, err := os.Hostname()
	if err != nil {
		host = "unknown host"
	}
	return registry{making: await.NewLock(), id: rand.Text(), anywhere: new(atomic.Bool), host: fmt.Sprintf("%s, process %d", host, os.Getpid())}
}

// entry is the id of the entry, empty before it was made.
func (g *registry) entry() string {
	if g.listed.Load() {
		return g.id
	}
	return ""
}

// proxyTable is the table of the proxies that may hold numbers.
type proxyTable struct{ *schema }

// Proxy is one that may hold numbers in memory.
type Proxy struct {
	ID    string
	Host  string    // "web3, process 4711"
	Since time.Time // when it registered, UTC by the sequence server's clock
	// since its last heartbeat; below 0 where the server's clock went back after it
	Silent    time.Duration
	Version   uint64 // of the last change that it obeys
	Sequences uint64 // that it has in use
	Cached    uint64 // numbers that it held at the heartbeat

	process string // processName of it
	timing  *timing
}

// stale reports whether it missed heartbeats: it is gone, or cut off.
func (p *Proxy) stale() bool { return p.Silent > p.timing.stale }

// early reports whether its last heartbeat is of a time to come: the server's clock went back, and
// it has given none since.
func (p *Proxy) early() bool { return p.Silent < -p.timing.beat }

// enlist registers this process before it reserves its first numbers, so that others know who may
// hold some. Without an entry it reserves nothing. A fail-over may have lost the entry: then it is
// made again at once.
func (v *server) enlist(ctx context.Context) error {
	g := &v.registry
	if g.listed.Load() && g.on.Load() == v.Changes() {
		return nil
	}
	if err := g.making.Acquire(ctx); err != nil {
		return fmt.Errorf("wait for this proxy to be registered: %w", err)
	}
	defer g.making.Release()
	node := v.Changes()
	if g.listed.Load() && g.on.Load() == node {
		return nil
	}
	_, err := v.Pool().ExecContext(ctx, "INSERT INTO "+v.table.proxies+" (`id`, `host`, `process`, `since`, `heartbeat`, `version`) "+
		"VALUES (?, ?, ?, UTC_TIMESTAMP(6), UTC_TIMESTAMP(6), 0) ON DUPLICATE KEY UPDATE `heartbeat` = VALUES(`heartbeat`)", g.id, g.host, processName())
	switch {
	case isRefused(err):
		err = v.Unfit(v.table.proxies, fmt.Sprintf("this proxy cannot enter itself there, and gives no numbers without that: %v", err), v.grants())
	case err != nil:
		err = fmt.Errorf("register this proxy: %w", err)
	}
	if err != nil {
		return err
	}
	v.lowest.overlookAll() // others may have lowered rows before
	g.on.Store(node)
	g.listed.Store(true)
	if err := v.proxies.removeDead(ctx); err != nil {
		v.log.Warn("dead proxies not removed", zap.String("table", v.table.proxies), logfield.Err(err))
	}
	g.anywhere.Store(true)
	return nil
}

// removeDead removes the entries of proxies that are known to be dead.
func (t proxyTable) removeDead(ctx context.Context) error {
	all, err := t.list(ctx)
	if err != nil {
		return err
	}
	for _, p := range all {
		if !processIsDead(p.process) {
			continue
		}
		if _, err := t.Pool().ExecContext(ctx, "DELETE FROM "+t.table.proxies+" WHERE `id` = ?", p.ID); err != nil {
			return err
		}
		t.log.Info("dead proxy removed", zap.String("proxy", p.Host), zap.Time("since", p.Since))
	}
	return nil
}

// beat tells the others that this process lives, and which changes it obeys. That is told only
// where they are the last ones: they may have been read on another node, or before the table was
// restored, and be lost. There they say nothing about what is obeyed of the changes since. It
// reports as listed false if the entry is gone: then somebody believes that this process holds
// nothing.
func (v *server) beat(ctx context.Context, seen moment, sequences int, held uint64) (told, listed bool, err error) {
	g := &v.registry
	if !g.listed.Load() {
		if !g.anywhere.Load() {
			return true, true, nil // it holds nothing
		}
		// A member that it has not used. The one that it has may be taken out.
		if err := v.enlist(ctx); err != nil {
			return false, true, err
		}
	}
	told, listed, err = v.beatOnce(ctx, seen, sequences, held)
	if err != nil || listed {
		return told, true, err
	}
	if err := g.making.Acquire(ctx); err != nil {
		return false, true, err
	}
	g.listed.Store(false)
	g.making.Release()
	if g.on.Load() != v.Changes() {
		// a fail-over lost it; a restart there since was obeyed just now
		return false, true, v.enlist(ctx)
	}
	return false, false, nil
}

// beatOnce writes the heartbeat of an entry that was made. Both questions go to one server: a
// change that is made there in between has a higher version than what is told.
func (v *server) beatOnce(ctx context.Context, seen moment, sequences int, held uint64) (told, listed bool, err error) {
	// before there is a connection, which leads to that node or a later one
	now, node := v.Current(), v.Changes()
	conn, err := v.Conn(ctx)
	if err != nil {
		return false, false, fmt.Errorf("write the heartbeat: %w", err)
	}
	defer func() { _ = conn.Close() }()
	if seen != (moment{}) {
		last, _, err := v.options.lastChange(ctx, conn)
		if err != nil {
			return false, false, err
		}
		told = last == seen
	}
	version, args := "", []any{sequences, held, v.registry.id}
	if told {
		version, args = "`version` = ?, ", append([]any{seen.version}, args...)
	}
	result, err := conn.ExecContext(ctx, "UPDATE "+v.table.proxies+" SET `heartbeat` = UTC_TIMESTAMP(6), "+version+"`sequences` = ?, `held` = ? WHERE `id` = ?", args...)
	if err != nil {
		return false, false, fmt.Errorf("write the heartbeat: %w", err)
	}
	n, err := result.RowsAffected()
	if err == nil && n == 1 {
		v.registry.on.Store(node)
		v.stays(now)
	}
	return told, n == 1, err
}

// leave removes this process's entry: it holds nothing any more. One that it has not made itself
// may have been taken over from another member.
func (v *server) leave(ctx context.Context) error {
	_, err := v.Pool().ExecContext(ctx, "DELETE FROM "+v.table.proxies+" WHERE `id` = ?", v.registry.id)
	if err == nil || !v.registry.listed.Load() && errors.As(err, new(*mysql.MySQLError)) {
		return nil
	}
	return fmt.Errorf("remove this proxy from table %s; until then ALTER SEQUENCE ... RESTART ... FORCE is refused: %w", v.table.proxies, err)
}

// leave removes this process's entries, also those on members that it has not heard of yet: a plan
// that was started meanwhile has taken them over.
func (a *servers) leave(ctx context.Context) (err error) {
	if !a.registered.Load() {
		return nil
	}
	for range maxPlanChanges {
		w := a.view.Load()
		err = errors.Join(a.each(ctx, w.members, func(ctx context.Context, _ int, v *server) error { return v.leave(ctx) })...)
		if !a.isOutdated(ctx, w) || a.reread(ctx, w) != nil || a.view.Load() == w {
			break
		}
	}
	return err
}

// isOutdated reports whether a member obeys another plan.
func (a *servers) isOutdated(ctx context.Context, w *view) bool {
	other := make([]bool, len(w.members))
	a.each(ctx, w.members, func(ctx context.Context, i int, v *server) error {
		m, _, err := v.plans.membership(ctx, v.Pool())
		other[i] = err == nil && m.Plan != w.plan.Number
		return err
	})
	return slices.Contains(other, true)
}

// Proxies lists the proxies that are registered with the sequence server, in the order in which
// they came. Errors are those of List.
func (s *Sequences) Proxies(ctx context.Context) ([]Proxy, error) {
	if !s.begin() {
		return nil, ErrClosed
	}
	defer s.tasks.Done()
	r, stop := s.request(ctx)
	defer stop()
	all, err := s.servers.proxies(r.ctx)
	if err != nil {
		return nil, r.failed("", err)
	}
	return all, nil
}

func (t proxyTable) list(ctx context.Context) ([]Proxy, error) {
	return t.listOn(ctx, t.Pool(), "")
}

// listOn is proxies on a connection. locking stands behind the question.
func (t proxyTable) listOn(ctx context.Context, on link.Querier, locking string) ([]Proxy, error) {
	rows, err := on.QueryContext(ctx, "SELECT `id`, `host`, `process`, TIMESTAMPDIFF(MICROSECOND, '1970-01-01', `since`), "+
		"TIMESTAMPDIFF(MICROSECOND, `heartbeat`, UTC_TIMESTAMP(6)), `version`, `sequences`, `held` FROM "+t.table.proxies+" ORDER BY `since`, `id`"+locking)
	if err != nil {
		return nil, fmt.Errorf("read table %s: %w", t.table.proxies, err)
	}
	defer func() { _ = rows.Close() }()
	var all []Proxy
	for rows.Next() {
		p := Proxy{timing: t.timing}
		var since, silent int64
		if err := rows.Scan(&p.ID, &p.Host, &p.process, &since, &silent, &p.Version, &p.Sequences, &p.Cached); err != nil {
			return nil, fmt.Errorf("read table %s: %w", t.table.proxies, err)
		}
		p.Since, p.Silent = time.UnixMicro(since).UTC(), time.Duration(silent)*time.Microsecond
		all = append(all, p)
	}
	return all, rows.Err()
}

// highestVersion is the highest version that a proxy says it obeys: one that was lost, if only the
// other tables were restored from a backup.
func (t proxyTable) highestVersion(ctx context.Context, tx *sql.Tx) (version uint64, err error) {
	err = tx.QueryRowContext(ctx, "SELECT IFNULL(MAX(`version`), 0) FROM "+t.table.proxies).Scan(&version)
	if err != nil {
		return 0, fmt.Errorf("read table %s: %w", t.table.proxies, err)
	}
	return version, nil
}
