package main

import (
	"context"
	"errors"
	"os"
	"time"

	"golang.org/x/term"

	"seqproxy/internal/demo"
	"seqproxy/internal/mysqld"
)

// demo runs the demo on the playground until ctx is cancelled or the time is up. Then it stops the
// proxy.
func (p *program) demo(ctx context.Context, r *running, servers []*mysqld.Server, members int, period time.Duration) error {
	o := demo.Options{
		Proxy:    r.server.Addr().String(),
		Sequence: exampleSequence,
		Cached:   func() uint64 { return r.sequences.Stats().Cached },
		Out:      p.out,
		For:      period,
	}
	if f, ok := p.out.(*os.File); ok && term.IsTerminal(int(f.Fd())) {
		o.Size = func() (columns, lines int) {
			columns, lines, _ = term.GetSize(int(f.Fd())) // 0 if that fails
			return columns, lines
		}
	}
	for i, s := range servers {
		if i < len(exampleSchemas) {
			o.Tables = append(o.Tables, demo.Table{Schema: exampleSchemas[i], Name: "photos"})
		}
		o.Servers = append(o.Servers, demo.Server{Server: s, Holds: holds(i, members)})
	}
	// The proxy stops after the last row is complete.
	life, end := context.WithCancel(context.WithoutCancel(ctx))
	defer end()
	shown := make(chan error, 1)
	go func() {
		defer end()
		shown <- demo.Run(ctx, o)
	}()
	err := r.wait(life, p.hurry, nil, nil)
	return errors.Join(<-shown, err)
}
