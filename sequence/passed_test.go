package sequence_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"seqproxy/sequence"
)

// passOver are the statements that make lower numbers void in all caches. Each goes on above n.
func passOver(ctx context.Context, s *sequence.Sequences) map[string]func(n uint64) error {
	return map[string]func(n uint64) error{
		"set": func(n uint64) error {
			_, _, err := s.SetValue(ctx, []byte("set"), n, true)
			return err
		},
		"repaired": func(n uint64) error {
			_, err := s.Raise(ctx, []byte("repaired"), n)
			return err
		},
		"restarted": func(n uint64) error {
			next := n + 1
			_, err := s.Alter(ctx, []byte("restarted"), sequence.Alteration{Restart: &next})
			return err
		},
	}
}

// passed is an estate where two proxies have cached numbers of the sequences, up to 2000.
type passed struct {
	*estate
	a, b *member
}

func startPassed(t *testing.T, nodes int) *passed {
	t.Helper()
	e := startEstate(t, nodes, "set", "repaired", "restarted")
	p := &passed{estate: e}
	p.b = e.join(t, "b", &given{}, steadySize(1000), patience(30*time.Second))
	p.a = e.join(t, "a", &given{}, steadySize(1000), patience(time.Minute))
	for _, m := range []*member{p.b, p.a} {
		for name := range passOver(t.Context(), m.Sequences) {
			mustTake(t, m.Sequences, name, 1)
			settled(t, m.Sequences, name)
		}
	}
	for i := 1; i < nodes; i++ {
		e.CatchUp(t, i, 0)
	}
	return p
}

// failOver makes a node the primary, and kills the old one.
func (p *passed) failOver(t *testing.T, to int) {
	t.Helper()
	if err := p.Nodes[0].Kill(); err != nil {
		t.Fatal(err)
	}
	p.Promote(t, to)
}

// wantAbove waits until b has cached nothing up to n, without taking any of it, and takes.
func (p *passed) wantAbove(t *testing.T, name string, n uint64) {
	t.Helper()
	c := sequence.Inside(p.b.Sequences).Cache(name)
	within(t, 2*time.Minute, "the other proxy gives up what it holds of "+name, func() bool {
		next := c.Next()
		return next == 0 || next > n
	})
	if got := mustTake(t, p.b.Sequences, name, 1); got <= n {
		t.Errorf("%s: the other proxy gives %d, want a number above %d", name, got, n)
	}
}

// A sequence is moved past numbers that another proxy has cached and that a client has used. Before
// that proxy asks again, the primary is lost, and its replica has not received the move: the
// statement was an error then, or the proxy learns of the move from the replica.
func TestNumbersThatAreVoidAreVoidAfterAFailOver(t *testing.T) {
	p := startPassed(t, 2)
	p.Cut(t, 1)
	p.b.cut(0) // it asks no server just now, and no proxy expects its confirmation
	p.Nodes[0].Exec(t, "UPDATE app.sequence_proxy SET heartbeat = heartbeat - INTERVAL 1 MINUTE WHERE id = '"+sequence.Inside(p.b.Sequences).First().Registry.ID+"'")
	above := map[string]uint64{}
	heard := true
	for name, pass := range passOver(t.Context(), p.a.Sequences) {
		above[name] = 5000
		for range 2 { // the second time nothing is left to be moved
			err := pass(above[name])
			if err == nil {
				heard = false // no node can have it: the fail-over below shows it
				break
			}
			wantText(t, err, "fail-over")
			if name == "restarted" {
				above[name]++ // it is refused where it stands
			}
		}
	}
	if heard {
		p.Mend(t, 1)
		for name, pass := range passOver(t.Context(), p.a.Sequences) {
			eventually(t, name+" is moved for good", func() bool {
				above[name]++
				err := pass(above[name])
				if err != nil {
					t.Log(name, err)
				}
				return err == nil
			})
		}
	}
	p.failOver(t, 1)
	for name, n := range above {
		p.wantAbove(t, name, n)
	}
}

// Where no replica can confirm, it is enough that all proxies have discarded their numbers.
func TestNumbersThatAllProxiesGaveUpNeedNoReplica(t *testing.T) {
	p := startPassed(t, 2)
	p.Cut(t, 1)
	for name, pass := range passOver(t.Context(), p.a.Sequences) {
		p.b.links[0].Delay(100 * time.Millisecond)
		if err := pass(5000); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if next := sequence.Inside(p.b.Sequences).Cache(name).Next(); next != 0 && next <= 5000 {
			t.Errorf("%s: the other proxy gives %d next, and a fail-over would leave it so", name, next)
		}
	}
	p.failOver(t, 1)
	for name := range passOver(t.Context(), p.a.Sequences) {
		p.wantAbove(t, name, 5000)
	}
}

// Of three nodes the one that lags may be promoted.
func TestNumbersThatAreVoidAreVoidWhicheverNodeIsPromoted(t *testing.T) {
	p := startPassed(t, 3)
	p.Cut(t, 2)
	p.b.cut(0)
	// When the other replica has shown it for long.
	back := time.AfterFunc(2*time.Second, p.b.links[0].Mend)
	defer back.Stop()
	if err := passOver(t.Context(), p.a.Sequences)["set"](5000); err != nil {
		t.Fatal(err)
	}
	p.failOver(t, 2)
	p.Follow(t, 1, 2)
	p.wantAbove(t, "set", 5000)
}

// The node that took over is asked whether the others have what was written, and has not received
// it itself.
func TestThatNumbersAreVoidIsNotSaidByANodeThatDoesNotKnow(t *testing.T) {
	p := startPassed(t, 2)
	if err := passOver(t.Context(), p.a.Sequences)["set"](3000); err != nil {
		t.Fatal(err)
	}
	p.CatchUp(t, 1, 0)
	p.Cut(t, 1)
	changed, ok, err := sequence.Inside(p.a.Sequences).SetValueOnly(t.Context(), "set", 5000)
	if err != nil || !ok {
		t.Fatal(ok, err)
	}
	p.failOver(t, 1)
	// As after a later change there, which all obey.
	p.Nodes[1].Exec(t, "UPDATE app.sequence_version SET version = version + 1000000000000")
	within(t, 2*time.Minute, "the new primary says what it lacks", func() bool {
		err := sequence.Inside(p.a.Sequences).PassedForGood(t.Context(), &changed)
		if err == nil {
			t.Fatal("it is said that all hear of it")
		}
		t.Log(err)
		return strings.Contains(err.Error(), "has taken over")
	})
}

// A replica of three is gone, and a caller has less time than the search for what it knows would
// take.
func TestNumbersAreMovedPastInLessTimeThanAReplicaIsWaitedFor(t *testing.T) {
	p := startPassed(t, 3)
	p.Cut(t, 2)
	p.a.Tune(sequence.Tuning{AllocateTimeout: sequence.Inside(p.a.Sequences).Timing().Shown * 9 / 10})
	n := uint64(5000)
	eventually(t, "a sequence is moved", func() bool {
		n += 1000
		err := passOver(t.Context(), p.a.Sequences)["set"](n)
		if err != nil {
			t.Log(err)
		}
		return err == nil
	})
}
