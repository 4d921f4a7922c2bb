package sequence_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"seqproxy/sequence"
	"seqproxy/sequence/define"
)

func ref[T any](v T) *T { return &v }

func mustAlter(t testing.TB, s *sequence.Sequences, name string, a sequence.Alteration) sequence.Altered {
	t.Helper()
	done, err := s.Alter(context.Background(), []byte(name), a)
	if err != nil {
		t.Fatalf("Alter(%q, %+v): %v", name, a, err)
	}
	return done
}

func wantTaken(t testing.TB, s *sequence.Sequences, name string, want ...uint64) {
	t.Helper()
	for _, w := range want {
		if got := mustTake(t, s, name, 1); got != w {
			t.Fatalf("sequence %q: got %d, want %d of %v", name, got, w, want)
		}
	}
}

func TestSequencesGoByTheirDefinition(t *testing.T) {
	p := newPlace(t)
	// A proxy that learns of a new round while it reserves leaves those numbers unused, so this one
	// learns nothing.
	s := p.open(t, seldomHearing)
	const top = 1<<64 - 1
	for i, c := range []struct {
		o    sequence.CreateOptions
		want []uint64
		end  error // of the take after these
	}{
		{sequence.CreateOptions{Start: 5, Max: 8}, []uint64{5, 6, 7, 8}, sequence.ErrExhausted},
		{sequence.CreateOptions{Increment: 10}, []uint64{1, 11, 21, 31}, nil},
		{sequence.CreateOptions{Increment: 10, Start: 7, Max: 30}, []uint64{7, 17, 27}, sequence.ErrExhausted},
		{sequence.CreateOptions{Increment: 10, Start: 7, Max: 27, Cache: 100}, []uint64{7, 17, 27}, sequence.ErrExhausted},
		{sequence.CreateOptions{Increment: 3, Min: 2, Start: 6, Max: 10, Cycle: true}, []uint64{6, 9, 2, 5, 8, 2, 5}, nil},
		{sequence.CreateOptions{Min: 3, Max: 5, Cycle: true, Cache: 2}, []uint64{3, 4, 5, 3, 4, 5, 3}, nil},
		{sequence.CreateOptions{Min: 100}, []uint64{100, 101}, nil},
		{sequence.CreateOptions{Start: top - 1}, []uint64{top - 1, top}, sequence.ErrExhausted},
		{sequence.CreateOptions{Start: top - 10, Increment: 10}, []uint64{top - 10, top}, sequence.ErrExhausted},
		{sequence.CreateOptions{Start: top - 10, Increment: 11}, []uint64{top - 10}, sequence.ErrExhausted},
		{sequence.CreateOptions{Start: 1, Increment: top - 1, Cache: 1000}, []uint64{1, top}, sequence.ErrExhausted},
		{sequence.CreateOptions{Start: 2, Increment: top, Cache: 1000}, []uint64{2}, sequence.ErrExhausted},
		{sequence.CreateOptions{Start: 1<<63 - 2, Increment: 1}, []uint64{1<<63 - 2, 1<<63 - 1, 1 << 63, 1<<63 + 1}, nil},
		{sequence.CreateOptions{Start: 1<<63 - 7, Increment: 5}, []uint64{1<<63 - 7, 1<<63 - 2, 1<<63 + 3}, nil},
		{sequence.CreateOptions{Start: 1<<53 - 2, JSONSafe: true}, []uint64{1<<53 - 2, 1<<53 - 1}, sequence.ErrExhausted},
		{sequence.CreateOptions{Floor: 41}, []uint64{42, 43}, nil},
		{sequence.CreateOptions{Floor: 41, Increment: 10}, []uint64{51, 61}, nil},
	} {
		c.o.Name = fmt.Sprintf("s%d", i)
		made := mustCreate(t, s, c.o)
		if made.First != c.want[0] || made.Raised != (c.o.Floor > 0) {
			t.Errorf("Create(%+v) says %+v, want it to begin at %d", c.o, made, c.want[0])
		}
		wantTaken(t, s, c.o.Name, c.want...)
		if c.end != nil {
			if got, err := s.Take(context.Background(), []byte(c.o.Name), 1); !errors.Is(err, c.end) {
				t.Errorf("%+v: at the end got %d, %v; want %v", c.o, got, err, c.end)
			}
		}
		def, state, err := s.Describe(context.Background(), []byte(c.o.Name))
		if want := sequence.Defined(&c.o); err != nil || def != want {
			t.Errorf("Describe says %+v, %v; want %+v", def, err, want)
		}
		if !c.o.Cycle && state.Last < c.want[len(c.want)-1] {
			t.Errorf("%+v: Describe says %+v, want the last number at least %d", c.o, state, c.want[len(c.want)-1])
		}
	}
}

