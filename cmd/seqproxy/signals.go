package main

import (
	"context"
	"os"
	"os/signal"
	"sync"
	"syscall"
	"time"
)

// watcher turns signals into contexts.
type watcher struct {
	stop    context.Context // done at the first signal: end in order
	hurry   context.Context // done at the second: end now
	release func()          // ends the watch and waits for it
}

// sameWish is for how long after the first signal others mean the same: a Ctrl-C
// reaches a program twice when what started it passes signals on, as timeout(1)
// does.
const sameWish = 300 * time.Millisecond

// watchSignals begins to watch for SIGINT, SIGTERM and SIGHUP, which a terminal
// that is closed sends. From the third on a signal does what it does by default.
func watchSignals() *watcher {
	stop, first := context.WithCancel(context.Background())
	hurry, second := context.WithCancel(context.Background())
	wanted := []os.Signal{syscall.SIGINT, syscall.SIGTERM}
	if !signal.Ignored(syscall.SIGHUP) { // nohup wants it to stay ignored
		wanted = append(wanted, syscall.SIGHUP)
	}
	came := make(chan os.Signal, 2)
	signal.Notify(came, wanted...)

	ended := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		var since time.Time
		for {
			select {
			case <-came:
			case <-ended:
				return
			}
			switch {
			case since.IsZero():
				since = time.Now()
				first()
			case time.Since(since) > sameWish:
				second()
				signal.Stop(came)
				return
			}
		}
	})
	return &watcher{stop: stop, hurry: hurry, release: func() {
		signal.Stop(came)
		close(ended)
		wg.Wait()
		first()
	}}
}
