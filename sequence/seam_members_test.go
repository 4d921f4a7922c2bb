package sequence

import (
	"cmp"
	"context"
	"database/sql"
	"time"

	"seqproxy/internal/await"
	"seqproxy/sequence/change"
	"seqproxy/sequence/floor"
	"seqproxy/sequence/group"
	"seqproxy/sequence/link"
	"seqproxy/sequence/member"
	"seqproxy/sequence/members"
	"seqproxy/sequence/segment"
	"seqproxy/sequence/stats"
	"seqproxy/sequence/steps"
	"seqproxy/sequence/store"
)

// Coordinate has f called as who makes a change of members.
func (in Inner) Coordinate(ctx context.Context, f func(*change.Coordinator) error) (Plan, error) {
	return in.s.planned(ctx, f)
}

// CoordinateHere is Coordinate that leaves this process with its plan.
func (in Inner) CoordinateHere(ctx context.Context, f func(*change.Coordinator) error) (Plan, error) {
	return in.s.asCoordinator(ctx, f)
}

// Interleave and Block are the options that are gone by.
func (in Inner) Interleave() (how string, block uint64) { return in.s.opts.Interleave, in.s.opts.Block }

// LastMember has the next reservation of a sequence be with the member after one of them.
func (in Inner) LastMember(name string, position int) {
	in.s.members.Next.AskedLast(name, position)
}

// Plan is the one that is gone by.
func (in Inner) Plan() Plan { return in.s.members.Now().Plan }

// Members are those in use, by position.
func (in Inner) Members() (all []Server) {
	for _, v := range in.s.members.Now().Members {
		all = append(all, in.server(v))
	}
	return all
}

// Servers are all that were ever members or configured. Those of the configuration come first.
func (in Inner) Servers() (all []Server) {
	servers, _ := in.s.members.All(context.Background())
	for _, v := range servers {
		all = append(all, in.server(v))
	}
	return all
}

// Call has servers that are known, and not yet used, be known by other addresses, over which they
// are not reached: so each proxy has ways of its own to the addresses of a plan.
func (in Inner) Call(names map[string]string) {
	servers, _ := in.s.members.All(context.Background())
	for _, v := range servers {
		for _, n := range v.Nodes() {
			n.Addr = cmp.Or(names[n.Addr], n.Addr)
		}
	}
}

// First is the first member, or the only server.
func (in Inner) First() Server { return in.server(in.s.members.First()) }

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
	v, err := in.s.newMember(o, in.s.members.Marks)
	if err == nil {
		in.s.members.Know(v)
	}
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
	v := in.s.members.Home(name)
	if v == nil {
		return nil
	}
	home := in.server(v)
	return &home
}

// ReadPlan asks the members which plan there is.
func (in Inner) ReadPlan(ctx context.Context) error {
	return in.s.members.Reread(ctx, in.s.members.Now())
}

// MeetPlan waits until it is known which plan there is.
func (in Inner) MeetPlan(ctx context.Context) error {
	_, err := in.s.members.Ready(ctx)
	return err
}

// Reserve takes numbers from any member, as a cache does.
func (in Inner) Reserve(ctx context.Context, name string, want, need uint64) (Grant, error) {
	g, err := in.s.members.Reserve(ctx, name, want, need)
	return granted(g), err
}

// CeilingsAhead has each ceiling be n numbers above need.
func (in Inner) CeilingsAhead(n uint64) {
	w := *in.s.members.Now()
	w.Ahead = n
	in.s.members.Ahead = n
	in.s.members.Use(&w)
}

// HasReserved says of each member how many reservations there were.
func (in Inner) HasReserved() (all []uint64) {
	for _, v := range in.s.members.Now().Members {
		h := v.Trials.Durations[stats.ReservedOK].Read()
		all = append(all, h.Count())
	}
	return all
}

// Enlisted reports whether this process has given signs of life for long, where it takes numbers.
func (in Inner) Enlisted() bool {
	return in.s.members.Now().Enlisted(new(member.Tenure), in.s.timing.tenure)
}

