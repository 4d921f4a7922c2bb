package sequence_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"seqproxy/sequence"
	"seqproxy/sequence/define"
	"seqproxy/sequence/kind"
)

// kindsOf are one of each kind but the plain one, and with JSON_SAFE.
func kindsOf(t testing.TB) (all []kind.Kind) {
	for _, clause := range []string{
		"BIT_REVERSED", "BIT_REVERSED JSON_SAFE", "ROTATE 1 DIGITS 18", "ROTATE 2 DIGITS 9 JSON_SAFE", "SHARD BITS 5", "SHARD BITS 15 JSON_SAFE",
	} {
		k, err := kind.Parse(clause)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, k)
	}
	return all
}

func kindOf(t testing.TB, clause string) kind.Kind {
	k, err := kind.Parse(clause)
	if err != nil {
		t.Fatal(err)
	}
	return k
}

func wantKindError(t testing.TB, what string, err error, words ...string) {
	t.Helper()
	if !errors.As(err, new(*define.KindError)) {
		t.Errorf("%s: got %v, want a KindError", what, err)
		return
	}
	wantText(t, err, words...)
}

// Two proxies give keys of each counter once.
func TestEachKindGivesEachKeyOnce(t *testing.T) {
	p := newPlace(t)
	a, b := p.open(t, cacheSize(7)), p.open(t, cacheSize(7))
	for i, k := range kindsOf(t) {
		name := fmt.Sprintf("s%d", i)
		mustCreate(t, a, sequence.CreateOptions{Name: name, Kind: k, JSONSafe: k.JSONSafe()})
		keys, counters := make(map[uint64]bool), make(map[uint64]bool)
		for range 100 {
			for _, s := range []*sequence.Sequences{a, b} {
				key := mustTake(t, s, name, 1)
				n, _, ok := k.Counter(key)
				if keys[key] || counters[n] || !ok {
					t.Fatalf("%v: the key %d of %d (%v) was given before", k, key, n, ok)
				}
				keys[key], counters[n] = true, true
			}
		}
		if id := p.id(t, name+define.CounterSuffix); id < 200 {
			t.Errorf("%v: the row stands at %d", k, id)
		}
		if result, err := p.db.Exec("UPDATE sequence SET id = LAST_INSERT_ID(id + 1) WHERE name = ?", name); err != nil {
			t.Error(err)
		} else if n, _ := result.RowsAffected(); n != 0 {
			t.Errorf("%v: an application that counts in the table itself finds %d rows", k, n)
		}
		d, at, err := b.Describe(context.Background(), []byte(name))
		if err != nil || d.Name != name || d.Kind != k || at.Limit != k.MaxCounter() || at.Info.Name != name || at.Info.Kind != k {
			t.Errorf("%v: it is described as %+v, %+v, %v", k, d, at, err)
		}
	}
	for _, list := range []func() ([]string, error){
		func() (names []string, err error) {
			all, err := a.List(context.Background())
			for _, i := range all {
				names = append(names, i.Name)
			}
			return names, err
		},
		func() (names []string, err error) {
			all, err := a.Definitions(context.Background())
			for _, d := range all {
				names = append(names, d.Name)
			}
			return names, err
		},
	} {
		if names, err := list(); err != nil || fmt.Sprint(names) != "[s0 s1 s2 s3 s4 s5]" {
			t.Errorf("they are listed as %v, %v", names, err)
		}
	}
	for _, s := range a.BySequence() {
		if strings.Contains(s.Name, define.CounterSuffix) {
			t.Errorf("%s is counted", s.Name)
		}
	}
}

