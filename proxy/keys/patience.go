package keys

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-mysql-org/go-mysql/mysql"

	"seqproxy/protocol"
	"seqproxy/proxy/stats"
	"seqproxy/sequence"
)

// Patience is the context of a session's waits in the proxy itself, for numbers that are being
// reserved. KILL QUERY and the session's end interrupt a wait. A call that does not wait costs
// nothing.
type Patience struct {
	context.Context // the session's

	tally *stats.Tally // which counts the waits

	// Spent is the time of the present command's finished waits for the sequence servers. Only the
	// session's goroutine touches it. It is 0 again at each command.
	Spent time.Duration

	begun atomic.Bool // a wait may be going on

	mu          sync.Mutex // guards the fields below
	done        chan struct{}
	follows     bool          // the end of Context interrupts the wait
	since       time.Duration // begin of the wait, by stats.Clock
	interrupted bool          // done is closed
}

// Done begins a wait, unless one is going on. The next wait reuses the channel if nothing has
// interrupted this one.
func (p *Patience) Done() <-chan struct{} {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.begun.Load() {
		return p.done
	}
	p.since = stats.Clock()
	p.begun.Store(true)
	if p.done == nil {
		p.done = make(chan struct{})
	}
	if !p.follows {
		p.follows = true
		context.AfterFunc(p.Context, p.Interrupt)
	}
	if p.Context.Err() != nil {
		p.interruptLocked() // Context may have ended while nothing waited
	}
	return p.done
}

// Err is not nil once the wait must end.
func (p *Patience) Err() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.interrupted {
		return context.Canceled
	}
	return p.Context.Err()
}

// Waited returns how long the present command has waited for the sequence servers. The sequences
// deduct it from the command's time. Only the session's goroutine calls it.
func (p *Patience) Waited() time.Duration {
	if !p.begun.Load() {
		return p.Spent
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.Spent + stats.Clock() - p.since
}

// Value gives the sequences the Waited of the command.
func (p *Patience) Value(key any) any {
	if key == (sequence.WaiterKey{}) {
		return p
	}
	return p.Context.Value(key)
}

// Interrupt ends the wait, if there is one. Any goroutine may call it.
func (p *Patience) Interrupt() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.interruptLocked()
}

func (p *Patience) interruptLocked() {
	if p.begun.Load() && !p.interrupted {
		p.interrupted = true
		close(p.done)
	}
}

// Over ends the wait, if there was one, with its error. It returns the error for the client.
func (p *Patience) Over(err error) error {
	if !p.begun.Load() {
		return err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.Spend(stats.Clock() - p.since)
	if p.interrupted {
		if err != nil && p.Context.Err() == nil {
			err = ErrInterrupted
		}
		p.done, p.interrupted = nil, false
	}
	p.begun.Store(false)
	if late, ok := err.(*sequence.UnavailableError); ok {
		copied := *late // other callers may have the same error
		copied.Waited = max(copied.Waited, p.Spent)
		err = &copied
	}
	return err
}

// Spend records a finished wait for the sequence servers.
func (p *Patience) Spend(took time.Duration) {
	p.tally.Waiting += took
	p.Spent += took
}

// ErrInterrupted is the error of a statement that KILL QUERY has ended.
var ErrInterrupted error = &protocol.ServerError{Code: mysql.ER_QUERY_INTERRUPTED, State: "70100", Message: "Query execution was interrupted"}
