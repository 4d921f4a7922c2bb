package torture

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"seqproxy/internal/child"
	"seqproxy/internal/planted"
)

// proxy is one seqproxy that is started, killed and started again at one address with one
// configuration.
type proxy struct {
	number int
	binary string
	config string
	dir    string
	state  string // its state directory
	zones  string // the directory of its time zones
	clock  string // the file that says how far its clock is ahead; "" for the machine's clock
	addr   string

	mu   sync.Mutex
	life int   // guarded by mu; how often it was started
	run  *life // guarded by mu; the last process
}

// life is one process of a proxy.
type life struct {
	*child.Process
	wanted bool // guarded by proxy.mu; the run ended it
}

// logName is the log of a process.
func logName(proxy, life int) string { return fmt.Sprintf("proxy%d.%d.log", proxy, life) }

// start starts a process and waits until it accepts clients.
func (p *proxy) start(ctx context.Context) error {
	p.mu.Lock()
	p.life++
	number := p.life
	p.mu.Unlock()
	cmd := exec.Command(p.binary, "-config", p.config)
	cmd.Env = append(os.Environ(), zonesVariable+"="+p.zones)
	if p.clock != "" {
		cmd.Env = append(cmd.Env, planted.ClockVariable+"="+p.clock)
	}
	process, err := child.Start(cmd, filepath.Join(p.dir, logName(p.number, number)))
	if err != nil {
		return fmt.Errorf("start proxy %d: %w", p.number, err)
	}
	run := &life{Process: process}
	p.mu.Lock()
	p.run = run
	p.mu.Unlock()
	ctx, cancel := context.WithTimeout(ctx, 20*time.Second)
	defer cancel()
	for {
		// The log, not a connection: one without a login would count in later checks.
		if text, err := os.ReadFile(run.Log); err == nil && bytes.Contains(text, []byte(`"listening"`)) {
			return nil
		}
		select {
		case <-run.Done:
			return fmt.Errorf("proxy %d ended: %v%s", p.number, run.Err(), child.Tail(run.Log))
		case <-ctx.Done():
			return fmt.Errorf("proxy %d does not listen: %w%s", p.number, ctx.Err(), child.Tail(run.Log))
		case <-time.After(10 * time.Millisecond):
		}
	}
}

// current returns the present process and its number.
func (p *proxy) current() (*life, int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.run, p.life
}

func (p *proxy) pid() int {
	run, _ := p.current()
	return run.PID()
}

// signal sends a signal that does not end the process.
func (p *proxy) signal(sig syscall.Signal) error {
	run, _ := p.current()
	if err := run.Signal(sig); err != nil {
		return fmt.Errorf("proxy %d: %w", p.number, err)
	}
	return nil
}

// end sends a signal that ends the process and waits until it is gone, for a limited time.
func (p *proxy) end(sig syscall.Signal, limit time.Duration) error {
	p.mu.Lock()
	run := p.run
	run.wanted = true
	p.mu.Unlock()
	if err := run.Signal(sig); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("proxy %d: %w", p.number, err)
	}
	select {
	case <-run.Done:
	case <-time.After(limit):
		_ = run.Signal(syscall.SIGKILL)
		<-run.Done
		return fmt.Errorf("proxy %d does not end within %v of %v%s", p.number, limit, sig, child.Tail(run.Log))
	}
	if sig == syscall.SIGTERM && run.Err() != nil {
		return fmt.Errorf("proxy %d ended with %w after SIGTERM%s", p.number, run.Err(), child.Tail(run.Log))
	}
	return nil
}

// crashed returns how the process ended by itself, or nil.
func (p *proxy) crashed() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	select {
	case <-p.run.Done:
		if !p.run.wanted {
			return fmt.Errorf("proxy %d ended by itself: %v%s", p.number, p.run.Err(), child.Tail(p.run.Log))
		}
	default:
	}
	return nil
}
