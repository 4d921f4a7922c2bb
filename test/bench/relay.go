package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"sync"

	"seqproxy/internal/child"
)

// relayCommand is the first argument with which this program runs itself as the target "relay".
const relayCommand = "internal-relay"

// startRelay starts the relay as a process, since its CPU time and memory must not be the client's.
func (f *fleet) startRelay(ctx context.Context) error {
	self, err := os.Executable()
	if err != nil {
		return fmt.Errorf("start %s: %w", relay, err)
	}
	addr, err := child.FreeAddr()
	if err != nil {
		return err
	}
	return f.startProxy(ctx, relay, addr, self, relayCommand, addr, f.server.Addr())
}

// runRelay copies bytes between clients and one backend until ctx ends. It understands nothing. It
// has two goroutines per connection and 32 KiB per direction. A proxy in Go can hardly cost less.
func runRelay(ctx context.Context, listen, backend string) error {
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", listen)
	if err != nil {
		return fmt.Errorf("relay: %w", err)
	}
	// Its connections end with the process.
	defer context.AfterFunc(ctx, func() { _ = l.Close() })()
	for {
		client, err := l.Accept()
		if ctx.Err() != nil {
			return nil
		}
		if err != nil {
			return fmt.Errorf("relay: %w", err)
		}
		go relayConnection(ctx, client, backend)
	}
}

func relayConnection(ctx context.Context, client net.Conn, backend string) {
	server, err := (&net.Dialer{}).DialContext(ctx, "tcp", backend)
	if err != nil {
		_ = client.Close() // the client notices
		return
	}
	var both sync.WaitGroup
	for _, way := range [][2]net.Conn{{client, server}, {server, client}} {
		both.Go(func() {
			// The end of one direction ends the other: MySQL has no half-closed connections.
			defer func() { _ = errors.Join(client.Close(), server.Close()) }()
			copyBytes(way[0], way[1])
		})
	}
	both.Wait()
}

// copyBytes is io.Copy without splice(2), since a proxy that looks at packets cannot use that.
func copyBytes(from, to net.Conn) {
	buf := make([]byte, 32<<10)
	for {
		n, err := from.Read(buf)
		if n > 0 {
			if _, err := to.Write(buf[:n]); err != nil {
				return
			}
		}
		if err != nil {
			return
		}
	}
}
