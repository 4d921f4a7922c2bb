package hangup

import (
	"errors"
	"os"
	"sync"
	"time"

	"go.uber.org/zap"

	"seqproxy/internal/logfield"
)

// A session reads one side at a time: while it waits for a server it does not see its client leave,
// nor the server while it waits for the client. The watch sees both. Watching a connection costs a
// system call, so the watch begins at a certain age of the session: most statements and many
// sessions end before.
const (
	// sweepEvery is the interval of looks for sessions to watch. They are then between one and two
	// intervals old.
	sweepEvery = 100 * time.Millisecond
	// clientGrace is how long a statement may run without its client. So a short statement
	// completes for a client that wants no answer, or has closed only its sending side.
	clientGrace = 400 * time.Millisecond
)

// A token of the poller is a session's serial number, which is unique, and one bit for the end.
const (
	clientEnd  = 0
	backendEnd = 1
)

// ClientToken returns the token for the end of a session's client.
func ClientToken(serial uint64) uint64 { return serial<<1 | clientEnd }

// BackendToken returns the token for the end of a session's server.
func BackendToken(serial uint64) uint64 { return serial<<1 | backendEnd }

// Session is a session under watch. Other goroutines call its methods.
type Session interface {
	// AddTo puts the session's connections under watch.
	AddTo(p *Poller)
	// BackendHungUp records that a server may have closed a connection.
	BackendHungUp()
	// ClientHungUp ends the session if its client has really hung up.
	ClientHungUp()
}

// Sessions finds living sessions.
type Sessions interface {
	// BySerial returns the session with a serial number. ok is false if it has ended.
	BySerial(serial uint64) (s Session, ok bool)
}

// Watch finds sessions whose client or server has hung up. Close ends its goroutines.
type Watch struct {
	sessions Sessions
	log      *zap.Logger
	stopping <-chan struct{}
	running  sync.WaitGroup

	mu       sync.Mutex // guards the fields below
	poller   *Poller    // nil while no session is watched
	failed   bool       // a poller could not be made, which was logged
	sweeping bool       // a sweep is running
	latest   uint64     // serial of the last session
	swept    uint64     // serial up to which sessions are watched
	settled  uint64     // serial up to which sessions existed at the last sweep
}

// NewWatch returns a Watch without goroutines. It accepts no more sessions once stopping is closed.
func NewWatch(sessions Sessions, log *zap.Logger, stopping <-chan struct{}) *Watch {
	return &Watch{sessions: sessions, log: log, stopping: stopping}
}

// Began registers a new session. Serial numbers rise.
func (w *Watch) Began(serial uint64) {
	if !canPoll {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.latest = serial
	if !w.sweeping {
		w.sweeping = true
		w.running.Go(w.sweep)
	}
}

// Close ends the watch. stopping must be closed before, and all sessions must have ended.
func (w *Watch) Close() {
	w.mu.Lock()
	poller := w.poller
	w.failed = true // no sweep makes one now
	w.mu.Unlock()
	if poller != nil {
		poller.Close()
	}
	w.running.Wait()
}

// sweep puts sessions under watch as they come of age, until no younger one remains. Began starts
// it.
func (w *Watch) sweep() {
	tick := time.NewTicker(sweepEvery)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
		case <-w.stopping:
			return
		}
		from, to, more := w.due()
		for serial := from; serial <= to; serial++ {
			if s, ok := w.sessions.BySerial(serial); ok {
				if p := w.pollerOnce(); p != nil {
					s.AddTo(p)
				}
			}
		}
		if !more {
			return
		}
	}
}

// due returns the serial numbers of sessions that have come of age, and whether there are younger
// ones.
func (w *Watch) due() (from, to uint64, more bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	from, to = w.swept+1, w.settled
	w.swept, w.settled = w.settled, w.latest
	more = w.swept < w.settled
	w.sweeping = more
	return from, to, more
}

// pollerOnce returns the poller, which it makes for the first session; nil if that fails.
func (w *Watch) pollerOnce() *Poller {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.poller != nil || w.failed {
		return w.poller
	}
	poller, err := NewPoller()
	if err != nil {
		w.failed = true
		w.log.Warn("lost clients not noticed", logfield.Err(err))
		return nil
	}
	w.poller = poller
	w.running.Go(func() { w.observe(poller) })
	return poller
}

// departure is a client that has hung up.
type departure struct {
	serial uint64
	until  time.Time // when its statement ends
}

// observe reports to the sessions what the poller sees, until the poller is closed.
func (w *Watch) observe(poller *Poller) {
	var tokens []uint64
	var gone []departure // in the order of their times
	for {
		var until time.Time
		if len(gone) > 0 {
			until = gone[0].until
		}
		var err error
		if tokens, err = poller.Wait(tokens[:0], until); err != nil {
			if !errors.Is(err, os.ErrClosed) {
				w.log.Error("lost clients not noticed any more", logfield.Err(err))
			}
			return
		}
		for _, token := range tokens {
			serial := token >> 1
			if token&1 == clientEnd {
				gone = append(gone, departure{serial, time.Now().Add(clientGrace)})
			} else if s, ok := w.sessions.BySerial(serial); ok {
				s.BackendHungUp()
			}
		}
		for len(gone) > 0 && !time.Now().Before(gone[0].until) {
			if s, ok := w.sessions.BySerial(gone[0].serial); ok {
				s.ClientHungUp()
			}
			gone = gone[1:]
		}
	}
}