func TestWhatAKindDoesNotGoWithIsRefused(t *testing.T) {
	p := newPlace(t)
	s := p.open(t)
	ctx := context.Background()
	reversed, sharded := kindOf(t, "BIT_REVERSED"), kindOf(t, "SHARD BITS 5")
	for _, c := range []struct {
		o    sequence.CreateOptions
		want string
	}{
		{sequence.CreateOptions{Kind: reversed, Increment: 2}, "INCREMENT BY 2"},
		{sequence.CreateOptions{Kind: sharded, Cycle: true, Max: 10}, "CYCLE"},
		{sequence.CreateOptions{Kind: reversed, JSONSafe: true}, "JSON_SAFE"},
	} {
		c.o.Name = "bad"
		_, err := s.Create(ctx, c.o)
		wantKindError(t, c.want, err, c.want)
	}
	_, err := s.Create(ctx, sequence.CreateOptions{Name: "bad", Kind: sharded, Max: 1 << 58})
	if !errors.Is(err, define.ErrConflict) {
		t.Errorf("MAXVALUE above the last counter: %v", err)
	}
	if _, err = s.Create(ctx, sequence.CreateOptions{Name: "bad#Counter"}); !errors.Is(err, define.ErrBadOption) {
		t.Errorf("the name of a counter: %v", err)
	}

	mustCreate(t, s, sequence.CreateOptions{Name: "r", Kind: reversed})
	mustCreate(t, s, sequence.CreateOptions{Name: "h", Kind: sharded})
	_, err = s.TakeRun(ctx, []byte("r"), 2)
	wantKindError(t, "two numbers", err, "BIT_REVERSED", "NEXTVAL in each row")
	run, err := s.TakeRun(ctx, []byte("h"), 3)
	if err != nil {
		t.Fatal(err)
	}
	for i := range uint64(3) {
		if n, _, ok := sharded.Counter(run.First + i*run.Step); !ok || n != i+1 {
			t.Errorf("number %d of a run is the key of %d (%v)", i, n, ok)
		}
	}
	for _, name := range []string{"r", "h"} {
		_, err = s.Advance(ctx, []byte(name), 1)
		wantKindError(t, "a ticket", err, "SELECT NEXTVAL")
		_, _, err = s.AdvanceOrCreate(ctx, []byte(name), 1)
		wantKindError(t, "a ticket that creates", err)
		_, _, err = s.SetValue(ctx, []byte(name), 100, true)
		wantKindError(t, "SETVAL", err, "RESTART WITH")
		wantKindError(t, "a count", s.Consecutive(ctx, []byte(name)))
		for what, a := range map[string]sequence.Alteration{
			"INCREMENT": {Increment: ref(uint64(2))}, "CYCLE": {Cycle: ref(true), Max: ref(uint64(9))}, "JSON_SAFE": {JSONSafe: ref(true)},
		} {
			_, err = s.Alter(ctx, []byte(name), a)
			wantKindError(t, "ALTER "+what, err, what)
		}
	}
	_, err = s.Step(ctx, []byte("r"))
	wantKindError(t, "the step", err)
	if step, err := s.Step(ctx, []byte("h")); step != 1 || err != nil {
		t.Errorf("the step of SHARD BITS: %d, %v", step, err)
	}

	if done := mustAlter(t, s, "r", sequence.Alteration{Restart: ref(uint64(5000)), Cache: ref(uint64(1))}); done.Next != 5000 {
		t.Errorf("RESTART WITH 5000 goes on at %d", done.Next)
	}
	wantTaken(t, s, "r", reversed.Key(5000, 0), reversed.Key(5001, 0))
	if done := mustAlter(t, s, "r", sequence.Alteration{Restart: ref(uint64(3)), Force: true}); done.Next != 3 {
		t.Errorf("RESTART WITH 3 FORCE goes on at %d", done.Next)
	}
	wantTaken(t, s, "r", reversed.Key(3, 0))
}

