package change_test

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"seqproxy/sequence/change"
	"seqproxy/sequence/segment"
	"seqproxy/test/simulation"
)

// A scenario is a change that is tried in many orders of steps.
type scenario struct {
	name             string
	servers, members int
	asked            change.Change
	interleave       string  // blocks, if it is empty
	cut              []int   // from the coordinators
	proxies          [][]int // what each is cut from

	order bool // the last server is the home of the sequence, which is one with ORDER
	off   int  // so many of the last servers are off, and come back at the end
	// what a proxy does meanwhile, in place of a second coordinator
	does func(e *estate) *simulation.Actor
}

const name = "photos"

func address(i int) string { return fmt.Sprintf("10.0.0.%d:3306", i+1) }

var scenarios = []scenario{
	{name: "one is removed that only others reach", servers: 3, members: 3, asked: change.Change{Remove: address(2), Force: true}, cut: []int{2}, proxies: [][]int{{2}, {0, 1}, {1}, nil}},
	{name: "one is added", servers: 3, members: 2, asked: change.Change{Add: address(2)}, proxies: [][]int{nil, nil}},
	{name: "the first one is added", servers: 2, members: 1, asked: change.Change{Add: address(1)}, proxies: [][]int{nil, nil}},
	{name: "one is removed", servers: 3, members: 3, asked: change.Change{Remove: address(2), Force: true}, proxies: [][]int{nil, nil}},
	{name: "one is added in steps", servers: 3, members: 2, interleave: segment.InSteps, asked: change.Change{Add: address(2)}, proxies: [][]int{nil, nil}},
	{name: "one of two is left", servers: 2, members: 2, asked: change.Change{Remove: address(1)}, proxies: [][]int{nil, nil}},
	{name: "the home of an ORDER sequence is removed", servers: 3, members: 3, order: true, asked: change.Change{Remove: address(2)}, proxies: [][]int{nil, {0}}},
	{name: "the home of an ORDER sequence is lost", servers: 3, members: 3, order: true, off: 1, asked: change.Change{Remove: address(2), Force: true}, proxies: [][]int{nil, {0}}},
	{name: "a sequence is moved ahead while one is added", servers: 3, members: 2, asked: change.Change{Add: address(2)}, proxies: [][]int{nil, {0}}, does: sets},
	{name: "a sequence is moved ahead in steps while one is added", servers: 3, members: 2, interleave: segment.InSteps, asked: change.Change{Add: address(2)}, proxies: [][]int{nil}, does: sets},
	{name: "a sequence is moved ahead while one is removed", servers: 3, members: 3, asked: change.Change{Remove: address(2)}, proxies: [][]int{nil, {0}}, does: sets},
	{name: "a sequence becomes one with ORDER while one is added", servers: 3, members: 2, asked: change.Change{Add: address(2)}, proxies: [][]int{nil, nil}, does: orders},
	{name: "a sequence becomes one with ORDER while its home is removed", servers: 3, members: 3, asked: change.Change{Remove: address(1)}, proxies: [][]int{nil, nil}, does: orders},
	{name: "a sequence begins again while the first one is added", servers: 2, members: 1, asked: change.Change{Add: address(1)}, proxies: [][]int{nil}, does: restarts},
	{name: "a sequence begins again while another proxy is there", servers: 2, members: 1, asked: change.Change{Add: address(1)}, proxies: [][]int{nil, nil}, does: restarts},
	{name: "a sequence begins again while one of two is removed", servers: 2, members: 2, asked: change.Change{Remove: address(1)}, proxies: [][]int{nil}, does: restarts},
}

// What the first proxy does, over a connection of its own.
func sets(e *estate) *simulation.Actor     { return e.proxies[0].SetValue(name, 1000) }
func orders(e *estate) *simulation.Actor   { return e.proxies[0].MakeOrdered(name, 1) }
func restarts(e *estate) *simulation.Actor { return e.proxies[0].Restart(name, 1) }

// estate is a scenario that runs.
type estate struct {
	*simulation.World
	scenario
	proxies []*simulation.Proxy
}

