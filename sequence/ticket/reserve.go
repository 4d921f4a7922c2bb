package ticket

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"time"

	"go.uber.org/zap"

	"seqproxy/sequence/link"
	"seqproxy/sequence/member"
	"seqproxy/sequence/segment"
	"seqproxy/sequence/stats"
	"seqproxy/sequence/store"
)

// reserver reserves numbers of a ticket table.
type reserver struct{ *Counter }

// Reserve implements [cache.Reserver]. Under LOCK TABLES ... WRITE it takes one number
// as every application does, and then writes a row with the last number of the segment, above which
// every engine goes on. So the counter is never read, which a server may do from stale statistics,
// nor set by ALTER TABLE, which would give up the lock; and it survives what that row survives.
func (t reserver) Reserve(ctx context.Context, _ string, want, _ uint64) (store.Grant, error) {
	v, name := t.all.Server, t.cache.Name
	if err := t.all.State.Ready(); err != nil {
		t.all.Common.Counters.Tried(name, &v.Trials, stats.ReservedError, 0)
		return store.Grant{}, err
	}
	begin := time.Now()
	g, lost, err := t.reserveOnce(ctx, want)
	took, result := time.Since(begin), member.ResultOf(v.OutcomeOf(err), err)
	if err == nil {
		if err = t.all.State.KeepTicket(t.table.Quoted, g.Segment.Last()); err != nil {
			result = stats.ReservedError
		}
	}
	switch {
	case err == nil:
		t.all.Common.Counters.Tried(name, &v.Trials, stats.ReservedOK, took)
		return g, nil
	case g.Segment.Remaining() > 0: // it cannot be remembered, or the table was not unlocked in order
		t.all.Common.Counters.Lose(name, stats.UnusedRefused, g.Segment.Remaining())
	case lost > 0:
		if (link.IsUnknownOutcome(err) || errors.Is(err, driver.ErrBadConn)) && !errors.Is(err, link.ErrUnfit) {
			result = stats.ReservedUnknown
		}
		t.all.Common.Counters.Lose(name, stats.UnusedUnknownCommit, lost)
	}
	if link.IsConflict(err) {
		t.all.Common.Counters.Retries.Add(1)
	}
	t.all.Common.Counters.Tried(name, &v.Trials, result, took)
	return store.Grant{}, fmt.Errorf("reserve numbers of %s: %w", t.table.Quoted, err)
}

// reserveOnce is one attempt. lost is how many numbers one that fails has taken at most; they are
// nobody's then.
func (t *Counter) reserveOnce(ctx context.Context, want uint64) (g store.Grant, lost uint64, err error) {
	conn, err := t.all.Server.Conn(ctx)
	if err != nil {
		return store.Grant{}, 0, err
	}
	defer func() { _ = conn.Close() }()
	layout, err := t.inspectOn(ctx, conn)
	if err != nil {
		return store.Grant{}, 0, err
	}
	l, err := t.table.Lock(ctx, conn, layout)
	if err != nil {
		return store.Grant{}, 0, err
	}
	defer func() { err = errors.Join(err, l.Unlock(ctx)) }()
	t.mu.Lock()
	mark := t.mark
	l.AnyStub = string(t.stub)
	t.mu.Unlock()
	r, err := l.Reserve(ctx, want, mark)
	if r.WentBack {
		t.all.Common.Counters.WentBack(t.cache.Name, &t.all.Server.Trials)
		t.all.Common.Log.Error("ticket counter went back", zap.String("table", t.table.Quoted),
			zap.Uint64("gave", r.Gave), zap.Uint64("given_before", mark))
	}
	if err != nil {
		return store.Grant{}, r.Lost, err
	}
	t.mu.Lock()
	t.mark = r.Segment.Last()
	t.mu.Unlock()
	t.all.Server.LogReserved(t.cache.Name, r.Segment, mark)
	return store.Grant{Segment: r.Segment, Max: r.Max, Rule: segment.Rule{Step: l.Step}}, 0, nil
}

// inspect looks at the table. What keeps it from being served is an *link.UnfitError.
func (t *Counter) inspect(ctx context.Context) (*Layout, error) {
	conn, err := t.all.Server.Conn(ctx)
	if err != nil {
		return nil, err
	}
	defer func() { _ = conn.Close() }()
	return t.inspectOn(ctx, conn)
}

// Examine says over a connection why the table is not served; nil if it is.
func (t *Counter) Examine(ctx context.Context, conn *sql.Conn) error {
	_, err := t.inspectOn(ctx, conn)
	return err
}

func (t *Counter) inspectOn(ctx context.Context, conn *sql.Conn) (*Layout, error) {
	l, err := t.table.ReadLayout(ctx, conn)
	if err != nil {
		return nil, err
	}
	several, err := link.Texts(ctx, conn, "SHOW GLOBAL VARIABLES WHERE Variable_name = 'wsrep_on' AND Value = 'ON' "+
		"OR Variable_name = 'group_replication_single_primary_mode' AND Value = 'OFF'")
	if err != nil {
		return nil, fmt.Errorf("ask whether it is a cluster: %w", err)
	}
	if len(several) > 0 {
		return nil, t.table.unfit("applications may write to other nodes of its cluster, and LOCK TABLES holds on one",
			"make a sequence of it while they stand still (seqproxy import -from ticket), or leave the table to the server")
	}
	if !l.Transactional() && t.layout.Load() == nil {
		t.all.Common.Log.Warn("ticket table not durable", zap.String("table", t.table.Quoted), zap.String("engine", l.Engine),
			zap.String("remedy", "ALTER TABLE "+t.table.Quoted+" ENGINE=InnoDB"))
	}
	t.layout.Store(l)
	return l, nil
}
