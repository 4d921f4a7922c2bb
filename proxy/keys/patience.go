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

// Patience is the context of what a session waits for in the proxy itself, a number
// that has yet to be reserved: it ends with the session, and by KILL QUERY. A wait that
// does not come about costs nothing.
type Patience struct {
	context.Context // the session's

	begun atomic.Bool // there may be a wait
	// in those that are over, since it was taken; only the session's goroutine touches it
	waited time.Duration
	// of that, what was waited for the sequence servers in the command that is handled; as waited
	spent time.Duration

	mu          sync.Mutex // guards what follows
	done        chan struct{}
	follows     bool          // the end of Context calls interrupt
	since       time.Duration // when the wait began, by clock
	interrupted bool          // done is closed
}

// Done begins a wait, unless it has begun. What a wait needs is kept for the next one, if nothing
// has ended it.
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
		p.interruptLocked() // it may have ended while nothing waited
	}
	return p.done
}

// Err is not nil once the wait is to end.
func (p *Patience) Err() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.interrupted {
		return context.Canceled
	}
	return p.Context.Err()
}

// Waited is for how long the command that is handled has waited for the sequence servers, by which
// the sequences know how much of its time is left. Only the session's goroutine calls it.
func (p *Patience) Waited() time.Duration {
	if !p.begun.Load() {
		return p.spent
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.spent + stats.Clock() - p.since
}

// Value gives the sequences what the command has waited.
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

// Over ends what may have been a wait, with err, and returns the error for the client.
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
		copied.Waited = max(copied.Waited, p.spent)
		err = &copied
	}
	return err
}

// Spend records a wait for the sequence servers that is over.
func (p *Patience) Spend(took time.Duration) {
	p.waited += took
	p.spent += took
}

// Begin begins a command, which has waited for nothing yet.
func (p *Patience) Begin() {
	if p.begun.Load() {
		_ = p.Over(nil)
	}
	p.spent = 0
}

// Spent is for how long the command has waited in waits that are over, and Restore makes it that
// again: what came between does not count.
func (p *Patience) Spent() time.Duration { return p.spent }

// Restore is explained at Spent.
func (p *Patience) Restore(spent time.Duration) { p.spent = spent }

// TakeWaited returns how long all commands have waited since it was last asked.
func (p *Patience) TakeWaited() time.Duration {
	waited := p.waited
	p.waited = 0
	return waited
}

// ErrInterrupted is what a statement gets that KILL QUERY has ended.
var ErrInterrupted error = &protocol.ServerError{Code: mysql.ER_QUERY_INTERRUPTED, State: "70100", Message: "Query execution was interrupted"}
