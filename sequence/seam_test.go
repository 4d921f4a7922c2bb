package sequence

import (
	"context"
	"time"

	"seqproxy/internal/await"
	"seqproxy/internal/statefile"
	"seqproxy/sequence/agree"
	"seqproxy/sequence/define"
	"seqproxy/sequence/kind"
	"seqproxy/sequence/member"
	"seqproxy/sequence/members"
	"seqproxy/sequence/store"
)

// The files seam_*_test.go are the one way of the tests to what users of the package do not see.
// Their verbs say what happens, and not in which field: a change of layout edits them, and no test.

// Inner is what is behind a proxy's sequences.
type Inner struct{ s *Sequences }

// Inside is the way in.
func Inside(s *Sequences) Inner { return Inner{s} }

// StopFollowing waits for the round that runs. No change is heard of from then on, until
// FollowAgain.
func (in Inner) StopFollowing() { in.s.follower.Lock.MustAcquire() }

// FollowAgain ends StopFollowing.
func (in Inner) FollowAgain() { in.s.follower.Lock.Release() }

// StartFollowing has changes followed though no numbers are held.
func (in Inner) StartFollowing() { in.s.startFollowing() }

// Follows says whether changes are followed.
func (in Inner) Follows() bool {
	in.s.mu.Lock()
	defer in.s.mu.Unlock()
	return in.s.following
}

// Waits changes how long a caller waits for a number, and nothing else.
func (in Inner) Waits(d time.Duration) {
	t := *in.s.tuning.Load()
	t.AllocateTimeout = d
	in.s.Tune(t)
}

// Look asks once what others have changed.
func (in Inner) Look(ctx context.Context) error { return in.s.follower.Refresh(ctx) }

// Beat is what a sign of life tells of what is held.
func (in Inner) Beat() (sequences int, cached uint64) { return followerCaches(in).Holds() }

// ID is the name of this process among the proxies.
func (in Inner) ID() string { return in.s.members.ID }

// StateFile is where marks are kept.
func (in Inner) StateFile() *statefile.File { return in.s.state.File }

// Epoch changes with each restart of a sequence that is known of.
func (in Inner) Epoch(name string) uint64 { return in.s.members.Marks.Epoch(name) }

// Change changes the definition of a sequence on all members, and nothing here.
func (in Inner) Change(ctx context.Context, name string, a Alteration) error {
	_, err := in.s.members.Alter(ctx, name, a, 0)
	return err
}

// PeriodRows are the rows of the periods of FORMAT with RESET, and the clock of who has them.
type PeriodRows interface {
	Clock(ctx context.Context) (time.Time, error)
	Counter(ctx context.Context, name string) (store.Row, error)
}

// SetPeriodRows has them be a test's.
func (in Inner) SetPeriodRows(rows PeriodRows) {
	in.s.periodRows, in.s.clock.server = periodsOf{in.s, rows}, rows
}

type periodsOf struct {
	s    *Sequences
	rows PeriodRows
}

func (p periodsOf) counter(ctx context.Context, _ string, _ kind.Kind, name string) (found store.Row, changes uint64, err error) {
	changes = p.s.obeyed()
	found, err = p.rows.Counter(ctx, name)
	return found, changes, err
}

// SetPeriodClock has the sequence servers have a clock of the test's, for FORMAT with RESET.
func (in Inner) SetPeriodClock(now func() time.Time) {
	in.s.clock.server = serversAt{in.s.clock.server, now}
}

// serversAt are sequence servers with another clock.
type serversAt struct {
	serverClock
	now func() time.Time
}

func (s serversAt) Clock(ctx context.Context) (time.Time, error) {
	if _, err := s.serverClock.Clock(ctx); err != nil { // it is away
		return time.Time{}, err
	}
	return s.now(), nil
}

// SetWall has the machine have a clock of the test's.
func SetWall(o *Options, now func() time.Time) { o.wall = now }

// Open says whether Close was not called yet.
func (in Inner) Open() bool {
	in.s.mu.Lock()
	defer in.s.mu.Unlock()
	return !in.s.closed
}

// Begun says whether it was ever begun to follow changes.
func (in Inner) Begun() bool { return in.s.followed.Load() }

// SetBegun has it seem so, or not.
func (in Inner) SetBegun(begun bool) { in.s.followed.Store(begun) }

// FollowNothing has nothing be followed, ever.
func (in Inner) FollowNothing() { in.s.following = true }

