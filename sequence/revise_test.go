package sequence_test

import (
	"context"
	"testing"
	"testing/synctest"

	"seqproxy/sequence"
	"seqproxy/sequence/stats"
	"seqproxy/sequence/store"
)

// A reservation in flight while its sequence is changed or restarted was made before: its numbers
// are not given.
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
