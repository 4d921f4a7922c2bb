package sequence

import (
	"context"
	"errors"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"seqproxy/internal/await"
	"seqproxy/internal/logfield"
	"seqproxy/internal/planted"
	"seqproxy/sequence/member"
	"seqproxy/sequence/members"
	"seqproxy/sequence/stats"
	"seqproxy/sequence/store"
)

// follower sees what others change: it asks for the version of the last change, and if that has
// moved, for the options that changed.
type follower struct {
	begun atomic.Bool
	work  await.Lock // held during one round

	mu sync.Mutex
	by map[*server]*following // guarded by mu

	started bool   // guarded by Sequences.mu; its goroutine runs
	changes uint64 // guarded by Sequences.mu; rises when a change is heard, and when it is obeyed

	obeying sync.Mutex // held while what one server tells is obeyed
	// guarded by obeying; the version of what is obeyed of each sequence, where several servers
	// tell
	newest map[string]uint64
	// recorded is whose members have each other's ceilings, as far as can be seen. Guarded by work.
	recorded *members.View
}

func newFollower() follower {
	return follower{work: await.NewLock(), by: make(map[*server]*following)}
}

// of is what is known of one server.
func (f *follower) of(v *server) *following {
	f.mu.Lock()
	defer f.mu.Unlock()
	known := f.by[v]
	if known == nil {
		known = new(following)
		f.by[v] = known
	}
	return known
}

// following is what was heard from one sequence server, and told to it.
type following struct {
	loaded   bool         // guarded by follower.work; the options were read once
	seen     store.Moment // guarded by follower.work; up to where changes are obeyed
	beaten   time.Time    // guarded by follower.work; the last heartbeat
	reported store.Moment // guarded by follower.work; that of the last heartbeat which told it

	failures int         // guarded by follower.work; since it answered
	again    time.Time   // guarded by follower.work; when it is asked again after them
	hurry    atomic.Bool // it is asked again at once
}

// startFollowing has changes followed from now on.
func (s *Sequences) startFollowing() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.followLocked()
}

// obeyed rises with each change, before it is known which caches it is asked about, and when it is
// obeyed.
func (s *Sequences) obeyed() uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.follow.changes
}

// followLocked starts the goroutine that follows changes, unless it runs or Close has begun. s.mu
// is held.
func (s *Sequences) followLocked() {
	if s.follow.started || s.closed {
		return
	}
	s.follow.started = true
	s.follow.begun.Store(true)
	s.spawn(s.followChanges)
}

// followChanges runs until Close.
func (s *Sequences) followChanges() {
	ctx, cancel := context.WithCancel(s.ctx)
	defer cancel()
	s.spawn(func() {
		select {
		case <-s.stopping:
			cancel()
		case <-ctx.Done():
		}
	})
	failing := false
	for wait := s.timing.follow; s.sleep(await.Jitter(wait)); {
		err := s.round(ctx)
		if ctx.Err() != nil {
			return
		}
		if err == nil {
			if failing {
				s.log.Info("changes by others seen again")
			}
			wait, failing = s.timing.follow, false
			continue
		}
		if wait = min(2*wait, s.timing.followRarely); !failing && wait == s.timing.followRarely {
			failing = true
			s.log.Warn("changes by others not seen", logfield.Err(err))
		}
	}
}

// round asks once, and gives a sign of life when it is due.
func (s *Sequences) round(ctx context.Context) error {
	ctx, stop := context.WithTimeoutCause(ctx, s.timing.round, await.ErrPatience)
	defer stop()
	if err := s.refresh(ctx); err != nil {
		return err
	}
	s.watchRows(ctx)
	s.takeNote()
	return nil
}

// rowsAtOnce bounds what one look reads. MariaDB makes a table of longer lists
// (in_predicate_conversion_threshold).
const rowsAtOnce = 500

// watchRows records how far the rows of sequences in use stand on the members, and raises those
// that have gone back. The follower calls it after it has applied changes, so that new epochs and
// rules are known. It returns no error: the next round looks again.
func (s *Sequences) watchRows(ctx context.Context) {
	s.mu.Lock()
	names := make([]string, 0, min(len(s.sequences), rowsAtOnce))
	for name := range s.sequences { // at random
		if len(names) == rowsAtOnce {
			break
		}
		names = append(names, name)
	}
	s.mu.Unlock()
	if len(names) == 0 || planted.Fault(planted.Floor) {
		return
	}
	w := s.servers.Now()
	among := &w.Among
	_ = member.Each(ctx, w.Live(), func(ctx context.Context, _ int, v *server) error {
		v.WatchRows(ctx, among, names)
		return nil
	})
}