// Round is one round of following.
func (in Inner) Round(ctx context.Context) error { return in.s.follower.Round(ctx) }

// SeeChanges obeys what was changed here.
func (in Inner) SeeChanges(ctx context.Context) { in.s.seeChanges(ctx) }

// ForgetScore drops what is counted under a name.
func (in Inner) ForgetScore(name string) { in.s.counters.Scores.Drop(name) }

// KeptOwners are those in the state file.
func (in Inner) KeptOwners() *Owners { return in.s.owners.kept() }

// GroupWayOut is what who wants a group to be a member is told.
const GroupWayOut = members.GroupWayOut

// Patience is how long a caller may wait.
func (in Inner) Patience(ctx context.Context) time.Duration { return in.s.patience(ctx) }

// Request is one with a patience of its own: failed says what its caller is told.
func (in Inner) Request(ctx context.Context, patience time.Duration) (within context.Context, failed func(name string, err error) error, stop func()) {
	r, stop := in.s.requestWithin(ctx, patience)
	return r.ctx, r.failed, stop
}

// AlterOnly is Alter without what is made sure of afterwards: that others have heard of it.
func (in Inner) AlterOnly(ctx context.Context, name string, a Alteration) (changed store.Row, err error) {
	r, stop := in.s.requestWithin(ctx, time.Minute)
	defer stop()
	return in.s.alter(r, []byte(name), a)
}

// SetValueOnly is SetValue without what is made sure of afterwards.
func (in Inner) SetValueOnly(ctx context.Context, name string, n uint64) (changed store.Row, ok bool, err error) {
	return in.s.setValue(ctx, in.Cache(name).q, n, true)
}

// PassedForGood makes sure of it, within a minute.
func (in Inner) PassedForGood(ctx context.Context, changed *store.Row) error {
	r, stop := in.s.requestWithin(ctx, time.Minute)
	defer stop()
	return in.s.passedForGood(r.ctx, changed)
}

// OrderedForGood makes sure that ORDER is known of wherever a fail-over may lead.
func (in Inner) OrderedForGood(ctx context.Context, changed *store.Row) error {
	return in.s.members.OrderedForGood(ctx, changed, in.s.tuning.Load().OrderWithoutReplica, in.s.timing.confirm)
}

// TakeBackOrder undoes an ORDER that could not be made sure of, and says what the sequence is.
func (in Inner) TakeBackOrder(ctx context.Context, changed *store.Row) string {
	r, stop := in.s.request(ctx)
	defer stop()
	return in.s.takeBackOrder(r.ctx, changed)
}

// CreateOrdered makes an ORDER sequence on all members. ordered says whether it is one at once.
func (in Inner) CreateOrdered(ctx context.Context, name string, start uint64) (ordered bool, err error) {
	made, err := in.s.members.Create(ctx, agree.New{CreateOptions: CreateOptions{Name: name, Start: start, Order: true}}, define.Definition{Name: name, Start: start, Increment: 1, Order: true})
	return !made.Unordered, err
}

// MoveTo has a row be at n on all members, as who changes a sequence does.
func (in Inner) MoveTo(ctx context.Context, name string, n uint64) error {
	return in.s.members.Under(ctx, func(w *members.View) error {
		_, err := agree.Of(&w.Among, in.s.members.Next).Change(ctx, name, func(*agree.Agreed, *store.Row) (uint64, bool, error) { return n, true, nil })
		return err
	})
}

// ChangeWith has f be in the middle of a change of a definition.
func (in Inner) ChangeWith(ctx context.Context, name string, f func() error) error {
	w, err := in.s.members.Ready(ctx)
	if err != nil {
		return err
	}
	_, err = agree.Of(&w.Among, in.s.members.Next).Change(ctx, name, func(*agree.Agreed, *store.Row) (uint64, bool, error) { return 0, false, f() })
	return err
}

// Following is held during a round of following.
func (in Inner) Following() await.Lock { return in.s.follower.Lock }

// Tickets is the server that has the ticket tables.
func (in Inner) Tickets() *store.Store { return in.s.members.Configured()[0].Store }

// Bounds of the program.
const (
	MostSteps    = maxSteps
	MostBlock    = members.MaxBlock
	CeilingAhead = member.CeilingAhead
)

// Defined is the definition that CREATE makes.
func Defined(o *CreateOptions) define.Definition { return o.Definition() }