// A name has one kind, whatever was dropped.
func TestTheKindOfANameNeverChanges(t *testing.T) {
	p := newPlace(t)
	s := p.open(t)
	ctx := context.Background()
	reversed, sharded := kindOf(t, "BIT_REVERSED"), kindOf(t, "SHARD BITS 5")
	create := func(o sequence.CreateOptions) error { _, err := s.Create(ctx, o); return err }

	mustCreate(t, s, sequence.CreateOptions{Name: "k", Kind: reversed, Cache: 1})
	wantTaken(t, s, "k", reversed.Key(1, 0), reversed.Key(2, 0))
	for _, k := range []kind.Kind{{}, reversed, sharded} {
		if err := create(sequence.CreateOptions{Name: "k", Kind: k}); !errors.Is(err, sequence.ErrExists) || strings.Contains(err.Error(), define.CounterSuffix) {
			t.Errorf("%v: %v", k, err)
		}
		if made, err := s.Create(ctx, sequence.CreateOptions{Name: "k", Kind: k, IfNotExists: true}); err != nil || !made.Existed {
			t.Errorf("%v: IF NOT EXISTS: %+v, %v", k, made, err)
		}
		if k != reversed {
			wantKindError(t, "OR REPLACE "+k.String(), create(sequence.CreateOptions{Name: "k", Kind: k, OrReplace: true}), "another kind", "another name")
		}
	}
	mustCreate(t, s, sequence.CreateOptions{Name: "k", Kind: reversed, OrReplace: true, Cache: 1})
	wantTaken(t, s, "k", reversed.Key(3, 0))

	if dropped, err := s.Drop(ctx, []byte("k"), false); dropped == nil || err != nil {
		t.Fatal(dropped, err)
	}
	if _, err := s.Take(ctx, []byte("k"), 1); !errors.Is(err, sequence.ErrUnknown) || strings.Contains(err.Error(), define.CounterSuffix) {
		t.Errorf("after DROP: %v", err)
	}
	for _, k := range []kind.Kind{{}, sharded, kindOf(t, "BIT_REVERSED JSON_SAFE")} {
		wantKindError(t, "after DROP "+k.String(), create(sequence.CreateOptions{Name: "k", Kind: k, JSONSafe: k.JSONSafe()}), "another kind")
	}
	mustCreate(t, s, sequence.CreateOptions{Name: "k", Kind: reversed})
	wantTaken(t, s, "k", reversed.Key(4, 0))

	mustCreate(t, s, sequence.CreateOptions{Name: "unused"})
	if _, err := s.Drop(ctx, []byte("unused"), false); err != nil {
		t.Fatal(err)
	}
	// No proxy has a number of the other one.
	mustCreate(t, s, sequence.CreateOptions{Name: "unused", Kind: sharded})
	mustCreate(t, s, sequence.CreateOptions{Name: "plain"})
	wantTaken(t, s, "plain", 1)
	if _, err := s.Drop(ctx, []byte("plain"), false); err != nil {
		t.Fatal(err)
	}
	wantKindError(t, "a plain one was dropped", create(sequence.CreateOptions{Name: "plain", Kind: sharded}), "a plain sequence")
}

// Of two proxies that make one name at the same time, with two kinds, one does.
func TestANameIsMadeWithOneKind(t *testing.T) {
	p := newPlace(t)
	proxies := []*sequence.Sequences{p.open(t), p.open(t), p.open(t)}
	kinds := []kind.Kind{{}, kindOf(t, "BIT_REVERSED"), kindOf(t, "ROTATE 1 DIGITS 9")}
	for round := range 20 {
		name := fmt.Sprintf("k%d", round)
		errs := make([]error, len(proxies))
		var group sync.WaitGroup
		for i, s := range proxies {
			group.Go(func() {
				_, errs[i] = s.Create(context.Background(), sequence.CreateOptions{Name: name, Kind: kinds[i]})
			})
		}
		group.Wait()
		made := 0
		for i, err := range errs {
			switch {
			case err == nil:
				made++
			case !errors.As(err, new(*define.KindError)) && !errors.Is(err, sequence.ErrExists):
				t.Errorf("%v: %v", kinds[i], err)
			}
		}
		if made != 1 {
			t.Fatalf("%d sequences of one name were made: %v", made, errs)
		}
	}
}

