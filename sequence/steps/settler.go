package steps

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"go.uber.org/zap"

	"seqproxy/sequence/change"
	"seqproxy/sequence/store"
)

// Obey implements [change.Store]. Each row is set to the member's first position above the
// floors, and above what it gave itself.
func (s Store) Obey(ctx context.Context, p *change.Plan, floors change.Floors, all []change.Knowledge) error {
	var theirs handover
	var lists [][]store.Proxy
	for _, k := range all {
		h := k.More.(handover)
		theirs.definitions, lists = append(theirs.definitions, h.definitions...), append(lists, h.proxies)
	}
	theirs.definitions, theirs.proxies = store.Newest(theirs.definitions), store.MergeProxies(lists)
	var was change.Membership
	err := s.Transact(ctx, func(tx *sql.Tx) error {
		now, _, err := s.lockPlan(ctx, tx, p)
		if err != nil {
			return err
		}
		was, err = s.Plans.Membership(ctx, tx, store.ForUpdate)
		if err != nil || was.Plan >= p.Number {
			return err
		}
		if now.State == "" {
			if err := s.Plans.Save(ctx, tx, p); err != nil {
				return err
			}
		}
		if now.State != change.Accepted { // else it has them
			if err := s.writeFloors(ctx, tx, p.Number, floors); err != nil {
				return err
			}
		}
		// What they held before they were frozen, for this change or another one, is what the member
		// gave.
		if err := s.restoreRows(ctx, tx); err != nil {
			return err
		}
		is := p.Of(was.ID)
		if is.Count == 0 { // its rows stay frozen
			err = errors.Join(s.reportAbove(ctx, tx, p.Number), s.saveRows(ctx, tx, p.Number))
		} else {
			// One that was not frozen was away, or has forgotten. Perhaps nobody has recorded how
			// far it may go.
			err = s.beginRows(ctx, tx, p, &was, &is, now.State == change.Frozen || now.State == change.Accepted, &theirs)
		}
		if err != nil {
			return err
		}
		if err := s.Plans.SaveMembership(ctx, tx, is); err != nil {
			return err
		}
		// It does not know what became of older changes. Others can tell, and this one is no veto. One
		// that was aborted stays: a server that was frozen for it may come back later.
		if _, err := tx.ExecContext(ctx, "DELETE FROM "+s.Table.Plan+" WHERE `number` < ? AND `state` <> ?", p.Number, change.Aborted); err != nil {
			return fmt.Errorf("remove older plans: %w", err)
		}
		// Not the whole row: a coordinator may be at work there, and goes by what was promised.
		return s.setState(ctx, tx, p.Number, change.InForce)
	})
	if err != nil {
		return fmt.Errorf("bring sequence server %s to plan %d: %w", s.Name(), p.Number, err)
	}
	if was.Plan < p.Number {
		s.Log.Info("plan obeyed", zap.Uint64("plan", p.Number), zap.Uint64("plan_before", was.Plan))
		s.Announce(ctx)
	}
	return nil
}

// LetGo implements [change.Store].
func (s Store) LetGo(ctx context.Context, p *change.Plan, abandoned bool) error {
	open := false
	err := s.Transact(ctx, func(tx *sql.Tx) error {
		now, _, err := s.lockPlan(ctx, tx, p)
		if open = err == nil && now.Open() && (!abandoned || now.State == change.Proposed); !open {
			return err
		}
		return s.thaw(ctx, tx, p)
	})
	if err != nil {
		return fmt.Errorf("let %s go on after change %s, which was aborted: %w", s.Name(), p.UUID, err)
	}
	if open {
		s.Log.Warn("change of sequence servers aborted", zap.String("change", p.UUID), zap.Uint64("plan", p.Number))
		s.Announce(ctx)
	}
	return nil
}
