package proxy

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-mysql-org/go-mysql/mysql"
)

// patience is the context of what a session waits for in the proxy itself, a number
// that has yet to be reserved: it ends with the session, and by KILL QUERY. A wait that
// does not come about costs nothing.
type patience struct {
	context.Context // the session's

	begun  atomic.Bool   // there may be a wait
	waited time.Duration // in those that are over, since it was taken; only the session's goroutine touches it

	mu          sync.Mutex // guards what follows
	done        chan struct{}
	since       time.Duration // when the wait began, by clock
	interrupted bool          // done is closed
	detach      func() bool   // from Context
}

// Done begins a wait, unless it has begun.
func (p *patience) Done() <-chan struct{} {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.done == nil {
		p.done = make(chan struct{})
		p.detach = context.AfterFunc(p.Context, p.interrupt)
		p.since = clock()
		p.begun.Store(true)
	}
	return p.done
}

// Err is not nil once the wait is to end.
func (p *patience) Err() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.interrupted {
		return context.Canceled
	}
	return p.Context.Err()
}

// interrupt ends the wait, if there is one, from whichever goroutine.
func (p *patience) interrupt() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.done != nil && !p.interrupted {
		p.interrupted = true
		close(p.done)
	}
}

// over ends what may have been a wait, with err, and returns the error that the client
// is told.
func (p *patience) over(err error) error {
	if !p.begun.Load() {
		return err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.detach()
	p.waited += clock() - p.since
	if err != nil && p.interrupted && p.Context.Err() == nil {
		err = errInterrupted
	}
	p.done, p.interrupted = nil, false
	p.begun.Store(false)
	return err
}

// errInterrupted is what a statement gets that KILL QUERY has ended.
var errInterrupted = sqlError(mysql.ER_QUERY_INTERRUPTED, "70100", "Query execution was interrupted")
