package sequence

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"go.uber.org/zap"

	"seqproxy/internal/await"
	"seqproxy/internal/logfield"
	"seqproxy/internal/process"
	"seqproxy/sequence/define"
	"seqproxy/sequence/kind"
	"seqproxy/sequence/member"
	"seqproxy/sequence/segment"
	"seqproxy/sequence/snowflake"
	"seqproxy/sequence/stats"
)

// This file is how a sequence of kind SNOWFLAKE has its keys. Its own row says what it is, and up to
// which tick a column had keys when it was made. For each worker there is one more sequence, whose
// numbers are the ticks of that worker: `photos#w3`, in the row `photos#w3#counter`. It is a
// sequence as any other, so ceilings, floors, groups and fail-overs hold for ticks as they do for
// numbers; but nobody sees it. DROP leaves it: it says which ticks of the name were used.

// clocked is a sequence of kind SNOWFLAKE.
type clocked struct{ c *cache }

// newClocked makes the generator of a sequence, nil if its keys have no time.
func (c *cache) newClocked() *snowflake.Generator {
	if !c.kind.HasClock() {
		return nil
	}
	t := c.owner.timing
	g := snowflake.New(snowflake.Options{
		Name: define.ShownName(c.name), Kind: c.kind, Ticks: clocked{c}, Worker: c.owner.opts.WorkerID, Log: c.owner.log, Wall: c.owner.opts.wall,
		Cover: c.coverNow, RenewSoon: c.renewSoon,
		Bounds: snowflake.Bounds{Off: t.clockOff, Behind: t.clockBehind, Look: t.clockLook},
	})
	g.PassOver(c.top)
	return g
}

// coverNow is for how long what is held is to last.
func (c *cache) coverNow() time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.cover > 0 {
		return c.cover
	}
	return c.owner.tuning.Load().OutageCover
}

// counters takes counters for n keys; of SNOWFLAKE, the keys. A deadline of zero is that of the
// caller's patience.
func (c *cache) counters(ctx context.Context, n uint64, deadline time.Time) (took drawn, err error) {
	switch {
	case c.clocked != nil:
		took.first, took.step, err = c.ticked(ctx, n, deadline)
		return took, err
	case c.periods != nil:
		return c.periods.take(ctx, deadline)
	case c.kind.Dated():
		took.at = c.owner.wall()
	}
	took.first, took.step, err = c.takeRun(ctx, n, deadline)
	return took, err
}

// ticked is counters of SNOWFLAKE.
func (c *cache) ticked(ctx context.Context, n uint64, deadline time.Time) (first, step uint64, err error) {
	if first, ok := c.clocked.Take(n); ok {
		return first, 1, nil
	}
	begin := time.Now()
	if deadline.IsZero() {
		deadline = begin.Add(c.owner.patience(ctx))
	}
	ctx, stop := context.WithDeadlineCause(ctx, deadline, await.ErrPatience)
	defer stop()
	if first, err = c.clocked.Wait(ctx, n); err != nil {
		err = c.ofClock(err, time.Since(begin))
	}
	c.mu.Lock()
	c.waits++
	c.mu.Unlock()
	c.score.Ended(time.Since(begin), endOf(err))
	return first, 1, err
}

// ofClock turns an error of the generator into what Take promises.
func (c *cache) ofClock(err error, waited time.Duration) error {
	var wait *snowflake.WaitError
	var run *snowflake.RunError
	switch {
	case errors.As(err, new(*snowflake.EndError)):
		return &NameError{Name: define.ShownName(c.name), Err: ErrExhausted}
	case errors.As(err, &run):
		return runError{run}
	case !errors.As(err, &wait):
		return err
	case !errors.Is(wait.Cause, await.ErrPatience):
		return wait.Cause
	case errors.Is(wait.Err, ErrExhausted): // of the worker
		return &NameError{Name: define.ShownName(c.name), Err: ErrExhausted}
	case errors.Is(wait.Err, ErrUnfit):
		return &aboutError{define.ShownName(c.name), wait.Err}
	case errors.As(wait.Err, new(*snowflake.FullError)), errors.Is(wait.Err, ErrSeveral):
		return wait.Err
	case wait.Err != nil:
		err = wait.Err
	default:
		err = c.owner.whyNot()
	}
	return &UnavailableError{Sequence: define.ShownName(c.name), Server: c.owner.servers.nameFor(c.name), Waited: waited, Err: err}
}

// runError: a tick has fewer keys. It is an ErrSeveral, after which fewer may be asked for.
type runError struct{ *snowflake.RunError }

