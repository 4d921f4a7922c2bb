package sequence

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"seqproxy/internal/await"
	"seqproxy/internal/statefile"
	"seqproxy/sequence/change"
	"seqproxy/sequence/define"
	"seqproxy/sequence/floor"
	"seqproxy/sequence/group"
	"seqproxy/sequence/link"
	"seqproxy/sequence/segment"
	"seqproxy/sequence/stats"
	"seqproxy/sequence/store"
)

// The files seam_*_test.go are the one way of the tests to what users of the package do not see.
// Their verbs say what happens, and not in which field: a change of layout edits them, and no test.

// Inner is what is behind a proxy's sequences.
type Inner struct{ s *Sequences }

// Inside is the way in.
func Inside(s *Sequences) Inner { return Inner{s} }

// OnPlanStep has f called after each step of a change of members that this process makes. The
// change ends where f fails, and nothing is undone.
func (in Inner) OnPlanStep(f func(step, address string) error) { in.s.planHook = f }

// Coordinate has f called as who makes a change of members.
func (in Inner) Coordinate(ctx context.Context, f func(*change.Coordinator) error) (Plan, error) {
	return in.s.planned(ctx, f)
}

// CoordinateHere is Coordinate that leaves this process with its plan.
func (in Inner) CoordinateHere(ctx context.Context, f func(*change.Coordinator) error) (Plan, error) {
	return in.s.asCoordinator(ctx, f)
}

// StopFollowing returns when no changes are followed, until FollowAgain.
func (in Inner) StopFollowing() { in.s.follow.work.MustAcquire() }

// FollowAgain ends StopFollowing.
func (in Inner) FollowAgain() { in.s.follow.work.Release() }

// StartFollowing has changes followed though no numbers are held.
func (in Inner) StartFollowing() { in.s.startFollowing() }

// Follows says whether changes are followed.
func (in Inner) Follows() bool {
	in.s.mu.Lock()
	defer in.s.mu.Unlock()
	return in.s.follow.started
}

// Look asks once what others have changed.
func (in Inner) Look(ctx context.Context) error { return in.s.refresh(ctx) }

// Beat is what a sign of life tells of what is held.
func (in Inner) Beat() (sequences int, held uint64) { return in.s.holds() }

// ID is the name of this process among the proxies.
func (in Inner) ID() string { return in.s.servers.id }

// Interleave and Block are the options that are gone by.
func (in Inner) Interleave() (how string, block uint64) { return in.s.opts.Interleave, in.s.opts.Block }

// StateFile is where marks are kept.
func (in Inner) StateFile() *statefile.File { return in.s.state.File }

// Cache is what is in memory of the sequence that a name means.
func (in Inner) Cache(name string) Cache { return Cache{in.s.names.get([]byte(name))} }

// Cached is how many numbers of it are in memory.
func (in Inner) Cached(name string) uint64 { return in.Cache(name).Cached() }

// LastMember has the next reservation of a sequence be with the member after one of them.
func (in Inner) LastMember(name string, position int) {
	in.s.servers.mu.Lock()
	defer in.s.servers.mu.Unlock()
	in.s.servers.lastUsed[name] = position
}

// Plan is the one that is gone by.
func (in Inner) Plan() Plan { return in.s.servers.view.Load().plan }

// Members are those in use, by position.
func (in Inner) Members() (all []Server) {
	for _, v := range in.s.servers.members() {
		all = append(all, in.server(v))
	}
	return all
}

// Known are all servers that were ever members or configured. Those of the configuration come first.
func (in Inner) Known() (all []Server) {
	for _, v := range in.s.servers.all {
		all = append(all, in.server(v))
	}
	return all
}

// First is the first member, or the only server.
func (in Inner) First() Server { return in.server(in.s.servers.first()) }

// Apart is a server with connections of its own. The caller closes it.
func (in Inner) Apart(address string) (Server, error) {
	v, err := in.s.separateServer(address)
	if err != nil {
		return Server{}, err
	}
	return in.server(v), nil
}

// Add has one more server be known, as if it were configured.
func (in Inner) Add(o ServerOptions) error {
	if err := o.setDefaults(); err != nil {
		return err
	}
	in.s.opts.Servers = append(in.s.opts.Servers, o)
	_, err := in.s.servers.addLocked(o)
	return err
}

// Configure has one more server be configured, and not be known by now.
func (in Inner) Configure(o ServerOptions) error {
	if err := o.setDefaults(); err != nil {
		return err
	}
	in.s.opts.Servers = append(in.s.opts.Servers, o)
	return nil
}

