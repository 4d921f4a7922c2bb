package sequence_test

import (
	"testing"
	"testing/synctest"

	"seqproxy/sequence"
	"seqproxy/sequence/store"
)

// A reservation that outlives its sequence returns before those of the next sequence of that name
// begin: out of order they would look like a row that went back.
func TestAReservationThatOutlivesItsSequenceIsWaitedFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sc := &script{hold: make(chan struct{})}
		s, _ := scripted(t, sc, cacheSize(20))
		defer closeNow(t, s)
		early := make(chan error, 1)
		go func() {
			_, err := s.Take(t.Context(), []byte("photos"), 1)
			early <- err
		}()
		synctest.Wait()
		for range 2 { // the next one may end in the same way
			sequence.Inside(s).End("photos")
			if _, err := sequence.Inside(s).Meet("photos", store.Row{Name: "photos", Max: sc.max, Entry: store.NoEntry()}); err != nil {
				t.Fatal(err)
			}
		}
		if err := <-early; err == nil {
			t.Error("a number of the sequence that was dropped")
		}
		late := make(chan uint64, 1)
		go func() { late <- mustTake(t, s, "photos", 1) }()
		synctest.Wait()
		if calls := sc.calls(); len(calls) != 1 {
			t.Errorf("got reservations %v, want the first one alone while it is in flight", calls)
		}
		close(sc.hold)
		if n := <-late; n != 21 {
			t.Errorf("got %d, want 21: the first number behind those of the reservation before", n)
		}
		synctest.Wait()
		if sc.most != 1 {
			t.Errorf("got up to %d reservations at a time, want 1", sc.most)
		}
		if ending := sequence.Inside(s).Ending(); ending != 0 {
			t.Errorf("%d locks are kept", ending)
		}
	})
}
