package torture

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"seqproxy/internal/planted"
	"seqproxy/test/mysqltest"
	"seqproxy/test/network"
)

// scenario is two keys-only proxies, with segments of five numbers, and what clients got from them.
type scenario struct {
	t   *testing.T
	w   *world
	n   *nemesis
	mu  sync.Mutex
	ops []op // guarded by mu
}

// newScenario begins a scenario with a program on one sequence server. end ends it.
func newScenario(t *testing.T, program string) (s *scenario, end func()) {
	t.Helper()
	o := Options{Proxies: 2, Estate: "one", Seqproxy: program, Server: serverBinary(t), cache: "5/0s", keysOnly: true}
	w, err := newWorld(t.Context(), o, t.TempDir(), rand.New(rand.NewPCG(0, 0)))
	end = func() {
		if err := w.close(); err != nil {
			t.Error(err)
		}
	}
	if err != nil {
		end()
		t.Fatal(err)
	}
	return &scenario{t: t, w: w, n: newNemesis(w)}, end
}

// play runs a scenario with a program and returns the findings of the torture's checks.
func play(t *testing.T, program string, script func(*scenario)) []string {
	t.Helper()
	s, end := newScenario(t, program)
	defer end()
	script(s)
	var found []string
	for _, of := range bySequence(s.ops, nil) {
		found = append(found, duplicates(of)...)
	}
	return found
}

// take takes numbers one by one from a proxy, and ignores failures.
func (s *scenario) take(proxy, count int) { s.takeOf("photos", proxy, count) }

func (s *scenario) takeOf(sequence string, proxy, count int) {
	for range count {
		o, err := s.n.probe(context.Background(), s.w.proxies[proxy], sequence)
		if err != nil {
			s.t.Log(&o)
		} else {
			s.mu.Lock()
			s.ops = append(s.ops, o)
			s.mu.Unlock()
		}
	}
}

func (s *scenario) must(err error) {
	s.t.Helper()
	if err != nil {
		s.t.Fatal(err)
	}
}

func (s *scenario) exec(text string) {
	s.t.Helper()
	_, err := s.w.sequence.db.Exec(text)
	s.must(err)
}

// crash kills a proxy and starts it again.
func (s *scenario) crash(proxy int) {
	s.t.Helper()
	s.must(s.w.proxies[proxy].end(syscall.SIGKILL, 5*time.Second))
	s.must(s.w.proxies[proxy].start(context.Background()))
}

// A request for numbers never arrives, and the connection is lost.
func lostReservation(s *scenario) {
	s.take(0, 3)
	s.take(1, 3)
	l := s.w.links[linkPart(0, s.w.sequence)]
	l.Set(network.Silent)
	var waiting sync.WaitGroup
	waiting.Go(func() { s.take(0, 4) })
	time.Sleep(300 * time.Millisecond)
	l.Cut()
	l.Set(network.Refuse)
	waiting.Wait()
	s.take(1, 12)
	l.Set(network.Fair)
}

// The server does not commit by itself, and a proxy is killed.
func uncommitted(s *scenario) {
	s.exec("SET GLOBAL autocommit = 0")
	s.crash(0)
	s.crash(1)
	s.take(0, 3)
	s.must(s.w.proxies[0].end(syscall.SIGKILL, 5*time.Second))
	s.take(1, 5)
}

// An old copy of the table is restored while a proxy runs.
func restoredWhileItRuns(s *scenario) {
	s.take(0, 12)
	s.exec("UPDATE seqproxy.sequence SET id = 2 WHERE name = 'photos'")
	s.take(0, 12)
}

// An old copy of the table is restored while the proxy is dead.
func restoredWhileItIsDead(s *scenario) {
	s.take(0, 12)
	s.must(s.w.proxies[0].end(syscall.SIGKILL, 5*time.Second))
	s.exec("UPDATE seqproxy.sequence SET id = 2 WHERE name = 'photos'")
	s.must(s.w.proxies[0].start(context.Background()))
	s.take(0, 12)
}

// A trigger undoes most of each reservation.
func undoneByATrigger(s *scenario) {
	s.exec("CREATE TRIGGER seqproxy.undone BEFORE UPDATE ON seqproxy.sequence FOR EACH ROW SET NEW.id = OLD.id + 1")
	for range 5 { // alternately: each proxy alone would notice that the row goes back
		s.take(0, 1)
		s.take(1, 1)
	}
}

// The clock of a proxy is set back by a second, again and again. Only a build with the tag can do
// that.
func clockSetBack(s *scenario) {
	p := s.w.proxies[0]
	s.must(s.w.admin(context.Background(), p, "CREATE SEQUENCE "+snow+" SNOWFLAKE"))
	for back := range 3 {
		if p.clock != "" {
			s.must(p.setClock(time.Duration(-back) * time.Second))
		}
		for until := time.Now().Add(1200 * time.Millisecond); time.Now().Before(until); {
			s.takeOf(snow, 0, 10)
		}
	}
}

