package sequence_test

import (
	"errors"
	"testing"

	"seqproxy/sequence"
)

// Two proxies make the first plan, one of them with one more server, and that one dies in between.
// A member would have different places in the two, and its numbers would be those of others.
func TestTwoFirstPlansAreNotTakenForOne(t *testing.T) {
	f := newFleet(t, 3)
	two := f[:2].open(t, inSteps)
	createOn(t, two, "photos")
	mustTake(t, two, "photos", 1)

	three := fleet{f[2], f[0], f[1]}.open(t, inSteps)
	plan := &sequence.Plan{Number: 1, UUID: "22222222-2222-2222-2222-222222222222", State: sequence.PlanInForce, Interleave: sequence.InterleaveStep}
	for _, v := range sequence.Inside(three).Servers() {
		id, err := v.Plans.MemberID(t.Context(), v.Pool())
		if err != nil {
			t.Fatal(err)
		}
		plan.Members = append(plan.Members, sequence.Member{ID: id, Address: v.Address()})
	}
	v := sequence.Inside(three).Servers()[0]
	if err := errors.Join(v.Plans.Save(t.Context(), v.Pool(), plan), v.Plans.SaveMembership(t.Context(), v.Pool(), plan.Of(plan.Members[0].ID))); err != nil {
		t.Fatal(err)
	}

	took, err := three.TakeRun(t.Context(), []byte("photos"), 1)
	if !errors.Is(err, sequence.ErrUnfit) {
		t.Fatalf("got %+v, %v, want ErrUnfit", took, err)
	}
	wantText(t, err, "configurations name different sequence servers", f[0].server.Addr())
	mustTake(t, two, "photos", 1)
	mustTake(t, f.open(t, inSteps), "photos", 1) // it meets the plan of the two first
}
