package sequence_test

import (
	"context"
	"database/sql"
	"errors"
	"testing"
	"time"

	"seqproxy/sequence"
	"seqproxy/sequence/change"
	"seqproxy/sequence/limit"
)

// The coordinator of a change dies once that is decided, or has begun on one member, and another
// proxy finishes it. Each member then knows how far the other may go, so that one that is left
// alone before its first reservation gives numbers.
func TestAMemberThatIsLeftAloneAfterAChangeWasResumedGivesNumbers(t *testing.T) {
	for _, step := range []string{change.Accepted, sequence.PlanInForce} {
		for alone := range 2 {
			t.Run(step+", "+[]string{"the first", "the second"}[alone], func(t *testing.T) {
				t.Parallel()
				e := newPlanEstate(t, 2, map[string]uint64{"photos": 100})
				died := e.open(t, steadySize(5))
				sequence.Inside(died).OnPlanStep(func(at, address string) error {
					if at == step {
						return errKilled
					}
					return nil
				})
				if _, err := changeUntil(context.Background(), died, sequence.PlanChange{Add: e.addr(1)}); err == nil {
					t.Fatal("the coordinator did not die")
				}
				s := e.open(t, steadySize(5), patience(30*time.Second))
				now, err := s.ChangePlan(context.Background(), sequence.PlanChange{Add: e.addr(1)})
				if err != nil || len(now.Members) != 2 {
					t.Fatalf("got %+v, %v; want a plan of both", now, err)
				}
				for i := range 2 {
					goes, recorded := e.limit(t, i, i, now.Number).Granted, e.limit(t, 1-i, i, now.Number).Wanted
					if goes == 0 || goes > recorded {
						t.Errorf("member %d goes up to %d by itself, and the other one has recorded %d", i, goes, recorded)
					}
				}
				sequence.Inside(s).StartFollowing()
				eventually(t, "the proxy follows the plan of both", func() bool { return sequence.Inside(s).Several() })
				e.links[1-alone].Cut()
				takeAll(t, s, newGivenEver(), "photos", 50)
			})
		}
	}
}

// limit returns how far a member may go with photos, as one of them has recorded it.
func (e *planEstate) limit(t *testing.T, at, giver int, plan uint64) (l limit.Limit) {
	t.Helper()
	err := e.places[at].db.QueryRow("SELECT wanted, granted FROM sequence_limit WHERE name = 'photos' AND giver = ? AND term = ?", e.member(t, giver).ID, plan).Scan(&l.Wanted, &l.Granted)
	if err != nil && !errors.Is(err, sql.ErrNoRows) {
		t.Fatal(err)
	}
	return l
}
