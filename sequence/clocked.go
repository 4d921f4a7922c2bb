package sequence

import (
	"cmp"
	"context"
	"errors"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"seqproxy/internal/await"
	"seqproxy/internal/process"
	"seqproxy/sequence/cache"
	"seqproxy/sequence/define"
	"seqproxy/sequence/kind"
	"seqproxy/sequence/member"
	"seqproxy/sequence/snowflake"
	"seqproxy/sequence/stats"
)

// This file is how a sequence of kind SNOWFLAKE has its keys. Its own row says what it is, and up
// to which tick a column had keys when it was made. For each worker there is one more sequence,
// whose numbers are the ticks of that worker: `photos#w3`, in the row `photos#w3#counter`. It is a
// sequence as any other, so ceilings, floors, groups and fail-overs hold for ticks as they do for
// numbers; but nobody sees it. DROP leaves it: it says which ticks of the name were used.

// clockedOwner is Sequences, as what makes keys with a time sees it.
type clockedOwner interface {
	// Go runs f on a goroutine that the owner waits for, and has changes followed. The owner first
	// shuts all sequences, and ends ctx when it no longer waits. The caller has the lock of a
	// clocked that was not shut.
	Go(f func(ctx context.Context))
	// Sleep waits for d, or until the sequences are about to be shut.
	Sleep(d time.Duration)
	// Patience returns how long a caller with ctx waits.
	Patience(ctx context.Context) time.Duration
	// Create makes the sequence whose numbers are the ticks of a worker.
	Create(ctx context.Context, of CreateOptions) (Created, error)
	// Take returns the first of n consecutive ticks of a worker, by the name of its row. Errors are
	// those of Sequences.Take, and [snowflake.ErrAway].
	Take(ctx context.Context, row string, n uint64) (first uint64, err error)
}

// clocked makes the keys of a sequence of kind SNOWFLAKE, whose own numbers it does not take.
type clocked struct {
	all     *shared
	kind    kind.Kind
	numbers *cache.Cache // of the sequence itself
	keys    *snowflake.Generator

	waits atomic.Uint64 // takes that found no tick reserved

	mu         sync.Mutex
	end        bool          // guarded by mu; no renewal begins any more
	renewing   bool          // guarded by mu
	trouble    cache.Trouble // guarded by mu
	reservedAt time.Time     // guarded by mu; when ticks were last reserved
}

// newClocked makes the generator of a sequence, nil if its keys have no time. No key is of a tick
// up to last.
func newClocked(all *shared, is kind.Kind, numbers *cache.Cache, last uint64) *clocked {
	if !is.HasClock() {
		return nil
	}
	t, k := all.timing, &clocked{all: all, kind: is, numbers: numbers}
	k.keys = snowflake.New(snowflake.Options{
		Name: k.shownName(), Kind: is, Ticks: k, Worker: all.worker, Log: all.caches.Log, Wall: all.clock.wall,
		Cover: numbers.Cover, RenewSoon: k.renewSoon,
		Bounds: snowflake.Bounds{Off: t.clockOff, Behind: t.clockBehind, Look: t.clockLook},
	})
	k.keys.PassOver(last)
	return k
}

// shownName is the name of the sequence for people.
func (k *clocked) shownName() string { return define.ShownName(k.numbers.Name) }

// take takes n keys, all of one tick.
func (k *clocked) take(ctx context.Context, n uint64, deadline time.Time) (first, step uint64, err error) {
	if first, ok := k.keys.Take(n); ok {
		return first, 1, nil
	}
	begin := time.Now()
	if deadline.IsZero() {
		deadline = begin.Add(k.all.ticks.Patience(ctx))
	}
	ctx, stop := context.WithDeadlineCause(ctx, deadline, await.ErrPatience)
	defer stop()
	if first, err = k.keys.Wait(ctx, n); err != nil {
		err = k.failed(err, time.Since(begin))
	}
	k.waits.Add(1)
	k.numbers.Score.Ended(time.Since(begin), endOf(err))
	return first, 1, err
}

