package sequence_test

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"seqproxy/internal/await"
	"seqproxy/sequence"
	"seqproxy/sequence/segment"
	"seqproxy/sequence/stats"
	"seqproxy/test/history"
	"seqproxy/test/mysqltest"
)

// recordTakes has callers take numbers of "photos" at every proxy until ctx ends, some of them
// runs, and some with hardly any patience.
func recordTakes(ctx context.Context, wg *sync.WaitGroup, h *history.History, proxies []*sequence.Sequences, callers int) {
	for i, s := range proxies {
		for j := range callers {
			by := fmt.Sprintf("caller %d of proxy %d", j, i)
			wg.Go(func() {
				for ctx.Err() == nil {
					n := uint64(1)
					if rand.IntN(4) == 0 {
						n += rand.Uint64N(5)
					}
					take, stop := ctx, func() {}
					if rand.IntN(8) == 0 {
						// Its numbers may be on their way.
						take, stop = context.WithTimeout(ctx, rand.N(2*time.Millisecond))
					}
					err := h.Record(by, func() (uint64, uint64, error) {
						got, err := s.TakeRun(take, []byte("photos"), n)
						return got.First, got.First + (n-1)*got.Step, err
					})
					stop()
					if err != nil {
						_ = await.Pause(ctx, time.Millisecond)
					}
				}
			})
		}
	}
}

// recordIdiom is an application that counts in the row itself.
func recordIdiom(ctx context.Context, h *history.History, p place) {
	for ctx.Err() == nil {
		_ = h.Record("an application", func() (uint64, uint64, error) {
			result, err := p.db.Exec("UPDATE sequence SET id = LAST_INSERT_ID(id + 1) WHERE name = 'photos'")
			if err != nil {
				return 0, 0, err
			}
			id, err := result.LastInsertId()
			return uint64(id), uint64(id), err
		})
		_ = await.Pause(ctx, 2*time.Millisecond)
	}
}

// Three proxies and an application give numbers of one ORDER sequence to many callers, while the
// server is killed and stopped, and connections are cut with reservations on their way. A caller
// that asks after another was answered has the higher number.
func TestOrderedNumbersAreLinearizableWhateverFails(t *testing.T) {
	p := placeOn(t, mysqltest.Start(t)).withTable(t, nil)
	quick := func(o *sequence.Options) {
		o.AllocateTimeout = 400 * time.Millisecond
		o.Servers[0].IOTimeout = 300 * time.Millisecond
	}
	var links []*mysqltest.Link
	proxies := []*sequence.Sequences{p.open(t, quick)}
	for range 2 {
		link := mysqltest.NewLink(t, p.server.Addr())
		links = append(links, link)
		proxies = append(proxies, p.open(t, quick, func(o *sequence.Options) { o.Servers[0].Addr = link.Addr() }))
	}
	mustCreate(t, p.open(t), sequence.CreateOptions{Name: "photos", Order: true}) // this one has more patience

	var h history.History
	ctx, stop := context.WithTimeout(context.Background(), 4*time.Minute)
	defer stop()
	var wg sync.WaitGroup
	recordTakes(ctx, &wg, &h, proxies, 6)
	wg.Go(func() { recordIdiom(ctx, &h, p) })
	showsMuch := func() bool {
		given, failed := h.Count()
		var lost, skipped uint64
		for _, s := range proxies {
			st := s.Stats()
			lost, skipped = lost+st.Unused[stats.UnusedUnknownCommit], skipped+st.Unused[stats.UnusedCallerGone]
		}
		return given >= 500 && failed > 0 && lost > 0 && skipped > 0
	}
	begin := time.Now()
	for round := 0; await.Pause(ctx, time.Duration(50+rand.IntN(150))*time.Millisecond); round++ {
		switch round % 5 {
		case 0, 2, 3:
			for _, link := range links {
				link.Cut()
				_ = await.Pause(ctx, rand.N(5*time.Millisecond))
				link.Mend()
			}
		case 1:
			pid := p.server.PID()
			if err := syscall.Kill(pid, syscall.SIGSTOP); err != nil {
				t.Fatal(err)
			}
			// Sometimes longer than any caller waits for an answer.
			_ = await.Pause(ctx, time.Duration(100+rand.IntN(400))*time.Millisecond)
			if err := syscall.Kill(pid, syscall.SIGCONT); err != nil {
				t.Fatal(err)
			}
		case 4:
			p.kill(t)
			p.restart(t)
		}
		if time.Since(begin) > 4*time.Second && showsMuch() {
			stop()
		}
	}
	wg.Wait()
	given, failed := h.Count()
	var lost, skipped uint64
	for i, s := range proxies {
		st := s.Stats()
		lost, skipped = lost+st.Unused[stats.UnusedUnknownCommit], skipped+st.Unused[stats.UnusedCallerGone]
		if st.Cached != 0 || rewinds(s) != 0 {
			t.Errorf("proxy %d: got %+v and %d rewinds, want nothing held and no rewind", i, st, rewinds(s))
		}
	}
	t.Logf("%d calls got numbers, %d failed; %d numbers lost, %d of callers that had gone", given, failed, lost, skipped)
	if given < 500 || failed == 0 || lost == 0 || skipped == 0 {
		t.Error("that shows little: want many calls, and some of each that failed")
	}
	if err := h.Check(); err != nil {
		t.Error(err)
	}
}

