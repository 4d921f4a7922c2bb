package steps

import (
	"context"
	"database/sql"
	"fmt"

	"seqproxy/internal/logfield"
	"seqproxy/internal/planted"
	"seqproxy/sequence/change"
	"seqproxy/sequence/store"
)

// Store is one server's tables as a change of members sees them: a [change.Store].
type Store struct{ *store.Store }

// On is the tables of a server.
func On(s *store.Store) Store { return Store{s} }

// lockPlan reads all that a member knows of plans, and locks it. now is what it knows of a change,
// in which there is nothing if it does not know that.
func (s Store) lockPlan(ctx context.Context, tx *sql.Tx, p *change.Plan) (now change.Plan, all []change.Plan, err error) {
	all, err = s.Plans.All(ctx, tx, store.ForUpdate)
	if known := change.Find(all, p.UUID); known != nil {
		now = *known
	}
	return now, all, err
}

// step runs a step of a change in one transaction, on a member where the change is in a state,
// unless another coordinator has taken over.
func (s Store) step(ctx context.Context, p *change.Plan, from string, step func(tx *sql.Tx) error) error {
	return s.Transact(ctx, func(tx *sql.Tx) error {
		now, _, err := s.lockPlan(ctx, tx, p)
		if err != nil {
			return err
		}
		if now.State != from || now.Ballot != p.Ballot && !planted.Fault(planted.Ballot) {
			return change.ErrTakenOver
		}
		return step(tx)
	})
}

// setState writes the state of a plan on a member within a step.
func (s Store) setState(ctx context.Context, tx *sql.Tx, number uint64, state string) error {
	_, err := tx.ExecContext(ctx, "UPDATE "+s.Table.Plan+" SET `state` = ?, `changed` = UTC_TIMESTAMP(6) WHERE `number` = ?", state, number)
	if err != nil {
		return fmt.Errorf("write the state %q of plan %d to %s: %w", state, number, s.Name(), err)
	}
	return nil
}

// Announce lets all proxies look again within a second. Whatever fails, they notice by themselves
// later.
func (s Store) Announce(ctx context.Context) {
	if err := s.Options.MoveVersion(ctx, s.Pool()); err != nil {
		s.Log.Debug("change of plans not announced", logfield.Err(err))
	}
}
