// Package demo shows what the proxy promises: it takes keys through a proxy at a steady rate while
// it kills one server behind it after another, and says how many keys came twice.
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

// Options is what a demo needs.
type Options struct {
	Proxy    string   // address of the proxy, whose root has no password
	Sequence string   // that the keys are taken of
	Tables   []Table  // that rows with such keys go into
	Servers  []Server // that are killed in turns
	// Held is how many numbers the proxy has in memory. It may be called from any goroutine.
	Held func() uint64

	Out io.Writer
	// Size is the size of the terminal Out, in characters; 0 is unknown. It is asked each time,
	// since windows change, and the screen is written anew. Without Size a line is added each time.
	Size func() (columns, lines int)
	// For is how long it goes on; 0 is until ctx is done.
	For time.Duration
	// Every is how often a server is killed, and Down how long it stays so; 0 is 10 s and half of
	// Every.
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

// Run runs the demo. It returns when ctx is done or the time is up, with every server running again
// and every goroutine ended: nil, ErrTwice, or why a server could not be killed or started.
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
	if o.For > 0 {
		life, end = context.WithTimeout(ctx, o.For)
	}
	defer end()

	var all sync.WaitGroup
	load.start(life, context.WithoutCancel(ctx), &all)
	var killed error
	all.Go(func() {
		if killed = k.run(life, o.Every, o.Down); killed != nil {
			end()
		}
	})
	s := &screen{out: o.Out, size: o.Size, begun: time.Now(), held: o.Held, load: load, killer: k}
	s.run(life)
	all.Wait()
	load.close()
	s.summary()
	if n := load.twice(); n > 0 {
		return errors.Join(killed, fmt.Errorf("%w: %d did", ErrTwice, n))
	}
	return killed
}
