package sequence

import (
	"context"
	"maps"
	"slices"
	"time"

	"seqproxy/sequence/follow"
	"seqproxy/sequence/stats"
	"seqproxy/sequence/store"
)

// startFollowing has changes followed from now on.
func (s *Sequences) startFollowing() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.followLocked()
}

// obeyed returns a count that rises when a change is heard, and again when it is obeyed. A row that
// was read while it did not rise is up to date.
func (s *Sequences) obeyed() uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.changes
}

// followLocked starts the goroutine that follows changes, unless it runs or Close has begun. s.mu
// is held.
func (s *Sequences) followLocked() {
	if s.following || s.closed {
		return
	}
	s.following = true
	s.followed.Store(true)
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
	s.follower.Run(ctx)
}

// seeChanges obeys at once what was changed here, if anything here depends on it. Whatever fails,
// the follower repeats.
func (s *Sequences) seeChanges(ctx context.Context) {
	if s.followed.Load() {
		_ = s.follower.Refresh(ctx)
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

// followerOwner is Sequences as their follower sees them.
type followerOwner struct{ s *Sequences }

// Go implements [follow.Owner].
func (o followerOwner) Go(f func(ctx context.Context)) { o.s.spawnBounded(f) }

// Noted implements [follow.Owner].
func (o followerOwner) Noted() { o.s.takeNote() }

// followerCaches is what is in memory, as the follower sees it.
type followerCaches struct{ s *Sequences }

// Names implements [follow.Caches].
func (o followerCaches) Names(most int) []string {
	o.s.mu.Lock()
	defer o.s.mu.Unlock()
	names := make([]string, 0, min(len(o.s.sequences), most))
	for name := range o.s.sequences { // at random
		if len(names) == most {
			break
		}
		names = append(names, name)
	}
	return names
}

// Heard implements [follow.Caches].
func (o followerCaches) Heard() []string {
	o.s.mu.Lock()
	defer o.s.mu.Unlock()
	// a cache that is made from here on is not among these, and is of a row that is read from here
	// on
	o.s.changes++
	return slices.Collect(maps.Keys(o.s.sequences))
}

// Holds implements [follow.Caches].
func (o followerCaches) Holds() (sequences int, cached uint64) {
	s := o.s
	s.mu.Lock()
	defer s.mu.Unlock()
	s.voidBegunLocked() // the sign of life says that nothing is held of them
	now := time.Now()
	for _, q := range s.sequences {
		if !s.closed { // else nobody waits for what is begun
			q.keepUp(now)
		}
		t := q.tally()
		cached += t.Cached
		for _, stepped := range q.steps {
			cached += stepped.Tally().Cached
		}
	}
	return len(s.sequences), cached
}

// VoidAll implements [follow.Caches].
func (o followerCaches) VoidAll() {
	o.s.mu.Lock()
	defer o.s.mu.Unlock()
	for name := range o.s.sequences {
		o.s.voidLocked(name)
	}
}

// Obey implements [follow.Caches], and brings the owners in line, too.
func (o followerCaches) Obey(n follow.News) {
	o.s.obey(&n)
	o.s.unknown.clear()
	o.s.owners.publish(&n)
}

// obey brings the caches in line with the changes that a server tells.
func (s *Sequences) obey(n *follow.News) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.changes++
	for was, is := range n.Respelled { // before the changes, of which one may begin an epoch
		s.members.Marks.Rename(was, is)
		s.endLocked(was)
	}
	if n.Back {
		for _, q := range s.sequences {
			for _, cached := range q.cachesLocked() {
				cached.Unlearn()
			}
		}
	}
	for i := range n.Changed {
		c := &n.Changed[i]
		switch {
		case c.Gone:
			s.endLocked(c.Option)
			continue
		case c.Unread:
			s.endLocked(c.Name)
			continue
		}
		void := s.members.Marks.Enter(c.Name, c.Epoch)
		if !n.Several && !void {
			void = s.members.Marks.Reenter(c.Name, c.Epoch)
		}
		if void {
			s.voidLocked(c.Name)
		}
		if q := s.sequences[c.Name]; q != nil {
			q.revise(&c.Row)
		}
	}
}

// takeNote has the follower and the caches go by what was found out while servers were asked.
func (s *Sequences) takeNote() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.closed { // else nobody waits for what is begun
		for _, what := range s.members.TakeDue() {
			s.spawnBounded(func(ctx context.Context) { s.members.GoAhead(ctx, what) })
		}
	}
	s.voidBegunLocked()
	if s.members.InUse() {
		s.followLocked()
	}
}

// voidBegunLocked makes the numbers void that are held of sequences which were found to be in a new
// epoch. s.mu is held.
func (s *Sequences) voidBegunLocked() {
	for _, name := range s.members.Marks.TakeBegun() {
		s.voidLocked(name)
	}
}

// epoch returns the epoch that a sequence is in. What its caches hold from then on is of this
// epoch, or of a later one.
func (s *Sequences) epoch(name string) uint64 {
	// first: what is held may be of a later one, but not of one before
	epoch := s.members.Marks.Epoch(name)
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
	if !s.members.Marks.Enter(name, epoch) {
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
