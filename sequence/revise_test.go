package sequence_test

import (
	"context"
	"testing"
	"testing/synctest"

	"seqproxy/sequence"
	"seqproxy/sequence/segment"
	"seqproxy/sequence/stats"
	"seqproxy/sequence/store"
)

// A reservation that is in flight while its sequence is changed or restarted was made before: what
// it brings is not given.
func TestReservationInFlightIsVoidAfterAChange(t *testing.T) {
	for name, change := range map[string]func(c sequence.Cache){
		"restart":   func(c sequence.Cache) { c.Void(stats.UnusedRestart) },
		"increment": func(c sequence.Cache) { c.Revise(changedRow(func(e *store.Entry) { e.Def.Increment = 10 })) },
		"maximum":   func(c sequence.Cache) { c.Revise(changedRow(func(e *store.Entry) { e.Def.Max = 1000 })) },
		"past":      func(c sequence.Cache) { c.Revise(changedRow(func(e *store.Entry) { e.Past = 3 })) },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				sc := &script{hold: make(chan struct{})}
				s, c := scripted(t, sc, cacheSize(10))
				defer closeNow(t, s)
				got := make(chan uint64)
				go func() {
					n, err := s.Take(context.Background(), []byte("photos"), 1)
					if err != nil {
						t.Error(err)
					}
					got <- n
				}()
				synctest.Wait()
				change(c)
				sc.hold <- struct{}{}
				synctest.Wait()
				select {
				case n := <-got:
					t.Fatalf("got %d of the reservation that the change made void", n)
				default:
				}
				sc.hold <- struct{}{}
				if n := <-got; n != 11 {
					t.Errorf("got %d, want 11 of the next reservation", n)
				}
				if st := s.Stats(); st.Unused.Sum() != 10 || st.Reserved < 11 {
					t.Errorf("%d numbers are counted as reserved, and these as unused: %v; want 10 of them", st.Reserved, st.Unused)
				}
				close(sc.hold)
			})
		})
	}
}

func changedRow(change func(*store.Entry)) *store.Row {
	r := store.Row{Name: "photos", Max: 1<<64 - 1, Entry: store.NoEntry()}
	change(&r.Entry)
	r.Version = 1
	r.Max, r.Exact = r.Def.Limit(r.Max), r.Def.Cache
	return &r
}

func TestRevisedCacheKeepsWhatConforms(t *testing.T) {
	held := func(cur segment.Segment, queue ...segment.Segment) sequence.Cache {
		s, err := sequence.New(sequence.Options{Servers: []sequence.ServerOptions{{Addr: "seq.example:3306", Database: "app"}}})
		if err != nil {
			t.Fatal(err)
		}
		return sequence.Inside(s).Holding(store.Row{Name: "photos", Max: 1<<64 - 1, Entry: store.NoEntry()}, cur, queue...)
	}
	for name, c := range map[string]struct {
		change func(*store.Entry)
		want   []uint64
	}{
		"comment":         {func(e *store.Entry) { e.Def.Comment = "x" }, []uint64{10, 11, 12, 20, 21, 22}},
		"CACHE":           {func(e *store.Entry) { e.Def.Cache = 4 }, []uint64{10, 11, 12, 20}},
		"CACHE 1":         {func(e *store.Entry) { e.Def.Cache = 1 }, []uint64{10}},
		"MAXVALUE":        {func(e *store.Entry) { e.Def.Max = 20 }, []uint64{10, 11, 12, 20}},
		"low MAXVALUE":    {func(e *store.Entry) { e.Def.Max = 10 }, []uint64{10}},
		"lower MAXVALUE":  {func(e *store.Entry) { e.Def.Max = 9 }, nil},
		"higher MAXVALUE": {func(e *store.Entry) { e.Def.Max = 1 << 60 }, []uint64{10, 11, 12, 20, 21, 22}},
		"INCREMENT":       {func(e *store.Entry) { e.Def.Increment = 2 }, nil},
		"SETVAL":          {func(e *store.Entry) { e.Past = 11 }, []uint64{12, 20, 21, 22}},
		"SETVAL of all":   {func(e *store.Entry) { e.Past = 22 }, nil},
		"JSON":            {func(e *store.Entry) { e.Def.JSONSafe = true }, []uint64{10, 11, 12, 20, 21, 22}},
		"both ends":       {func(e *store.Entry) { e.Past, e.Def.Max = 12, 21 }, []uint64{20, 21}},
	} {
		cache := held(segment.New(10, 12), segment.New(20, 22))
		cache.Revise(changedRow(c.change))
		if got, gone := cache.Cached(), cache.Unused(); got != uint64(len(c.want)) || gone != 6-got {
			t.Errorf("%s: holds %d and has given up %d, want %d and %d", name, got, gone, len(c.want), 6-len(c.want))
		}
		for _, want := range c.want {
			if got, ok := cache.TakeHeld(); !ok || got != want {
				t.Errorf("%s: got %d, %v; want %d of %v", name, got, ok, want, c.want)
			}
		}
		if got, ok := cache.TakeHeld(); ok {
			t.Errorf("%s: got %d after %v", name, got, c.want)
		}
	}
}
