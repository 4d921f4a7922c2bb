package members

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/google/uuid"
	"go.uber.org/zap"

	"seqproxy/sequence/change"
	"seqproxy/sequence/link"
	"seqproxy/sequence/member"
	"seqproxy/sequence/segment"
	"seqproxy/sequence/steps"
	"seqproxy/sequence/store"
)

// Undivided is the finding where several servers are configured that do not divide the numbers yet.
// Which of them counts is not guessed.
func (a *Members) Undivided() error {
	return &link.UnfitError{
		Server: a.Name(), Finding: "several are configured that do not divide the numbers yet",
		Remedy: "configure the one that has the rows, or any one of them if none has, start with that, and say SEQPROXY ADD SEQUENCE SERVER for each of the others; " +
			"then all may be configured",
	}
}

// firstPlanLocked makes the first plan of the servers that are configured, whose rows show that
// they count in steps. a.Changing is held.
func (a *Members) firstPlanLocked(ctx context.Context, met []change.Met) (*change.Plan, error) {
	for i := range met {
		if met[i].Err != nil {
			return nil, fmt.Errorf("no plan is in force on the sequence servers that can be reached, but all must say so: %w", met[i].Err)
		}
	}
	if a.opts.Interleave != segment.InSteps {
		return nil, a.Undivided()
	}
	plan := &change.Plan{Number: 1, UUID: uuid.NewString(), State: change.InForce, Coordinator: store.NewRegistration().Host, Interleave: segment.InSteps}
	configured := a.opts.Servers
	for _, v := range configured {
		id, err := v.Plans.MemberID(ctx, v.Pool())
		if err != nil {
			return nil, err
		}
		if at := slices.IndexFunc(plan.Members, func(m change.Member) bool { return m.ID == id }); at >= 0 {
			return nil, v.Unfit(v.Table.Member, configured[at].Name()+" and "+v.Name()+" are the same sequence server, or one is a copy of the other",
				"name each sequence server once; on a copy that is to be a server of its own: DELETE FROM "+v.Table.Member)
		}
		plan.Members = append(plan.Members, change.Member{ID: id, Address: v.Config.Link.Name})
	}
	for i, v := range configured {
		if err := FitsPlan(ctx, v, v.Pool(), configured, plan.Of(plan.Members[i].ID), ""); err != nil {
			return nil, err
		}
	}
	// Whoever else makes a first plan of these servers begins with the same one, and one of the two is
	// first there. The other finishes that plan, as anybody does if this process dies.
	byID := func(x, y change.Member) int { return strings.Compare(x.ID, y.ID) }
	for _, m := range slices.SortedFunc(slices.Values(plan.Members), byID) {
		is := plan.Of(m.ID)
		if err := joinFirstPlan(ctx, configured[is.Position], configured, plan, is); err != nil {
			return nil, err
		}
	}
	a.log.Info("first plan made", zap.String("change", plan.UUID), zap.String("servers", member.NamesOf(configured)))
	return plan, nil
}

// joinFirstPlan makes a server a member of the first plan.
func joinFirstPlan(ctx context.Context, v *member.Server, among []*member.Server, plan *change.Plan, is change.Membership) error {
	return v.Transact(ctx, func(tx *sql.Tx) error {
		was, err := v.Plans.Membership(ctx, tx, store.ForUpdate)
		if err == nil && was.Plan != 0 {
			err = store.OutcomeOldPlan
		}
		if err == nil {
			err = FitsPlan(ctx, v, tx, among, is, store.ForUpdate)
		}
		if err == nil {
			err = v.Plans.Save(ctx, tx, plan)
		}
		if err == nil {
			err = v.Plans.SaveMembership(ctx, tx, is)
		}
		return err
	})
}

// FitsPlan makes sure that a server's counters are such that it can have a share of the first plan.
// locking may be " FOR UPDATE".
func FitsPlan(ctx context.Context, v *member.Server, on link.Querier, among []*member.Server, h segment.Share, locking string) error {
	var wrong error
	err := steps.On(v.Store).EachRow(ctx, on, func(name string, id uint64) {
		if wrong == nil && !h.Has(id) {
			wrong = v.WrongResidue(ctx, among, name, id, h)
		}
	}, "SELECT `name`, `id` FROM "+v.Table.Sequence+locking)
	return errors.Join(wrong, err)
}
