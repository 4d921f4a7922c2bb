package sequence_test

import (
	"testing"
	"time"

	"seqproxy/sequence"
)

// One of two members is restored from a backup without a ceiling that the other one was given
// since, and then the other one is removed.
func TestAMemberThatWasRestoredLearnsTheCeilingsOfTheOthersAgain(t *testing.T) {
	const name = "photos"
	for _, how := range []string{"while it is away", "unnoticed, but for its rows"} {
		t.Run(how, func(t *testing.T) {
			t.Parallel()
			e, h := newPlanEstate(t, 2, map[string]uint64{name: 0}), newGivenEver()
			there := e.otherSide(t)
			patient := patience(30 * time.Second)
			before, s, other := e.open(t, steadySize(5), patient), e.open(t, steadySize(5), patient), there.open(t, steadySize(5), patient)
			ceilingsAhead(before, 300)
			for _, p := range []*sequence.Sequences{s, other} {
				ceilingsAhead(p, 1_000_000) // so that none is raised by what is taken later
			}
			e.change(t, before, sequence.PlanChange{Add: e.addr(1)})
			takeAll(t, before, h, name, 40)
			backed := []string{"sequence", "sequence_limit"}
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
					return sequence.Inside(s).Members()[0].Away() && sequence.Inside(other).Members()[0].Away()
				})
			}
			restored := backed
			if away {
				// the rows are another matter: a proxy that counted there raises them
				restored = backed[1:]
			}
			for _, table := range restored {
				e.places[0].exec(t, "DELETE FROM "+table)
				e.places[0].exec(t, "INSERT INTO "+table+" SELECT * FROM backup_"+table)
			}
			if away {
				e.links[0].Mend()
				there.links[0].Mend()
			}
			ceiling := func(i int, column string) (n uint64) {
				t.Helper()
				err := e.places[i].db.QueryRow("SELECT IFNULL(MAX("+column+"), 0) FROM sequence_limit WHERE name = ? AND giver = ?", name, e.member(t, 1).ID).Scan(&n)
				if err != nil {
					t.Fatal(err)
				}
				return n
			}
			eventually(t, "the restored member has the ceiling of the other", func() bool {
				if !away {
					takeAll(t, s, h, name, 1)
				}
				return ceiling(0, "wanted") >= ceiling(1, "granted")
			})

			// The network is cut: on the other side numbers continue up to the ceiling.
			e.links[1].Cut()
			there.links[0].Cut()
			e.change(t, s, sequence.PlanChange{Remove: e.addr(1), Force: true})
			if got, _ := toTheCeiling(t, other, h, name); got == 0 {
				t.Error("the member that is cut off gave no number, so this shows nothing")
			}
			takeAll(t, s, h, name, 2000)
		})
	}
}
