package steps

import (
	"context"
	"database/sql"
	"fmt"

	"seqproxy/internal/planted"
	"seqproxy/sequence/change"
	"seqproxy/sequence/link"
	"seqproxy/sequence/store"
)

// EachRow calls f with each name that is read, and the number beside it.
func (s Store) EachRow(ctx context.Context, on link.Querier, f func(name string, n uint64), text string, args ...any) error {
	rows, err := on.QueryContext(ctx, text, args...)
	if err != nil {
		return fmt.Errorf("read the rows of sequences on %s: %w", s.Name(), err)
	}
	defer func() { _ = rows.Close() }()
	for rows.Next() {
		var name string
		var id sql.NullString // a table that somebody else made may have NULL or a negative number there
		if err := rows.Scan(&name, &id); err != nil {
			return fmt.Errorf("read the row of %q on %s: %w", name, s.Name(), err)
		}
		n, err := s.ParseID(name, id)
		if err != nil {
			return err
		}
		f(name, n)
	}
	return rows.Err()
}

// saveRows saves and freezes the rows, which have what they held before: also those that somebody
// has made or moved by hand since others were frozen.
func (s Store) saveRows(ctx context.Context, tx *sql.Tx, plan uint64) error {
	_, err := tx.ExecContext(ctx, "INSERT INTO "+s.Table.PlanStart+" (`plan`, `name`, `floor`, `saved`) SELECT ?, s.`name`, 0, CAST(s.`id` AS UNSIGNED) FROM "+s.Table.Sequence+" AS s "+
		"ON DUPLICATE KEY UPDATE `saved` = VALUES(`saved`)", plan)
	if err != nil {
		return fmt.Errorf("save the rows of %s: %w", s.Table.Sequence, err)
	}
	if planted.Fault(planted.Freeze) {
		return nil
	}
	if _, err := tx.ExecContext(ctx, "UPDATE "+s.Table.Sequence+" SET `id` = ?", s.Seen.Load().Max); err != nil {
		return fmt.Errorf("freeze the rows of %s: %w", s.Table.Sequence, err)
	}
	return nil
}

// restoreRows locks the rows, and the gaps between them, and gives them back what was saved, for
// whichever plan. One that does not stand at the end of its column any more was changed by hand,
// and stays.
func (s Store) restoreRows(ctx context.Context, tx *sql.Tx) error {
	err := s.EachRow(ctx, tx, func(string, uint64) {}, "SELECT `name`, `id` FROM "+s.Table.Sequence+store.ForUpdate)
	if err != nil {
		return err
	}
	_, err = tx.ExecContext(ctx, "UPDATE "+s.Table.Sequence+" AS s JOIN "+s.Table.PlanStart+" AS f ON f.`name` = s.`name` SET s.`id` = f.`saved` "+
		"WHERE f.`saved` IS NOT NULL AND s.`id` = ?", s.Seen.Load().Max)
	if err == nil {
		_, err = tx.ExecContext(ctx, "UPDATE "+s.Table.PlanStart+" SET `saved` = NULL WHERE `saved` IS NOT NULL")
	}
	if err != nil {
		return fmt.Errorf("give the rows of %s back what they held: %w", s.Table.Sequence, err)
	}
	return nil
}

// thaw has a member go on as before a change, in the transaction that has locked the row of that.
func (s Store) thaw(ctx context.Context, tx *sql.Tx, p *change.Plan) error {
	m, err := s.Plans.Membership(ctx, tx, store.ForUpdate)
	if err != nil {
		return err
	}
	if m.Plan < p.Number && !p.FollowsRemovalOf(&m) {
		// one that has left stays frozen, whether it knows that or not
		if err := s.restoreRows(ctx, tx); err != nil {
			return err
		}
		_, err := tx.ExecContext(ctx, "DELETE FROM "+s.Table.PlanStart+" WHERE `plan` = ?", p.Number)
		if err == nil {
			_, err = tx.ExecContext(ctx, "UPDATE "+s.Table.Plan+" SET `floor` = NULL WHERE `number` = ?", p.Number)
		}
		if err != nil {
			return fmt.Errorf("remove the floors of plan %d: %w", p.Number, err)
		}
	}
	return s.setState(ctx, tx, p.Number, change.Aborted)
}
