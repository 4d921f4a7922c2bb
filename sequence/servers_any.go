package sequence

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"seqproxy/internal/await"
	"seqproxy/sequence/define"
	"seqproxy/sequence/member"
	"seqproxy/sequence/store"
)

// This file is how several members serve what any of them can.

// Stride is how far apart the numbers of one sequence server are: how many servers there are, if
// they take turns with InterleaveStep, else 1. Before the servers were asked for the plan it is
// what the configuration says. It does no I/O.
func (s *Sequences) Stride() uint64 {
	w := s.servers.view.Load()
	switch {
	case len(w.Members) < 2:
		return 1
	case w.settled && w.Plan.Interleave == InterleaveStep, !w.settled && s.opts.Interleave == InterleaveStep:
		return uint64(len(w.Members))
	}
	return 1
}

// Divided says whether several sequence servers divide the numbers, and by how many one may move a
// row of theirs without us: a multiple of turns, if that is more than 1. With NoDirectWriters
// nobody may, as a member that is away is then taken out by what reservations said of it. Unless
// the servers are known to divide the numbers in blocks it asks them, as their set may have been
// changed a moment ago, or before this process began. While it is changed, or none can be asked, it
// waits. Errors: ErrUnfit, ErrClosed, ctx's cause, *UnavailableError.
func (s *Sequences) Divided(ctx context.Context) (several bool, turns uint64, err error) {
	if !s.begin() {
		return false, 0, ErrClosed
	}
	defer s.tasks.Done()
	w := s.servers.view.Load()
	if !w.settled || !w.Several() || w.Plan.Interleave == InterleaveStep {
		r, stop := s.request(ctx)
		defer stop()
		for backoff := s.timing.firstBackoff; ; backoff = min(2*backoff, s.timing.follow/4) {
			now, failed := s.servers.hearPlan(r.ctx)
			if w = now; failed == nil || err == nil || r.ctx.Err() == nil {
				// an attempt that was cut off says less than the one before
				err = failed
			}
			if errors.Is(failed, store.OutcomeFrozen) || errors.Is(failed, store.OutcomeOldPlan) {
				s.startFollowing() // who leaves out a server that obeys another plan
			}
			if err == nil || errors.Is(err, ErrUnfit) || errors.Is(err, ErrClosed) || !await.Pause(r.ctx, await.Jitter(backoff)) {
				break
			}
		}
		if err != nil {
			return false, 0, r.failed("", err)
		}
	}
	if !w.Several() {
		return false, 1, nil
	}
	s.startFollowing() // so that it is heard when they are not any more
	if w.Plan.Interleave == InterleaveStep && !s.servers.tuning.Load().NoDirectWriters {
		return true, uint64(len(w.Members)), nil
	}
	return true, 1, nil
}

// hearPlan returns the members in use, once all of them that answer have said that their plan is
// still in force: one may have been away when the next one began.
func (a *servers) hearPlan(ctx context.Context) (w *view, err error) {
	err = a.under(ctx, func(now *view) error {
		w = now
		live := now.Live()
		failed := member.Each(ctx, live, func(ctx context.Context, _ int, v *server) error { return v.StillObeys(ctx, now.Plan.Number) })
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

// nameFor is how errors call what gives the numbers of a sequence.
func (a *servers) nameFor(name string) string {
	if home := a.next.Home(a.now(), name); home != nil {
		return home.Name()
	}
	return a.name()
}

// FindAll implements [member.Agreement].
func (a *servers) FindAll(ctx context.Context, among *member.Among, name string) (store.Row, error) {
	return a.findAll(ctx, &view{settled: true, Among: *among}, name)
}

// StaysInForce implements [member.Agreement].
func (a *servers) StaysInForce(ctx context.Context, plan uint64) bool {
	w := a.view.Load()
	return w.Plan.Number == plan && a.reread(ctx, w) == nil && a.view.Load() == w
}

// seen is what one member says of a name.
type seen struct {
	store.Row
	err error
}

// findAll asks all members that can be reached, makes them agree, and returns the row as it is for
// all of them: its id is the highest. A row of the only member agrees with itself, also one that
// was made by hand, and counts at the end of its column, where no other member goes on.
func (a *servers) findAll(ctx context.Context, w *view, name string) (store.Row, error) {
	live := w.Live()
	all := make([]seen, len(live))
	failed := slices.DeleteFunc(member.Each(ctx, live, func(ctx context.Context, i int, v *server) error {
		all[i].Row, all[i].err = v.LookEither(ctx, name)
		return all[i].err
	}), func(err error) bool { return errors.Is(err, ErrUnknown) })
	var merged *store.Row
	var unknown []error
	agree := true
	for i := range all {
		r := &all[i].Row
		switch err := all[i].err; {
		case errors.Is(err, ErrUnknown):
			unknown = append(unknown, err)
		case err != nil:
			if !errors.Is(err, ErrUnfit) && ctx.Err() == nil && len(live) > 1 {
				live[i].LeaveOut(err)
			}
		case w.Several() && !r.Frozen && r.ID >= live[i].Seen.Load().Max:
			failed = append(failed, fmt.Errorf("%s: %w", live[i].Name(), &NameError{Name: define.ShownName(name), Err: ErrExhausted}))
		case r.Plan != r.Share.Plan && (!w.Several() || r.Share.InSteps() && !r.Frozen && !r.Share.Has(r.ID)):
			return store.Row{}, store.OutcomeOldPlan // whose numbers these are is not known before the plan is
		case r.Share.InSteps() && !r.Frozen && !r.Share.Has(r.ID):
			return store.Row{}, live[i].WrongResidue(ctx, w.Members, r.Name, r.ID, r.Share)
		case merged == nil:
			merged = r
			agree = r.Version != 0 || !w.Several()
		default:
			agree = agree && r.Version == merged.Version
			merged = store.MergeRows(merged, r)
		}
	}
	switch {
	case merged == nil && len(unknown) == 0:
		return store.Row{}, errors.Join(failed...)
	case merged == nil && len(unknown) < len(w.Members)-majority(len(w.Members))+1:
		return store.Row{}, fmt.Errorf("too few sequence servers can be reached to tell whether there is sequence %q: %w", name, errors.Join(append(failed, w.NotAsked(live)...)...))
	case merged == nil:
		return store.Row{}, unknown[0]
	case !agree || len(unknown) > 0:
		found, err := w.reconcile(ctx, merged.Name)
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
