package link

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/zap"

	"seqproxy/internal/await"
)

// groupOf is the way to nodes that do not exist.
func groupOf(t *testing.T, relaxed bool, addrs ...string) *Link {
	t.Helper()
	o := Options{
		Name: strings.Join(addrs, ","), Login: NewLogin(Account{User: "x"}), MaxConns: 1, Relaxed: relaxed,
		Timing: new(Timing), Log: zap.NewNop(), Retries: new(atomic.Uint64),
	}
	for _, addr := range addrs {
		o.Nodes = append(o.Nodes, Address{Network: "tcp", Addr: addr})
	}
	to, err := New(o, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = to.Close() }) // nothing was opened
	return to
}

// The members of a cluster may disagree for a moment, and parts of it that were both made primary
// by hand for good.
func TestNodesThatAreNotOfOneMindAreNotWrittenTo(t *testing.T) {
	v := groupOf(t, false, "a:1", "b:1", "c:1")
	member := func(i int, configuration, index string) Standing {
		return Standing{
			node: v.Nodes()[i], place: strconv.Itoa(i), group: "Galera u", cluster: "Galera u, configuration " + configuration, index: index,
		}
	}
	donor := func(s Standing) Standing { s.donor = true; return s }
	away := Standing{node: v.Nodes()[2], Err: errors.New("it is off")}
	for _, test := range []struct {
		name string
		all  []Standing
		want string // the node, or words of the error
	}{
		{"all are one", []Standing{member(0, "5 of 3", "2"), member(1, "5 of 3", "0"), member(2, "5 of 3", "1")}, "a:1"},
		{"one knows of a newer configuration", []Standing{member(0, "5 of 3", "2"), member(1, "6 of 3", "0"), away}, "have not agreed yet"},
		{"two parts, each with a first place", []Standing{member(0, "5 of 2", "1"), member(1, "5 of 2", "0"), member(2, "5 of 2", "0")}, "b:1 and c:1 have not agreed yet"},
		{"a donor comes behind", []Standing{donor(member(0, "5 of 3", "2")), member(1, "5 of 3", "0"), member(2, "5 of 3", "1")}, "b:1"},
		{"only donors", []Standing{donor(member(0, "5 of 2", "1")), donor(member(1, "5 of 2", "0")), away}, "a:1"},
		{"another cluster", []Standing{member(0, "5 of 3", "2"), {node: v.Nodes()[1], place: "1", group: "Galera w", cluster: "Galera w, configuration 5 of 3"}, away}, "are no cluster"},
		{"no cluster", []Standing{member(0, "5 of 3", "2"), {node: v.Nodes()[1], place: "1"}, away}, "are no cluster"},
	} {
		now, err := v.chosen(test.all)
		switch {
		case err != nil:
			if !strings.Contains(err.Error(), test.want) {
				t.Errorf("%s: %v, want %q", test.name, err, test.want)
			}
			// What is over in a moment is waited for.
			if passing := strings.Contains(test.want, "yet"); passing == errors.Is(err, ErrUnfit) {
				t.Errorf("%s: %v is an UnfitError: %v", test.name, err, !passing)
			}
		case now.Addr != test.want:
			t.Errorf("%s: %s was chosen, want %q", test.name, now.Addr, test.want)
		}
	}
}

func TestNodesThatAreMoreThanHalfNeedNotWaitForTheOthers(t *testing.T) {
	in := Standing{cluster: "Galera u, configuration 5 of 3", index: "0"}
	other := Standing{cluster: "Galera u, configuration 6 of 3", index: "1"}
	single := Standing{}
	for _, test := range []struct {
		heard []Standing
		n     int
		want  bool
	}{
		{nil, 3, false},
		{[]Standing{in}, 3, false},
		{[]Standing{in, other}, 3, false},
		{[]Standing{in, in}, 3, true},
		{[]Standing{in, other, in}, 3, true},
		{[]Standing{in, in}, 4, false},
		{[]Standing{single, single}, 3, false},
		{[]Standing{in}, 1, true},
	} {
		if got := isMajority(test.heard, test.n); got != test.want {
			t.Errorf("%d of %d: %v, want %v", len(test.heard), test.n, got, test.want)
		}
	}
}

// Whoever chooses the node of a group may be asking a server that hangs. The others who want the
// same wait for their own time limits.
func TestNobodyWaitsForTheChoiceOfANodeLongerThanItsOwnTime(t *testing.T) {
	v := groupOf(t, false, "127.0.0.1:1", "127.0.0.1:2")
	v.nodes.choose.MustAcquire()
	defer v.nodes.choose.Release()
	ctx, stop := context.WithTimeoutCause(t.Context(), 50*time.Millisecond, await.ErrPatience)
	defer stop()
	answer := make(chan error, 1)
	go func() { _, err := v.reach(ctx); answer <- err }()
	select {
	case err := <-answer:
		if !errors.Is(err, await.ErrPatience) {
			t.Errorf("got %v, want that the time is over", err)
		}
	case <-time.After(30 * time.Second):
		t.Error("it waits for ever")
	}
}
