package sequence_test

import (
	"testing"

	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"seqproxy/sequence"
)

// The operator says FORCE with a number that is too low: the removed server, where applications
// count, has gone on and gives higher ones. When it is back that is reported, so that an operator
// can compare the keys; and from then on no number repeats.
func TestNumbersAboveWhatTheOperatorSaidAreTold(t *testing.T) {
	e, h := newPlanEstate(t, 4, map[string]uint64{"photos": 100, "quiet": 100}), newGivenEver()
	core, logs := observer.New(zap.ErrorLevel)
	s := e.open(t, inSteps, withDirectWriters, func(o *sequence.Options) { o.Logger = zap.New(core) })
	e.change(t, s, sequence.PlanChange{Add: e.addr(1), WritersStopped: true})
	now := e.change(t, s, sequence.PlanChange{Add: e.addr(2), WritersStopped: true})
	e.everyoneGives(t, h, now, "photos", "quiet")
	e.links[1].Cut()
	now = e.change(t, s, sequence.PlanChange{Remove: e.addr(1), Force: true, Above: 500, WritersStopped: true})
	// It has gone so far meanwhile.
	e.places[1].exec(t, "UPDATE sequence SET id = 902 WHERE name = 'photos'")
	e.links[1].Mend()
	e.bringBack(t, s, 1, 0, now)
	logged := logs.FilterMessage("numbers given above a floor").All()
	if len(logged) != 1 {
		t.Fatalf("got %d lines about it, want 1: %+v", len(logged), logs.All())
	}
	if got := logged[0].ContextMap(); got["sequence"] != "photos" || got["gave_up_to"] != "902" || got["floor"] != uint64(500) || got["plan"] != now.Number {
		t.Errorf("got %v, want photos, 902, 500 and plan %d", got, now.Number)
	}
	e.change(t, s, sequence.PlanChange{Add: e.addr(1), WritersStopped: true})
	for i := range e.places {
		if m := e.member(t, i); m.Count == 0 {
			continue
		}
		if got, err := e.reserve(t, i, "photos", 3); err != nil {
			t.Error(err)
		} else if h.add(t, "photos", got...); i == 1 && got[len(got)-1] <= 902 {
			t.Errorf("it gives %d, want numbers above 902", got)
		}
	}
}
