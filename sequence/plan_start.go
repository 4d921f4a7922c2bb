package sequence

import (
	"context"
	"database/sql"
	"fmt"
	"strconv"

	"go.uber.org/zap"

	"seqproxy/internal/logfield"
	"seqproxy/sequence/change"
	"seqproxy/sequence/segment"
)

// shareOf is that of the member with an id; false if the plan has none.
func shareOf(p *Plan, id string) (h segment.Share, ok bool) {
	for _, m := range p.Members {
		if m.ID == id {
			return segment.Share{Plan: p.Number, Count: uint64(len(p.Members)), Position: uint64(m.Position), Interleave: p.Interleave, Block: p.Block}, true
		}
	}
	return segment.Share{}, false
}

// bring makes a member obey a plan, or leave if it is none of it, in the transaction that has
// locked its row of the plan. Each row is set to the member's first position above the floors, and
// above what it gave itself: saved where it was frozen for the plan, else as it stands.
func (v *store) bring(ctx context.Context, tx *sql.Tx, p *Plan, id string, theirs handover) (brought bool, err error) {
	was, err := v.lockMembership(ctx, tx)
	if err != nil || was.Plan >= p.Number {
		return false, err
	}
	if _, err := v.lockRows(ctx, tx); err != nil {
		return false, err
	}
	brought, err = v.bringRows(ctx, tx, p, id, theirs.definitions)
	if _, stays := shareOf(p, id); stays && brought && err == nil {
		err = v.copyProxies(ctx, tx, p, &was, theirs.proxies)
	}
	return brought, err
}

// bringRows is bring for rows that are locked.
func (v *store) bringRows(ctx context.Context, tx *sql.Tx, p *Plan, id string, theirs []defined) (brought bool, err error) {
	// What another change left frozen is what the member gave.
	if err := v.restoreRows(ctx, tx, "<> ?", p.Number); err != nil {
		return false, err
	}
	h, stays := shareOf(p, id)
	if !stays {
		var saved int
		if err := tx.QueryRowContext(ctx, "SELECT COUNT(`saved`) FROM "+v.table.start+" WHERE `plan` = ?", p.Number).Scan(&saved); err != nil {
			return false, fmt.Errorf("read table %s: %w", v.table.start, err)
		}
		if saved == 0 { // nobody has frozen it
			if err := v.reportAbove(ctx, tx, p.Number); err != nil {
				return false, err
			}
			if err := v.saveRows(ctx, tx, p.Number); err != nil {
				return false, err
			}
		}
		return true, v.saveMembership(ctx, tx, Membership{ID: id, Plan: p.Number})
	}
	added := !change.HasMember(p.Previous, id)
	if err := v.copyDefinitions(ctx, tx, theirs, added); err != nil {
		return false, err
	}
	other, err := v.defaultFloor(ctx, tx, p.Number)
	if err != nil {
		return false, err
	}
	for _, text := range []string{
		"INSERT INTO " + v.table.start + " (`plan`, `name`, `floor`) SELECT " + strconv.FormatUint(p.Number, 10) + ", s.`name`, CAST(" + strconv.FormatUint(other, 10) + " AS UNSIGNED) FROM " +
			v.table.full + " AS s ON DUPLICATE KEY UPDATE `floor` = GREATEST(`floor`, VALUES(`floor`))",
		"UPDATE " + v.table.start + " AS f JOIN " + v.table.full + " AS s ON s.`name` = f.`name` SET f.`floor` = GREATEST(f.`floor`, IFNULL(f.`saved`, CAST(s.`id` AS UNSIGNED))) " +
			"WHERE f.`plan` = " + strconv.FormatUint(p.Number, 10),
		"UPDATE " + v.table.full + " AS s JOIN " + v.table.start + " AS f ON f.`name` = s.`name` SET s.`id` = " + h.StartSQL(v.seen.Load().max) +
			" WHERE f.`plan` = " + strconv.FormatUint(p.Number, 10),
		"UPDATE " + v.table.start + " SET `saved` = NULL WHERE `plan` = " + strconv.FormatUint(p.Number, 10),
	} {
		if _, err := tx.ExecContext(ctx, text); err != nil {
			return false, fmt.Errorf("set the rows of %s above the floors of plan %d: %w", v.name(), p.Number, err)
		}
	}
	return true, v.saveMembership(ctx, tx, Membership{ID: id, Plan: p.Number, Position: int(h.Position), Count: int(h.Count), Interleave: h.Interleave, Block: h.Block})
}

// reportAbove tells of rows that went on above the floors although the member was believed to be
// gone.
func (v *store) reportAbove(ctx context.Context, tx *sql.Tx, plan uint64) error {
	rows, err := tx.QueryContext(ctx, "SELECT s.`name`, CAST(s.`id` AS CHAR), f.`floor` FROM "+v.table.full+" AS s JOIN "+v.table.start+" AS f ON f.`name` = s.`name` "+
		"WHERE f.`plan` = ? AND f.`saved` IS NULL AND CAST(s.`id` AS UNSIGNED) > f.`floor`", plan)
	if err != nil {
		return fmt.Errorf("compare the rows of %s with the floors of plan %d: %w", v.name(), plan, err)
	}
	defer func() { _ = rows.Close() }()
	for rows.Next() {
		var name, id string
		var floor uint64
		if err := rows.Scan(&name, &id, &floor); err != nil {
			return err
		}
		v.log.Error("numbers given above a floor",
			logfield.Sequence(name), zap.String("gave_up_to", id), zap.Uint64("floor", floor), zap.Uint64("plan", plan))
	}
	return rows.Err()
}
