package main

import (
	"context"
	"errors"
	"os"
	"os/signal"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

// watcher turns signals into contexts.
type watcher struct {
	stop    context.Context // done at the first signal: end in order
	hurry   context.Context // done at the second: end now
	release func()          // ends the watch and waits for it

	came     chan os.Signal
	nohup    bool // SIGHUP was ignored when the program started
	terminal bool // there was one then

	rotations chan os.Signal // SIGUSR1, which never ends the program

	reloads  chan struct{}
	reloaded atomic.Bool // reloads is read
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
	w := &watcher{
		stop: stop, hurry: hurry, came: make(chan os.Signal, 2), reloads: make(chan struct{}, 1), rotations: make(chan os.Signal, 1),
		nohup: signal.Ignored(syscall.SIGHUP), terminal: hasTerminal(),
	}
	wanted := []os.Signal{syscall.SIGINT, syscall.SIGTERM}
	if !w.nohup { // it wants it to stay ignored
		wanted = append(wanted, syscall.SIGHUP)
	}
	signal.Notify(w.came, wanted...)
	signal.Notify(w.rotations, syscall.SIGUSR1)

	ended := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		var since time.Time
		for {
			var sig os.Signal
			select {
			case sig = <-w.came:
			case <-ended:
				return
			}
			switch {
			case sig == syscall.SIGHUP && !w.endsBy():
			case since.IsZero():
				since = time.Now()
				first()
			case time.Since(since) > sameWish:
				second()
				signal.Stop(w.came)
				return
			}
		}
	})
	w.release = func() {
		signal.Stop(w.came)
		close(ended)
		wg.Wait()
		first()
	}
	return w
}

// hangups makes SIGHUP a wish to reload from now on, as servers that have no terminal
// take it, and returns a channel that gets the wishes. While one waits to be taken
// others are the same. A SIGHUP because the terminal was closed is none.
func (w *watcher) hangups() <-chan struct{} {
	w.reloaded.Store(true)
	signal.Notify(w.came, syscall.SIGHUP) // also under nohup, which means the terminal's
	return w.reloads
}

// endsBy says whether the SIGHUP that came ends the program, and passes it on if it
// means something else.
func (w *watcher) endsBy() bool {
	if !w.reloaded.Load() {
		return true
	}
	if w.terminal && !hasTerminal() { // it took its terminal with it
		w.terminal = false
		return !w.nohup
	}
	select {
	case w.reloads <- struct{}{}:
	default: // one that is not taken yet will see what changed
	}
	return false
}

// hasTerminal says whether the program has a controlling terminal. That it cannot be
// opened for another reason, such as too many open files, does not say that it is gone.
func hasTerminal() bool {
	tty, err := os.OpenFile("/dev/tty", os.O_RDONLY|syscall.O_NOCTTY, 0)
	if err != nil {
		return !errors.Is(err, syscall.ENXIO) && !errors.Is(err, os.ErrNotExist)
	}
	_ = tty.Close() // nothing was written
	return true
}
