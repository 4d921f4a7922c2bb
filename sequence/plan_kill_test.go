package sequence_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"seqproxy/sequence"
	"seqproxy/sequence/change"
	"seqproxy/sequence/define"
	"seqproxy/sequence/link"
)

// coordinatorEnv holds what a separate coordinator process is to do.
const coordinatorEnv = "SEQPROXY_TEST_COORDINATOR"

// coordinator describes what a separate process does.
type coordinator struct {
	Servers []sequence.ServerOptions
	Way     string // makeChange, which finishes a change that was left open, or end
	Change  sequence.PlanChange
	KillAt  int // after so many steps; 0: never
}

const (
	makeChange = "change"
	end        = "end" // ends the change that was left open
)

// do calls ChangePlan, or does what a proxy does with a change that was left open.
func (c *coordinator) do(ctx context.Context, s *sequence.Sequences) (sequence.Plan, error) {
	if c.Way == end {
		return new(planEstate).endLeft(ctx, s)
	}
	return s.ChangePlan(ctx, c.Change)
}

// TestCoordinatorProcess is that process, and no test by itself.
func TestCoordinatorProcess(t *testing.T) {
	text := os.Getenv(coordinatorEnv)
	if text == "" {
		t.Skip("run by the tests of coordinators that are killed")
	}
	var c coordinator
	if err := json.Unmarshal([]byte(text), &c); err != nil {
		t.Fatal(err)
	}
	o := sequence.Options{Servers: c.Servers[:1], Tuning: sequence.Tuning{CreateTable: true, NoDirectWriters: true}}
	sequence.LogSteps(&o)
	s, err := sequence.New(o)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close(context.Background())
	for _, o := range c.Servers[1:] {
		if err := sequence.Inside(s).Configure(o); err != nil {
			t.Fatal(err)
		}
	}
	steps := 0
	sequence.Inside(s).OnPlanStep(func(string, string) error {
		if steps++; steps == c.KillAt {
			return syscall.Kill(os.Getpid(), syscall.SIGKILL)
		}
		return nil
	})
	if _, err := c.do(context.Background(), s); err != nil {
		t.Fatal(err)
	}
}

// coordinate makes a change whose coordinator ends after some steps: a separate process by kill -9,
// or one in this process, where nothing is undone either. It reports whether the change was
// complete before.
func (e *planEstate) coordinate(t *testing.T, change sequence.PlanChange, killAt int, process bool) (ended bool) {
	t.Helper()
	if !process {
		steps, here := 0, e.open(t)
		sequence.Inside(here).OnPlanStep(func(step, address string) error {
			if steps++; steps == killAt {
				return errKilled
			}
			return nil
		})
		_, err := changeUntil(context.Background(), here, change)
		if err != nil && !errors.Is(err, errKilled) {
			t.Fatal(err)
		}
		return err == nil
	}
	return e.coordinateApart(t, coordinator{Way: makeChange, Change: change, KillAt: killAt})
}

// coordinateApart runs a coordinator in a separate process. It reports whether that was done before
// it was to be killed.
func (e *planEstate) coordinateApart(t *testing.T, c coordinator) (ended bool) {
	t.Helper()
	for i := range e.places {
		c.Servers = append(c.Servers, e.options(i))
	}
	text, err := json.Marshal(c)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(os.Args[0], "-test.run=^TestCoordinatorProcess$", "-test.timeout=60s")
	cmd.Env = append(os.Environ(), coordinatorEnv+"="+string(text))
	out, err := cmd.CombinedOutput()
	var exit *exec.ExitError
	switch {
	case err == nil:
		return true
	case errors.As(err, &exit) && exit.Sys().(syscall.WaitStatus).Signal() == syscall.SIGKILL:
		return false
	}
	t.Fatalf("coordinator: %v\n%s", err, out)
	return false
}

// gives has each server give a number if it does, whichever plan it obeys, and has an application
// count where the rows are not frozen.
func (e *planEstate) gives(t *testing.T, h *givenEver, name string) (frozen int) {
	t.Helper()
	for i := range e.places {
		got, err := e.reserve(t, i, name, 2)
		switch {
		case link.HasCode(err, 1690):
			frozen++
		case err == nil:
			h.add(t, name, got...)
		case !link.HasCode(err, 1146) && !strings.Contains(err.Error(), "0 rows"):
			t.Fatal(err)
		}
	}
	return frozen
}