func (s *scenario) start(faults simulation.Faults) *estate {
	e := &estate{World: simulation.NewWorld(s.servers, s.members, cmp.Or(s.interleave, segment.InBlocks), name), scenario: *s}
	e.Faults = faults
	for i, cut := range s.proxies {
		p := e.NewProxy(fmt.Sprint("proxy", i), cut...)
		p.TakeAll(name, 2)
		e.proxies = append(e.proxies, p)
	}
	if s.order {
		e.Ordered(name, s.servers-1)
	}
	for i := s.servers - s.off; i < s.servers; i++ {
		e.Off(i)
	}
	return e
}

// two are the actors that a schedule switches between.
func (e *estate) two() (first, second *simulation.Actor) {
	if first = e.coordinator(1); e.does != nil {
		return first, e.does(e)
	}
	return first, e.coordinator(2)
}

func (e *estate) coordinator(i int) *simulation.Actor {
	return e.Change(fmt.Sprint("coordinator", i), e.asked, e.cut...)
}

// writes reports whether a step of a coordinator changes anything.
func writes(step string) bool {
	switch step {
	case "report", "look", "knowledge", "reserve", "record", "lock", "find", "agree", "ask", "give", "await":
		return false
	}
	return true
}

// runWrites resumes an actor until it stands before a step that writes, so many times.
func runWrites(a *simulation.Actor, times int) bool {
	for range times {
		for a.Resume() && !writes(a.Next) {
		}
	}
	return !a.Ended
}

// giveAfter has all proxies give after each step that writes.
func (e *estate) giveAfter() {
	inside := false
	e.Seen = func(step string) {
		if inside || !writes(step) {
			return
		}
		inside = true
		for _, p := range e.proxies {
			p.TakeAll(name, 5)
		}
		inside = false
	}
}

// end says the same again until it is made, when everything can be reached, and looks whether the
// members go on.
func (e *estate) end() error {
	e.Seen = nil
	e.scenario.cut = nil
	for i := range e.Members {
		e.On(i)
	}
	for _, p := range e.proxies {
		clear(p.Actor.Cut)
	}
	last := e.coordinator(9)
	last.Run()
	if err := last.Err; err != nil && !strings.Contains(err.Error(), "member") && !strings.Contains(err.Error(), "belongs to another set") {
		// it was made before
		return fmt.Errorf("the same again: %w", err)
	}
	if e.does != nil {
		again := e.does(e)
		if again.Run(); again.Err != nil && !simulation.IsRefused(again.Err) {
			return fmt.Errorf("%s again: %w", again.Name, again.Err)
		}
	}
	for range 3 {
		for i, p := range e.proxies {
			if err := p.Read(); err != nil {
				return fmt.Errorf("proxy %d: %w", i, err)
			}
			members := p.Plan().Members
			want := len(members)
			if e.IsOrdered(name) {
				want = 1
			}
			if got := p.TakeAll(name, 9); got != want {
				return fmt.Errorf("proxy %d: %d of %d members give", i, got, len(members))
			}
		}
	}
	if len(e.Twice) > 0 {
		return fmt.Errorf("given twice: %s", strings.Join(e.Twice[:min(3, len(e.Twice))], "; "))
	}
	return nil
}

// failed tells what was done.
func (e *estate) failed(what string, err error) error {
	return fmt.Errorf("%s, %s: %w\n%s", e.name, what, err, e.Steps())
}

// length is how many steps a change takes.
func (s *scenario) length(t *testing.T) int {
	t.Helper()
	e := s.start(simulation.Faults{})
	a := e.coordinator(1)
	a.Run()
	if a.Err != nil {
		t.Fatalf("%s: %v\n%s", s.name, a.Err, e.Steps())
	}
	return a.Steps()
}

// run resumes an actor so many times, and reports whether it goes on.
func run(a *simulation.Actor, steps int) bool {
	for range steps {
		if !a.Resume() {
			return false
		}
	}
	return true
}

