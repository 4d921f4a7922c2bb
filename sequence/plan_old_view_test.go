package sequence_test

import (
	"context"
	"testing"

	"seqproxy/sequence"
	"seqproxy/sequence/segment"
)

// A proxy that slept through a change counts as before, across the numbers of the member that was
// added.
func TestAProxyWithAnOldViewOfTheServersGivesNoNumberTwice(t *testing.T) {
	e, h := newPlanEstate(t, 2, map[string]uint64{"photos": 0}), newGivenEver()
	old := e.open(t, steadySize(1))
	h.add(t, "photos", mustTake(t, old, "photos", 1))
	settled(t, old, "photos")
	v := sequence.Inside(old).First()
	before := v.Place.Load()

	s := e.open(t)
	p := e.change(t, s, sequence.PlanChange{Add: e.addr(1)})

	for range 3 {
		v.Place.Store(before) // it has not looked yet
		g, err := v.ReserveOnce(context.Background(), "photos", 30)
		if err == nil {
			t.Logf("it reserved %d to %d", g.Seg.Next(), g.Seg.Last())
		}
		for err == nil && g.Seg.Remaining() > 0 {
			number, _ := g.Seg.Take(1)
			h.add(t, "photos", number)
		}
		if err == nil {
			t.Error("a reservation with the old view of the servers succeeded")
		}
	}
	e.everyoneGives(t, h, p, "photos")
}

// A proxy that has not seen a change to steps leaves the rows where the new plan has them: nobody
// has to mend them by hand.
func TestAProxyWithAnOldViewLeavesRowsWhereStepsHaveThem(t *testing.T) {
	for _, c := range []struct {
		name string
		do   func(v sequence.Server, seg segment.Segment) error
	}{
		{"a reservation", func(v sequence.Server, _ segment.Segment) error {
			_, err := v.ReserveOnce(context.Background(), "photos", 3)
			return err
		}},
		{"a reservation of a sequence with a maximum", func(v sequence.Server, _ segment.Segment) error {
			_, err := v.ReserveOnce(context.Background(), "capped", 3)
			return err
		}},
		{"numbers given back", func(v sequence.Server, seg segment.Segment) error {
			_, err := v.GiveBack(context.Background(), "photos", 0, seg)
			return err
		}},
		{"a number that somebody chose", func(v sequence.Server, _ segment.Segment) error {
			_, err := v.RaiseTo(context.Background(), "photos", 5000, 5000, 1<<40)
			return err
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			e := newPlanEstate(t, 2, map[string]uint64{"photos": 0})
			old := e.open(t)
			if _, err := old.Create(t.Context(), sequence.CreateOptions{Name: "capped", Max: 1 << 40}); err != nil {
				t.Fatal(err)
			}
			v := sequence.Inside(old).First()
			g, err := v.ReserveOnce(t.Context(), "photos", 4)
			if err != nil {
				t.Fatal(err)
			}
			if seg, err := v.ReserveOnce(t.Context(), "photos", 3); err != nil || seg.Seg.Last() != 7 {
				t.Fatal(seg, err)
			} else {
				g = seg
				_, _ = g.Seg.Take(2) // 7 remains, which is where the first server of two may stand
			}
			_, found := v.Find(t.Context(), "capped") // so its maximum is known
			if _, err := v.ReserveOnce(t.Context(), "capped", 7); found != nil || err != nil {
				t.Fatal(found, err)
			}
			before := v.Place.Load()
			s := e.open(t, inSteps)
			e.change(t, s, sequence.PlanChange{Add: e.addr(1)})
			v.Place.Store(before) // it has not looked yet
			t.Log(c.do(v, g.Seg))
			for _, name := range []string{"photos", "capped"} {
				if id := e.places[0].id(t, name); id%2 != 1 {
					t.Errorf("%s stands at %d on the first of two servers, which gives odd numbers", name, id)
				}
				for range 10 {
					if _, err := s.Take(t.Context(), []byte(name), 1); err != nil {
						t.Fatal(err)
					}
					settled(t, s, name)
				}
			}
		})
	}
}

// Applications count in steps while a proxy that has not seen the first change to steps notices it:
// none of its attempts moves the row.
func TestAProxyWithAnOldViewNeverMovesARowInWhichApplicationsCount(t *testing.T) {
	e := newPlanEstate(t, 2, map[string]uint64{"photos": 0})
	old := e.open(t, withDirectWriters)
	v := sequence.Inside(old).First()
	if _, err := v.ReserveOnce(t.Context(), "photos", 3); err != nil {
		t.Fatal(err)
	}
	before := v.Place.Load()
	e.change(t, e.open(t, inSteps, withDirectWriters), sequence.PlanChange{Add: e.addr(1), WritersStopped: true})

	conn, ended := e.places[0].naiveConn(t), make(chan struct{})
	go func() {
		defer close(ended)
		for range 200 {
			v.Place.Store(before) // it has not looked yet
			if g, err := v.ReserveOnce(context.Background(), "photos", 3); err == nil {
				t.Errorf("it reserved %d to %d", g.Seg.Next(), g.Seg.Last())
			}
		}
	}()
	for counting := true; counting; {
		select {
		case <-ended:
			counting = false
		default:
		}
		if id, err := counted(t.Context(), conn, 2); err != nil || id%2 != 1 {
			t.Fatalf("an application on the first of two servers, which gives odd numbers, got %d, %v", id, err)
		}
	}
}
