package sequence

import (
	"context"
	"database/sql"
	"sync"
	"time"
)

// stillHome makes sure, after a reservation of an ORDER sequence on one of several members, that this one was not taken out while it was off: there it obeys the plan before still, and
// the others may have given higher numbers by then. A member that is reached was frozen for that, which tells. To be off ends every connection; so each of them asks the others once
// under each plan, until as many have answered as it takes for one to know of a newer one. Where they are away, too, the sequence goes on.
func (v *server) stillHome(ctx context.Context, conn *sql.Conn, h share) error {
	var own *line
	if err := conn.Raw(func(raw any) error { own = raw.(*line); return nil }); err != nil {
		return err
	}
	if own.home == h.plan {
		return nil
	}
	patience := peerPatience
	if end, ok := ctx.Deadline(); ok {
		patience = min(patience, time.Until(end)/2)
	}
	limited, stop := context.WithTimeoutCause(ctx, patience, errPatience)
	defer stop()
	var mu sync.Mutex
	heard, left := 0, false
	v.eachPeer(h, func(o *server) {
		is, _, err := o.membership(limited, o.pool())
		mu.Lock()
		defer mu.Unlock()
		if err == nil {
			heard++
			left = left || is.Plan > h.plan
		}
	})
	if left {
		return errPlan
	}
	if heard >= majority(int(h.count))-1 { // the others that decided on a newer plan without this one are so many that one of them was heard
		own.home = h.plan
	}
	return ctx.Err()
}
