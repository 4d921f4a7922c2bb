package sequence_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"seqproxy/sequence"
)

func TestSizesFollowTheTuningWhileNumbersAreGiven(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, cache := scripted(t, &script{})
		defer closeNow(t, s)
		const rate = 100
		use := func(seconds int) {
			t.Helper()
			for range seconds {
				mustTake(t, s, "photos", rate)
				time.Sleep(time.Second)
			}
		}
		s.Tune(sequence.Tuning{OutageCover: time.Minute})
		use(600)
		if cached := cache.Cached(); cached < 60*rate || cached > 3*60*rate {
			t.Errorf("with a cover of a minute %d numbers are cached, want %d to %d", cached, 60*rate, 3*60*rate)
		}
		s.Tune(sequence.Tuning{})
		use(600)
		if cached := cache.Cached(); cached < 900*rate {
			t.Errorf("with the default cover %d numbers are cached, want %d or more", cached, 900*rate)
		}
		s.Tune(sequence.Tuning{CacheSize: 1_000_000, OutageCover: time.Nanosecond})
		for range 3000 { // the low-water mark is the half of it
			use(1)
		}
		if cached := cache.Cached(); cached < 400_000 {
			t.Errorf("with a cache of a million %d numbers are cached, want more than 400,000", cached)
		}
	})
}

func TestCallersWaitAsLongAsTheTuningSays(t *testing.T) {
	p := newPlace(t).withTable(t, map[string]uint64{"photos": 0})
	s := p.open(t, func(o *sequence.Options) { o.AllocateTimeout = time.Hour })
	p.exec(t, "LOCK TABLES sequence WRITE") // until the end of the connection
	s.Tune(sequence.Tuning{AllocateTimeout: 50 * time.Millisecond, CreateTable: true})
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	var unavailable *sequence.UnavailableError
	if _, err := s.Take(ctx, []byte("photos"), 1); !errors.As(err, &unavailable) {
		t.Errorf("got %v, want that nobody waits longer than it says", err)
	}
}

func TestTheTableIsMadeIfTheTuningSaysSo(t *testing.T) {
	p := newPlace(t)
	s := p.open(t, patience(30*time.Second), forbidden)
	_, err := s.Create(t.Context(), sequence.CreateOptions{Name: "photos"})
	if wantText(t, err, "does not exist", "create_table = true"); !errors.Is(err, sequence.ErrUnfit) {
		t.Errorf("got %v, want that the table is missing", err)
	}
	s.Tune(sequence.Tuning{CreateTable: true})
	eventually(t, "it is made", func() bool { // a finding is valid for a moment
		_, err := s.Create(t.Context(), sequence.CreateOptions{Name: "photos"})
		return err == nil
	})
	if first := mustTake(t, s, "photos", 1); first != 1 {
		t.Errorf("got %d, want 1", first)
	}
}

func TestUnknownSequencesAreMadeIfTheTuningSaysSo(t *testing.T) {
	p := newPlace(t).withTable(t, map[string]uint64{"photos": 0})
	s := p.open(t)
	if _, err := s.Take(context.Background(), []byte("albums"), 1); !errors.Is(err, sequence.ErrUnknown) {
		t.Errorf("got %v, want that the sequence is unknown", err)
	}
	s.Tune(sequence.Tuning{CreateUnknown: true})
	deadline := time.Now().Add(30 * time.Second)
	for { // a name is unknown for a second
		_, err := s.Take(context.Background(), []byte("albums"), 1)
		if err == nil {
			return
		}
		if !errors.Is(err, sequence.ErrUnknown) || time.Now().After(deadline) {
			t.Fatalf("got %v, want that it is made", err)
		}
		time.Sleep(10 * time.Millisecond)
	}
}
