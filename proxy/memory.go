package proxy

import (
	"errors"
	"fmt"
	"os"
	"sync/atomic"
	"time"

	"github.com/go-mysql-org/go-mysql/mysql"
	"golang.org/x/sync/semaphore"

	"seqproxy/protocol"
	"seqproxy/proxy/state"
	"seqproxy/proxy/stats"
)

// largeStatement is the size above which a statement that is held whole takes a share of
// statementMemory. Smaller ones are bounded by the number of sessions.
const largeStatement = 64 << 10

// statementMemory bounds what large statements take in all sessions together. A session takes
// its whole share before it reads on, and gives it back before it takes another: so nobody who
// holds a share waits for one. Until then the rest of the statement waits in the connection.
type statementMemory struct {
	size int64
	free *semaphore.Weighted // in the order in which they came
	// beyond is as much again, for sessions that hold locks of a server: who has the memory may
	// wait for these.
	beyond  *semaphore.Weighted
	used    atomic.Int64
	waiting atomic.Int64 // sessions
}

func newStatementMemory(size int64) *statementMemory {
	return &statementMemory{size: size, free: semaphore.NewWeighted(size), beyond: semaphore.NewWeighted(size)}
}

// memoryShare is what a session holds of it.
type memoryShare struct {
	of    *statementMemory
	from  *semaphore.Weighted
	bytes int64
	// relayed: nothing of the statement is needed once it is sent.
	relayed bool
}

// takeShare waits for a share for a statement of so many bytes: for the text, and for what it
// may be rewritten to. What is longer than all there is takes all.
func (s *session) takeShare(size int) error {
	s.giveShare() // there is none; who holds one must not wait
	m := s.set.memory
	n := min(2*int64(size), m.size)
	from := m.free
	if !from.TryAcquire(n) {
		s.srv.counters.MemoryWaits.Add(1)
		m.waiting.Add(1)
		if s.holdsLocks() {
			from = m.beyond
		}
		err := from.Acquire(s.ctx, n)
		m.waiting.Add(-1)
		if err != nil {
			return fmt.Errorf("%w: waiting for memory: %w", errClientGone, err)
		}
	}
	m.used.Add(n)
	s.share = memoryShare{of: m, from: from, bytes: n}
	return nil
}

// holdsLocks reports whether the session may hold locks that others wait for.
func (s *session) holdsLocks() bool {
	return s.state.InTransaction() || s.state.Pins.Has(state.PinTableLock) || s.state.Pins.Has(state.PinGlobalLock) || s.state.Pins.Has(state.PinUserLock)
}

// giveShare gives the share back, if there is one, and the memory of the statement.
func (s *session) giveShare() {
	if s.share.bytes == 0 {
		return
	}
	s.batch.payload = nil
	s.client.Release()
	s.share.of.used.Add(-s.share.bytes)
	s.share.from.Release(s.share.bytes)
	s.share = memoryShare{}
}

// While others wait for memory, a client that holds a share has to send so much of its
// statement in each period, or the rest. Servers end a connection for less after
// net_read_timeout, which is as long by default.
const (
	receivePeriod = 30 * time.Second
	receiveLeast  = 1 << 20
)

// errSlowClient is the end of a session whose client does not send the rest of a statement.
var errSlowClient = errors.New("client sends a statement too slowly while others wait for memory")

// takeIn takes in the rest of a large command, size bytes of payload. The beginning is buffered.
func (s *session) takeIn(size int) error {
	if err := s.client.disarm(); err != nil {
		return err
	}
	if err := s.takeShare(size); err != nil {
		return err
	}
	whole := protocol.HeaderSize + size
	s.client.Reserve(whole)
	for {
		before := len(s.client.Buffered())
		err := s.receive(whole, s.srv.receivePeriod)
		switch {
		case err == nil:
			s.tally.Begins(stats.Clock())
			return s.client.until(time.Time{})
		case !errors.Is(err, os.ErrDeadlineExceeded):
			return err
		case s.share.of.waiting.Load() > 0 && len(s.client.Buffered())-before < receiveLeast:
			s.client.packetNum = 0
			s.refuse(protocol.Errorf(mysql.ER_NET_READ_INTERRUPTED, "08S01", "Got timeout reading communication packets"))
			_ = s.client.flush() // the session ends either way
			return errSlowClient
		}
	}
}

// receive reads until so many bytes are buffered, or for a time.
func (s *session) receive(whole int, within time.Duration) error {
	if err := s.client.until(time.Now().Add(within)); err != nil {
		return err
	}
	for len(s.client.Buffered()) < whole {
		if err := s.client.fill(); err != nil {
			return err
		}
	}
	return nil
}
