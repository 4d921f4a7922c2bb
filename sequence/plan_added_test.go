package sequence_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"seqproxy/sequence"
	"seqproxy/sequence/change"
)

// A server fails while it is being added. The members go on without it, and when it is back it can
// be added, although it was the last to learn of the change.
func TestAServerThatFailsWhileItIsAddedIsAddedAfterwards(t *testing.T) {
	for _, members := range []int{1, 2} {
		t.Run(fmt.Sprintf("%d members", members), func(t *testing.T) {
			t.Parallel()
			e, h := newPlanEstate(t, members+1, map[string]uint64{"photos": 100}), newGivenEver()
			s, now := e.open(t), sequence.Plan{}
			for i := 1; i < members; i++ {
				now = e.change(t, s, sequence.PlanChange{Add: e.addr(i)})
			}
			sequence.Inside(s).OnPlanStep(func(step, address string) error {
				if step == change.Proposed && address == e.addr(members) {
					e.links[members].Cut()
				}
				return nil
			})
			add := sequence.PlanChange{Add: e.addr(members)}
			if _, err := s.ChangePlan(context.Background(), add); err == nil {
				t.Fatal("the change was made")
			}
			sequence.Inside(s).OnPlanStep(nil)
			e.links[members].Mend()
			for i := range members {
				got, err := e.reserve(t, i, "photos", 3)
				if err != nil {
					t.Fatal(err)
				}
				h.add(t, "photos", got...)
			}
			now = e.change(t, s, add)
			if len(now.Members) != members+1 {
				t.Fatalf("got %+v", now)
			}
			e.everyoneGives(t, h, now, "photos")
			e.nothingIsLeft(t, h, "photos")
		})
	}
}

// A server fails after it was frozen while it is being added. All that must accept the change do,
// and it obeys when it is back.
func TestAServerThatFailsFrozenWhileItIsAddedObeysWhenItIsBack(t *testing.T) {
	e, h := newPlanEstate(t, 2, map[string]uint64{"photos": 100}), newGivenEver()
	s := e.open(t)
	sequence.Inside(s).OnPlanStep(func(step, address string) error {
		if step == change.Frozen && address == e.addr(1) {
			e.links[1].Cut()
		}
		return nil
	})
	now := e.change(t, s, sequence.PlanChange{Add: e.addr(1)})
	if len(now.Members) != 2 || len(now.Away) != 1 || now.Away[0] != e.addr(1) {
		t.Errorf("got %+v, want two members, and that %s is away", now, e.addr(1))
	}
	all, err := s.SequenceServers(t.Context())
	if err != nil || len(all) != 2 || all[1].State != "away" {
		t.Errorf("got %+v, %v, want that the second one is away", all, err)
	}
	h.add(t, "photos", mustTake(t, s, "photos", 1))
	e.links[1].Mend()
	e.met(t, e.open(t))
	e.everyoneGives(t, h, now, "photos")
}

// A server once served others, who dropped sequences with the names of some here. When it is added
// these stay, whether they have options or were made by hand, and numbers go on above what was
// given on either side.
func TestAServerThatIsAddedDropsNoSequence(t *testing.T) {
	e, h := newPlanEstate(t, 3, map[string]uint64{"photos": 100}), newGivenEver()
	s := e.open(t, steadySize(5), patience(30*time.Second))
	mustCreate(t, s, sequence.CreateOptions{Name: "albums", Comment: "of photos"})
	elsewhere := openWith(t, sequence.Options{Servers: []sequence.ServerOptions{e.options(1)}, Tuning: sequence.Tuning{CreateTable: true}})
	for _, name := range []string{"photos", "albums"} {
		mustCreate(t, elsewhere, sequence.CreateOptions{Name: name, Start: 5000})
		if got := mustTake(t, elsewhere, name, 1); got != 5000 {
			t.Fatalf("got %d, want 5000", got)
		}
		if _, err := elsewhere.Drop(t.Context(), []byte(name), false); err != nil {
			t.Fatal(err)
		}
	}
	if err := elsewhere.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, change := range []sequence.PlanChange{{Add: e.addr(1)}, {Add: e.addr(2)}, {Remove: e.addr(0)}} {
		now := e.change(t, s, change)
		other := e.open(t, steadySize(5), patience(30*time.Second), e.first(1))
		for _, name := range []string{"photos", "albums"} {
			if exists, err := other.Exists(t.Context(), []byte(name)); !exists || err != nil {
				t.Errorf("after %+v: %s is known: %v, %v", change, name, exists, err)
			}
			takeAll(t, other, h, name, 20)
			takeAll(t, s, h, name, 20)
			for n := range h.all[name] {
				if n <= 5000 {
					t.Errorf("after %+v: %s: %d was given, want none below what the server that was added gave", change, name, n)
				}
			}
		}
		if def, _, err := other.Describe(t.Context(), []byte("albums")); err != nil || def.Comment != "of photos" {
			t.Errorf("after %+v: albums is described as %+v, %v", change, def, err)
		}
		e.everyoneGives(t, h, now, "photos", "albums")
	}
}

// A server is removed, set up anew, and added again, and knows nothing of the proxies that were
// registered with it before. Their cached numbers stay valid.
func TestAServerThatIsSetUpAnewAndAddedAgainVoidsNothing(t *testing.T) {
	e := newPlanEstate(t, 2, map[string]uint64{"photos": 100})
	s, holder := e.open(t, patience(30*time.Second)), e.open(t, steadySize(1000), patience(30*time.Second))
	e.change(t, s, sequence.PlanChange{Add: e.addr(1)})
	confirmed := func() bool { // the version that it obeys
		var n int
		err := e.places[1].db.QueryRow("SELECT COUNT(*) FROM sequence_proxy WHERE id = ? AND version > 0", sequence.Inside(holder).ID()).Scan(&n)
		return err == nil && n == 1
	}
	first := mustTake(t, holder, "photos", 1)
	eventually(t, "the proxy is registered with the second server", confirmed)
	now := e.change(t, s, sequence.PlanChange{Remove: e.addr(1)})
	eventually(t, "it knows that this one has left", func() bool { return sequence.Inside(holder).Plan().Number == now.Number })
	if err := sequence.Inside(holder).Following().Acquire(t.Context()); err != nil {
		// No heartbeat is on its way there either, which would notice a missing entry.
		t.Fatal(err)
	}
	sequence.Inside(holder).FollowAgain()
	for _, table := range []string{"sequence_plan", "sequence_plan_start", "sequence_member", "sequence_options", "sequence_version", "sequence_proxy", "sequence_holder", "sequence_limit", "sequence"} {
		e.places[1].exec(t, "DROP TABLE "+table)
	}
	now = e.change(t, s, sequence.PlanChange{Add: e.addr(1)})
	eventually(t, "it is registered with the new one", confirmed)
	if next := mustTake(t, holder, "photos", 1); next != first+1 {
		t.Errorf("got %d after %d, want the next one from memory", next, first)
	}
	h := newGivenEver()
	takeAll(t, holder, h, "photos", 5000)
	takeAll(t, s, h, "photos", 100)
	e.everyoneGives(t, h, now, "photos")
}
