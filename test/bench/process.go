package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"

	"seqproxy/internal/child"
)

// stopTimeout is how long a target may take to stop before it is killed.
const stopTimeout = 10 * time.Second

// process is a target that runs in the foreground.
type process struct {
	*child.Process
	name string
}

// startProcess starts a program with the working directory dir. Its output is kept for error
// messages.
func startProcess(name, dir, path string, args ...string) (*process, error) {
	cmd := exec.Command(path, args...)
	cmd.Dir = dir
	p, err := child.Start(cmd, filepath.Join(dir, name+".log"))
	if err != nil {
		return nil, fmt.Errorf("start %s: %w", name, err)
	}
	return &process{p, name}, nil
}

// awaitPort waits until the process accepts connections on addr.
func (p *process) awaitPort(ctx context.Context, addr string, limit time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	for {
		nc, err := (&net.Dialer{}).DialContext(ctx, "tcp", addr)
		if err == nil {
			return nc.Close()
		}
		select {
		case <-p.Done:
			return p.ended()
		case <-ctx.Done():
			return fmt.Errorf("%s does not listen on %s: %w%s", p.name, addr, context.Cause(ctx), child.Tail(p.Log))
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// ended returns nil while the process runs, and then how it ended.
func (p *process) ended() error {
	select {
	case <-p.Done:
		if p.Err() == nil {
			return fmt.Errorf("%s has ended by itself%s", p.name, child.Tail(p.Log))
		}
		return fmt.Errorf("%s has ended: %w%s", p.name, p.Err(), child.Tail(p.Log))
	default:
		return nil
	}
}

// stop ends the process with SIGTERM, or with SIGKILL if that takes too long, and waits for it.
func (p *process) stop() error {
	for _, sig := range []os.Signal{syscall.SIGTERM, syscall.SIGKILL} {
		if err := p.Signal(sig); err != nil && !errors.Is(err, os.ErrProcessDone) {
			return fmt.Errorf("stop %s: %w", p.name, err)
		}
		select {
		case <-p.Done:
			if sig == syscall.SIGKILL {
				return fmt.Errorf("stop %s: killed, it did not end within %v%s", p.name, stopTimeout, child.Tail(p.Log))
			}
			return nil
		case <-time.After(stopTimeout):
		}
	}
	return fmt.Errorf("stop %s: process %d does not go away", p.name, p.PID())
}
