package sequence

import (
	"context"
	"database/sql"
	"time"

	"seqproxy/sequence/change"
	"seqproxy/sequence/group"
	"seqproxy/sequence/link"
	"seqproxy/sequence/segment"
	"seqproxy/sequence/stats"
	"seqproxy/sequence/store"
)

// Server is one sequence server as it is used by a proxy.
type Server struct {
	*store.Store
	s *Sequences
	v *server
}

func (in Inner) server(v *server) Server { return Server{v.Store, in.s, v} }

// Address is the one that is configured.
func (v Server) Address() string { return v.v.opts.Addr }

// Away says whether it is left out while others serve.
func (v Server) Away() bool { return v.v.away.Load() }

// LeaveOut has it be left out.
func (v Server) LeaveOut(err error) { v.v.leaveOut(err) }

// TakeIn ends LeaveOut.
func (v Server) TakeIn() { v.v.takeIn() }

// AskAt has it be asked for changes at a time, after it was away. Nothing is followed meanwhile.
func (v Server) AskAt(at time.Time) { v.v.follow.again = at }

// AskedAt is when it is asked for changes after it was away. Nothing is followed meanwhile.
func (v Server) AskedAt() time.Time { return v.v.follow.again }

// TryTime is how long it may take before another one is asked.
func (v Server) TryTime() time.Duration { return v.v.tryTime() }

// Enlist registers this process there.
func (v Server) Enlist(ctx context.Context) error { return v.v.enlist(ctx) }

// SeenAt is where the row of a sequence was seen last, or 0.
func (v Server) SeenAt(name string) uint64 {
	return v.v.lowest.seenAt(name, v.Marks.Epoch(name), v.Share().Plan)
}

// Reserve takes numbers there, with what that needs.
func (v Server) Reserve(ctx context.Context, name string, want, need uint64) (Grant, error) {
	g, err := v.s.servers.reserveOn(ctx, v.v, name, want, need)
	return granted(g), err
}

// ReserveAsMember is Reserve under the plan in use, and takes as long as a member may take.
func (v Server) ReserveAsMember(ctx context.Context, name string, want, need uint64) (Grant, error) {
	w := v.s.servers.view.Load()
	g, err := v.s.servers.reserveWith(ctx, w, v.v, name, want, need, v.v.tryTime())
	return granted(g), err
}

// ReserveOnce takes numbers there in one attempt.
func (v Server) ReserveOnce(ctx context.Context, name string, n uint64) (Grant, error) {
	did := v.v.attempt(ctx, []*server{v.v}, name, n)
	return granted(did.grant), did.Err
}

// GoAhead does what a reservation has left to be done.
func (v Server) GoAhead(ctx context.Context, name string, g Grant) {
	v.s.servers.goAhead(ctx, name, g.of.due)
}

// GiveBack puts numbers back into the row.
func (v Server) GiveBack(ctx context.Context, name string, epoch uint64, seg segment.Segment) (bool, error) {
	return v.v.giveBack(ctx, name, epoch, seg)
}

// TakeBack undoes a reservation that cannot be used.
func (v Server) TakeBack(ctx context.Context, name string, seg segment.Segment) {
	v.v.takeBack(ctx, name, v.Marks.Epoch(name), seg)
}

// MayGive says whether what was taken on a connection may be given.
func (v Server) MayGive(ctx context.Context, conn *sql.Conn, t *store.Taking, stored *store.Row) error {
	return v.v.mayGive(ctx, conn, nil, t, stored)
}

// Ceilings are those of its nodes.
func (v Server) Ceilings() *group.Ceilings { return v.v.ceilings }

// RecordedCeiling is the one that other members have recorded.
func (v Server) RecordedCeiling(ctx context.Context, name string, plan uint64) (uint64, error) {
	return v.v.recordedCeiling(ctx, v.Pool(), name, plan)
}

// RecordCeiling has the other members record one.
func (v Server) RecordCeiling(ctx context.Context, name string, ceiling uint64) error {
	return v.s.servers.recordCeiling(ctx, v.v, v.Share(), name, ceiling)
}

// PlanStore is what a change of members sees of it.
func (v Server) PlanStore() change.Store { return v.v.planStore() }

// Retries is how often this process has tried again.
func (v Server) Retries() uint64 { return v.v.counters.Retries.Load() }

// Hurry has it be asked for changes at once.
func (v Server) Hurry() { v.v.follow.hurry.Store(true) }

// WasRead says whether all definitions were read there once. Nothing is followed meanwhile.
func (v Server) WasRead() bool { return v.v.follow.loaded }

// Hear asks what was changed there since.
func (v Server) Hear(ctx context.Context) (store.Changes, error) {
	return v.ChangesSince(ctx, v.v.follow.seen, false)
}

// Obey does what Hear has heard, and tells the server.
func (v Server) Obey(ctx context.Context, heard store.Changes) error {
	return v.s.followServer(ctx, v.s.servers.view.Load(), v.v, heard)
}

// KnownSince is where signs of life are given, and since when.
func (v Server) KnownSince() (node *link.Node, since time.Time) {
	t := v.v.tenure.Load()
	return t.node.Node, t.since
}

// Lost is how many numbers were lost for a reason.
func (v Server) Lost(why stats.Unused) uint64 { return v.v.counters.Lost[why].Load() }

// MaxConns is how many connections there may be.
func (v Server) MaxConns() int { return v.v.opts.MaxConns }

// Lacks says what is known of a row that it lacks.
func (v Server) Lacks(name string) error { return v.s.servers.lacking(v.v, name) }
