package sequence_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"seqproxy/sequence"
	"seqproxy/sequence/change"
	"seqproxy/sequence/store"
	"seqproxy/test/mysqltest"
)

// otherSide is the same servers over separate links, by which proxies reach the addresses of e.
func (e *planEstate) otherSide(t *testing.T) *planEstate {
	t.Helper()
	o := &planEstate{places: e.places, names: make(map[string]string)}
	for i, p := range e.places {
		o.links = append(o.links, mysqltest.NewLink(t, p.server.Addr()))
		o.names[o.addr(i)] = e.addr(i)
	}
	return o
}

// ceilingsAhead has a proxy set ceilings at most n ahead.
func ceilingsAhead(s *sequence.Sequences, n uint64) {
	sequence.Inside(s).CeilingsAhead(n)
}

// takeAll takes n numbers one by one.
func takeAll(t *testing.T, s *sequence.Sequences, h *givenEver, name string, n int) {
	t.Helper()
	for range n {
		h.add(t, name, mustTake(t, s, name, 1))
	}
}

// toTheCeiling reserves all numbers that a proxy can which reaches one member alone, and returns
// their count and the error that ended it.
func toTheCeiling(t *testing.T, s *sequence.Sequences, h *givenEver, name string) (got int, end error) {
	t.Helper()
	eventually(t, "the ceiling is reached", func() bool {
		g, err := sequence.Inside(s).Reserve(context.Background(), name, 5, 1)
		for err == nil && g.Seg.Remaining() > 0 {
			_, _ = g.Seg.Skip(1) // a border of blocks
			number, _ := g.Seg.Take(1)
			h.add(t, name, number)
			got++
		}
		end = err
		return errors.Is(err, store.OutcomeUnwitnessed) || got > 1000
	})
	return got, end
}

// A server that cannot be reached is removed without FORCE, while on the other side of a cut
// network a proxy continues with it: up to the ceiling that the others know, and they begin above.
func TestAMemberThatIsAwayIsTakenOutByItsCeiling(t *testing.T) {
	e, h := newPlanEstate(t, 3, map[string]uint64{"photos": 100}), newGivenEver()
	there := e.otherSide(t)
	patient := patience(30 * time.Second)
	s, other := e.open(t, steadySize(5), patient), there.open(t, steadySize(5), patient)
	ceilingsAhead(s, 400)
	ceilingsAhead(other, 400)
	e.change(t, s, sequence.PlanChange{Add: e.addr(1)})
	e.change(t, s, sequence.PlanChange{Add: e.addr(2)})
	mustCreate(t, s, sequence.CreateOptions{Name: "albums"})
	mustCreate(t, s, sequence.CreateOptions{Name: "small", Max: 1000})
	for _, p := range []*sequence.Sequences{s, other} {
		for _, name := range []string{"photos", "albums", "small"} {
			takeAll(t, p, h, name, 60)
		}
	}

	e.links[2].Cut()
	there.links[0].Cut()
	there.links[1].Cut()
	now := e.change(t, s, sequence.PlanChange{Remove: e.addr(2), Force: true})
	if len(now.Members) != 2 {
		t.Fatalf("got %+v", now)
	}
	for _, name := range []string{"photos", "albums", "small"} {
		got, err := toTheCeiling(t, other, h, name)
		wantText(t, err, name, "ceiling", "SEQPROXY REMOVE SEQUENCE SERVER")
		if name == "photos" && got == 0 {
			t.Errorf("%s: the server that is cut off gave %d numbers, want some", name, got)
		}
		most := 600
		if name == "small" {
			most = 100
		}
		takeAll(t, s, h, name, most)
	}

	// The proxy on the other side and its server come back.
	for _, l := range []*mysqltest.Link{e.links[2], there.links[0], there.links[1]} {
		l.Mend()
	}
	for _, name := range []string{"photos", "albums"} {
		takeAll(t, other, h, name, 100)
	}
}