// Keys of an ORDER sequence have counters that rise over all proxies.
func TestAKindWithORDER(t *testing.T) {
	p := newPlace(t)
	a, b := p.open(t), p.open(t)
	k := kindOf(t, "BIT_REVERSED")
	mustCreate(t, a, sequence.CreateOptions{Name: "k", Kind: k, Order: true})
	for n := uint64(1); n < 20; n += 2 {
		wantTaken(t, a, "k", k.Key(n, 0))
		wantTaken(t, b, "k", k.Key(n+1, 0))
	}
}

// A row that is made by hand, or a loss of the options, leads to no key of another kind.
func TestAKindSurvivesWhatIsDoneByHand(t *testing.T) {
	p := newPlace(t)
	s := p.open(t)
	ctx := context.Background()
	reversed := kindOf(t, "BIT_REVERSED")
	mustCreate(t, s, sequence.CreateOptions{Name: "k", Kind: reversed, Cache: 1})
	wantTaken(t, s, "k", reversed.Key(1, 0))
	p.exec(t, "INSERT INTO sequence (name, id) VALUES ('k', 70)")
	other := p.open(t)
	wantTaken(t, other, "K", reversed.Key(2, 0))
	wantTaken(t, s, "k", reversed.Key(3, 0))
	if all, err := s.List(ctx); err != nil || len(all) != 1 || all[0].Kind != reversed {
		t.Errorf("the list is %+v, %v", all, err)
	}

	p.exec(t, "CREATE TABLE kept AS SELECT * FROM sequence")
	p.exec(t, "DELETE FROM sequence")
	for _, s := range []*sequence.Sequences{s, p.open(t)} { // one that has given keys, and one that has not
		_, err := s.Create(ctx, sequence.CreateOptions{Name: "k"})
		wantKindError(t, "a plain one in place of a row that was deleted", err, "BIT_REVERSED")
	}
	p.exec(t, "INSERT INTO sequence SELECT * FROM kept")

	p.exec(t, "DELETE FROM sequence_options WHERE name = 'k#counter'")
	third := p.open(t, patience(20*time.Second))
	if key, err := third.Take(ctx, []byte("k"), 1); !errors.Is(err, sequence.ErrUnfit) {
		t.Errorf("without options: got %d, %v", key, err)
	}

	p.exec(t, "DELETE FROM sequence")
	_, err := s.Create(ctx, sequence.CreateOptions{Name: "k"}) // by the proxy that has given keys
	wantKindError(t, "a plain one after both tables were lost", err, "not known any more", "with the kind that it had")
}

// A newer proxy, or somebody's hand, may have written a kind that this version does not know.
func TestAKindThatCannotBeReadIsAFaultOfItsSequenceAlone(t *testing.T) {
	p := newPlace(t)
	s, other := p.open(t), p.open(t)
	column := define.Column{Schema: "app", Table: "people", Column: "id"}
	mustCreate(t, s, sequence.CreateOptions{Name: "newer", OwnedBy: column})
	mustCreate(t, s, sequence.CreateOptions{Name: "photos"})
	for _, name := range []string{"newer", "photos"} {
		mustTake(t, other, name, 1)
	}
	p.exec(t, "UPDATE sequence_options SET kind = 'NEWER 7', version = (SELECT version + 1 FROM sequence_version) WHERE name = 'newer'")
	p.exec(t, "UPDATE sequence_version SET version = version + 1")
	wantFault := func(s *sequence.Sequences) {
		t.Helper()
		eventually(t, "it fails with a clear error", func() bool {
			_, err := s.Take(t.Context(), []byte("newer"), 1)
			return errors.Is(err, sequence.ErrUnfit) && strings.Contains(err.Error(), `sequence "newer": its kind cannot be read: "NEWER 7"`)
		})
	}
	wantFault(other)
	mustAlter(t, s, "photos", sequence.Alteration{Restart: ref(uint64(5000))})
	eventually(t, "the other proxy obeys the restart", func() bool { return sequence.Inside(other).Cached("photos") == 0 })
	if n := mustTake(t, other, "photos", 1); n < 5000 {
		t.Errorf("got %d after a restart with 5000", n)
	}
	fresh := p.open(t)
	if owners, err := fresh.LoadOwners(t.Context()); err != nil || len(owners.List) != 1 || owners.List[0].Column != column {
		t.Errorf("the columns that own sequences are %+v, %v", owners, err)
	}
	wantFault(fresh)
	mustTake(t, fresh, "photos", 1)
}

