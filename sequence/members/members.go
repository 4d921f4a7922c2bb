package members

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"go.uber.org/zap"

	"seqproxy/internal/await"
	"seqproxy/sequence/change"
	"seqproxy/sequence/floor"
	"seqproxy/sequence/member"
	"seqproxy/sequence/segment"
	"seqproxy/sequence/store"
)

// Members is where numbers come from and where definitions are kept: the sequence servers of the
// plan in force. Those above see them as one. It is safe for concurrent use.
type Members struct {
	opts Options
	log  *zap.Logger
	// Marks are of all of them: no number at or below the highest that this process ever got
	// anywhere is taken again.
	Marks *floor.Marks
	Next  *member.Several // chooses which of them is asked for numbers
	Ahead uint64          // see member.CeilingAhead

	ID         string      // of this process among the proxies
	registered atomic.Bool // this process is registered with a member, see member.Registry

	view     atomic.Pointer[View]
	Changing await.Lock // held while another view is made
	// guarded by Changing: all that ever were in a view, and those of the configuration, which come
	// first
	all    []*member.Server
	closed bool // guarded by Changing

	mu   sync.Mutex
	dues []Due // guarded by mu; what reservations have left to be done
}

// Options are those of [Members].
type Options struct {
	// Servers are those of the configuration, at least one. Members closes them.
	Servers []*member.Server
	// At makes a server of a plan that is not known yet, of its address. It does no I/O.
	At func(address string) (*member.Server, error)
	// Interleave is how numbers are divided if there is no plan: with segment.InSteps the
	// first one is made.
	Interleave string
	Marks      *floor.Marks  // of all servers
	Lack       time.Duration // for so long a member is not asked for a row that it lacks
	Log        *zap.Logger
}

// MaxBlock bounds the block of a plan, which keeps its arithmetic within 64 bits.
const MaxBlock = 1_000_000_000_000

// View is the members in use at one time. It is never changed.
type View struct {
	// Settled: the servers were asked which plan there is. Without several of them they need not be.
	Settled bool
	Plan    change.Plan // Number 0: there is none, and one server
	member.Among
}

// InSteps reports whether members count in steps, and have no blocks.
func (w *View) InSteps() bool { return w.Plan.Interleave == segment.InSteps }

// New does no I/O.
func New(o Options) *Members {
	a := &Members{opts: o, log: o.Log, Marks: o.Marks, Ahead: member.CeilingAhead, Changing: await.NewLock(), ID: rand.Text()}
	a.Next = member.NewSeveral(a, o.Marks, o.Lack)
	for _, v := range o.Servers {
		a.Know(v)
	}
	a.view.Store(&View{Settled: len(a.all) == 1, Among: member.Among{Members: a.all, Ahead: a.Ahead}})
	return a
}

// Know makes a server known. Changing is held, or a is not shared yet.
func (a *Members) Know(v *member.Server) {
	v.Registry.ID, v.Registry.Anywhere = a.ID, &a.registered
	a.all = append(a.all, v)
}

// Configured are the servers of the configuration, in its order.
func (a *Members) Configured() []*member.Server { return a.opts.Servers }

// All are all servers that ever were in use, and those of the configuration, which come first.
func (a *Members) All(ctx context.Context) ([]*member.Server, error) {
	if err := a.Changing.Acquire(ctx); err != nil {
		return nil, fmt.Errorf("wait for the plan of the sequence servers: %w", err)
	}
	defer a.Changing.Release()
	return slices.Clone(a.all), nil
}

// Now is the members in use at present.
func (a *Members) Now() *View { return a.view.Load() }

// Ready returns the members in use. It asks which they are before the first use, if several are
// configured.
func (a *Members) Ready(ctx context.Context) (*View, error) {
	if w := a.Now(); w.Settled {
		return w, nil
	} else if err := a.Reread(ctx, w); err != nil {
		return nil, err
	}
	return a.Now(), nil
}

// maxPlanChanges bounds how often a request begins again because the plan has changed.
const maxPlanChanges = 4

// Under calls f with the members in use, and again if it turns out that the plan is another one.
func (a *Members) Under(ctx context.Context, f func(w *View) error) error {
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

// Home is the member that alone gives the numbers of a sequence, as those of ORDER, or nil.
func (a *Members) Home(name string) *member.Server { return a.Next.Home(&a.Now().Among, name) }

// First is the member that is asked for what one server alone can answer, such as about character
// sets.
func (a *Members) First() *member.Server { return a.Now().Members[0] }

// Name is how errors call them.
func (a *Members) Name() string { return member.NamesOf(a.Now().Members) }

// NameFor is how errors call what gives the numbers of a sequence.
func (a *Members) NameFor(name string) string {
	if home := a.Home(name); home != nil {
		return home.Name()
	}
	return a.Name()
}

// InUse reports whether numbers may be held, or a member has to be asked whether it serves again:
// then changes are to be followed.
func (a *Members) InUse() bool {
	return a.registered.Load() || slices.ContainsFunc(a.Now().Members, func(v *member.Server) bool { return v.Away() })
}

// Leave removes this process's entries, also those on members that it has not heard of yet: a plan
// that was started meanwhile has taken them over.
func (a *Members) Leave(ctx context.Context) (err error) {
	if !a.registered.Load() {
		return nil
	}
	for range maxPlanChanges {
		w := a.Now()
		err = errors.Join(member.Each(ctx, w.Members, func(ctx context.Context, _ int, v *member.Server) error { return v.Leave(ctx) })...)
		if !a.isOutdated(ctx, w) || a.Reread(ctx, w) != nil || a.Now() == w {
			break
		}
	}
	return err
}

// isOutdated reports whether a member obeys another plan.
func (a *Members) isOutdated(ctx context.Context, w *View) bool {
	other := make([]bool, len(w.Members))
	member.Each(ctx, w.Members, func(ctx context.Context, i int, v *member.Server) error {
		m, err := v.Plans.Membership(ctx, v.Pool(), "")
		other[i] = err == nil && m.Plan != w.Number
		return err
	})
	return slices.Contains(other, true)
}

// Close closes the connections to all servers. No plan is read from then on.
func (a *Members) Close() error {
	a.Changing.MustAcquire()
	defer a.Changing.Release()
	a.closed = true
	var all []error
	for _, v := range a.all {
		all = append(all, v.Close())
	}
	return errors.Join(all...)
}