// Home is the member that alone gives numbers of an ORDER sequence, or nil if none is known here.
func (in Inner) Home(name string) *Server {
	v := in.s.servers.home(in.s.servers.view.Load(), name)
	if v == nil {
		return nil
	}
	home := in.server(v)
	return &home
}

// ReadPlan asks the members which plan there is.
func (in Inner) ReadPlan(ctx context.Context) error {
	return in.s.servers.reread(ctx, in.s.servers.view.Load())
}

// MeetPlan waits until it is known which plan there is.
func (in Inner) MeetPlan(ctx context.Context) error {
	_, err := in.s.servers.ready(ctx)
	return err
}

// Reserve takes numbers from any member, as a cache does.
func (in Inner) Reserve(ctx context.Context, name string, want, need uint64) (Grant, error) {
	g, err := in.s.servers.reserve(ctx, name, want, need)
	return granted(g), err
}

// Epoch changes with each restart of a sequence that is known of.
func (in Inner) Epoch(name string) uint64 { return in.s.servers.marks.Epoch(name) }

// Mark is the highest number of a sequence that this process has ever seen reserved.
func (in Inner) Mark(name string) uint64 { return in.s.servers.marks.Of(name) }

// CeilingsAhead has each ceiling be n numbers above need.
func (in Inner) CeilingsAhead(n uint64) { in.s.servers.ahead = n }

// HasReserved says of each member how many reservations there were.
func (in Inner) HasReserved() (all []uint64) {
	for _, v := range in.s.servers.members() {
		h := v.trials.Durations[stats.ReservedOK].Read()
		all = append(all, h.Count())
	}
	return all
}

// Enlisted says whether this process has given signs of life for long, where it takes numbers.
func (in Inner) Enlisted() bool { return in.s.servers.enlisted(make(map[*server]tenure)) }

// Change changes the definition of a sequence on all members, and nothing here.
func (in Inner) Change(ctx context.Context, name string, a Alteration) error {
	_, err := in.s.servers.alter(ctx, name, a)
	return err
}

// PeriodRows are the rows of the periods of FORMAT with RESET, and the clock of who has them.
type PeriodRows interface {
	Clock(ctx context.Context) (time.Time, error)
	Counter(ctx context.Context, name string) (store.Row, error)
}

// SetPeriodRows has them be a test's.
func (in Inner) SetPeriodRows(rows PeriodRows) { in.s.periodRows = periodsOf{in.s, rows} }

type periodsOf struct {
	s    *Sequences
	rows PeriodRows
}

func (p periodsOf) clock(ctx context.Context) (time.Time, error) { return p.rows.Clock(ctx) }

func (p periodsOf) counter(ctx context.Context, _ *cache, name string) (found store.Row, changes uint64, err error) {
	changes = p.s.obeyed()
	found, err = p.rows.Counter(ctx, name)
	return found, changes, err
}

// SetPeriodClock has the sequence servers have a clock of the test's, for FORMAT with RESET.
func (in Inner) SetPeriodClock(now func() time.Time) {
	in.s.periodRows = serversAt{in.s.periodRows, now}
}

// serversAt are sequence servers with another clock.
type serversAt struct {
	periodRows
	now func() time.Time
}

func (s serversAt) clock(ctx context.Context) (time.Time, error) {
	if _, err := s.periodRows.clock(ctx); err != nil { // it is away
		return time.Time{}, err
	}
	return s.now(), nil
}

// SetWall has the machine have a clock of the test's.
func SetWall(o *Options, now func() time.Time) { o.wall = now }

// Meet makes the cache of a sequence whose row was read as found.
func (in Inner) Meet(name string, found store.Row) (Cache, error) {
	c, err := in.s.cacheFor(name, found, in.s.obeyed())
	return Cache{c}, err
}

// Timing are the clocks of a process that tests read or change.
type Timing struct {
	link.Timing
	group.Patience

	Follow, FollowRarely       time.Duration
	Beat, Stale, Tenure        time.Duration
	Fill, Lack                 time.Duration
	LastBackoff, LeastPatience time.Duration
	EditSilence, Unknown, Idle time.Duration
	ClockLook, ClockAgain      time.Duration
}

