package sequence_test

import (
	"context"
	"database/sql"
	"errors"
	"testing"
	"time"

	"seqproxy/sequence"
	"seqproxy/sequence/define"
	"seqproxy/test/mysqltest"
)

// The machine of a proxy vanishes, or its network, in the middle of a transaction that has locked a
// sequence: the server ends that after a silence, and the others continue.
func TestARowThatAVanishedProxyHasLockedIsFreeAgain(t *testing.T) {
	p := newPlace(t).withTable(t, map[string]uint64{"photos": 0})
	link := mysqltest.NewLink(t, p.server.Addr())
	vanishes := p.open(t, steadySize(10), func(o *sequence.Options) { o.Servers[0].Addr = link.Addr() })
	v := sequence.Inside(vanishes).First()
	sequence.Inside(vanishes).ChangeTiming(func(t *sequence.Timing) { t.Silence = time.Second }) // before its first connection
	h := newGivenEver()
	h.add(t, "photos", mustTake(t, vanishes, "photos", 1))
	settled(t, vanishes, "photos")

	locked, mended, ended := make(chan error, 1), make(chan struct{}), make(chan error, 1)
	back := errors.New("it is back")
	go func() {
		ended <- v.TransactOnce(context.Background(), func(tx *sql.Tx) error {
			var id uint64
			locked <- tx.QueryRow("SELECT `id` FROM " + v.Table.Sequence + " WHERE `name` = 'photos' FOR UPDATE").Scan(&id)
			<-mended
			return back
		})
	}()
	if err := <-locked; err != nil {
		t.Fatal(err)
	}
	link.Silence()
	other := p.open(t, steadySize(10), patience(time.Minute))
	h.add(t, "photos", mustTake(t, other, "photos", 1))
	link.Mend()
	close(mended)
	if err := <-ended; !errors.Is(err, back) {
		t.Error(err)
	}
}

// The server ends every connection that reserves after a silence, and none sooner than by its own
// setting.
func TestTheServerEndsConnectionsThatAreSilent(t *testing.T) {
	server := mysqltest.Start(t)
	for _, c := range []struct{ timeout, want int }{{28800, 90}, {70, 70}} {
		p := placeOn(t, server).withTable(t, nil)
		p.exec(t, "SET GLOBAL wait_timeout = ?", c.timeout)
		conn, err := sequence.Inside(p.open(t)).First().Conn(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		var got int
		if err := conn.QueryRowContext(t.Context(), "SELECT @@SESSION.wait_timeout").Scan(&got); err != nil || got != c.want {
			t.Errorf("where the server waits for %d seconds: got %d, %v, want %d", c.timeout, got, err, c.want)
		}
		if err := conn.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// An idle connection that the server has ended is not used again: no reservation of unknown outcome
// results, and no caller gets an error.
func TestAConnectionThatTheServerHasEndedMeanwhileIsNotUsed(t *testing.T) {
	p := newPlace(t).withTable(t, nil)
	const account = "proxies"
	p.exec(t, "CREATE USER "+account+" IDENTIFIED BY ''")
	defer p.exec(t, "DROP USER "+account)
	p.exec(t, "GRANT ALL ON "+define.Quote(p.schema)+".* TO "+account)
	s := p.open(t, func(o *sequence.Options) { o.Servers[0].User = account })
	mustCreate(t, s, sequence.CreateOptions{Name: "photos", Order: true}) // each number is a reservation
	// nobody else asks from here on, who would notice
	sequence.Inside(s).StopFollowing()
	defer sequence.Inside(s).FollowAgain()
	for want := uint64(1); want <= 20; want++ {
		if got := mustTake(t, s, "photos", 1); got != want {
			t.Fatalf("got %d, want %d", got, want)
		}
		p.endConnections(t, account)
		within(t, 10*time.Second, "the server has ended the proxy's connections", func() bool { return len(p.connections(t, account)) == 0 })
	}
}