// schedules tries a scenario in every order that a test asks for, and returns the first failure,
// and how many were tried.
func (s *scenario) schedules(steps int, faults simulation.Faults) (tried int, err error) {
	try := func(what string, f func(e *estate)) bool {
		tried++
		e := s.start(faults)
		e.giveAfter()
		f(e)
		if failed := e.end(); failed != nil {
			err = e.failed(what, failed)
		}
		return err == nil
	}
	// Two coordinators, of which the first stands still after i steps, and the second after j.
	for i := range steps + 1 {
		for j := range 2 * steps {
			over := false
			if !try(fmt.Sprintf("switched after %d and %d steps", i, j), func(e *estate) {
				first, second := e.two()
				run(first, i+1)
				over = !run(second, j+1)
				first.Run()
				second.Run()
			}) {
				return tried, err
			}
			if over {
				break
			}
		}
	}
	// The first stands still before its i-th step that writes, then the second before his j-th, and
	// the first is killed k such steps later.
	for i, more := 1, true; more; i++ {
		for j, on := 1, true; on; j++ {
			for k, goes := 1, true; goes; k++ {
				if !try(fmt.Sprintf("switched at writes %d and %d, killed at %d", i, j, k), func(e *estate) {
					first, second := e.two()
					more = runWrites(first, i)
					on = runWrites(second, j)
					goes = runWrites(first, k)
					first.Kill()
					second.Run()
				}) {
					return tried, err
				}
			}
		}
	}
	// The first is killed before its i-th step that writes. Then two end what it left, which reach
	// some of the members each.
	for i, more := 1, s.does == nil && !s.order; more; i++ {
		for reach := range 1 << (2 * s.servers) {
			for j, on := 1, true; on; j++ {
				if !try(fmt.Sprintf("killed at write %d, ended by two who reach %b, switched at %d", i, reach, j), func(e *estate) {
					first, second, third := e.coordinator(1), e.coordinator(2), e.coordinator(3)
					for at := range s.servers {
						second.Cut[at], third.Cut[at] = reach>>at&1 == 0, reach>>(s.servers+at)&1 == 0
					}
					more = runWrites(first, i)
					first.Kill()
					on = runWrites(second, j)
					third.Run()
					second.Run()
				}) {
					return tried, err
				}
			}
		}
	}
	// The first is killed after i steps, and the second after j; a third may end it.
	for i := range steps + 1 {
		for j := range 2 * steps {
			over := false
			if !try(fmt.Sprintf("killed after %d and %d steps", i, j), func(e *estate) {
				first, second := e.two()
				run(first, i+1)
				first.Kill()
				over = !run(second, j+1)
				second.Kill()
			}) {
				return tried, err
			}
			if over {
				break
			}
		}
	}
	// One does not get an answer, and another one runs from some step of his on.
	for lose := 1; lose <= steps; lose++ {
		for _, unsent := range []bool{false, true} {
			for at := 0; at <= 2*steps; at++ {
				over := false
				if !try(fmt.Sprintf("answer %d lost (unsent %v), switched after %d steps", lose, unsent, at), func(e *estate) {
					first, second := e.two()
					first.Lose, first.Unsent = lose, unsent
					over = !run(first, at+1)
					second.Run()
					first.Run()
				}) {
					return tried, err
				}
				if over {
					break
				}
			}
		}
	}
	return tried, nil
}

// Every order of two coordinators with at most two switches, a kill after each step of both, and
// one answer that is lost.
func TestSchedulesOfTwoCoordinators(t *testing.T) {
	for i := range scenarios {
		if i > 1 && testing.Short() {
			break
		}
		s := &scenarios[i]
		t.Run(s.name, func(t *testing.T) {
			t.Parallel()
			steps := s.length(t)
			tried, err := s.schedules(steps, simulation.Faults{})
			if err != nil {
				t.Fatal(err)
			}
			t.Logf("%d steps, %d schedules", steps, tried)
		})
	}
}

