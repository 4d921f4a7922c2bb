package change_test

import (
	"strings"
	"testing"

	"seqproxy/sequence/change"
	"seqproxy/test/simulation"
)

// A sequence becomes one with ORDER while its home is taken out, which the coordinator alone does
// not reach. Who reaches nobody else would give lower numbers there than others have got.
func TestWhatBecomesTheHomeOfAnOrderSequenceIsNotTakenOutUnseen(t *testing.T) {
	e := (&scenario{name: "taken out", servers: 3, members: 3}).start(simulation.Faults{})
	near, far := e.NewProxy("near"), e.NewProxy("far")
	e.proxies = append(e.proxies, near, far)
	if err := far.Take(2, name, 1); err != nil {
		t.Fatal(err)
	}
	c := e.Change("takes it out", change.Change{Remove: address(2)}, 2)
	reach(t, c, "freeze", 0)
	orders := near.MakeOrdered(name, 2)
	if orders.Run(); orders.Err != nil {
		t.Fatal(orders.Err)
	}
	if err := far.Take(2, name, 1); err != nil {
		t.Fatal(err)
	}
	far.Actor.Cut[0], far.Actor.Cut[1], near.Actor.Cut[2] = true, true, true
	c.Run()
	if err := near.Read(); err != nil {
		t.Fatal(err)
	}
	_, _ = near.Take(0, name, 1), far.Take(2, name, 1)
	if len(e.Twice) > 0 || c.Err == nil || !strings.Contains(c.Err.Error(), "is the home of ORDER sequence") {
		t.Errorf("the change: %v; %v\n%s", c.Err, e.Twice, e.Steps())
	}
}