func TestDefinitionsThatContradictThemselvesAreRefused(t *testing.T) {
	p := newPlace(t)
	p.exec(t, "CREATE TABLE sequence (name varchar(50) PRIMARY KEY, id INT UNSIGNED NOT NULL) ENGINE=InnoDB")
	s := p.open(t)
	mustCreate(t, s, sequence.CreateOptions{Name: "photos", Min: 5, Max: 100})
	for _, o := range []sequence.CreateOptions{
		{Min: 5, Max: 5},
		{Min: 5, Start: 4},
		{Max: 5, Start: 6},
		{Max: 1 << 32},
		{Start: 1 << 32},
		{Min: 1 << 33},
		{JSONSafe: true, Max: 1 << 53},
		{Cache: 1 << 60},
		{OwnedBy: define.Column{Schema: "a", Table: "b", Column: string(make([]byte, 65))}},
	} {
		o.Name = "bad"
		if made, err := s.Create(context.Background(), o); !errors.Is(err, define.ErrBadOption) {
			t.Errorf("Create(%+v) = %+v, %v; want ErrBadOption", o, made, err)
		}
	}
	for _, a := range []sequence.Alteration{
		{Min: ref(uint64(6))},
		{Min: ref(uint64(100))},
		{Max: ref(uint64(5))},
		{Max: ref(uint64(1 << 32))},
		{Start: ref(uint64(101))},
		{Restart: ref(uint64(101))},
		{Restart: ref(uint64(4))},
		{Restart: ref(uint64(101)), Force: true},
	} {
		if done, err := s.Alter(context.Background(), []byte("photos"), a); !errors.Is(err, define.ErrBadOption) {
			t.Errorf("Alter(%+v) = %+v, %v; want ErrBadOption", a, done, err)
		}
	}
	wantTaken(t, s, "photos", 5, 6)
	if _, err := s.Alter(context.Background(), []byte("albums"), sequence.Alteration{}); !errors.Is(err, sequence.ErrUnknown) {
		t.Errorf("got %v, want ErrUnknown", err)
	}
}

