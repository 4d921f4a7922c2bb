package follow

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"go.uber.org/zap"

	"seqproxy/internal/await"
	"seqproxy/internal/logfield"
	"seqproxy/internal/planted"
	"seqproxy/sequence/member"
	"seqproxy/sequence/members"
	"seqproxy/sequence/store"
)

// Caches are what is in memory of sequences here.
type Caches interface {
	// Names are those of up to most sequences, at random.
	Names(most int) []string
	// Heard says that something has changed, before that is obeyed, and returns the names of all
	// sequences. A cache that is made from then on is of a row that is read from then on.
	Heard() (names []string)
	// Obey brings what is in memory in line with changes. They come one at a time.
	Obey(News)
	// Holds counts what is in memory, which keeps up with how it is used.
	Holds() (sequences int, cached uint64)
	// VoidAll gives up all numbers.
	VoidAll()
}

// Owner is who has made a follower.
type Owner interface {
	// Go runs f on a goroutine that it waits for, for as long as a caller of it has patience.
	Go(f func(ctx context.Context))
	// Noted has it go by what was found out while members were asked.
	Noted()
}

// News is what a member has told.
type News struct {
	store.Changes
	Several bool // members have told, each of the changes of all
}

// Timing are the intervals of a follower.
type Timing struct {
	// Changes are asked for each Follow. Where a member does not answer that grows to Rarely. One
	// question, with the sign of life, takes Round at most.
	Follow, Rarely, Round time.Duration
	// Beat is how often a sign of life is given.
	Beat time.Duration
}

// Follower sees what others change: it asks for the version of the last change, and if that has
// moved, for the options that changed. It is safe for concurrent use.
type Follower struct {
	members *members.Members
	caches  Caches
	owner   Owner
	timing  Timing
	log     *zap.Logger

	Lock await.Lock // held while changes are asked for and obeyed

	mu sync.Mutex
	by map[*member.Server]*Following // guarded by mu

	obeying sync.Mutex // held while what one member tells is obeyed
	// guarded by obeying; the version of what is obeyed of each sequence, where several members
	// tell
	newest map[string]uint64
	// recorded is whose members have each other's ceilings, as far as can be seen. Guarded by Lock.
	recorded *members.View
}

// New makes a follower. It starts nothing.
func New(of *members.Members, caches Caches, owner Owner, timing Timing, log *zap.Logger) *Follower {
	return &Follower{
		members: of, caches: caches, owner: owner, timing: timing, log: log,
		Lock: await.NewLock(), by: make(map[*member.Server]*Following),
	}
}

// Following is what was heard from one member, and told to it. Its fields are guarded by
// [Follower.Lock].
type Following struct {
	Loaded   bool         // the options were read once
	Seen     store.Moment // up to where changes are obeyed
	beaten   time.Time    // the last sign of life
	reported store.Moment // that of the last sign of life which told it

	failures int       // since it answered
	Again    time.Time // when it is asked again after them

	hurry atomic.Bool // it is asked again at once; guarded by nothing
}

// Of is what is known of one member.
func (f *Follower) Of(v *member.Server) *Following {
	f.mu.Lock()
	defer f.mu.Unlock()
	of := f.by[v]
	if of == nil {
		of = new(Following)
		f.by[v] = of
	}
	return of
}

// Hurry has a member be asked again at once, also after failures.
func (f *Follower) Hurry(v *member.Server) { f.Of(v).hurry.Store(true) }

// Run follows changes until ctx is done.
func (f *Follower) Run(ctx context.Context) {
	failing := false
	for wait := f.timing.Follow; await.Pause(ctx, await.Jitter(wait)); {
		err := f.Round(ctx)
		if ctx.Err() != nil {
			return
		}
		if err == nil {
			if failing {
				f.log.Info("changes by others seen again")
			}
			wait, failing = f.timing.Follow, false
			continue
		}
		if wait = min(2*wait, f.timing.Rarely); !failing && wait == f.timing.Rarely {
			failing = true
			f.log.Warn("changes by others not seen", logfield.Err(err))
		}
	}
}

