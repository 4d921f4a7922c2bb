package member

import (
	"context"
	"errors"
	"fmt"

	"github.com/go-sql-driver/mysql"
	"go.uber.org/zap"

	"seqproxy/internal/logfield"
	"seqproxy/internal/process"
	"seqproxy/sequence/link"
	"seqproxy/sequence/store"
)

// Enlist registers this process before its first reservation, so that others know who may have
// cached numbers. Without an entry it reserves nothing. An entry that a fail-over lost is made
// again at once.
func (v *Server) Enlist(ctx context.Context) error {
	g := &v.Registry
	if g.Listed.Load() && g.On.Load() == v.Changes() {
		return nil
	}
	if err := g.Making.Acquire(ctx); err != nil {
		return fmt.Errorf("wait for this proxy to be registered: %w", err)
	}
	defer g.Making.Release()
	node := v.Changes()
	if g.Listed.Load() && g.On.Load() == node {
		return nil
	}
	_, err := v.Pool().ExecContext(ctx, "INSERT INTO "+v.Table.Proxies+" (`id`, `host`, `process`, `since`, `heartbeat`, `version`) "+
		"VALUES (?, ?, ?, UTC_TIMESTAMP(6), UTC_TIMESTAMP(6), 0) ON DUPLICATE KEY UPDATE `heartbeat` = VALUES(`heartbeat`)", g.ID, g.Host, process.Name())
	switch {
	case link.IsRefused(err):
		err = v.Unfit(v.Table.Proxies, fmt.Sprintf("this proxy cannot enter itself there, and gives no numbers without that: %v", err), v.Grants())
	case err != nil:
		err = fmt.Errorf("register this proxy: %w", err)
	}
	if err != nil {
		return err
	}
	g.On.Store(node)
	g.Listed.Store(true)
	if err := v.Proxies.RemoveDead(ctx); err != nil {
		v.Log.Warn("dead proxies not removed", zap.String("table", v.Table.Proxies), logfield.Err(err))
	}
	g.Anywhere.Store(true)
	return nil
}

// Beat writes that this process lives, and the last changes it obeys. It writes those only where
// they are the last ones: they may have been read on another node, or before the table was
// restored, and be lost. Then they prove nothing about later changes. reported says that the
// version was written; listed is false if the entry is gone: then somebody believes that this
// process has no cached numbers.
func (v *Server) Beat(ctx context.Context, seen store.Moment, sequences int, cached uint64) (reported, listed bool, err error) {
	g := &v.Registry
	if !g.Listed.Load() {
		if !g.Anywhere.Load() {
			return true, true, nil // it has no cached numbers
		}
		// A member that it has not used. The one that it uses may be removed.
		if err := v.Enlist(ctx); err != nil {
			return false, true, err
		}
	}
	reported, listed, err = v.beatOnce(ctx, seen, sequences, cached)
	if err != nil || listed {
		return reported, true, err
	}
	if err := g.Making.Acquire(ctx); err != nil {
		return false, true, err
	}
	g.Listed.Store(false)
	g.Making.Release()
	if g.On.Load() != v.Changes() {
		// a fail-over lost it; a restart there since was obeyed just now
		return false, true, v.Enlist(ctx)
	}
	return false, false, nil
}

// beatOnce writes the heartbeat of an existing entry. Both questions go to one server: a change
// that is made there in between has a higher version than the one written.
func (v *Server) beatOnce(ctx context.Context, seen store.Moment, sequences int, cached uint64) (reported, listed bool, err error) {
	// before there is a connection, which leads to that node or a later one
	now, node := v.Current(), v.Changes()
	conn, err := v.Conn(ctx)
	if err != nil {
		return false, false, fmt.Errorf("write the heartbeat: %w", err)
	}
	defer func() { _ = conn.Close() }()
	if seen != (store.Moment{}) {
		last, _, err := v.Options.LastChange(ctx, conn)
		if err != nil {
			return false, false, err
		}
		reported = last == seen
	}
	version, args := "", []any{sequences, cached, v.Registry.ID}
	if reported {
		version, args = "`version` = ?, ", append([]any{seen.Version}, args...)
	}
	result, err := conn.ExecContext(ctx, "UPDATE "+v.Table.Proxies+" SET `heartbeat` = UTC_TIMESTAMP(6), "+version+"`sequences` = ?, `held` = ? WHERE `id` = ?", args...)
	if err != nil {
		return false, false, fmt.Errorf("write the heartbeat: %w", err)
	}
	n, err := result.RowsAffected()
	if err == nil && n == 1 {
		v.Registry.On.Store(node)
		v.stays(now)
	}
	return reported, n == 1, err
}

// Leave removes this process's entry: it has no cached numbers any more. An entry that it has not
// made may have been copied from another member.
func (v *Server) Leave(ctx context.Context) error {
	_, err := v.Pool().ExecContext(ctx, "DELETE FROM "+v.Table.Proxies+" WHERE `id` = ?", v.Registry.ID)
	if err == nil || !v.Registry.Listed.Load() && errors.As(err, new(*mysql.MySQLError)) {
		return nil
	}
	return fmt.Errorf("remove this proxy from table %s; until then ALTER SEQUENCE ... RESTART ... FORCE is refused: %w", v.Table.Proxies, err)
}