// Two proxies on one server: a change through one is in force at the other within a second.
func TestChangesReachOtherProxiesWithinASecond(t *testing.T) {
	p := newPlace(t).withTable(t, map[string]uint64{"photos": 0})
	a, b := p.open(t, steadySize(1000)), p.open(t, steadySize(1000))
	wantTaken(t, b, "photos", 1)
	settled(t, b, "photos")
	wantTaken(t, a, "photos", 1001)
	cached := func() uint64 { return sequence.Inside(b).Cached("photos") }

	mustAlter(t, a, "photos", sequence.Alteration{Cache: ref(uint64(3))})
	eventually(t, "CACHE 3", func() bool { return cached() <= 3 })
	next := mustTake(t, b, "photos", 1)

	mustAlter(t, a, "photos", sequence.Alteration{Increment: ref(uint64(10)), OwnedBy: &define.Column{Schema: "app", Table: "photos", Column: "id"}})
	eventually(t, "INCREMENT 10", func() bool { return cached() == 0 })
	if got := mustTake(t, b, "photos", 1); got%10 != 1 || got <= next {
		t.Errorf("got %d, want 1 + k*10 above %d", got, next)
	}
	eventually(t, "the owner", func() bool { o := b.Owners(); return o != nil && len(o.List) == 1 })
	if got := *b.Owners(); got.List[0] != (sequence.Owner{Sequence: "photos", Column: define.Column{Schema: "app", Table: "photos", Column: "id"}}) {
		t.Errorf("got owners %+v", got)
	}

	mustAlter(t, a, "photos", sequence.Alteration{Increment: ref(uint64(1)), Cache: ref(uint64(0)), OwnedBy: &define.Column{}})
	eventually(t, "no owner", func() bool { return len(b.Owners().List) == 0 })
	next = mustTake(t, b, "photos", 1)
	settled(t, b, "photos")
	mustAlter(t, a, "photos", sequence.Alteration{Max: ref(next + 1)})
	eventually(t, "MAXVALUE", func() bool { return cached() == 1 })
	wantTaken(t, b, "photos", next+1)
	if got, err := b.Take(context.Background(), []byte("photos"), 1); !errors.Is(err, sequence.ErrExhausted) {
		t.Errorf("after MAXVALUE got %d, %v; want ErrExhausted", got, err)
	}

	done := mustAlter(t, a, "photos", sequence.Alteration{Max: ref(uint64(0)), Restart: ref(uint64(50000))})
	if done.Next != 50000 {
		t.Errorf("RESTART says %+v", done)
	}
	eventually(t, "RESTART up", func() bool { return mustTake(t, b, "photos", 1) >= 50000 })

	if _, err := a.Drop(context.Background(), []byte("photos"), false); err != nil {
		t.Fatal(err)
	}
	eventually(t, "DROP", func() bool {
		_, err := b.Take(context.Background(), []byte("photos"), 1)
		return errors.Is(err, sequence.ErrUnknown)
	})
}

// With CYCLE the whole cycle repeats, through any proxy.
func TestTwoProxiesGoRoundTogether(t *testing.T) {
	p := newPlace(t).withTable(t, nil)
	core, logs := observer.New(zap.WarnLevel)
	logged := func(o *sequence.Options) { o.Logger = zap.New(core) }
	proxies := []*sequence.Sequences{p.open(t, logged), p.open(t, logged)}
	mustCreate(t, proxies[0], sequence.CreateOptions{Name: "days", Min: 10, Max: 70, Increment: 10, Start: 30, Cycle: true, Cache: 1})
	want := uint64(30)
	for i := range 40 {
		if got := mustTake(t, proxies[i%2], "days", 1); got != want {
			t.Fatalf("take %d: got %d, want %d", i, got, want)
		}
		if want += 10; want > 70 {
			want = 10
		}
	}
	if n := logs.FilterMessage("sequence with CYCLE begins again").Len(); n != 5 {
		t.Errorf("the log says %d times that it begins again, want 5", n)
	}
	if got, err := proxies[1].TakeRun(context.Background(), []byte("days"), 3); err != nil || got.Step != 10 || got.First > 50 {
		t.Errorf("got %d, %d, %v; want three days in steps of 10", got.First, got.Step, err)
	}
	if got, err := proxies[1].Take(context.Background(), []byte("days"), 8); !errors.Is(err, sequence.ErrExhausted) {
		t.Errorf("eight of seven days: got %d, %v; want ErrExhausted", got, err)
	}
	mustAlter(t, proxies[0], "days", sequence.Alteration{Cycle: ref(false), Max: ref(uint64(200))})
	last := uint64(0)
	for range 5 {
		last = max(last, mustTake(t, proxies[1], "days", 1))
	}
	if got := mustTake(t, proxies[0], "days", 1); got <= last {
		t.Errorf("without CYCLE got %d after %d", got, last)
	}
}

