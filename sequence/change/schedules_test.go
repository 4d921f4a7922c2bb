package change_test

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"seqproxy/sequence/change"
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
}

const name = "photos"

func address(i int) string { return fmt.Sprintf("10.0.0.%d:3306", i+1) }

var scenarios = []scenario{
	{name: "one is removed that only others reach", servers: 3, members: 3, asked: change.Change{Remove: address(2)}, cut: []int{2}, proxies: [][]int{{2}, {0, 1}, {1}, nil}},
	{name: "one is added", servers: 3, members: 2, asked: change.Change{Add: address(2)}, proxies: [][]int{nil, nil}},
	{name: "the first one is added", servers: 2, members: 1, asked: change.Change{Add: address(1)}, proxies: [][]int{nil, nil}},
	{name: "one is removed", servers: 3, members: 3, asked: change.Change{Remove: address(2)}, proxies: [][]int{nil, nil}},
	{name: "one is added in steps", servers: 3, members: 2, interleave: change.InterleaveStep, asked: change.Change{Add: address(2)}, proxies: [][]int{nil, nil}},
	{name: "one of two is left", servers: 2, members: 2, asked: change.Change{Remove: address(1)}, proxies: [][]int{nil, nil}},
}

// estate is a scenario that runs.
type estate struct {
	*simulation.World
	scenario
	proxies []*simulation.Proxy
}

func (s *scenario) start(faults simulation.Faults) *estate {
	e := &estate{World: simulation.NewWorld(s.servers, s.members, cmp.Or(s.interleave, change.InterleaveBlock), name), scenario: *s}
	e.Faults = faults
	for i, cut := range s.proxies {
		p := e.NewProxy(fmt.Sprint("proxy", i), cut...)
		p.TakeAll(name, 2)
		e.proxies = append(e.proxies, p)
	}
	return e
}

func (e *estate) coordinator(i int) *simulation.Actor {
	return e.Change(fmt.Sprint("coordinator", i), e.asked, e.cut...)
}

// writes reports whether a step of a coordinator changes anything.
func writes(step string) bool {
	switch step {
	case "report", "identify", "sequences", "knowledge", "reserve", "record":
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
	for _, p := range e.proxies {
		clear(p.Actor.Cut)
	}
	last := e.coordinator(9)
	last.Run()
	if err := last.Err; err != nil && !strings.Contains(err.Error(), "member") && !strings.Contains(err.Error(), "belongs to another set") {
		// it was made before
		return fmt.Errorf("the same again: %w", err)
	}
	for range 3 {
		for i, p := range e.proxies {
			if err := p.Read(); err != nil {
				return fmt.Errorf("proxy %d: %w", i, err)
			}
			members := p.Plan().Members
			if got := p.TakeAll(name, 9); got != len(members) {
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
				first, second := e.coordinator(1), e.coordinator(2)
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
					first, second := e.coordinator(1), e.coordinator(2)
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
	for i, more := 1, true; more; i++ {
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
				first, second := e.coordinator(1), e.coordinator(2)
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
					first, second := e.coordinator(1), e.coordinator(2)
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
		a := e.coordinator(i)
		if rng.IntN(3) == 0 {
			a.Lose, a.Unsent = 1+rng.IntN(40), rng.IntN(2) == 0
		}
		actors = append(actors, a)
	}
	for range 300 {
		a := actors[rng.IntN(len(actors))]
		for range 1 + rng.IntN(12) {
			a.Resume()
		}
		switch rng.IntN(25) {
		case 0:
			a.Kill()
		case 1:
			at := rng.IntN(s.servers)
			a.Cut[at] = !a.Cut[at]
		case 2:
			p := e.proxies[rng.IntN(len(e.proxies))]
			at := rng.IntN(s.servers)
			p.Actor.Cut[at] = !p.Actor.Cut[at]
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

// Without one of the rules the schedules give a number twice, or leave a member frozen.
func TestSchedulesFindWhatIsMissing(t *testing.T) {
	for what, faults := range map[string]simulation.Faults{
		"an older coordinator may write":         {NoBallot: true},
		"rows thaw before the vote":              {ThawsBeforeVote: true},
		"a member that is away counts as frozen": {ForgetsMissing: true},
		"a ceiling is recorded under any plan":   {RecordsForAnyPlan: true},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			total := 0
			for i := range scenarios {
				s := &scenarios[i]
				tried, err := s.schedules(s.length(t), faults)
				total += tried
				if err != nil {
					t.Logf("found by schedule %d: %.300s", total, err)
					return
				}
			}
			t.Errorf("%d schedules do not find it", total)
		})
	}
}
