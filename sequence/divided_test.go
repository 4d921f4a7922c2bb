package sequence

import (
	"errors"
	"testing"
	"time"
)

// A proxy that takes no numbers follows no changes. It asks each time that it is left to a server which number comes next.
func TestWhetherSeveralServersDivideTheNumbersIsAskedEachTime(t *testing.T) {
	for interleave, f := range map[string]func(*Options){InterleaveBlock: blocks(10), InterleaveStep: inSteps} {
		t.Run(interleave, func(t *testing.T) {
			e := newPlanEstate(t, 3, map[string]uint64{"photos": 0})
			s := e.open(t, f)
			mustTake(t, s, "photos", 1)
			idle := e.open(t, f)
			want := func(when string, asked *Sequences, several bool, turns uint64) {
				t.Helper()
				if interleave == InterleaveBlock {
					turns = 1
				}
				began := time.Now()
				gotSeveral, gotTurns, err := asked.Divided(t.Context())
				if err != nil || gotSeveral != several || gotTurns != turns {
					t.Errorf("%s: got %v, %d, %v after %v; want %v, %d", when, gotSeveral, gotTurns, err, time.Since(began), several, turns)
				}
			}
			still := func() { // as one that has heard of nothing since
				idle.follow.work.await()
				t.Cleanup(idle.follow.work.end)
			}
			want("one server", idle, false, 1)
			e.change(t, s, PlanChange{Add: e.addr(1)})
			want("a second one was added", e.open(t, f), true, 2)
			still()
			want("a second one was added", idle, true, 2)
			e.change(t, s, PlanChange{Add: e.addr(2)})
			want("a third one was added", idle, true, 3)
			want("a third one was added", e.open(t, f), true, 3)

			e.change(t, s, PlanChange{Remove: e.addr(0)})
			moved := e.open(t, f) // it is configured with one that is none of them any more
			want("the first one was removed", moved, true, 2)
			e.change(t, s, PlanChange{Remove: e.addr(2)})
			moved.follow.work.await()
			defer moved.follow.work.end()
			if interleave == InterleaveStep { // what is known of blocks is refused without a question
				want("one is left, which is another", moved, false, 1)
			} else if err := moved.servers.reread(t.Context(), moved.servers.view.Load()); err != nil {
				t.Fatal(err)
			}
			e.links[0].Cut()
			want("the one of its configuration is away", moved, false, 1)
			e.change(t, s, PlanChange{Add: e.addr(2)})
			want("one was added again, of which the one of its configuration never hears", moved, true, 2)
		})
	}
}

// While the servers are changed nobody can say which number comes next on one. That is waited for.
func TestWhetherSeveralServersDivideTheNumbersIsNotSaidWhileThatIsChanged(t *testing.T) {
	e := newPlanEstate(t, 2, map[string]uint64{"photos": 0})
	s, idle := e.open(t), e.open(t, patience(300*time.Millisecond))
	patient := e.open(t, patience(30*time.Second))
	mustTake(t, s, "photos", 1)
	type answer struct {
		several bool
		err     error
	}
	waited := make(chan answer, 1)
	asked := 0
	s.planHook = func(at, _ string) error {
		if at != planFrozen && at != planDecided {
			return nil
		}
		if asked++; asked == 1 {
			go func() {
				several, _, err := patient.Divided(t.Context())
				waited <- answer{several, err}
			}()
		}
		if several, _, err := idle.Divided(t.Context()); !errors.Is(err, errPlanChanging) {
			t.Errorf("after %s: got %v, %v, want errPlanChanging", at, several, err)
		}
		return nil
	}
	e.change(t, s, PlanChange{Add: e.addr(1)})
	if asked < 2 {
		t.Errorf("it was asked %d times", asked)
	}
	if got := <-waited; !got.several || got.err != nil {
		t.Errorf("who waited: got %v, %v", got.several, got.err)
	}
	if several, _, err := idle.Divided(t.Context()); !several || err != nil {
		t.Errorf("afterwards: got %v, %v", several, err)
	}
}