// seeChanges obeys at once what was changed here, if anything here depends on it. Whatever fails,
// the follower repeats.
func (s *Sequences) seeChanges(ctx context.Context) {
	if s.follow.begun.Load() {
		_ = s.refresh(ctx)
	}
}

// obeyHere is seeChanges after a row was changed here. What was passed over is given up whether or
// not the server answers any more.
func (s *Sequences) obeyHere(ctx context.Context, changed *store.Row) {
	s.mu.Lock()
	if q := s.sequences[changed.Name]; q != nil {
		q.pass(changed.Past)
	}
	s.mu.Unlock()
	s.seeChanges(ctx)
}

// refresh asks for changes and obeys them.
func (s *Sequences) refresh(ctx context.Context) error {
	f := &s.follow
	if err := f.work.Acquire(ctx); err != nil {
		return err
	}
	defer f.work.Release()
	w, err := s.servers.Ready(ctx)
	if err != nil {
		return err
	}
	if !w.Several() {
		return s.refreshFrom(ctx, w, w.Members[0])
	}
	due := make([]*server, 0, len(w.Members))
	for _, v := range w.Members {
		if own := f.of(v); own.hurry.Swap(false) || !time.Now().Before(own.again) {
			due = append(due, v)
		}
	}
	if len(due) == 0 {
		return nil
	}
	errs := make([]error, len(due))
	failed := member.Each(ctx, due, func(ctx context.Context, i int, v *server) error {
		errs[i] = s.refreshFrom(ctx, w, v)
		return errs[i]
	})
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	back := false
	for i, v := range due {
		if errs[i] == nil {
			f.of(v).failures = 0
			back = v.TakeIn() || back
			continue
		}
		own := f.of(v)
		own.failures++
		own.again = time.Now().Add(await.Jitter(min(s.timing.follow<<min(own.failures, 4), s.timing.followRarely)))
		v.LeaveOut(errs[i])
	}
	if len(failed) == len(due) {
		return errors.Join(failed...)
	}
	if back {
		if err := s.servers.Settle(ctx); err != nil {
			return err
		}
	}
	if w == s.servers.Now() && f.mustRecordAgain(w) {
		if err := w.RecordAgain(ctx); err != nil {
			s.log.Debug("ceilings not recorded again", logfield.Err(err)) // the next round does
			return nil
		}
		f.recorded = w
	}
	return nil
}

// refreshFrom asks one server. f.work is held.
func (s *Sequences) refreshFrom(ctx context.Context, w *members.View, v *server) error {
	if v.FlushDue() {
		s.spawnBounded(v.LookAtFlush) // nobody waits for it
	}
	heard, err := s.hear(ctx, v)
	if err != nil {
		return err
	}
	return s.followServer(ctx, w, v, heard)
}

// hear asks a server what has changed, and how it spells the sequences whose numbers are held here.
// f.work is held.
func (s *Sequences) hear(ctx context.Context, v *server) (store.Changes, error) {
	own := s.follow.of(v)
	heard, err := v.ChangesSince(ctx, own.seen, !own.loaded)
	if err != nil || len(heard.Changed) == 0 {
		return heard, err
	}
	s.mu.Lock()
	// a cache that is made from here on is not among these, and is of a row that is read from here
	// on
	s.follow.changes++
	names := slices.Collect(maps.Keys(s.sequences))
	s.mu.Unlock()
	heard.Respelled, err = v.Respelled(ctx, names)
	return heard, err
}

// followServer obeys what a server has told, and tells it that. f.work is held.
func (s *Sequences) followServer(ctx context.Context, w *members.View, v *server, heard store.Changes) error {
	own := s.follow.of(v)
	if heard.Plan != v.Share().Plan {
		err := s.servers.Reread(ctx, w)
		if err == nil {
			heard, err = s.hear(ctx, v)
		}
		if err != nil {
			return err
		}
		if now := s.servers.Now(); now == w && heard.Plan != v.Share().Plan {
			return store.OutcomeOldPlan
		}
	}
	if !own.loaded || heard.Moment != own.seen {
		s.obey(v, heard, w.Several())
		s.fillFor(ctx, v)
	}
	if own.reported == own.seen && time.Since(own.beaten) < s.timing.beat && !v.Registry.Missing.Swap(false) {
		return nil
	}
	sequences, held := s.holds()
	told, listed, err := v.Beat(ctx, own.seen, sequences, held)
	if err != nil {
		return err
	}
	if !listed {
		s.log.Warn("proxy removed from the list")
		s.voidAll()
		v.OverlookRows() // others may have lowered rows
	}
	if own.beaten = time.Now(); told {
		own.reported = own.seen
	}
	return nil
}

