package sequence_test

import (
	"testing"

	"seqproxy/sequence"
	"seqproxy/sequence/change"
)

// An application makes rows by hand while the others are frozen, and one member obeys only after it
// gave numbers of such a row. The new server begins above them, and above the number in a row.
func TestARowThatIsMadeByHandWhileTheOthersAreFrozenIsKnownToTheNewServer(t *testing.T) {
	e, h := newPlanEstate(t, 2, map[string]uint64{"photos": 100}), newGivenEver()
	s, other := e.open(t), e.open(t)
	takeAll(t, other, h, "photos", 10)
	steps := 0
	sequence.Inside(s).OnPlanStep(func(step, address string) error {
		switch {
		case step == change.Frozen && address == e.addr(0):
			e.places[0].exec(t, "INSERT INTO sequence VALUES ('late', 500)")
			takeAll(t, other, h, "late", 50)
			steps++
		case step == change.Accepted:
			takeAll(t, other, h, "late", 50)
			e.places[0].exec(t, "INSERT INTO sequence VALUES ('later', 700)")
			steps++
		}
		return nil
	})
	now := e.change(t, s, sequence.PlanChange{Add: e.addr(1)})
	if steps != 2 {
		t.Errorf("%d steps came, want 2", steps)
	}
	if stands := e.places[1].id(t, "late"); stands < h.high["late"] || h.high["late"] < 600 {
		t.Errorf("the new server goes on above %d, and %d was given", stands, h.high["late"])
	}
	if stands := e.places[1].id(t, "later"); stands < 700 {
		t.Errorf("the new server goes on above %d, and 700 was said to be given", stands)
	}
	for _, name := range []string{"photos", "late", "later"} {
		takeAll(t, s, h, name, 50)
		takeAll(t, other, h, name, 50)
	}
	e.everyoneGives(t, h, now, "photos", "late", "later")
}

// While the member is frozen nobody knows what such a row gives. A server that obeys before it does
// not know the row, and gets it later like any row that is made by hand.
func TestARowThatIsMadeByHandIsToldOfOnceItsMemberObeys(t *testing.T) {
	e, h := newPlanEstate(t, 2, map[string]uint64{"photos": 100}), newGivenEver()
	s, other := e.open(t), e.open(t)
	takeAll(t, other, h, "photos", 10)
	sequence.Inside(s).OnPlanStep(func(step, address string) error {
		if step != change.Accepted {
			return nil
		}
		e.places[0].exec(t, "INSERT INTO sequence VALUES ('late', 500)")
		first, added := e.server(t, s, 0).PlanStore(), e.server(t, s, 1).PlanStore()
		said, err := first.Report(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		p := said.Plans[len(said.Plans)-1]
		knowledge, err := first.Knowledge(t.Context(), &p)
		if err != nil {
			t.Fatal(err)
		}
		takeAll(t, other, h, "late", 50)
		if err := added.Obey(t.Context(), &p, knowledge.Floors, []change.Knowledge{knowledge}); err != nil || e.member(t, 1).Plan != p.Number {
			t.Errorf("it obeys: %v, %v", e.member(t, 1), err)
		}
		e.places[1].id(t, "photos")
		var rows int
		if err := e.places[1].db.QueryRow("SELECT COUNT(*) FROM sequence WHERE name = 'late'").Scan(&rows); err != nil || rows != 0 {
			t.Errorf("%d rows, %v; want none by what is not known", rows, err)
		}
		return nil
	})
	now := e.change(t, s, sequence.PlanChange{Add: e.addr(1)})
	for range 3 {
		takeAll(t, s, h, "late", 50)
		takeAll(t, other, h, "late", 50)
	}
	e.everyoneGives(t, h, now, "photos", "late")
}