func TestAKilledCoordinatorIsReplacedAfterEveryStep(t *testing.T) {
	if testing.Short() {
		t.Skip("starts a process for each step")
	}
	for _, c := range []struct {
		how    string
		stride int // kills are tried after every stride-th step
	}{{sequence.InterleaveBlock, 1}, {sequence.InterleaveStep, 4}} {
		t.Run(c.how, func(t *testing.T) {
			t.Parallel()
			e, h := newPlanEstate(t, 4, map[string]uint64{"photos": 100}), newGivenEver()
			how, stride := c.how, c.stride
			s := e.open(t, func(o *sequence.Options) { o.Interleave = how })
			e.change(t, s, sequence.PlanChange{Add: e.addr(1)})
			now := e.change(t, s, sequence.PlanChange{Add: e.addr(2)})
			ended, repeated, undone, sawFrozen := false, 0, 0, 0
			for killAt := 1; !ended; killAt += stride {
				if killAt > 60 {
					t.Fatal("a change has no end")
				}
				for _, way := range []string{makeChange, end} {
					change := e.toggled(now, 3)
					ended = e.coordinate(t, change, killAt, how == sequence.InterleaveBlock && way == makeChange)
					sawFrozen += e.gives(t, h, "photos")
					if ended {
						break
					}
					other := e.open(t)
					ctx := context.Background()
					all, err := other.SequenceServers(ctx)
					if err != nil {
						t.Fatal(err)
					}
					begun := all[0].Change
					if begun == nil { // that was the last step
						now = e.met(t, other)
						e.everyoneGives(t, h, now, "photos")
						continue
					}
					second := sequence.PlanChange{Remove: e.addr(2)}
					if _, err := other.ChangePlan(ctx, second); err == nil || !strings.Contains(err.Error(), "change "+begun.UUID+" from "+begun.Coordinator+" in progress, since "+begun.Begun.Format(time.DateTime)+" UTC: ") {
						t.Fatalf("step %d: a second change: got %v", killAt, err)
					}
					was := now
					if way == makeChange {
						now, err = other.ChangePlan(ctx, change)
						repeated++
						if err == nil && len(now.Members) == len(was.Members) {
							t.Errorf("step %d: the change was made again, and there are %+v", killAt, now.Members)
						}
					} else if now, err = e.endLeft(ctx, other); err == nil && len(now.Members) == len(was.Members) {
						undone++
					}
					if err != nil {
						t.Fatalf("step %d, %s: %v", killAt, way, err)
					}
					e.met(t, other)
					e.everyoneGives(t, h, now, "photos")
					e.nothingIsOpen(t, other)
				}
			}
			t.Logf("made again %d, undone %d, rows seen frozen %d, highest %d of %d given", repeated, undone, sawFrozen, h.high["photos"], len(h.all["photos"]))
			if repeated < 11/stride || undone < 8/stride || sawFrozen == 0 {
				t.Errorf("made again %d, undone %d, saw %d rows frozen: the steps were not all met", repeated, undone, sawFrozen)
			}
		})
	}
}