// A ceiling is raised while another member is up. One that is alone continues up to it, and says
// what is missing; then it recovers by itself.
func TestACeilingIsRaisedWhileAnotherMemberKnowsOfIt(t *testing.T) {
	e, h := newPlanEstate(t, 2, map[string]uint64{"photos": 0}), newGivenEver()
	s := e.open(t, steadySize(5), patience(30*time.Second))
	ceilingsAhead(s, 300)
	e.change(t, s, sequence.PlanChange{Add: e.addr(1)})
	takeAll(t, s, h, "photos", 1500)
	e.links[1].Cut()
	got, err := toTheCeiling(t, s, h, "photos")
	wantText(t, err, "photos", "ceiling", e.addr(1))
	if got == 0 || got > 600 {
		t.Errorf("alone it gave %d numbers, want some up to the ceiling", got)
	}
	e.links[1].Mend()
	takeAll(t, s, h, "photos", 50)

	// Of two each could remove the other, so the operator has to say which. How far it may go alone
	// is known.
	e.links[1].Cut()
	if _, err := s.ChangePlan(context.Background(), sequence.PlanChange{Remove: e.addr(1)}); err == nil {
		t.Error("one of two was taken out without FORCE")
	}
	e.change(t, s, sequence.PlanChange{Remove: e.addr(1), Force: true})
	lost := e.member(t, 1)
	for { // up to its ceiling, in steps of what a proxy would reserve there
		var id, ceiling uint64
		err := e.places[1].db.QueryRow("SELECT s.id, l.granted FROM sequence AS s JOIN sequence_limit AS l ON l.name = s.name "+
			"WHERE s.name = 'photos' AND l.giver = ? AND l.term = ?", lost.ID, lost.Plan).Scan(&id, &ceiling)
		if err != nil {
			t.Fatal(err)
		}
		if id+lost.Count*lost.Block > ceiling { // the next number may be a block of another member away
			break
		}
		numbers, err := e.reserve(t, 1, "photos", 5)
		if err != nil {
			t.Fatal(err)
		}
		h.add(t, "photos", numbers...)
	}
	takeAll(t, s, h, "photos", 500)
}

// A ceiling is raised when half of it is used, so that a member that is alone then has as much
// before it.
func TestACeilingIsRaisedAheadOfNeed(t *testing.T) {
	e := newPlanEstate(t, 2, map[string]uint64{"photos": 0})
	s := e.open(t, steadySize(5), patience(30*time.Second))
	ceilingsAhead(s, 10_000)
	e.change(t, s, sequence.PlanChange{Add: e.addr(1)})
	mustTake(t, s, "photos", 1)
	v, plan := sequence.Inside(s).Members()[0], sequence.Inside(s).Plan().Number
	before, err := v.RecordedCeiling(context.Background(), "photos", plan)
	if err != nil || before == 0 {
		t.Fatalf("its ceiling is %d, %v", before, err)
	}
	if _, err := v.RaiseTo(context.Background(), "photos", before-3000, before-3000, before); err != nil {
		t.Fatal(err)
	}
	// Far from the ceiling still.
	_, err = v.ReserveAsMember(context.Background(), "photos", 5, 1)
	if err != nil {
		t.Fatal(err)
	}
	v.GoAhead(context.Background())
	eventually(t, "the ceiling is raised", func() bool {
		now, err := v.RecordedCeiling(context.Background(), "photos", plan)
		return err == nil && now > before
	})
}

// Applications that count in the table themselves know of no ceiling.
func TestAMemberWithDirectWritersHasNoCeiling(t *testing.T) {
	e := newPlanEstate(t, 3, map[string]uint64{"photos": 0})
	s := e.open(t, inSteps, withDirectWriters)
	stopped := sequence.PlanChange{WritersStopped: true}
	add := func(i int) {
		c := stopped
		c.Add = e.addr(i)
		e.change(t, s, c)
	}
	add(1)
	add(2)
	e.links[2].Cut()
	stopped.Remove = e.addr(2)
	_, err := s.ChangePlan(context.Background(), stopped)
	wantText(t, err, e.addr(2), "FORCE ABOVE n", "direct_writers = false")
	stopped.Force, stopped.Above = true, 1000
	e.change(t, s, stopped)
}

// A member gives nothing by a ceiling that only one other member knows: whoever wrote it may have
// died, or been cut off, in the middle.
func TestAMemberDoesNotGoByTheCeilingOfAnother(t *testing.T) {
	e, h := newPlanEstate(t, 3, map[string]uint64{"photos": 0}), newGivenEver()
	there := e.otherSide(t)
	s := e.open(t, steadySize(5), patience(30*time.Second))
	ceilingsAhead(s, 200)
	e.change(t, s, sequence.PlanChange{Add: e.addr(1)})
	e.change(t, s, sequence.PlanChange{Add: e.addr(2)})
	takeAll(t, s, h, "photos", 60)

	// It raises the ceiling of the second member. Only the first one records it.
	ctx := context.Background()
	second := sequence.Inside(s).Members()[1]
	e.links[1].Cut()
	e.links[2].Cut()
	if err := second.RecordCeiling(ctx, "photos", 3000); err == nil {
		t.Fatal("a ceiling was recorded by a member that cannot be reached")
	}
	// A proxy that knows what is written there, and no more.
	there.links[1].Cut()
	there.links[2].Cut()
	other := there.open(t, steadySize(5), patience(30*time.Second))
	ceilingsAhead(other, 200)
	got, err := toTheCeiling(t, other, h, "photos")
	wantText(t, err, "photos", "ceiling")
	if got == 0 {
		t.Error("the first member alone gave nothing, want some up to its ceiling")
	}

	e.links[0].Cut()
	e.links[1].Mend()
	e.links[2].Mend()
	e.change(t, s, sequence.PlanChange{Remove: e.addr(0), Force: true})
	takeAll(t, s, h, "photos", 1500)
}

