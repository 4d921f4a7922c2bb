package sequence_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"seqproxy/sequence"
	"seqproxy/sequence/stats"
	"seqproxy/sequence/store"
)

// taken is the result of a call on a goroutine of its own.
type taken struct {
	first uint64
	err   error
}

// takeLater takes n numbers of "photos" in the background.
func takeLater(ctx context.Context, s *sequence.Sequences, n uint64) <-chan taken {
	done := make(chan taken, 1)
	go func() {
		first, err := s.Take(ctx, []byte("photos"), n)
		done <- taken{first, err}
	}()
	synctest.Wait()
	return done
}

// wantNumbers fails the test unless the calls get these numbers, in this order.
func wantNumbers(t *testing.T, calls []<-chan taken, want ...uint64) {
	t.Helper()
	for i, call := range calls {
		if got := <-call; got.err != nil || got.first != want[i] {
			t.Errorf("call %d: got %d, %v; want %d", i, got.first, got.err, want[i])
		}
	}
}

func TestOrderedNumbersGoToThoseWhoWaitedWhenTheUPDATEWasSent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sc := &script{hold: make(chan struct{}), order: true}
		s, _ := scripted(t, sc)
		defer closeNow(t, s)
		ctx := context.Background()
		gone, leave := context.WithCancelCause(ctx)
		first := takeLater(gone, s, 5)
		second := []<-chan taken{takeLater(ctx, s, 1), takeLater(ctx, s, 3), takeLater(ctx, s, 1)}

		// The first one leaves while its numbers are on their way. They become a gap.
		leave(errors.New("the client has gone"))
		if got := <-first; got.err == nil {
			t.Errorf("the caller that has gone got %d", got.first)
		}
		sc.hold <- struct{}{}
		synctest.Wait()
		if got := s.Stats(); got.Unused[stats.UnusedCallerGone] != 5 || got.Cached != 0 {
			t.Errorf("got %+v, want the 5 numbers skipped, and none held", got)
		}
		last := takeLater(ctx, s, 2)
		sc.hold <- struct{}{}
		wantNumbers(t, second, 6, 7, 10)
		sc.hold <- struct{}{}
		wantNumbers(t, []<-chan taken{last}, 11)
		synctest.Wait()
		if got, want := sc.calls(), []uint64{5, 5, 2}; !slices.Equal(got, want) {
			t.Errorf("got reservations of %v, want %v: one for all who wait, and no more than they want", got, want)
		}
		if got := s.Stats(); got.Given != 7 || got.Cached != 0 || got.Waits != 0 {
			t.Errorf("got %+v, want 7 given, and nothing held", got)
		}
	})
}

func TestUnknownOutcomeIsAnErrorToItsBatchOnly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		lost := fmt.Errorf("%w: unexpected EOF", store.OutcomeUnknown)
		sc := &script{hold: make(chan struct{}), order: true, failures: []error{errors.New("refused"), lost}}
		s, _ := scripted(t, sc)
		defer closeNow(t, s)
		ctx := context.Background()
		batch := []<-chan taken{takeLater(ctx, s, 1)}
		// Refused: nothing was reserved, so it is tried again with all who wait now.
		sc.hold <- struct{}{}
		batch = append(batch, takeLater(ctx, s, 1))
		time.Sleep(sequence.UsualTiming().LastBackoff)
		synctest.Wait()
		later := takeLater(ctx, s, 4)
		sc.hold <- struct{}{} // lost
		for i, call := range batch {
			got := <-call
			var away *sequence.UnavailableError
			if !errors.As(got.err, &away) || !errors.Is(got.err, store.OutcomeUnknown) || away.Server != "seq.example:3306" {
				t.Errorf("call %d of the batch: got %d, %v; want an error that names the server", i, got.first, got.err)
			}
			wantText(t, got.err, `sequence "photos"`, "home of this ORDER sequence", "seq.example:3306", "connection lost", "unexpected EOF")
		}
		sc.hold <- struct{}{}
		wantNumbers(t, []<-chan taken{later}, 1)
		if got, want := sc.calls(), []uint64{1, 2, 4}; !slices.Equal(got, want) {
			t.Errorf("got reservations of %v, want %v", got, want)
		}

		// An outage becomes an error after the allocate timeout, and ends by itself.
		sc.set(func() { sc.down = errors.New("connection refused"); close(sc.hold) })
		begin := time.Now()
		got := <-takeLater(ctx, s, 1)
		wantText(t, got.err, `sequence "photos"`, "home of this ORDER sequence", "seq.example:3306", "waited 3s", "connection refused")
		if waited := time.Since(begin); waited != 3*time.Second {
			t.Errorf("that took %v, want 3s", waited)
		}
		sc.set(func() { sc.down = nil })
		wantNumbers(t, []<-chan taken{takeLater(ctx, s, 1)}, 5)
	})
}

