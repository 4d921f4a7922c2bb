package limit_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"seqproxy/test/simulation"
)

const name = "photos"

// A kind is a group whose steps are tried in many orders.
type kind struct {
	what      string
	nodes     int
	cluster   bool
	reported  bool  // of its configurations, as group replication
	single    bool  // one node of the cluster is written to
	forgetful []int // nodes whose crash loses what they committed last
}

var kinds = []kind{
	{what: "a primary and two replicas", nodes: 3},
	{what: "a primary and a replica", nodes: 2},
	{what: "a primary and two replicas, of which one does not flush", nodes: 3, forgetful: []int{2}},
	{what: "a cluster", nodes: 3, cluster: true},
	{what: "a cluster of which one node does not flush", nodes: 3, cluster: true, forgetful: []int{2}},
	{what: "a replication group with a primary", nodes: 3, cluster: true, reported: true, single: true},
	{what: "a replication group in which all are primaries", nodes: 3, cluster: true, reported: true},
}

// estate is a group with proxies, in which things fail at random.
type estate struct {
	*simulation.Group
	kind
	rng     *rand.Rand
	proxies []*simulation.GroupProxy
	made    int
	order   bool // it is an ORDER sequence
}

func (k *kind) start(seed uint64, faults simulation.GroupFaults) *estate {
	e := &estate{kind: *k, rng: rand.New(rand.NewPCG(seed, 5))}
	if k.reported {
		e.Group = simulation.NewReplicationGroup(k.nodes, k.single, seed, name, k.forgetful...)
	} else {
		e.Group = simulation.NewGroup(k.nodes, k.cluster, seed, name, k.forgetful...)
	}
	e.Faults = faults
	e.order, e.Ticks = seed%3 == 2, seed%5 == 4
	return e
}

// join has another proxy take numbers.
func (e *estate) join() *simulation.GroupProxy {
	e.made++
	p := e.NewGroupProxy(fmt.Sprint("proxy", e.made), name, 1+uint64(e.rng.IntN(3)), 6+e.rng.IntN(16))
	p.Order, p.Ahead = e.order, e.rng.IntN(2) == 0
	if e.rng.IntN(3) == 0 {
		p.Moves = 1 + uint64(e.rng.IntN(6))
	}
	return p
}

// node is a random one.
func (e *estate) node() int { return e.rng.IntN(len(e.Nodes)) }

// breakOrMend does what operators and machines do.
func (e *estate) breakOrMend() {
	a, b := e.node(), e.node()
	if e.cluster {
		switch e.rng.IntN(6) {
		case 0:
			e.Crash(a)
		case 1:
			e.Part(a)
		case 2:
			e.Notice(a)
		case 3:
			e.Join(a)
		case 4:
			for i := range e.Nodes {
				e.Crash(i)
				if e.rng.IntN(2) == 0 {
					e.LoseReceived(i)
				}
			}
			if a != b && e.rng.IntN(2) == 0 { // before anybody notices
				e.Bootstrap(a, b)
				for i := range e.Nodes {
					e.Join(i)
				}
			}
		case 5:
			if a != b {
				e.Bootstrap(a, b)
			}
		}
		return
	}
	switch e.rng.IntN(7) {
	case 0:
		e.Crash(a)
	case 1:
		e.Restart(a)
	case 2, 3: // a fail-over
		if !e.Nodes[a].ReadOnly || !e.Nodes[a].Up {
			return
		}
		apart := e.rng.IntN(3) == 0 // the old primary lives on, and proxies reach either
		for i, n := range e.Nodes {
			switch {
			case i == a || n.ReadOnly:
			case apart:
				for _, p := range e.proxies {
					clear(p.Cut)
					p.Cut[[]int{a, i}[e.rng.IntN(2)]] = true
				}
			case e.rng.IntN(4) > 0:
				e.Crash(i)
			}
		}
		e.Promote(a, e.rng.IntN(5))
		for i := range e.Nodes {
			if e.rng.IntN(3) > 0 {
				e.Follow(i, a)
			}
		}
	case 4, 5:
		e.Follow(a, b)
	case 6:
		e.Copy(a, b)
	}
}

// mend brings all nodes back.
func (e *estate) mend() {
	if e.cluster {
		for i := range e.Nodes {
			e.Notice(i)
		}
		if !e.Alive() {
			a := e.node()
			e.Bootstrap(a, (a+1)%len(e.Nodes))
		}
		for i := range e.Nodes {
			e.Join(i)
		}
	} else {
		primary := e.node()
		any := slices.ContainsFunc(e.Nodes, func(n *simulation.Node) bool { return n.Knows() })
		for e.Nodes[primary].Forgets || any && !e.Nodes[primary].Knows() {
			primary = e.node()
		}
		for i := range e.Nodes {
			e.Restart(i)
		}
		e.Promote(primary, 0)
		for i := range e.Nodes {
			e.Follow(i, primary)
		}
	}
	for e.ApplyAll() {
	}
}

