package sequence_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"seqproxy/test/mysqltest"
)

// A foreign transaction and a reservation wait for each other, and the server ends the reservation:
// it is made again, and the caller gets its number.
func TestADeadlockWithAnotherTransactionIsTriedAgain(t *testing.T) {
	p := placeOn(t, mysqltest.Start(t)).withTable(t, map[string]uint64{"photos": 0})
	p.exec(t, "CREATE TABLE heavy (n INT PRIMARY KEY AUTO_INCREMENT, a INT)")
	p.exec(t, "CREATE TABLE side (n INT PRIMARY KEY, a INT)")
	p.exec(t, "INSERT INTO side VALUES (1, 0)")
	p.exec(t, "CREATE TRIGGER counted BEFORE UPDATE ON sequence FOR EACH ROW UPDATE side SET a = a + 1 WHERE n = 1")
	s := p.open(t, patience(time.Minute), steadySize(2))
	// information_schema.INNODB_TRX is not renewed if it is read more often than ten times a
	// second.
	tells := func(text string) bool {
		t.Helper()
		var kind, name, status string
		if err := p.db.QueryRow("SHOW ENGINE INNODB STATUS").Scan(&kind, &name, &status); err != nil {
			t.Fatal(err)
		}
		return strings.Contains(status, text)
	}
	last := mustTake(t, s, "photos", 1)
	// The reservation may give up its wait for the lock before the other one wants it, too: then
	// once more.
	for round, came := 0, false; !came; round++ {
		if round == 10 {
			t.Fatal("no deadlock came about")
		}
		settled(t, s, "photos")
		retries := s.Stats().Retries
		tx, err := p.db.Begin()
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = tx.Rollback() }()
		for _, text := range []string{
			// It has changed more, so it is not the one that the server ends.
			"INSERT INTO heavy (a) VALUES (1), (2), (3), (4), (5), (6), (7), (8), (9)",
			"UPDATE side SET a = a + 1 WHERE n = 1",
		} {
			if _, err := tx.Exec(text); err != nil {
				t.Fatalf("%s: %v", text, err)
			}
		}
		from, taken := p.id(t, "photos"), make(chan error, 1)
		go func() {
			var err error
			for last <= from && err == nil { // the cached numbers go first
				last, err = s.Take(context.Background(), []byte("photos"), 1)
			}
			taken <- err
		}()
		// A deadlock would have such a line, too, but is the end.
		eventually(t, "the reservation waits for the lock", func() bool { return tells("\nLOCK WAIT ") })
		if _, err := tx.Exec("UPDATE sequence SET id = id + 1000 WHERE name = 'photos'"); err != nil {
			t.Fatalf("the other transaction was ended: %v", err)
		}
		came = tells("LATEST DETECTED DEADLOCK")
		if err := tx.Commit(); err != nil {
			t.Fatal(err)
		}
		if err := <-taken; err != nil || last <= from+1000 {
			t.Fatalf("after a deadlock got %d, %v; want a number above %d", last, err, from+1000)
		}
		if came && s.Stats().Retries == retries {
			t.Error("the reservation that was ended was not made again")
		}
	}
}
