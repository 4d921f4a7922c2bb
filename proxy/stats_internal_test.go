package proxy

import (
	"fmt"
	"net"
	"reflect"
	"testing"
	"time"

	"seqproxy/backend"
	"seqproxy/protocol"
)

func TestSettlingChangesNoSum(t *testing.T) {
	shards, err := backend.New(backend.Options{Default: "s", Shards: []backend.ShardOptions{{Name: "s", Nodes: []string{"127.0.0.1:1"}}}})
	if err != nil {
		t.Fatal(err)
	}
	srv := New(Options{Shards: shards})
	s := &session{srv: srv}
	s.tally = tally{mu: &s.mu, told: new(told)}
	srv.sessions = map[uint32]*session{1: s}
	of := s.tally.shard(shards.Routes().Default())
	of.relay, of.rewrite, of.received, of.sent = 5, 6, 7, 8
	s.tally.told.kinds[KindNextval], s.tally.told.durations[3], s.tally.told.durationSum, s.tally.told.received, s.tally.told.sent = 1, 2, time.Second, 3, 4
	s.tally.told.statements, s.tally.told.unsettled = settleEvery, settleEvery-1
	before := srv.Stats()
	s.tally.settle(&s.srv.mu, &s.srv.totals)
	if s.tally.told.kinds[KindNextval] == 0 {
		t.Error("settled though it is not much yet")
	}
	s.tally.told.unsettled++
	s.tally.settle(&s.srv.mu, &s.srv.totals)
	if s.tally.told.kinds[KindNextval] != 0 || s.tally.told.durations[3] != 0 || s.tally.told.unsettled != 0 || s.tally.told.shards[0].relay != 0 || s.tally.told.statements != settleEvery {
		t.Errorf("settled: left %+v", *s.tally.told)
	}
	if after := srv.Stats(); !reflect.DeepEqual(before, after) {
		t.Errorf("got\n%+v, want\n%+v", after, before)
	}
	if len(before.Statements) == 0 || before.Sent != 4 || before.Shards[0].Sent != 8 || before.Durations.Count() != 2 {
		t.Errorf("before: got %+v", before)
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

// BenchmarkCounting is what the counts cost of a round of one statement.
func BenchmarkCounting(b *testing.B) {
	shards, err := backend.New(backend.Options{Default: "s", Shards: []backend.ShardOptions{{Name: "s", Nodes: []string{"127.0.0.1:1"}}}})
	if err != nil {
		b.Fatal(err)
	}
	client, server := pipe(b), pipe(b)
	s := &session{srv: New(Options{Shards: shards}), client: client}
	s.tally = tally{mu: &s.mu, told: new(told)}
	of := shards.Routes().Default()
	b.ReportAllocs()
	for b.Loop() {
		s.tally.begins(clock())
		s.tally.kind = KindOwn
		s.tally.becomes(KindRelay)
		s.tally.sentTo = of
		s.handled(nil)
		to := s.tally.shard(of)
		to.newReceived += server.TakeReceived()
		sent, _ := server.TakeSent()
		to.newSent += sent
		s.mu.Lock()
		s.tellLocked(clock())
		s.mu.Unlock()
	}
}

// pipe is a connection that nobody uses.
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
