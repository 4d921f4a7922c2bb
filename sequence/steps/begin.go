package steps

import (
	"context"
	"database/sql"
	"fmt"

	"go.uber.org/zap"

	"seqproxy/internal/logfield"
	"seqproxy/sequence/change"
	"seqproxy/sequence/define"
)

// beginRows has the rows of a member, which are locked, begin where a plan does, and takes over
// what other members know. goes tells that the member may go by the ceilings of the plan.
func (s Store) beginRows(ctx context.Context, tx *sql.Tx, p *change.Plan, was, is *change.Membership, goes bool, theirs *handover) error {
	if err := s.Options.Copy(ctx, tx, theirs.definitions, !change.HasMember(p.Previous, is.ID)); err != nil {
		return err
	}
	for _, text := range []string{
		"INSERT INTO " + s.Table.PlanStart + " (`plan`, `name`, `floor`) SELECT p.`number`, s.`name`, GREATEST(CAST(s.`id` AS UNSIGNED), IF(s.`name` LIKE '%" + define.CounterSuffix + "', 0, p.`floor`)) FROM " +
			s.Table.Sequence + " AS s JOIN " + s.Table.Plan + " AS p ON p.`number` = ? ON DUPLICATE KEY UPDATE `floor` = GREATEST(" + s.Table.PlanStart + ".`floor`, VALUES(`floor`))",
		"UPDATE " + s.Table.Sequence + " AS s JOIN " + s.Table.PlanStart + " AS f ON f.`name` = s.`name` SET s.`id` = " + is.StartSQL(s.Seen.Load().Max) + " WHERE f.`plan` = ?",
	} {
		if _, err := tx.ExecContext(ctx, text, p.Number); err != nil {
			return fmt.Errorf("set the rows of %s above the floors of plan %d: %w", s.Name(), p.Number, err)
		}
	}
	if err := s.copyProxies(ctx, tx, p, was, theirs.proxies); err != nil {
		return err
	}
	return s.Limits.Begin(ctx, tx, p, is.ID, goes)
}

// reportAbove tells of rows that nobody has frozen and that went on above the floors: the member
// was believed to be gone.
func (s Store) reportAbove(ctx context.Context, tx *sql.Tx, plan uint64) error {
	rows, err := tx.QueryContext(ctx, "SELECT s.`name`, CAST(s.`id` AS CHAR), f.`floor` FROM "+s.Table.Sequence+" AS s JOIN "+s.Table.PlanStart+" AS f ON f.`name` = s.`name` "+
		"WHERE f.`plan` = ? AND CAST(s.`id` AS UNSIGNED) > f.`floor`", plan)
	if err != nil {
		return fmt.Errorf("compare the rows of %s with the floors of plan %d: %w", s.Name(), plan, err)
	}
	defer func() { _ = rows.Close() }()
	for rows.Next() {
		var name, id string
		var floor uint64
		if err := rows.Scan(&name, &id, &floor); err != nil {
			return err
		}
		s.Log.Error("numbers given above a floor",
			logfield.Sequence(define.ShownName(name)), zap.String("gave_up_to", id), zap.Uint64("floor", floor), zap.Uint64("plan", plan))
	}
	return rows.Err()
}
