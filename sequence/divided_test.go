package sequence_test

import (
	"errors"
	"testing"
	"time"

	"seqproxy/sequence"
	"seqproxy/sequence/change"
	"seqproxy/sequence/store"
)

// A proxy that takes no numbers follows no changes. It asks each time whether a server alone knows
// which number comes next.
func TestWhetherSeveralServersDivideTheNumbersIsAskedEachTime(t *testing.T) {
	for interleave, f := range map[string]func(*sequence.Options){sequence.InterleaveBlock: blocks(10), sequence.InterleaveStep: inSteps} {
		t.Run(interleave, func(t *testing.T) {
			e := newPlanEstate(t, 3, map[string]uint64{"photos": 0})
			s := e.open(t, f)
			mustTake(t, s, "photos", 1)
			idle := e.open(t, f, withDirectWriters)
			want := func(when string, asked *sequence.Sequences, several bool, multiple uint64) {
				t.Helper()
				if interleave == sequence.InterleaveBlock {
					multiple = 1
				}
				began := time.Now()
				gotSeveral, gotMultiple, err := asked.Divided(t.Context())
				if err != nil || gotSeveral != several || gotMultiple != multiple {
					t.Errorf("%s: got %v, %d, %v after %v; want %v, %d", when, gotSeveral, gotMultiple, err, time.Since(began), several, multiple)
				}
			}
			still := func() { // as a proxy that has learned nothing since
				sequence.Inside(idle).StopFollowing()
				t.Cleanup(sequence.Inside(idle).FollowAgain)
			}
			want("one server", idle, false, 1)
			e.change(t, s, sequence.PlanChange{Add: e.addr(1)})
			want("a second one was added", e.open(t, f, withDirectWriters), true, 2)
			want("nobody else may move their rows", e.open(t, f), true, 1)
			still()
			want("a second one was added", idle, true, 2)
			e.change(t, s, sequence.PlanChange{Add: e.addr(2)})
			want("a third one was added", idle, true, 3)
			want("a third one was added", e.open(t, f, withDirectWriters), true, 3)

			e.change(t, s, sequence.PlanChange{Remove: e.addr(0)})
			// It is configured with a server that is no longer a member.
			moved := e.open(t, f, withDirectWriters)
			want("the first one was removed", moved, true, 2)
			e.change(t, s, sequence.PlanChange{Remove: e.addr(2)})
			sequence.Inside(moved).StopFollowing()
			defer sequence.Inside(moved).FollowAgain()
			if interleave == sequence.InterleaveStep {
				// Blocks are known, so this is refused without a query.
				want("one is left, which is another", moved, false, 1)
			} else if err := sequence.Inside(moved).ReadPlan(t.Context()); err != nil {
				t.Fatal(err)
			}
			e.links[0].Cut()
			want("the one of its configuration is away", moved, false, 1)
			e.change(t, s, sequence.PlanChange{Add: e.addr(2)})
			want("one was added again, of which the one of its configuration never hears", moved, true, 2)
		})
	}
}

// While the servers are changed, none can say which number comes next on one. The proxy waits for
// that.
func TestWhetherSeveralServersDivideTheNumbersIsNotSaidWhileThatIsChanged(t *testing.T) {
	e := newPlanEstate(t, 2, map[string]uint64{"photos": 0})
	s, idle := e.open(t), e.open(t, patience(time.Second))
	patient := e.open(t, patience(30*time.Second))
	mustTake(t, s, "photos", 1)
	type answer struct {
		several bool
		err     error
	}
	waited := make(chan answer, 1)
	asked := 0
	sequence.Inside(s).OnPlanStep(func(at, _ string) error {
		if at != change.Frozen && at != change.Accepted {
			return nil
		}
		if asked++; asked == 1 {
			go func() {
				several, _, err := patient.Divided(t.Context())
				waited <- answer{several, err}
			}()
		}
		eventually(t, "who asks after "+at+" gets the error that it is frozen", func() bool { // or that no answer came in time
			several, _, err := idle.Divided(t.Context())
			if err == nil {
				t.Errorf("after %s: got %v, want OutcomeFrozen", at, several)
			}
			return err == nil || errors.Is(err, store.OutcomeFrozen)
		})
		return nil
	})
	e.change(t, s, sequence.PlanChange{Add: e.addr(1)})
	if asked < 2 {
		t.Errorf("it was asked %d times", asked)
	}
	if got := <-waited; !got.several || got.err != nil {
		t.Errorf("who waited: got %v, %v", got.several, got.err)
	}
	if several, _, err := patient.Divided(t.Context()); !several || err != nil {
		t.Errorf("afterwards: got %v, %v", several, err)
	}
}

