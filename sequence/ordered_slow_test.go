package sequence_test

import (
	"testing"
	"time"

	"seqproxy/sequence"
)

// The home of an ORDER sequence is slow, because others wait for the disk, or for the row. No other
// server can replace it, so it is not given up as early as one of several that can serve.
func TestTheHomeOfAnOrderSequenceMayBeSlow(t *testing.T) {
	f := newFleet(t, 2)
	s := f.open(t, blocks(10), patience(4*time.Second))
	mustCreate(t, s, sequence.CreateOptions{Name: "photos", Order: true})
	mustTake(t, s, "photos", 1)
	home := sequence.Inside(s).Home("photos")
	for i, v := range sequence.Inside(s).Members() {
		if v != *home {
			continue
		}
		tx, err := f[i].db.Begin()
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = tx.Rollback() }()
		if _, err := tx.Exec("UPDATE sequence SET id = id WHERE name = 'photos'"); err != nil {
			t.Fatal(err)
		}
		time.AfterFunc(home.TryTime()+300*time.Millisecond, func() { _ = tx.Rollback() })
	}
	if _, err := s.Take(t.Context(), []byte("photos"), 1); err != nil {
		t.Error(err)
	}
}
