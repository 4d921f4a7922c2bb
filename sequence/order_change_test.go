package sequence_test

import (
	"context"
	"testing"
	"time"

	"seqproxy/sequence"
)

// wantOrdered checks whether a sequence has ORDER.
func wantOrdered(t *testing.T, s *sequence.Sequences, name string, want bool) {
	t.Helper()
	if def, _, err := s.Describe(t.Context(), []byte(name)); err != nil || def.Order != want {
		t.Errorf("sequence %s: got ORDER %v, %v; want %v", name, def.Order, err, want)
	}
}

// The client of an ORDER leaves before it is confirmed. Later statements about the sequence may
// rest on it, and stay.
func TestORDERThatIsNotConfirmedIsNotTakenBackFromUnderALaterStatement(t *testing.T) {
	p := newPlace(t).withTable(t, map[string]uint64{"photos": 0, "users": 0})
	a, b := p.open(t), p.open(t)
	mustTake(t, a, "photos", 1)
	p.exec(t, "INSERT INTO sequence_proxy (id, host, since, heartbeat, version) VALUES ('mute', 'web7, process 12', UTC_TIMESTAMP(), UTC_TIMESTAMP() + INTERVAL 1 HOUR, 3)")
	for _, name := range []string{"photos", "users"} {
		ctx, leave := context.WithCancel(t.Context())
		defer leave()
		done := make(chan error)
		go func() {
			_, err := a.Alter(ctx, []byte(name), sequence.Alteration{Order: ref(true)})
			done <- err
		}()
		eventually(t, "the change is made, and waits", func() bool {
			def, _, err := b.Describe(t.Context(), []byte(name))
			return err == nil && def.Order
		})
		if name == "photos" {
			mustAlter(t, b, name, sequence.Alteration{Comment: ref("in order")})
		}
		leave()
		if err := <-done; err == nil {
			t.Error("ORDER is confirmed though a proxy is mute")
		}
		wantOrdered(t, b, name, name == "photos")
	}
}

// The error about a sequence whose ORDER is not confirmed says what it is.
func TestWhatIsLeftOfAnORDERThatIsNotConfirmed(t *testing.T) {
	for _, servers := range []int{1, 2} {
		f := newFleet(t, servers)
		a, b := f.open(t, patience(30*time.Second)), f.open(t, patience(30*time.Second))
		say := func(change sequence.Alteration) {
			t.Helper()
			if err := sequence.Inside(b).Change(t.Context(), "photos", change); err != nil {
				t.Fatal(err)
			}
		}
		drop := func() {
			if _, err := b.Drop(t.Context(), []byte("photos"), false); err != nil {
				t.Fatal(err)
			}
		}
		for _, c := range []struct {
			before    bool // it had ORDER
			meanwhile func()
			want      string
			after     bool // it has ORDER
		}{
			{false, func() {}, "is no ORDER sequence", false},
			{true, func() {}, "is an ORDER sequence, as before", true},
			{false, func() { say(sequence.Alteration{Cache: ref(uint64(5))}) }, "is an ORDER sequence, as it was changed again meanwhile", true},
			{true, func() { say(sequence.Alteration{Cache: ref(uint64(6))}) }, "is an ORDER sequence, as before", true},
			{false, func() { say(sequence.Alteration{Order: ref(true)}) }, "is an ORDER sequence, as it was changed again meanwhile", true},
			{true, func() { say(sequence.Alteration{Order: ref(false)}) }, "is no ORDER sequence any more, as it was changed again meanwhile", false},
			{false, func() { say(sequence.Alteration{Order: ref(false)}) }, "is no ORDER sequence", false},
			{true, drop, "was dropped meanwhile", false},
			{false, func() { closeNow(t, a) }, "may be an ORDER sequence", true},
		} {
			mustCreate(t, b, sequence.CreateOptions{Name: "photos", OrReplace: true})
			say(sequence.Alteration{Order: &c.before})
			changed, err := sequence.Inside(a).AlterOnly(t.Context(), "photos", sequence.Alteration{Order: ref(true)})
			if err != nil {
				t.Fatal(err)
			}
			c.meanwhile()
			if got := sequence.Inside(a).TakeBackOrder(t.Context(), &changed); got != c.want {
				t.Errorf("%d servers, it was an ORDER sequence: %v; got %q, want %q", servers, c.before, got, c.want)
			}
			if c.want != "was dropped meanwhile" {
				wantOrdered(t, b, "photos", c.after)
			}
			wantText(t, &sequence.CachedError{Sequence: "photos", Order: c.want}, `sequence "photos" `+c.want+": ORDER is not confirmed, because proxies may hold numbers of it: ")
		}
	}
}
