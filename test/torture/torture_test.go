package torture

import (
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"testing"
	"time"

	"seqproxy/internal/mysqld"
	"seqproxy/internal/planted"
	"seqproxy/test/matrix"
	"seqproxy/test/mysqltest"
)

// The default seed is fixed, so that a change does not fail by faults of another run; make torture
// tries others.
var seed = flag.Uint64("seed", 1, "of TestNoKeyIsGivenTwiceWhateverBreaks; 0 chooses one")

func TestMain(m *testing.M) { mysqltest.Main(m, mysqltest.CheckLeaks()) }

// serverBinary is the server that the tests run on.
func serverBinary(t testing.TB) mysqld.Binary {
	t.Helper()
	binary, err := mysqld.Find(os.Getenv(mysqltest.ServerEnv))
	if err != nil {
		t.Fatal(err)
	}
	return binary
}

// `make torture` goes on for longer.
func TestNoKeyIsGivenTwiceWhateverBreaks(t *testing.T) {
	if testing.Short() {
		t.Skip("CI runs it, and make torture")
	}
	if *seed == 0 {
		*seed = rand.Uint64N(1_000_000)
	}
	t.Logf("seed %d", *seed)
	program := mysqltest.Program(t, "-tags="+planted.Tag) // its clock can be set
	possible, made := make(map[string]bool), make(map[string]bool)
	days, runs := 0, 0 // short days with keys, of the run that has most
	for _, c := range []struct {
		estate string
		time   time.Duration
		least  int  // different faults, if so many are possible; each of a cluster takes long
		wide   bool // all faults that are possible there must occur, here or in another run
	}{
		{"one", 25 * time.Second, 100, true},
		{"block3", 18 * time.Second, 10, true},
		{"step3", 18 * time.Second, 10, true},
		{"group", 15 * time.Second, 10, false},
		{"galera", 12 * time.Second, 3, false},
	} {
		t.Run(c.estate, func(t *testing.T) {
			binary := serverBinary(t)
			if c.estate == "galera" && mysqld.GaleraLibrary(binary) == "" {
				t.Skipf("%s has no Galera, or its library is missing: install the package galera-4 (scripts/deps.sh galera), or name the file in %s", binary, mysqld.GaleraEnv)
			}
			run := func(seed uint64) (*Report, error) {
				return Run(t.Context(), Options{Seed: seed, Time: c.time, Least: c.least, Estate: c.estate, Seqproxy: program, Server: binary, Dir: t.TempDir()})
			}
			r, err := run(*seed)
			for again := uint64(1); errors.Is(err, errApart) && again <= 2; again++ {
				// Such a run shows nothing.
				t.Logf("with seed %d: %v", *seed+again-1, err)
				r, err = run(*seed + again)
			}
			if err == nil && len(r.Wrong) > 0 && r.OnlyLate() { // two further runs must not show it
				found := fmt.Sprintf("torture, -estate %s -seed %d: %s", c.estate, r.Seed, strings.Join(r.Wrong, "\n"))
				t.Log(found)
				for more := 0; more < 2 && err == nil && (more == 0 || len(r.Wrong) == 0); more++ {
					r, err = run(r.Seed)
				}
				if err == nil && len(r.Wrong) == 0 {
					err = matrix.Unsteady(found)
				}
			}
			if err != nil {
				t.Fatalf("with seed %d: %v", *seed, err)
			}
			var screen strings.Builder
			if err := r.Write(&screen); err != nil {
				t.Fatal(err)
			}
			t.Log(screen.String())
			if len(r.Wrong) > 0 {
				t.Errorf("%d things are wrong; go test ./test/torture -run Whatever -args -seed %d, or make torture ARGS='-estate %s -seed %d'", len(r.Wrong), *seed, c.estate, *seed)
			}
			if r.Faults() < min(c.least, 10) {
				t.Errorf("only %d faults were made", r.Faults())
			}
			if r.made[clockJumps] == 0 && c.estate != "galera" && mysqld.ClockLibrary() != "" {
				t.Error("no clock jumped")
			}
			if r.made[proxyClockJumps] == 0 {
				t.Error("no clock of a proxy jumped")
			}
			days, runs = max(days, r.days), runs+1
			for name, requests := range r.Requests() {
				if requests == 0 {
					t.Errorf("%s: no request brought a key", name)
				}
			}
			for _, name := range r.possible {
				possible[name] = possible[name] || c.wide
			}
			for name := range r.made {
				made[name] = true
			}
		})
	}
	for name, must := range possible {
		if must && !made[name] && runs > 1 && !t.Failed() {
			t.Errorf("never made: %s", name)
		}
	}
	if days < 3 && runs > 1 && !t.Failed() {
		t.Errorf("got keys in %d short days, want more", days)
	}
}
