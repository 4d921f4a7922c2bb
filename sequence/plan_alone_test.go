package sequence

import (
	"context"
	"testing"
	"time"

	"seqproxy/sequence/change"
)

// The coordinator of a change dies once that is decided, or has begun on one member, and another proxy finishes it. Each member then knows how far the other may go, so that the one
// that is left alone before its first reservation gives numbers.
func TestAMemberThatIsLeftAloneAfterAChangeWasResumedGivesNumbers(t *testing.T) {
	for _, step := range []string{change.Accepted, PlanInForce} {
		for alone := range 2 {
			t.Run(step+", "+[]string{"the first", "the second"}[alone], func(t *testing.T) {
				t.Parallel()
				e := newPlanEstate(t, 2, map[string]uint64{"photos": 100})
				died := e.open(t, steadySize(5))
				died.planHook = func(at, address string) error {
					if at == step {
						return errKilled
					}
					return nil
				}
				if _, err := died.ChangePlan(context.Background(), PlanChange{Add: e.addr(1)}); err == nil {
					t.Fatal("the coordinator did not die")
				}
				s := e.open(t, steadySize(5), patience(30*time.Second))
				now, err := s.ChangePlan(context.Background(), PlanChange{Add: e.addr(1)})
				if err != nil || len(now.Members) != 2 {
					t.Fatalf("got %+v, %v; want a plan of both", now, err)
				}
				for i := range 2 {
					own, known := e.bounds(t, i, now.Number), e.bounds(t, 1-i, now.Number)
					if own.own == 0 || own.own > known.bound {
						t.Errorf("member %d goes up to %d by itself, and the other one knows of %d", i, own.own, known.bound)
					}
				}
				s.startFollowing()
				eventually(t, "the proxy goes by the plan of both", func() bool { return s.servers.view.Load().several() })
				e.links[1-alone].Cut()
				takeAll(t, s, newGivenEver(), "photos", 50)
			})
		}
	}
}

// boundsOf is what a member knows of a sequence.
type boundsOf struct{ bound, own uint64 }

func (e *planEstate) bounds(t *testing.T, i int, plan uint64) (known boundsOf) {
	t.Helper()
	err := e.places[i].db.QueryRow("SELECT `bound`, `own_bound` FROM sequence_plan_start WHERE `plan` = ? AND `name` = 'photos'", plan).Scan(&known.bound, &known.own)
	if err != nil {
		t.Fatal(err)
	}
	return known
}