// A second coordinator that finishes or repeats what a killed one left open may be killed after
// each of its steps too. The third one ends it, or makes it.
func TestWhoEndsWhatWasLeftIsReplacedAfterEveryStep(t *testing.T) {
	if testing.Short() {
		t.Skip("starts a process for each step")
	}
	for _, c := range []struct {
		// after which step the first one is killed, what the second one does, and what the third
		// one does
		left, way, last string
		steps           int // how many steps the second one has, at least
	}{
		{change.Frozen, makeChange, makeChange, 20},
		{change.Frozen, makeChange, end, 20},
		{change.Frozen, end, makeChange, 3},
		{change.Frozen, end, end, 3},
		{change.Accepted, makeChange, makeChange, 4},
		{change.Accepted, end, end, 4},
	} {
		t.Run(fmt.Sprintf("%s, %s, %s", c.left, c.way, c.last), func(t *testing.T) {
			t.Parallel()
			e, h := newPlanEstate(t, 4, map[string]uint64{"photos": 100}), newGivenEver()
			s := e.open(t)
			e.change(t, s, sequence.PlanChange{Add: e.addr(1)})
			now := e.change(t, s, sequence.PlanChange{Add: e.addr(2)})
			killed, made, undone, sawFrozen := 0, 0, 0, 0
			for killAt, ended := 1, false; !ended; killAt++ {
				if killAt > 60 {
					t.Fatal("it has no end")
				}
				first := e.open(t)
				sequence.Inside(first).OnPlanStep(func(step, address string) error {
					if step == c.left && (step != change.Accepted || address == e.addr(2)) {
						// the last one: then it is decided
						return errKilled
					}
					return nil
				})
				asked := e.toggled(now, 3)
				if _, err := changeUntil(t.Context(), first, asked); !errors.Is(err, errKilled) {
					t.Fatalf("got %v, want that the first coordinator is killed", err)
				}
				sawFrozen += e.gives(t, h, "photos")
				if ended = e.coordinateApart(t, coordinator{Way: c.way, Change: asked, KillAt: killAt}); !ended {
					killed++
					e.gives(t, h, "photos")
					last := coordinator{Way: c.last, Change: asked}
					if _, err := last.do(t.Context(), e.open(t)); err != nil && !strings.Contains(err.Error(), "member") {
						// it was made
						t.Fatalf("step %d: %v", killAt, err)
					}
				}
				was := now
				now = e.nothingIsLeft(t, h, "photos")
				isMade := now.UUID != was.UUID
				if isMade != (len(now.Members) != len(was.Members)) {
					t.Fatalf("step %d: of %+v became %+v", killAt, was, now)
				}
				if isMade {
					made++
				} else {
					undone++
				}
				if ended && isMade != (c.way == makeChange || c.left == change.Accepted) {
					t.Errorf("%s came to its end, and the change is made: %v", c.way, isMade)
				}
			}
			t.Logf("killed %d times, change made %d times, undone %d times, rows seen frozen %d", killed, made, undone, sawFrozen)
			if killed < c.steps || sawFrozen == 0 {
				t.Errorf("killed %d times, saw %d rows frozen: the steps were not all met", killed, sawFrozen)
			}
			switch {
			case c.last == makeChange && undone > 1:
				// a change that was complete may have been undone
				t.Errorf("what was made again was undone %d times", undone)
			case c.left == change.Accepted && undone > 0:
				t.Errorf("what was decided was undone %d times", undone)
			case c.left == change.Frozen && c.way == end && c.last == end && made > 0:
				t.Errorf("what was being undone was made %d times", made)
			case c.left == change.Frozen && c.way == makeChange && c.last == end && (made == 0 || undone == 0):
				t.Errorf("made %d times and undone %d times: want that it depends on the step", made, undone)
			}
		})
	}
}

// A coordinator that slept while another one took over changes nothing any more.
func TestACoordinatorThatSleptChangesNothing(t *testing.T) {
	for _, step := range []string{change.Proposed, change.Frozen, change.Accepted, sequence.PlanInForce} {
		t.Run(step, func(t *testing.T) {
			e, h := newPlanEstate(t, 3, map[string]uint64{"photos": 100}), newGivenEver()
			s, other := e.open(t), e.open(t)
			now := e.change(t, s, sequence.PlanChange{Add: e.addr(1)})
			e.everyoneGives(t, h, now, "photos")
			slept := false
			sequence.Inside(s).OnPlanStep(func(at, _ string) error {
				if at == step && !slept {
					slept = true
					var err error
					if now, err = other.ChangePlan(context.Background(), sequence.PlanChange{Add: e.addr(2)}); err != nil {
						t.Errorf("made again: %v", err)
					}
					e.everyoneGives(t, h, now, "photos")
				}
				return nil
			})
			_, err := s.ChangePlan(context.Background(), sequence.PlanChange{Add: e.addr(2)})
			if step == sequence.PlanInForce && err == nil { // it finds that the others have come to the plan
				err = change.ErrTakenOver
			}
			if !slept || !errors.Is(err, change.ErrTakenOver) && (step != change.Proposed || err == nil) {
				// it may meet the plan that the other one has made
				t.Errorf("got %v, want that another has taken over", err)
			}
			if len(now.Members) != 3 {
				t.Fatalf("got %+v", now)
			}
			e.everyoneGives(t, h, now, "photos")
		})
	}
}

