package proxy

import (
	"context"
	"errors"
	"testing"
)

func TestPatienceIsKeptFromOneWaitToTheNext(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	p := &patience{Context: ctx}
	ended := func(done <-chan struct{}) bool {
		select {
		case <-done:
			return true
		default:
			return false
		}
	}

	p.interrupt() // KILL QUERY while nothing waits
	if ended(p.Done()) || p.Err() != nil {
		t.Fatal("a KILL QUERY before a wait ended it")
	}
	if err := p.over(nil); err != nil {
		t.Fatal(err)
	}

	first := p.Done()
	p.interrupt()
	p.interrupt()
	if !ended(first) || p.Err() == nil {
		t.Error("KILL QUERY did not end a wait")
	}
	if err := p.over(p.Err()); !errors.Is(err, errInterrupted) {
		t.Errorf("the client of a killed wait is told %v", err)
	}
	if ended(p.Done()) || p.Err() != nil {
		t.Error("a wait after a killed one has ended before it began")
	}
	_ = p.over(nil)

	if n := testing.AllocsPerRun(100, func() { p.Done(); _ = p.over(nil) }); n != 0 {
		t.Errorf("a wait after the first allocates %v times", n)
	}

	during := p.Done()
	cancel()
	<-during // the session's end ends a wait that has begun
	if err := p.over(p.Err()); errors.Is(err, errInterrupted) || err == nil {
		t.Errorf("the end of the session in a wait is told as %v", err)
	}
	if !ended(p.Done()) {
		t.Error("a wait of a session that has ended goes on")
	}
	_ = p.over(p.Err())
}
