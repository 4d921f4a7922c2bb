package sequence_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"

	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"seqproxy/sequence"
	"seqproxy/sequence/change"
	"seqproxy/sequence/link"
)

// nothingIsLeft checks that no change is open, and that exactly the members of the plan in force
// give numbers.
func (e *planEstate) nothingIsLeft(t *testing.T, h *givenEver, name string) sequence.Plan {
	t.Helper()
	other := e.open(t)
	e.met(t, other)
	now := e.nothingIsOpen(t, other)
	e.everyoneGives(t, h, now, name)
	return now
}

// nothingIsOpen returns the plan in force, once no change is open.
func (e *planEstate) nothingIsOpen(t *testing.T, other *sequence.Sequences) (now sequence.Plan) {
	t.Helper()
	_, err := sequence.Inside(other).CoordinateHere(context.Background(), func(c *change.Coordinator) error {
		var open *sequence.Plan
		var err error
		if now, open, err = c.Current(); err == nil && open != nil {
			err = fmt.Errorf("change %s is open", open.UUID)
		}
		return err
	})
	if err != nil {
		t.Fatalf("got %v, want that nothing is left", err)
	}
	return now
}

// endLeft has a proxy end the change that is open, and make none, and returns the plan that is in
// force then.
func (e *planEstate) endLeft(ctx context.Context, other *sequence.Sequences) (now sequence.Plan, err error) {
	return sequence.Inside(other).Coordinate(ctx, func(c *change.Coordinator) error {
		_, open, err := c.Current()
		if err == nil && open != nil {
			_, err = c.End(open)
		}
		if err == nil {
			c.Close()
			_, _, err = c.Current()
		}
		return err
	})
}

// toggled is the change that adds a server to the members, or removes it.
func (e *planEstate) toggled(now sequence.Plan, i int) sequence.PlanChange {
	if slices.ContainsFunc(now.Members, func(m sequence.Member) bool { return m.Address == e.addr(i) }) {
		return sequence.PlanChange{Remove: e.addr(i)}
	}
	return sequence.PlanChange{Add: e.addr(i)}
}

// The admin's connection is cut, or the admin gives up, after each step. The change is made or
// undone, and no member stays frozen.
func TestAChangeWhoseAdminLeavesIsMadeOrUndone(t *testing.T) {
	for _, how := range []string{sequence.InterleaveBlock, sequence.InterleaveStep} {
		t.Run(how, func(t *testing.T) {
			e, h := newPlanEstate(t, 3, map[string]uint64{"photos": 100}), newGivenEver()
			s := e.open(t, func(o *sequence.Options) { o.Interleave = how })
			now := e.change(t, s, sequence.PlanChange{Add: e.addr(1)})
			gone := errors.New("the connection was cut")
			made, undone := 0, 0
			for leaveAt, again := 1, true; again; leaveAt++ {
				admin := e.open(t)
				ctx, leave := context.WithCancelCause(context.Background())
				steps := 0
				again = false
				sequence.Inside(admin).OnPlanStep(func(string, string) error {
					if steps++; steps == leaveAt {
						again = true
						leave(gone)
					}
					return nil
				})
				before := now.Number
				_, err := admin.ChangePlan(ctx, e.toggled(now, 2))
				leave(nil)
				now = e.nothingIsLeft(t, h, "photos")
				switch {
				case !again:
				case now.Number == before:
					undone++
					if err == nil {
						t.Errorf("step %d: the change is said to be made, and is not", leaveAt)
					}
				default:
					made++
					if err != nil {
						t.Errorf("step %d: the change is made, and is said not to be: %v", leaveAt, err)
					}
				}
			}
			if made < 2 || undone < 5 {
				t.Errorf("made %d times and undone %d times: the steps were not all met", made, undone)
			}
		})
	}
}

// opened counts the rows of open changes, on all servers.
func (e *planEstate) opened(t *testing.T) (n int) {
	t.Helper()
	for i := range e.places {
		var here int
		err := e.places[i].db.QueryRow("SELECT COUNT(*) FROM sequence_plan WHERE state IN (?, ?, ?)", change.Proposed, change.Frozen, change.Accepted).Scan(&here)
		if err != nil && !link.HasCode(err, 1146) {
			t.Fatal(err)
		}
		n += here
	}
	return n
}

