package sequence_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"seqproxy/internal/statefile"
	"seqproxy/sequence"
	"seqproxy/sequence/define"
	"seqproxy/sequence/floor"
	"seqproxy/test/mysqltest"
)

func stateIn(dir string) func(*sequence.Options) {
	return func(o *sequence.Options) { o.StateDir = dir }
}

// keptMark is the mark of a sequence as the file has it at this moment.
func keptMark(t *testing.T, s *sequence.Sequences, name string) (high uint64) {
	t.Helper()
	return markIn(t, sequence.Inside(s).StateFile(), name)
}

// markIn is the mark of a sequence in a file, which has one of that name; 0 if there is none.
func markIn(t *testing.T, f *statefile.File, name string) (high uint64) {
	t.Helper()
	for key, value := range f.All() {
		if strings.HasPrefix(key, "mark\t") && strings.HasSuffix(key, "\t"+name) {
			if _, err := fmt.Sscan(value, &high); err != nil {
				t.Fatal(err)
			}
		}
	}
	return high
}

// cutOff ends s as kill -9 does: nothing is returned, and its directory is free.
func cutOff(t *testing.T, s *sequence.Sequences) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	_ = s.Close(ctx)
}

// A backup is restored while no proxy runs: without the last one's state file the next one would
// give the same numbers again.
func TestRestoredBackupGivesNoNumberAgainAfterAKill(t *testing.T) {
	p := newPlace(t).withTable(t, map[string]uint64{"photos": 100, "albums": 7, "restarted": 50})
	dir := filepath.Join(t.TempDir(), "state")
	core, logs := observer.New(zap.WarnLevel)
	first := p.open(t, stateIn(dir), steadySize(20))
	given := make(map[string]uint64)
	for _, name := range []string{"photos", "albums", "restarted"} {
		for range 30 {
			given[name] = mustTake(t, first, name, 1)
		}
		settled(t, first, name)
		if kept := keptMark(t, first, name); kept < given[name] || kept != p.id(t, name) {
			t.Errorf("the file has %d for %s, of which %d was given and %d reserved", kept, name, given[name], p.id(t, name))
		}
	}
	if _, err := first.Alter(context.Background(), []byte("restarted"), sequence.Alteration{Restart: ref(uint64(5)), Force: true}); err != nil {
		t.Fatal(err)
	}
	cutOff(t, first)
	p.exec(t, "UPDATE sequence SET id = 100 WHERE name = 'photos'") // as the backup has it
	p.exec(t, "UPDATE sequence SET id = 7 WHERE name = 'albums'")

	naive := p.open(t, steadySize(20))
	if got := mustTake(t, naive, "albums", 1); got > given["albums"] {
		t.Fatalf("without the directory got %d, which shows no danger", got)
	}
	cutOff(t, naive)

	second := p.open(t, stateIn(dir), steadySize(20), func(o *sequence.Options) { o.Logger = zap.New(core) })
	for _, name := range []string{"photos", "albums"} {
		mark := keptMark(t, second, name)
		if got := mustTake(t, second, name, 1); got <= given[name] || got != mark+1 {
			t.Errorf("%s: got %d after %d was given, want %d", name, got, given[name], mark+1)
		}
	}
	if got := mustTake(t, second, "restarted", 1); got != 5 {
		t.Errorf("got %d, want 5: what was restarted on purpose does not count as gone back", got)
	}
	if got := rewinds(second); got != 2 {
		t.Errorf("%d rewinds are counted, want 2", got)
	}
	found := logs.FilterMessage("sequence row went back").All()
	if len(found) != 2 || found[0].ContextMap()["sequence"] != "photos" || found[0].ContextMap()["gave"] != uint64(101) {
		t.Errorf("got %d entries of rows gone back, want 2, the first of photos: %+v", len(found), found)
	}
}

// A proxy knows of its own numbers only: of several on one server, the one that had come furthest
// has to run, or somebody raises the row. This cannot be mended here; docs/one-server.md says so.
func TestRestoredBackupIsRaisedByWhatAProxyKnowsItself(t *testing.T) {
	p := newPlace(t).withTable(t, map[string]uint64{"photos": 100})
	dir := filepath.Join(t.TempDir(), "state")
	a, b := p.open(t, stateIn(dir), steadySize(20)), p.open(t, steadySize(20))
	mine := mustTake(t, a, "photos", 1)
	settled(t, a, "photos")
	others := mustTake(t, b, "photos", 1)
	settled(t, b, "photos")
	cutOff(t, a)
	cutOff(t, b)
	p.exec(t, "UPDATE sequence SET id = 100 WHERE name = 'photos'")
	again := p.open(t, stateIn(dir), steadySize(20))
	if got := mustTake(t, again, "photos", 1); got <= mine || got > others+20 {
		t.Errorf("got %d, want it above %d, which it gave itself, and no higher than the next segment: %d was another's", got, mine, others)
	}
}

