package sequence

import (
	"cmp"
	"context"
	"errors"
	"fmt"
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
	"seqproxy/sequence/segment"
	"seqproxy/sequence/snowflake"
	"seqproxy/sequence/stats"
)

// This file is how a sequence of kind SNOWFLAKE has its keys. Its own row says what it is, and up
// to which tick a column had keys when it was made. For each worker there is one more sequence,
// whose numbers are the ticks of that worker: `photos#w3`, in the row `photos#w3#counter`. It is a
// sequence as any other, so ceilings, floors, groups and fail-overs hold for ticks as they do for
// numbers; but nobody sees it. DROP leaves it: it says which ticks of the name were used.

// clocked makes the keys of a sequence of kind SNOWFLAKE, whose own numbers it does not take.
type clocked struct {
	seq  *sequence
	keys *snowflake.Generator

	waits atomic.Uint64 // takes that found no tick reserved

	mu         sync.Mutex
	end        bool          // guarded by mu; no renewal begins any more
	renewing   bool          // guarded by mu
	trouble    cache.Trouble // guarded by mu
	reservedAt time.Time     // guarded by mu; when ticks were last reserved
}

// newClocked makes the generator of a sequence, nil if its keys have no time. No key is of a tick
// up to last.
func newClocked(q *sequence, last uint64) *clocked {
	if !q.kind.HasClock() {
		return nil
	}
	t, k := q.owner.timing, &clocked{seq: q}
	k.keys = snowflake.New(snowflake.Options{
		Name: define.ShownName(q.name), Kind: q.kind, Ticks: k, Worker: q.owner.opts.WorkerID, Log: q.owner.log, Wall: q.owner.opts.wall,
		Cover: q.numbers.Cover, RenewSoon: k.renewSoon,
		Bounds: snowflake.Bounds{Off: t.clockOff, Behind: t.clockBehind, Look: t.clockLook},
	})
	k.keys.PassOver(last)
	return k
}

// take takes n keys, all of one tick.
func (k *clocked) take(ctx context.Context, n uint64, deadline time.Time) (first, step uint64, err error) {
	if first, ok := k.keys.Take(n); ok {
		return first, 1, nil
	}
	begin := time.Now()
	if deadline.IsZero() {
		deadline = begin.Add(k.seq.owner.patience(ctx))
	}
	ctx, stop := context.WithDeadlineCause(ctx, deadline, await.ErrPatience)
	defer stop()
	if first, err = k.keys.Wait(ctx, n); err != nil {
		err = k.failed(err, time.Since(begin))
	}
	k.waits.Add(1)
	k.seq.numbers.Score.Ended(time.Since(begin), endOf(err))
	return first, 1, err
}

// failed turns an error of the generator into what Take promises.
func (k *clocked) failed(err error, waited time.Duration) error {
	q := k.seq
	var wait *snowflake.WaitError
	var run *snowflake.RunError
	switch {
	case errors.As(err, new(*snowflake.EndError)):
		return &NameError{Name: define.ShownName(q.name), Err: ErrExhausted}
	case errors.As(err, &run):
		return runError{run}
	case !errors.As(err, &wait):
		return err
	case !errors.Is(wait.Cause, await.ErrPatience):
		return wait.Cause
	case errors.Is(wait.Err, ErrExhausted): // of the worker
		return &NameError{Name: define.ShownName(q.name), Err: ErrExhausted}
	case errors.Is(wait.Err, ErrUnfit):
		return &aboutError{Sequence: define.ShownName(q.name), Err: wait.Err}
	case errors.As(wait.Err, new(*snowflake.FullError)), errors.Is(wait.Err, ErrSeveral):
		return wait.Err
	case wait.Err != nil:
		err = wait.Err
	default:
		err = q.owner.whyNot()
	}
	return q.unavailable(waited, err)
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
	k.seq.owner.spawn(k.renew)
}

// shut has every take fail with err.
func (k *clocked) shut(err error) {
	k.mu.Lock()
	k.end = true
	k.mu.Unlock()
	k.keys.End(err)
}