// A stopped server with a reservation on its way does not delay Close.
func TestCloseDoesNotWaitForAnORDERReservation(t *testing.T) {
	p := placeOn(t, mysqltest.Start(t)).withTable(t, nil)
	s := p.open(t, func(o *sequence.Options) { o.Servers[0].IOTimeout, o.AllocateTimeout = time.Hour, time.Hour })
	mustCreate(t, s, sequence.CreateOptions{Name: "photos", Order: true})
	mustTake(t, s, "photos", 1)
	defer mysqltest.StandStill(t, p.server.PID())()
	taken := make(chan error, 1)
	go func() {
		_, err := s.Take(context.Background(), []byte("photos"), 1)
		taken <- err
	}()
	c := sequence.Inside(s).Cache("photos")
	eventually(t, "a reservation is on its way", c.Reserving)
	time.Sleep(10 * time.Millisecond) // mostly sent by then
	closed := make(chan error, 1)
	go func() {
		ctx, stop := context.WithTimeout(context.Background(), 10*time.Millisecond)
		defer stop()
		closed <- s.Close(ctx)
	}()
	for what, done := range map[string]chan error{"Take": taken, "Close": closed} {
		select {
		case err := <-done:
			if err == nil {
				t.Errorf("%s: got no error, want one", what)
			}
		case <-time.After(30 * time.Second):
			t.Fatalf("%s did not return within 30 s", what)
		}
	}
}

// The checker finds what it is for: numbers from memory, where two proxies have some.
func TestNumbersFromMemoryAreNotLinearizable(t *testing.T) {
	p := newPlace(t).withTable(t, map[string]uint64{"photos": 0})
	a, b := p.open(t, steadySize(100)), p.open(t, steadySize(100))
	eventually(t, "it finds the wrong order", func() bool {
		var h history.History
		ctx, stop := context.WithTimeout(context.Background(), 100*time.Millisecond)
		defer stop()
		var wg sync.WaitGroup
		recordTakes(ctx, &wg, &h, []*sequence.Sequences{a, b}, 1)
		wg.Wait()
		err := h.Check()
		return err != nil && strings.Contains(err.Error(), "not in the order of time")
	})
}

// tooEarly has the fault that the batches prevent: it also gives numbers to callers that came after
// the UPDATE.
type tooEarly struct {
	sequence.Reserver
	rest segment.Segment
}

func (r *tooEarly) Reserve(ctx context.Context, name string, want, need uint64) (g sequence.Grant, err error) {
	if r.rest.Remaining() < want {
		if g, err = r.Reserver.Reserve(ctx, name, want+30, need); err != nil {
			return g, err
		}
		r.rest = g.Seg
	}
	first, _ := r.rest.Take(want)
	return sequence.Grant{Seg: segment.New(first, first+want-1), Max: math.MaxUint64, Order: true}, nil
}

func TestTheCheckerFindsNumbersOfThoseWhoCameAfterTheUPDATE(t *testing.T) {
	p := newPlace(t).withTable(t, nil)
	a, b := p.open(t), p.open(t)
	mustCreate(t, a, sequence.CreateOptions{Name: "photos", Order: true})
	check := func() error {
		var h history.History
		ctx, stop := context.WithTimeout(context.Background(), 300*time.Millisecond)
		defer stop()
		var wg sync.WaitGroup
		recordTakes(ctx, &wg, &h, []*sequence.Sequences{a, b}, 4)
		wg.Wait()
		return h.Check()
	}
	if err := check(); err != nil {
		t.Errorf("without the fault: %v", err)
	}
	mustTake(t, a, "photos", 1)
	c := sequence.Inside(a).Cache("photos")
	c.ReserveFrom(func(r sequence.Reserver) sequence.Reserver { return &tooEarly{Reserver: r} })
	eventually(t, "it finds the wrong order", func() bool {
		err := check()
		return err != nil && strings.Contains(err.Error(), "not in the order of time")
	})
}
