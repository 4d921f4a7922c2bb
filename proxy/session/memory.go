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
	"seqproxy/proxy/keys"
	"seqproxy/proxy/state"
	"seqproxy/proxy/stats"
)

// largeStatement is the size above which a statement in memory takes a share of statementMemory.
// The number of sessions bounds the smaller ones.
const largeStatement = 64 << 10

// statementMemory bounds the memory of large statements in all sessions together. A session takes
// its whole share before it reads on, and gives it back before it takes another. So no session
// waits for a share while it has one. Meanwhile the rest of the statement waits in the connection.
type statementMemory struct {
	size int64
	free *semaphore.Weighted // serves sessions in the order in which they come
	// beyond is as much again, for sessions with locks on a server: the sessions that have the
	// memory may wait for these locks.
	beyond  *semaphore.Weighted
	used    atomic.Int64
	waiting atomic.Int64 // sessions that wait
}

func newStatementMemory(size int64) *statementMemory {
	return &statementMemory{size: size, free: semaphore.NewWeighted(size), beyond: semaphore.NewWeighted(size)}
}

// memoryShare is a session's share of a statementMemory.
type memoryShare struct {
	at *attachment

	of    *statementMemory
	from  *semaphore.Weighted
	bytes int64 // 0: no share
	// relayed says that the statement's memory is free once it is sent.
	relayed bool
}

// take waits for a share for a statement of size bytes: for the text, and for the text that it may
// be rewritten to. A statement beyond the whole memory takes all of it. After a *ServerError the
// statement is skipped, and the session goes on.
func (m *memoryShare) take(size int) error {
	m.give() // a session with a share must not wait for one
	of := m.at.set.memory
	n := min(2*int64(size), of.size)
	from := of.free
	if !from.TryAcquire(n) {
		m.at.shared.Counters.MemoryWaits.Add(1)
		of.waiting.Add(1)
		if m.holdsLocks() {
			from = of.beyond
		}
		err := m.await(from, n)
		of.waiting.Add(-1)
		if err != nil {
			return err
		}
	}
	of.used.Add(n)
	m.of, m.from, m.bytes = of, from, n
	return nil
}

// await waits for n bytes. KILL QUERY, PauseTimeout and the session's end stop the wait with an
// error.
func (m *memoryShare) await(from *semaphore.Weighted, n int64) error {
	p := m.at.patience
	spent := p.Spent
	p.Done() // begins the wait, which the timer may end at once
	late, ended := false, make(chan struct{})
	timer := time.AfterFunc(m.at.set.PauseTimeout, func() {
		late = true
		p.Interrupt()
		close(ended)
	})
	err := from.Acquire(p, n)
	if !timer.Stop() {
		<-ended // it must not interrupt a later wait
	}
	err = p.Over(err)
	p.Spend(spent - p.Spent) // the time of the statement begins after the wait
	switch {
	case err == nil:
		return nil
	case !errors.Is(err, keys.ErrInterrupted):
		return fmt.Errorf("%w: waiting for memory: %w", errClientGone, err)
	case late:
		return protocol.Errorf(mysql.ER_OUT_OF_RESOURCES, "HY000",
			"seqproxy: this statement got no memory within %s (pause_timeout), as other clients' statements have all of it: repeat it, or raise statement_memory", m.at.set.PauseTimeout)
	}
	return err
}

// leastAlso is the memory of statements in one text that takes a share. The number of sessions
// bounds what is less.
const leastAlso = 4 * largeStatement

// also takes as much more as the share lacks for n bytes of what is known of the text in memory,
// beside the text. Only a session without a share waits for it. Errors are as those of take.
func (m *memoryShare) also(n int64) error {
	if n -= m.bytes / 2; n < leastAlso {
		return nil
	}
	if m.bytes == 0 {
		return m.take(int(n / 2))
	}
	n = min(n, m.of.size-m.bytes)
	if !m.from.TryAcquire(n) {
		return errManyStatements
	}
	m.of.used.Add(n)
	m.bytes += n
	return nil
}

var errManyStatements = protocol.Errorf(mysql.ER_OUT_OF_RESOURCES, "HY000",
	"seqproxy: there is no memory for so many statements in one text, as other clients' statements have it: repeat it, send fewer in one text, or raise statement_memory")

// holdsLocks reports whether the session may have locks that others wait for.
func (m *memoryShare) holdsLocks() bool {
	st := m.at.state
	return st.InTransaction() || st.Pins.Has(state.PinTableLock) || st.Pins.Has(state.PinGlobalLock) || st.Pins.Has(state.PinUserLock)
}

// give returns the share, if there is one, and the memory of the statement, which is free by now.
func (m *memoryShare) give() {
	if m.bytes == 0 {
		return
	}
	m.at.client.Release()
	m.of.used.Add(-m.bytes)
	m.from.Release(m.bytes)
	m.of, m.from, m.bytes, m.relayed = nil, nil, 0, false
}

// While others wait for memory, a client with a share must send at least receiveLeast bytes of its
// statement in each period, or the rest. Servers end a slower connection after net_read_timeout,
// which has the same default.
const (
	receivePeriod = 30 * time.Second
	receiveLeast  = 1 << 20
)

// errSlowClient ends a session whose client does not send the rest of a statement.
var errSlowClient = errors.New("client sends a statement too slowly while others wait for memory")

// takeIn reads the rest of a large command with size bytes of payload. The beginning is buffered.
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

// receive reads until whole bytes are buffered, or until the time within is over.
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
