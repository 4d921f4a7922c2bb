package sequence

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"go.uber.org/zap"

	"seqproxy/internal/logfield"
)

// This file is how a member obeys a plan without its coordinator: whoever meets it brings it there.

// catchUp brings a member that was away to the plan in force, before it gives a number: as the others have it, whatever it was told before. from is a member that
// obeys the plan.
func (v *server) catchUp(ctx context.Context, from *server, p *Plan) error {
	floors, complete, err := from.readFloors(ctx, p.Number)
	if err != nil {
		return err
	}
	if !complete {
		floors = append(floors, floorOf{}) // the first plan of a new table has none
	}
	var theirs known
	if theirs.definitions, err = from.definitions(ctx, from.pool()); err != nil {
		return err
	}
	if theirs.proxies, err = from.proxies(ctx); err != nil {
		return err
	}
	id, err := v.memberID(ctx, v.pool())
	if err != nil {
		return err
	}
	bounds, err := v.boundsKnown(ctx, from, p)
	if err != nil {
		return err
	}
	var was Membership
	brought := false
	err = v.transact(ctx, func(tx *sql.Tx) (err error) {
		// What was written there of this plan, or under its number, is void: a majority has decided otherwise.
		state := ""
		err = tx.QueryRowContext(ctx, "SELECT `state` FROM "+v.table.plan+" WHERE `number` = ? AND `uuid` = ? FOR UPDATE", p.Number, p.UUID).Scan(&state)
		if err != nil && !errors.Is(err, sql.ErrNoRows) {
			return fmt.Errorf("read plan %d of table %s: %w", p.Number, v.table.plan, err)
		}
		if was, err = v.lockMembership(ctx, tx); err != nil || was.Plan >= p.Number {
			return err
		}
		own, err := v.takeBackBounds(ctx, tx, p.Number)
		if err != nil {
			return err
		}
		for _, f := range floors {
			f.own = min(own[f.name], bounds[f.name])
			_, err := tx.ExecContext(ctx, "INSERT INTO "+v.table.start+" (`plan`, `name`, `floor`, `bound`, `own_bound`) VALUES (?, ?, ?, ?, ?)"+raiseFloor, p.Number, f.name, f.floor, f.bound, f.own)
			if err != nil {
				return fmt.Errorf("write the floors of plan %d: %w", p.Number, err)
			}
		}
		if brought, err = v.bring(ctx, tx, p, id, theirs); err != nil || !brought {
			return err
		}
		_, err = tx.ExecContext(ctx, "UPDATE "+v.table.plan+" SET `state` = ? WHERE `number` < ? AND `state` IN ("+openStates+")", planAborted, p.Number)
		if err != nil {
			return fmt.Errorf("end older changes: %w", err)
		}
		if state != "" { // a coordinator may be at work there, and goes by what was promised
			_, err := tx.ExecContext(ctx, "UPDATE "+v.table.plan+" SET `state` = ?, `changed` = UTC_TIMESTAMP(6) WHERE `number` = ?", PlanInForce, p.Number)
			return err
		}
		now := *p
		now.State = PlanInForce
		return v.savePlan(ctx, tx, &now)
	})
	if err != nil {
		return fmt.Errorf("bring sequence server %s to plan %d: %w", v.name(), p.Number, err)
	}
	if brought {
		v.log.Info("plan obeyed after an absence", zap.Uint64("plan", p.Number), zap.Uint64("plan_before", was.Plan))
		v.announce(ctx)
	}
	return nil
}

// boundsKnown is how far a member that catches up may go by itself because another one, from, knows of it for good: where a coordinator has told both, and a proxy comes to start the member
// before it. There is none where the member was told nothing, as it was away.
func (v *server) boundsKnown(ctx context.Context, from *server, p *Plan) (known map[string]uint64, err error) {
	told, err := v.boundsBy(ctx, v.pool(), "own_bound", p.Number)
	if err != nil || len(told) == 0 {
		return nil, err
	}
	limited, stop := context.WithTimeoutCause(ctx, v.timing.peer, errPatience)
	defer stop()
	err = from.transact(limited, func(tx *sql.Tx) error {
		known = nil
		is, _, err := from.membership(limited, tx)
		if err != nil {
			return err
		}
		if _, stays := p.shareOf(is.ID); stays { // one that has left is not asked when the member is taken out
			known, err = from.boundsBy(limited, tx, "bound", p.Number)
		}
		return err
	})
	if err != nil {
		v.log.Debug("bounds not known for good", logfield.Err(err), zap.Uint64("plan", p.Number)) // they are raised when they are needed
		return nil, ctx.Err()
	}
	return known, nil
}

// takeBackBounds has a member that does not obey a plan yet go nowhere under it by itself, and returns how far it could have gone. A coordinator that died may have told it alone.
func (v *server) takeBackBounds(ctx context.Context, tx *sql.Tx, plan uint64) (own map[string]uint64, err error) {
	if own, err = v.boundsBy(ctx, tx, "own_bound", plan); err != nil || len(own) == 0 {
		return nil, err
	}
	if _, err := tx.ExecContext(ctx, "UPDATE "+v.table.start+" SET `own_bound` = 0 WHERE `plan` = ?", plan); err != nil {
		return nil, fmt.Errorf("take back the bounds of plan %d: %w", plan, err)
	}
	return own, nil
}
