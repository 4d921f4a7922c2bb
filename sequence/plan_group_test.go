package sequence_test

import (
	"context"
	"errors"
	"testing"

	"seqproxy/sequence"
)

// A group stays the only sequence server, and a member of a plan that becomes a group gives no
// number.
func TestAGroupIsNoneOfSeveralServers(t *testing.T) {
	e, other := startEstate(t, 2, "photos"), newPlace(t)
	m := e.join(t, "a", &given{}, func(o *sequence.Options) { o.NoDirectWriters = true })
	m.take(t, "a", "photos", 5)
	_, err := m.ChangePlan(t.Context(), sequence.PlanChange{Add: other.server.Addr()})
	if !errors.Is(err, sequence.ErrSeveral) {
		t.Errorf("a server beside the group: got %v, want ErrSeveral", err)
	}
	wantText(t, err, "is a group", sequence.GroupWayOut)
	m.take(t, "a", "photos", 5)

	// Two servers divided the numbers, and the first one has become a group since.
	v, ctx := sequence.Inside(m.Sequences).First(), context.Background()
	id, err := v.Plans.MemberID(ctx, v.Pool())
	if err != nil {
		t.Fatal(err)
	}
	fresh := e.join(t, "b", &given{}, func(o *sequence.Options) {
		p := &sequence.Plan{
			Number: 1, UUID: "11111111-1111-1111-1111-111111111111", State: sequence.PlanInForce, Interleave: sequence.InterleaveBlock, Block: 10,
			Members: []sequence.Member{{ID: id, Address: o.Servers[0].Nodes[0].Addr}, {ID: "b", Address: other.server.Addr()}},
		}
		if err := errors.Join(v.Plans.Save(ctx, v.Pool(), p), v.Plans.SaveMembership(ctx, v.Pool(), p.Of(id))); err != nil {
			t.Fatal(err)
		}
	})
	n, err := fresh.Take(t.Context(), []byte("photos"), 1)
	if !errors.Is(err, sequence.ErrUnfit) {
		t.Errorf("a group that is a member: got %d, %v, want ErrUnfit", n, err)
	}
	wantText(t, err, "it is a group", sequence.GroupWayOut)
}
