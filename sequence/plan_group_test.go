package sequence

import (
	"context"
	"testing"
	"time"

	"seqproxy/internal/mysqltest"
)

// A group is one member; where a row stands above its ceiling after a change, a window is opened there.
func TestAGroupBecomesOneOfTwoMembersAndLeaves(t *testing.T) {
	e := startEstate(t, 2, "photos")
	single := newPlace(t)
	link := mysqltest.NewLink(t, single.server.Addr())
	s, err := New(Options{
		Servers:     []ServerOptions{e.server()},
		CreateTable: true, DirectWriters: DirectWritersNo, CacheSize: 7, OutageCover: time.Nanosecond, Block: 20, AllocateTimeout: 10 * time.Second,
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx := context.Background()
	defer func() { _ = s.Close(ctx) }()
	o := ServerOptions{Addr: link.Addr(), User: "root", Database: single.schema}
	if err := o.setDefaults(); err != nil {
		t.Fatal(err)
	}
	s.opts.Servers = append(s.opts.Servers, o)
	if _, err := s.servers.addLocked(o); err != nil {
		t.Fatal(err)
	}
	h := newGivenEver()
	take := func() {
		t.Helper()
		for range 100 {
			h.add(t, "photos", mustTake(t, s, "photos", 1))
		}
	}
	take()
	for _, change := range []PlanChange{{Add: link.Addr()}, {Remove: e.Nodes[1].Addr()}, {Add: e.Nodes[0].Addr()}, {Remove: link.Addr()}} {
		p, err := s.ChangePlan(ctx, change)
		if err != nil {
			t.Fatalf("%+v: %v", change, err)
		}
		take()
		if change.Remove == e.Nodes[1].Addr() { // the group may have lost in a fail-over who was registered there
			for within, want := range map[time.Duration]bool{time.Hour: false, 0: true} {
				if got := s.servers.enlisted(make(map[*server]tenure), within); got != want {
					t.Errorf("%v after the group has left, all proxies are registered: %v, want %v", within, got, want)
				}
			}
		}
		t.Logf("plan %d: %s", p.Number, addresses(p.Members))
	}
	if h.high["photos"] < 500 {
		t.Errorf("500 numbers were given, the highest is %d", h.high["photos"])
	}
}