// Round asks once, and gives a sign of life when it is due. The wait for another round is no part
// of its time: with what remains of it no member would answer, and all would be left out.
func (f *Follower) Round(ctx context.Context) error {
	if err := f.Lock.Acquire(ctx); err != nil {
		return err
	}
	ctx, stop := context.WithTimeoutCause(ctx, f.timing.Round, await.ErrPatience)
	defer stop()
	err := f.refresh(ctx, await.Half) // the rest of the time is for what comes next
	f.Lock.Release()
	if err != nil {
		return err
	}
	f.watchRows(ctx)
	f.owner.Noted()
	return nil
}

// rowsAtOnce bounds what one look reads. MariaDB makes a table of longer lists
// (in_predicate_conversion_threshold).
const rowsAtOnce = 500

// watchRows records how far the rows of sequences in use stand on the members, and raises those
// that have gone back. It comes after changes were obeyed, whose epochs and rules count. It returns
// no error: the next round looks again.
func (f *Follower) watchRows(ctx context.Context) {
	names := f.caches.Names(rowsAtOnce)
	if len(names) == 0 || planted.Fault(planted.Floor) {
		return
	}
	among := &f.members.Now().Among
	_ = member.Each(ctx, among.Live(), func(ctx context.Context, _ int, v *member.Server) error {
		v.WatchRows(ctx, among, names)
		return nil
	})
}

// Refresh asks for changes and has them obeyed.
func (f *Follower) Refresh(ctx context.Context) error {
	if err := f.Lock.Acquire(ctx); err != nil {
		return err
	}
	defer f.Lock.Release()
	return f.refresh(ctx, context.WithCancel)
}

// refresh is Refresh for who holds Lock. Several members are asked within a part of ctx. One that
// has not answered by its end is left out, unless ctx has ended, too.
func (f *Follower) refresh(ctx context.Context, part func(context.Context) (context.Context, context.CancelFunc)) error {
	w, err := f.members.Ready(ctx)
	if err != nil {
		return err
	}
	if !w.Several() {
		return f.refreshFrom(ctx, w, w.Members[0])
	}
	due := make([]*member.Server, 0, len(w.Members))
	for _, v := range w.Members {
		if of := f.Of(v); of.hurry.Swap(false) || !time.Now().Before(of.Again) {
			due = append(due, v)
		}
	}
	if len(due) == 0 {
		return nil
	}
	errs := make([]error, len(due))
	asking, stop := part(ctx)
	defer stop()
	failed := member.Each(asking, due, func(ctx context.Context, i int, v *member.Server) error {
		errs[i] = f.refreshFrom(ctx, w, v)
		return errs[i]
	})
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	back := f.takeInOrOut(due, errs)
	if len(failed) == len(due) {
		return errors.Join(failed...)
	}
	if back {
		if err := f.members.Reread(ctx, nil); err != nil {
			return err
		}
	}
	f.recordAgain(ctx, w)
	return nil
}

// takeInOrOut has members that have answered be asked for numbers, and others not. It reports
// whether one is back that was left out.
func (f *Follower) takeInOrOut(asked []*member.Server, errs []error) (back bool) {
	for i, v := range asked {
		of := f.Of(v)
		if errs[i] == nil {
			of.failures = 0
			back = v.TakeIn() || back
			continue
		}
		of.failures++
		of.Again = time.Now().Add(await.Jitter(min(f.timing.Follow<<min(of.failures, 4), f.timing.Rarely)))
		v.LeaveOut(errs[i])
	}
	return back
}

// recordAgain has members record each other's ceilings if one may lack some. If that fails, the
// next round does.
func (f *Follower) recordAgain(ctx context.Context, w *members.View) {
	if w != f.members.Now() || !f.mustRecordAgain(w) {
		return
	}
	if err := w.RecordAgain(ctx); err != nil {
		f.log.Debug("ceilings not recorded again", logfield.Err(err))
		return
	}
	f.recorded = w
}

// mustRecordAgain reports whether a member may lack ceilings of the others.
func (f *Follower) mustRecordAgain(w *members.View) bool {
	for _, v := range w.Members {
		if v.TakeForgot() {
			f.recorded = nil
		}
	}
	return f.recorded != w
}
