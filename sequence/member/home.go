package member

import (
	"context"
	"database/sql"
	"errors"
	"sync"
	"time"

	"seqproxy/internal/await"
	"seqproxy/sequence/link"
	"seqproxy/sequence/segment"
	"seqproxy/sequence/store"
)

// isHome checks that the member with the share h is the home of an ORDER sequence, by its row once
// numbers were reserved there: this process may not have seen a new home yet. A home that was never
// chosen is the first member.
func isHome(among []*Server, h segment.Share, home string) store.Outcome {
	if home == h.ID {
		return store.OutcomeDone
	}
	if h.Position != 0 {
		return store.OutcomeNotHome
	}
	for _, o := range among {
		switch {
		case o.Share().Plan != h.Plan:
			return store.OutcomeOldPlan
		case o.Share().ID == home:
			return store.OutcomeNotHome
		}
	}
	return store.OutcomeDone
}

// stillHome checks, after a reservation of an ORDER sequence on one of several members, that this
// one was not removed while it was off. Such a member still obeys the old plan, and the others may
// have given higher numbers. One that can be reached is frozen first, so its row shows it.
//
// A member that goes off ends every connection. So each connection asks the others under each plan,
// until one has answered: no newer plan is decided before all members that stay have accepted it.
// The first time it asks also those that are left out, since they may be left out for the newer
// plan. Later it asks only those that are up. Where none is, the sequence continues.
func (v *Server) stillHome(ctx context.Context, conn *sql.Conn, among []*Server, h segment.Share) error {
	c, err := link.ConnOf(conn)
	if err != nil {
		return err
	}
	if c.ConfirmedPlan == h.Plan {
		return nil
	}
	patience := min(v.timing.Peer, v.TryTime()/2)
	if end, ok := ctx.Deadline(); ok {
		patience = min(patience, time.Until(end)/2)
	}
	limited, stop := context.WithTimeoutCause(ctx, patience, await.ErrPatience)
	defer stop()
	var mu sync.Mutex
	heard, newer, leaving := 0, false, false
	others := func(o *Server) bool { return c.AskedPlan != h.Plan || there(o) }
	eachOther(among, v, others, func(o *Server) {
		is, err := o.Plans.Membership(limited, o.Pool(), "")
		changing := false
		if err == nil {
			// afterwards, as the start of a plan ends the change in the same transaction
			if changed := o.Plans.RefuseAccepted(limited, o.Pool(), h.Plan); errors.Is(changed, store.OutcomeFrozen) {
				changing = true
			} else {
				err = changed
			}
		}
		mu.Lock()
		defer mu.Unlock()
		if err == nil && is.ID == o.Share().ID { // not one that was set up anew
			heard++
			newer, leaving = newer || is.Plan > h.Plan, leaving || changing
		}
	})
	switch {
	case newer:
		return store.OutcomeOldPlan
	case leaving:
		return store.OutcomeFrozen // this one may be removed
	}
	c.AskedPlan = h.Plan
	if heard > 0 {
		c.ConfirmedPlan = h.Plan
	}
	return ctx.Err()
}