// At the end of the sequence the callers that came first are served, and the others get an error.
func TestOrderSequenceEnds(t *testing.T) {
	p := newPlace(t).withTable(t, nil)
	s := p.open(t)
	mustCreate(t, s, sequence.CreateOptions{Name: "photos", Order: true, Increment: 10, Start: 5, Max: 100})
	var wg sync.WaitGroup
	var mu sync.Mutex
	var given []uint64
	refused := 0
	for range 25 {
		wg.Go(func() {
			n, err := s.Take(context.Background(), []byte("photos"), 1)
			mu.Lock()
			defer mu.Unlock()
			switch {
			case err == nil:
				given = append(given, n)
			case errors.Is(err, sequence.ErrExhausted):
				refused++
			default:
				t.Errorf("got %v, want a number or ErrExhausted", err)
			}
		})
	}
	wg.Wait()
	slices.Sort(given)
	if want := []uint64{5, 15, 25, 35, 45, 55, 65, 75, 85, 95}; !slices.Equal(given, want) || refused != 15 {
		t.Errorf("got %v and %d refusals, want %v and 15", given, refused, want)
	}
	mustAlter(t, s, "photos", sequence.Alteration{Cycle: ref(true)})
	// It begins again. A reservation on its way when a proxy learns of a change is made once more,
	// so that may be at 11.
	first := mustTake(t, s, "photos", 1)
	if first != 1 && first != 11 {
		t.Errorf("got %d, want 1 or 11", first)
	}
	if n := mustTake(t, s, "photos", 1); n != first+10 && n != first+20 {
		t.Errorf("got %d after %d", n, first)
	}
}

// Other proxies give no cached numbers after ALTER has returned, nor those that they are about to
// get.
func TestALTERToORDERTakesHeldNumbersAwayEverywhere(t *testing.T) {
	p := newPlace(t).withTable(t, map[string]uint64{"photos": 0})
	a, b := p.open(t, steadySize(100)), p.open(t, steadySize(100))
	ctx := context.Background()
	order := func(on bool) sequence.Alteration { return sequence.Alteration{Order: &on} }
	for round := range 3 {
		stop := make(chan struct{})
		var wg sync.WaitGroup
		for range 2 * (round % 2) {
			wg.Go(func() { // its reservations are under way all the time
				for {
					select {
					case <-stop:
						return
					default:
						mustTake(t, b, "photos", 7)
					}
				}
			})
		}
		mustTake(t, b, "photos", 1)
		mustTake(t, a, "photos", 1)
		mustAlter(t, a, "photos", order(true))
		last := uint64(0)
		for range 3 { // one caller, here and there
			for _, s := range []*sequence.Sequences{a, b} {
				n := mustTake(t, s, "photos", 1)
				if n <= last {
					t.Fatalf("round %d: got %d after %d", round, n, last)
				}
				last = n
			}
		}
		close(stop)
		wg.Wait()
		for range 20 {
			want := p.id(t, "photos") + 1
			wantTaken(t, b, "photos", want)
			wantTaken(t, a, "photos", want+1)
			if id, err := b.Advance(ctx, []byte("photos"), 5); err != nil || id != want+6 {
				t.Fatalf("advanced by 5: got %d, %v; want %d", id, err, want+6)
			}
		}
		def, state, err := b.Describe(ctx, []byte("photos"))
		if err != nil || !def.Order || !state.Order || state.Cached != 0 || state.Cache != 0 || state.Skew != 0 {
			t.Errorf("got %+v, %+v, %v; want ORDER and nothing held", def, state.Info, err)
		}

		// All other changes of a sequence leave it ORDER. A reservation on its way when a proxy
		// learns of a change is made once more.
		next := func(s *sequence.Sequences) {
			t.Helper()
			id := p.id(t, "photos")
			if n := mustTake(t, s, "photos", 1); n <= id || n > id+2 {
				t.Fatalf("got %d, want a number behind %d", n, id)
			}
		}
		if err := a.Avoid(ctx, []byte("photos"), []uint64{p.id(t, "photos") + 50}); err != nil {
			t.Fatal(err)
		}
		next(b)
		if n, ok, err := b.SetValue(ctx, []byte("photos"), p.id(t, "photos")+50, true); err != nil || !ok {
			t.Fatalf("SETVAL: got %d, %v, %v", n, ok, err)
		}
		next(a)
		if raised, err := a.Raise(ctx, []byte("photos"), p.id(t, "photos")+50); err != nil || !raised {
			t.Fatalf("REPAIR: got %v, %v", raised, err)
		}
		next(b)
		if err := errors.Join(a.Flush(ctx, []byte("photos")), b.Flush(ctx, nil)); err != nil {
			t.Fatal(err)
		}
		mustAlter(t, b, "photos", sequence.Alteration{Restart: ref(p.id(t, "photos") + 10)})
		next(a)
		beginAgain(t, p.db, b, "photos", uint64(3+round))
		eventually(t, "the other one is registered again", func() bool {
			var proxies int
			if err := p.db.QueryRow("SELECT COUNT(*) FROM sequence_proxy").Scan(&proxies); err != nil {
				t.Fatal(err)
			}
			return proxies == 2
		})
		next(b)
		next(a)
		if id := p.id(t, "photos"); id < uint64(4+round) || id > uint64(8+round) {
			t.Errorf("after a restart at %d the row is at %d", 3+round, id)
		}

		mustAlter(t, a, "photos", order(false))
		mustTake(t, a, "photos", 1)
		eventually(t, "both have cached numbers again", func() bool {
			mustTake(t, b, "photos", 1)
			return a.Stats().Cached > 0 && b.Stats().Cached > 0
		})
	}
	for _, s := range []*sequence.Sequences{a, b} {
		if failed := reservations(s, stats.ReservedError); rewinds(s) != 0 || failed != 0 {
			t.Errorf("got %d rewinds and %d errors, want none", rewinds(s), failed)
		}
	}
}