// A sequence with a kind ends with its kind, and warns before.
func TestAKindEnds(t *testing.T) {
	p := newPlace(t)
	s := p.open(t)
	k := kindOf(t, "ROTATE 1 DIGITS 2")
	mustCreate(t, s, sequence.CreateOptions{Name: "k", Kind: k})
	seen := make(map[uint64]bool)
	for range 99 {
		seen[mustTake(t, s, "k", 1)] = true
	}
	if len(seen) != 99 {
		t.Errorf("99 counters of two digits have %d keys", len(seen))
	}
	var end *sequence.NameError
	if _, err := s.Take(context.Background(), []byte("k"), 1); !errors.As(err, &end) || !errors.Is(err, sequence.ErrExhausted) || end.Name != "k" {
		t.Errorf("behind the last: %v", err)
	}
	all, err := s.List(context.Background())
	if err != nil || len(all) != 1 || all[0].End != 99 || all[0].Used != 100 {
		t.Errorf("at its end it is listed as %+v, %v", all, err)
	}
}

// Explicit keys move the counter where they rise with it, and nowhere else.
func TestKeysThatWereChosenAreNotGivenInAnyKind(t *testing.T) {
	p := newPlace(t)
	s := p.open(t, steadySize(100))
	ctx := context.Background()
	sharded, rotated := kindOf(t, "SHARD BITS 5"), kindOf(t, "ROTATE 1 DIGITS 9")
	mustCreate(t, s, sequence.CreateOptions{Name: "h", Kind: sharded})
	mustCreate(t, s, sequence.CreateOptions{Name: "o", Kind: rotated})
	if err := s.Avoid(ctx, []byte("h"), []uint64{sharded.Key(5000, 3)}); err != nil {
		t.Fatal(err)
	}
	if n, _, _ := sharded.Counter(mustTake(t, s, "h", 1)); n <= 5000 {
		t.Errorf("behind the counter 5000 comes %d", n)
	}
	// In a key of somebody else's the low bits may be any number, and move no counter near its end.
	if err := s.Avoid(ctx, []byte("h"), []uint64{sharded.Key(sharded.MaxCounter(), 31), sharded.Key(sharded.MaxCounter()/2+1, 0)}); err != nil {
		t.Fatal(err)
	}
	for range 300 { // more than are in memory
		if n, _, _ := sharded.Counter(mustTake(t, s, "h", 1)); n > 10_000 {
			t.Fatalf("behind keys of others comes the counter %d", n)
		}
	}
	wantTaken(t, s, "o", rotated.Key(1, 0))
	if err := s.Avoid(ctx, []byte("o"), []uint64{rotated.Key(2, 0), rotated.Key(900_000_000, 0)}); err != nil {
		t.Fatal(err)
	}
	wantTaken(t, s, "o", rotated.Key(3, 0))
}

// Several servers divide the counters of a kind.
func TestSeveralServersDivideTheCountersOfAKind(t *testing.T) {
	f := newFleet(t, 2)
	s, other := f.open(t), f.open(t)
	k := kindOf(t, "BIT_REVERSED")
	mustCreate(t, s, sequence.CreateOptions{Name: "k", Kind: k})
	seen := make(map[uint64]bool)
	for range 50 {
		for _, s := range []*sequence.Sequences{s, other} {
			key := mustTake(t, s, "k", 1)
			if _, _, ok := k.Counter(key); !ok || seen[key] {
				t.Fatalf("key %d (%v) was given before", key, ok)
			}
			seen[key] = true
		}
	}
	if _, err := s.Drop(context.Background(), []byte("k"), false); err != nil {
		t.Fatal(err)
	}
	_, err := other.Create(context.Background(), sequence.CreateOptions{Name: "k"})
	wantKindError(t, "a plain one", err)
}
