package sequence

import (
	"context"
	"errors"

	"seqproxy/internal/await"
	"seqproxy/sequence/store"
)

// Stride is how far apart the numbers of one sequence server are: how many servers there are, if
// they divide the numbers in steps, else 1. Before the servers were asked for the plan it is
// what the configuration says. It does no I/O.
func (s *Sequences) Stride() uint64 {
	w := s.members.Now()
	switch {
	case len(w.Members) < 2:
		return 1
	case w.Settled && w.InSteps(), !w.Settled && s.opts.Interleave == InterleaveStep:
		return uint64(len(w.Members))
	}
	return 1
}

// Divided reports whether several sequence servers divide the numbers. If they do so in steps,
// others may move a row of theirs by multiples of multiple. 1 means that nobody else may. With
// NoDirectWriters nobody may, as reservations then say how far a member that is away has gone.
// Unless the servers are known to divide the numbers in blocks it asks them, as their set may have
// been changed a moment ago, or before this process began. While it is changed, or none can be
// asked, it waits. Errors: ErrUnfit, ErrClosed, ctx's cause, *UnavailableError.
func (s *Sequences) Divided(ctx context.Context) (several bool, multiple uint64, err error) {
	if !s.begin() {
		return false, 0, ErrClosed
	}
	defer s.tasks.Done()
	w := s.members.Now()
	if !w.Settled || !w.Several() || w.InSteps() {
		r, stop := s.request(ctx)
		defer stop()
		for backoff := s.timing.firstBackoff; ; backoff = min(2*backoff, s.timing.follow/4) {
			now, failed := s.members.HearPlan(r.ctx)
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
	if w.InSteps() && !s.tuning.Load().NoDirectWriters {
		return true, uint64(len(w.Members)), nil
	}
	return true, 1, nil
}
