package sequence

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"

	gomysql "github.com/go-mysql-org/go-mysql/mysql"

	"go.uber.org/zap"

	"seqproxy/internal/logfield"
	"seqproxy/internal/planted"
)

// How one of several coordinators decides, once for all. Each member that stays has to accept the change, and none takes that back: once all have accepted, the
// change is decided. One that will never accept decides against it. `ballot` is the highest that a member has promised: who writes under a lower one changes nothing
// any more. Whoever takes over raises it first, and so finds what can be decided no more. He has nobody accept anything: he finishes, or aborts.

// newBallot is above seen and nobody else's.
func newBallot(seen uint64) uint64 { return (seen>>32+1)<<32 | uint64(rand.Uint32()) }

// insertPlan writes a plan that a member does not know yet, under a ballot. It reports another plan of the number that the member has.
func (v *server) insertPlan(ctx context.Context, on execer, r *planRun) (other *Plan, err error) {
	members, err := json.Marshal(r.plan.Members)
	if err != nil {
		return nil, err
	}
	previous, err := json.Marshal(r.plan.Previous)
	if err != nil {
		return nil, err
	}
	p := &r.plan
	// A plan that this one does not know of may have been made since it was drafted, and even have ended.
	const unknown = " WHERE `number` > ? AND `number` <= ? AND `uuid` <> ? AND `state` <> '" + planAborted + "'"
	result, err := on.ExecContext(ctx, "INSERT INTO "+v.table.plan+" (`number`, `uuid`, `state`, `coordinator`, `begun`, `changed`, `interleave`, `block`, `members`, `previous`, "+
		"`ballot`) SELECT ?, ?, ?, ?, UTC_TIMESTAMP(6), UTC_TIMESTAMP(6), ?, ?, ?, ?, ? FROM DUAL WHERE NOT EXISTS (SELECT 1 FROM "+
		v.table.plan+unknown+")", p.Number, p.UUID, planProposed, p.Coordinator, p.Interleave, p.Block, string(members), string(previous), r.ballot,
		r.base, uint64(math.MaxUint64), p.UUID)
	if err == nil {
		if n, err := result.RowsAffected(); err != nil || n == 1 {
			return nil, err
		}
	} else if !hasCode(err, gomysql.ER_DUP_ENTRY) {
		return nil, err
	}
	known, err := scanPlan(on.QueryRowContext(ctx, "SELECT "+planFields+" FROM "+v.table.plan+unknown+" ORDER BY `number` DESC LIMIT 1", r.base, uint64(math.MaxUint64), p.UUID))
	if errors.Is(err, sql.ErrNoRows) {
		known, _, err = v.plan(ctx, on, p.Number) // an aborted one has the number
	}
	if err != nil || known.UUID != p.UUID {
		return &known, err
	}
	return nil, nil
}

// propose writes the plan down on all that can be reached, in one order for all coordinators, so that of several at once exactly one gets it: whoever meets
// another's withdraws.
func (r *planRun) propose() error {
	r.ballot = newBallot(0)
	for _, m := range r.everyone() {
		v, err := r.server(m.Address)
		if err != nil {
			continue
		}
		var other *Plan
		err = v.transact(r.ctx, func(tx *sql.Tx) error { // a conflict is that with another coordinator: whose plan is there then decides
			var err error
			other, err = v.insertPlan(r.ctx, tx, r)
			return err
		})
		if err == nil && other != nil {
			err = inProgress(other)
		}
		if err != nil {
			return errors.Join(err, r.withdraw())
		}
		if err := r.did(planProposed, m); err != nil {
			return err
		}
	}
	return nil
}

// withdraw takes a proposal back that not all have.
func (r *planRun) withdraw() error {
	ctx, stop := context.WithTimeoutCause(context.WithoutCancel(r.ctx), r.s.timing.undo, errPatience)
	defer stop()
	var all []error
	for _, m := range r.everyone() {
		v, err := r.server(m.Address)
		if err != nil {
			continue
		}
		err = v.transact(ctx, func(tx *sql.Tx) error {
			_, err := tx.ExecContext(ctx, "DELETE FROM "+v.table.plan+" WHERE `number` = ? AND `uuid` = ? AND `state` = ? AND `ballot` = ?",
				r.plan.Number, r.plan.UUID, planProposed, r.ballot)
			return err
		})
		if err != nil {
			all = append(all, fmt.Errorf("take back the proposal on %s: %w", m.Address, err))
		}
	}
	return errors.Join(all...)
}

