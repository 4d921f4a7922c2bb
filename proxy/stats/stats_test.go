package stats

import (
	"fmt"
	"net"
	"reflect"
	"sync"
	"testing"
	"time"

	"seqproxy/backend"
	"seqproxy/protocol"
)

// shard is one without connections.
func shard(t testing.TB) *backend.Shard {
	shards, err := backend.New(backend.Options{Default: "s", Shards: []backend.ShardOptions{{Name: "s", Nodes: []string{"127.0.0.1:1"}}}})
	if err != nil {
		t.Fatal(err)
	}
	return shards.Routes().Default
}

func TestSettlingChangesNoSum(t *testing.T) {
	var session, server sync.Mutex
	var counters Counters
	var totals Totals
	s := NewTally(&session, 0)
	of, report := s.shard(shard(t)), s.Report
	of.relay, of.rewrite, of.received, of.sent = 5, 6, 7, 8
	report.kinds[KindNextval], report.durations[3], report.durationSum, report.Received, report.Sent = 1, 2, time.Second, 3, 4
	report.Statements, report.unsettled = settleEvery, settleEvery-1
	sum := func() Stats {
		g := counters.Gather()
		g.Sum = totals.Clone()
		g.Add(report, SessionIdle, nil)
		return g.Done()
	}
	before := sum()
	s.Settle(&server, &totals)
	if report.kinds[KindNextval] == 0 {
		t.Error("settled with too few statements")
	}
	report.unsettled++
	s.Settle(&server, &totals)
	if report.kinds[KindNextval] != 0 || report.durations[3] != 0 || report.unsettled != 0 || report.shards[0].relay != 0 || report.Statements != settleEvery {
		t.Errorf("settled: got %+v, want nothing to remain", *report)
	}
	if after := sum(); !reflect.DeepEqual(before, after) {
		t.Errorf("got\n%+v, want\n%+v", after, before)
	}
	if len(before.Statements) == 0 || before.Sent != 4 || before.Shards[0].Sent != 8 || before.Durations.Count() != 2 {
		t.Errorf("before: got %+v", before)
	}
}

func TestAStatementCountsForTheLastOfWhatItIs(t *testing.T) {
	s, c := NewTally(new(sync.Mutex), 0), shard(t)
	for _, step := range []struct {
		name string
		do   func()
		err  error
		want Kind
		n    uint32
	}{
		{"no statement", func() { s.Becomes(KindRelay) }, nil, NoStatement, 0},
		{"a PREPARE", func() { s.Kind = Prepare }, nil, Prepare, 0},
		{"a PREPARE that is refused", func() { s.Kind = Prepare; s.Refused() }, nil, KindRefused, 1},
		{"answered here", func() { s.Kind = KindHere }, nil, KindHere, 1},
		{"numbers, and then less", func() { s.Kind = KindHere; s.Becomes(KindNextval); s.Becomes(KindLastInsertID) }, nil, KindNextval, 1},
		{"sent", func() { s.Kind = KindHere; s.Becomes(KindRelay); s.sentTo = c }, nil, KindRelay, 1},
		{"sent as the session ends", func() { s.Kind = KindRelay; s.sentTo = c }, net.ErrClosed, KindRelay, 1},
		{"not sent as the session ends", func() { s.Kind = KindHere }, net.ErrClosed, KindHere, 0},
	} {
		s.Begins(0)
		step.do()
		s.Last = NoStatement
		if s.Handled(step.err); s.Last != step.want || s.Round != step.n || s.Kind != NoStatement {
			t.Errorf("%s: got %d, %d statements, want %d and %d", step.name, s.Last, s.Round, step.want, step.n)
		}
	}
}

func TestAShardThatIsDoneWithIsKeptInTheTotals(t *testing.T) {
	var server sync.Mutex
	var totals Totals
	s, c := NewTally(new(sync.Mutex), 0), shard(t)
	of := s.shard(c)
	of.relay, of.newRelay, of.sent, of.newSent = 1, 2, 3, 4
	s.Drop(func(*backend.Shard) bool { return false }, &server, &totals)
	if s.Report.CountedShards() != 1 || len(totals.shards) > 0 {
		t.Errorf("in use: got %d shards, totals of %d", s.Report.CountedShards(), len(totals.shards))
	}
	s.Drop(func(*backend.Shard) bool { return true }, &server, &totals)
	if got := totals.shards["s"]; s.Report.CountedShards() != 0 || got == nil || *got != (shardTotals{relay: 3, sent: 7}) {
		t.Errorf("done with: got %d shards, totals %+v", s.Report.CountedShards(), got)
	}
}

func TestUsersAreBounded(t *testing.T) {
	users := make(map[string]uint64)
	for i := range MaxUsers + 5 {
		users[fmt.Sprintf("u%04d", i)] = 1
	}
	users["u0002"] = 7
	users["zz"] = 9
	list := boundedUsers(users)
	if len(list) != MaxUsers+1 || list[MaxUsers] != (Count{OtherUsers, 6}) || list[2] != (Count{"u0002", 7}) || list[MaxUsers-1] != (Count{"zz", 9}) {
		t.Errorf("got %d, %v ... %v", len(list), list[:3], list[len(list)-2:])
	}
	users[OtherUsers] = 8
	if list := boundedUsers(users); len(list) != MaxUsers || list[0] != (Count{OtherUsers, 8 + 7}) {
		t.Errorf("with a user of that name: got %d, %v", len(list), list[:3])
	}
}

// BenchmarkCounting measures the counts of a round of one statement.
func BenchmarkCounting(b *testing.B) {
	client, server := pipe(b), pipe(b)
	var mu sync.Mutex
	var counters Counters
	s, of := NewTally(&mu, Clock()), shard(b)
	b.ReportAllocs()
	for b.Loop() {
		s.Begins(Clock())
		s.Kind = KindHere
		s.Becomes(KindRelay)
		s.sentTo = of
		s.Handled(nil)
		to := s.shard(of)
		to.newReceived += server.TakeReceived()
		sent, _ := server.TakeSent()
		to.newSent += sent
		mu.Lock()
		s.ReportLocked(Clock(), client, Standing{}, &counters.Overheads)
		mu.Unlock()
	}
}

// pipe is an idle connection.
func pipe(b *testing.B) *protocol.Conn {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	defer l.Close()
	nc, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		b.Fatal(err)
	}
	c, err := protocol.NewConn(nc, 0, 0)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { c.Close() })
	return c
}
