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
	own   uint64 // how far each member may go by itself; 0 where that was read from one of them, until others have its word
}

// errNotFrozen: the member does not know any more that its rows were frozen.
var errNotFrozen = errors.New("its rows are not frozen")

// gave reads what a frozen member gave at most of each name: what its rows held, the tombstones of what was dropped, and where a member is taken out by its bounds
// those that are known here.
func (r *planRun) gave(v *server) (all []floorOf, err error) {
	err = r.fenced(r.ctx, v, func(tx *sql.Tx, was promise) error {
		all = nil
		if was.state == planProposed {
			return errNotFrozen
		}
		if was.state == planFrozen {
			if err := r.freezeLate(v, tx); err != nil {
				return err
			}
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
func (t planTerms) bounded(all []floorOf) []floorOf {
	for i := range all {
		all[i].floor = max(all[i].floor, t.above)
	}
	return append(all, floorOf{floor: t.above})
}

// raiseFloor is what an INSERT of a floor and a bound does where the name has some: the higher stay. How far the member may go by itself is what was said
// last: a coordinator that died may have told nobody else more than that.
const raiseFloor = " ON DUPLICATE KEY UPDATE `floor` = GREATEST(`floor`, VALUES(`floor`)), `bound` = GREATEST(`bound`, VALUES(`bound`)), " +
	"`own_bound` = VALUES(`own_bound`)"

// tellBounds is what an INSERT of a bound does on a member that obeys the plan already: its floors have done their work, and how far it may go it knows.
const tellBounds = " ON DUPLICATE KEY UPDATE `bound` = GREATEST(`bound`, VALUES(`bound`))"

// writeFloors writes floors to a member, where the higher stays. The empty name comes last: a member that has it has all. One that obeys the plan already takes the bounds only. It
// reports whether the member knows those now.
func (r *planRun) writeFloors(v *server, all []floorOf) (told bool, err error) {
	told = true
	for len(all) > 0 {
		n := min(len(all), floorBatch)
		var text strings.Builder
		text.WriteString("INSERT INTO " + v.table.start + " (`plan`, `name`, `floor`, `bound`, `own_bound`) VALUES ")
		own := make([]any, 0, 5*n)
		for i, f := range all[:n] {
			if i > 0 {
				text.WriteString(", ")
			}
			text.WriteString("(?, ?, ?, ?, ?)")
			own = append(own, r.plan.Number, f.name, f.floor, f.bound, f.own)
		}
		err := r.fenced(r.ctx, v, func(tx *sql.Tx, was promise) error {
			args, present := slices.Clone(own), raiseFloor
			if was.state == PlanInForce {
				takes, err := v.takesBounds(r.ctx, tx, r.plan.Number)
				if told = told && takes; err != nil || !takes {
					return err
				}
				present = tellBounds
				for i := 4; i < len(args); i += 5 {
					args[i] = 0
				}
			}
			if err := r.touch(v, tx); err != nil {
				return err
			}
			_, err := tx.ExecContext(r.ctx, text.String()+present, args...)
			return err
		})
		if err != nil {
			return false, fmt.Errorf("write the floors of plan %d to %s: %w", r.plan.Number, v.name(), err)
		}
		all = all[n:]
	}
	return told, nil
}

// takesBounds reports whether a member that obeyed a plan still does, and no further change has read what it knows: what it is told now would not count.
func (v *server) takesBounds(ctx context.Context, tx *sql.Tx, plan uint64) (bool, error) {
	err := v.refuseWhileChanging(ctx, tx)
	if errors.Is(err, errPlanChanging) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	now, err := v.lockMembership(ctx, tx)
	return now.Plan == plan, err
}

// ownFloors are floors with bounds by which a member goes by itself, if another one of the plan was told them.
func (r *planRun) ownFloors(m Member, all []floorOf, told []Member) []floorOf {
	if !slices.ContainsFunc(told, func(o Member) bool { return o.ID != m.ID }) {
		return all
	}
	own := slices.Clone(all)
	for i := range own {
		own[i].own = own[i].bound
	}
	return own
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