func TestOfTwoAdminsExactlyOneGetsTheChange(t *testing.T) {
	e, h := newPlanEstate(t, 5, map[string]uint64{"photos": 100}), newGivenEver()
	s := e.open(t)
	now := e.change(t, s, sequence.PlanChange{Add: e.addr(1)})
	now = e.change(t, s, sequence.PlanChange{Add: e.addr(2)})
	for range 5 {
		type outcome struct {
			plan sequence.Plan
			err  error
		}
		change := sequence.PlanChange{Add: e.addr(3)}
		if len(now.Members) == 4 {
			change = sequence.PlanChange{Remove: now.Members[3].Address}
		}
		outcomes := make(chan outcome)
		for range 2 {
			admin := e.open(t)
			go func() {
				p, err := admin.ChangePlan(context.Background(), change)
				outcomes <- outcome{p, err}
			}()
		}
		// the slower one may have found it decided, and finished it
		made := make(map[string]bool)
		for range 2 {
			o := <-outcomes
			switch {
			case o.err == nil:
				made[o.plan.UUID] = true
				now = o.plan
			case !strings.Contains(o.err.Error(), " in progress") && !strings.Contains(o.err.Error(), "in the same moment") &&
				!strings.Contains(o.err.Error(), "has taken over"): // as both ask for the same
				// The slower one may have begun after the end of the other.
				if !errors.Is(o.err, define.ErrBadOption) {
					t.Errorf("got %v", o.err)
				}
			}
		}
		if len(made) != 1 {
			t.Fatalf("%d changes were made, want one", len(made))
		}
		e.everyoneGives(t, h, now, "photos")
	}
}

// Of two admins on one proxy the later one is told that a change is in progress.
func TestTheSecondAdminOfAProxyIsToldOfTheChangeInProgress(t *testing.T) {
	e := newPlanEstate(t, 3, map[string]uint64{"photos": 100})
	s := e.open(t)
	refused := make(map[string]error) // by step
	sequence.Inside(s).OnPlanStep(func(step, _ string) error {
		_, refused[step] = s.ChangePlan(context.Background(), sequence.PlanChange{Add: e.addr(2)})
		return nil
	})
	e.change(t, s, sequence.PlanChange{Add: e.addr(1)})
	for _, step := range []string{change.Proposed, change.Frozen, change.Accepted} {
		wantText(t, refused[step], "this proxy is changing", "wait for it", "SHOW SEQPROXY SEQUENCE SERVERS")
	}
}

func TestAServerThatIsAwayNeedsACeiling(t *testing.T) {
	e, h := newPlanEstate(t, 3, map[string]uint64{"photos": 100}), newGivenEver()
	s := e.open(t)
	now := e.change(t, s, sequence.PlanChange{Add: e.addr(1)})
	e.everyoneGives(t, h, now, "photos")
	e.links[1].Cut()
	_, err := s.ChangePlan(context.Background(), sequence.PlanChange{Add: e.addr(2)})
	wantText(t, err, e.addr(1), "all but a removed one")
	if _, err := s.ChangePlan(t.Context(), sequence.PlanChange{Add: e.addr(2), Force: true}); !errors.Is(err, define.ErrBadOption) {
		t.Errorf("ADD ... FORCE: got %v", err)
	}
	// the other one may be about to remove this one
	_, err = s.ChangePlan(context.Background(), sequence.PlanChange{Remove: e.addr(1)})
	wantText(t, err, e.addr(1), "cannot be reached", "say FORCE")
	for i := range 2 { // nothing stays frozen
		if got, err := e.reserve(t, i, "photos", 3); err != nil {
			t.Errorf("server %d: %v", i, err)
		} else {
			h.add(t, "photos", got...)
		}
	}
	now = e.change(t, s, sequence.PlanChange{Remove: e.addr(1), Force: true})
	if len(now.Members) != 1 {
		t.Fatalf("got %+v", now)
	}
	// On the other side of the cut network a proxy continues, below the ceiling.
	for range 20 {
		got, err := e.reserve(t, 1, "photos", 7)
		if err != nil {
			t.Fatal(err)
		}
		h.add(t, "photos", got...)
	}
	got, err := e.reserve(t, 0, "photos", 3)
	if err != nil || got[0] <= 1<<36 {
		t.Errorf("got %d, %v, want numbers above the ceiling of the lost member", got, err)
	}
	h.add(t, "photos", got...)
	// The member comes back with the old plan, and obeys the new one before it gives a number.
	e.links[1].Mend()
	now = e.change(t, s, sequence.PlanChange{Add: e.addr(2)})
	r := e.bringBack(t, s, 1, 0, now)
	if r.Plan == 1 || r.Count != 0 {
		t.Errorf("the removed server says %+v, want that it has left", r)
	}
	e.wantFrozen(t, 1, "photos")
	now = e.change(t, s, sequence.PlanChange{Add: e.addr(1)})
	e.everyoneGives(t, h, now, "photos")
	if len(now.Members) != 3 {
		t.Fatalf("got %+v", now)
	}
}

