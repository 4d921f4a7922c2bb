package sequence

import (
	"context"
	"crypto/rand"
	"errors"
	"math"
	"slices"
	"sync"
	"sync/atomic"

	"go.uber.org/zap"

	"seqproxy/internal/await"
	"seqproxy/sequence/agree"
	"seqproxy/sequence/floor"
	"seqproxy/sequence/member"
	"seqproxy/sequence/segment"
	"seqproxy/sequence/stats"
	"seqproxy/sequence/store"
)

// servers is where numbers come from and where definitions are kept: the sequence servers of the
// plan in force. Caches and [Sequences] see them as one. It is safe for concurrent use.
type servers struct {
	opts     Options
	timing   *timing
	tuning   atomic.Pointer[Tuning]
	log      *zap.Logger
	counters *stats.Counters
	// of all of them: no number at or below the highest that this process ever got anywhere is
	// taken again
	Marks *floor.Marks
	Next  *member.Several // which of them is asked for numbers
	Ahead uint64          // see member.CeilingAhead

	ID         string      // of this process among the proxies
	registered atomic.Bool // see registry.anywhere

	view atomic.Pointer[view]
	// that has the ticket tables: the first of the configuration, whatever the plan
	Tickets  *server
	Changing await.Lock // held while another view is made
	// guarded by Changing: all that ever were in a view, and those of the configuration, which come
	// first
	all    []*server
	closed bool // guarded by Changing
	// guarded by Changing: how the plan differed from the configuration when that was said
	warned string

	mu   sync.Mutex
	dues []Due // guarded by mu; what reservations have left to be done
}

// view is the members in use at one time. It is never changed.
type view struct {
	// the servers were asked which plan there is; without several of them they need not be
	Settled bool
	Plan    Plan // Number 0: there is none, and one server
	member.Among
}

// newServers does no I/O.
func newServers(opts Options, counters *stats.Counters) (*servers, error) {
	a := &servers{
		opts: opts, timing: opts.timing, log: opts.Logger, counters: counters, Marks: floor.NewMarks(),
		Ahead: member.CeilingAhead, Changing: await.NewLock(), ID: rand.Text(),
	}
	a.tuning.Store(opts.tuning())
	a.Next = member.NewSeveral(a, a.Marks, opts.timing.lack)
	for _, o := range opts.Servers {
		if _, err := a.addLocked(o); err != nil {
			return nil, err
		}
	}
	a.Tickets = a.all[0]
	a.view.Store(&view{Settled: len(a.all) == 1, Among: member.Among{Members: a.all, Ahead: a.Ahead}})
	return a, nil
}

// addLocked makes a server known. a.Changing is held, or a is not shared yet.
func (a *servers) addLocked(o ServerOptions) (*server, error) {
	made, err := newServer(a.opts, o, &a.tuning, a.counters, a.Marks)
	if err != nil {
		return nil, err
	}
	made.Registry.ID, made.Registry.Anywhere = a.ID, &a.registered
	if w := a.opts.WorkerID; w != nil {
		made.Registry.Host += workerInHost(*w)
	}
	a.all = append(a.all, made)
	return made, nil
}

// definitions is what is defined on members.
func (a *servers) definitions(w *view) agree.Definitions { return agree.Of(&w.Among, a.Next) }

// InUse reports whether numbers may be held, or a member has to be asked whether it serves again:
// then changes are to be followed.
func (a *servers) InUse() bool {
	return a.registered.Load() || slices.ContainsFunc(a.Now().Members, func(v *server) bool { return v.Away() })
}

// GoAhead does what a reservation of a sequence has left. Whoever reaches the limit is told what
// fails here.
func (a *servers) GoAhead(ctx context.Context, d Due) {
	d.GoAhead(ctx, &a.Now().Among, d.name)
}

// Now is the members in use at present.
func (a *servers) Now() *view { return a.view.Load() }

// Home is the member that alone gives the numbers of a sequence, as those of ORDER, or nil.
func (a *servers) Home(name string) *server { return a.Next.Home(&a.Now().Among, name) }

// Due is what a reservation leaves to be done beside its caller: how far a server may go with a
// sequence is to be raised before that is needed.
type Due struct {
	name string
	member.Due
}

// NoteDue takes note of what a reservation leaves to be done.
func (a *servers) NoteDue(what Due) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.dues = append(a.dues, what)
}

// TakeDue returns what reservations have left to be done since it was asked last.
func (a *servers) TakeDue() (all []Due) {
	a.mu.Lock()
	defer a.mu.Unlock()
	all, a.dues = a.dues, nil
	return all
}

// First is the member that is asked for what one server alone can answer, such as about character
// sets.
func (a *servers) First() *server { return a.Now().Members[0] }