// ReadingPlan is held while the plan is read.
func (in Inner) ReadingPlan() await.Lock { return in.s.members.Changing }

// Several reports whether numbers are divided among members, as far as is known.
func (in Inner) Several() bool { return in.s.members.Now().Several() }

// ForgetPlan has it know of no plan, and of the first server alone.
func (in Inner) ForgetPlan() {
	alone := in.s.members.Configured()[:1]
	in.s.members.Use(&members.View{Settled: true, Among: member.Among{Members: alone, Ahead: in.s.members.Ahead}})
}

// View is what a process knows of the members at one time.
type View struct{ w *members.View }

// View is what is known now.
func (in Inner) View() View {
	return View{in.s.members.Now()}
}

// SeeAgain has it know what it knew before, and that some members are left out.
func (in Inner) SeeAgain(v View, out func(Server) bool) {
	in.s.members.Changing.MustAcquire()
	defer in.s.members.Changing.Release()
	in.s.members.Use(v.w)
	for _, v := range v.w.Members {
		if out(in.server(v)) {
			v.LeaveOut(member.ErrExcluded) // it cannot tell why
		}
	}
}

// SetHome has a member be taken for the home of a sequence; "" forgets it.
func (in Inner) SetHome(name, id string) {
	home := store.Row{Name: name}
	home.Def.Order, home.Home = id != "", id
	in.s.members.Next.SettleAt(&home)
}

// HasHome reports whether a home was heard of.
func (in Inner) HasHome(name string) bool {
	_, ok := in.s.members.Next.HomeOf(name)
	return ok
}

// Stranger is a server as a process sees it that knows nothing of it. The caller closes it.
func (in Inner) Stranger(o ServerOptions) (Server, error) {
	if err := o.setDefaults(); err != nil {
		return Server{}, err
	}
	v, err := in.s.newServer(o, &stats.Counters{Scores: stats.NewScores()}, floor.NewMarks())
	if err != nil {
		return Server{}, err
	}
	return in.server(v), nil
}

// Server is one sequence server as it is used by a proxy.
type Server struct {
	*store.Store
	s *Sequences
	v *server
}

func (in Inner) server(v *server) Server { return Server{v.Store, in.s, v} }

// Address is the one that is configured.
func (v Server) Address() string { return v.Config.Link.Name }

// Away reports whether it is left out while others serve.
func (v Server) Away() bool { return v.v.Away() }

// LeaveOut has it be left out.
func (v Server) LeaveOut(err error) { v.v.LeaveOut(err) }

// TakeIn ends LeaveOut.
func (v Server) TakeIn() { v.v.TakeIn() }

// AskAt has it be asked for changes at a time, after it was away. Nothing is followed meanwhile.
func (v Server) AskAt(at time.Time) { v.s.follower.Of(v.v).Again = at }

// AskedAt is when it is asked for changes after it was away. Nothing is followed meanwhile.
func (v Server) AskedAt() time.Time { return v.s.follower.Of(v.v).Again }

// TryTime is how long it may take before another one is asked.
func (v Server) TryTime() time.Duration { return v.v.TryTime() }

// Enlist registers this process there.
func (v Server) Enlist(ctx context.Context) error { return v.v.Enlist(ctx) }

// SeenAt is where the row of a sequence was seen last, or 0.
func (v Server) SeenAt(name string) uint64 {
	return v.v.SeenAt(name)
}

// Reserve takes numbers there, with what that needs.
func (v Server) Reserve(ctx context.Context, name string, want, need uint64) (Grant, error) {
	g, _, err := v.v.Reserve(ctx, &v.s.members.Now().Among, name, want, need)
	return granted(g), err
}

// ReserveFrom is a reservation of one number that began when the members were as in a view, and
// goes on now.
func (v Server) ReserveFrom(ctx context.Context, was View, name string) (Grant, error) {
	g, _, err := v.v.Reserve(ctx, &was.w.Among, name, 1, 1)
	return granted(g), err
}

