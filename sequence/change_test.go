package sequence_test

import (
	"context"
	"errors"
	"math"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"seqproxy/sequence"
	"seqproxy/sequence/define"
)

func mustCreate(t testing.TB, s *sequence.Sequences, o sequence.CreateOptions) sequence.Created {
	t.Helper()
	if o.Kind.IsPlain() && kindOfTests != "" {
		o.Kind = triedKind(t)
	}
	made, err := s.Create(context.Background(), o)
	if err != nil {
		t.Fatalf("Create(%+v): %v", o, err)
	}
	return made
}

func TestCreatedSequenceBeginsAtItsStart(t *testing.T) {
	p := newPlace(t)
	s := p.open(t, func(o *sequence.Options) { o.CreateTable = true })
	create := func(name string, start uint64) {
		t.Helper()
		want := max(start, 1)
		if made := mustCreate(t, s, sequence.CreateOptions{Name: name, Start: start}); made.First != want || made.Raised || made.Existed {
			t.Errorf("Create(%q, START %d) says %+v, want first %d", name, start, made, want)
		}
		if got := mustTake(t, s, name, 1); got != want {
			t.Errorf("%q begins at %d, want %d", name, got, want)
		}
	}
	create("default", 0)
	create("one", 1)
	create("later", 500)
	create("huge", math.MaxInt64+10)
	var text string
	if err := p.db.QueryRow("SHOW CREATE TABLE sequence").Scan(new(string), &text); err != nil {
		t.Fatal(err)
	}
	id := "`id` bigint(20) unsigned NOT NULL DEFAULT 0"
	if !p.server.IsMariaDB() {
		id = "`id` bigint unsigned NOT NULL DEFAULT '0'"
	}
	for _, part := range []string{"`name` varchar(50) NOT NULL", id, "PRIMARY KEY (`name`)", "ENGINE=InnoDB"} {
		if !strings.Contains(text, part) {
			t.Errorf("the table is made as %s, want %s in it", text, part)
		}
	}
}

func TestCreateOfAnExistingSequenceChangesNothing(t *testing.T) {
	p := newPlace(t).withTable(t, map[string]uint64{"photos": 41})
	s := p.open(t)
	_, err := s.Create(context.Background(), sequence.CreateOptions{Name: "PHOTOS", Start: 1000, Cache: 5})
	if !errors.Is(err, sequence.ErrExists) {
		t.Errorf("got %v, want ErrExists", err)
	}
	wantText(t, err, "photos")
	if made := mustCreate(t, s, sequence.CreateOptions{Name: "PHOTOS", Start: 1000, Cache: 5, IfNotExists: true}); !made.Existed {
		t.Errorf("IF NOT EXISTS says %+v, want that it existed", made)
	}
	if got := mustTake(t, s, "photos", 1); got != 42 {
		t.Errorf("got %d, want 42", got)
	}
}

func TestCreateRefusesWhatDoesNotFit(t *testing.T) {
	p := newPlace(t)
	p.exec(t, "CREATE TABLE sequence (name varchar(8) CHARACTER SET latin1 PRIMARY KEY, id SMALLINT NOT NULL) ENGINE=InnoDB")
	s := p.open(t)
	for _, o := range []sequence.CreateOptions{
		{Name: ""},
		{Name: strings.Repeat("x", 9)},
		{Name: strings.Repeat("x", 5000)},
		{Name: "\u4e2d"},          // not in latin1
		{Name: "\xff\xfe"},        // no text at all
		{Name: "a", Start: 32768}, // above the column's maximum
		{Name: "a", Cache: 1_000_000_000_001},
		{Name: "a", Cache: math.MaxUint64},
	} {
		if made, err := s.Create(context.Background(), o); !errors.Is(err, define.ErrBadOption) {
			t.Errorf("Create(%.20q, START %d) = %+v, %v; want ErrBadOption", o.Name, o.Start, made, err)
		}
	}
	if rows, err := s.List(context.Background()); err != nil || len(rows) != 0 {
		t.Errorf("List says %+v, %v; want nothing", rows, err)
	}
	if _, err := s.Take(context.Background(), []byte("a"), 0); !errors.Is(err, define.ErrBadOption) {
		t.Errorf("Take of 0 numbers: got %v, want ErrBadOption", err)
	}
}