func timingOf(t *timing) Timing {
	return Timing{
		Timing: t.Timing, Follow: t.follow, FollowRarely: t.followRarely, Beat: t.beat, Stale: t.stale, Tenure: t.tenure,
		Fill: t.fill, Lack: t.lack, Patience: t.Patience, LastBackoff: t.lastBackoff, LeastPatience: t.leastPatience,
		EditSilence: t.editSilence, Unknown: t.unknown, Idle: t.idle, ClockLook: t.clockLook, ClockAgain: t.clockAgain,
	}
}

// changeTiming writes what f changes, and nothing else: the others may be in use.
func changeTiming(t *timing, f func(*Timing)) {
	was := timingOf(t)
	now := was
	f(&now)
	if now.Timing != was.Timing {
		t.Timing = now.Timing
	}
	if now.Patience != was.Patience {
		t.Patience = now.Patience
	}
	for _, d := range []struct {
		field    *time.Duration
		was, now time.Duration
	}{
		{&t.follow, was.Follow, now.Follow},
		{&t.followRarely, was.FollowRarely, now.FollowRarely},
		{&t.beat, was.Beat, now.Beat},
		{&t.stale, was.Stale, now.Stale},
		{&t.tenure, was.Tenure, now.Tenure},
		{&t.fill, was.Fill, now.Fill},
		{&t.lack, was.Lack, now.Lack},
		{&t.lastBackoff, was.LastBackoff, now.LastBackoff},
		{&t.leastPatience, was.LeastPatience, now.LeastPatience},
		{&t.editSilence, was.EditSilence, now.EditSilence},
		{&t.unknown, was.Unknown, now.Unknown},
		{&t.idle, was.Idle, now.Idle},
		{&t.clockLook, was.ClockLook, now.ClockLook},
		{&t.clockAgain, was.ClockAgain, now.ClockAgain},
	} {
		if d.now != d.was {
			*d.field = d.now
		}
	}
}

// UsualTiming is that of a process which is no test's.
func UsualTiming() Timing {
	t := standardTiming()
	return timingOf(&t)
}

// ChangeTiming changes that of a process to come.
func ChangeTiming(o *Options, f func(*Timing)) {
	t := standardTiming()
	if o.timing != nil {
		t = *o.timing
	}
	changeTiming(&t, f)
	o.timing = &t
}

// Timing is that of this process.
func (in Inner) Timing() Timing { return timingOf(in.s.timing) }

// ChangeTiming changes it while nothing that it concerns is under way.
func (in Inner) ChangeTiming(f func(*Timing)) { changeTiming(in.s.timing, f) }

// Reserving says whether a reservation of a sequence is in flight, or of steps of it.
func (in Inner) Reserving(name string) bool {
	in.s.mu.Lock()
	defer in.s.mu.Unlock()
	return slices.ContainsFunc(in.s.cachesLocked(name), func(c *cache) bool { return Cache{c}.Reserving() })
}

// ReservingAny says whether one of any sequence is.
func (in Inner) ReservingAny() bool {
	in.s.mu.Lock()
	defer in.s.mu.Unlock()
	for _, c := range in.s.caches {
		if (Cache{c}).Reserving() {
			return true
		}
	}
	return false
}

// Open says whether Close was not called yet.
func (in Inner) Open() bool {
	in.s.mu.Lock()
	defer in.s.mu.Unlock()
	return !in.s.closed
}

// Begun says whether it was ever begun to follow changes.
func (in Inner) Begun() bool { return in.s.follow.begun.Load() }

// SetBegun has it seem so.
func (in Inner) SetBegun(begun bool) { in.s.follow.begun.Store(begun) }

// FollowNothing has nothing be followed, ever.
func (in Inner) FollowNothing() { in.s.follow.started = true }

// Round is one round of following.
func (in Inner) Round(ctx context.Context) error { return in.s.round(ctx) }

// SeeChanges obeys what was changed here.
func (in Inner) SeeChanges(ctx context.Context) { in.s.seeChanges(ctx) }

// Names are the sequences and counters that have something in memory.
func (in Inner) Names() []string {
	in.s.mu.Lock()
	defer in.s.mu.Unlock()
	return slices.Collect(maps.Keys(in.s.caches))
}

// Parts is how many caches a sequence has, with those of steps.
func (in Inner) Parts(name string) int { return len(in.s.cachesOf(in.Cache(name).c)) }

// Step makes a cache of whole steps.
func (in Inner) Step(c Cache, n uint64) error {
	_, err := in.s.stepped(c.c, n)
	return err
}

