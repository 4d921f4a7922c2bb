package sequence

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"
)

// locked keeps the row of photos, and the name albums, until the test ends.
func (p place) locked(t *testing.T) {
	t.Helper()
	tx, err := p.db.Begin()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = tx.Rollback() })
	for _, text := range []string{"UPDATE sequence SET id = 1000 WHERE name = 'photos'", "INSERT INTO sequence VALUES ('albums', 0)"} {
		if _, err := tx.Exec(text); err != nil {
			t.Fatal(err)
		}
	}
}

func TestWaitForALockEndsInTimeAndIsToldAsSuch(t *testing.T) {
	p := newPlace(t).withTable(t, map[string]uint64{"photos": 0})
	p.withOptions(t)
	const limit = 3200 * time.Millisecond // the server gives up after 2 to 3 seconds
	s := p.open(t, patience(limit))
	creating := p.open(t, patience(limit), func(o *Options) { o.CreateUnknown = true })
	p.locked(t)
	ctx := context.Background()
	var wg sync.WaitGroup
	for what, f := range map[string]func() error{
		"Take": func() error { _, err := s.Take(ctx, []byte("photos"), 1); return err },
		"Drop": func() error { _, err := s.Drop(ctx, []byte("photos"), false); return err },
		"Create": func() error {
			_, err := s.Create(ctx, CreateOptions{Name: "albums"})
			return err
		},
		"Take that creates": func() error { _, err := creating.Take(ctx, []byte("albums"), 1); return err },
	} {
		wg.Go(func() {
			begin := time.Now()
			err := f()
			var unavailable *UnavailableError
			if !errors.As(err, &unavailable) || unavailable.Waited < limit-100*time.Millisecond {
				t.Errorf("%s: got %v, want an UnavailableError that says how long it waited", what, err)
			}
			wantText(t, err, "1205")
			if took := time.Since(begin); took > limit+10*time.Second {
				t.Errorf("%s took %v, want the allocate timeout of %v", what, took, limit)
			}
		})
	}
	wg.Wait()
}

// The first INSERT asks for the owned columns, while another goroutine may wait for a server that does not answer.
func TestWhoAsksForOwnersDoesNotWaitForAnotherThatDoes(t *testing.T) {
	p := newPlace(t).withTable(t, nil)
	s := p.open(t, patience(50*time.Millisecond))
	s.follow.work.Lock()
	defer s.follow.work.Unlock()
	answer := make(chan error, 1)
	go func() {
		_, err := s.LoadOwners(context.Background())
		answer <- err
	}()
	select {
	case err := <-answer:
		if unavailable := new(UnavailableError); !errors.As(err, &unavailable) {
			t.Errorf("got %v, want an UnavailableError", err)
		}
	case <-time.After(30 * time.Second):
		t.Error("it waits for ever")
	}
}

func TestCloseDoesNotWaitForALockedRow(t *testing.T) {
	p := newPlace(t).withTable(t, map[string]uint64{"photos": 0})
	p.withOptions(t)
	s := p.open(t, patience(time.Minute))
	p.locked(t)
	answers := make(chan error, 2)
	go func() {
		_, err := s.Drop(context.Background(), []byte("photos"), false)
		answers <- err
	}()
	go func() {
		_, err := s.Create(context.Background(), CreateOptions{Name: "albums"})
		answers <- err
	}()
	p.lockWait(t)
	ctx, stop := context.WithTimeout(context.Background(), 100*time.Millisecond)
	defer stop()
	begin := time.Now()
	if err := s.Close(ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("Close: got %v, want its deadline", err)
	}
	if took := time.Since(begin); took > 10*time.Second {
		t.Errorf("Close took %v, want about its 100ms", took)
	}
	for range 2 {
		if err := <-answers; !errors.Is(err, ErrClosed) {
			t.Errorf("got %v, want ErrClosed", err)
		}
	}
}

// One timer is for all who wait: each has to get its answer when its own patience is over, whatever that of the others is.
func TestEachCallerWaitsForAsLongAsItsOwnPatience(t *testing.T) {
	p := newPlace(t).withTable(t, map[string]uint64{"photos": 0})
	s := p.open(t, patience(time.Minute))
	c, err := s.find(context.Background(), []byte("photos"), time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	c.reserving.Lock() // no number comes until the end of the test
	defer c.reserving.Unlock()
	var wg sync.WaitGroup
	begin := time.Now()
	for _, patience := range []time.Duration{1600, 100, 900, 100} {
		patience *= time.Millisecond
		wg.Go(func() {
			_, err := c.take(context.Background(), 1, patience)
			var unavailable *UnavailableError
			if !errors.As(err, &unavailable) || unavailable.Waited < patience || unavailable.Waited > time.Since(begin) {
				t.Errorf("got %#v, want an UnavailableError that says that it waited %v", err, patience)
			}
			if took := time.Since(begin); took < patience {
				t.Errorf("a caller with a patience of %v was told after %v", patience, took)
			}
		})
	}
	wg.Wait()
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.first != nil || c.queued != 0 {
		t.Errorf("%d callers are waiting yet", c.queued)
	}
}