func TestManyCreatorsMakeOneSequence(t *testing.T) {
	p := newPlace(t).withTable(t, nil)
	var made, existed atomic.Int64
	var wg sync.WaitGroup
	for range 2 {
		s := p.open(t)
		for range 6 {
			wg.Go(func() {
				_, err := s.Create(context.Background(), sequence.CreateOptions{Name: "photos", Cache: 20})
				switch {
				case err == nil:
					made.Add(1)
				case errors.Is(err, sequence.ErrExists):
					existed.Add(1)
				default:
					t.Errorf("Create: %v", err)
				}
			})
		}
	}
	wg.Wait()
	if made.Load() != 1 || existed.Load() != 11 {
		t.Errorf("%d creators made it and %d found it, want 1 and 11", made.Load(), existed.Load())
	}
}

func TestDroppedSequenceContinuesAboveItsTombstone(t *testing.T) {
	p := newPlace(t).withTable(t, map[string]uint64{"photos": 0, "other": 0})
	s, other := p.open(t, steadySize(100)), p.open(t, steadySize(100))
	mustTake(t, s, "photos", 1)
	theirs := mustTake(t, other, "photos", 1) // its cached numbers are unknown to the proxy that drops the sequence
	settled(t, other, "photos")

	if dropped, err := s.Drop(context.Background(), []byte("Photos"), false); err != nil || dropped == nil {
		t.Fatalf("Drop = %v, %v; want true", dropped, err)
	}
	if _, err := s.Take(context.Background(), []byte("photos"), 1); !errors.Is(err, sequence.ErrUnknown) {
		t.Errorf("after DROP got %v, want ErrUnknown", err)
	}
	if exists, err := s.Exists(context.Background(), []byte("photos")); err != nil || exists {
		t.Errorf("after DROP Known = %v, %v; want false", exists, err)
	}
	// Unless it has heard of the DROP by now.
	if got, err := other.Take(context.Background(), []byte("photos"), 1); err == nil && got != theirs+1 || err != nil && !errors.Is(err, sequence.ErrUnknown) {
		t.Errorf("the other proxy gives %d, %v from memory, want %d", got, err, theirs+1)
	}

	made := mustCreate(t, s, sequence.CreateOptions{Name: "PHOTOS", Start: 5})
	if !made.Raised || made.First <= theirs+99 || made.Given != made.First-1 {
		t.Errorf("CREATE again says %+v, want it raised above %d", made, theirs+99)
	}
	if got := mustTake(t, s, "photos", 1); got != made.First {
		t.Errorf("the new sequence begins at %d, want %d", got, made.First)
	}
	if made := mustCreate(t, s, sequence.CreateOptions{Name: "fresh", Start: 5}); made.Raised || made.First != 5 {
		t.Errorf("an unrelated CREATE says %+v, want first 5", made)
	}
	eventually(t, "the other proxy has heard of the new sequence", func() bool {
		exists, err := other.Exists(context.Background(), []byte("photos"))
		return err == nil && exists
	})
	var book ledger
	for range 300 {
		book.add(t, "dropper", mustTake(t, s, "photos", 1), 1)
		book.add(t, "other", mustTake(t, other, "photos", 1), 1)
	}
}

func TestDropOfAnUnknownSequence(t *testing.T) {
	p := newPlace(t).withTable(t, nil)
	s := p.open(t)
	if _, err := s.Drop(context.Background(), []byte("photos"), false); !errors.Is(err, sequence.ErrUnknown) {
		t.Errorf("got %v, want ErrUnknown", err)
	}
	if dropped, err := s.Drop(context.Background(), []byte("photos"), true); err != nil || dropped != nil {
		t.Errorf("IF EXISTS = %v, %v; want false", dropped, err)
	}
}

