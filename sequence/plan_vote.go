package sequence

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"

	gomysql "github.com/go-mysql-org/go-mysql/mysql"

	"seqproxy/internal/planted"
)

// How one of several coordinators decides, once for all: this is the single-decree agreement of Lamport's "Paxos Made Simple" (2001), with the members so far
// as acceptors and the row of the plan on each as what they remember. `ballot` is the highest that was promised, and who writes under a lower one changes
// nothing any more; `voted` is the ballot of the vote that `state` tells. Who takes over reads the votes of a majority, and must adopt that of the highest ballot.

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
		"`ballot`, `forced`, `above`) SELECT ?, ?, ?, ?, UTC_TIMESTAMP(6), UTC_TIMESTAMP(6), ?, ?, ?, ?, ?, ?, ? FROM DUAL WHERE NOT EXISTS (SELECT 1 FROM "+
		v.table.plan+unknown+")", p.Number, p.UUID, planProposed, p.Coordinator, p.Interleave, p.Block, string(members), string(previous), r.ballot, r.forced, r.above,
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

// propose writes the plan down on a majority, in the order of positions, so that of several coordinators at once exactly one gets it: whoever meets
// another's withdraws.
func (r *planRun) propose() error {
	r.ballot = newBallot(0)
	have := 0
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
		if r.isVoter(m) {
			have++
		}
		if err := r.did("proposed", m); err != nil {
			return err
		}
	}
	if have < r.majority() {
		return errors.Join(r.tooFew("a change", have), r.withdraw())
	}
	return nil
}

// withdraw takes a proposal back that has no majority.
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

// errOtherPlan: a member knows another plan under the number, one that never had a majority. It has no vote in this one.
var errOtherPlan = errors.New("it knows another plan of that number")

// promise is what a member says to a coordinator that takes over.
type promise struct {
	state         string
	ballot, voted uint64
}

// promised reads what a member has promised, and locks it. It is false if the member does not know the plan.
func (v *server) promised(ctx context.Context, tx *sql.Tx, p *Plan) (was promise, ok bool, err error) {
	var uuid string
	err = tx.QueryRowContext(ctx, "SELECT `uuid`, `state`, `ballot`, `voted` FROM "+v.table.plan+" WHERE `number` = ? FOR UPDATE", p.Number).
		Scan(&uuid, &was.state, &was.ballot, &was.voted)
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
		case err != nil:
			return err
		case !ok:
			return errSwept
		case was.ballot != r.ballot && !planted.Fault(planted.Ballot):
			return errTakenOver
		}
		return step(tx, was)
	})
}

// setState writes the state of the plan on a member within a step.
func (r *planRun) setState(ctx context.Context, v *server, tx *sql.Tx, state string, vote bool) error {
	voted := "`voted`"
	if vote {
		voted = "`ballot`"
	}
	_, err := tx.ExecContext(ctx, "UPDATE "+v.table.plan+" SET `state` = ?, `voted` = "+voted+", `changed` = UTC_TIMESTAMP(6) WHERE `number` = ?", state, r.plan.Number)
	if err != nil {
		return fmt.Errorf("write the state %q of plan %d to %s: %w", state, r.plan.Number, v.name(), err)
	}
	return nil
}

// touch writes that the change goes on.
func (r *planRun) touch(v *server, tx *sql.Tx) error {
	_, err := tx.ExecContext(r.ctx, "UPDATE "+v.table.plan+" SET `changed` = GREATEST(TIMESTAMPADD(MICROSECOND, 1, `changed`), UTC_TIMESTAMP(6)) WHERE `number` = ?", r.plan.Number)
	if err != nil {
		return fmt.Errorf("write plan %d to %s: %w", r.plan.Number, v.name(), err)
	}
	return nil
}

// sameServers passes over servers that stand at the address of a member and are another one, set up in its place since: they know nothing of what that has voted for and given.
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

// takeOver makes this the coordinator of a change that another began, and returns what was voted for already: planDecided, planAborting, or "". From then on
// the other one changes nothing.
func (r *planRun) takeOver() (vote string, err error) {
	var seen uint64
	r.sameServers()
	for _, m := range r.everyone() {
		if v, err := r.server(m.Address); err == nil {
			var ballot uint64
			err := v.pool().QueryRowContext(r.ctx, "SELECT `ballot` FROM "+v.table.plan+" WHERE `number` = ?", r.plan.Number).Scan(&ballot)
			if err == nil {
				seen = max(seen, ballot)
			}
		}
	}
	r.ballot, r.base = newBallot(seen), r.plan.Number
	have, highest := 0, uint64(0)
	for _, m := range r.everyone() {
		v, err := r.server(m.Address)
		if err != nil {
			continue
		}
		var was promise
		err = v.transact(r.ctx, func(tx *sql.Tx) error {
			known, ok, err := v.promised(r.ctx, tx, &r.plan)
			if err != nil {
				return err
			}
			if was = known; !ok {
				other, err := v.insertPlan(r.ctx, tx, r)
				if err == nil && other != nil {
					err = errOtherPlan
				}
				return err
			}
			if known.ballot >= r.ballot {
				return errTakenOver
			}
			_, err = tx.ExecContext(r.ctx, "UPDATE "+v.table.plan+" SET `ballot` = ?, `coordinator` = ?, `changed` = UTC_TIMESTAMP(6) WHERE `number` = ?",
				r.ballot, r.plan.Coordinator, r.plan.Number)
			return err
		})
		switch {
		case errors.Is(err, errTakenOver):
			return "", fmt.Errorf("take over the change on %s: %w", m.Address, err)
		case err != nil: // what is promised there, if anything is, nobody hears of
			r.away[m.Address] = fmt.Errorf("take over the change: %w", err)
			continue
		}
		if r.isVoter(m) {
			have++
		}
		switch {
		case was.state == PlanInForce:
			vote, highest = planDecided, 1<<64-1
		case was.state == planDecided && was.voted > highest:
			vote, highest = planDecided, was.voted
		case (was.state == planAborting || was.state == planAborted) && was.voted > highest:
			vote, highest = planAborting, was.voted
		}
	}
	if have < r.majority() {
		return "", r.tooFew("to go on with the change", have)
	}
	return vote, nil
}

// vote has a majority vote for the change, or against it, and never both under one ballot. Who cannot be reached, fails in the middle, or was not frozen, votes later or never.
func (r *planRun) vote(state string) error {
	have := 0
	var failed error
	for _, m := range r.voters() {
		v, err := r.server(m.Address)
		if err != nil {
			continue
		}
		voted := false
		err = r.fenced(r.ctx, v, func(tx *sql.Tx, was promise) error {
			voted = true
			switch was.state {
			case PlanInForce:
				return nil
			case planAborted:
				voted = state == planAborting
				return nil
			case planProposed:
				if state == planDecided {
					voted = false
					return nil
				}
			}
			return r.setState(r.ctx, v, tx, state, true)
		})
		if err != nil {
			if err = fmt.Errorf("have %s vote for plan %d: %w", m.Address, r.plan.Number, err); r.isOver(err) {
				return err
			}
			failed, voted = errors.Join(failed, err), false
			continue
		}
		if voted {
			have++
		}
		if err := r.did(state, m); err != nil {
			return err
		}
	}
	if have < r.majority() {
		return errors.Join(failed, r.tooFew("a decision", have))
	}
	return nil
}
