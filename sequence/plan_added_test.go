package sequence

import (
	"context"
	"fmt"
	"testing"
)

// A server fails while it is being added. The members go on as before without it, and when it is back it can be added, although it has heard of the change last.
func TestAServerThatFailsWhileItIsAddedIsAddedAfterwards(t *testing.T) {
	for _, members := range []int{1, 2} {
		for _, c := range []struct {
			step      string
			withdrawn bool // the members know nothing of the change any more
		}{{planProposed, false}, {planProposed, true}, {planFrozen, false}} {
			t.Run(fmt.Sprintf("%d members, %s, withdrawn %v", members, c.step, c.withdrawn), func(t *testing.T) {
				e, h := newPlanEstate(t, members+1, map[string]uint64{"photos": 100}), newGivenEver()
				s, now := e.open(t), Plan{}
				for i := 1; i < members; i++ {
					now = e.change(t, s, PlanChange{Add: e.addr(i)})
				}
				s.planHook = func(step, address string) error {
					if step == c.step && address == e.addr(members) {
						e.links[members].Cut()
					}
					return nil
				}
				add := PlanChange{Add: e.addr(members)}
				if _, err := s.ChangePlan(context.Background(), add); err == nil {
					t.Fatal("the change was made")
				}
				s.planHook = nil
				if c.withdrawn {
					for i := range members {
						e.places[i].exec(t, "DELETE FROM sequence_plan WHERE state = ?", planAborted)
					}
				}
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
}