// End ends what is in memory of a sequence that is gone, and Ending is how many reservations of such
// ones are in flight.
func (in Inner) End(name string) { in.s.end(name) }

// Ending is for how many names a reservation outlives its sequence.
func (in Inner) Ending() int {
	in.s.mu.Lock()
	defer in.s.mu.Unlock()
	return len(in.s.ending)
}

// Hold has nobody come by a cache until end, which ends that of a sequence, or letGo.
func (in Inner) Hold() (end func(name string), letGo func()) {
	in.s.mu.Lock()
	return in.s.endLocked, sync.OnceFunc(in.s.mu.Unlock)
}

// ForgetScore drops what is counted under a name.
func (in Inner) ForgetScore(name string) { in.s.scores.Drop(name) }

// MoveAbove moves a counter above a number.
func (in Inner) MoveAbove(ctx context.Context, c Cache, n uint64) error {
	return in.s.moveAbove(ctx, c.c, n)
}

// Avoid has numbers be given to nobody.
func (in Inner) Avoid(ctx context.Context, c Cache, numbers []uint64, deadline time.Time) error {
	return in.s.avoid(ctx, c.c, numbers, deadline)
}

// KeptOwners are those in the state file.
func (in Inner) KeptOwners() *Owners { return in.s.keptOwners() }

// Spell has a cache be known by one more spelling.
func (in Inner) Spell(name string, c Cache) { in.s.names.put(name, c.c) }

// Spellings is how many are known, and MostSpellings how many may be.
func (in Inner) Spellings() (n int) {
	for i := range in.s.names.shards {
		n += len(in.s.names.shards[i].load())
	}
	return n
}

// MostSpellings is how many may be known of one sequence.
const MostSpellings = nameShards*(maxAliases+1) + 1

// NoSequence has a name be remembered as unknown.
func (in Inner) NoSequence(name string) {
	in.s.unknown.add(name, time.Now(), in.s.unknown.generation())
}

// Unknown is how many unknown names are remembered.
func (in Inner) Unknown() int { return len(in.s.unknown.until) }

// MostUnknown is how many may be.
const MostUnknown = maxUnknown

// Find finds a sequence as requests do.
func (in Inner) Find(ctx context.Context, name string, patience time.Duration) (Cache, error) {
	c, err := in.s.find(ctx, []byte(name), patience)
	return Cache{c}, err
}

// FindForLater reads the row of a sequence. What it returns makes a cache of it.
func (in Inner) FindForLater(ctx context.Context, name string) (meet func() error, err error) {
	before := in.s.obeyed()
	found, err := in.s.servers.find(ctx, name)
	return func() error {
		_, err := in.s.cacheFor(name, found, before)
		return err
	}, err
}

// Errors that a request is tried again for.
var (
	ErrOutdated  = errOutdated
	ErrExcluded  = errExcluded
	ErrEnlisting = errEnlisting
	ErrUnlisted  = errUnlisted
)

// GroupWayOut is what who wants a group to be a member is told.
const GroupWayOut = groupWayOut

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

// SetValueOnly is SetValue without that.
func (in Inner) SetValueOnly(ctx context.Context, name string, n uint64) (changed store.Row, ok bool, err error) {
	return in.s.setValue(ctx, in.Cache(name).c, n, true)
}

// PassedForGood makes sure of it for SetValueOnly, within a minute.
func (in Inner) PassedForGood(ctx context.Context, changed *store.Row) error {
	r, stop := in.s.requestWithin(ctx, time.Minute)
	defer stop()
	return in.s.passedForGood(r.ctx, changed)
}

// OrderedForGood does for ORDER.
func (in Inner) OrderedForGood(ctx context.Context, changed *store.Row) error {
	return in.s.servers.orderedForGood(ctx, changed)
}

// TakeBackOrder undoes an ORDER that could not be made sure of, and says what the sequence is.
func (in Inner) TakeBackOrder(ctx context.Context, changed *store.Row) string {
	r, stop := in.s.request(ctx)
	defer stop()
	return in.s.takeBackOrder(r.ctx, changed)
}

// CreateOrdered makes an ORDER sequence on all members. ordered says whether it is one at once.
func (in Inner) CreateOrdered(ctx context.Context, name string, start uint64) (ordered bool, err error) {
	made, err := in.s.servers.create(ctx, CreateOptions{Name: name}, define.Definition{Name: name, Start: start, Increment: 1, Order: true})
	return !made.unordered, err
}

