package sequence_test

import (
	"context"
	"errors"
	"runtime"
	"strings"
	"testing"

	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"seqproxy/sequence"
	"seqproxy/sequence/stats"
)

// No proxy is informed of a row that was deleted by hand, so the one that finds out discards all
// its numbers: a restart that others agree on later would not reach it.
func TestARowThatIsFoundGoneEndsItsNumbersUnderEverySpelling(t *testing.T) {
	for name, find := range map[string]func(s *sequence.Sequences) error{
		"after it was dropped and made again": func(s *sequence.Sequences) (err error) {
			for range 100 {
				if _, err = s.Take(context.Background(), []byte("photos"), 1); err != nil {
					break
				}
			}
			return err
		},
		"by a number that somebody chose": func(s *sequence.Sequences) error {
			return s.Avoid(context.Background(), []byte("photos"), []uint64{12})
		},
		"by steps": func(s *sequence.Sequences) (err error) {
			for range 100 {
				if _, err = s.Advance(context.Background(), []byte("photos"), 3); err != nil {
					break
				}
			}
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			p := newPlace(t).withTable(t, map[string]uint64{"photos": 0})
			core, logs := observer.New(zap.WarnLevel)
			s := p.open(t, steadySize(10), func(o *sequence.Options) { o.Logger = zap.New(core) })
			other := p.open(t, steadySize(10))
			wantTaken(t, s, "photos", 1)
			wantTaken(t, s, "PHOTOS", 2)
			settled(t, s, "photos")
			if strings.HasPrefix(name, "after") {
				if _, err := s.Drop(t.Context(), []byte("photos"), false); err != nil {
					t.Fatal(err)
				}
				mustCreate(t, s, sequence.CreateOptions{Name: "photos"})
				mustTake(t, s, "photos", 1)
				settled(t, s, "photos")
			}
			p.exec(t, "DELETE FROM sequence")
			if err := find(s); !errors.Is(err, sequence.ErrUnknown) {
				t.Fatalf("without the row: got %v, want ErrUnknown", err)
			}
			if n := logs.FilterMessage("sequence row gone").Len(); n != 1 {
				t.Errorf("the log has it %d times, want once", n)
			}
			p.exec(t, "INSERT INTO sequence (name, id) VALUES ('photos', 100)")
			beginAgain(t, p.db, other, "photos", 1)
			wantTaken(t, other, "photos", 1, 2, 3, 4, 5)
			if n := mustTake(t, s, "PHOTOS", 1); n <= 10 {
				t.Errorf("after the other proxy reserved up to 10 got %d, want a higher one", n)
			}
		})
	}
}

// A proxy finds the row gone before it hears that the sequence was dropped. Nobody has deleted the
// row, so the log advises nothing.
func TestADroppedSequenceIsNoDeletedRow(t *testing.T) {
	p := newPlace(t).withTable(t, map[string]uint64{"photos": 0})
	core, logs := observer.New(zap.WarnLevel)
	s := p.open(t, steadySize(1), func(o *sequence.Options) { o.Logger = zap.New(core) })
	other := p.open(t)
	wantTaken(t, s, "photos", 1)
	settled(t, s, "photos")
	sequence.Inside(s).StopFollowing()
	defer sequence.Inside(s).FollowAgain()
	if _, err := other.Drop(t.Context(), []byte("photos"), false); err != nil {
		t.Fatal(err)
	}
	var err error
	for range 10 {
		if _, err = s.Take(t.Context(), []byte("photos"), 1); err != nil {
			break
		}
	}
	if !errors.Is(err, sequence.ErrUnknown) {
		t.Errorf("a number of a dropped sequence: got %v, want ErrUnknown", err)
	}
	if lines := logs.FilterMessage("sequence row gone").All(); len(lines) != 0 {
		t.Errorf("the log says %v", lines)
	}
}

// A caller may have found a sequence in the moment before it was dropped.
func TestStepsOfASequenceThatWasDroppedAreNotMade(t *testing.T) {
	ctx := context.Background()
	p := newPlace(t).withTable(t, map[string]uint64{"photos": 0})
	s := p.open(t, steadySize(10))
	wantTaken(t, s, "photos", 1)
	settled(t, s, "photos")
	c := sequence.Inside(s).Cache("photos")
	if dropped, err := s.Drop(ctx, []byte("photos"), false); err != nil || dropped == nil {
		t.Fatal(dropped, err)
	}
	if err := sequence.Inside(s).Step(c, 3); !errors.Is(err, sequence.ErrUnknown) {
		t.Errorf("steps of it: got %v, want ErrUnknown", err)
	}
	mustCreate(t, s, sequence.CreateOptions{Name: "photos"})
	mustTake(t, s, "photos", 1)
	if dropped, err := s.Drop(ctx, []byte("photos"), false); err != nil || dropped == nil {
		t.Fatal(dropped, err)
	}
	s.BySequence() // this would find counts without a cache
}

// A caller that wants steps then looks again.
func TestStepsOfASequenceThatWasMadeAgainMeanwhile(t *testing.T) {
	p := newPlace(t).withTable(t, map[string]uint64{"photos": 0})
	s := p.open(t, steadySize(10))
	wantTaken(t, s, "photos", 1)
	settled(t, s, "photos")
	end, letGo := sequence.Inside(s).Hold()
	defer letGo()
	advanced := make(chan error, 1)
	go func() {
		_, err := s.Advance(context.Background(), []byte("photos"), 3)
		advanced <- err
	}()
	stacks := make([]byte, 1<<20)
	eventually(t, "it has found the sequence", func() bool {
		return strings.Contains(string(stacks[:runtime.Stack(stacks, true)]), ").stepCache(")
	})
	end("photos") // its row exists
	letGo()
	if err := <-advanced; err != nil {
		t.Error(err)
	}
	if n := sequence.Inside(s).Parts("photos"); n != 2 {
		t.Errorf("got %d caches of the sequence, want 2: with that of the steps", n)
	}
}

// A ticket table may be counted under the name of a sequence, which is gone then.
func TestCountsOfACacheWhoseNameIsGone(t *testing.T) {
	p := newPlace(t).withTable(t, map[string]uint64{"photos": 0})
	s := p.open(t)
	mustTake(t, s, "photos", 1)
	settled(t, s, "photos")
	sequence.Inside(s).ForgetScore("photos")
	all := s.BySequence()
	if len(all) != 1 || all[0].Name != stats.Others || all[0].Given != 1 {
		t.Errorf("got %+v, want one number given by others", all)
	}
}