// A sequence that only one member knows, because its maker died in the middle, is given by nobody
// until another member knows it: if that one were removed, the others would make it once more.
func TestAHalfMadeSequenceIsNotGivenAlone(t *testing.T) {
	e, h := newPlanEstate(t, 3, map[string]uint64{"photos": 0}), newGivenEver()
	there := e.otherSide(t)
	s := e.open(t, steadySize(5), patience(30*time.Second))
	e.change(t, s, sequence.PlanChange{Add: e.addr(1)})
	e.change(t, s, sequence.PlanChange{Add: e.addr(2)})
	mustCreate(t, s, sequence.CreateOptions{Name: "albums"})
	for _, p := range e.places[1:] { // as if it had died after the first commit
		for _, table := range []string{"sequence", "sequence_options", "sequence_limit"} {
			p.exec(t, "DELETE FROM "+table+" WHERE `name` = 'albums'")
		}
	}
	for _, l := range []*mysqltest.Link{e.links[1], e.links[2], there.links[1], there.links[2]} {
		l.Cut()
	}
	_, err := toTheCeiling(t, there.open(t, steadySize(5), patience(30*time.Second)), h, "albums")
	wantText(t, err, "albums", "ceiling")

	e.links[0].Cut()
	e.links[1].Mend()
	e.links[2].Mend()
	e.change(t, s, sequence.PlanChange{Remove: e.addr(0), Force: true})
	rest := &planEstate{places: e.places[1:], links: e.links[1:]}
	after := rest.open(t, steadySize(5), patience(30*time.Second))
	mustCreate(t, after, sequence.CreateOptions{Name: "albums"})
	takeAll(t, after, h, "albums", 100)
}

// The home of an ORDER sequence that nobody can reach may still give its numbers, on the other side
// of a cut network, and those would be lower than earlier ones elsewhere. So removing it needs
// FORCE, by which the operator says that it is off.
func TestTheHomeOfAnOrderSequenceIsNotTakenOutByItsCeiling(t *testing.T) {
	e := newPlanEstate(t, 3, map[string]uint64{"photos": 0})
	there := e.otherSide(t)
	patient := patience(30 * time.Second)
	s := e.open(t, steadySize(5), patient)
	e.change(t, s, sequence.PlanChange{Add: e.addr(1)})
	e.change(t, s, sequence.PlanChange{Add: e.addr(2)})
	mustCreate(t, s, sequence.CreateOptions{Name: "albums", Order: true})
	other := there.open(t, steadySize(5), patient)
	mustTake(t, s, "albums", 1)
	mustTake(t, other, "albums", 1)

	home := sequence.Inside(s).Home("albums")
	for i := range e.links {
		if e.addr(i) == home.Name() {
			e.links[i].Cut()
		} else {
			there.links[i].Cut()
		}
	}
	_, err := s.ChangePlan(context.Background(), sequence.PlanChange{Remove: home.Name()})
	if err == nil {
		first := mustTake(t, s, "albums", 1)
		t.Fatalf("%d was given after %d", mustTake(t, other, "albums", 1), first)
	}
	wantText(t, err, home.Name(), "cannot be reached", "FORCE")

	// With FORCE it continues above the ceiling.
	now := e.change(t, s, sequence.PlanChange{Remove: home.Name(), Force: true})
	if len(now.Members) != 2 {
		t.Fatalf("got %+v", now)
	}
	mustTake(t, s, "albums", 1)
}

// A coordinator that could not reach the member that it removes dies after it wrote to one other
// how far all may go. The next one can reach it, and begins lower: then the first one's ceiling
// counts for nobody.
func TestACeilingOfACoordinatorThatDiedIsNotGoneBy(t *testing.T) {
	e := newPlanEstate(t, 3, map[string]uint64{"photos": 0})
	s := e.open(t, steadySize(5), patience(30*time.Second))
	e.change(t, s, sequence.PlanChange{Add: e.addr(1)})
	e.change(t, s, sequence.PlanChange{Add: e.addr(2)})
	mustTake(t, s, "photos", 1)

	e.links[2].Cut()
	sequence.Inside(s).OnPlanStep(func(step, address string) error {
		if step == change.Accepted {
			return errKilled
		}
		return nil
	})
	if _, err := changeUntil(context.Background(), s, sequence.PlanChange{Remove: e.addr(2), Force: true}); err == nil {
		t.Fatal("the coordinator did not die")
	}
	e.links[2].Mend()
	sequence.Inside(s).OnPlanStep(nil)
	now, err := s.ChangePlan(context.Background(), sequence.PlanChange{Remove: e.addr(2), Force: true})
	if err != nil {
		t.Fatal(err)
	}
	for i := range 2 {
		goes, recorded := e.limit(t, i, i, now.Number).Granted, e.limit(t, 1-i, i, now.Number).Wanted
		if goes == 0 || goes > recorded {
			t.Errorf("member %d goes up to %d, and the other one has recorded %d", i, goes, recorded)
		}
	}
}
