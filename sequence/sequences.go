package sequence

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"go.uber.org/zap"
	"golang.org/x/sync/errgroup"
	"golang.org/x/sync/singleflight"

	"seqproxy/internal/await"
	"seqproxy/sequence/agree"
	"seqproxy/sequence/cache"
	"seqproxy/sequence/define"
	"seqproxy/sequence/floor"
	"seqproxy/sequence/follow"
	"seqproxy/sequence/link"
	"seqproxy/sequence/members"
	"seqproxy/sequence/segment"
	"seqproxy/sequence/stats"
	"seqproxy/sequence/store"
	"seqproxy/sequence/ticket"
)

// reserver takes numbers out of durable storage, and puts back those that were not used.
type reserver interface {
	cache.Reserver
	// GiveBack returns seg, the unused upper end of a reservation, if nobody has reserved since. It
	// reports whether it did. epoch is the one in which seg was in memory; if it is over, nothing
	// is given back.
	GiveBack(ctx context.Context, name string, epoch uint64, seg segment.Segment) (bool, error)
}

// Sequences hands out numbers by name. It is safe for concurrent use. Connecting is lazy: it works
// as soon as its sequence server does, and again after an outage, without being told.
type Sequences struct {
	opts     Options
	timing   *timing
	tuning   atomic.Pointer[Tuning]
	log      *zap.Logger
	members  *members.Members
	reserver reserver // members, seen by the caches
	// the same, seen by sequences whose counter begins again
	periodRows periodRows
	state      *floor.State
	tickets    *ticket.Tables

	names     *names
	unknown   unknownNames
	spellings spellings
	lookups   singleflight.Group
	counters  stats.Counters
	clock     *machineClock
	common    cache.Common // to all caches
	shared    shared       // to all sequences
	follower  *follow.Follower
	followed  atomic.Bool // changes are followed
	owners    *ownedColumns

	ctx      context.Context // of reservations and look-ups; cancelled when Close gives up waiting
	cancel   context.CancelCauseFunc
	stopping chan struct{} // closed when Close begins
	tasks    sync.WaitGroup

	mu        sync.Mutex           // where it nests with a cache's mu, this one is taken first
	sequences map[string]*sequence // guarded by mu; by the table's spelling
	// guarded by mu; of caches that have ended while they were reserving; see removeLocked
	ending map[string]await.Lock

	// held while this process changes the set of sequence servers
	planning sync.Mutex
	closed   bool // guarded by mu
	// guarded by mu; the goroutine of the follower runs
	following bool
	changes   uint64      // guarded by mu; rises when a change is heard, and when it is obeyed
	gone      stats.Tally // guarded by mu; of caches that were dropped
}

// New makes Sequences. It starts nothing, and does no I/O but for the StateDir. An error wraps
// ErrBadOption or tells what is wrong with that directory, such as that another process has it. The
// caller must Close it.
func New(opts Options) (*Sequences, error) {
	opts, err := opts.withDefaults()
	if err != nil {
		return nil, err
	}
	s := &Sequences{
		opts: opts, log: opts.Logger, names: newNames(),
		stopping: make(chan struct{}), sequences: make(map[string]*sequence), ending: make(map[string]await.Lock),
		timing: opts.timing,
	}
	s.counters.Scores = stats.NewScores()
	s.ctx, s.cancel = context.WithCancelCause(context.Background())
	tuning := opts.Tuning
	s.tuning.Store(&tuning)
	if s.members, err = s.newMembers(); err != nil {
		return nil, err
	}
	if s.state, err = floor.Open(opts.StateDir, store.NewTable(opts.Servers[0].Database, opts.Servers[0].Table).Sequence, opts.Logger); err != nil {
		return nil, err
	}
	s.members.Marks.Load(s.state)
	s.owners = newOwnedColumns(s.state, s.log)
	s.reserver, s.periodRows = s.members, periodServers{s}
	s.clock = newMachineClock(opts.clock(), s.members, opts.timing)
	t := s.timing
	s.common = cache.Common{Owner: cacheOwner{s}, Log: s.log, Counters: &s.counters, Timing: cache.Timing{
		FirstBackoff: t.firstBackoff, LastBackoff: t.lastBackoff, FrozenBackoff: t.frozenBackoff, AlarmRest: t.alarmRest, Idle: t.idle,
	}}
	s.shared = shared{caches: &s.common, from: reservations{s}, members: s.members, clock: s.clock, timing: t, worker: opts.WorkerID, ticks: workerTicks{s}, periods: periodCounters{s}}
	s.follower = follow.New(s.members, followerCaches{s}, followerOwner{s}, follow.Timing{
		Follow: t.follow, Rarely: t.followRarely, Round: t.round, Beat: t.beat,
	}, s.log)
	s.tickets = ticket.NewTables(ticket.Options{
		Server: s.members.Configured()[0], Database: opts.Servers[0].Database, State: s.state, Common: &s.common, Owner: ticketOwner{s},
		Timing: ticket.Timing{Again: t.ticketAgain, WarnAgain: t.warnAgain, Conflict: t.Conflict},
	})
	return s, nil
}