// server is one that the test reaches over separate connections.
func (e *planEstate) server(t *testing.T, s *sequence.Sequences, i int) sequence.Server {
	t.Helper()
	v, err := sequence.Inside(s).Apart(e.addr(i))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = v.Close() })
	return v
}

// bringBack has a server catch up, as proxies do when they meet it.
func (e *planEstate) bringBack(t *testing.T, s *sequence.Sequences, i, from int, p sequence.Plan) sequence.Membership {
	t.Helper()
	v, good := e.server(t, s, i), e.server(t, s, from)
	ctx, stop := context.WithTimeout(context.Background(), 10*time.Second)
	defer stop()
	for range 2 { // the second time changes nothing
		var met []change.Met
		for _, o := range []sequence.Server{v, good} {
			said, err := o.PlanStore().Report(ctx)
			if err != nil {
				t.Fatal(err)
			}
			met = append(met, change.Met{Store: o.PlanStore(), Report: said})
		}
		if failed := change.Reconcile(ctx, met, &p, nil, nil); errors.Join(failed...) != nil {
			t.Fatal(failed)
		}
	}
	return e.member(t, i)
}

func TestAMemberThatMissedAPlanObeysItBeforeItGivesANumber(t *testing.T) {
	for _, how := range []string{sequence.InterleaveBlock, sequence.InterleaveStep} {
		t.Run(how, func(t *testing.T) {
			e, h := newPlanEstate(t, 4, map[string]uint64{"photos": 100}), newGivenEver()
			s := e.open(t, func(o *sequence.Options) { o.Interleave = how })
			e.change(t, s, sequence.PlanChange{Add: e.addr(1)})
			now := e.change(t, s, sequence.PlanChange{Add: e.addr(2)})
			e.everyoneGives(t, h, now, "photos")
			now = e.changeWithout(t, s, sequence.PlanChange{Add: e.addr(3)}, 2, func() {
				for _, i := range []int{0, 1, 3} {
					got, err := e.reserve(t, i, "photos", 5)
					if err != nil {
						t.Fatal(err)
					}
					h.add(t, "photos", got...)
				}
				for _, i := range []int{0, 1, 3} { // a sequence is made that it does not know
					e.places[i].exec(t, "INSERT INTO sequence VALUES ('late', ?)", map[int]int{0: 1, 1: 2, 3: 4}[i])
				}
			})
			if m := e.bringBack(t, s, 2, 0, now); m.Plan != now.Number || m.Position != 2 || m.Count != 4 {
				t.Errorf("it says %+v", m)
			}
			e.everyoneGives(t, h, now, "photos", "late")
		})
	}
}

// met has a proxy meet the servers, and bring those that are behind to the plan in force.
func (e *planEstate) met(t *testing.T, s *sequence.Sequences) sequence.Plan {
	t.Helper()
	if err := sequence.Inside(s).ReadPlan(t.Context()); err != nil {
		t.Fatal(err)
	}
	now, err := planOf(t.Context(), s)
	if err != nil {
		t.Fatal(err)
	}
	return now
}

// planOf returns the plan in force.
func planOf(ctx context.Context, s *sequence.Sequences) (sequence.Plan, error) {
	return sequence.Inside(s).Coordinate(ctx, func(c *change.Coordinator) error {
		_, _, err := c.Current()
		return err
	})
}