// failed turns an error of the generator into what Take promises.
func (k *clocked) failed(err error, waited time.Duration) error {
	var wait *snowflake.WaitError
	var run *snowflake.RunError
	switch {
	case errors.As(err, new(*snowflake.EndError)):
		return &NameError{Name: k.shownName(), Err: ErrExhausted}
	case errors.As(err, &run):
		return runError{run}
	case !errors.As(err, &wait):
		return err
	case !errors.Is(wait.Cause, await.ErrPatience):
		return wait.Cause
	case errors.Is(wait.Err, ErrUnfit):
		return &aboutError{Sequence: k.shownName(), Err: wait.Err}
	case errors.As(wait.Err, new(*snowflake.FullError)), errors.Is(wait.Err, ErrSeveral):
		return wait.Err
	case wait.Err != nil:
		err = wait.Err
	default:
		err = k.all.whyNot()
	}
	return k.all.unavailable(k.numbers.Name, waited, err)
}

// runError: a tick has fewer keys. It is an ErrSeveral, after which fewer may be asked for.
type runError struct{ *snowflake.RunError }

// Fits is how many keys can be had in a row.
func (e runError) Fits() uint64 { return e.Most }

// Unwrap returns ErrSeveral, too.
func (e runError) Unwrap() []error { return []error{ErrSeveral, e.RunError} }

// renewSoon reserves ticks, unless that is under way.
func (k *clocked) renewSoon() {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.end || k.renewing {
		return
	}
	k.renewing = true
	k.all.ticks.Go(k.renew)
}

// shut has every take fail with err.
func (k *clocked) shut(err error) {
	k.mu.Lock()
	k.end = true
	k.mu.Unlock()
	k.keys.End(err)
}

// renew reserves ticks, again for as long as it fails and somebody waits.
func (k *clocked) renew(ctx context.Context) {
	log, name := k.all.caches.Log, k.numbers.Name
	for {
		within, stop := context.WithTimeoutCause(ctx, k.all.timing.clockRenewal, await.ErrPatience)
		err := k.keys.Renew(within)
		stop()
		var pause time.Duration
		k.mu.Lock()
		if err == nil {
			k.trouble.Over(log, name)
			k.reservedAt = time.Now()
		} else if !k.end {
			pause = k.trouble.GoesOn(log, name, k.keys.State().Ticks, err, &k.all.caches.Timing)
		}
		again := err != nil && !k.end && k.keys.IsAwaited()
		k.renewing = again
		k.mu.Unlock()
		if err == nil {
			k.note(time.Now())
		}
		if !again {
			return
		}
		k.all.ticks.Sleep(await.Jitter(pause))
	}
}

// note has the sequence stand at the present tick, which is how near it is to its end, and counts
// the keys.
func (k *clocked) note(now time.Time) {
	st := k.keys.State()
	at := uint64(0)
	if st.Used {
		at = st.Tick
	}
	k.numbers.StandsAt(now, at, st.Given)
}

// givesNow is that of a sequence.
func (k *clocked) givesNow() (cached bool, err error) {
	cached = k.keys.State().Ticks > 0
	k.mu.Lock()
	defer k.mu.Unlock()
	switch {
	case k.end:
		return false, nil
	case cached:
		return true, nil
	case k.renewing && k.trouble.Err != nil:
		return false, k.all.unavailable(k.numbers.Name, 0, k.trouble.Err)
	}
	return false, nil
}

// rowOf returns the name of the row of a worker.
func (k *clocked) rowOf(worker uint64) string {
	return define.CounterName(define.WorkerName(k.shownName(), worker))
}

