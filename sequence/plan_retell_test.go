package sequence

import (
	"testing"
	"time"
)

// One of two members is restored from a backup that knows of no bound that the other one was given since, and then the other one is taken out.
func TestAMemberThatWasRestoredLearnsTheBoundsOfTheOthersAgain(t *testing.T) {
	const name = "photos"
	for _, how := range []string{"while it is away", "unnoticed, but for its rows"} {
		t.Run(how, func(t *testing.T) {
			t.Parallel()
			e, h := newPlanEstate(t, 2, map[string]uint64{name: 0}), newGivenEver()
			there := e.otherSide(t)
			patient := patience(30 * time.Second)
			before, s, other := e.open(t, steadySize(5), patient), e.open(t, steadySize(5), patient), there.open(t, steadySize(5), patient)
			boundsAhead(before, 300)
			for _, p := range []*Sequences{s, other} {
				boundsAhead(p, 1_000_000) // so that none is raised by what is taken later
			}
			e.change(t, before, PlanChange{Add: e.addr(1)})
			takeAll(t, before, h, name, 40)
			backed := []string{"sequence", "sequence_plan_start"}
			for _, table := range backed {
				e.places[0].exec(t, "CREATE TABLE backup_"+table+" AS SELECT * FROM "+table)
			}
			takeAll(t, other, h, name, 100)
			takeAll(t, s, h, name, 2000) // last: who lives knows how far the member had gone

			away := how == "while it is away"
			if away {
				e.links[0].Cut()
				there.links[0].Cut()
				eventually(t, "it is left out", func() bool {
					takeAll(t, s, h, name, 1)
					return s.servers.members()[0].away.Load() && other.servers.members()[0].away.Load()
				})
			}
			restored := backed
			if away {
				restored = backed[1:] // the rows are another matter: a proxy that counted there raises them
			}
			for _, table := range restored {
				e.places[0].exec(t, "DELETE FROM "+table)
				e.places[0].exec(t, "INSERT INTO "+table+" SELECT * FROM backup_"+table)
			}
			if away {
				e.links[0].Mend()
				there.links[0].Mend()
			}
			bound := func(i int, column string) (n uint64) {
				t.Helper()
				if err := e.places[i].db.QueryRow("SELECT "+column+" FROM sequence_plan_start WHERE name = ? ORDER BY plan DESC LIMIT 1", name).Scan(&n); err != nil {
					t.Fatal(err)
				}
				return n
			}
			eventually(t, "the restored member knows the bound of the other", func() bool {
				if !away {
					takeAll(t, s, h, name, 1)
				}
				return bound(0, "bound") >= bound(1, "own_bound")
			})

			// The network is cut: on the other side numbers go on up to the bound.
			e.links[1].Cut()
			there.links[0].Cut()
			e.change(t, s, PlanChange{Remove: e.addr(1), Force: true})
			if got, _ := toTheBound(t, other, h, name); got == 0 {
				t.Error("the member that is cut off gave no number, so this shows nothing")
			}
			takeAll(t, s, h, name, 2000)
		})
	}
}