// A key takes a while at one proxy, so that some are under way at midnight. The other proxy gives
// as many of the day that begins.
func throughMidnight(s *scenario) {
	midnight := time.Now().Truncate(time.Second).Add(4 * time.Second)
	s.must(writeZone(s.w.zoneFile(), []dayChange{{midnight, 1}}))
	s.must(s.w.admin(context.Background(), s.w.proxies[1], createDays(days)))
	s.takeOf(days, 0, 1)
	l := s.w.links[linkPart(0, s.w.sequence)]
	l.Set(network.Slow(10 * time.Millisecond))
	defer l.Set(network.Fair)
	var slow sync.WaitGroup
	for range 4 {
		slow.Go(func() {
			for time.Until(midnight) > -time.Second {
				s.takeOf(days, 0, 1)
			}
		})
	}
	time.Sleep(time.Until(midnight.Add(100 * time.Millisecond)))
	s.takeOf(days, 1, 300)
	slow.Wait()
}

// scripts find the faults of a single server.
var scripts = map[planted.Name]func(*scenario){
	planted.Commit:  lostReservation,
	planted.Session: uncommitted,
	planted.Floor:   restoredWhileItRuns,
	planted.Fsync:   restoredWhileItIsDead,
	planted.Verify:  undoneByATrigger,
	planted.Clock:   clockSetBack,
	planted.Date:    throughMidnight,
}

// ofSequence are faults that need several sequence servers, or a group. These tests of sequence
// must fail with them.
var ofSequence = map[planted.Name]string{
	planted.Plan:           "TestAProxyWithAnOldViewOfTheServersGivesNoNumberTwice",
	planted.CeilingMember:  "TestAMemberThatIsAwayIsTakenOutByItsCeiling",
	planted.Floor:          "TestAMemberThatIsRestoredWhenAllProxiesAreLostRepeatsNoNumber",
	planted.CeilingReplica: "TestAFailOverThatLosesReservationsWhileTwoProxiesHoldSegmentsRepeatsNoNumber",
	planted.Ballot:         "TestACoordinatorThatWasReplacedTakesNoStep",
	planted.Freeze:         "TestApplicationsThatCountWhileTheRowsAreFrozen",
}

func TestEachPlantedFaultIsLookedFor(t *testing.T) {
	for _, name := range planted.All {
		if scripts[name] == nil && ofSequence[name] == "" {
			t.Errorf("fault %s: no script and no test looks for it", name)
		}
	}
}

// Without a fault the scripts give no key twice.
func TestNoFaultIsFoundWhereNoneIsPlanted(t *testing.T) {
	program := mysqltest.Program(t)
	for name, script := range scripts {
		t.Run(string(name), func(t *testing.T) {
			t.Setenv(planted.Variable, string(name)) // a normal build has no faults
			if found := play(t, program, script); len(found) > 0 {
				t.Errorf("without the planted fault:\n%s", strings.Join(found, "\n"))
			}
		})
	}
}

// A test that cannot find a known fault proves nothing. So each check that keeps numbers from being
// given twice is left out in a build, and a test must then show a duplicate.
func TestEveryPlantedFaultIsFound(t *testing.T) {
	if os.Getenv(mysqltest.ServerEnv) != "" {
		t.Skip("planted faults are looked for on one server, the system's own")
	}
	if testing.Short() {
		t.Skip("CI runs it; TestNoFaultIsFoundWhereNoneIsPlanted runs the same scripts")
	}
	faulty := mysqltest.Program(t, "-tags="+planted.Tag)
	for name, script := range scripts {
		t.Run(string(name), func(t *testing.T) {
			t.Setenv(planted.Variable, string(name))
			for attempt := range 3 { // a busy machine may be too late for a script
				begun := time.Now()
				if found := play(t, faulty, script); len(found) > 0 {
					t.Logf("found in attempt %d, after %s: %s", attempt+1, time.Since(begun).Round(100*time.Millisecond), found[0])
					return
				}
			}
			t.Error("no duplicate was found with the planted fault")
		})
	}
	// Which of two proxies first notices that a row went back is chance, so there are several
	// attempts.
	tests := filepath.Join(t.TempDir(), "sequence.test")
	build := exec.CommandContext(t.Context(), "go", "test", "-c", "-tags", planted.Tag, "-o", tests, "seqproxy/sequence")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%s: %v\n%s", build, err, out)
	}
	for name, test := range ofSequence {
		t.Run(string(name)+" of several servers", func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
			defer cancel()
			begun := time.Now()
			var said strings.Builder
			for attempt := range 5 { // one may fail for another reason on a busy machine
				cmd := exec.CommandContext(ctx, tests, "-test.v", "-test.run", "^"+test+"$")
				cmd.Env = append(os.Environ(), planted.Variable+"="+string(name))
				out, err := cmd.CombinedOutput()
				if err != nil && strings.Contains(string(out), "was given") {
					t.Logf("%s found it in attempt %d, after %s", test, attempt+1, time.Since(begun).Round(100*time.Millisecond))
					return
				}
				fmt.Fprintf(&said, "%v\n%s\n", err, out)
			}
			t.Errorf("%s found no duplicate with the planted fault:\n%s", test, &said)
		})
	}
}
