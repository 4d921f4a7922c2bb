package sequence_test

import (
	"errors"
	"testing"

	"seqproxy/sequence"
	"seqproxy/sequence/kind"
)

// A blank after a name means nothing where the collation pads blanks, so it leads neither to a
// second counter of the same keys, nor to a row that was made by hand.
func TestABlankBehindTheNameOfAKindLeadsToTheSameSequence(t *testing.T) {
	k, err := kind.NewRotate(1, 2, false)
	if err != nil {
		t.Fatal(err)
	}
	p := newPlace(t).withTable(t, nil)
	s := p.open(t)
	mustCreate(t, s, sequence.CreateOptions{Name: "photos", Kind: k})
	p.exec(t, "INSERT INTO sequence VALUES ('photos', 0)")
	given := make(map[uint64]string)
	for range 12 {
		for _, name := range []string{"photos", "photos ", "PHOTOS  "} {
			key := mustTake(t, s, name, 1)
			if before, twice := given[key]; twice {
				t.Fatalf("%q gives %d, which %q gave", name, key, before)
			}
			given[key] = name
		}
	}
	for _, o := range []sequence.CreateOptions{{Name: "photos "}, {Name: "photos ", Kind: k}, {Name: "photos ", IfNotExists: true}, {Name: "others "}} {
		if _, err := s.Create(t.Context(), o); !errors.Is(err, sequence.ErrBadOption) {
			t.Errorf("%+v: got %v, want that the name is refused", o, err)
		}
	}
}

// The row of a plain sequence that was made by hand beside one with a kind is not used when that is
// dropped: it would give the same keys.
func TestARowBesideAKindThatWasDroppedGivesNothing(t *testing.T) {
	k, err := kind.NewRotate(1, 2, false)
	if err != nil {
		t.Fatal(err)
	}
	p := newPlace(t).withTable(t, nil)
	s, other := p.open(t), p.open(t)
	mustCreate(t, s, sequence.CreateOptions{Name: "photos", Kind: k})
	mustTake(t, s, "photos", 1)
	p.exec(t, "INSERT INTO sequence VALUES ('photos', 0)")
	if _, err := s.Drop(t.Context(), []byte("photos"), false); err != nil {
		t.Fatal(err)
	}
	for _, s := range []*sequence.Sequences{s, other} {
		if n, err := s.Take(t.Context(), []byte("photos"), 1); !errors.Is(err, sequence.ErrUnknown) {
			t.Errorf("got %d, %v, want that the sequence is unknown", n, err)
		}
	}
	p.exec(t, "DELETE FROM sequence WHERE name = 'photos'")
	refused := new(sequence.KindError)
	if _, err := s.Create(t.Context(), sequence.CreateOptions{Name: "photos"}); !errors.As(err, &refused) {
		t.Errorf("a plain one of that name: got %v, want that it is refused", err)
	}
	mustCreate(t, s, sequence.CreateOptions{Name: "photos", Kind: k})
	if key := mustTake(t, s, "photos", 1); key == 10 {
		t.Errorf("made again it gives %d again", key)
	}
}
