package sequence_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"seqproxy/sequence"
	"seqproxy/test/history"
)

// Callers of two proxies take numbers of an ORDER sequence all the time, while the primary of its
// home is replaced: in order, after a kill, and while it lives on, cut off with one of the proxies.
// A caller that asks after another was answered has the higher number.
func TestOrderedNumbersAreLinearizableOverFailOvers(t *testing.T) {
	e := startEstate(t, 3)
	patient := func(o *sequence.Options) { o.AllocateTimeout = 5 * time.Second }
	all := &given{}
	a, b := e.join(t, "a", all, patient), e.join(t, "b", all, patient)
	mustCreate(t, a.Sequences, sequence.CreateOptions{Name: "photos", Order: true})

	var h history.History
	ctx, stop := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	defer wg.Wait()
	defer stop()
	recordTakes(ctx, &wg, &h, []*sequence.Sequences{a.Sequences, b.Sequences}, 4)
	goesOn := func(when string, by ...*member) {
		t.Helper()
		for _, m := range by {
			before := m.Stats().Given
			within(t, 2*time.Minute, "numbers "+when, func() bool { return m.Stats().Given >= before+100 })
		}
	}
	goesOn("before", a, b)

	e.Nodes[0].Exec(t, "SET GLOBAL read_only = 1")
	e.Promote(t, 1)
	e.Follow(t, 2, 1)
	e.Follow(t, 0, 1)
	goesOn("after a switch in order", a, b)

	if err := e.Nodes[1].Kill(); err != nil {
		t.Fatal(err)
	}
	e.Promote(t, 2)
	e.Follow(t, 0, 2)
	goesOn("after the primary was killed", a, b)
	if err := e.Nodes[1].Restart(); err != nil {
		t.Fatal(err)
	}
	e.Follow(t, 1, 2)
	goesOn("with the old primary as a replica", a, b)

	a.cut(0, 1) // it sees only the old primary, and the other one only the others
	b.cut(2)
	e.Promote(t, 0)
	e.Follow(t, 1, 0)
	goesOn("while the old primary lives on", b)
	e.Nodes[2].Exec(t, "SET GLOBAL read_only = 1")
	e.Follow(t, 2, 0)
	for _, link := range append(a.links, b.links...) {
		link.Mend()
	}
	goesOn("at last", a, b)

	stop()
	wg.Wait()
	numbers, failed := h.Count()
	t.Logf("%d calls got numbers, %d failed", numbers, failed)
	if err := h.Check(); err != nil {
		t.Error(err)
	}
}
