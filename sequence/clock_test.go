package sequence_test

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"seqproxy/sequence"
	"seqproxy/sequence/define"
	"seqproxy/test/mysqltest"
)

// jump sets the clock that the proxies' next connections see, and ends their present ones:
// init_connect does that to an account without special rights. The clock then stands still.
func jump(t *testing.T, p place, account string, by time.Duration) {
	t.Helper()
	p.exec(t, fmt.Sprintf("SET GLOBAL init_connect = 'SET timestamp = UNIX_TIMESTAMP() + %d'", int64(by.Seconds())))
	p.endConnections(t, account)
}

// endConnections makes the server end all connections of an account. It may not have closed them
// yet.
func (p place) endConnections(t *testing.T, account string) {
	t.Helper()
	for _, id := range p.connections(t, account) {
		_, _ = p.db.Exec(fmt.Sprintf("KILL %d", id)) // it may have gone
	}
}

// connections returns the server's ids of an account's connections.
func (p place) connections(t *testing.T, account string) (ids []uint64) {
	t.Helper()
	rows, err := p.db.Query("SELECT ID FROM information_schema.PROCESSLIST WHERE USER = ?", account)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = rows.Close() }()
	for rows.Next() {
		var id uint64
		if err := rows.Scan(&id); err != nil {
			t.Fatal(err)
		}
		ids = append(ids, id)
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	return ids
}

// The sequence server's clock jumps by hours, to and fro, and two proxies see different times.
// Changes are obeyed all the same, numbers do not repeat, and a sequence begins again at a lower
// number only when no proxy has cached numbers of it.
func TestClocksThatJumpBreakNoPromise(t *testing.T) {
	server := mysqltest.Start(t)
	p := placeOn(t, server).withTable(t, nil)
	const account = "proxies"
	p.exec(t, "CREATE USER "+account+" IDENTIFIED BY ''")
	p.exec(t, "GRANT ALL ON "+define.Quote(p.schema)+".* TO "+account)
	as := func(o *sequence.Options) { o.Servers[0].User = account }
	a, b := p.open(t, as, steadySize(5), patience(30*time.Second)), p.open(t, as, steadySize(5), patience(30*time.Second))
	mustCreate(t, a, sequence.CreateOptions{Name: "photos"})
	mustCreate(t, a, sequence.CreateOptions{Name: "ordered", Order: true})
	h, last := newGivenEver(), uint64(0)
	take := func() {
		t.Helper()
		for range 12 {
			for _, s := range []*sequence.Sequences{a, b} {
				h.add(t, "photos", mustTake(t, s, "photos", 1))
				n := mustTake(t, s, "ordered", 1)
				if n <= last {
					t.Errorf("ordered: got %d after %d", n, last)
				}
				last = n
			}
		}
	}
	take()
	hours := []int{1, -1, 25, -3, 0}
	rand.Shuffle(len(hours), func(i, j int) { hours[i], hours[j] = hours[j], hours[i] })
	for round, hour := range hours {
		jump(t, p, account, time.Duration(hour)*time.Hour)
		take()
		cache := uint64(3 + round)
		within(t, time.Minute, "a change is made", func() bool {
			_, err := a.Alter(t.Context(), []byte("photos"), sequence.Alteration{Cache: &cache})
			return err == nil
		})
		within(t, time.Minute, "the other proxy obeys a change", func() bool {
			h.add(t, "photos", mustTake(t, b, "photos", 1))
			return sequence.Inside(b).Cache("photos").Exact() == cache
		})
		beginAgain(t, p.db, b, "photos", 1)
		within(t, time.Minute, "the other proxy has heard of it", func() bool { return registeredOn(t, p, a) && sequence.Inside(a).Cached("photos") == 0 })
		h = newGivenEver()
		take()
	}
	var version int64
	if err := p.db.QueryRow("SELECT MAX(`version`) FROM sequence_options").Scan(&version); err != nil || time.UnixMicro(version).Before(time.Now().Add(24*time.Hour)) {
		t.Errorf("the last version is of %v (%v): the clock did not jump", time.UnixMicro(version), err)
	}
	for i, s := range []*sequence.Sequences{a, b} {
		if got := rewinds(s); got != 0 {
			t.Errorf("proxy %d: got %d rewinds, want none", i, got)
		}
	}
}

// A sequence began again while the server's clock was hours ahead, and that is lost: an older
// backup is restored, or a replica without it takes over. When the sequence begins again once more,
// all proxies discard their numbers, although that is earlier by the clock.
func TestARestartAfterOneThatIsLostAndOfALaterTimeRepeatsNoNumber(t *testing.T) {
	server := mysqltest.Start(t)
	p := placeOn(t, server).withTable(t, map[string]uint64{"photos": 100})
	const account = "proxies"
	p.exec(t, "CREATE USER "+account+" IDENTIFIED BY ''")
	p.exec(t, "GRANT ALL ON "+define.Quote(p.schema)+".* TO "+account)
	as := func(o *sequence.Options) { o.Servers[0].User = account }
	a, b := p.open(t, as, steadySize(5), patience(30*time.Second)), p.open(t, as, steadySize(5), patience(30*time.Second))
	again := func() {
		t.Helper()
		beginAgain(t, p.db, a, "photos", 1)
		within(t, time.Minute, "the other proxy has heard of it", func() bool { return registeredOn(t, p, b) && sequence.Inside(b).Cached("photos") == 0 })
	}
	take := func() {
		t.Helper()
		h := newGivenEver()
		for range 12 {
			for _, s := range []*sequence.Sequences{a, b} {
				h.add(t, "photos", mustTake(t, s, "photos", 1))
			}
		}
	}
	mustTake(t, a, "photos", 1)
	mustTake(t, b, "photos", 1)
	again()
	take()
	p.exec(t, "CREATE TABLE old_options AS SELECT * FROM sequence_options")
	p.exec(t, "CREATE TABLE old_version AS SELECT * FROM sequence_version")
	p.exec(t, "CREATE TABLE old_rows AS SELECT * FROM sequence")

	jump(t, p, account, 3*time.Hour)
	again()
	take()
	jump(t, p, account, 0)
	p.exec(t, "UPDATE sequence JOIN old_rows AS o USING (name) SET sequence.id = o.id")
	p.exec(t, "REPLACE INTO sequence_options SELECT * FROM old_options")
	p.exec(t, "REPLACE INTO sequence_version SELECT * FROM old_version")
	within(t, time.Minute, "both have seen that", func() bool {
		var ahead int
		err := p.db.QueryRow("SELECT COUNT(*) FROM sequence_proxy WHERE version > (SELECT version FROM sequence_version)").Scan(&ahead)
		return err == nil && ahead == 0
	})
	take()
	for range 7 { // then its numbers are above all that the other one has had
		mustTake(t, b, "photos", 1)
	}
	settled(t, b, "photos")
	again()
	h := newGivenEver()
	for _, s := range []*sequence.Sequences{a, b} {
		for range 12 {
			h.add(t, "photos", mustTake(t, s, "photos", 1))
		}
	}
	if got := p.id(t, "photos"); got > 60 {
		t.Errorf("the row is at %d, want one of a sequence that has begun again, and of which 24 numbers were taken", got)
	}
}
