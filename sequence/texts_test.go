package sequence_test

import (
	"context"
	"errors"
	"strconv"
	"sync"
	"testing"

	"seqproxy/sequence"
	"seqproxy/sequence/define"
)

// takeText takes a key that is a text.
func takeText(t testing.TB, s *sequence.Sequences, name string) string {
	t.Helper()
	got, err := s.TakeRun(context.Background(), []byte(name), 1)
	if err != nil || got.Text == "" {
		t.Fatalf("%s: got %+v, %v, want a text", name, got, err)
	}
	return got.Text
}

// A UUID leaves the row of its sequence where it is, and texts of several proxies differ. Where
// numbers are wanted they are refused.
func TestTextsAreTakenOneByOne(t *testing.T) {
	p := newPlace(t)
	proxies := []*sequence.Sequences{p.open(t), p.open(t)}
	mustCreate(t, proxies[0], sequence.CreateOptions{Name: "u", Kind: kindOf(t, "UUID")})
	mustCreate(t, proxies[0], sequence.CreateOptions{Name: "f", Kind: kindOf(t, "FORMAT 'a{n}'")})
	var mu sync.Mutex
	seen := make(map[string]bool)
	var group sync.WaitGroup
	for _, s := range proxies {
		for range 4 {
			group.Go(func() {
				for range 250 {
					u, f := takeText(t, s, "u"), takeText(t, s, "f")
					mu.Lock()
					seen[u], seen[f] = true, true
					mu.Unlock()
				}
			})
		}
	}
	group.Wait()
	if len(seen) != 2*4*250*2 {
		t.Errorf("%d keys differ, want %d", len(seen), 2*4*250*2)
	}
	ctx, s := context.Background(), proxies[0]
	_, state, err := s.Describe(ctx, []byte("u"))
	if err != nil || state.Last != 0 {
		t.Errorf("the counter of UUIDs stands at %d, %v", state.Last, err)
	}
	for _, name := range []string{"u", "f"} {
		if form, err := s.FormOf(ctx, []byte(name)); form != sequence.Texts || err != nil {
			t.Errorf("%s: the form is %d, %v", name, form, err)
		}
		var refused *define.KindError
		if _, err := s.Take(ctx, []byte(name), 1); !errors.As(err, &refused) {
			t.Errorf("%s: a number: got %v", name, err)
		}
		if _, err := s.TakeRun(ctx, []byte(name), 2); !errors.As(err, &refused) {
			t.Errorf("%s: two at once: got %v", name, err)
		}
	}
	if form, err := s.FormOf(ctx, []byte("nobody")); form != sequence.Numbers || err != nil {
		t.Errorf("an unknown sequence: the form is %d, %v", form, err)
	}
	if _, err := s.Drop(ctx, []byte("u"), false); err != nil {
		t.Fatal(err)
	}
	if _, err := s.TakeRun(ctx, []byte("u"), 1); !errors.Is(err, sequence.ErrUnknown) {
		t.Errorf("after DROP: got %v", err)
	}
}

// A proxy that gives UUIDs alone, which reserve nothing, hears that the sequence was dropped or has
// another owner.
func TestAProxyOfUUIDsHearsOfDROP(t *testing.T) {
	p := newPlace(t)
	a, b := p.open(t), p.open(t)
	mustCreate(t, b, sequence.CreateOptions{Name: "events", Kind: kindOf(t, "UUID")})
	l := new(textLedger)
	l.take(t, a, "events")
	if _, err := b.Drop(t.Context(), []byte("events"), false); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the other proxy gives none", func() bool {
		_, err := a.TakeRun(t.Context(), []byte("events"), 1)
		return errors.Is(err, sequence.ErrUnknown)
	})
}

// The last counter that a format has a key for is the end of the sequence.
func TestAFormatEndsWithItsDigits(t *testing.T) {
	s := newPlace(t).open(t)
	mustCreate(t, s, sequence.CreateOptions{Name: "f", Kind: kindOf(t, "FORMAT 'a{n:2}'"), Start: 98})
	for n := 98; n <= 99; n++ {
		if got := takeText(t, s, "f"); got != "a"+strconv.Itoa(n) {
			t.Errorf("got %s, want a%d", got, n)
		}
	}
	if _, err := s.TakeRun(context.Background(), []byte("f"), 1); !errors.Is(err, sequence.ErrExhausted) {
		t.Errorf("got %v", err)
	}
}