// Fits is how many keys can be had in a row.
func (e runError) Fits() uint64 { return e.Most }

// Unwrap returns ErrSeveral, too.
func (e runError) Unwrap() []error { return []error{ErrSeveral, e.RunError} }

// renewSoon reserves ticks, unless that is under way.
func (c *cache) renewSoon() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.end != nil || c.flying {
		return
	}
	c.flying = true
	c.owner.spawn(c.renew)
}

// renew reserves ticks, again for as long as it fails and somebody waits.
func (c *cache) renew() {
	c.owner.startFollowing() // who keeps ticks reserved
	for {
		ctx, stop := context.WithTimeoutCause(c.owner.ctx, c.owner.timing.clockRenewal, await.ErrPatience)
		err := c.clocked.Renew(ctx)
		stop()
		c.mu.Lock()
		pause := max(c.backoff, c.owner.timing.firstBackoff)
		if err == nil {
			c.healedLocked()
			c.reservedAt = time.Now()
			c.noteTickLocked(c.reservedAt)
		} else if c.end == nil {
			if c.lastErr == nil {
				c.failedAt = time.Now()
				c.owner.log.Warn("reserving numbers fails", logfield.Sequence(c.name), zap.Uint64("left", c.clocked.State().Ticks), logfield.Err(err))
			}
			c.lastErr, c.backoff = err, min(2*pause, c.owner.timing.lastBackoff)
		}
		again := err != nil && c.end == nil && c.clocked.Waited()
		c.flying = again
		c.mu.Unlock()
		if !again {
			return
		}
		c.owner.sleep(await.Jitter(pause))
	}
}

// noteTickLocked has the sequence stand at the present tick, which is how near it is to its end, and
// counts the keys.
func (c *cache) noteTickLocked(now time.Time) {
	st := c.clocked.State()
	c.given, c.reserved = st.Given, st.Given
	if st.Used && st.Tick > c.top {
		c.top = st.Tick
		c.watchEndLocked(now)
	}
}

// Last returns the last tick of a worker that anybody has reserved, and makes its row.
func (k clocked) Last(ctx context.Context, worker, first uint64) (last uint64, busy bool, err error) {
	if k.away(worker) {
		return 0, false, snowflake.ErrAway
	}
	s, name := k.c.owner, define.WorkerName(define.ShownName(k.c.name), worker)
	if ok, err := s.servers.recordable(ctx, define.CounterName(name), first); !ok {
		return 0, false, cmp.Or(err, snowflake.ErrAway)
	}
	found, err := s.servers.find(ctx, name)
	switch {
	case k.away(worker): // that was seen now
		return 0, false, snowflake.ErrAway
	case err == nil && found.Def.Kind != kind.NewTicks():
		return 0, true, nil // somebody has given a sequence of his that name
	case err == nil:
		return found.Position(), false, nil
	case member.IsUnfitRow(err):
		return 0, true, nil // a fail-over has lost what its row is
	case !errors.Is(err, ErrUnknown):
		return 0, false, err
	}
	made, err := s.Create(ctx, CreateOptions{
		Name: name, Kind: kind.NewTicks(), Max: k.c.kind.MaxCounter(), Start: first, Cache: 1, IfNotExists: true,
		Comment: "ticks of a worker of sequence " + define.ShownName(k.c.name),
	})
	switch {
	case err != nil && k.away(worker):
		return 0, false, snowflake.ErrAway
	case errors.As(err, new(*define.KindError)):
		return 0, true, nil
	case err != nil:
		return 0, false, err
	}
	return made.First - 1, made.First == 0, nil
}

// away reports whether the one of several members that gives the ticks of a worker is left out, and
// another one is not.
func (k clocked) away(worker uint64) bool {
	a := k.c.owner.servers
	w := a.view.Load()
	return w.several() && a.among(w).AnyLive() && a.next.Home(a.among(w), define.CounterName(define.WorkerName(define.ShownName(k.c.name), worker))).Away()
}

// recordable reports whether the ticks of a worker from one on are below its ceiling, or somebody is
// there to record a higher one. To try would take long.
func (a *servers) recordable(ctx context.Context, name string, from uint64) (bool, error) {
	w := a.view.Load()
	if !w.several() || len(w.live()) > 1 {
		return true, nil
	}
	v := a.next.Home(a.among(w), name)
	ceiling, err := v.RecordedCeiling(ctx, v.Pool(), name, v.Share().Plan)
	return ceiling > from, err
}