func withDirectWriters(o *sequence.Options) { o.NoDirectWriters = false }

// A server that was away when it was removed reports what was true before. The remaining members
// know better, in whatever order they are asked.
func TestWhetherSeveralServersDivideTheNumbersIsNotSaidByOneThatWasTakenOut(t *testing.T) {
	e := newPlanEstate(t, 3, map[string]uint64{"photos": 0})
	there := e.otherSide(t)
	s, asked := e.open(t, inSteps, patience(30*time.Second)), there.open(t, inSteps, withDirectWriters, patience(30*time.Second))
	mustTake(t, s, "photos", 1)
	e.change(t, s, sequence.PlanChange{Add: e.addr(1)})
	e.change(t, s, sequence.PlanChange{Add: e.addr(2)})
	sequence.Inside(asked).StopFollowing() // it learns nothing
	t.Cleanup(sequence.Inside(asked).FollowAgain)
	if _, multiple, err := asked.Divided(t.Context()); multiple != 3 || err != nil {
		t.Fatalf("of three: got %d, %v", multiple, err)
	}
	e.links[0].Cut()
	e.change(t, s, sequence.PlanChange{Remove: e.addr(0), Force: true})
	if several, multiple, err := asked.Divided(t.Context()); !several || multiple != 2 || err != nil {
		t.Errorf("one was taken out that is back and has heard of nothing: got %v, %d, %v; want true, 2", several, multiple, err)
	}
	there.links[1].Cut()
	if several, multiple, err := asked.Divided(t.Context()); !several || multiple != 2 || err != nil {
		t.Errorf("one of them is away: got %v, %d, %v; want true, 2", several, multiple, err)
	}
	there.links[2].Cut()
	time.AfterFunc(500*time.Millisecond, there.links[2].Mend)
	if several, multiple, err := asked.Divided(t.Context()); !several || multiple != 2 || err != nil {
		t.Errorf("all were away for a moment: got %v, %d, %v; want true, 2", several, multiple, err)
	}
}

// A single server may use the whole time of a request: there is no other one to ask.
func TestWhetherSeveralServersDivideTheNumbersIsAskedOfADistantServer(t *testing.T) {
	e := newPlanEstate(t, 1, map[string]uint64{"photos": 0})
	s := e.open(t, patience(16*time.Second))
	e.links[0].Delay(200 * time.Millisecond)
	if several, multiple, err := s.Divided(t.Context()); several || multiple != 1 || err != nil {
		t.Errorf("got %v, %d, %v; want false, 1", several, multiple, err)
	}
}

// A change whose coordinator died is also ended by a proxy that gives no numbers, and is only asked
// about them.
func TestAChangeThatWasLeftIsEndedByWhoIsAskedWhetherThereAreSeveralServers(t *testing.T) {
	e := newPlanEstate(t, 2, map[string]uint64{"photos": 0})
	s := e.open(t)
	mustTake(t, s, "photos", 1)
	sequence.Inside(s).OnPlanStep(func(at, address string) error {
		if at == change.Frozen {
			return errKilled
		}
		return nil
	})
	if _, err := changeUntil(t.Context(), s, sequence.PlanChange{Add: e.addr(1)}); !errors.Is(err, errKilled) {
		t.Fatalf("got %v, want the hook's end", err)
	}
	idle := e.open(t, patience(2*time.Second))
	eventually(t, "the error says that it is frozen", func() bool { // or that no answer came in time
		several, _, err := idle.Divided(t.Context())
		if err == nil {
			t.Fatalf("got %v, want OutcomeFrozen", several)
		}
		return errors.Is(err, store.OutcomeFrozen)
	})
	if !sequence.Inside(idle).Follows() {
		t.Error("nobody ends the change")
	}
}
