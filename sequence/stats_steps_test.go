package sequence_test

import (
	"errors"
	"testing"
	"time"

	"seqproxy/sequence"
	"seqproxy/test/mysqltest"
)

// A sequence that applications advance by several numbers at once has the same counters as one that
// is used number by number.
func TestStatsOfASequenceThatIsAdvancedBySteps(t *testing.T) {
	p := placeOn(t, mysqltest.Start(t)).withTable(t, nil)
	s := p.open(t, steadySize(10), patience(30*time.Second))
	mustCreate(t, s, sequence.CreateOptions{Name: "photos", Max: 1_000_000})
	advance := func(n uint64) {
		t.Helper()
		for range 4 {
			if _, err := s.Advance(t.Context(), []byte("photos"), n); err != nil {
				t.Fatal(err)
			}
		}
		eventually(t, "the reservations end", func() bool { return !sequence.Inside(s).Reserving("photos") })
	}
	// used compares how much was reserved with the row.
	used := func(what string, percent float64) {
		t.Helper()
		if want := float64(p.id(t, "photos")) / 10_000; percent < want*0.999 || percent > want*1.001 {
			t.Errorf("%s: %v %% are used, want %v", what, percent, want)
		}
	}
	check := func() {
		t.Helper()
		st := statsOf(t, s, "photos")
		if st.Cached == 0 || st.Size < 10 || st.CachedFor == sequence.Never || st.CachedFor == 0 || st.Skew == sequence.Never || st.Skew == 0 || st.ToEnd == sequence.Never {
			t.Errorf("got %+v, want the cached numbers, and times", st)
		}
		used("the metrics", 100*st.Used)
		all, err := s.List(t.Context())
		if err != nil || len(all) != 1 {
			t.Fatalf("got %+v, %v, want one", all, err)
		}
		i := all[0]
		if i.Cached != st.Cached || i.Rate == 0 || i.Cache < 10 || i.CachedFor == sequence.Never || i.CachedFor == 0 || i.Skew == sequence.Never || i.Skew == 0 || i.ToEnd == sequence.Never || i.Reserved.IsZero() {
			t.Errorf("got %+v, want %d numbers in memory, and times", i, st.Cached)
		}
		used("the list", i.Used)
	}
	advance(3)
	check()
	advance(7)
	check()
	advance(1)
	check()

	at := p.id(t, "photos")
	p.kill(t)
	all, err := s.List(t.Context())
	if !errors.As(err, new(*sequence.UnavailableError)) || len(all) != 1 {
		t.Fatalf("without the server: got %+v, %v, want what is known here", all, err)
	}
	if i, st := all[0], statsOf(t, s, "photos"); i.Cached != st.Cached || i.CachedFor == sequence.Never || i.Used < float64(at)/10_000*0.999 {
		t.Errorf("without the server: got %+v, want %d numbers in memory and how long they last", i, st.Cached)
	}
}
