package sequence_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"seqproxy/sequence"
	"seqproxy/sequence/change"
	"seqproxy/sequence/store"
)

func TestServersAreAddedAndRemovedAndNoNumberComesAgain(t *testing.T) {
	for _, how := range []string{sequence.InterleaveBlock, sequence.InterleaveStep} {
		t.Run(how, func(t *testing.T) {
			t.Parallel()
			e := newPlanEstate(t, 4, map[string]uint64{"photos": 1234, "albums": 0, "old": 1<<64 - 1})
			s, h := e.open(t, func(o *sequence.Options) { o.Interleave = how }), newGivenEver()
			e.everyoneGives(t, h, sequence.Plan{}, "photos")
			for _, step := range []struct {
				change  sequence.PlanChange
				members []int
			}{
				{sequence.PlanChange{Add: e.addr(1)}, []int{0, 1}},
				{sequence.PlanChange{Add: e.addr(2)}, []int{0, 1, 2}},
				{sequence.PlanChange{Add: e.addr(3)}, []int{0, 1, 2, 3}},
				{sequence.PlanChange{Remove: e.addr(0)}, []int{1, 2, 3}},
				{sequence.PlanChange{Remove: e.addr(3)}, []int{1, 2}},
				{sequence.PlanChange{Add: e.addr(0)}, []int{1, 2, 0}},
				{sequence.PlanChange{Remove: e.addr(2)}, []int{1, 0}},
				{sequence.PlanChange{Remove: e.addr(1)}, []int{0}},
			} {
				p := e.change(t, s, step.change)
				if len(p.Members) != len(step.members) {
					t.Fatalf("after %+v: got members %+v", step.change, p.Members)
				}
				for k, i := range step.members {
					m := e.member(t, i)
					if p.Members[k].Address != e.addr(i) || m.Plan != p.Number || m.Position != uint64(k) || m.Count != uint64(len(step.members)) || m.ID != p.Members[k].ID {
						t.Errorf("after %+v: member %d: got %+v in the plan, %+v on server %d", step.change, k, p.Members[k], m, i)
					}
				}
				before := h.high["photos"]
				e.everyoneGives(t, h, p, "photos", "albums")
				if (p.Block == 10 || p.Block == 0) && h.high["photos"] > before+200 {
					t.Errorf("after %+v: numbers jump from %d to %d", step.change, before, h.high["photos"])
				}
				e.wantFrozen(t, step.members[0], "old")
			}
		})
	}
}

// While the rows are frozen, numbers come from the cache, whoever needs the servers waits or gets
// an error that says why, and no request is lost.
func TestWhatIsAskedForWhileThePlanChanges(t *testing.T) {
	e := newPlanEstate(t, 2, map[string]uint64{"photos": 1234, "empty": 7, "raised": 7})
	s, admin := e.open(t), e.open(t)
	if _, err := admin.List(t.Context()); err != nil { // making the tables takes time
		t.Fatal(err)
	}
	if first := mustTake(t, s, "photos", 1); first != 1235 {
		t.Fatalf("got %d", first)
	}
	mustTake(t, s, "raised", 1)
	ctx := context.Background()
	frozen := make(chan error)
	getsFrozen := func(what string, f func() error) {
		t.Helper()
		eventually(t, what+" gets the error that it is frozen", func() bool { // or that no answer came in time
			err := f()
			if err == nil {
				t.Errorf("%s: got no error, want that it is frozen", what)
			}
			return err == nil || errors.Is(err, store.OutcomeFrozen)
		})
	}
	sequence.Inside(admin).OnPlanStep(func(step, _ string) error {
		if step != change.Frozen || frozen == nil {
			return nil
		}
		if first := mustTake(t, s, "photos", 500); first != 1236 {
			t.Errorf("from memory: got %d", first)
		}
		if d, st, err := s.Describe(ctx, []byte("photos")); err != nil || d.Name != "photos" || st.Last != 2234 {
			t.Errorf("it is described as %+v, %v", st, err)
		}
		s.Tune(sequence.Tuning{AllocateTimeout: 200 * time.Millisecond, CreateTable: true, NoDirectWriters: true})
		getsFrozen("who finds no number in memory", func() error {
			_, err := s.Take(ctx, []byte("empty"), 1)
			if !errors.As(err, new(*sequence.UnavailableError)) {
				t.Errorf("without numbers in memory: got %v, want an UnavailableError", err)
			}
			return err
		})
		e.wantFrozen(t, 0, "photos")
		getsFrozen("CREATE", func() error { _, err := s.Create(ctx, sequence.CreateOptions{Name: "new"}); return err })
		getsFrozen("DROP", func() error { _, err := s.Drop(ctx, []byte("photos"), false); return err })
		getsFrozen("ALTER", func() error {
			_, err := s.Alter(ctx, []byte("photos"), sequence.Alteration{Cache: new(uint64(5))})
			return err
		})
		if err := s.Avoid(ctx, []byte("raised"), []uint64{50_000}); err == nil {
			t.Error("a number of the caller's own is above the counter, which cannot be raised: got no error")
		}
		s.Tune(sequence.Tuning{CreateTable: true, NoDirectWriters: true})
		frozen = nil
		return nil
	})
	p := e.change(t, admin, sequence.PlanChange{Add: e.addr(1)})
	if frozen != nil || len(p.Members) != 2 {
		t.Fatalf("got %+v", p)
	}
	h := newGivenEver()
	e.everyoneGives(t, h, p, "photos", "empty", "raised")
	for n := range h.all["photos"] {
		if n <= 2234 {
			t.Errorf("%d was reserved before", n)
		}
	}
}

