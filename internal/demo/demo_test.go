package demo

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"seqproxy/test/mysqltest"
)

func TestMain(m *testing.M) { mysqltest.Main(m) }

func TestKeysThatComeTwiceAreSeen(t *testing.T) {
	var s seen
	for _, key := range []uint64{0, 1, 63, 64, 65535, 65536, 1 << 40, 1<<64 - 1} {
		if !s.add(key) {
			t.Errorf("%d is new, and was taken for seen", key)
		}
	}
	for _, key := range []uint64{0, 64, 65536, 1<<64 - 1} {
		if s.add(key) {
			t.Errorf("%d came twice and was not counted", key)
		}
	}
	if all, twice := s.counts(); all != 12 || twice != 4 {
		t.Errorf("got %d keys, %d twice, want 12 and 4", all, twice)
	}
}

// A server that gives the same numbers again plays a proxy that breaks its promise.
func TestTheDemoFailsWhenAKeyComesTwice(t *testing.T) {
	s := mysqltest.Shared(t)
	s.OnMariaDB(t, "sequences that cycle")
	s.Exec(t, "CREATE DATABASE demo", "CREATE SEQUENCE demo.s MAXVALUE 7 CYCLE")
	t.Cleanup(func() { s.Exec(t, "DROP DATABASE demo") })
	var out bytes.Buffer
	err := Run(t.Context(), Options{
		Proxy: s.Addr(), Sequence: "demo.s", Cached: func() uint64 { return 7 }, Out: &out, For: 2 * time.Second, Every: time.Hour,
		Servers: []Server{{}},
	})
	if !errors.Is(err, ErrTwice) {
		t.Errorf("got %v, want ErrTwice\n%s", err, out.String())
	}
	if strings.Contains(out.String(), " 0 duplicates") {
		t.Errorf("got\n%swant the duplicates in it", out.String())
	}
}

func TestServersAreKilledInTurnsAndAllRunAtTheEnd(t *testing.T) {
	servers := []Server{{Server: mysqltest.Start(t).Server, Holds: "one"}, {Server: mysqltest.Start(t).Server, Holds: "other"}}
	k := &killer{servers: servers, states: make([]serverState, len(servers))}
	ctx, end := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- k.run(ctx, 20*time.Millisecond, 10*time.Millisecond) }()
	kills := func() string {
		states := k.look()
		return fmt.Sprint(states[0].kills, states[1].kills)
	}
	for deadline := time.Now().Add(2 * time.Minute); k.look()[0].kills < 2; time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("killed: got %s, want the first one twice", kills())
		}
	}
	end() // mostly in the middle of the third kill
	if err := <-ended; err != nil {
		t.Fatal(err)
	}
	for i, state := range k.look() {
		if !servers[i].Running() || !state.since.IsZero() {
			t.Errorf("server %d does not run at the end", i)
		}
	}
}

func TestTheScreenSaysWhatCounts(t *testing.T) {
	now := time.Now()
	v := view{
		since: 34 * time.Second, now: now, rate: 2000, keys: 68000, twice: 3, keyErrors: 1, rows: 500, whileDown: 20, cached: 1_000_000,
		failure: errors.New("something"), servers: []serverState{{kills: 2, since: now.Add(-4 * time.Second)}, {kills: 1}},
	}
	server := mysqltest.Shared(t).Server
	page := v.page([]Server{{server, "sequences"}, {server, "shard"}})
	for _, want := range []string{"34s", "2000", "68000", "duplicates               3", "1000000", "500  ", "KILLED 4s ago", "killed  2 times", "20 failed while", "last error: something"} {
		if !strings.Contains(page, want) {
			t.Errorf("the screen lacks %q:\n%s", want, page)
		}
	}
	for _, want := range []string{"34s", "3 duplicates", "1 errors", "500 seconds left", "a server is down"} {
		if line := v.line(); !strings.Contains(line, want) {
			t.Errorf("the line lacks %q: %s", want, line)
		}
	}
}
