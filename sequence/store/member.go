package store

import (
	"context"
	"database/sql"
	"fmt"
	"time"

	"seqproxy/sequence/limit"
	"seqproxy/sequence/link"
)

// StillObeys makes sure that a server obeys a plan and that no other plan is about to begin there.
// It does not wait for a change that is under way.
func (st *Store) StillObeys(ctx context.Context, plan uint64) error {
	conn, err := st.Conn(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close() }()
	if err := st.Writable(ctx, conn); err != nil {
		if st.IsMoved(err) {
			st.Moved()
		}
		return err
	}
	// First, since the start of a plan ends the change in the same transaction.
	if err := st.Plans.RefuseChange(ctx, conn, "", ""); err != nil && !link.IsRefused(err) {
		return err
	}
	_, obeyed, err := st.Options.LastChange(ctx, conn)
	if err != nil {
		return err
	}
	if obeyed != plan {
		return OutcomeOldPlan
	}
	return nil
}

// Clock reads the clock of the server.
func (st *Store) Clock(ctx context.Context) (time.Time, error) {
	conn, err := st.Conn(ctx)
	if err != nil {
		return time.Time{}, err
	}
	defer func() { _ = conn.Close() }()
	var micros int64
	if err := conn.QueryRowContext(ctx, "SELECT TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6))").Scan(&micros); err != nil {
		return time.Time{}, fmt.Errorf("ask the clock of %s: %w", st.Name(), err)
	}
	return time.UnixMicro(micros), nil
}

// MayReserve makes sure that the account has the right to reserve numbers. EXPLAIN is enough, as
// the server checks rights first.
func (st *Store) MayReserve(ctx context.Context, c link.Raw) error {
	text := "EXPLAIN UPDATE " + st.Table.Sequence + " SET `id` = `id` WHERE `name` = ''" + st.Table.underPlan(0)
	if st.Share().Plan != 0 {
		text = "EXPLAIN UPDATE " + st.Table.Sequence + " AS s JOIN " + st.Table.Member + " AS m ON m.`one` = 1 SET s.`id` = s.`id` WHERE s.`name` = ''"
	}
	if _, err := c.Query(ctx, text); err != nil {
		return fmt.Errorf("the account may not reserve numbers: %w", err)
	}
	return nil
}

// Record writes down limits of members under a plan, if this server obeys that plan and none is
// being made. It grants only those of this member itself.
func (st *Store) Record(ctx context.Context, plan uint64, all ...limit.Limit) error {
	return st.Transact(ctx, func(tx *sql.Tx) error {
		if err := st.Plans.RefuseWhileChanging(ctx, tx); err != nil {
			return err
		}
		if err := st.Plans.MustObey(ctx, tx, plan); err != nil {
			return err
		}
		return st.Limits.Write(ctx, tx, plan, all)
	})
}