// errOtherPlan: a member knows another plan under the number, so that this one was never decided, and never will be.
var errOtherPlan = errors.New("it knows another plan of that number")

// promise is what a member has promised.
type promise struct {
	state  string
	ballot uint64
}

// promised reads what a member has promised, and locks it. It is false if the member does not know the plan.
func (v *server) promised(ctx context.Context, tx *sql.Tx, p *Plan) (was promise, ok bool, err error) {
	var uuid string
	err = tx.QueryRowContext(ctx, "SELECT `uuid`, `state`, `ballot` FROM "+v.table.plan+" WHERE `number` = ? FOR UPDATE", p.Number).Scan(&uuid, &was.state, &was.ballot)
	switch {
	case errors.Is(err, sql.ErrNoRows):
		return promise{}, false, nil
	case err != nil:
		return promise{}, false, fmt.Errorf("read plan %d of table %s: %w", p.Number, v.table.plan, err)
	case uuid != p.UUID:
		return promise{}, false, errOtherPlan
	}
	return was, true, nil
}

// fenced runs a step on a member, in one transaction, unless another coordinator has taken over.
func (r *planRun) fenced(ctx context.Context, v *server, step func(tx *sql.Tx, was promise) error) error {
	return v.transact(ctx, func(tx *sql.Tx) error {
		was, ok, err := v.promised(ctx, tx, &r.plan)
		switch {
		case errors.Is(err, errOtherPlan):
			return errTakenOver // it was ended, and another was made
		case err != nil:
			return err
		case !ok || was.ballot != r.ballot && !planted.Fault(planted.Ballot):
			return errTakenOver
		}
		return step(tx, was)
	})
}

// setState writes the state of a plan on a member within a step.
func (v *server) setState(ctx context.Context, tx *sql.Tx, number uint64, state string) error {
	_, err := tx.ExecContext(ctx, "UPDATE "+v.table.plan+" SET `state` = ?, `changed` = UTC_TIMESTAMP(6) WHERE `number` = ?", state, number)
	if err != nil {
		return fmt.Errorf("write the state %q of plan %d to %s: %w", state, number, v.name(), err)
	}
	return nil
}

// sameServers passes over servers that stand at the address of a member and are another one, set up in its place since: they know nothing of what that has accepted and given.
func (r *planRun) sameServers() {
	for _, m := range r.everyone() {
		v, err := r.server(m.Address)
		if err != nil || m.ID == "" {
			continue
		}
		is, _, err := v.membership(r.ctx, v.pool())
		if err == nil && is.ID != m.ID {
			err = fmt.Errorf("at %s there is another sequence server than the plan's: %q, not %s", m.Address, is.ID, m.ID)
		}
		if err != nil {
			r.away[m.Address] = err
		}
	}
}

// takeOver makes this the coordinator of a change that another began, or that it began itself and does not know how far it came. It returns whether that is decided: if not, one of
// those that stay has not accepted, and never will. From then on the other one changes nothing.
func (r *planRun) takeOver() (decided bool, err error) {
	r.sameServers()
	r.ballot, r.base = newBallot(r.highestBallot()), r.plan.Number
	staying := r.staying()
	accepted, never, forgot := 0, false, ""
	for _, m := range r.everyone() {
		v, err := r.server(m.Address)
		if err != nil {
			continue
		}
		was, known, err := r.takeOverOn(v)
		switch {
		case errors.Is(err, errTakenOver):
			return false, fmt.Errorf("take over the change on %s: %w", m.Address, err)
		case err != nil: // what is promised there, if anything is, nobody hears of
			r.away[m.Address] = fmt.Errorf("take over the change: %w", err)
			continue
		case was.state == planOvertaken:
			return false, errTakenOver
		case was.state == PlanInForce:
			decided = true
		}
		switch {
		case !hasMember(staying, m.ID):
		case was.state == planAccepted || was.state == PlanInForce:
			accepted++
		case known:
			never = true
		default: // it was not told yet, or has forgotten that it accepted
			forgot = m.Address
		}
	}
	names, why := r.awayOf(r.everyone())
	switch {
	case decided || accepted == len(staying):
		return true, nil
	case never || forgot != "" && len(names) == 0:
		return false, nil // nobody obeys it
	}
	finding := fmt.Sprintf("change %s may be decided, which %s can tell, and it cannot be reached", r.plan.UUID, strings.Join(names, ", "))
	if forgot != "" {
		finding += "; " + forgot + " has forgotten the change, as after a restore from a backup"
	}
	return false, &PlanError{Finding: finding, Remedy: "bring it back, and say " + r.plan.statement() + " again", Err: why}
}