// renew reserves ticks, again for as long as it fails and somebody waits.
func (k *clocked) renew() {
	s, name := k.seq.owner, k.seq.name
	s.startFollowing() // who keeps ticks reserved
	for {
		ctx, stop := context.WithTimeoutCause(s.ctx, s.timing.clockRenewal, await.ErrPatience)
		err := k.keys.Renew(ctx)
		stop()
		var pause time.Duration
		k.mu.Lock()
		if err == nil {
			k.trouble.Over(s.log, name)
			k.reservedAt = time.Now()
		} else if !k.end {
			pause = k.trouble.GoesOn(s.log, name, k.keys.State().Ticks, err, &s.common.Timing)
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
		s.sleep(await.Jitter(pause))
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
	k.seq.numbers.StandsAt(now, at, st.Given)
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
		return false, k.seq.unavailable(0, k.trouble.Err)
	}
	return false, nil
}

// rowOf returns the name of the row of a worker.
func (k *clocked) rowOf(worker uint64) string {
	return define.CounterName(define.WorkerName(define.ShownName(k.seq.name), worker))
}

// Last implements [snowflake.Ticks]: it makes the row of a worker that has none.
func (k *clocked) Last(ctx context.Context, worker, first uint64) (last uint64, busy bool, err error) {
	if k.away(worker) {
		return 0, false, snowflake.ErrAway
	}
	s, row := k.seq.owner, k.rowOf(worker)
	if ok, err := s.members.Recordable(ctx, row, first); !ok {
		return 0, false, cmp.Or(err, snowflake.ErrAway)
	}
	found, err := s.members.Find(ctx, row)
	switch {
	case k.away(worker): // that was seen now
		return 0, false, snowflake.ErrAway
	case err == nil && found.Def.Kind != kind.NewTicks():
		return 0, true, nil // somebody has made it something else by hand
	case err == nil:
		return found.Position(), false, nil
	case member.IsUnfitRow(err):
		return 0, true, nil // a fail-over has lost what its row is
	case !errors.Is(err, ErrUnknown):
		return 0, false, err
	}
	made, err := s.Create(ctx, CreateOptions{
		Name: define.ShownName(row), Kind: kind.NewTicks(), Max: k.seq.kind.MaxCounter(), Start: first, Cache: 1, IfNotExists: true,
		Comment: "ticks of a worker of sequence " + define.ShownName(k.seq.name),
	})
	switch {
	case err != nil && k.away(worker):
		return 0, false, snowflake.ErrAway
	case errors.As(err, new(*define.KindError)), member.IsUnfitRow(err):
		return 0, true, nil
	case err != nil:
		return 0, false, err
	}
	return made.First - 1, made.First == 0, nil
}

// away reports whether the one of several members that gives the ticks of a worker is left out, and
// another one is not.
func (k *clocked) away(worker uint64) bool {
	a := k.seq.owner.members
	w := a.Now()
	return w.Several() && w.AnyLive() && a.Next.Home(&w.Among, k.rowOf(worker)).Away()
}

// Reserve implements [snowflake.Ticks].
func (k *clocked) Reserve(ctx context.Context, worker, n uint64) (uint64, error) {
	s, name := k.seq.owner, []byte(k.rowOf(worker))
	for again := true; ; again = false {
		q, err := s.findAny(ctx, name, s.patience(ctx))
		if err != nil {
			return 0, err
		}
		first, _, err := q.numbers.Take(ctx, n, time.Time{})
		switch {
		case err == nil:
			return first, nil
		case k.away(worker):
			return 0, fmt.Errorf("%w: %w", snowflake.ErrAway, err)
		case !again || !errors.Is(err, ErrUnknown):
			return 0, err
		}
		s.forget(name, q) // somebody has deleted the row; perhaps there is a new one
	}
}

// ticksOfCover returns how many ticks last for the cover of the sequence of a worker, by the name
// of the worker's row; 0 if this process does not use the sequence.
func (s *Sequences) ticksOfCover(row string) uint64 {
	name, _ := define.WorkerOf(define.ShownName(row))
	if q := s.names.get([]byte(define.CounterName(name))); q != nil && q.clocked != nil {
		return q.clocked.keys.CoverTicks()
	}
	return 0
}

// regainTicks has the caches of workers hold the ticks again in which this process, whose caches
// have ended, gave no key. The next owner of the worker, as this proxy once it is started again,
// need not wait for those to pass.
func (s *Sequences) regainTicks(all []*sequence) {
	for _, q := range all {
		if q.clocked == nil {
			continue
		}
		for _, unused := range q.clocked.keys.Unused() {
			worker := s.names.get([]byte(q.clocked.rowOf(unused.Worker)))
			if worker == nil || !worker.countsTicks() {
				continue
			}
			seg := segment.New(unused.First, unused.Last)
			seg.Plan = s.members.Home(worker.name).Share().Plan
			worker.numbers.Regain(seg)
		}
	}
}

// Homes implements [snowflake.Ticks].
func (k *clocked) Homes() uint64 {
	if w := k.seq.owner.members.Now(); w.Several() {
		return uint64(len(w.Members))
	}
	return 1
}

// Holders implements [snowflake.Ticks].
func (k *clocked) Holders(ctx context.Context, worker uint64) string {
	all, err := k.seq.owner.members.Now().Proxies(ctx)
	if err != nil {
		return "" // not worth another error
	}
	var same []string
	for _, p := range all {
		if p.ID != k.seq.owner.members.ID && !p.Stale() && !process.IsDead(p.Process) && strings.HasSuffix(p.Host, workerInHost(worker)) {
			same = append(same, p.Host)
		}
	}
	return strings.Join(same, " and ")
}

// workerInHost ends the name of a proxy with a worker_id among the proxies.
func workerInHost(worker uint64) string { return ", worker " + strconv.FormatUint(worker, 10) }

// Time implements [snowflake.Ticks].
func (k *clocked) Time(ctx context.Context) (time.Time, error) {
	s := k.seq.owner
	server, err := s.members.Clock(ctx)
	if err == nil {
		s.clock.note(server)
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
	clockedInfo(i, k.seq.numbers.Limits(), now)
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