// Take returns the first of n consecutive numbers of the sequence, which are the caller's alone,
// now and for ever; see TakeRun for the others. Successive takes rise. A number in memory is given
// without I/O, lock contention apart, and without looking at ctx; if there is none, Take waits
// until ctx is done or the allocate timeout is over. name is not kept.
//
// Errors: ErrUnknown, ErrExhausted, ErrClosed, ErrBadOption (n is 0), ErrUnfit, *UnavailableError,
// or ctx's cause.
func (s *Sequences) Take(ctx context.Context, name []byte, n uint64) (first uint64, err error) {
	q, took, err := s.take(ctx, name, n)
	if err == nil && q.kind.IsText() {
		return 0, q.refused("a key as a number", eachAlone)
	}
	return took.first, err
}

// Taken are numbers that were taken: First, First+Step ... With a Step above 1 those in between are
// nobody's.
type Taken struct {
	First, Step uint64
	// Of is the sequence that they are of; with ErrExhausted, the one that has run out.
	Of Identity
	// Notice is what the client is to be told beside them, "" if nothing is: that the sequence has
	// used 75, 90 or 99 percent of what it has. The first who takes numbers then is told, once for
	// each of these marks.
	Notice string
	// Text is the key where keys are texts, or with Binary bytes: one was asked for, and First and
	// Step say nothing.
	Text   string
	Binary bool
}

// TakeRun is Take for callers that use more than the first number, or what there is to say of the
// sequence.
func (s *Sequences) TakeRun(ctx context.Context, name []byte, n uint64) (t Taken, err error) {
	q, took, err := s.take(ctx, name, n)
	if err != nil && (q == nil || !errors.Is(err, ErrExhausted)) {
		return Taken{}, err
	}
	t = Taken{First: took.first, Step: took.step, Of: q.identity(), Notice: s.common.Notices.Take(q.name)}
	if err == nil && !q.plain && q.kind.IsText() {
		t.Text, err = q.text(took)
		t.Binary = q.kind.IsBinary()
	}
	return t, err
}

// take returns n keys, and the sequence that they are of; with ErrExhausted, the one that has run
// out. It is the one place where counters become keys; where those are texts, it returns the
// counters.
func (s *Sequences) take(ctx context.Context, name []byte, n uint64) (q *sequence, took drawn, err error) {
	for {
		if q, took, err = s.count(ctx, name, n); err != nil || q.plain {
			return q, took, err
		}
		if q.clocked != nil { // it makes keys itself
			return q, took, nil
		}
		if took.first, err = q.key(took); err != nil || !q.kind.Skips(took.first) {
			return q, took, err
		}
		// a key that the kind skips (SKIP RANGE) is passed over
	}
}

// count takes n counters. It creates an unknown sequence if the tuning says so.
func (s *Sequences) count(ctx context.Context, name []byte, n uint64) (q *sequence, took drawn, err error) {
	if q = s.names.get(name); q != nil && !q.hidden && (n == 1 || n != 0 && q.kind.Steady()) {
		if took, err = q.counters(ctx, n, time.Time{}); err == nil || !errors.Is(err, ErrUnknown) {
			return q, took, err
		}
	}
	if n == 0 {
		return nil, took, define.BadOption("sequence %q: asked for 0 numbers, want at least 1", name)
	}
	begin := time.Now()
	deadline := begin.Add(s.patience(ctx))
	for again := true; ; again = false {
		if q, err = s.findOrCreate(ctx, name, deadline); err != nil {
			if unserved(err) {
				// nobody knows whether there is such a sequence, so it is one of the others
				s.counters.Scores.Find(string(name)).Ended(time.Since(begin), endOf(err))
			}
			return nil, took, err
		}
		if n > 1 && !q.kind.Steady() {
			return nil, took, q.refused("several consecutive numbers", eachAlone)
		}
		if took, err = q.counters(ctx, n, deadline); err == nil || !again || !errors.Is(err, ErrUnknown) {
			return q, took, err
		}
		s.forget(name, q) // the row it was made for is gone; look once whether there is a new one
	}
}

