package change_test

import (
	"errors"
	"testing"

	"seqproxy/sequence/change"
	"seqproxy/test/simulation"
)

// A proxy that reaches one member alone holds numbers of it. That one is taken out, and then
// another one, so that a single server is left, on which the sequence begins again: that server has
// to know of the proxy.
func TestWhoHoldsNumbersOfAMemberThatWasTakenOutIsKnown(t *testing.T) {
	for _, c := range []struct {
		what   string
		remove func(e *estate, c *simulation.Actor)
	}{
		{"it was there", func(_ *estate, c *simulation.Actor) { c.Run() }},
		{"it went away when all had accepted", func(e *estate, c *simulation.Actor) {
			reach(t, c, "accept", 1)
			c.Resume()
			e.Off(2)
			c.Run()
		}},
		{"it was away", func(e *estate, c *simulation.Actor) {
			e.Off(2)
			c.Run()
		}},
	} {
		run := func(t *testing.T, faults simulation.Faults) (e *estate, again error) {
			e = (&scenario{name: "taken out", servers: 3, members: 3}).start(faults)
			near, far := e.NewProxy("near"), e.NewProxy("far")
			e.proxies = append(e.proxies, near, far)
			if err := near.Take(2, name, 1); err != nil { // far may go as far
				t.Fatal(err)
			}
			takes := far.Taker(name, 3, 1)
			takes.Cut[0], takes.Cut[1] = true, true
			for takes.Next != "give" {
				if !takes.Resume() {
					t.Fatalf("it reserves nothing\n%s", e.Steps())
				}
			}
			first, second := e.Change("takes it out", change.Change{Remove: address(2), Force: true}), e.Change("takes out another", change.Change{Remove: address(1)})
			c.remove(e, first)
			second.Run()
			if err := errors.Join(first.Err, second.Err, near.Read()); err != nil {
				t.Fatal(err)
			}
			restarts := near.Restart(name, 1)
			restarts.Run()
			takes.Run()
			return e, restarts.Err
		}
		t.Run(c.what, func(t *testing.T) {
			if e, err := run(t, simulation.Faults{}); len(e.Twice) > 0 || !simulation.IsRefused(err) {
				t.Errorf("RESTART ... FORCE: %v; given twice: %v\n%s", err, e.Twice, e.Steps())
			}
			if e, err := run(t, simulation.Faults{ForgetsHolders: true}); len(e.Twice) == 0 {
				t.Errorf("not found where members do not hear who is registered: %v", err)
			}
		})
	}
}