// end brings all nodes back, and checks that numbers are given, and none came twice.
func (e *estate) end() error {
	e.mend()
	for range 2 {
		p := e.join()
		for p.Resume() {
			e.ApplyAll()
		}
		if len(e.Twice) > 0 {
			break
		}
		if p.Err != nil || p.Given == 0 {
			return fmt.Errorf("%s gives %d numbers: %w", p.Name, p.Given, p.Err)
		}
	}
	if len(e.Twice) > 0 {
		return fmt.Errorf("given twice: %s", strings.Join(e.Twice[:min(3, len(e.Twice))], "; "))
	}
	return nil
}

// random runs proxies in a random order, while nodes lag, crash, forget, are cut off and come back.
func (k *kind) random(seed uint64, faults simulation.GroupFaults) (given int, err error) {
	e := k.start(seed, faults)
	e.proxies = append(e.proxies, e.join(), e.join())
	first := e.proxies[0] // the first time all nodes are up
	for i := e.rng.IntN(40); i > 0 && first.Resume(); i-- {
		e.ApplyAll()
	}
	busy := 1 + e.rng.IntN(8) // how much faster numbers are taken than commits are replicated
	calm := 40 + e.rng.IntN(200)
	for range 200 {
		switch x := e.rng.IntN(calm); {
		case x < 3:
			e.breakOrMend()
		case x == 3:
			p := e.proxies[e.rng.IntN(len(e.proxies))]
			p.Cut[e.node()] = e.rng.IntN(3) == 0
		case x == 4 && len(e.proxies) < 6:
			if e.rng.IntN(2) == 0 {
				e.proxies[e.rng.IntN(len(e.proxies))].Kill()
			}
			p := e.join()
			if e.rng.IntN(3) == 0 {
				p.Lose, p.Unsent = 1+e.rng.IntN(60), e.rng.IntN(2) == 0
			}
			e.proxies = append(e.proxies, p)
		case x == 5:
			e.Nodes[e.node()].Flush()
		case x < calm/2:
			at := e.node()
			for range e.rng.IntN(6) {
				e.Apply(at)
			}
		default:
			p := e.proxies[e.rng.IntN(len(e.proxies))]
			for range e.rng.IntN(3 * busy) {
				p.Resume()
			}
		}
	}
	for _, p := range e.proxies {
		given += p.Given
	}
	for _, p := range e.proxies {
		clear(p.Cut)
	}
	if err := e.end(); err != nil {
		return given, fmt.Errorf("%s, seed %d: %w\n%s", e.what, seed, err, e.Steps())
	}
	for _, p := range e.proxies {
		p.Run()
	}
	if len(e.Twice) > 0 {
		return given, fmt.Errorf("%s, seed %d: given twice: %s\n%s", e.what, seed, strings.Join(e.Twice[:min(3, len(e.Twice))], "; "), e.Steps())
	}
	return given, nil
}

func TestRandomSchedules(t *testing.T) {
	for i := range kinds {
		k := &kinds[i]
		t.Run(k.what, func(t *testing.T) {
			t.Parallel()
			given, all := 0, simulation.Schedules(t, 5000, 1000)/uint64(len(kinds))
			for seed := range all {
				n, err := k.random(seed, simulation.GroupFaults{})
				if err != nil {
					t.Fatal(err)
				}
				given += n
			}
			t.Logf("%d numbers in %d schedules", given, all)
		})
	}
}

// writes reports whether a step changes anything.
func writes(step string) bool {
	switch step {
	case "look", "read", "read counter", "begin", "confirm":
		return false
	}
	return true
}

// lagging has the nodes apply what others committed, but for so many commits.
func (e *estate) lagging(lag []int) {
	for i := range e.Nodes {
		for e.Lag(i) > lag[i] && e.Apply(i) {
		}
	}
}

// runWrites resumes a proxy until it stands before its n-th step that writes, while nodes lag so
// far.
func (e *estate) runWrites(p *simulation.GroupProxy, n int, lag ...int) bool {
	for range n {
		for {
			more := p.Resume()
			e.lagging(lag)
			if !more {
				return false
			}
			if writes(p.Next) {
				break
			}
		}
	}
	return true
}

func (e *estate) proxy(times int) *simulation.GroupProxy {
	e.made++
	return e.NewGroupProxy(fmt.Sprint("proxy", e.made), name, 2, times)
}

// another runs another proxy to its end, while nodes lag so far.
func (e *estate) another(lag ...int) {
	e.runWrites(e.proxy(4), 40, lag...)
}

