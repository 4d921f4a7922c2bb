package sequence_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"seqproxy/sequence"
	"seqproxy/sequence/change"
	"seqproxy/sequence/store"
)

// killedAt makes a change whose coordinator ends after so many steps, as if it had been killed. It
// reports whether the change was complete before.
func (e *planEstate) killedAt(t *testing.T, change sequence.PlanChange, killAt int) (ended bool) {
	t.Helper()
	return e.coordinate(t, change, killAt, false)
}

// A coordinator dies when one member alone has its proposal. That member is cut off, others change
// the set of servers without it, and then it comes back.
func TestAProposalThatOneMemberAloneKnowsBlocksNoOtherChange(t *testing.T) {
	e, h := newPlanEstate(t, 4, map[string]uint64{"photos": 100}), newGivenEver()
	s := e.open(t)
	e.change(t, s, sequence.PlanChange{Add: e.addr(1)})
	now := e.change(t, s, sequence.PlanChange{Add: e.addr(2)})
	e.everyoneGives(t, h, now, "photos")
	ctx := context.Background()
	for killAt, ended := 1, false; !ended; killAt++ {
		if e.killedAt(t, sequence.PlanChange{Add: e.addr(3)}, 1) {
			t.Fatal("the change was made")
		}
		e.links[0].Cut()
		first := e.open(t, func(o *sequence.Options) { o.Servers = []sequence.ServerOptions{e.options(1)} })
		for _, i := range []int{2, 3} {
			more := e.options(i)
			if err := sequence.Inside(first).Configure(more); err != nil {
				t.Fatal(err)
			}
		}
		steps := 0
		sequence.Inside(first).OnPlanStep(func(step, address string) error {
			if steps++; steps == killAt {
				return errKilled
			}
			return nil
		})
		_, err := changeUntil(ctx, first, sequence.PlanChange{Remove: e.addr(0), Force: true})
		if ended = err == nil; !ended && !errors.Is(err, errKilled) {
			t.Fatal(err)
		}
		e.links[0].Mend()

		other := e.open(t)
		what := fmt.Sprintf("killed after step %d", killAt)
		for range 2 {
			// one of the two changes, or both, may be open, and one that cannot be made is undone
			if now, err = e.endLeft(ctx, other); err != nil {
				t.Fatalf("%s: %v", what, err)
			}
		}
		if e.nothingIsOpen(t, other).Number != now.Number {
			t.Fatalf("%s: two plans are in force", what)
		}
		if len(now.Members) == 2 {
			now = e.change(t, other, sequence.PlanChange{Add: e.addr(0)})
		}
		e.everyoneGives(t, h, now, "photos")
		if now.Members[0].Address != e.addr(0) { // it comes first again
			for _, c := range []sequence.PlanChange{{Remove: e.addr(1)}, {Add: e.addr(1)}, {Remove: e.addr(2)}, {Add: e.addr(2)}} {
				now = e.change(t, other, c)
			}
			e.everyoneGives(t, h, now, "photos")
		}
		if now.Members[0].Address != e.addr(0) || len(now.Members) != 3 {
			t.Fatalf("got %+v", now.Members)
		}
	}
}

// A member is lost, removed, and comes back as it was. A proxy that has not heard of that gives
// none of its numbers, which the others may give by now: it asks them before its first reservation
// there.
func TestARemovedMemberThatIsBackGivesNothingToAProxyThatHasNotHeard(t *testing.T) {
	e, h := newPlanEstate(t, 3, map[string]uint64{"photos": 100}), newGivenEver()
	s, stale := e.open(t), e.open(t)
	ceilingsAhead(s, 1<<36)
	e.change(t, s, sequence.PlanChange{Add: e.addr(1)})
	e.everyoneGives(t, h, e.change(t, s, sequence.PlanChange{Add: e.addr(2)}), "photos")
	if ok, err := stale.Exists(t.Context(), []byte("photos")); !ok || err != nil {
		t.Fatal(ok, err)
	}
	sequence.Inside(stale).StopFollowing()
	defer sequence.Inside(stale).FollowAgain()
	e.links[0].Cut()
	sequence.Inside(s).StopFollowing() // it would bring the member to the plan
	defer sequence.Inside(s).FollowAgain()
	others := e.open(t, func(o *sequence.Options) { o.Servers = []sequence.ServerOptions{e.options(1), e.options(2)} })
	e.change(t, others, sequence.PlanChange{Remove: e.addr(0), Force: true})
	sequence.Inside(others).StopFollowing()
	defer sequence.Inside(others).FollowAgain()
	e.links[0].Mend()
	got, err := sequence.Inside(stale).Members()[0].ReserveAsMember(t.Context(), "photos", 5, 1)
	if !errors.Is(err, store.OutcomeOldPlan) {
		t.Errorf("got %v, %v, want that another plan is in force", got, err)
	}
	if m := e.member(t, 0); m.Plan != 2 {
		t.Errorf("the member obeys plan %d by now", m.Plan)
	}
}