// Last implements [snowflake.Ticks]: it makes the row of a worker that has none.
func (k *clocked) Last(ctx context.Context, worker, first uint64) (last uint64, busy bool, err error) {
	if k.away(worker) {
		return 0, false, snowflake.ErrAway
	}
	row := k.rowOf(worker)
	if ok, err := k.all.members.Recordable(ctx, row, first); !ok {
		return 0, false, cmp.Or(err, snowflake.ErrAway)
	}
	found, err := k.all.members.Find(ctx, row)
	switch {
	case k.away(worker): // that was seen now
		return 0, false, snowflake.ErrAway
	case err == nil && found.Def.Kind != kind.NewTicks():
		return 0, true, nil // somebody has made it something else by hand
	case err == nil:
		return found.Position(), false, nil
	case member.IsUnfitRow(err), errors.Is(err, ErrExhausted):
		return 0, true, nil // a fail-over has lost what its row is, or it stands at its end
	case !errors.Is(err, ErrUnknown):
		return 0, false, err
	}
	made, err := k.all.ticks.Create(ctx, CreateOptions{
		Name: define.ShownName(row), Kind: kind.NewTicks(), Max: k.kind.MaxCounter(), Start: first, Cache: 1, IfNotExists: true,
		Comment: "ticks of a worker of sequence " + k.shownName(),
	})
	switch {
	case err != nil && k.away(worker):
		return 0, false, snowflake.ErrAway
	case errors.As(err, new(*define.KindError)), member.IsUnfitRow(err), errors.Is(err, ErrExhausted):
		return 0, true, nil
	case err != nil:
		return 0, false, err
	}
	return made.First - 1, made.First == 0, nil
}

// away reports whether the server of a worker's ticks is left out, and another one is not.
func (k *clocked) away(worker uint64) bool { return isAway(k.all.members, k.rowOf(worker)) }

// Reserve implements [snowflake.Ticks]. A worker whose ticks have run out is not all of the
// sequence.
func (k *clocked) Reserve(ctx context.Context, worker, n uint64) (first uint64, err error) {
	if first, err = k.all.ticks.Take(ctx, k.rowOf(worker), n); errors.Is(err, ErrExhausted) {
		return 0, nil
	}
	return first, err
}

// Homes implements [snowflake.Ticks].
func (k *clocked) Homes() uint64 {
	if w := k.all.members.Now(); w.Several() {
		return uint64(len(w.Members))
	}
	return 1
}

// Holders implements [snowflake.Ticks].
func (k *clocked) Holders(ctx context.Context, worker uint64) string {
	all, err := k.all.members.Now().Proxies(ctx)
	if err != nil {
		return "" // not worth another error
	}
	var same []string
	for _, p := range all {
		if p.ID != k.all.members.ID && !p.Stale() && !process.IsDead(p.Process) && strings.HasSuffix(p.Host, workerInHost(worker)) {
			same = append(same, p.Host)
		}
	}
	return strings.Join(same, " and ")
}

// workerInHost ends the name of a proxy with a worker_id among the proxies.
func workerInHost(worker uint64) string { return ", worker " + strconv.FormatUint(worker, 10) }

// Time implements [snowflake.Ticks].
func (k *clocked) Time(ctx context.Context) (time.Time, error) {
	server, err := k.all.members.Clock(ctx)
	if err == nil {
		k.all.clock.note(server)
	}
	return server, err
}

// countsTicks reports whether the numbers are the ticks of a worker, which no client is given.
func (q *sequence) countsTicks() bool { return q.kind.Name() == kind.Ticks }

// tally counts keys, and ticks as what is cached.
func (k *clocked) tally() stats.Tally {
	st := k.keys.State()
	return stats.Tally{Reserved: st.Given + st.Ticks, Cached: st.Ticks, Given: st.Given, Waits: k.waits.Load()}
}

// clockedInfo is what the present time says of a sequence of kind SNOWFLAKE.
func clockedInfo(i *Info, l cache.Limits, now time.Time) {
	tick := i.Kind.TickAt(now.UnixNano())
	i.Next, i.Cache, i.Used = 0, 0, l.Used(tick)
	i.ToEnd = cache.InSeconds(float64(l.End-min(tick, l.End)), 1/i.Kind.Layout().Tick.Seconds())
}

// info says what the present time and the ticks say of the sequence.
func (k *clocked) info(i *Info, now time.Time) {
	clockedInfo(i, k.numbers.Limits(), now)
	st := k.keys.State()
	i.Cached, i.CachedFor, i.Skew = st.Ticks, st.Covered, Never
	k.mu.Lock()
	defer k.mu.Unlock()
	i.Reserved = k.reservedAt
}

// report is info for SequenceStats.
func (k *clocked) report(st *SequenceStats) {
	now := k.keys.State()
	st.Size, st.CachedFor, st.Skew, st.ClockSteps = 0, now.Covered, Never, now.Steps
	st.Workers = k.keys.Workers()
}