// writesTried is how many writing steps a proxy makes at most before something happens. In these it
// makes a node the holder, and opens two windows.
const writesTried = 11

// failOvers are schedules of a primary and two replicas: the first one dies before the i-th step
// that a proxy writes, or lives on out of the way of others; the second one dies before the j-th
// step of another proxy, and the third one applies late what it has received. Replicas lag. Where
// two commits come late, proxies move the sequence ahead too.
func failOvers(stride int, faults simulation.GroupFaults, found func(what string, e *estate) bool) (tried int) {
	for i := 1; i <= writesTried; i += stride {
		for j := 1; j <= writesTried; j += stride {
			for shape := range 3 * 3 * 2 * 3 {
				b, c, apart, late := shape%3, shape/3%3, shape/9%2 == 1, shape/18
				e := kinds[0].start(1, faults)
				first, second := e.proxy(6), e.proxy(6)
				if late == 2 {
					first.Moves, second.Moves = 10, 10
				}
				e.runWrites(first, i, 0, b, c)
				if apart {
					first.CutFrom(1)
					second.CutFrom(0)
				} else {
					e.Crash(0)
				}
				e.Promote(1, late)
				e.Follow(2, 1)
				if !apart {
					e.Restart(0)
					e.Follow(0, 1)
				}
				e.runWrites(second, j, 0, 0, c)
				if apart {
					e.runWrites(first, 20, 0, 0, c)
				} else {
					second.Resume() // what it writes is only received
				}
				e.Crash(1)
				e.Promote(2, late)
				e.Follow(0, 2)
				e.another(0, 0, 9)
				e.ApplyAll()
				e.another(0, 0, 0)
				e.runWrites(second, 20, 0, 0, 0)
				tried++
				what := fmt.Sprintf("fail-over before writes %d and %d, lags %d and %d, apart %v, late %d", i, j, b, c, apart, late)
				if !found(what, e) {
					return tried
				}
			}
		}
	}
	return tried
}

// bootstraps are schedules of a cluster: before the i-th step that a proxy writes a node leaves, or
// all crash and the better of two begins again; the same before the j-th step of another proxy.
func bootstraps(stride int, faults simulation.GroupFaults, found func(what string, e *estate) bool) (tried int) {
	shakes := []func(e *estate){
		func(e *estate) { e.Part(0) },
		func(e *estate) { e.Part(2) },
		func(e *estate) {
			for i := range 3 {
				e.Crash(i)
				e.LoseReceived(i)
			}
			e.Bootstrap(1, 2)
			e.Join(0)
			e.Join(2)
			e.Join(1)
		},
		func(e *estate) {
			for i := range 3 {
				e.Crash(i)
			}
			e.Bootstrap(0, 2)
			e.Join(1)
			e.Join(2)
			e.Join(0)
		},
	}
	for i := 1; i <= writesTried; i += stride {
		for j := 1; j <= writesTried; j += stride {
			for shape := range 2 * 2 * len(shakes) * len(shakes) * 2 {
				b, c := shape%2*2, shape/2%2*2
				e := kinds[[]int{3, 6}[shape/4/len(shakes)/len(shakes)]].start(1, faults)
				first, second := e.proxy(6), e.proxy(6)
				e.runWrites(first, i-min(i, 2), 0, 0, 0)
				e.runWrites(first, min(i, 2), 0, b, c) // else nobody is seen to be the holder
				shakes[shape/4%len(shakes)](e)
				e.runWrites(second, j, 0, b, c)
				for range 3 {
					first.Resume()
				}
				e.Notice(0)
				e.Join(0)
				shakes[shape/4/len(shakes)%len(shakes)](e)
				e.another(0, b, c)
				e.runWrites(first, 20, 0, b, c)
				e.runWrites(second, 20, 0, b, c)
				tried++
				what := fmt.Sprintf("shaken before writes %d and %d, lags %d and %d, shape %d", i, j, b, c, shape)
				if !found(what, e) {
					return tried
				}
			}
		}
	}
	return tried
}

// Every order of a few steps that matter.
func TestShortSchedules(t *testing.T) {
	for what, all := range map[string]func(int, simulation.GroupFaults, func(string, *estate) bool) int{"fail-overs": failOvers, "clusters": bootstraps} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			var failed error
			stride := 1
			if testing.Short() {
				stride = 3
			}
			tried := all(stride, simulation.GroupFaults{}, func(what string, e *estate) bool {
				given := len(e.Twice) == 0
				if !given {
					failed = fmt.Errorf("%s: given twice: %s\n%s", what, e.Twice[0], e.Steps())
				}
				return given
			})
			if failed != nil {
				t.Error(failed)
			}
			t.Logf("%d schedules", tried)
		})
	}
}

