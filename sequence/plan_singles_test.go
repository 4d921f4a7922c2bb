package sequence_test

import (
	"errors"
	"testing"

	"seqproxy/sequence"
	"seqproxy/sequence/change"
)

// A sequence that one server alone can count is made, or becomes one, after a change to several
// servers has begun: the change is undone, and the sequence continues as it was made.
func TestASequenceThatSeveralServersCannotCountIsMadeWhileTheyBecomeSeveral(t *testing.T) {
	seven, cycle := uint64(7), true
	for name, make := range map[string]func(t *testing.T, s *sequence.Sequences){
		"created with INCREMENT": func(t *testing.T, s *sequence.Sequences) {
			mustCreate(t, s, sequence.CreateOptions{Name: "late", Increment: seven})
		},
		"created with CYCLE": func(t *testing.T, s *sequence.Sequences) {
			mustCreate(t, s, sequence.CreateOptions{Name: "late", Cycle: cycle, Max: 100})
		},
		"altered": func(t *testing.T, s *sequence.Sequences) {
			mustCreate(t, s, sequence.CreateOptions{Name: "late"})
			if _, err := s.Alter(t.Context(), []byte("late"), sequence.Alteration{Increment: &seven}); err != nil {
				t.Fatal(err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			e, h := newPlanEstate(t, 2, map[string]uint64{"photos": 100}), newGivenEver()
			s, other := e.open(t), e.open(t)
			takeAll(t, other, h, "photos", 10)
			steps := 0
			sequence.Inside(s).OnPlanStep(func(step, address string) error {
				if step == change.Proposed && address == e.addr(1) {
					steps++
					make(t, other)
				}
				return nil
			})
			_, err := s.ChangePlan(t.Context(), sequence.PlanChange{Add: e.addr(1)})
			if refused := new(sequence.PlanError); steps != 1 || !errors.As(err, &refused) {
				t.Errorf("after %d steps: got %v, want that the change is refused", steps, err)
			}
			wantText(t, err, "late", "need a single sequence server", "ALTER SEQUENCE")
			sequence.Inside(s).OnPlanStep(nil)
			takeAll(t, other, h, "late", 10)
			takeAll(t, s, h, "late", 10)
			if now := e.nothingIsLeft(t, h, "photos"); now.Number != 0 {
				t.Errorf("plan %d is in force", now.Number)
			}
			one, no := uint64(1), false
			if _, err := other.Alter(t.Context(), []byte("late"), sequence.Alteration{Increment: &one, Cycle: &no}); err != nil {
				t.Fatal(err)
			}
			e.change(t, s, sequence.PlanChange{Add: e.addr(1)})
			takeAll(t, other, h, "late", 10)
			takeAll(t, s, h, "late", 10)
		})
	}
}
