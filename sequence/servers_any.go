package sequence

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"seqproxy/internal/await"
	"seqproxy/sequence/agree"
	"seqproxy/sequence/member"
	"seqproxy/sequence/store"
)

// This file is how several members serve what any of them can.

// Stride is how far apart the numbers of one sequence server are: how many servers there are, if
// they take turns with InterleaveStep, else 1. Before the servers were asked for the plan it is
// what the configuration says. It does no I/O.
func (s *Sequences) Stride() uint64 {
	w := s.servers.Now()
	switch {
	case len(w.Members) < 2:
		return 1
	case w.Settled && w.InSteps(), !w.Settled && s.opts.Interleave == InterleaveStep:
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
	w := s.servers.Now()
	if !w.Settled || !w.Several() || w.InSteps() {
		r, stop := s.request(ctx)
		defer stop()
		for backoff := s.timing.firstBackoff; ; backoff = min(2*backoff, s.timing.follow/4) {
			now, failed := s.servers.HearPlan(r.ctx)
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
	if w.InSteps() && !s.servers.tuning.Load().NoDirectWriters {
		return true, uint64(len(w.Members)), nil
	}
	return true, 1, nil
}

// HearPlan returns the members in use, once all of them that answer have said that their plan is
// still in force: one may have been away when the next one began.
func (a *servers) HearPlan(ctx context.Context) (w *view, err error) {
	err = a.Under(ctx, func(now *view) error {
		w = now
		live := now.Live()
		failed := member.Each(ctx, live, func(ctx context.Context, _ int, v *server) error { return v.StillObeys(ctx, now.Number) })
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

// NameFor is how errors call what gives the numbers of a sequence.
func (a *servers) NameFor(name string) string {
	if home := a.Next.Home(&a.Now().Among, name); home != nil {
		return home.Name()
	}
	return a.Name()
}

// FindAll implements [member.Agreement].
func (a *servers) FindAll(ctx context.Context, among *member.Among, name string) (store.Row, error) {
	return agree.Of(among, a.Next).Find(ctx, name)
}

// BeginAgain implements [member.Agreement].
func (a *servers) BeginAgain(ctx context.Context, v *server, name string, need uint64) (left uint64, err error) {
	return agree.BeginAgain(ctx, v, name, need)
}

// StaysInForce implements [member.Agreement].
func (a *servers) StaysInForce(ctx context.Context, plan uint64) bool {
	w := a.Now()
	return w.Number == plan && a.Reread(ctx, w) == nil && a.Now() == w
}

// Clock is the time of the sequence server. Of several members it is the middle one of those that
// answer, as one of three may be wrong.
func (a *servers) Clock(ctx context.Context) (at time.Time, err error) {
	err = a.Under(ctx, func(w *view) error {
		var mu sync.Mutex
		var said []time.Time // as it was when they were asked
		asked := time.Now()
		failed := member.Each(ctx, w.Live(), func(ctx context.Context, _ int, v *server) error {
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

// Recordable reports whether the ticks of a worker from one on are below its ceiling, or somebody is
// there to record a higher one. To try would take long.
func (a *servers) Recordable(ctx context.Context, name string, from uint64) (bool, error) {
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
func (a *servers) HomeUp(name string) bool {
	w := a.Now()
	home := cmp.Or(a.Next.Home(&w.Among, name), w.Members[0])
	return home.Unusable() == nil && !home.Ceilings.Unseen()
}

// OrderedForGood makes sure that a sequence that was made an ORDER sequence, as r was written,
// stays one after a fail-over. Where such numbers are given without replicas it is enough that no
// fail-over has lost that yet. A node may lag for as long as ctx has time.
func (a *servers) OrderedForGood(ctx context.Context, r *store.Row) error {
	return errors.Join(member.Patiently(ctx, a.Now().Members, func(ctx context.Context, _ int, v *server) error {
		if !v.Ceilings.InForce() {
			return nil
		}
		if !a.tuning.Load().OrderWithoutReplica {
			// All of them: a takeover brings over how far others have come, and not what they are.
			if err := v.Ceilings.ShownOn(ctx, a.timing.confirm, len(v.Nodes())); err != nil {
				return err
			}
		}
		// Another node may have taken over since it was written, and have been asked instead.
		stored, err := v.Look(ctx, r.Name)
		if err == nil && (!stored.Def.Order || stored.Version < r.Version) {
			err = fmt.Errorf("sequence %q is not the ORDER sequence that it was made at %s: a fail-over has lost that, or somebody has changed it since; try again", r.Name, v.At())
		}
		return err
	})...)
}