func TestApplicationsThatCountThemselvesNeedTheOperatorsWord(t *testing.T) {
	e := newPlanEstate(t, 3, map[string]uint64{"photos": 100})
	s := e.open(t, inSteps, withDirectWriters)
	refused := func(change sequence.PlanChange, want ...string) {
		t.Helper()
		_, err := s.ChangePlan(context.Background(), change)
		wantText(t, err, append(want, "may count in the table", "WITH DIRECT WRITERS STOPPED", "direct_writers = false")...)
	}
	refused(sequence.PlanChange{Add: e.addr(1)}, "id + 1", "count by 2")
	p := e.change(t, s, sequence.PlanChange{Add: e.addr(1), WritersStopped: true})
	if p.Interleave != sequence.InterleaveStep {
		t.Errorf("got %+v", p)
	}
	// From now on applications that count by two in the servers' rows are right, and proxies too.
	h := newGivenEver()
	for range 20 {
		for i := range 2 {
			var got uint64
			conn := e.places[i].naiveConn(t)
			got = naive(t, conn, "photos", 2) + 1
			h.add(t, "photos", got)
			_ = conn.Close()
		}
		h.add(t, "photos", mustTake(t, s, "photos", 1))
	}
	refused(sequence.PlanChange{Remove: e.addr(1)}, "id + 2", "count by 1")
	// The configuration allows it too, and takes effect at once.
	for _, none := range []bool{false, true} {
		s.Tune(sequence.Tuning{NoDirectWriters: none})
		if change := (sequence.PlanChange{Add: e.addr(2)}); !none {
			refused(change, "id + 2", "count by 3")
		} else if _, err := s.ChangePlan(context.Background(), change); err != nil {
			t.Error(err)
		}
	}
	// Where the numbers are divided in blocks no application can count.
	blocked := newPlanEstate(t, 3, map[string]uint64{"photos": 100})
	admin := blocked.open(t, withDirectWriters)
	blocked.change(t, admin, sequence.PlanChange{Add: blocked.addr(1), WritersStopped: true})
	blocked.change(t, admin, sequence.PlanChange{Add: blocked.addr(2)})
	blocked.change(t, admin, sequence.PlanChange{Remove: blocked.addr(0)})
	blocked.change(t, admin, sequence.PlanChange{Remove: blocked.addr(2)})
	// one that is alone counts for all
	_, err := admin.ChangePlan(t.Context(), sequence.PlanChange{Add: blocked.addr(2)})
	wantText(t, err, "WITH DIRECT WRITERS STOPPED")
}

// The configuration decides how the numbers are divided when a second server is added to the only
// one, whatever an earlier plan said.
func TestTheOnlyServerAndTheOneThatIsAddedDivideTheNumbersAsConfigured(t *testing.T) {
	e, h := newPlanEstate(t, 2, map[string]uint64{"photos": 1234}), newGivenEver()
	for _, how := range []func(*sequence.Options){blocks(sequence.MostBlock), inSteps, blocks(10), inSteps} {
		s := e.open(t, how)
		p := e.change(t, s, sequence.PlanChange{Add: e.addr(1)})
		want, block := sequence.Inside(s).Interleave()
		if p.Interleave != want || p.Interleave == sequence.InterleaveBlock && p.Block != block || p.Interleave == sequence.InterleaveStep && p.Block != 0 {
			t.Errorf("got %s and %d, want %s and %d", p.Interleave, p.Block, want, block)
		}
		e.everyoneGives(t, h, p, "photos")
		e.everyoneGives(t, h, e.change(t, s, sequence.PlanChange{Remove: e.addr(1)}), "photos")
	}
}

