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
	stop    context.Context // done after the first signal: end in order
	hurry   context.Context // done after the second: end now
	release func()          // ends the watch and waits for that

	came     chan os.Signal
	nohup    bool // SIGHUP was ignored at the start
	terminal bool // there was a terminal at the start

	rotations chan os.Signal // SIGUSR1; it never ends the program

	reloads    chan struct{}
	reloadable atomic.Bool // somebody reads reloads
}

// sameWish is how long after the first signal another one counts as the same. A Ctrl-C may reach a
// program twice, if its parent forwards signals as timeout(1) does.
const sameWish = 300 * time.Millisecond

// watchSignals begins to watch for SIGINT, SIGTERM and SIGHUP (from a closed terminal). The third
// signal has its default effect. SIGPIPE has none from now on: a line of the log that nobody reads
// any more must not end the program.
func watchSignals() *watcher {
	signal.Ignore(syscall.SIGPIPE)
	stop, first := context.WithCancel(context.Background())
	hurry, second := context.WithCancel(context.Background())
	w := &watcher{
		stop: stop, hurry: hurry, came: make(chan os.Signal, 2), reloads: make(chan struct{}, 1), rotations: make(chan os.Signal, 1),
		nohup: signal.Ignored(syscall.SIGHUP), terminal: hasTerminal(),
	}
	wanted := []os.Signal{syscall.SIGINT, syscall.SIGTERM}
	if !w.nohup { // ignored at the start means ignored for good
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
			case sig == syscall.SIGHUP && !w.hangup():
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

// hangups makes SIGHUP a wish to reload from now on, as is usual for servers without a terminal. It
// returns a channel of wishes. If a wish waits there, further ones are the same. A SIGHUP from a
// closed terminal is no wish.
func (w *watcher) hangups() <-chan struct{} {
	w.reloadable.Store(true)
	signal.Notify(w.came, syscall.SIGHUP) // even under nohup, which concerns the terminal's SIGHUP
	return w.reloads
}

// hangup handles a SIGHUP. It reports whether the signal ends the program; if not, it passes it on
// as a wish to reload.
func (w *watcher) hangup() bool {
	if !w.reloadable.Load() {
		return true
	}
	if w.terminal && !hasTerminal() { // it came with the end of the terminal
		w.terminal = false
		return !w.nohup
	}
	select {
	case w.reloads <- struct{}{}:
	default: // the wish that waits there includes this one
	}
	return false
}

// hasTerminal reports whether the program has a controlling terminal. Other errors in opening it,
// such as too many open files, do not mean that it is gone.
func hasTerminal() bool {
	tty, err := os.OpenFile("/dev/tty", os.O_RDONLY|syscall.O_NOCTTY, 0)
	if err != nil {
		return !errors.Is(err, syscall.ENXIO) && !errors.Is(err, os.ErrNotExist)
	}
	_ = tty.Close() // nothing was written
	return true
}
