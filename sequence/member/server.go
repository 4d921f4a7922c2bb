package member

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"seqproxy/internal/logfield"
	"seqproxy/sequence/floor"
	"seqproxy/sequence/group"
	"seqproxy/sequence/limit"
	"seqproxy/sequence/stats"
	"seqproxy/sequence/store"
)

// Server is one sequence server for those who take numbers: its tables, and what keeps numbers from
// repeating. It is safe for concurrent use.
type Server struct {
	*store.Store
	Ceilings *group.Ceilings
	Trials   stats.Trials

	options  Options
	timing   *Timing
	counters *stats.Counters

	tenure   atomic.Pointer[Tenure] // on which node heartbeats are written
	away     atomic.Bool            // it is left out while others serve
	forgot   atomic.Bool            // see TakeForgot
	lowest   lowest
	recorded limit.Recorded // its ceilings, by plan
}

// Options are those of a [Server].
type Options struct {
	Tables   store.Options
	Marks    *floor.Marks // of all members
	Counters *stats.Counters
	Timing   Timing
	Group    group.Patience
	// Patience returns how long a caller waits for numbers, at present.
	Patience func() time.Duration
	// OrderWithoutReplica reports whether ORDER sequences of a group give numbers while no majority
	// of its nodes is seen, at present.
	OrderWithoutReplica func() bool
}

// Timing is the intervals of a member.
type Timing struct {
	// ShortestTry is the least time of a member before the next one is asked.
	ShortestTry time.Duration
	// Peer bounds the questions to other members during a reservation on one.
	Peer time.Duration
	// Follow is how often the follower of changes asks, which a reservation may wait for.
	Follow time.Duration
	// Stale is the silence after which nobody waits for a proxy.
	Stale time.Duration
	// Alarm is the least time between two log entries that the row of a sequence went back.
	Alarm time.Duration
}

// New does no I/O.
func New(o Options) (*Server, error) {
	of, err := store.NewSchema(o.Tables)
	if err != nil {
		return nil, err
	}
	tables := store.New(of, o.Marks)
	return &Server{Store: tables, Ceilings: group.New(tables, o.Group), options: o, timing: &o.Timing, counters: o.Counters}, nil
}

// Due is the work that follows a reservation, apart from its caller: the server's ceiling for the
// sequence is raised before that is needed.
type Due struct {
	Server  *Server // nil: there is nothing to do
	Plan    uint64  // number of the plan of the reservation
	N       uint64  // numbers of one reservation
	Window  bool    // the ceiling that its nodes record
	Witness bool    // the ceiling that other members record
}

// GoAhead does the work that follows a reservation, unless the members have changed since. Its
// errors reach the callers once the ceiling is reached.
func (d Due) GoAhead(ctx context.Context, among *Among, name string) {
	if d.Plan != among.Number {
		return // another member may give that worker's ticks now: a ceiling here would be at their end
	}
	if d.Window {
		d.Server.Ceilings.OpenNext(ctx, name, d.N)
	}
	if d.Witness {
		d.Server.raiseAhead(ctx, among, name, d.N)
	}
}

// ErrExcluded: the obstacle may be gone, but that was not seen yet.
var ErrExcluded = errors.New("it is left out until it answers again")

// LeaveOut excludes a member until it answers the follower again, which has to run for that.
func (v *Server) LeaveOut(err error) {
	if v.away.CompareAndSwap(false, true) {
		v.Log.Warn("sequence server left out", logfield.Err(err))
	}
}

// TakeIn undoes LeaveOut, and reports whether the member was left out.
func (v *Server) TakeIn() bool {
	back := v.away.CompareAndSwap(true, false)
	if back {
		v.Log.Info("sequence server taken in again")
		v.forgot.Store(true) // it may be a backup of itself
		v.lowest.forget()
	}
	return back
}

// Away reports whether the member is left out.
func (v *Server) Away() bool { return v.away.Load() }

// TakeForgot reports whether the member may have lost the ceilings of others since the last call.
func (v *Server) TakeForgot() bool { return v.forgot.Swap(false) }

// Unusable returns the known obstacle to reservations there, or nil.
func (v *Server) Unusable() error {
	if err := v.LastFailure(); err != nil {
		return err
	}
	if err, fresh := v.LastAnswer(); fresh && err != nil {
		return err
	}
	if v.away.Load() {
		return ErrExcluded
	}
	return nil
}

// TryTime is how long one of several members may take, so that no caller spends all patience on a
// dead one.
func (v *Server) TryTime() time.Duration {
	return max(v.options.Patience()/4, v.timing.ShortestTry)
}

// homeTime is TryTime where no other member can serve: retries would make a slow server slower. A
// later caller has the time for another attempt.
func (v *Server) homeTime() time.Duration {
	return max(v.options.Patience()/2, v.timing.ShortestTry)
}
