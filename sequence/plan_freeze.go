package sequence

import (
	"context"
	"database/sql"
	"fmt"
	"strconv"

	"seqproxy/internal/planted"
	"seqproxy/sequence/change"
)

// lockRows locks the table's rows, and the gaps between them.
func (s planStore) lockRows(ctx context.Context, tx *sql.Tx) error {
	rows, err := tx.QueryContext(ctx, "SELECT `name`, CAST(`id` AS CHAR) FROM "+s.table.full+" FOR UPDATE")
	if err != nil {
		return fmt.Errorf("lock the rows of %s: %w", s.table.full, err)
	}
	defer func() { _ = rows.Close() }()
	for rows.Next() {
		var name string
		var id sql.NullString
		if err := rows.Scan(&name, &id); err != nil {
			return fmt.Errorf("lock the rows of %s: %w", s.table.full, err)
		}
		if _, err := s.parseID(name, id); err != nil {
			return err
		}
	}
	if err := rows.Err(); err != nil {
		return fmt.Errorf("lock the rows of %s: %w", s.table.full, err)
	}
	return nil
}

// freezeLate freezes rows, too, that somebody made by hand since the others were frozen.
func (s planStore) freezeLate(ctx context.Context, tx *sql.Tx, p *Plan) error {
	if err := s.lockRows(ctx, tx); err != nil {
		return err
	}
	names, err := selectNames(ctx, tx, "SELECT s.`name` FROM "+s.table.full+" AS s LEFT JOIN "+s.table.start+" AS f ON f.`plan` = "+strconv.FormatUint(p.Number, 10)+
		" AND f.`name` = s.`name` WHERE f.`saved` IS NULL")
	if err != nil {
		return fmt.Errorf("look for rows of %s that are not frozen: %w", s.table.full, err)
	}
	for _, name := range names {
		_, err := tx.ExecContext(ctx, "INSERT INTO "+s.table.start+" (`plan`, `name`, `floor`, `saved`) SELECT ?, s.`name`, 0, CAST(s.`id` AS UNSIGNED) FROM "+s.table.full+" AS s "+
			"WHERE s.`name` = ? ON DUPLICATE KEY UPDATE `saved` = VALUES(`saved`)", p.Number, name)
		if err == nil {
			_, err = tx.ExecContext(ctx, "UPDATE "+s.table.full+" SET `id` = ? WHERE `name` = ?", s.seen.Load().max, name)
		}
		if err != nil {
			return fmt.Errorf("freeze the row of %q, which was made meanwhile: %w", name, err)
		}
	}
	return nil
}

// saveRows saves and freezes the rows, which are locked.
func (s planStore) saveRows(ctx context.Context, tx *sql.Tx, plan uint64) error {
	_, err := tx.ExecContext(ctx, "INSERT INTO "+s.table.start+" (`plan`, `name`, `floor`, `saved`) SELECT ?, s.`name`, 0, CAST(s.`id` AS UNSIGNED) FROM "+s.table.full+" AS s "+
		"ON DUPLICATE KEY UPDATE `saved` = VALUES(`saved`)", plan)
	if err != nil {
		return fmt.Errorf("save the rows of %s: %w", s.table.full, err)
	}
	if planted.Fault(planted.Freeze) {
		return nil
	}
	if _, err := tx.ExecContext(ctx, "UPDATE "+s.table.full+" SET `id` = ?", s.seen.Load().max); err != nil {
		return fmt.Errorf("freeze the rows of %s: %w", s.table.full, err)
	}
	return nil
}

// restoreRows gives the rows back what was saved for a plan. One that does not stand at the end of
// its column any more was changed by hand, and stays.
func (s planStore) restoreRows(ctx context.Context, tx *sql.Tx, where string, plan uint64) error {
	_, err := tx.ExecContext(ctx, "UPDATE "+s.table.full+" AS s JOIN "+s.table.start+" AS f ON f.`name` = s.`name` SET s.`id` = f.`saved` "+
		"WHERE f.`saved` IS NOT NULL AND s.`id` = ? AND f.`plan` "+where, s.seen.Load().max, plan)
	if err == nil {
		_, err = tx.ExecContext(ctx, "UPDATE "+s.table.start+" SET `saved` = NULL WHERE `saved` IS NOT NULL AND `plan` "+where, plan)
	}
	if err != nil {
		return fmt.Errorf("give the rows of %s back what they held: %w", s.table.full, err)
	}
	return nil
}

// thaw has a member go on as before a change, in the transaction that has locked the row of that.
func (s planStore) thaw(ctx context.Context, tx *sql.Tx, p *Plan) error {
	if err := s.lockRows(ctx, tx); err != nil {
		return err
	}
	m, err := s.plans.lockMembership(ctx, tx)
	if err != nil {
		return err
	}
	if m.Plan < p.Number && !m.LeftBefore(p) {
		// one that has left stays frozen, whether it knows that or not
		if err := s.restoreRows(ctx, tx, "= ?", p.Number); err != nil {
			return err
		}
		_, err := tx.ExecContext(ctx, "DELETE FROM "+s.table.start+" WHERE `plan` = ?", p.Number)
		if err == nil {
			_, err = tx.ExecContext(ctx, "UPDATE "+s.table.plan+" SET `floor` = NULL WHERE `number` = ?", p.Number)
		}
		if err != nil {
			return fmt.Errorf("remove the floors of plan %d: %w", p.Number, err)
		}
	}
	return s.setState(ctx, tx, p.Number, change.Aborted)
}