// A coordinator dies when one member alone has its proposal. That one is cut off, and the others
// make another change of the same number. Whoever meets it afterwards follows the plan in force, in
// whatever order it asks the servers, and the proposal is withdrawn.
func TestAProposalIsNotTakenForThePlanInForceOfItsNumber(t *testing.T) {
	e, h := newPlanEstate(t, 4, map[string]uint64{"photos": 100}), newGivenEver()
	s := e.open(t)
	e.change(t, s, sequence.PlanChange{Add: e.addr(1)})
	e.everyoneGives(t, h, e.change(t, s, sequence.PlanChange{Add: e.addr(2)}), "photos")
	if e.killedAt(t, sequence.PlanChange{Add: e.addr(3)}, 1) {
		t.Fatal("the change was made")
	}
	proposed := func() (plan uint64) {
		t.Helper()
		if err := e.places[0].db.QueryRow("SELECT IFNULL(MAX(number), 0) FROM sequence_plan WHERE state = 'proposed'").Scan(&plan); err != nil {
			t.Fatal(err)
		}
		return plan
	}
	proposal := proposed()
	e.links[0].Cut()
	without := func(o *sequence.Options) { o.Servers = []sequence.ServerOptions{e.options(1), e.options(2)} }
	cut := e.open(t, without, patience(30*time.Second))
	now := e.change(t, cut, sequence.PlanChange{Remove: e.addr(0), Force: true})
	if proposal == 0 || now.Number != proposal {
		t.Fatalf("plan %d is in force and plan %d was proposed, want one number", now.Number, proposal)
	}
	e.links[0].Mend()

	last := func(o *sequence.Options) {
		o.Servers = []sequence.ServerOptions{e.options(1), e.options(2), e.options(0)}
	}
	patient := patience(30 * time.Second)
	for _, other := range []*sequence.Sequences{e.open(t, last, patient, steadySize(5)), e.open(t, patient, steadySize(5))} {
		takeAll(t, other, h, "photos", 100)
		if got := sequence.Inside(other).Plan(); got.UUID != now.UUID {
			t.Errorf("the proxy follows plan %s (%s) of %s, want %s of %s", got.UUID, got.State, change.Addresses(got.Members), now.UUID, change.Addresses(now.Members))
		}
	}
	now = e.change(t, s, sequence.PlanChange{Add: e.addr(0)})
	if proposed() != 0 {
		t.Errorf("plan %d is proposed still, want none", proposed())
	}
	e.everyoneGives(t, h, now, "photos")
}

// A server is set up anew at the address of a member that may have accepted a change: whether that
// is decided cannot be known, so all stay frozen. When the member is restored from an earlier
// backup, it never accepts, and the change is undone.
func TestAServerInThePlaceOfAMemberCannotTellWhatThatAccepted(t *testing.T) {
	e, h := newPlanEstate(t, 4, map[string]uint64{"photos": 100}), newGivenEver()
	s := e.open(t)
	e.change(t, s, sequence.PlanChange{Add: e.addr(1)})
	now := e.change(t, s, sequence.PlanChange{Add: e.addr(2)})
	e.everyoneGives(t, h, now, "photos")
	e.diesAfter(t, sequence.PlanChange{Add: e.addr(3)}, change.Accepted, 2)
	was := e.member(t, 1).ID
	e.places[1].exec(t, "UPDATE sequence_member SET id = UUID()") // another server
	other := e.open(t)
	for range 2 {
		_, err := other.ChangePlan(t.Context(), sequence.PlanChange{Add: e.addr(3)})
		wantText(t, err, e.addr(1), "another sequence server", "may be decided", "SEQPROXY ADD SEQUENCE SERVER '"+e.addr(3)+"'")
	}
	for i := range 3 {
		e.wantFrozen(t, i, "photos")
	}
	e.places[1].exec(t, "UPDATE sequence_member SET id = ?", was)
	e.places[1].exec(t, "UPDATE sequence AS s JOIN sequence_plan_start AS f USING (name) SET s.id = f.saved WHERE f.saved IS NOT NULL")
	e.places[1].exec(t, "DELETE FROM sequence_plan_start WHERE plan > ?", now.Number)
	e.places[1].exec(t, "DELETE FROM sequence_plan WHERE number > ?", now.Number)
	e.links[2].Cut()
	_, err := e.endLeft(t.Context(), e.open(t))
	wantText(t, err, e.addr(1), "has forgotten the change", e.addr(2))
	e.links[2].Mend()
	if p, err := e.endLeft(t.Context(), e.open(t)); err != nil || p.Number != now.Number {
		t.Fatalf("got %+v, %v; want that it is undone", p, err)
	}
	e.everyoneGives(t, h, e.change(t, s, sequence.PlanChange{Add: e.addr(3)}), "photos")
}