// The orderly end: no more takes, then numbers are returned, then the marks are lowered. So the
// next start neither loses numbers nor takes the row for one that went back.
func TestOrderlyEndLeavesNeitherGapNorAlarm(t *testing.T) {
	p := newPlace(t).withTable(t, map[string]uint64{"photos": 0, "albums": 0, "shared": 0})
	dir := t.TempDir()
	names := []string{"photos", "albums", "shared"}
	next := map[string]uint64{"photos": 1, "albums": 1}
	for round := range 3 {
		s := p.open(t, stateIn(dir), steadySize(50))
		for _, name := range names {
			for range 70 {
				got := mustTake(t, s, name, 1)
				if want := next[name]; want != 0 && got != want {
					t.Fatalf("round %d: got %d of %s, want %d", round, got, name, want)
				}
				if next[name] != 0 {
					next[name]++
				}
			}
			settled(t, s, name)
		}
		if _, err := s.Advance(context.Background(), []byte("albums"), 3); err != nil {
			// a second cache of the same row
			t.Fatal(err)
		}
		// An application counts on behind: the upper end of s is a gap, and its mark stays.
		p.exec(t, "UPDATE sequence SET id = id + 5000 WHERE name = 'shared'")
		if round == 1 {
			if err := s.Flush(context.Background(), nil); err != nil {
				t.Fatal(err)
			}
			mustTake(t, s, "photos", 1)
			next["photos"]++
		}
		next["albums"] = 0 // not all numbers of two caches can be returned
		if err := s.Close(context.Background()); err != nil {
			t.Fatal(err)
		}
		if got := rewinds(s); got != 0 {
			t.Errorf("round %d: %d rewinds", round, got)
		}
		if id := p.id(t, "photos"); id != next["photos"]-1 {
			t.Errorf("round %d: the row has %d after %d numbers", round, id, next["photos"]-1)
		}
	}
}

// No number leaves before its mark is on disk, whoever waits.
func TestMarkIsOnDiskBeforeANumberLeaves(t *testing.T) {
	p := newPlace(t).withTable(t, map[string]uint64{"photos": 0})
	dir := t.TempDir()
	s := p.open(t, stateIn(dir), steadySize(3))
	for range 50 {
		got := mustTake(t, s, "photos", 2)
		text, err := os.ReadFile(filepath.Join(dir, "state"))
		if err != nil {
			t.Fatal(err)
		}
		copied := t.TempDir() // what the next process would find
		if err := os.WriteFile(filepath.Join(copied, "state"), text, 0o600); err != nil {
			t.Fatal(err)
		}
		f, err := statefile.Open(copied, zap.NewNop())
		if err != nil {
			t.Fatal(err)
		}
		mark := markIn(t, f, "photos")
		if err := f.Close(); err != nil {
			t.Fatal(err)
		}
		if mark < got+1 {
			t.Fatalf("%d has left and the file has %d", got+1, mark)
		}
	}
}

func TestSecondProxyOnOneStateDirectoryDoesNotStart(t *testing.T) {
	p := newPlace(t).withTable(t, map[string]uint64{"photos": 0})
	dir := t.TempDir()
	first := p.open(t, stateIn(dir))
	o := p.options()
	o.StateDir = dir
	if s, err := sequence.New(o); err == nil || !strings.Contains(err.Error(), "is in use by process") {
		t.Fatalf("got %v, %v; want that the directory is in use", s, err)
	}
	mustTake(t, first, "photos", 1)
	cutOff(t, first)
	mustTake(t, p.open(t, stateIn(dir)), "photos", 1)
}

// The columns that own sequences are known even if the server is away from the start.
func TestOwnersAreKeptForAStartWithoutTheServer(t *testing.T) {
	place := placeOn(t, mysqltest.Start(t)).withTable(t, map[string]uint64{"photos": 0, "albums": 0})
	dir := t.TempDir()
	first := place.open(t, stateIn(dir))
	column := define.Column{Schema: "app", Table: "photos", Column: "id"}
	mustAlter(t, first, "photos", sequence.Alteration{OwnedBy: &column})
	want, err := first.LoadOwners(context.Background())
	if err != nil || len(want.List) != 1 {
		t.Fatalf("got %+v, %v", want, err)
	}
	eventually(t, "owners are kept", func() bool { kept := sequence.Inside(first).KeptOwners(); return kept != nil && len(kept.List) == 1 })
	cutOff(t, first)
	place.kill(t)

	forgetful := place.open(t)
	if got, err := forgetful.LoadOwners(context.Background()); err == nil {
		t.Fatalf("without the directory got %+v, want an error", got)
	}
	second := place.open(t, stateIn(dir))
	if got := second.Owners(); got != nil {
		t.Errorf("before the server was asked got %+v, want nil", got)
	}
	got, err := second.LoadOwners(context.Background())
	if err != nil || len(got.List) != 1 || got.List[0] != want.List[0] {
		t.Fatalf("got %+v, %v; want %+v", got, err, want)
	}
	place.restart(t)
	eventually(t, "the server is asked", func() bool {
		sequence.Inside(second).StopFollowing()
		defer sequence.Inside(second).FollowAgain()
		return sequence.Inside(second).First().WasRead()
	})
	if now := second.Owners(); now != got {
		t.Errorf("the same owners are reported anew: %+v", now)
	}
	mustAlter(t, second, "photos", sequence.Alteration{OwnedBy: new(define.Column)})
	eventually(t, "no column owns a sequence", func() bool { return len(second.Owners().List) == 0 })
	cutOff(t, second)
	third := place.open(t, stateIn(dir))
	if kept := sequence.Inside(third).KeptOwners(); kept == nil || len(kept.List) != 0 {
		t.Errorf("kept are %+v, want none", kept)
	}
}

