package member

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"seqproxy/internal/logfield"
	"seqproxy/sequence/floor"
	"seqproxy/sequence/group"
	"seqproxy/sequence/stats"
	"seqproxy/sequence/store"
)

// Server is one sequence server, as those know it who take numbers: its tables, and what keeps
// numbers from coming twice. It is safe for concurrent use.
type Server struct {
	*store.Store
	Ceilings *group.Ceilings
	Trials   stats.Trials

	options  Options
	timing   *Timing
	counters *stats.Counters

	tenure   atomic.Pointer[Tenure] // on which node signs of life are given
	away     atomic.Bool            // it is left out while others serve
	forgot   atomic.Bool            // see TakeForgot
	lowest   lowest
	recorded recorded
}

// Options are those of a [Server].
type Options struct {
	Tables   store.Options
	Marks    *floor.Marks // of all members
	Counters *stats.Counters
	Timing   Timing
	Group    group.Patience
	// Patience is how long a caller waits for numbers, at present.
	Patience func() time.Duration
	// OrderWithoutReplica reports whether ORDER sequences of a group give numbers while no majority
	// of its nodes is seen, at present.
	OrderWithoutReplica func() bool
}

// Timing is the intervals of a member.
type Timing struct {
	// ShortestTry is the least time that a member gets before the next one is asked.
	ShortestTry time.Duration
	// Peer bounds the questions to other members beside a reservation on one.
	Peer time.Duration
	// Follow is how often the follower of changes asks, which a reservation may wait for.
	Follow time.Duration
	// Stale is after which silence nobody waits for a proxy.
	Stale time.Duration
	// Alarm is for how long it is not said again that the row of a sequence went back.
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

// Due is what a reservation leaves to be done beside its caller: how far the server may go with the
// sequence is to be raised before that is needed.
type Due struct {
	Server  *Server // nil: there is nothing to do
	N       uint64  // numbers that are reserved at a time
	Window  bool    // the ceiling that its nodes know of
	Witness bool    // the ceiling that other members have recorded
}

// GoAhead does what a reservation of a sequence has left. Whoever reaches the limit is told what
// fails here.
func (d Due) GoAhead(ctx context.Context, among *Among, name string) {
	if d.Window {
		d.Server.Ceilings.OpenNext(ctx, name, d.N)
	}
	if d.Witness {
		d.Server.raiseAhead(ctx, among, name, d.N)
	}
}

// ErrExcluded: what kept it from serving may be over, but that was not seen yet.
var ErrExcluded = errors.New("it is left out until it answers again")

// LeaveOut has a member not be asked until it answers the follower again, which has to run for
// that.
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

// TakeForgot reports whether the member may have forgotten the ceilings of others since the last
// call.
func (v *Server) TakeForgot() bool { return v.forgot.Swap(false) }

// Unusable says what is known that keeps numbers from being reserved there, or nil.
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

// TryTime is how long one of several members may take: no caller waits for a dead one until his
// patience is over.
func (v *Server) TryTime() time.Duration {
	return max(v.options.Patience()/4, v.timing.ShortestTry)
}

// homeTime is TryTime where there is nobody else to turn to: a server that is slow is not asked
// again and again, which makes it slower. Who comes meanwhile has the time for an attempt of his
// own.
func (v *Server) homeTime() time.Duration {
	return max(v.options.Patience()/2, v.timing.ShortestTry)
}