func TestDropWhileNumbersAreTakenNeverRepeatsOne(t *testing.T) {
	p := newPlace(t).withTable(t, map[string]uint64{"photos": 0})
	var book ledger
	var stop atomic.Bool
	var taken atomic.Int64
	var wg sync.WaitGroup
	defer wg.Wait()
	defer stop.Store(true)
	for range 2 {
		s := p.open(t, steadySize(5), patience(30*time.Second))
		for range 3 {
			wg.Go(func() {
				for !stop.Load() {
					run, err := s.TakeRun(context.Background(), []byte("photos"), 1)
					switch {
					case err == nil:
						book.add(t, "a proxy", run.First, 1)
						taken.Add(1)
					case !errors.Is(err, sequence.ErrUnknown):
						t.Errorf("TakeRun: %v", err)
						return
					}
				}
			})
		}
	}
	s := p.open(t, patience(30*time.Second))
	for range 5 {
		before := taken.Load()
		eventually(t, "numbers are taken", func() bool { return taken.Load() > before+20 })
		if _, err := s.Drop(context.Background(), []byte("photos"), false); err != nil {
			t.Fatalf("Drop: %v", err)
		}
		mustCreate(t, s, sequence.CreateOptions{Name: "photos"})
	}
}

func TestTypedCacheIsObeyedByEveryProxyAndResetByDrop(t *testing.T) {
	p := newPlace(t).withTable(t, nil)
	s, other := p.open(t), p.open(t)
	if exists, err := other.Exists(context.Background(), []byte("photos")); err != nil || exists {
		t.Fatalf("Known = %v, %v; want false", exists, err)
	}
	mustCreate(t, s, sequence.CreateOptions{Name: "photos", Cache: 7})
	cacheOf := func(s *sequence.Sequences) (uint64, bool) {
		t.Helper()
		infos, err := s.List(context.Background())
		if err != nil || len(infos) != 1 {
			t.Fatalf("List = %+v, %v; want one sequence", infos, err)
		}
		return infos[0].Cache, sequence.Typed(&infos[0])
	}
	for _, who := range []*sequence.Sequences{s, other} {
		eventually(t, "the sequence is known", func() bool {
			exists, err := who.Exists(context.Background(), []byte("photos"))
			return err == nil && exists
		})
		mustTake(t, who, "photos", 1)
		if n, exact := cacheOf(who); n != 7 || !exact {
			t.Errorf("List says CACHE %d (typed: %v), want 7", n, exact)
		}
	}
	if _, err := s.Drop(context.Background(), []byte("photos"), false); err != nil {
		t.Fatal(err)
	}
	mustCreate(t, s, sequence.CreateOptions{Name: "photos"})
	if n, exact := cacheOf(s); n != sequence.DefaultCacheSize || exact {
		t.Errorf("created again List says CACHE %d (typed: %v), want %d by default", n, exact, sequence.DefaultCacheSize)
	}
}

func TestUnknownSequenceIsMadeOnlyIfAllowed(t *testing.T) {
	p := newPlace(t).withTable(t, nil)
	if _, err := p.open(t).Take(context.Background(), []byte("photos"), 1); !errors.Is(err, sequence.ErrUnknown) {
		t.Errorf("got %v, want ErrUnknown", err)
	}
	var book ledger
	var wg sync.WaitGroup
	for range 2 {
		s := p.open(t, func(o *sequence.Options) { o.CreateUnknown = true })
		for range 4 {
			wg.Go(func() {
				first, err := s.Take(context.Background(), []byte("photos"), 3)
				if err != nil {
					t.Errorf("Take: %v", err)
					return
				}
				book.add(t, "a client", first, 3)
			})
		}
	}
	wg.Wait()
	if got := book.count(); got != 24 {
		t.Errorf("got %d numbers, want 24", got)
	}
}
