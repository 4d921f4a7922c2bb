package sequence

import (
	"testing"

	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"
)

// TestARowThatWentBackOnOneOfSeveralServersIsToldOfThatServer lowers the row on one member and takes numbers until it was asked again.
func TestARowThatWentBackOnOneOfSeveralServersIsToldOfThatServer(t *testing.T) {
	for name, divide := range map[string]func(*Options){"blocks": blocks(10), "steps": inSteps, "ORDER": blocks(10)} {
		t.Run(name, func(t *testing.T) {
			f := newFleet(t, 2)
			core, logs := observer.New(zap.ErrorLevel)
			s := f.open(t, divide, steadySize(10), func(o *Options) { o.Logger = zap.New(core) })
			if _, err := s.Create(t.Context(), CreateOptions{Name: "photos", Order: name == "ORDER"}); err != nil {
				t.Fatal(err)
			}
			last := uint64(0)
			take := func() {
				t.Helper()
				n := mustTake(t, s, "photos", 1)
				if n <= last {
					t.Fatalf("got %d after %d although the row had gone back", n, last)
				}
				last = n
			}
			back := -1
			for range 60 {
				take()
			}
			settled(t, s, "photos")
			for i, id := range f.ids(t, "photos") {
				if id > 20 && back < 0 {
					back = i
				}
			}
			before := f[back].id(t, "photos")
			lowered := before - 10 // as a backup of a moment ago has it; an even distance, so that steps keep their residue
			f[back].exec(t, "UPDATE sequence SET id = ? WHERE name = 'photos'", lowered)
			eventually(t, "the server is asked again", func() bool {
				take()
				return f[back].id(t, "photos") > before
			})
			for range 100 {
				take()
			}
			settled(t, s, "photos")

			if got := s.Stats().Rewinds; got != 1 {
				t.Errorf("got %d rewinds counted, want 1", got)
			}
			for i, st := range s.ServerStats() {
				want := uint64(0)
				if i == back {
					want = 1
				}
				if st.Server != f[i].server.Addr() || st.Rewinds != want || st.Durations[ReservedRewind].Count() != want {
					t.Errorf("server %d: got %s with %d rewinds and %d such attempts, want %d", i, st.Server, st.Rewinds, st.Durations[ReservedRewind].Count(), want)
				}
			}
			told := logs.FilterMessage("sequence row went back").All()
			if len(told) != 1 {
				t.Fatalf("got %d lines about it, want 1: %+v", len(told), logs.All())
			}
			if got := told[0].ContextMap(); got["server"] != f[back].server.Addr() || got["sequence"] != "photos" || got["gave"] != lowered {
				t.Errorf("the line: got %v, want it to name %s and %d", got, f[back].server.Addr(), lowered)
			}
		})
	}
}

// TestNumbersGivenBackToOneOfSeveralServersAreNoRewind gives numbers back, and takes them again.
func TestNumbersGivenBackToOneOfSeveralServersAreNoRewind(t *testing.T) {
	f := newFleet(t, 2)
	s := f.open(t, blocks(10), steadySize(10))
	createOn(t, s, "photos")
	for i := range 30 {
		mustTake(t, s, "photos", 3)
		if i%5 == 4 {
			settled(t, s, "photos")
			if err := s.Flush(t.Context(), []byte("photos")); err != nil {
				t.Fatal(err)
			}
		}
	}
	if got := s.Stats(); got.Rewinds != 0 || got.Unused[UnusedReturned] == 0 {
		t.Errorf("got %d rewinds and %d numbers given back, want none and some", got.Rewinds, got.Unused[UnusedReturned])
	}
}