func TestCreateOrReplaceContinuesAboveWhatItReplaces(t *testing.T) {
	p := newPlace(t).withTable(t, nil)
	a, b := p.open(t, steadySize(20)), p.open(t, steadySize(20))
	if made := mustCreate(t, a, sequence.CreateOptions{Name: "photos", OrReplace: true, Comment: "first"}); made.Replaced || made.First != 1 {
		t.Errorf("got %+v, want a new one", made)
	}
	wantTaken(t, a, "photos", 1)
	settled(t, a, "photos")
	wantTaken(t, b, "photos", 21)
	settled(t, b, "photos")
	made := mustCreate(t, a, sequence.CreateOptions{Name: "PHOTOS", OrReplace: true, Start: 10, Cache: 5})
	if !made.Replaced || !made.Raised || made.First != 41 {
		t.Errorf("got %+v, want it replaced and raised to 41", made)
	}
	wantTaken(t, a, "photos", 41)
	eventually(t, "the other proxy gives up what it held", func() bool { return sequence.Inside(b).Cached("photos") == 0 })
	if got := mustTake(t, b, "photos", 1); got <= 41 {
		t.Errorf("got %d, want more than 41", got)
	}
	if def, _, err := b.Describe(context.Background(), []byte("photos")); err != nil || def.Start != 10 || def.Comment != "" || def.Cache != 5 {
		t.Errorf("Describe = %+v, %v; want the new definition", def, err)
	}
}

// Some applications make the keys between two numbers themselves: Hibernate's pooled-lo with
// INCREMENT BY 50 does. Another step begins above these.
func TestAnotherIncrementBeginsAboveTheKeysBetweenTwoNumbers(t *testing.T) {
	s := newPlace(t).open(t)
	wide := func(name string) sequence.CreateOptions {
		return sequence.CreateOptions{Name: name, Increment: 50, Cache: 1}
	}
	for _, name := range []string{"altered", "replaced", "dropped", "restarted"} {
		mustCreate(t, s, wide(name))
		wantTaken(t, s, name, 1, 51)
	}
	mustAlter(t, s, "altered", sequence.Alteration{Increment: ref[uint64](10)})
	wantTaken(t, s, "altered", 101, 111)
	mustAlter(t, s, "altered", sequence.Alteration{Increment: ref[uint64](1)})
	wantTaken(t, s, "altered", 121, 122)
	mustAlter(t, s, "altered", sequence.Alteration{Increment: ref[uint64](50)})
	wantTaken(t, s, "altered", 151)
	mustCreate(t, s, sequence.CreateOptions{Name: "replaced", OrReplace: true, Cache: 1})
	wantTaken(t, s, "replaced", 101)
	if _, err := s.Drop(context.Background(), []byte("dropped"), false); err != nil {
		t.Fatal(err)
	}
	mustCreate(t, s, sequence.CreateOptions{Name: "dropped", Cache: 1})
	wantTaken(t, s, "dropped", 101)
	_, err := s.Alter(context.Background(), []byte("restarted"), sequence.Alteration{Increment: ref[uint64](1), Restart: ref[uint64](60)})
	wantText(t, err, "RESTART WITH 60 is not above 100")
	mustAlter(t, s, "restarted", sequence.Alteration{Increment: ref[uint64](1), Restart: ref[uint64](101)})
	wantTaken(t, s, "restarted", 101)

	// A longer step that is no multiple of the one before would begin among them, too.
	mustCreate(t, s, sequence.CreateOptions{Name: "longer", Increment: 20, Cache: 1})
	wantTaken(t, s, "longer", 1, 21, 41)
	mustAlter(t, s, "longer", sequence.Alteration{Increment: ref[uint64](50)})
	wantTaken(t, s, "longer", 101)

	// Where no number was given there is nothing to pass over.
	mustCreate(t, s, wide("unused"))
	mustAlter(t, s, "unused", sequence.Alteration{Increment: ref[uint64](1)})
	wantTaken(t, s, "unused", 1)
}