// createUnknown makes a sequence of which somebody has asked for a number. If that is refused, not
// every caller asks the server again.
func (s *Sequences) createUnknown(ctx context.Context, name string) (Created, error) {
	if err := s.unknown.refused(name, time.Now()); err != nil {
		return Created{}, err
	}
	made, err := s.create(ctx, agree.New{CreateOptions: CreateOptions{Name: name, IfNotExists: true}, Alone: true})
	if errors.Is(err, ErrUnfit) {
		s.unknown.refuse(name, err)
	}
	return made, err
}

// Same reports whether two names are spellings of one sequence, which only the server can tell of
// names that are not known here yet. It is false if one of them does not exist. Errors are those of
// Exists.
func (s *Sequences) Same(ctx context.Context, a, b []byte) (bool, error) {
	var found [2]*sequence
	deadline := time.Now().Add(s.patience(ctx))
	for i, name := range [2][]byte{a, b} {
		var err error
		if found[i], err = s.find(ctx, name, time.Until(deadline)); errors.Is(err, ErrUnknown) {
			return false, nil
		} else if err != nil {
			return false, err
		}
	}
	return found[0] == found[1], nil
}

// Exists reports whether a sequence of that name exists. A yes is remembered until the sequence
// turns out to be gone, a no for at most a second. It asks the server if need be, for at most the
// allocate timeout. name is not kept. Errors: ErrClosed, ErrUnfit, ctx's cause, *UnavailableError.
func (s *Sequences) Exists(ctx context.Context, name []byte) (bool, error) {
	_, err := s.find(ctx, name, s.patience(ctx))
	if errors.Is(err, ErrUnknown) {
		return false, nil
	}
	return err == nil, err
}

// Stored returns the name of a sequence as the table spells it, without what it adds to that of a
// counter, and whether there is one. Errors are those of Exists.
func (s *Sequences) Stored(ctx context.Context, name []byte) (stored string, known bool, err error) {
	q, err := s.find(ctx, name, s.patience(ctx))
	if errors.Is(err, ErrUnknown) {
		return "", false, nil
	}
	if err != nil {
		return "", false, err
	}
	return define.ShownName(q.name), true, nil
}

// find returns the sequence that name means, asking the server if the spelling is new. Nobody is
// told of those that count for another sequence.
func (s *Sequences) find(ctx context.Context, name []byte, patience time.Duration) (*sequence, error) {
	q, err := s.findAny(ctx, name, patience)
	if err == nil && q.hidden {
		return nil, &NameError{Name: string(name), Err: ErrUnknown}
	}
	return q, err
}

// findAny is find of any row.
func (s *Sequences) findAny(ctx context.Context, name []byte, patience time.Duration) (*sequence, error) {
	if q := s.names.get(name); q != nil {
		err := q.numbers.Ended()
		if err == nil {
			return q, nil
		}
		if !errors.Is(err, ErrUnknown) {
			return nil, err
		}
		s.forget(name, q)
	}
	if len(name) == 0 || len(name) > maxNameBytes || s.unknown.has(name, time.Now()) {
		return nil, &NameError{Name: string(name), Err: ErrUnknown}
	}
	ctx, stop := context.WithTimeoutCause(ctx, patience, await.ErrPatience)
	defer stop()
	begin := time.Now()
	// the lookup may begin after a caller that gave up has used name's memory for something else
	asked := string(name)
	answer := s.lookups.DoChan(asked, func() (any, error) { return s.lookUp(asked) })
	select {
	case r := <-answer:
		if r.Err != nil {
			return nil, r.Err
		}
		return r.Val.(*sequence), nil
	case <-ctx.Done():
		err := context.Cause(ctx)
		if errors.Is(err, await.ErrPatience) {
			err = &UnavailableError{Sequence: asked, Server: s.serverName(), Waited: time.Since(begin), Err: s.shared.whyNot()}
		}
		return nil, err
	}
}

