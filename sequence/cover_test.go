package sequence_test

import (
	"testing"
	"testing/synctest"
	"time"

	"seqproxy/sequence"
	"seqproxy/sequence/store"
)

func TestCoverOfASequenceGoesBeforeTheConfiguredOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, cache := scripted(t, &script{})
		defer closeNow(t, s)
		const rate = 100
		use := func(cover uint64, seconds int) {
			t.Helper()
			r := changedRow(func(e *store.Entry) { e.Def.Cover = cover })
			cache.Revise(r)
			for range seconds {
				mustTake(t, s, "photos", rate)
				time.Sleep(time.Second)
			}
		}
		use(60, 600)
		if cached := cache.Cached(); cached < 60*rate || cached > 3*60*rate {
			t.Errorf("with a cover of a minute %d numbers are cached, want %d to %d", cached, 60*rate, 3*60*rate)
		}
		use(0, 600)
		if cached := cache.Cached(); cached < 900*rate {
			t.Errorf("with the configured cover %d numbers are cached, want %d or more", cached, 900*rate)
		}
	})
}

// How much of the cover is cached how soon after a steady use began, at any moment: as
// docs/operations.md says. A short cover is reserved anew more often.
func TestTheCoverIsHeldAsSoonAsDocumented(t *testing.T) {
	const rate = 300
	percent := map[int]float64{30: 43, 60: 69, 120: 95, 144: 100}
	for _, cover := range []time.Duration{sequence.DefaultOutageCover, 5 * time.Minute, time.Minute, 37 * time.Second, 20 * time.Second} {
		synctest.Test(t, func(t *testing.T) {
			s, cache := scripted(t, &script{}, func(o *sequence.Options) { o.OutageCover = cover })
			defer closeNow(t, s)
			full, least := rate*cover.Seconds(), 0.0
			for second := 1; second < 1200; second++ {
				for range rate {
					mustTake(t, s, "photos", 1)
					time.Sleep(time.Second / rate)
				}
				if second%2 == 0 {
					sequence.Inside(s).Beat() // as the heartbeat does
					synctest.Wait()
				}
				least = max(least, percent[second])
				if filled := float64(cache.Cached()) / full * 100; filled < least {
					t.Fatalf("cover of %v: %d seconds after the first number %.1f %% of it is cached, want %v %%", cover, second, filled, least)
				}
			}
		})
	}
}

// A sequence in use may have half of its cache before more is fetched. An idle one has all of it,
// for an outage to come.
func TestAnIdleSequenceIsFilledUpToItsCache(t *testing.T) {
	p := newPlace(t).withTable(t, map[string]uint64{"photos": 0, "albums": 0})
	s := p.open(t, steadySize(10))
	for want := uint64(1); want <= 4; want++ {
		if n := mustTake(t, s, "photos", 1); n != want {
			t.Fatalf("got %d, want %d", n, want)
		}
	}
	if exists, err := s.Exists(t.Context(), []byte("albums")); !exists || err != nil {
		t.Fatal(exists, err)
	}
	photos, albums := sequence.Inside(s).Cache("photos"), sequence.Inside(s).Cache("albums")
	settled := func(c sequence.Cache) (n uint64) {
		eventually(t, "no reservation", func() bool { return !c.Reserving() })
		return c.Cached()
	}
	photos.KeepUp(time.Now()) // notices that four were taken
	if n := settled(photos); n != 6 {
		t.Errorf("a sequence in use holds %d, want the 6 that are left", n)
	}
	photos.KeepUp(time.Now().Add(sequence.Inside(s).Timing().Idle / 2))
	if n := settled(photos); n != 6 {
		t.Errorf("after half a minute it holds %d, want 6", n)
	}
	later := time.Now().Add(sequence.Inside(s).Timing().Idle)
	if _, err := s.List(t.Context()); err != nil { // a query is no use
		t.Fatal(err)
	}
	photos.KeepUp(later)
	albums.KeepUp(later)
	if n := settled(photos); n != 16 {
		t.Errorf("an idle sequence holds %d, want 16: no less than its cache of 10", n)
	}
	if n := settled(albums); n != 0 {
		t.Errorf("one that was only asked about holds %d", n)
	}
	photos.KeepUp(later.Add(2 * sequence.Inside(s).Timing().Idle))
	if n := settled(photos); n != 16 || p.id(t, "photos") != 20 {
		t.Errorf("filled up again it holds %d, and the row is at %d, want 16 and 20", n, p.id(t, "photos"))
	}
	if n := mustTake(t, s, "photos", 1); n != 5 {
		t.Errorf("got %d, want 5", n)
	}
}
