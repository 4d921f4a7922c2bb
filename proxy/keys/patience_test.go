package keys

import (
	"context"
	"errors"
	"testing"
	"time"

	"seqproxy/proxy/stats"
)

func TestPatienceIsKeptFromOneWaitToTheNext(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	p := &Patience{Context: ctx, tally: new(stats.Tally)}
	ended := func(done <-chan struct{}) bool {
		select {
		case <-done:
			return true
		default:
			return false
		}
	}

	p.Interrupt() // KILL QUERY outside of a wait
	if ended(p.Done()) || p.Err() != nil {
		t.Fatal("a KILL QUERY before a wait ended it")
	}
	if err := p.Over(nil); err != nil {
		t.Fatal(err)
	}

	first := p.Done()
	p.Interrupt()
	p.Interrupt()
	if !ended(first) || p.Err() == nil {
		t.Error("KILL QUERY did not end a wait")
	}
	if err := p.Over(p.Err()); !errors.Is(err, ErrInterrupted) {
		t.Errorf("a wait ended by KILL: got the error %v", err)
	}
	if ended(p.Done()) || p.Err() != nil {
		t.Error("the wait after a KILL ended before it began")
	}
	_ = p.Over(nil)

	if n := testing.AllocsPerRun(100, func() { p.Done(); _ = p.Over(nil) }); n != 0 {
		t.Errorf("a wait after the first allocates %v times", n)
	}

	during := p.Done()
	cancel()
	<-during // the session's end ends a wait that has begun
	if err := p.Over(p.Err()); errors.Is(err, ErrInterrupted) || err == nil {
		t.Errorf("a wait at the end of the session: got the error %v", err)
	}
	if !ended(p.Done()) {
		t.Error("a wait after the end of the session does not end")
	}
	_ = p.Over(p.Err())
}

// All waits of a command for several things add up, including the current one.
func TestPatienceAddsUpWhatACommandHasWaited(t *testing.T) {
	p := &Patience{Context: t.Context(), tally: new(stats.Tally)}
	if got := p.Waited(); got != 0 {
		t.Errorf("before the first wait: %v", got)
	}
	atLeast := func(least time.Duration) {
		t.Helper()
		if got := p.Waited(); got < least {
			t.Errorf("got %v, want at least %v", got, least)
		}
	}
	p.Done()
	time.Sleep(2 * time.Millisecond)
	atLeast(2 * time.Millisecond)
	if err := p.Over(nil); err != nil {
		t.Fatal(err)
	}
	after := p.Waited()
	time.Sleep(2 * time.Millisecond)
	if got := p.Waited(); got != after {
		t.Errorf("while nothing waits it grows from %v to %v", after, got)
	}
	p.Done()
	time.Sleep(2 * time.Millisecond)
	atLeast(after + 2*time.Millisecond)
	_ = p.Over(nil)
	p.Spend(time.Hour)
	atLeast(time.Hour + 4*time.Millisecond)
	if got := p.tally.Waiting; got != p.Spent {
		t.Errorf("the tally has %v, want %v", got, p.Spent)
	}
}