func TestORDERIsNotPromisedWhileAProxyMayHoldNumbers(t *testing.T) {
	p := newPlace(t).withTable(t, nil)
	a := p.open(t, steadySize(10))
	ctx := context.Background()
	// No proxy can have cached numbers of a new one.
	mustCreate(t, a, sequence.CreateOptions{Name: "photos", Order: true})
	wantTaken(t, a, "photos", 1, 2)
	p.exec(t, "INSERT INTO sequence_proxy (id, host, since, heartbeat, version) VALUES ('gone', 'web7, process 12', "+
		"UTC_TIMESTAMP() - INTERVAL 1 DAY, UTC_TIMESTAMP() - INTERVAL 1 HOUR, 3)")
	mustCreate(t, a, sequence.CreateOptions{Name: "users", Order: true})
	mustAlter(t, a, "users", sequence.Alteration{Order: ref(false)})

	refused := func(err error, is string) {
		t.Helper()
		var cached *sequence.CachedError
		if !errors.As(err, &cached) || len(cached.Proxies) != 1 || cached.Proxies[0].ID != "gone" || cached.Order == "" {
			t.Errorf("got %v, want a CachedError that names the proxy that is gone", err)
		}
		wantText(t, err, is, "web7, process 12", "DELETE FROM")
	}
	_, err := a.Alter(ctx, []byte("photos"), sequence.Alteration{Order: ref(true), Cache: ref(uint64(10))})
	refused(err, "is an ORDER sequence, as before")
	wantOrdered(t, a, "photos", true)
	_, err = a.Alter(ctx, []byte("users"), sequence.Alteration{Order: ref(true)})
	refused(err, "is no ORDER sequence: ")
	wantOrdered(t, a, "users", false)
	mustTake(t, a, "users", 1)
	settled(t, a, "users")
	if got := a.Stats().Cached; got == 0 {
		t.Error("no numbers are cached of a sequence that did not become an ORDER sequence, want some")
	}
	_, err = a.Create(ctx, sequence.CreateOptions{Name: "users", OrReplace: true, Order: true})
	refused(err, "is no ORDER sequence: ")
	wantText(t, err, "was replaced, but its ORDER is not confirmed")
	wantOrdered(t, a, "users", false)
	if _, err := a.Drop(ctx, []byte("photos"), false); err != nil {
		t.Fatal(err)
	}
	_, err = a.Create(ctx, sequence.CreateOptions{Name: "photos", Order: true})
	refused(err, "is no ORDER sequence: ")
	wantOrdered(t, a, "photos", false)

	p.exec(t, "DELETE FROM sequence_proxy WHERE id = 'gone'")
	for _, name := range []string{"photos", "users"} {
		mustAlter(t, a, name, sequence.Alteration{Order: ref(true)})
		wantOrdered(t, a, name, true)
	}
	mustCreate(t, a, sequence.CreateOptions{Name: "users", OrReplace: true, Order: true})
	wantOrdered(t, a, "users", true)
}
