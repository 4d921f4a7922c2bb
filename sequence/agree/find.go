package agree

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"seqproxy/sequence/define"
	"seqproxy/sequence/link"
	"seqproxy/sequence/member"
	"seqproxy/sequence/store"
)

// Definitions is what is defined on the members in use at one time.
type Definitions struct {
	*member.Among
	next *member.Several // hears where the homes of ORDER sequences are; nil: nobody asks for them
}

// Of is what is defined on members.
func Of(among *member.Among, next *member.Several) Definitions { return Definitions{among, next} }

// seen is what one member says of a name.
type seen struct {
	store.Row
	err error
}

// Find asks all members that can be reached, makes them agree, and returns the row as it is for
// all of them: its id is the highest. A row of the only member agrees with itself, also one that
// was made by hand, and counts at the end of its column, where no other member goes on.
func (a Definitions) Find(ctx context.Context, name string) (store.Row, error) {
	live := a.Live()
	all := make([]seen, len(live))
	failed := slices.DeleteFunc(member.Each(ctx, live, func(ctx context.Context, i int, v *member.Server) error {
		all[i].Row, all[i].err = v.LookEither(ctx, name)
		return all[i].err
	}), func(err error) bool { return errors.Is(err, define.ErrUnknown) })
	var merged *store.Row
	var unknown []error
	agree := true
	for i := range all {
		r := &all[i].Row
		switch err := all[i].err; {
		case errors.Is(err, define.ErrUnknown):
			unknown = append(unknown, err)
		case err != nil:
			if !errors.Is(err, link.ErrUnfit) && ctx.Err() == nil && len(live) > 1 {
				live[i].LeaveOut(err)
			}
		case a.Several() && !r.Frozen && r.ID >= live[i].Seen.Load().Max:
			failed = append(failed, fmt.Errorf("%s: %w", live[i].Name(), &define.NameError{Name: define.ShownName(name), Err: define.ErrExhausted}))
		case r.Plan != r.Share.Plan && (!a.Several() || r.Share.InSteps() && !r.Frozen && !r.Share.Has(r.ID)):
			return store.Row{}, store.OutcomeOldPlan // whose numbers these are is not known before the plan is
		case r.Share.InSteps() && !r.Frozen && !r.Share.Has(r.ID):
			return store.Row{}, live[i].WrongResidue(ctx, a.Members, r.Name, r.ID, r.Share)
		case merged == nil:
			merged = r
			agree = r.Version != 0 || !a.Several()
		default:
			agree = agree && r.Version == merged.Version
			merged = store.MergeRows(merged, r)
		}
	}
	switch {
	case merged == nil && len(unknown) == 0:
		return store.Row{}, errors.Join(failed...)
	case merged == nil && len(unknown) < len(a.Members)-majority(len(a.Members))+1:
		return store.Row{}, fmt.Errorf("too few sequence servers can be reached to tell whether there is sequence %q: %w", name, errors.Join(append(failed, a.NotAsked(live)...)...))
	case merged == nil:
		return store.Row{}, unknown[0]
	case !agree || len(unknown) > 0:
		found, err := a.reconcile(ctx, merged.Name)
		if err != nil {
			return store.Row{}, err
		}
		merged = &found
	}
	a.next.SettleAt(merged)
	return *merged, nil
}

// majority is how many members a new sequence needs.
func majority(members int) int { return members/2 + 1 }

// reconcile makes members agree on a name that they have differently, and returns its row.
// ErrUnknown if the newest of them knows that it was dropped.
func (a Definitions) reconcile(ctx context.Context, name string) (found store.Row, err error) {
	// Some lack the row, and two who look for it would wait for each other to make it.
	definitions := func(e *edit) error { _, err := e.lockDefinitions(ctx); return err }
	err = a.edit(ctx, 1, name, definitions, func(g *Agreed) error {
		if g.best == nil {
			return &define.NameError{Name: define.ShownName(name), Err: define.ErrUnknown}
		}
		if err := g.settle(ctx); err != nil {
			return err
		}
		found = g.merged()
		if !g.live {
			found = store.Row{}
		}
		return nil
	})
	if err == nil && found.Name == "" {
		err = &define.NameError{Name: define.ShownName(name), Err: define.ErrUnknown}
	}
	if err != nil {
		return store.Row{}, fmt.Errorf("have the sequence servers agree on sequence %q: %w", name, err)
	}
	return found, nil
}
