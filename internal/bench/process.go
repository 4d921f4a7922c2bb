package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"syscall"
	"time"
)

// stopTimeout is how long a target may take to stop before it is killed.
const stopTimeout = 10 * time.Second

// process is a target that runs in the foreground. Its output is kept in a file for the error that may come.
type process struct {
	name string
	cmd  *exec.Cmd
	log  string
	done chan struct{} // closed when the process is gone
	err  error         // how it ended, valid once done is closed
}

// startProcess starts a program with its own process group, so that Ctrl-C reaches only this program, which then
// stops what it started in order. dir is its working directory.
func startProcess(name, dir, path string, args ...string) (*process, error) {
	p := &process{name: name, cmd: exec.Command(path, args...), log: filepath.Join(dir, name+".log"), done: make(chan struct{})}
	log, err := os.Create(p.log)
	if err != nil {
		return nil, fmt.Errorf("start %s: %w", name, err)
	}
	defer log.Close() //nolint:errcheck // the process has its own descriptor
	p.cmd.Stdout, p.cmd.Stderr, p.cmd.Dir = log, log, dir
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	dieWithParent(p.cmd.SysProcAttr)

	started := make(chan error)
	go func() {
		// The parent-death signal is sent when the thread that forked ends, so the thread is kept.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := p.cmd.Start()
		started <- err
		if err == nil {
			p.err = p.cmd.Wait()
			close(p.done)
		}
	}()
	if err := <-started; err != nil {
		return nil, fmt.Errorf("start %s: %w", name, err)
	}
	return p, nil
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
		case <-p.done:
			return p.ended()
		case <-ctx.Done():
			return fmt.Errorf("%s does not listen on %s: %w%s", p.name, addr, context.Cause(ctx), p.logTail())
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// ended returns an error that tells how the process ended, nil while it runs.
func (p *process) ended() error {
	select {
	case <-p.done:
		if p.err == nil {
			return fmt.Errorf("%s has ended by itself%s", p.name, p.logTail())
		}
		return fmt.Errorf("%s has ended: %w%s", p.name, p.err, p.logTail())
	default:
		return nil
	}
}

// logTail returns the last lines the process wrote, with an introduction.
func (p *process) logTail() string {
	text, err := os.ReadFile(p.log)
	if text = bytes.TrimSpace(text); err != nil || len(text) == 0 {
		return ""
	}
	lines := bytes.Split(text, []byte("\n"))
	return "; its last output:\n" + string(bytes.Join(lines[max(0, len(lines)-8):], []byte("\n")))
}

// stop ends the process by SIGTERM, or by SIGKILL if that takes too long, and waits until it is gone.
func (p *process) stop() error {
	for _, sig := range []os.Signal{syscall.SIGTERM, syscall.SIGKILL} {
		if err := p.cmd.Process.Signal(sig); err != nil && !errors.Is(err, os.ErrProcessDone) {
			return fmt.Errorf("stop %s: %w", p.name, err)
		}
		select {
		case <-p.done:
			if sig == syscall.SIGKILL {
				return fmt.Errorf("stop %s: killed, it did not end within %v%s", p.name, stopTimeout, p.logTail())
			}
			return nil
		case <-time.After(stopTimeout):
		}
	}
	return fmt.Errorf("stop %s: process %d does not go away", p.name, p.cmd.Process.Pid)
}

// freeAddr returns a loopback address whose port was free a moment ago.
func freeAddr() (string, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", fmt.Errorf("find a free port: %w", err)
	}
	return l.Addr().String(), l.Close()
}