// holds counts what the heartbeat tells, and has what is held keep up with the rates of today.
func (s *Sequences) holds() (sequences int, held uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.voidBegunLocked() // the heartbeat says that nothing is held of them
	now := time.Now()
	for _, q := range s.sequences {
		q.keepUp(now)
		t := q.tally()
		held += t.Cached
		for _, stepped := range q.steps {
			held += stepped.Tally().Cached
		}
	}
	return len(s.sequences), held
}

// obey brings the caches and the owners in line with the changes that a server tells. f.work is
// held.
func (s *Sequences) obey(v *server, heard store.Changes, several bool) {
	f, changed := &s.follow, heard.Changed
	f.obeying.Lock()
	defer f.obeying.Unlock()
	back := heard.Back && !several // several tell of each other's changes
	for i := range changed {
		if c := &changed[i]; !c.Gone {
			v.Rules.Set(c.Name, c.Rule())
		}
	}
	if several {
		changed = f.news(changed)
	}
	for i := range changed {
		if !changed[i].Gone {
			s.servers.Next.SettleAt(&changed[i].Row)
		}
	}
	s.mu.Lock()
	f.changes++
	for was, is := range heard.Respelled { // before the changes, of which one may begin an epoch
		s.servers.Marks.Rename(was, is)
		s.endLocked(was)
	}
	if back {
		for _, known := range s.sequences {
			for _, cached := range known.cachesLocked() {
				cached.Unlearn()
			}
		}
	}
	for i := range changed {
		c := &changed[i]
		if c.Gone {
			s.endLocked(c.Option)
			continue
		}
		void := s.servers.Marks.Enter(c.Name, c.Epoch)
		if !several && !void {
			void = s.servers.Marks.Reenter(c.Name, c.Epoch)
		}
		if void {
			s.voidLocked(c.Name)
		}
		if known := s.sequences[c.Name]; known != nil {
			known.revise(&c.Row)
		}
	}
	s.mu.Unlock()
	s.unknown.clear()
	s.owners.publish(back, changed)
	own := f.of(v)
	own.loaded, own.seen = true, heard.Moment
}

// mustRecordAgain reports whether a member may lack ceilings of the others. f.work is held.
func (f *follower) mustRecordAgain(w *members.View) bool {
	for _, v := range w.Members {
		if v.TakeForgot() {
			f.recorded = nil
		}
	}
	return f.recorded != w
}

// news are the changes that no other server has told of. f.obeying is held. One that lacks a row,
// as others have it, does not mean that the sequence was dropped.
func (f *follower) news(changed []store.Changed) []store.Changed {
	if f.newest == nil {
		f.newest = make(map[string]uint64)
	}
	return slices.DeleteFunc(changed, func(c store.Changed) bool {
		newest, known := f.newest[c.Option]
		if known && (c.Version < newest || c.Version == newest && c.Gone) {
			return true
		}
		f.newest[c.Option] = c.Version
		return false
	})
}

// takeNote has the follower and the caches go by what was found out while servers were asked.
func (s *Sequences) takeNote() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.closed { // else nobody waits for what is begun
		for _, what := range s.servers.TakeDue() {
			s.spawnBounded(func(ctx context.Context) { s.servers.GoAhead(ctx, what) })
		}
	}
	s.voidBegunLocked()
	if s.servers.InUse() {
		s.followLocked()
	}
}

// voidBegunLocked makes the numbers void that are held of sequences which were found to be in a new
// epoch. s.mu is held.
func (s *Sequences) voidBegunLocked() {
	for _, name := range s.servers.Marks.TakeBegun() {
		s.voidLocked(name)
	}
}

// epoch is the one that a sequence is in, of which all is that its caches hold from then on, until
// a later one begins.
func (s *Sequences) epoch(name string) uint64 {
	// first: what is held may be of a later one, but not of one before
	epoch := s.servers.Marks.Epoch(name)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.voidBegunLocked()
	return epoch
}

// voidBefore makes the numbers that are held of a sequence void if epoch is a later one than was
// known. It is one step for all who ask for s.mu: a follower that finds the epoch entered may say
// that nothing is held of the one before.
func (s *Sequences) voidBefore(name string, epoch uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.servers.Marks.Enter(name, epoch) {
		return
	}
	s.voidLocked(name)
}

// voidLocked makes the numbers void that are held of a sequence, as it began again. s.mu is held.
func (s *Sequences) voidLocked(name string) {
	if q := s.sequences[name]; q != nil {
		for _, cached := range q.cachesLocked() {
			cached.Void(stats.UnusedRestart)
		}
	}
}

func (s *Sequences) voidAll() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for name := range s.sequences {
		s.voidLocked(name)
	}
}