// lookUp asks the server for the row that name means and makes its cache. It runs once for all
// callers that want the same name at the same time, so it listens to none of their contexts; it is
// bounded by the allocate timeout.
func (s *Sequences) lookUp(name string) (any, error) {
	if !s.begin() {
		return nil, ErrClosed
	}
	defer s.tasks.Done()
	patience := s.patience(s.ctx)
	ctx, stop := context.WithTimeoutCause(s.ctx, patience, await.ErrPatience)
	defer stop()
	begin := time.Now()
	var found store.Row
	var err error
	for backoff := s.timing.firstBackoff; ; backoff = min(2*backoff, s.timing.lastBackoff) {
		changes := s.obeyed()
		asked, generation := time.Now(), s.unknown.generation()
		found, err = s.members.Find(ctx, name)
		s.takeNote()
		if errors.Is(err, ErrUnknown) {
			s.unknown.add(name, asked.Add(s.timing.unknown), generation)
			return nil, err
		}
		if err == nil {
			var q *sequence
			if q, err = s.sequenceFor(name, found, changes); !errors.Is(err, errOutdated) {
				return q, err
			}
			if ctx.Err() == nil {
				continue
			}
		}
		if errors.Is(err, ErrUnfit) {
			break
		}
		if errors.Is(err, store.OutcomeFrozen) {
			s.startFollowing() // who hears when the change has ended
		}
		if time.Since(begin)+backoff > patience || !s.sleep(await.Jitter(backoff)) {
			break
		}
	}
	if errors.Is(err, ErrUnfit) {
		return nil, &aboutError{Sequence: name, Err: err}
	}
	return nil, &UnavailableError{Sequence: name, Server: s.serverName(), Waited: time.Since(begin), Err: err}
}

// errOutdated: what was found may be, and its cache would not hear of the change again.
var errOutdated = errors.New("options were changed each time while it was looked up")

// sequenceFor returns the cache of a row that was found under name, making it if it is new. changes
// is what obeyed said before; errOutdated: that has risen.
func (s *Sequences) sequenceFor(name string, found store.Row, changes uint64) (*sequence, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.closed:
		return nil, ErrClosed
	case changes != s.changes:
		return nil, errOutdated
	}
	q := s.sequences[found.Name]
	if q != nil && q.numbers.Ended() != nil {
		s.removeLocked(q)
		q = nil
	}
	if q == nil {
		q = newSequence(&s.shared, found)
		if lock, ok := s.ending[found.Name]; ok {
			q.numbers.Reserving = lock
			delete(s.ending, found.Name)
		}
		s.sequences[found.Name] = q
		s.names.put(found.Name, q)
		if !q.kind.Counts() {
			s.followLocked() // else who reserves does
		}
	}
	if name != found.Name {
		s.names.put(name, q)
	}
	return q, nil
}

// forget drops a cache whose sequence is gone, and the spelling that led to it. Other spellings may
// still lead there, so it is ended first.
func (s *Sequences) forget(name []byte, q *sequence) {
	s.mu.Lock()
	defer s.mu.Unlock()
	q.shut(&NameError{Name: define.ShownName(q.name), Err: ErrUnknown})
	s.removeLocked(q)
	s.names.drop(string(name), q)
}

// removeLocked takes q, which has ended, off the list and keeps its counts: what is not on the list
// hears of no change. A reservation of it that is in flight is waited for by the next cache of that
// name. s.mu is held.
func (s *Sequences) removeLocked(q *sequence) {
	if s.sequences[q.name] == q {
		delete(s.sequences, q.name)
		s.dropPeriodsLocked(q)
		// Whoever acquires one of these locks from now on sees that its cache has ended.
		maps.DeleteFunc(s.ending, func(_ string, lock await.Lock) bool { return !lock.Taken() })
		if q.numbers.Reserving.Taken() {
			s.ending[q.name] = q.numbers.Reserving
		}
		s.names.drop(q.name, q)
		s.common.Notices.Take(q.name)
		s.bury(q)
		if !q.hidden { // else its counts are those of another one
			s.counters.Scores.Drop(q.name)
		}
	}
}

