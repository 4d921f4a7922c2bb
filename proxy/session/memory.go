package session

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

// largeStatement is the size above which a statement that is kept in memory takes a share of
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

// memoryShare is a session's part of it.
type memoryShare struct {
	at *attachment

	of    *statementMemory
	from  *semaphore.Weighted
	bytes int64 // 0: there is none
	// relayed: nothing of the statement is needed once it is sent.
	relayed bool
}

// take waits for a share for a statement of so many bytes: for the text, and for what it
// may be rewritten to. What is longer than all there is takes all.
func (m *memoryShare) take(size int) error {
	m.give() // there is none; who holds one must not wait
	of := m.at.set.memory
	n := min(2*int64(size), of.size)
	from := of.free
	if !from.TryAcquire(n) {
		m.at.shared.Counters.MemoryWaits.Add(1)
		of.waiting.Add(1)
		if m.holdsLocks() {
			from = of.beyond
		}
		err := from.Acquire(m.at.ctx, n)
		of.waiting.Add(-1)
		if err != nil {
			return fmt.Errorf("%w: waiting for memory: %w", errClientGone, err)
		}
	}
	of.used.Add(n)
	m.of, m.from, m.bytes = of, from, n
	return nil
}

// holdsLocks reports whether the session may hold locks that others wait for.
func (m *memoryShare) holdsLocks() bool {
	st := m.at.state
	return st.InTransaction() || st.Pins.Has(state.PinTableLock) || st.Pins.Has(state.PinGlobalLock) || st.Pins.Has(state.PinUserLock)
}

// give gives the share back, if there is one, and the memory of the statement, which nobody may
// need any more.
func (m *memoryShare) give() {
	if m.bytes == 0 {
		return
	}
	m.at.client.Release()
	m.of.used.Add(-m.bytes)
	m.from.Release(m.bytes)
	m.of, m.from, m.bytes, m.relayed = nil, nil, 0, false
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
func (m *memoryShare) takeIn(size int) error {
	if err := m.at.client.disarm(); err != nil {
		return err
	}
	if err := m.take(size); err != nil {
		return err
	}
	whole := protocol.HeaderSize + size
	m.at.client.Reserve(whole)
	for {
		before := len(m.at.client.Buffered())
		err := m.receive(whole, m.at.shared.ReceivePeriod)
		switch {
		case err == nil:
			m.at.tally.Begins(stats.Clock())
			return m.at.client.until(time.Time{})
		case !errors.Is(err, os.ErrDeadlineExceeded):
			return err
		case m.of.waiting.Load() > 0 && len(m.at.client.Buffered())-before < receiveLeast:
			m.at.client.packetNum = 0
			m.at.client.fail(protocol.Errorf(mysql.ER_NET_READ_INTERRUPTED, "08S01", "Got timeout reading communication packets"))
			_ = m.at.client.flush() // the session ends either way
			return errSlowClient
		}
	}
}

// receive reads until so many bytes are buffered, or for a time.
func (m *memoryShare) receive(whole int, within time.Duration) error {
	if err := m.at.client.until(time.Now().Add(within)); err != nil {
		return err
	}
	for len(m.at.client.Buffered()) < whole {
		if err := m.at.client.fill(); err != nil {
			return err
		}
	}
	return nil
}