// A holder dies before its replica has applied where its sequences begin. The replica becomes the
// holder, begins at the same numbers, and applies that row then. So what other holders wanted must
// be below where the present one began.
func TestWhereAHolderBeforeBeganMayArriveLate(t *testing.T) {
	for _, faults := range []simulation.GroupFaults{{}, {ForgetsOthers: true}} {
		e := kinds[0].start(1, faults)
		first, second := e.proxy(6), e.proxy(6)
		e.runWrites(first, 5, 0, 0, 0)
		e.Crash(0)
		e.Promote(1, 0)
		e.Restart(0)
		e.Follow(0, 1)
		e.Follow(2, 1)
		e.runWrites(second, 2, 0, 0, 0)
		second.Resume() // its takeover is complete, which the others have only received
		e.Crash(1)
		e.Promote(2, 1)
		e.Follow(0, 2)
		e.another(0, 0, 9)
		e.ApplyAll()
		e.another(0, 0, 0)
		if twice := len(e.Twice) > 0; twice != faults.ForgetsOthers {
			t.Errorf("%+v: given twice: %v\n%s", faults, e.Twice, e.Steps())
		}
	}
}

// SETVAL moves a row ahead, above all that its primary wanted, and the primary dies. The replica
// has received that, becomes the holder, and gives numbers beyond. Then it applies what it has
// received, and the row goes back. So a row is moved together with what its holder wants.
func TestWhatAPrimaryBeforeMovedAheadMayArriveLate(t *testing.T) {
	for _, faults := range []simulation.GroupFaults{{}, {MovesUnwanted: true}} {
		e := kinds[0].start(1, faults)
		first := e.proxy(6)
		first.Moves = 10
		for first.Next != "move" {
			first.Resume()
			e.lagging([]int{0, 0, 0})
		}
		first.Resume() // what it writes is only received
		e.Crash(0)
		e.Promote(1, 1)
		e.Follow(2, 1)
		second := e.proxy(10)
		for second.Given < 16 && second.Resume() {
			e.Apply(2)
		}
		e.ApplyAll()
		e.another(0, 0, 0)
		if twice := len(e.Twice) > 0; twice != faults.MovesUnwanted {
			t.Errorf("%+v: given twice: %v\n%s", faults, e.Twice, e.Steps())
		}
	}
}

// Without one of the rules the schedules give a number twice. Tests on real servers, named here,
// show the same.
func TestSchedulesFindWhatIsMissing(t *testing.T) {
	for what, faults := range map[string]simulation.GroupFaults{
		// TestAGaleraClusterThatLostItsLastSecondsGoesOnAboveItsCeiling
		"the holder of a cluster is a node": {HolderPerNode: true},
		// TestAnIsolatedPrimaryThatLivesOnGivesNothingThatTheNewOneGives
		"a node shows an older holder what that wants": {ShowsToOlder: true},
		// TestANodeThatDoesNotFlushIsNoWitnessOfWhatIsWrittenToIt
		"a node that does not flush is a witness": {CountsForgetful: true},
		// TestAFailOverThatLosesReservationsWhileTwoProxiesHoldSegmentsRepeatsNoNumber
		"a take-over begins below a window that one node has seen": {BeginsBelow: true},
		"a window is used before a witness has shown it":           {GrantsUnseen: true},
		// TestWhereAHolderBeforeBeganMayArriveLate
		"what a holder before wrote comes late": {ForgetsOthers: true},
		// TestWhatAPrimaryBeforeMovedAheadMayArriveLate
		"a row is moved above what its holder wants": {MovesUnwanted: true},
		// TestASequenceThatWasMovedAheadStaysThereInAFailOver
		"a move ahead is answered before others know of it":             {SetUnseen: true},
		"an ORDER number is answered by one that may not be the holder": {OrderUnseen: true},
		"nobody asks after a reservation which configuration it is":     {Unconfirmed: true},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			tried, twice := 0, ""
			look := func(what string, e *estate) bool {
				if len(e.Twice) > 0 {
					twice = what + ": " + e.Twice[0]
				}
				return twice == ""
			}
			for seed := uint64(0); twice == "" && seed < 700; seed++ {
				k := &kinds[seed%uint64(len(kinds))]
				if seed < 500 {
					k = &kinds[seed%5] // which show most of them
				}
				tried++
				if _, err := k.random(seed, faults); err != nil && strings.Contains(err.Error(), "given twice") {
					twice = fmt.Sprintf("%.300s", err)
				}
			}
			if twice == "" {
				tried += failOvers(1, faults, look)
			}
			if twice == "" {
				tried += bootstraps(1, faults, look)
			}
			if twice == "" {
				t.Errorf("%d schedules do not find it", tried)
			}
			t.Logf("found by schedule %d: %s", tried, twice)
		})
	}
}
