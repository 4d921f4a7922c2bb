package sequence

import (
	"context"
	"sync/atomic"
	"testing"
	"time"
)

// inFlight counts how many reservations are in flight. The first of them comes back when the test says so.
type inFlight struct {
	reserver
	begun       atomic.Int32
	now, most   atomic.Int32
	held, first chan struct{} // closed by the test; closed once the first has begun
}

func (c *inFlight) reserve(ctx context.Context, name string, want, need uint64) (grant, error) {
	now := c.now.Add(1)
	defer c.now.Add(-1)
	for most := c.most.Load(); now > most && !c.most.CompareAndSwap(most, now); most = c.most.Load() {
	}
	if c.begun.Add(1) > 1 {
		return c.reserver.reserve(ctx, name, want, need)
	}
	close(c.first)
	<-c.held
	return c.reserver.reserve(ctx, name, want, need)
}

// A reservation that outlives its sequence comes back before those of the next sequence of that name begin: out of order they would be taken for a row gone back.
func TestAReservationThatOutlivesItsSequenceIsWaitedFor(t *testing.T) {
	p := newPlace(t).withTable(t, map[string]uint64{"photos": 0})
	s := p.open(t, steadySize(20))
	all := &inFlight{reserver: s.reserver, held: make(chan struct{}), first: make(chan struct{})}
	s.reserver = all
	early := make(chan error)
	go func() {
		_, err := s.Take(t.Context(), []byte("photos"), 1)
		early <- err
	}()
	<-all.first
	for range 2 { // the next one may end in the same way
		if _, err := s.Drop(t.Context(), []byte("photos"), false); err != nil {
			t.Fatal(err)
		}
		if _, err := s.Create(t.Context(), CreateOptions{Name: "photos"}); err != nil {
			t.Fatal(err)
		}
		if known, err := s.Known(t.Context(), []byte("photos")); !known || err != nil { // it has a cache
			t.Fatalf("it is known: %v (%v)", known, err)
		}
	}
	if err := <-early; err == nil {
		t.Error("a number of the sequence that was dropped")
	}
	late := make(chan uint64)
	go func() { late <- mustTake(t, s, "photos", 1) }()
	select {
	case n := <-late:
		t.Errorf("got %d while a reservation was in flight", n)
		close(all.held)
	case <-time.After(200 * time.Millisecond):
		close(all.held)
		<-late
	}
	if most := all.most.Load(); most != 1 {
		t.Errorf("%d reservations were in flight at the same time", most)
	}
	if held := len(s.ending); held != 0 {
		t.Errorf("%d turns are kept", held)
	}
}