// Reserve reserves ticks of a worker.
func (k clocked) Reserve(ctx context.Context, worker, n uint64) (uint64, error) {
	s, name := k.c.owner, []byte(define.WorkerName(define.ShownName(k.c.name), worker))
	for again := true; ; again = false {
		c, err := s.findAny(ctx, name, s.patience(ctx))
		if err != nil {
			return 0, err
		}
		first, _, err := c.takeRun(ctx, n, time.Time{})
		switch {
		case err == nil:
			return first, nil
		case k.away(worker):
			return 0, fmt.Errorf("%w: %w", snowflake.ErrAway, err)
		case !again || !errors.Is(err, ErrUnknown):
			return 0, err
		}
		s.forget(name, c) // somebody has deleted the row; perhaps there is a new one
	}
}

// regainTicks has the caches of workers hold the ticks again in which this process, whose caches have
// ended, gave no key. The next owner of the worker, as this proxy once it is started again, need not
// wait for those to pass.
func (s *Sequences) regainTicks(caches []*cache) {
	for _, c := range caches {
		if c.clocked == nil {
			continue
		}
		for _, unused := range c.clocked.Unused() {
			name := define.WorkerName(define.ShownName(c.name), unused.Worker)
			worker := s.names.get([]byte(name))
			if worker == nil || !worker.countsTicks() {
				continue
			}
			seg := segment.New(unused.First, unused.Last)
			seg.Plan = s.servers.next.Home(s.servers.now(), worker.name).Share().Plan
			worker.regain(seg)
		}
	}
}

// Homes is how many members there are.
func (k clocked) Homes() uint64 {
	if w := k.c.owner.servers.view.Load(); w.several() {
		return uint64(len(w.members))
	}
	return 1
}

// Holders are the proxies that live and have the same worker_id.
func (k clocked) Holders(ctx context.Context, worker uint64) string {
	all, err := k.c.owner.servers.now().Proxies(ctx)
	if err != nil {
		return "" // not worth another error
	}
	var same []string
	for _, p := range all {
		if p.ID != k.c.owner.servers.id && !p.Stale() && !process.IsDead(p.Process) && strings.HasSuffix(p.Host, workerInHost(worker)) {
			same = append(same, p.Host)
		}
	}
	return strings.Join(same, " and ")
}

// workerInHost ends the name of a proxy with a worker_id among the proxies.
func workerInHost(worker uint64) string { return ", worker " + strconv.FormatUint(worker, 10) }

// Time is what the clock of the sequence server says.
func (k clocked) Time(ctx context.Context) (time.Time, error) {
	s := k.c.owner
	server, err := s.servers.clock(ctx)
	if err == nil {
		s.noteClock(server)
	}
	return server, err
}

// mayAlter refuses to set the time of keys, or a counter that there is not.
func (c *cache) mayAlter(a *Alteration) error {
	if a.Restart != nil && c.clocked != nil {
		return c.refused("RESTART", ofTime)
	}
	if c.kind.Counts() {
		return nil
	}
	for _, o := range [...]struct {
		name  string
		given bool
	}{{"RESTART", a.Restart != nil}, {"START", a.Start != nil}, {"MINVALUE", a.Min != nil}, {"MAXVALUE", a.Max != nil}, {"CACHE", a.Cache != nil}, {"OUTAGE_COVER", a.Cover != nil}} {
		if o.given {
			return c.refused(o.name, ofNoCounter)
		}
	}
	return nil
}

// Why a counter cannot be set.
const (
	ofTime      = "its keys begin with the time; leave it away"
	ofNoCounter = "its keys are of no counter; leave it away"
)

// countsTicks reports whether the numbers are the ticks of a worker, which no client is given.
func (c *cache) countsTicks() bool { return c.kind.Name() == kind.Ticks }

// clockedTally counts keys, and ticks as what is held.
func (c *cache) clockedTally() stats.Tally {
	st := c.clocked.State()
	return stats.Tally{Reserved: st.Given + st.Ticks, Cached: st.Ticks, Given: st.Given, Waits: c.waits}
}

// clockedInfo is what the present time says of a sequence of kind SNOWFLAKE.
func clockedInfo(i *Info, l limits, now time.Time) {
	tick := i.Kind.TickAt(now.UnixNano())
	i.Next, i.Cache, i.Used = 0, 0, l.used(tick)
	i.ToEnd = inSeconds(float64(l.end-min(tick, l.end)), 1/i.Kind.Layout().Tick.Seconds())
}
