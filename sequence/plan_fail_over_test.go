package sequence

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"seqproxy/internal/mysqltest"
)

// groupAndSingle is a group of three, in use, and a server beside it that is no member yet.
type groupAndSingle struct {
	*estate
	link *mysqltest.Link // to the one beside it
	h    *givenEver
}

func newGroupAndSingle(t *testing.T) *groupAndSingle {
	t.Helper()
	return &groupAndSingle{estate: startEstate(t, 3, "photos"), h: newGivenEver()}
}

// open makes a proxy that uses the group, and knows the way to the other one.
func (e *groupAndSingle) open(t *testing.T) *Sequences {
	t.Helper()
	single := newPlace(t)
	if e.link == nil {
		e.link = mysqltest.NewLink(t, single.server.Addr())
	}
	server := ServerOptions{User: "root", Database: e.schema}
	for _, n := range e.Nodes {
		server.Nodes = append(server.Nodes, Node{Addr: n.Addr()})
	}
	s := openWith(t, Options{
		Servers: []ServerOptions{server}, CreateTable: true, DirectWriters: DirectWritersNo, CacheSize: 7, OutageCover: time.Nanosecond, Block: 20,
		AllocateTimeout: 30 * time.Second,
	})
	o := ServerOptions{Addr: e.link.Addr(), User: "root", Database: single.schema}
	if err := o.setDefaults(); err != nil {
		t.Fatal(err)
	}
	s.opts.Servers = append(s.opts.Servers, o)
	if _, err := s.servers.addLocked(o); err != nil {
		t.Fatal(err)
	}
	return s
}

func (e *groupAndSingle) take(t *testing.T, s *Sequences, n int) {
	t.Helper()
	takeAll(t, s, e.h, "photos", n)
}

// failOver kills the primary and makes the second node the new one, which the third follows: that has nothing which the second one lacks.
func (e *groupAndSingle) failOver(t *testing.T) {
	t.Helper()
	if err := e.Nodes[0].Kill(); err != nil {
		t.Error(err)
		return
	}
	e.Promote(t, 1)
	e.Follow(t, 2, 1)
}

// The primary of a member is killed in the middle of a change, once nobody gives numbers, once it is decided, and at its end. The change is made, or can be finished or aborted, and no number is given twice.
func TestAChangeThatRunsIntoAFailOver(t *testing.T) {
	for _, step := range []string{planFrozen, planDecided, PlanInForce} {
		t.Run(strings.ReplaceAll(step, " ", "_"), func(t *testing.T) {
			e := newGroupAndSingle(t)
			s := e.open(t)
			e.take(t, s, 100)
			var done atomic.Bool
			s.planHook = func(at, address string) error {
				if at == step && strings.Contains(address, e.Nodes[0].Addr()) && done.CompareAndSwap(false, true) {
					e.Cut(t, 2)
					e.CatchUp(t, 1, 0)
					e.failOver(t)
				}
				return nil
			}
			change := PlanChange{Add: e.link.Addr()}
			_, err := s.ChangePlan(t.Context(), change)
			if !done.Load() {
				t.Fatalf("the step never came: %v", err)
			}
			t.Logf("the change: %v", err)
			within(t, 2*time.Minute, "the change is made", func() bool {
				now, err := s.plan(t.Context())
				if err == nil && len(now.Members) == 2 && s.noChangeOpen(t.Context()) {
					return true
				}
				if _, err = s.ResumePlan(t.Context()); err != nil {
					_, err = s.ChangePlan(t.Context(), change)
				}
				t.Logf("again: %v", err)
				return false
			})
			e.take(t, s, 200)
		})
	}
}

// noChangeOpen reports whether no change is in progress.
func (s *Sequences) noChangeOpen(ctx context.Context) bool {
	none := false
	_, err := s.planned(ctx, func(r *planRun) error {
		_, open, err := r.current()
		none = open == nil
		return err
	})
	return err == nil && none
}

// What a fail-over would lose of a change is not begun: a proposal that no replica shows is taken back, and the new primary knows nothing of it.
func TestAProposalThatAFailOverWouldLoseIsNoChange(t *testing.T) {
	e := newGroupAndSingle(t)
	s := e.open(t)
	e.take(t, s, 100)
	e.Cut(t, 2)
	e.Cut(t, 1)
	_, err := s.ChangePlan(t.Context(), PlanChange{Add: e.link.Addr()})
	wantText(t, err, "it is seen on 0 other nodes")
	e.take(t, s, 50) // nothing is frozen
	e.failOver(t)
	e.take(t, s, 100)
	if !s.noChangeOpen(t.Context()) {
		t.Error("the new primary knows a change that was not begun")
	}
	within(t, 2*time.Minute, "the change is made", func() bool {
		_, err := s.ChangePlan(t.Context(), PlanChange{Add: e.link.Addr()})
		if err != nil {
			t.Log(err)
		}
		return err == nil
	})
	e.take(t, s, 200)
}