// MoveTo has a row be at n on all members, as who changes a sequence does.
func (in Inner) MoveTo(ctx context.Context, name string, n uint64) error {
	return in.s.servers.under(ctx, func(w *view) error {
		_, err := w.change(ctx, name, func(*agreed, *store.Row) (uint64, bool, error) { return n, true, nil })
		return err
	})
}

// ChangeWith has f be in the middle of a change of a definition.
func (in Inner) ChangeWith(ctx context.Context, name string, f func() error) error {
	w, err := in.s.servers.ready(ctx)
	if err != nil {
		return err
	}
	return w.edit(ctx, 1, name, func(*edit) error { return nil }, func(*agreed) error { return f() })
}

// Following is held during a round of following, and ReadingPlan while the plan is read.
func (in Inner) Following() await.Lock { return in.s.follow.work }

// ReadingPlan is held while the plan is read.
func (in Inner) ReadingPlan() await.Lock { return in.s.servers.changing }

// Several says whether numbers are divided among members, as far as is known.
func (in Inner) Several() bool { return in.s.servers.view.Load().several() }

// ForgetPlan has it know of no plan, and of the first server alone.
func (in Inner) ForgetPlan() {
	in.First().Place.Store(nil)
	in.s.servers.view.Store(&view{settled: true, members: in.s.servers.all[:1]})
}

// View is what a process knows of the members at one time.
type View struct {
	w      *view
	places []*segment.Share
}

// View is what is known now.
func (in Inner) View() View {
	w := in.s.servers.view.Load()
	v := View{w: w}
	for _, member := range w.members {
		v.places = append(v.places, member.Place.Load())
	}
	return v
}

// SeeAgain has it know what it knew before, and that some members are left out.
func (in Inner) SeeAgain(v View, out func(Server) bool) {
	in.s.servers.changing.MustAcquire()
	defer in.s.servers.changing.Release()
	in.s.servers.view.Store(v.w)
	for i, member := range v.w.members {
		member.Place.Store(v.places[i])
	}
	for _, member := range v.w.members {
		if out(in.server(member)) {
			member.leaveOut(errExcluded) // it cannot tell why
		}
	}
}

// SetHome has a member be taken for the home of a sequence; "" forgets it.
func (in Inner) SetHome(name, id string) {
	in.s.servers.mu.Lock()
	defer in.s.servers.mu.Unlock()
	if in.s.servers.homes[name] = id; id == "" {
		delete(in.s.servers.homes, name)
	}
}

// HasHome says whether a home was heard of.
func (in Inner) HasHome(name string) bool {
	in.s.servers.mu.Lock()
	defer in.s.servers.mu.Unlock()
	_, known := in.s.servers.homes[name]
	return known
}

// Stranger is a server as a process sees it that knows nothing of it. The caller closes it.
func (in Inner) Stranger(o ServerOptions) (Server, error) {
	if err := o.setDefaults(); err != nil {
		return Server{}, err
	}
	v, err := newServer(in.s.opts, o, in.s.tuning, &stats.Counters{Scores: stats.NewScores()}, floor.NewMarks())
	if err != nil {
		return Server{}, err
	}
	return in.server(v), nil
}

// Tickets is the server that has the ticket tables.
func (in Inner) Tickets() *store.Store { return in.s.servers.tickets.Store }

// FlushTickets gives up what is in memory of a ticket table.
func FlushTickets(t *TicketTable) { t.flush() }

// CachedTickets is what is in memory of a ticket table.
func CachedTickets(t *TicketTable) Cache { return Cache{t.cache} }

// Completed are the options of a server with what is left out.
func Completed(o ServerOptions) (ServerOptions, error) {
	err := o.setDefaults()
	return o, err
}

// Servers are those that are configured.
func (in Inner) Servers() []ServerOptions { return in.s.opts.Servers }

// SetServers replaces those that are configured.
func (in Inner) SetServers(all []ServerOptions) { in.s.opts.Servers = all }

// ListHere is what is in memory, as SHOW SEQUENCES has it while no server answers.
func (in Inner) ListHere() []Info { return in.s.listHere() }

// SetUsualTiming undoes what quick has set.
func SetUsualTiming(o *Options) { o.timing = nil }

// Bounds of the program.
const (
	MostSteps    = maxSteps
	MostBlock    = maxBlock
	CeilingAhead = ceilingAhead
	OpenStates   = openStates
)

// Defined is the definition that CREATE makes.
func Defined(o *CreateOptions) define.Definition { return o.definition() }