// ReserveAsMember is Reserve under the plan in use, and takes as long as a member may take.
func (v Server) ReserveAsMember(ctx context.Context, name string, want, need uint64) (Grant, error) {
	w := v.s.members.Now()
	g, due, err := v.s.members.Next.ReserveWith(ctx, &w.Among, v.v, name, want, need, v.v.TryTime())
	if due.Server != nil {
		v.s.members.NoteDue(members.Due{Name: name, Due: due})
	}
	return granted(g), err
}

// ReserveOnce takes numbers there in one attempt.
func (v Server) ReserveOnce(ctx context.Context, name string, n uint64) (Grant, error) {
	did := v.v.Attempt(ctx, &v.s.members.Now().Among, name, n)
	return granted(did.Grant), did.Err
}

// GoAhead does what reservations have left to be done.
func (v Server) GoAhead(ctx context.Context) {
	for _, what := range v.s.members.TakeDue() {
		v.s.members.GoAhead(ctx, what)
	}
}

// GiveBack puts numbers back into the row.
func (v Server) GiveBack(ctx context.Context, name string, epoch uint64, seg segment.Segment) (bool, error) {
	return v.v.GiveBack(ctx, name, epoch, seg)
}

// TakeBack undoes a reservation that cannot be used.
func (v Server) TakeBack(ctx context.Context, name string, seg segment.Segment) {
	v.v.TakeBack(ctx, name, v.Marks.Epoch(name), seg)
}

// MayGive reports whether what was taken on a connection may be given.
func (v Server) MayGive(ctx context.Context, conn *sql.Conn, t *store.Taking, stored *store.Row) error {
	return v.v.MayGive(ctx, conn, nil, t, stored)
}

// Ceilings are those of its nodes.
func (v Server) Ceilings() *group.Ceilings { return v.v.Ceilings }

// RecordedCeiling is the one that other members have recorded.
func (v Server) RecordedCeiling(ctx context.Context, name string, plan uint64) (uint64, error) {
	return v.v.RecordedCeiling(ctx, v.Pool(), name, plan)
}

// RecordCeiling has the other members record one.
func (v Server) RecordCeiling(ctx context.Context, name string, ceiling uint64) error {
	return v.v.RecordCeiling(ctx, &v.s.members.Now().Among, v.Share(), name, ceiling)
}

// PlanStore is what a change of members sees of it.
func (v Server) PlanStore() change.Store { return steps.On(v.Store) }

// Retries is how often this process has tried again.
func (v Server) Retries() uint64 { return v.s.counters.Retries.Load() }

// Hurry has it be asked for changes at once.
func (v Server) Hurry() { v.s.follower.Hurry(v.v) }

// WasRead reports whether all definitions were read there once. Nothing is followed meanwhile.
func (v Server) WasRead() bool { return v.s.follower.Of(v.v).Loaded }

// Hear asks what was changed there since.
func (v Server) Hear(ctx context.Context) (store.Changes, error) {
	return v.ChangesSince(ctx, v.s.follower.Of(v.v).Seen, false)
}

// Obey does what Hear has heard, and tells the server.
func (v Server) Obey(ctx context.Context, heard store.Changes) error {
	return v.s.follower.Follow(ctx, v.s.members.Now(), v.v, heard)
}

// HeartbeatsTo is where signs of life are given, and since when.
func (v Server) HeartbeatsTo() (node *link.Node, since time.Time) {
	return v.v.HeartbeatsTo()
}

// Lost is how many numbers were lost for a reason.
func (v Server) Lost(why stats.Unused) uint64 { return v.s.counters.Lost[why].Load() }

// MaxConns is how many connections there may be.
func (v Server) MaxConns() int { return v.Config.Link.MaxConns }

// Lacks says what is known of a row that it lacks.
func (v Server) Lacks(name string) error { return v.s.members.Next.Lacks(v.v, name) }

// Proxies are those that are registered with the sequence server, in the order in which they came.
func (in Inner) Proxies(ctx context.Context) ([]Proxy, error) {
	r, stop := in.s.request(ctx)
	defer stop()
	all, err := in.s.members.Now().Proxies(r.ctx)
	if err != nil {
		return nil, r.failed("", err)
	}
	return all, nil
}
