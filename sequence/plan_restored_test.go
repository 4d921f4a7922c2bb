package sequence_test

import (
	"strings"
	"testing"
	"time"

	"seqproxy/sequence"
)

// memberTables are those that a backup of a member has, without the list of proxies.
var memberTables = []string{"sequence", "sequence_member", "sequence_options", "sequence_version", "sequence_plan", "sequence_plan_start", "sequence_limit"}

// backUp copies the contents of a server; restore brings them back.
func (e *planEstate) backUp(t *testing.T, i int) (restore func()) {
	t.Helper()
	p := e.places[i]
	for _, table := range memberTables {
		p.exec(t, "CREATE TABLE backup_of_"+table+" AS SELECT * FROM "+table)
	}
	return func() {
		t.Helper()
		for _, table := range memberTables {
			p.exec(t, "DELETE FROM "+table)
			p.exec(t, "INSERT INTO "+table+" SELECT * FROM backup_of_"+table)
		}
	}
}

// One of two members is restored from a backup of an older plan, while the other one is away. A
// proxy that knows the newer plan does not return to the older one, by which the restored member
// would give the other's numbers. Nor does it if both were restored.
func TestAProxyDoesNotGoBackToAnOlderPlan(t *testing.T) {
	e, h := newPlanEstate(t, 3, map[string]uint64{"photos": 0}), newGivenEver()
	admin := e.open(t)
	e.change(t, admin, sequence.PlanChange{Add: e.addr(1)})
	e.change(t, admin, sequence.PlanChange{Add: e.addr(2)})
	restoreOther, restore := e.backUp(t, 0), e.backUp(t, 1)
	now := e.change(t, admin, sequence.PlanChange{Remove: e.addr(2)})
	e.links[2].Cut() // which is gone for good

	s := e.open(t, steadySize(3), patience(20*time.Second))
	h.add(t, "photos", mustTake(t, s, "photos", 1))
	settled(t, s, "photos")
	s.Tune(sequence.Tuning{CacheSize: 3, OutageCover: time.Nanosecond, AllocateTimeout: time.Second, CreateTable: true, NoDirectWriters: true})
	for range 4 { // the first one serves other proxies
		got, err := e.reserve(t, 0, "photos", 40)
		if err != nil {
			t.Fatal(err)
		}
		h.add(t, "photos", got...)
	}
	e.links[0].Cut()
	restore()
	staysWith := func() {
		t.Helper()
		for deadline := time.Now().Add(30 * time.Second); ; {
			number, err := s.Take(t.Context(), []byte("photos"), 1)
			if err == nil {
				h.add(t, "photos", number) // from the cache, or of the plan that it knows
				if time.Now().Before(deadline) {
					continue
				}
				t.Fatal("it goes on giving numbers")
			}
			t.Log(err)
			if strings.Contains(err.Error(), "is in force") {
				wantText(t, err, "stop all proxies")
				break
			}
			if time.Now().After(deadline) {
				t.Fatalf("got %v, want an error that tells of the plan in force", err)
			}
		}
		if got := sequence.Inside(s).Plan().Number; got != now.Number {
			t.Errorf("it follows plan %d, want %d", got, now.Number)
		}
	}
	staysWith()
	e.links[0].Mend()
	eventually(t, "it gives numbers again", func() bool {
		number, err := s.Take(t.Context(), []byte("photos"), 1)
		if err == nil {
			h.add(t, "photos", number)
		}
		return err == nil
	})

	// Both at once: a proxy brings one that was restored to the plan that the other one still knows.
	e.links[0].Cut()
	e.links[1].Cut()
	restoreOther()
	restore()
	e.links[0].Mend()
	e.links[1].Mend()
	staysWith()
}
