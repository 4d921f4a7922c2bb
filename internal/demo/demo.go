// Package demo shows what the proxy promises. It takes keys through a proxy at a steady rate, kills
// one server behind it after the other, and counts the keys that came twice. Start at [Run].
package demo

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"seqproxy/internal/mysqld"
)

// Options describe a demo.
type Options struct {
	Proxy    string   // of the proxy; its root has no password
	Sequence string   // the sequence of the keys
	Tables   []Table  // tables for rows with such keys
	Servers  []Server // servers to kill, one after the other
	// Cached returns how many numbers the proxy has in memory. Any goroutine may call it.
	Cached func() uint64

	Out io.Writer
	// Size returns the size of the terminal Out in characters, or 0 if unknown. It is called before
	// each update of the screen, since windows change. If Size is nil, the demo writes lines.
	Size func() (columns, lines int)
	// For is the duration of the demo. 0 means until ctx is done.
	For time.Duration
	// Every is the time between two kills, and Down the time before the restart. 0 means 10 s, and
	// half of Every.
	Every, Down time.Duration
}

// Table has the columns id and title.
type Table struct{ Schema, Name string }

// Server is a server that may be killed.
type Server struct {
	*mysqld.Server
	Holds string // for people: "sequences, shard photos0"
}

// ErrTwice says that a key came twice.
var ErrTwice = errors.New("a key came twice")

const (
	defaultEvery = 10 * time.Second
	screenEvery  = 500 * time.Millisecond
	linesEvery   = time.Second
)

// Run runs the demo until ctx is done or the time is up. Then all servers run again and all
// goroutines have ended. The result is nil, ErrTwice, or why a server could not be killed or
// started.
func Run(ctx context.Context, o Options) error {
	if o.Every == 0 {
		o.Every = defaultEvery
	}
	if o.Down == 0 {
		o.Down = o.Every / 2
	}
	k := &killer{servers: o.Servers, states: make([]serverState, len(o.Servers))}
	load, err := newLoad(&o, k.down)
	if err != nil {
		return err
	}
	life, end := context.WithCancel(ctx)
	defer end()
	if o.For > 0 {
		var stop context.CancelFunc
		life, stop = context.WithTimeout(life, o.For)
		defer stop()
	}

	var all sync.WaitGroup
	load.start(life, context.WithoutCancel(ctx), &all)
	var killed error
	all.Go(func() {
		if killed = k.run(life, o.Every, o.Down); killed != nil {
			end()
		}
	})
	s := &screen{out: o.Out, size: o.Size, begun: time.Now(), cached: o.Cached, load: load, killer: k}
	s.run(life)
	all.Wait()
	load.close()
	s.summary()
	if n := load.twice(); n > 0 {
		return errors.Join(killed, fmt.Errorf("%w: %d did", ErrTwice, n))
	}
	return killed
}
