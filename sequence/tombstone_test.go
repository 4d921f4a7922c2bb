package sequence_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"seqproxy/sequence"
	"seqproxy/sequence/stats"
	"seqproxy/sequence/store"
)

// withOptions makes the options table beside the table, as a proxy would.
func (p place) withOptions(t testing.TB) {
	t.Helper()
	p.exec(t, fmt.Sprintf(store.CreateOptions, "`sequence_options`", "varchar(50)"))
}

// lockWait waits until a statement in the place's schema waits for a lock.
func (p place) lockWait(t testing.TB) {
	t.Helper()
	eventually(t, "a statement waits for a lock", func() bool {
		// the server renews this table only if nobody has read it for 100 ms
		time.Sleep(150 * time.Millisecond)
		var n int
		err := p.db.QueryRow("SELECT COUNT(*) FROM information_schema.INNODB_TRX WHERE trx_state = 'LOCK WAIT' AND trx_query LIKE ?",
			"%"+p.schema+"%").Scan(&n)
		return err == nil && n > 0
	})
}

// Another proxy may create the sequence, give numbers and drop it while a CREATE is under way.
func TestSequenceMadeAndDroppedElsewhereDuringACreateIsNotRepeated(t *testing.T) {
	p := newPlace(t).withAll(t, nil)
	s := p.open(t)
	tx, err := p.db.Begin()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = tx.Rollback() })
	other := func(text string) {
		t.Helper()
		if _, err := tx.Exec(text); err != nil {
			t.Fatalf("%s: %v", text, err)
		}
	}
	other("INSERT INTO sequence VALUES ('photos', 20)")
	made := make(chan sequence.Created, 1)
	go func() {
		defer close(made)
		made <- mustCreate(t, s, sequence.CreateOptions{Name: "photos", Start: 5})
	}()
	p.lockWait(t)
	other("INSERT INTO sequence_options (name, floor) VALUES ('photos', 20)")
	other("DELETE FROM sequence")
	if err := tx.Commit(); err != nil {
		t.Fatal(err)
	}
	if got := <-made; got.First != 21 || !got.Raised {
		t.Errorf("Create says %+v, want it raised to 21", got)
	}
	if got := mustTake(t, s, "photos", 1); got != 21 {
		t.Errorf("got %d, want 21: those below were given elsewhere", got)
	}
}

func TestNothingIsGivenBackBelowATombstone(t *testing.T) {
	p := newPlace(t).withTable(t, map[string]uint64{"photos": 0})
	a, b := p.open(t, steadySize(20)), p.open(t, steadySize(20))
	mustTake(t, a, "photos", 1)
	settled(t, a, "photos")
	if _, err := b.Drop(context.Background(), []byte("photos"), false); err != nil {
		t.Fatal(err)
	}
	if made := mustCreate(t, b, sequence.CreateOptions{Name: "photos", Start: 4}); made.First != 21 || !made.Raised {
		t.Fatalf("Create says %+v, want it raised to 21", made)
	}
	closeNow(t, a)
	if got := a.Stats().Unused[stats.UnusedReturned]; got != 0 {
		t.Errorf("%d numbers were given back to a sequence that is another one now, want 0", got)
	}
	if got := mustTake(t, b, "photos", 1); got != 21 {
		t.Errorf("got %d, want 21 as CREATE said", got)
	}
}

func TestTombstoneBeyondTheColumnLeavesNothing(t *testing.T) {
	p := newPlace(t)
	p.exec(t, "CREATE TABLE sequence (name varchar(50) PRIMARY KEY, id TINYINT UNSIGNED NOT NULL) ENGINE=InnoDB")
	p.withOptions(t)
	p.exec(t, "INSERT INTO sequence_options (name, floor) VALUES ('last', 255), ('beyond', 300), ('below', 254)")
	s := p.open(t)
	for _, name := range []string{"last", "beyond"} {
		if made, err := s.Create(context.Background(), sequence.CreateOptions{Name: name}); !errors.Is(err, sequence.ErrExhausted) {
			t.Errorf("%s: got %+v, %v; want ErrExhausted", name, made, err)
		}
	}
	if made := mustCreate(t, s, sequence.CreateOptions{Name: "below"}); made.First != 255 || !made.Raised {
		t.Errorf("got %+v, want it raised to 255", made)
	}
	if infos, err := s.List(context.Background()); err != nil || len(infos) != 1 {
		t.Errorf("List = %+v, %v; want what was made alone", infos, err)
	}
}

func TestADroppedSequenceIsNotSaidToHaveLostItsRow(t *testing.T) {
	p := newPlace(t).withTable(t, map[string]uint64{"photos": 0, "videos": 0})
	a, b := p.open(t, steadySize(20)), p.open(t, steadySize(20))
	for _, name := range []string{"photos", "videos"} {
		mustTake(t, a, name, 1)
		settled(t, a, name)
	}
	if _, err := b.Drop(context.Background(), []byte("photos"), false); err != nil {
		t.Fatal(err)
	}
	p.exec(t, "DELETE FROM sequence")
	for name, want := range map[string]uint64{"photos": 0, "videos": 20} {
		_, err := a.Take(context.Background(), []byte(name), 100)
		var said *sequence.NameError
		if !errors.As(err, &said) || !errors.Is(err, sequence.ErrUnknown) || said.Deleted != want {
			t.Errorf("%s: got %v (%+v), want ErrUnknown with Deleted %d", name, err, said, want)
		}
	}
}
