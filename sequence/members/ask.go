package members

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"seqproxy/sequence/agree"
	"seqproxy/sequence/member"
	"seqproxy/sequence/store"
)

// HearPlan returns the members in use, once all of them that answer have said that their plan is
// still in force: one may have been away when the next one began.
func (a *Members) HearPlan(ctx context.Context) (w *View, err error) {
	err = a.Under(ctx, func(now *View) error {
		w = now
		live := now.Live()
		failed := member.Each(ctx, live, func(ctx context.Context, _ int, v *member.Server) error { return v.StillObeys(ctx, now.Number) })
		otherwise := func(err error) bool {
			return errors.Is(err, store.OutcomeOldPlan) || errors.Is(err, store.OutcomeFrozen)
		}
		if len(failed) == len(live) || ctx.Err() != nil || slices.ContainsFunc(failed, otherwise) {
			return errors.Join(failed...)
		}
		return nil
	})
	return w, err
}

// Clock is the time of the sequence server. Of several members it is the middle one of those that
// answer, as one of three may be wrong.
func (a *Members) Clock(ctx context.Context) (at time.Time, err error) {
	err = a.Under(ctx, func(w *View) error {
		var mu sync.Mutex
		var said []time.Time // as it was when they were asked
		asked := time.Now()
		failed := member.Each(ctx, w.Live(), func(ctx context.Context, _ int, v *member.Server) error {
			now, err := v.Clock(ctx)
			if err == nil {
				mu.Lock()
				defer mu.Unlock()
				said = append(said, now.Add(-time.Since(asked)/2))
			}
			return err
		})
		if len(said) == 0 {
			return errors.Join(failed...)
		}
		slices.SortFunc(said, time.Time.Compare)
		at = said[len(said)/2].Add(time.Since(asked))
		return nil
	})
	return at, err
}

// Recordable reports whether the ticks of a worker from one on are below its ceiling, or somebody
// is there to record a higher one. To try would take long.
func (a *Members) Recordable(ctx context.Context, name string, from uint64) (bool, error) {
	w := a.Now()
	if !w.Several() || len(w.Live()) > 1 {
		return true, nil
	}
	v := a.Next.Home(&w.Among, name)
	ceiling, err := v.RecordedCeiling(ctx, v.Pool(), name, v.Share().Plan)
	return ceiling > from, err
}

// HomeUp says whether the server that gives the numbers of an ORDER sequence can be used, as far as
// is known.
func (a *Members) HomeUp(name string) bool {
	w := a.Now()
	home := cmp.Or(a.Next.Home(&w.Among, name), w.Members[0])
	return home.Unusable() == nil && !home.Ceilings.Unseen()
}

// OrderedForGood makes sure that a sequence that was made an ORDER sequence, as r was written,
// stays one after a fail-over. Where such numbers are given without replicas it is enough that no
// fail-over has lost that yet. A node may lag for as long as ctx has time, and patience.
func (a *Members) OrderedForGood(ctx context.Context, r *store.Row, withoutReplica bool, patience time.Duration) error {
	v := a.First()
	if !v.Ceilings.InForce() { // several are no groups
		return nil
	}
	if !withoutReplica {
		// All of them: a takeover brings over how far others have come, and not what they are.
		if err := v.Ceilings.ShownOn(ctx, patience, len(v.Nodes())); err != nil {
			return err
		}
	}
	// Another node may have taken over since it was written, and have been asked instead.
	stored, err := v.Look(ctx, r.Name)
	if err == nil && (!stored.Def.Order || stored.Version < r.Version) {
		err = fmt.Errorf("sequence %q is not the ORDER sequence that it was made at %s: a fail-over has lost that, or somebody has changed it since; try again", r.Name, v.At())
	}
	return err
}

// Find reads the row that name means. No such row is ErrUnknown.
func (a *Members) Find(ctx context.Context, name string) (store.Row, error) {
	return asked(ctx, a, func(d agree.Definitions) (store.Row, error) { return d.Find(ctx, name) })
}

// List reads all rows, of the members that can be reached.
func (a *Members) List(ctx context.Context) (all []store.Row, err error) {
	err = a.Under(ctx, func(w *View) error {
		live := w.Live()
		lists := make([][]store.Row, len(live))
		failed := member.Each(ctx, live, func(ctx context.Context, i int, v *member.Server) (err error) {
			lists[i], err = v.List(ctx)
			return err
		})
		if len(failed) == len(live) {
			return errors.Join(failed...)
		}
		all = store.MergeLists(lists)
		return nil
	})
	return all, err
}
