package sequence_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"seqproxy/internal/await"
	"seqproxy/sequence"
)

// A proxy registers with the primary, and takes numbers, once the replica lags for good. With the
// primary its entry is lost, and it comes to the new one later than a statement that needs proof
// that no proxy has cached numbers.
func TestThatAProxyIsRegisteredIsNotForgottenInAFailOver(t *testing.T) {
	e := newLossy(t, func(o *sequence.Options) { o.OrderWithoutReplica = true })
	late := e.join(t, "late", &given{}, e.change...)
	for _, name := range []string{"photos", "users"} {
		mustTake(t, late.Sequences, name, 1)
		settled(t, late.Sequences, name)
	}
	late.cut(0, 1)
	fresh := e.failOver(t)
	registered := func() bool {
		var n int
		err := e.pools[1].QueryRow("SELECT COUNT(*) FROM sequence_proxy WHERE id = ?", sequence.Inside(late.Sequences).First().Registry.ID).Scan(&n)
		return err == nil && n == 1
	}
	if registered() {
		t.Fatal("the new primary knows of the proxy")
	}
	sequence.Inside(fresh.Sequences).ChangeTiming(func(t *sequence.Timing) { t.Tenure = time.Hour }) // a moment ago
	for name, a := range map[string]sequence.Alteration{"photos": down(1), "users": {Order: new(true)}} {
		within(t, 2*time.Minute, name+" is not changed, as other proxies may hold numbers", func() bool {
			ctx, stop := context.WithTimeoutCause(t.Context(), 2*time.Second, await.ErrPatience)
			defer stop()
			_, err := fresh.Alter(ctx, []byte(name), a)
			if err == nil {
				t.Fatalf("%s is changed while a live proxy has cached numbers, want an error", name)
			}
			t.Log(err)
			return strings.Contains(err.Error(), "all proxies register again after a fail-over")
		})
	}
	late.links[1].Mend()
	within(t, 2*time.Minute, "the proxy registers again", registered)
	sequence.Inside(fresh.Sequences).ChangeTiming(func(t *sequence.Timing) { t.Tenure = 0 }) // it is long ago
	wantRefused(t, fresh.Sequences, "photos", sequence.Inside(late.Sequences).ID(), sequence.Inside(e.a.Sequences).ID(), sequence.Inside(e.b.Sequences).ID())
	beginAgain(t, e.pools[1], fresh.Sequences, "photos", 1)
	within(t, time.Minute, "the other proxy has heard of it", func() bool { return sequence.Inside(late.Sequences).Cached("photos") == 0 })
	h := newGivenEver()
	for range 60 {
		h.add(t, "photos", mustTake(t, fresh.Sequences, "photos", 1))
	}
	for range 5 {
		h.add(t, "photos", mustTake(t, late.Sequences, "photos", 1))
	}
}

// Nobody waits where heartbeats have long gone to the same node, and a node that has taken over
// counts as known only since then.
func TestTheTimeInWhichAPrimaryIsKnownBeginsWithIt(t *testing.T) {
	e := startEstate(t, 2, "photos")
	a := e.join(t, "a", &given{}, patience(time.Minute))
	a.take(t, "a", "photos", 1)
	knows := func() bool { return sequence.Inside(a.Sequences).Enlisted() }
	within(t, time.Minute, "the primary is known for long", knows)
	e.CatchUp(t, 1, 0)
	before := time.Now()
	if err := e.Nodes[0].Kill(); err != nil {
		t.Fatal(err)
	}
	e.Promote(t, 1)
	v := sequence.Inside(a.Sequences).First()
	within(t, 2*time.Minute, "signs of life are given to the new one", func() bool {
		node, _ := v.HeartbeatsTo()
		return node == v.Nodes()[1]
	})
	if _, since := v.HeartbeatsTo(); since.Before(before) {
		t.Errorf("the new primary is known since %v, and began after %v", since, before)
	}
	within(t, time.Minute, "the new one is known for long", knows)
	alone := newPlace(t)
	alone.withTable(t, nil)
	one := alone.open(t)
	sequence.Inside(one).ChangeTiming(func(t *sequence.Timing) { t.Tenure = time.Hour })
	if !sequence.Inside(one).Enlisted() {
		t.Error("a single server is known from the beginning")
	}
}
