package sequence

import (
	"testing"
	"time"
)

// Whoever reserves gives his connection back before he takes another: with as many callers as there are connections all would wait for ever.
func TestASequenceThatWasLeftFrozenGoesOnWithTheOnlyConnection(t *testing.T) {
	for _, order := range []bool{false, true} {
		p := newPlace(t).withTable(t, nil)
		dead := p.open(t, steadySize(10))
		mustCreate(t, dead, CreateOptions{Name: "photos", Max: 1000, Order: order})
		mustTake(t, dead, "photos", 1)
		if _, err := dead.servers.first().freeze(t.Context(), "photos", down(1)); err != nil { // and then it dies
			t.Fatal(err)
		}
		s := p.open(t, steadySize(10), patience(20*time.Second), func(o *Options) { o.Servers[0].MaxConns = 1 })
		s.startFollowing()
		if known, err := s.Known(t.Context(), []byte("photos")); err != nil || !known {
			t.Fatalf("the sequence is known: %v, %v", known, err)
		}
		p.exec(t, "UPDATE sequence_options SET frozen_at = frozen_at - INTERVAL 2 MINUTE WHERE frozen_at IS NOT NULL")
		if n := mustTake(t, s, "photos", 1); n < 2 || n > 1000 {
			t.Errorf("ORDER %v: got %d, want a number above those that were given", order, n)
		}
	}
}
