package sequence_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"maps"
	"testing"
	"time"

	"seqproxy/sequence"
)

// madeAgain returns two proxies of a place. The second one has numbers of the sequence Photos, and
// has not seen that the first one dropped it and made it again in other letters.
func madeAgain(t *testing.T, again string) (p place, a, b *sequence.Sequences) {
	t.Helper()
	p = newPlace(t).withTable(t, map[string]uint64{"Photos": 0})
	a, b = p.open(t, steadySize(20)), p.open(t, steadySize(20))
	mustTake(t, b, "Photos", 1)
	settled(t, b, "Photos")
	sequence.Inside(b).StopFollowing()
	if _, err := a.Drop(context.Background(), []byte("Photos"), false); err != nil {
		t.Fatal(err)
	}
	mustCreate(t, a, sequence.CreateOptions{Name: again})
	return p, a, b
}

// A proxy sees at once that a sequence was dropped and made again in other letters, which the
// server takes for the same name. Its cached numbers belong to the other one.
func TestASequenceThatWasMadeAgainInOtherLettersEndsWhatIsHeld(t *testing.T) {
	for name, again := range map[string]string{"case": "photos", "an accent": "Phótos"} {
		t.Run(name, func(t *testing.T) {
			p, a, b := madeAgain(t, again)
			sequence.Inside(b).FollowAgain()
			mustAlter(t, a, again, sequence.Alteration{Order: ref(true)})
			last := mustTake(t, a, again, 1)
			if got := mustTake(t, b, "Photos", 1); got <= last {
				t.Errorf("an ORDER sequence: got %d after %d", got, last)
			}
			mustAlter(t, a, again, sequence.Alteration{Order: ref(false)})
			mustTake(t, b, "PHOTOS", 1)

			// Once more, as a kind that gives its numbers again.
			sequence.Inside(b).StopFollowing()
			if _, err := a.Drop(context.Background(), []byte(again), false); err != nil {
				t.Fatal(err)
			}
			mustCreate(t, a, sequence.CreateOptions{Name: "PHOTOS"})
			sequence.Inside(b).FollowAgain()
			beginAgain(t, p.db, a, "PHOTOS", 1)
			eventually(t, "the other proxy has heard of it", func() bool { return sequence.Inside(b).Epoch("PHOTOS") == sequence.Inside(a).Epoch("PHOTOS") })
			var book ledger
			for range 60 {
				book.add(t, "a", mustTake(t, a, "Photos", 1), 1)
				book.add(t, "b", mustTake(t, b, "Photos", 1), 1)
			}
			for n := range book.given {
				if n > 200 {
					t.Fatalf("got %d after a restart with 1", n)
				}
			}
		})
	}
}

// A proxy that looks the new spelling up before it sees the change has both in memory. That the
// changed one is known here does not mean that there is no other.
func TestASequenceOfWhichBothSpellingsAreInMemoryEndsTheOldOne(t *testing.T) {
	_, a, b := madeAgain(t, "photos")
	mustTake(t, b, "photos", 1)
	sequence.Inside(b).FollowAgain()
	mustAlter(t, a, "photos", sequence.Alteration{Order: ref(true)})
	last := mustTake(t, a, "photos", 1)
	if got := mustTake(t, b, "Photos", 1); got <= last {
		t.Errorf("an ORDER sequence: got %d after %d", got, last)
	}
}

// A row that was read before a change arrived makes no cache: the change would miss that cache.
func TestNoCacheIsMadeOfARowThatWasFoundBeforeAChange(t *testing.T) {
	p := newPlace(t).withTable(t, map[string]uint64{"photos": 0, "users": 0})
	s := p.open(t)
	mustTake(t, s, "users", 1)
	meet, err := sequence.Inside(s).FindForLater(t.Context(), "photos")
	if err != nil {
		t.Fatal(err)
	}
	mustAlter(t, s, "photos", sequence.Alteration{Order: ref(true)})
	if err := meet(); !errors.Is(err, sequence.ErrOutdated) {
		t.Errorf("got %v, want ErrOutdated", err)
	}
}

// Thousands of rows are gone, as when a server was away: few statements ask about them.
func TestNamesWithoutARowAreAskedAboutTogether(t *testing.T) {
	p := newPlace(t).withTable(t, map[string]uint64{"Photos": 0, "exact": 0})
	s := p.open(t)
	mustTake(t, s, "exact", 1)
	names := []string{"photos", "exact"}
	for i := range 5000 {
		names = append(names, fmt.Sprint("gone", i))
	}
	ctx, stop := context.WithTimeout(t.Context(), time.Minute)
	defer stop()
	asked := questions(t, p.db)
	others, err := sequence.Inside(s).First().Respelled(ctx, names)
	if err != nil || !maps.Equal(others, map[string]string{"photos": "Photos"}) {
		t.Errorf("got %v, %v", others, err)
	}
	if n := questions(t, p.db) - asked; n > 1000 {
		t.Errorf("5002 names took %d statements", n)
	}
}

// questions counts the statements of all connections to the server.
func questions(t testing.TB, on *sql.DB) (n int) {
	t.Helper()
	var name string
	if err := on.QueryRow("SHOW GLOBAL STATUS LIKE 'Questions'").Scan(&name, &n); err != nil {
		t.Fatal(err)
	}
	return n
}
