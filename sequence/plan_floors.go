package sequence

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// floorBatch bounds the names in one statement.
const floorBatch = 500

// floorOf is what one member gave of a name.
type floorOf struct {
	name  string
	floor uint64
	bound uint64 // of the next plan, see plan_bound.go
	row   bool   // it is of a row that was frozen
	lacks bool   // there is no row of it, though the member gave numbers: it counts if another one has it
}

// gave reads what a frozen member gave at most of each name: what its rows held, the tombstones of what was dropped, and where a member is taken out by its bounds
// those that are known here.
func (r *planRun) gave(v *server) (all []floorOf, err error) {
	err = r.fenced(r.ctx, v, func(tx *sql.Tx, was promise) error {
		all = nil
		if was.state != planFrozen {
			return errTakenOver
		}
		if err := r.freezeLate(v, tx); err != nil {
			return err
		}
		if all, err = v.namesWith(r.ctx, tx, all, "SELECT `name`, `saved` FROM "+v.table.start+" WHERE `plan` = ? AND `saved` IS NOT NULL", r.plan.Number); err != nil {
			return err
		}
		for i := range all {
			all[i].row = true
		}
		if all, err = r.gaveWithoutRow(v, tx, all); err != nil {
			return err
		}
		if all, err = v.namesWith(r.ctx, tx, all, "SELECT `name`, `floor` FROM "+v.table.options+" WHERE `floor` > 0 AND `name` <> ''"); err != nil {
			return err
		}
		if r.byBound {
			all, err = v.boundsOf(r.ctx, tx, all)
		}
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("read what %s gave: %w", v.name(), err)
	}
	return all, nil
}

// gaveWithoutRow appends how far a frozen member may have gone with names of which it has no row: somebody may have deleted that, whose numbers proxies hold.
func (r *planRun) gaveWithoutRow(v *server, tx *sql.Tx, all []floorOf) ([]floorOf, error) {
	was, _, err := v.membership(r.ctx, tx)
	if err != nil || was.Count < 2 {
		return all, err
	}
	rows := len(all)
	all, err = v.namesWith(r.ctx, tx, all, "SELECT f.`name`, f.`own_bound` FROM "+v.table.start+" AS f LEFT JOIN "+v.table.start+" AS s ON s.`plan` = ? AND s.`name` = f.`name` AND s.`saved` IS NOT NULL "+
		"WHERE f.`plan` = ? AND f.`own_bound` > 0 AND f.`name` <> '' AND s.`name` IS NULL", r.plan.Number, was.Plan)
	for i := rows; i < len(all); i++ {
		all[i].lacks = true
	}
	return all, err
}

// withoutDropped are those that count: of a name that no member has a row of, as after DROP SEQUENCE, its tombstones tell what was given.
func withoutDropped(all []floorOf) []floorOf {
	rows := make(map[string]bool)
	for _, f := range all {
		if f.row {
			rows[folded(f.name)] = true
		}
	}
	return slices.DeleteFunc(all, func(f floorOf) bool { return f.lacks && !rows[folded(f.name)] })
}

// namesWith appends floors that are read.
func (v *server) namesWith(ctx context.Context, on querier, all []floorOf, text string, args ...any) ([]floorOf, error) {
	rows, err := on.QueryContext(ctx, text, args...)
	if err != nil {
		return nil, err
	}
	defer func() { _ = rows.Close() }()
	for rows.Next() {
		var f floorOf
		if err := rows.Scan(&f.name, &f.floor); err != nil {
			return nil, err
		}
		all = append(all, f)
	}
	return all, rows.Err()
}

// bounded adds what the operator said about members that cannot be asked. The empty name stands for those that no other member knows.
func (r *planRun) bounded(all []floorOf) []floorOf {
	for i := range all {
		all[i].floor = max(all[i].floor, r.asked.Above)
	}
	return append(all, floorOf{floor: r.asked.Above})
}

// writeFloors writes floors and bounds to a member, where the higher stays, in the transaction of a step. own says that the member may go by the bounds itself: all others of
// the plan have them before it obeys it.
func (v *server) writeFloors(ctx context.Context, tx *sql.Tx, plan uint64, all []floorOf, own bool) error {
	for some := range slices.Chunk(all, floorBatch) {
		var text strings.Builder
		text.WriteString("INSERT INTO " + v.table.start + " (`plan`, `name`, `floor`, `bound`, `own_bound`) VALUES ")
		args := make([]any, 0, 5*len(some))
		for i, f := range some {
			if i > 0 {
				text.WriteString(", ")
			}
			text.WriteString("(?, ?, ?, ?, ?)")
			goes := uint64(0)
			if own {
				goes = f.bound
			}
			args = append(args, plan, f.name, f.floor, f.bound, goes)
		}
		text.WriteString(" ON DUPLICATE KEY UPDATE `floor` = GREATEST(`floor`, VALUES(`floor`)), `bound` = GREATEST(`bound`, VALUES(`bound`)), " +
			"`own_bound` = GREATEST(`own_bound`, VALUES(`own_bound`))")
		if _, err := tx.ExecContext(ctx, text.String(), args...); err != nil {
			return fmt.Errorf("write the floors of plan %d to %s: %w", plan, v.name(), err)
		}
	}
	return nil
}

// readFloors reads the floors of a plan from a member; false if it does not have all.
func (v *server) readFloors(ctx context.Context, plan uint64) (all []floorOf, ok bool, err error) {
	rows, err := v.pool().QueryContext(ctx, "SELECT `name`, `floor`, `bound` FROM "+v.table.start+" WHERE `plan` = ? ORDER BY `name` = ''", plan)
	if err != nil {
		return nil, false, fmt.Errorf("read the floors of plan %d from %s: %w", plan, v.name(), err)
	}
	defer func() { _ = rows.Close() }()
	for rows.Next() {
		var f floorOf
		if err := rows.Scan(&f.name, &f.floor, &f.bound); err != nil {
			return nil, false, fmt.Errorf("read the floors of plan %d from %s: %w", plan, v.name(), err)
		}
		ok = ok || f.name == ""
		all = append(all, f)
	}
	return all, ok, rows.Err()
}

// defaultFloor is the floor of the names that the others of a plan do not have.
func (v *server) defaultFloor(ctx context.Context, tx *sql.Tx, plan uint64) (floor uint64, err error) {
	err = tx.QueryRowContext(ctx, "SELECT `floor` FROM "+v.table.start+" WHERE `plan` = ? AND `name` = ''", plan).Scan(&floor)
	if errors.Is(err, sql.ErrNoRows) {
		return 0, fmt.Errorf("%s does not have the floors of plan %d", v.name(), plan)
	}
	return floor, err
}