// A member dies frozen, in the middle of a change that is undone without it. When it is back it
// gives numbers without an admin.
func TestAMemberThatComesBackFrozenGoesOnByItself(t *testing.T) {
	e, h := newPlanEstate(t, 4, map[string]uint64{"photos": 100}), newGivenEver()
	s := e.open(t)
	e.change(t, s, sequence.PlanChange{Add: e.addr(1)})
	now := e.change(t, s, sequence.PlanChange{Add: e.addr(2)})
	sequence.Inside(s).OnPlanStep(func(step, address string) error {
		if step == change.Frozen && address == e.addr(1) {
			e.links[1].Cut()
		}
		return nil
	})
	if _, err := s.ChangePlan(context.Background(), sequence.PlanChange{Add: e.addr(3)}); err == nil {
		t.Fatal("the change was made")
	}
	sequence.Inside(s).OnPlanStep(nil)
	for _, i := range []int{0, 2} { // the others continue
		got, err := e.reserve(t, i, "photos", 3)
		if err != nil {
			t.Fatal(err)
		}
		h.add(t, "photos", got...)
	}
	e.wantFrozen(t, 1, "photos")
	e.links[1].Mend()
	watcher, err := sequence.New(sequence.Options{Servers: []sequence.ServerOptions{e.options(0)}, Tuning: sequence.Tuning{CreateTable: true, NoDirectWriters: true}})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := watcher.Close(context.Background()); err != nil {
			t.Error(err)
		}
	}()
	for _, i := range []int{1, 2} {
		more := e.options(i)
		if err := sequence.Inside(watcher).Add(more); err != nil {
			t.Fatal(err)
		}
	}
	h.add(t, "photos", mustTake(t, watcher, "photos", 1))
	eventually(t, "it is frozen no more", func() bool { return e.opened(t) == 0 })
	if after := e.nothingIsLeft(t, h, "photos"); after.Number != now.Number {
		t.Errorf("plan %d is in force, want %d as before", after.Number, now.Number)
	}
}

// While a change runs, the log of its proxy and every proxy's status show its step, the server, and
// since when.
func TestAChangeTellsHowFarItIs(t *testing.T) {
	e := newPlanEstate(t, 3, map[string]uint64{"photos": 100})
	core, logs := observer.New(zap.InfoLevel)
	s := e.open(t, func(o *sequence.Options) { o.Logger = zap.New(core) })
	e.change(t, s, sequence.PlanChange{Add: e.addr(1)})
	logs.TakeAll()
	other := e.open(t)
	var seen []string
	sequence.Inside(s).OnPlanStep(func(step, address string) error {
		for who, p := range map[string]*sequence.Sequences{"here": s, "elsewhere": other} {
			all, err := p.SequenceServers(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			i := slices.IndexFunc(all, func(l sequence.SequenceServer) bool { return l.Address == address })
			if i < 0 {
				t.Fatalf("%s, after %q on %s: it is not among %+v", who, step, address, all)
			}
			if all[i].State != step {
				t.Errorf("%s, after %q on %s: it is shown as %q", who, step, address, all[i].State)
			}
			if c := all[i].Change; step != sequence.PlanInForce && (c == nil || c.Begun.IsZero() || c.Coordinator == "" || len(c.Members) != 3) {
				t.Errorf("%s, after %q: the change is shown as %+v", who, step, c)
			}
		}
		seen = append(seen, step+" "+address)
		return nil
	})
	e.change(t, s, sequence.PlanChange{Add: e.addr(2)})
	var logged []string
	for _, l := range logs.FilterMessage("step of a change of sequence servers").All() {
		logged = append(logged, fmt.Sprint(l.ContextMap()["state"], " ", l.ContextMap()["server"]))
	}
	if len(seen) < 11 || !slices.Equal(seen, logged) {
		t.Errorf("logged %q, want %q", logged, seen)
	}
}

// Who edits the servers of a file changes no plan.
func TestAConfigurationThatNamesOtherServersThanThePlanIsWarnedOf(t *testing.T) {
	e := newPlanEstate(t, 3, map[string]uint64{"photos": 100})
	e.change(t, e.open(t), sequence.PlanChange{Add: e.addr(1)})
	core, logs := observer.New(zap.WarnLevel)
	s := e.open(t, func(o *sequence.Options) {
		o.Servers = []sequence.ServerOptions{e.options(0), e.options(2)}
		o.Logger = zap.New(core)
	})
	if err := sequence.Inside(s).Add(e.options(1)); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if _, err := s.Take(t.Context(), []byte("photos"), 1); err != nil {
			t.Fatal(err)
		}
	}
	told := logs.FilterMessage("configuration differs from the plan").All()
	if len(told) != 1 {
		t.Fatalf("warned %d times, want once", len(told))
	}
	if got, want := fmt.Sprint(told[0].ContextMap()["only_in_plan"], told[0].ContextMap()["only_in_config"]), fmt.Sprintf("[%s] [%s]", e.addr(1), e.addr(2)); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}