// Name is how errors call them.
func (a *servers) Name() string { return member.NamesOf(a.Now().Members) }

func (a *servers) Close() error {
	a.Changing.MustAcquire()
	defer a.Changing.Release()
	a.closed = true
	var all []error
	for _, member := range a.all {
		all = append(all, member.Close())
	}
	return errors.Join(all...)
}

// maxPlanChanges bounds how often a request begins again because the plan has changed.
const maxPlanChanges = 4

// Under calls f with the members in use, and again if it turns out that the plan is another one.
func (a *servers) Under(ctx context.Context, f func(w *view) error) error {
	for attempt := 1; ; attempt++ {
		w, err := a.Ready(ctx)
		if err != nil {
			return err
		}
		if err = f(w); !errors.Is(err, store.OutcomeOldPlan) || attempt == maxPlanChanges {
			return err
		}
		if errRead := a.Reread(ctx, w); errRead != nil {
			return errors.Join(err, errRead)
		}
	}
}

// Reserve implements [reserver].
func (a *servers) Reserve(ctx context.Context, name string, want, need uint64) (g store.Grant, err error) {
	err = a.Under(ctx, func(w *view) error {
		var left member.Due
		g, left, err = a.Next.Reserve(ctx, &w.Among, name, want, need)
		if err == nil && left.Server != nil {
			a.NoteDue(Due{name, left})
		}
		return err
	})
	return g, err
}

// GiveBack implements [reserver]. Numbers go back where they came from, under the plan under which
// they came.
func (a *servers) GiveBack(ctx context.Context, name string, epoch uint64, seg segment.Segment) (bool, error) {
	for _, member := range a.Now().Members {
		if h := member.ShareOf(name, segment.Simple); h.Plan == seg.Plan && (!h.Shared() || h.Has(seg.Last())) {
			return member.GiveBack(ctx, name, epoch, seg)
		}
	}
	return false, nil
}

// Find reads the row that name means. No such row is ErrUnknown.
func (a *servers) Find(ctx context.Context, name string) (found store.Row, err error) {
	err = a.Under(ctx, func(w *view) (err error) {
		found, err = a.definitions(w).Find(ctx, name)
		return err
	})
	return found, err
}

// List reads all rows, of the members that can be reached.
func (a *servers) List(ctx context.Context) (all []store.Row, err error) {
	err = a.Under(ctx, func(w *view) error {
		live := w.Live()
		lists := make([][]store.Row, len(live))
		failed := member.Each(ctx, live, func(ctx context.Context, i int, v *server) (err error) {
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

// KeepMade is keepAbove of those members that can be reached, for a sequence that was made to go on
// above n.
func (a *servers) KeepMade(ctx context.Context, name string, n uint64) error {
	return a.Under(ctx, func(w *view) error {
		return w.OnLive(ctx, func(ctx context.Context, v *server) error { return v.Ceilings.KeepAbove(ctx, name, n) })
	})
}

// RaiseTo moves the counters ahead to floor, which is n or above: of those members that can be
// reached, and at least of one. at is n or above, and none of them gives a number up to there any
// more, after a fail-over neither.
func (a *servers) RaiseTo(ctx context.Context, name string, n, floor, end uint64) (at uint64, err error) {
	err = a.Under(ctx, func(w *view) error {
		var mu sync.Mutex
		at = math.MaxUint64
		err := w.OnLive(ctx, func(ctx context.Context, v *server) error {
			to, err := v.Ceilings.MoveAhead(ctx, name, n, floor, end)
			if err == nil {
				mu.Lock()
				at = min(at, to)
				mu.Unlock()
			}
			return err
		})
		if err == nil {
			a.Marks.Raise(name, at)
		}
		return err
	})
	return at, err
}

// Leave removes this process's entries, also those on members that it has not heard of yet: a plan
// that was started meanwhile has taken them over.
func (a *servers) Leave(ctx context.Context) (err error) {
	if !a.registered.Load() {
		return nil
	}
	for range maxPlanChanges {
		w := a.Now()
		err = errors.Join(member.Each(ctx, w.Members, func(ctx context.Context, _ int, v *server) error { return v.Leave(ctx) })...)
		if !a.isOutdated(ctx, w) || a.Reread(ctx, w) != nil || a.Now() == w {
			break
		}
	}
	return err
}

// isOutdated reports whether a member obeys another plan.
func (a *servers) isOutdated(ctx context.Context, w *view) bool {
	other := make([]bool, len(w.Members))
	member.Each(ctx, w.Members, func(ctx context.Context, i int, v *server) error {
		m, _, err := v.Plans.Membership(ctx, v.Pool())
		other[i] = err == nil && m.Plan != w.Number
		return err
	})
	return slices.Contains(other, true)
}