// Several servers failed a moment ago, and are not asked again yet.
func TestOwnersAreKeptWhileServersThatFailedAreLeftAlone(t *testing.T) {
	e := newPlanEstate(t, 2, map[string]uint64{"photos": 100})
	dir := t.TempDir()
	first := e.open(t, stateIn(dir), patience(30*time.Second))
	e.change(t, first, sequence.PlanChange{Add: e.addr(1)})
	column := define.Column{Schema: "app", Table: "photos", Column: "id"}
	mustAlter(t, first, "photos", sequence.Alteration{OwnedBy: &column})
	if want, err := first.LoadOwners(context.Background()); err != nil || len(want.List) != 1 {
		t.Fatalf("got %+v, %v", want, err)
	}
	eventually(t, "owners are kept", func() bool { kept := sequence.Inside(first).KeptOwners(); return kept != nil && len(kept.List) == 1 })
	cutOff(t, first)

	both := func(o *sequence.Options) {
		o.Servers, o.AllocateTimeout = []sequence.ServerOptions{e.options(0), e.options(1)}, 2*time.Second
	}
	forgetful, second := e.open(t, both), e.open(t, both, stateIn(dir))
	for _, s := range []*sequence.Sequences{forgetful, second} {
		eventually(t, "the plan is read", func() bool { return sequence.Inside(s).MeetPlan(t.Context()) == nil })
	}
	for _, l := range e.links {
		l.Cut()
	}
	for _, s := range []*sequence.Sequences{forgetful, second} {
		if err := sequence.Inside(s).Look(t.Context()); err == nil {
			t.Fatal("the servers answer")
		}
		for _, v := range sequence.Inside(s).Members() {
			v.AskAt(time.Now().Add(time.Minute))
		}
	}
	if got, err := forgetful.LoadOwners(t.Context()); err == nil || strings.Contains(err.Error(), "nil") {
		t.Errorf("without the directory got %+v, %v; want an error that says why", got, err)
	}
	if got, err := second.LoadOwners(t.Context()); err != nil || len(got.List) != 1 || got.List[0].Column != column {
		t.Errorf("got %+v, %v; want %+v", got, err, column)
	}
}

// A mark that cannot be written stops reservations, with an error that says so; cached numbers are
// still given.
func TestNumbersInMemoryGoOnWhereTheStateFileCannotBeWritten(t *testing.T) {
	p := newPlace(t).withAll(t, map[string]uint64{"photos": 0})
	dir := t.TempDir()
	s := p.open(t, stateIn(dir), steadySize(10))
	wantTaken(t, s, "photos", 1)
	settled(t, s, "photos")
	sequence.Inside(s).Waits(2 * time.Second)
	if err := sequence.Inside(s).StateFile().Close(); err != nil { // every write fails from now on
		t.Fatal(err)
	}
	cached := s.Stats().Cached
	for n := range cached {
		wantTaken(t, s, "photos", 2+n)
	}
	_, err := s.Take(context.Background(), []byte("photos"), 1)
	if !errors.Is(err, floor.ErrNotKept) || !errors.Is(err, statefile.ErrClosed) {
		t.Errorf("got %v, want that the file cannot be written", err)
	}
	wantText(t, err, `sequence "photos"`, "no number is left in memory", "no numbers are reserved until")
	if id := p.id(t, "photos"); id != cached+1 {
		t.Errorf("the row has %d, want %d: nothing is reserved that cannot be remembered", id, cached+1)
	}
}

// A ticket table that was emptied or restored while no proxy ran gives no number again either.
func TestEmptiedTicketTableGivesNoNumberAgainAfterAKill(t *testing.T) {
	p := newPlace(t).withTickets(t)
	dir := t.TempDir()
	var last []uint64
	apps := ticketApps()
	take := func(s *sequence.Sequences, app ticketApp) uint64 {
		t.Helper()
		n, err := app.cached(s, p.schema)
		if err != nil {
			t.Fatalf("%s: %v", app.table, err)
		}
		return n
	}
	first := p.open(t, stateIn(dir), steadySize(10))
	for _, app := range apps {
		for range 5 {
			take(first, app)
		}
		last = append(last, take(first, app))
	}
	cutOff(t, first)
	for _, app := range apps {
		p.exec(t, "TRUNCATE "+app.table)
	}
	second := p.open(t, stateIn(dir), steadySize(10))
	for i, app := range apps {
		if got := take(second, app); got <= last[i] {
			t.Errorf("%s: got %d after %d was given", app.table, got, last[i])
		}
	}
	if got := rewinds(second); got != uint64(len(apps)) {
		t.Errorf("%d rewinds are counted, want %d", got, len(apps))
	}
}
