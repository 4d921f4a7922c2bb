package sequence

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

func TestCoverOfASequenceGoesBeforeTheConfiguredOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, cache := scripted(t, &script{})
		defer closeNow(t, s)
		const rate = 100
		use := func(cover uint64, seconds int) {
			t.Helper()
			r := changedRow(func(e *entry) { e.def.Cover = cover })
			r.version = cache.version + 1
			cache.revise(r)
			for range seconds {
				mustTake(t, s, "photos", rate)
				time.Sleep(time.Second)
			}
		}
		use(60, 600)
		if held := cache.heldNow(); held < 60*rate || held > 3*60*rate {
			t.Errorf("with a cover of a minute %d numbers are held, want %d to %d", held, 60*rate, 3*60*rate)
		}
		use(0, 600)
		if held := cache.heldNow(); held < 900*rate {
			t.Errorf("with the configured cover %d numbers are held, want %d or more", held, 900*rate)
		}
	})
}

// Whatever columns the table beside has, what it says is obeyed; those that are missing are added when they are needed.
func TestOptionsTableOfAnEarlierVersionIsObeyedAndAddedTo(t *testing.T) {
	p := newPlace(t).withTable(t, map[string]uint64{"albums": 3})
	first := p.open(t)
	mustAlter(t, first, "albums", Alteration{OwnedBy: &Column{Table: "albums", Column: "id"}})
	mustCreate(t, first, CreateOptions{Name: "gone", Comment: "x"})
	wantTaken(t, first, "gone", 1)
	if _, err := first.Drop(context.Background(), []byte("gone"), false); err != nil {
		t.Fatal(err)
	}
	p.exec(t, "ALTER TABLE sequence_options DROP outage_cover")

	a, b := p.open(t), p.open(t)
	if owners, err := b.LoadOwners(context.Background()); err != nil || len(owners.List) != 1 || owners.List[0].Table != "albums" {
		t.Errorf("owners are %+v, %v; want albums.id", owners, err)
	}
	if made := mustCreate(t, b, CreateOptions{Name: "gone"}); !made.Raised {
		t.Errorf("made again: %+v, want it above its tombstone", made)
	}
	mustAlter(t, a, "albums", Alteration{Cover: ref(uint64(60))})
	for _, s := range []*Sequences{a, b} {
		if def, _, err := s.Describe(context.Background(), []byte("albums")); err != nil || def.Cover != 60 || def.OwnedBy.Table != "albums" {
			t.Errorf("Describe = %+v, %v; want the cover of 60 and the owner", def, err)
		}
	}
	mustTake(t, b, "albums", 1)
	if got := b.names.get([]byte("albums")).pace.cover; got != time.Minute {
		t.Errorf("the cover in use is %v, want 1m", got)
	}
	if _, err := a.Alter(context.Background(), []byte("albums"), Alteration{Cover: ref(uint64(maxCover + 1))}); !errors.Is(err, ErrBadOption) {
		t.Errorf("more than a week: got %v, want ErrBadOption", err)
	}
}

// How much of the cover is held how soon after a steady use began, at any moment from then on: what docs/operations.md says. A short cover is
// reserved anew more often.
func TestTheCoverIsHeldAsSoonAsDocumented(t *testing.T) {
	const rate = 300
	percent := map[int]float64{30: 43, 60: 69, 120: 95, 144: 100}
	for _, cover := range []time.Duration{DefaultOutageCover, 5 * time.Minute, time.Minute, 37 * time.Second, 20 * time.Second} {
		synctest.Test(t, func(t *testing.T) {
			s, cache := scripted(t, &script{}, func(o *Options) { o.OutageCover = cover })
			defer closeNow(t, s)
			full, least := rate*cover.Seconds(), 0.0
			for second := 1; second < 1200; second++ {
				for range rate {
					mustTake(t, s, "photos", 1)
					time.Sleep(time.Second / rate)
				}
				if second%2 == 0 {
					s.holds() // as the heartbeat does
					synctest.Wait()
				}
				least = max(least, percent[second])
				if held := float64(cache.heldNow()) / full * 100; held < least {
					t.Fatalf("cover of %v: %d seconds after the first number %.1f %% of it is held, want %v %%", cover, second, held, least)
				}
			}
		})
	}
}