// A sequence that is made while a member is away begins above the plan's floor of its name, or of
// all unknown names: on each member, also on one that comes back.
func TestASequenceThatIsMadeWhileAMemberIsAwayBeginsAboveThePlansFloor(t *testing.T) {
	e, h := newPlanEstate(t, 4, map[string]uint64{"photos": 100, "gone": 5000}), newGivenEver()
	s := e.open(t, inSteps, withDirectWriters)
	if _, err := s.Drop(context.Background(), []byte("gone"), false); err != nil {
		t.Fatal(err)
	}
	for i := 1; i <= 3; i++ {
		e.change(t, s, sequence.PlanChange{Add: e.addr(i), WritersStopped: true})
	}
	e.links[3].Cut()
	// Applications may have made sequences there, which nobody else knows.
	e.change(t, s, sequence.PlanChange{Remove: e.addr(3), Force: true, Above: 3000, WritersStopped: true})
	for i := range 3 { // as if the table of options had been lost: the plan still knows it
		e.places[i].exec(t, "DELETE FROM sequence_options WHERE name = 'gone'")
	}
	other := e.open(t)
	h.add(t, "photos", mustTake(t, other, "photos", 1)) // it knows the plan
	e.links[0].Cut()
	for name, floor := range map[string]uint64{"gone": 5000, "new": 3000} {
		eventually(t, name+" is made", func() bool { // which needs all others, and one may be left out for a moment
			made, err := other.Create(t.Context(), sequence.CreateOptions{Name: name})
			if err == nil && (made.First <= floor || made.First > floor+100) {
				t.Errorf("%s: got %+v, want that it begins above %d", name, made, floor)
			}
			return err == nil
		})
	}
	e.links[0].Mend()
	eventually(t, "the one that was away has the rows", func() bool {
		var n int
		for _, name := range []string{"gone", "new"} {
			h.add(t, name, mustTake(t, other, name, 1))
		}
		err := e.places[0].db.QueryRow("SELECT COUNT(*) FROM sequence WHERE name IN ('gone', 'new')").Scan(&n)
		return err == nil && n == 2
	})
	for name, floor := range map[string]uint64{"gone": 5000, "new": 3000} {
		for i := range 3 {
			got, err := e.reserve(t, i, name, 3)
			if err != nil {
				t.Fatal(err)
			}
			h.add(t, name, got...)
		}
		for n := range h.all[name] {
			if n <= floor {
				t.Errorf("%s: %d was given, want none up to %d", name, n, floor)
			}
		}
	}
}

// Rows of a column smaller than BIGINT UNSIGNED are frozen at its end, which an application that
// counts cannot pass with a strict sql_mode. The new servers' columns may be larger.
func TestServersOfSmallerColumnsAreAddedAndRemoved(t *testing.T) {
	for column, end := range map[string]uint64{"BIGINT": 1<<63 - 1, "INT UNSIGNED": 1<<32 - 1, "INT": 1<<31 - 1} {
		t.Run(column, func(t *testing.T) {
			e := newPlanEstate(t, 3, map[string]uint64{"photos": 1234, "albums": 0, "old": end})
			e.places[0].exec(t, "ALTER TABLE sequence MODIFY id "+column+" NOT NULL")
			s, h := e.open(t), newGivenEver()
			e.everyoneGives(t, h, sequence.Plan{}, "photos")
			for _, change := range []sequence.PlanChange{{Add: e.addr(1)}, {Add: e.addr(2)}, {Remove: e.addr(0)}, {Add: e.addr(0)}} {
				p := e.change(t, s, change)
				e.everyoneGives(t, h, p, "photos", "albums")
				for range 50 {
					h.add(t, "photos", mustTake(t, s, "photos", 1))
				}
				old := mustTake(t, s, "old", 1) // by the larger columns
				h.add(t, "old", old)
				if old <= end {
					t.Errorf("after %+v: %d of a sequence that stood at %d", change, old, end)
				}
			}
		})
	}
}

func TestARowThatHoldsNoNumberIsNamedWithItsWayOutByAChange(t *testing.T) {
	e := newPlanEstate(t, 2, map[string]uint64{"photos": 100})
	s := e.open(t)
	e.places[0].exec(t, "ALTER TABLE sequence MODIFY id BIGINT NULL")
	e.places[0].exec(t, "INSERT INTO sequence (name, id) VALUES ('odd', NULL)")
	_, err := s.ChangePlan(t.Context(), sequence.PlanChange{Add: e.addr(1)})
	if err == nil || !strings.Contains(err.Error(), "its id is NULL") || !strings.Contains(err.Error(), "UPDATE ") {
		t.Errorf("got %v, want the row and its UPDATE", err)
	}
}