// random runs coordinators in an order by chance, of which some are killed, some do not get an
// answer, and some are cut from members for a while.
func (s *scenario) random(seed uint64, faults simulation.Faults) error {
	rng := rand.New(rand.NewPCG(seed, 7))
	e := s.start(faults)
	e.Random = rng
	e.giveAfter()
	var actors []*simulation.Actor
	for i := range 2 + rng.IntN(2) {
		a, steps := e.coordinator(i), 40
		if i > 0 && s.does != nil {
			if a, steps = s.does(e), 8; rng.IntN(4) == 0 {
				a.Cut[rng.IntN(s.servers)] = true
			}
		}
		if rng.IntN(3) == 0 {
			a.Lose, a.Unsent = 1+rng.IntN(steps), rng.IntN(2) == 0
		}
		actors = append(actors, a)
	}
	takes := e.proxies[0]
	if len(e.proxies) > 1 && rng.IntN(2) == 0 {
		takes = e.NewProxy("another") // which knows nothing besides
	}
	actors = append(actors, takes.Taker(name, 3, 20))
	forced := s.off > 0 // who is out has to stay out
	for range 300 {
		a := actors[rng.IntN(len(actors))]
		for range 1 + rng.IntN(12) {
			a.Resume()
		}
		switch at := rng.IntN(s.servers); rng.IntN(25) {
		case 0:
			a.Kill()
		case 1:
			if !forced {
				a.Cut[at] = !a.Cut[at]
			}
		case 2:
			p := e.proxies[rng.IntN(len(e.proxies))]
			if !forced {
				p.Actor.Cut[at] = !p.Actor.Cut[at]
			}
		case 3:
			if !forced {
				e.Off(at)
			}
		case 4:
			if !forced {
				e.On(at)
			}
		}
	}
	for _, a := range actors {
		a.Run()
	}
	if err := e.end(); err != nil {
		return e.failed(fmt.Sprintf("seed %d", seed), err)
	}
	return nil
}

func TestRandomSchedules(t *testing.T) {
	for i := range scenarios {
		s := &scenarios[i]
		t.Run(s.name, func(t *testing.T) {
			t.Parallel()
			for seed := range simulation.Schedules(t, 20000, 4000) / uint64(len(scenarios)) {
				if err := s.random(seed, simulation.Faults{}); err != nil {
					t.Fatal(err)
				}
			}
		})
	}
}

// Without one of the rules the schedules give a number twice, out of order, or in spite of a
// SETVAL, or leave a member frozen.
func TestSchedulesFindWhatIsMissing(t *testing.T) {
	for what, missing := range map[string]struct {
		among  string // scenarios whose names have this word
		faults simulation.Faults
	}{
		"an older coordinator may write":                          {"one is", simulation.Faults{NoBallot: true}},
		"rows thaw before the vote":                               {"one is", simulation.Faults{ThawsBeforeVote: true}},
		"a member that is away counts as frozen":                  {"one is", simulation.Faults{ForgetsMissing: true}},
		"a ceiling is recorded under any plan":                    {"one is", simulation.Faults{RecordsForAnyPlan: true}},
		"a plan is written beside another one":                    {"one is", simulation.Faults{WritesUnaware: true}},
		"a member gives numbers of an ORDER sequence at any time": {"ORDER", simulation.Faults{AnyHome: true}},
		"a member that is added does not hear of ORDER":           {"becomes one with ORDER while one is added", simulation.Faults{KeepsOptions: true}},
		"SETVAL is answered without a member":                     {"moved ahead", simulation.Faults{SetsSome: true}},
		"SETVAL goes on while rows are frozen":                    {"moved ahead", simulation.Faults{SetsFrozen: true}},
		"RESTART ... FORCE does not look for other proxies":       {"begins again", simulation.Faults{RestartsUnchecked: true}},
		"a proxy gives what it reserved before RESTART ... FORCE": {"begins again", simulation.Faults{KeepsEpoch: true}},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			total := 0
			found := func(err error) bool {
				if err != nil {
					t.Logf("found by schedule %d: %.300s", total, err)
				}
				return err != nil
			}
			for i := range scenarios {
				s := &scenarios[i]
				if !strings.Contains(s.name, missing.among) {
					continue
				}
				for seed := range uint64(200) {
					total++
					if found(s.random(seed, missing.faults)) {
						return
					}
				}
				tried, err := s.schedules(s.length(t), missing.faults)
				total += tried
				if found(err) {
					return
				}
			}
			t.Errorf("%d schedules do not find it", total)
		})
	}
}