// highestBallot is that which any member has promised, as far as can be seen.
func (r *planRun) highestBallot() (highest uint64) {
	for _, m := range r.everyone() {
		if v, err := r.server(m.Address); err == nil {
			var ballot uint64
			if err := v.pool().QueryRowContext(r.ctx, "SELECT `ballot` FROM "+v.table.plan+" WHERE `number` = ?", r.plan.Number).Scan(&ballot); err == nil {
				highest = max(highest, ballot)
			}
		}
	}
	return highest
}

// takeOverOn has one member promise this coordinator's ballot, and returns how far the change was there; known is false if it had not heard of it.
func (r *planRun) takeOverOn(v *server) (was promise, known bool, err error) {
	err = v.transact(r.ctx, func(tx *sql.Tx) error {
		if was, known, err = v.promised(r.ctx, tx, &r.plan); err != nil {
			return err
		}
		if !known {
			other, err := v.insertPlan(r.ctx, tx, r)
			if err == nil && other != nil {
				err = errOtherPlan
			}
			return err
		}
		if was.ballot >= r.ballot {
			return errTakenOver
		}
		_, err = tx.ExecContext(r.ctx, "UPDATE "+v.table.plan+" SET `ballot` = ?, `coordinator` = ?, `changed` = UTC_TIMESTAMP(6) WHERE `number` = ?",
			r.ballot, r.plan.Coordinator, r.plan.Number)
		return err
	})
	return was, known, err
}

// accept has all members that stay accept the change. Then it is decided.
func (r *planRun) accept() error {
	for _, m := range r.staying() {
		v, err := r.server(m.Address)
		if err == nil {
			err = r.fenced(r.ctx, v, func(tx *sql.Tx, was promise) error {
				if was.state != planFrozen {
					return errTakenOver
				}
				return v.setState(r.ctx, tx, r.plan.Number, planAccepted)
			})
		}
		if err != nil {
			return fmt.Errorf("have %s accept plan %d: %w", m.Address, r.plan.Number, err)
		}
		if err := r.did(planAccepted, m); err != nil {
			return err
		}
	}
	return nil
}

// abort lets the members go on as before, after takeOver has found that the change is not decided: one that stays has not accepted it, and never will. Each that goes on
// notes that, so that nobody who comes later takes the change for decided.
func (r *planRun) abort() error {
	defer r.detach(r.s.timing.undo)()
	noted := false
	var frozen []string
	var failed error
	for _, m := range r.everyone() {
		v, err := r.server(m.Address)
		if err != nil {
			continue
		}
		if err := r.thawMember(v); err != nil {
			if r.isOver(err) {
				return err
			}
			frozen, failed = append(frozen, m.Address), errors.Join(failed, err)
			continue
		}
		noted = noted || hasMember(r.staying(), m.ID)
		if err := r.did(planAborted, m); err != nil {
			return err
		}
	}
	if !noted {
		return &PlanError{Finding: fmt.Sprintf("change %s is neither done nor undone", r.plan.UUID), Remedy: "say " + r.plan.statement() + " again", Err: failed}
	}
	r.s.log.Warn("change of sequence servers aborted", zap.String("change", r.plan.UUID), zap.Uint64("plan", r.plan.Number), logfield.Err(failed))
	if len(frozen) > 0 {
		return &PlanError{
			Finding: fmt.Sprintf("change %s is aborted, but %s may stay frozen", r.plan.UUID, strings.Join(frozen, ", ")), Remedy: "a proxy lets it go on once it can be reached", Err: failed,
		}
	}
	return nil
}