// A proxy found a change proposed, and takes it for one whose coordinator died. Meanwhile it was
// accepted: the server stays frozen until it obeys.
func TestAServerThatHasAcceptedIsNotLetGoOnByWhoTakesTheChangeForLeft(t *testing.T) {
	e, h := newPlanEstate(t, 3, map[string]uint64{"photos": 100}), newGivenEver()
	s, late := e.open(t), e.open(t)
	e.change(t, s, sequence.PlanChange{Add: e.addr(1)})
	e.met(t, late)
	var found sequence.Plan
	let := 0
	sequence.Inside(s).OnPlanStep(func(step, address string) error {
		store := e.server(t, late, 1).PlanStore()
		said, err := store.Report(t.Context())
		if err != nil {
			return err
		}
		last := said.Plans[len(said.Plans)-1]
		switch {
		case step == change.Proposed && address == e.addr(2):
			found = last
		case step == change.Frozen && address == e.addr(2), step == change.InForce && address == e.addr(0):
			let++
			if err := store.LetGo(t.Context(), &found, true); err != nil {
				return err
			}
			e.wantFrozen(t, 1, "photos")
			if got, err := e.reserve(t, 1, "photos", 40); err == nil {
				t.Errorf("it gives %d while it is %s", got, last.State)
			}
		}
		return nil
	})
	now := e.change(t, s, sequence.PlanChange{Add: e.addr(2)})
	if let != 2 || found.State != change.Proposed {
		t.Errorf("it was let go %d times, and found %+v", let, found)
	}
	for range 3 {
		e.everyoneGives(t, h, now, "photos")
	}
}

// A proxy has seen no change since. When a server answers again the proxy follows the plan in force
// on the servers, and brings none to its old one.
func TestAProxyThatMeetsAServerAgainGoesByTheNewestPlan(t *testing.T) {
	e := newPlanEstate(t, 3, map[string]uint64{"photos": 100})
	s, late := e.open(t), e.open(t)
	e.change(t, s, sequence.PlanChange{Add: e.addr(1)})
	e.met(t, late)
	if err := sequence.Inside(late).Following().Acquire(t.Context()); err != nil { // it sees no change
		t.Fatal(err)
	}
	now := e.change(t, s, sequence.PlanChange{Add: e.addr(2)})
	if err := sequence.Inside(late).ReadPlan(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := sequence.Inside(late).Plan(); got.UUID != now.UUID {
		t.Errorf("it follows plan %d, want %d", got.Number, now.Number)
	}
	sequence.Inside(late).FollowAgain()
}

// A change that was drafted from another plan than the one in force would lose members that it does
// not know.
func TestAChangeFromAnotherPlanThanTheOneInForceIsNotResumed(t *testing.T) {
	e, h := newPlanEstate(t, 4, map[string]uint64{"photos": 100}), newGivenEver()
	s := e.open(t)
	e.change(t, s, sequence.PlanChange{Add: e.addr(1)})
	if e.killedAt(t, sequence.PlanChange{Add: e.addr(3)}, 1) {
		t.Fatal("the change was made")
	}
	// As if it had got a higher number, and nobody else had seen it.
	e.places[0].exec(t, "UPDATE sequence_plan SET state = 'aborted' WHERE state = 'proposed'")
	e.change(t, s, sequence.PlanChange{Add: e.addr(2)})
	e.places[0].exec(t, "UPDATE sequence_plan SET number = number + 100, state = 'proposed' WHERE state = 'aborted'")
	other := e.open(t)
	ctx := context.Background()
	now, err := e.endLeft(ctx, other)
	if err != nil || len(now.Members) != 3 {
		t.Fatalf("got %+v, %v", now, err)
	}
	e.everyoneGives(t, h, now, "photos")
	now = e.change(t, other, sequence.PlanChange{Add: e.addr(3)})
	e.everyoneGives(t, h, now, "photos")
}

// Servers that hang are asked at the same time, so that looking at all takes no longer than at one.
func TestServersThatStandStillAreAskedTogether(t *testing.T) {
	e := newPlanEstate(t, 4, map[string]uint64{"photos": 100})
	s := e.open(t)
	for _, i := range []int{1, 2, 3} {
		e.change(t, s, sequence.PlanChange{Add: e.addr(i)})
	}
	patient := e.options(0)
	patient.DialTimeout, patient.IOTimeout = time.Minute, time.Minute
	other := openWith(t, sequence.Options{Servers: []sequence.ServerOptions{patient}, Tuning: sequence.Tuning{NoDirectWriters: true}})
	for _, l := range e.links[1:] {
		l.Hold()
	}
	type listed struct {
		all []sequence.SequenceServer
		err error
	}
	answer := make(chan listed, 1)
	go func() {
		all, err := other.SequenceServers(context.Background())
		answer <- listed{all, err}
	}()
	eventually(t, "all three are asked at one time", func() bool {
		return e.links[1].Waiting() == 1 && e.links[2].Waiting() == 1 && e.links[3].Waiting() == 1
	})
	for _, l := range e.links[1:] {
		l.Cut()
	}
	got := <-answer
	if got.err != nil || len(got.all) != 4 {
		t.Fatalf("got %+v, %v, want four servers", got.all, got.err)
	}
	for i, server := range got.all {
		want := sequence.PlanInForce
		if i > 0 {
			want = "away"
		}
		if server.State != want || server.Address != e.addr(i) {
			t.Errorf("server %d: got %+v, want that it is %s", i, server, want)
		}
	}
}