// bury keeps the counts of a sequence that was dropped. s.mu is held.
func (s *Sequences) bury(q *sequence) {
	t := q.bury()
	s.gone.Add(&t)
	q.numbers.Score.Bury(&t)
}

// begin counts a task that Close waits for; it reports false if Close has begun.
func (s *Sequences) begin() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return false
	}
	s.tasks.Add(1)
	return true
}

// spawn runs f on a goroutine that Close waits for. The caller holds the lock of a cache that has
// not ended, or mu and Close has not begun: Close ends every cache before it waits, so this never
// races with the wait.
func (s *Sequences) spawn(f func()) {
	s.tasks.Add(1)
	go func() {
		defer s.tasks.Done()
		f()
	}()
}

// spawnBounded is spawn for what servers need, whose callers may have less time than f. It has as
// much as one of them at most.
func (s *Sequences) spawnBounded(f func(ctx context.Context)) {
	s.spawn(func() {
		ctx, stop := context.WithTimeoutCause(s.ctx, s.patience(s.ctx), await.ErrPatience)
		defer stop()
		f(ctx)
	})
}

// sleep waits for d and reports false if Close began meanwhile.
func (s *Sequences) sleep(d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-s.stopping:
		return false
	}
}

// Close makes every Take fail with ErrClosed, waits for reservations in flight, gives unused
// numbers back where nobody has reserved after them, lowers their marks, and closes the connections
// and the state directory, in this order. When ctx is done it stops waiting and gives nothing more
// back; its cause is then returned. Numbers that are not given back are a gap. Further calls return
// nil at once.
func (s *Sequences) Close(ctx context.Context) error {
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return nil
	}
	s.closed = true
	all := slices.Collect(maps.Values(s.sequences))
	var caches []*cache.Cache
	for _, q := range all {
		caches = append(caches, q.cachesLocked()...)
	}
	s.mu.Unlock()
	close(s.stopping)
	for _, q := range all {
		q.shut(ErrClosed)
	}
	for _, c := range caches {
		c.Shut(ErrClosed)
	}
	s.tickets.Shut(ErrClosed)

	idle := make(chan struct{})
	go func() {
		s.tasks.Wait()
		close(idle)
	}()
	var err error
	select {
	case <-idle:
		s.regainTicks(all)
		err = errors.Join(s.giveBack(ctx, caches), s.members.Leave(ctx))
	case <-ctx.Done():
		err = fmt.Errorf("close sequences: %w", context.Cause(ctx))
	}
	s.cancel(ErrClosed)
	<-idle // soon: a task runs under s.ctx, or is short
	for _, c := range caches {
		c.Empty(stats.UnusedFlush)
	}
	for _, t := range s.tickets.All() {
		t.Cache().Empty(stats.UnusedFlush)
	}
	return errors.Join(err, s.members.Close(), s.state.Close())
}

// giveBack returns the unused upper ends, several at a time. It stops at the first failure: the
// server is away, and a gap is harmless.
func (s *Sequences) giveBack(ctx context.Context, caches []*cache.Cache) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(s.opts.Servers[0].MaxConns)
	for _, c := range caches {
		epoch := s.epoch(c.Name)
		seg := c.Unused()
		if seg.Remaining() == 0 {
			continue
		}
		group.Go(func() error {
			// held by no reservation any more; the caches of one row follow each other
			c.Reserving.MustAcquire()
			defer c.Reserving.Release()
			done, err := s.reserver.GiveBack(ctx, c.Name, epoch, seg)
			if done || errors.Is(err, link.ErrOutcome) {
				// where that is not known the row may stand there, which is no row gone back
				s.members.Marks.Lower(c.Name, seg)
				s.members.Marks.KeepLowered(c.Name)
			}
			if done {
				c.Settle(stats.UnusedReturned, seg.Remaining())
				return nil
			}
			c.Settle(stats.UnusedFlush, seg.Remaining())
			if err != nil {
				return fmt.Errorf("give back numbers of sequence %q, which are a gap now: %w", c.Name, err)
			}
			return nil
		})
	}
	return group.Wait()
}

// serverName is how errors call the sequence server.
func (s *Sequences) serverName() string { return s.members.Name() }
