package backend

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"seqproxy/internal/histogram"
	"seqproxy/protocol"
)

// NodeStats is a copy of a node's statistics at one moment.
type NodeStats struct {
	Shard   string
	Node    string // the address, as in the configuration
	Primary bool   // statements go to this node
	// Leaving reports whether a reload has removed the node and it still has connections. The proxy
	// no longer asks whether it is up.
	Leaving bool
	// Version is the server's version, "" if it has never answered.
	Version string

	// Up reports whether the last attempt to connect was answered, by a login or the refusal of
	// one. A refusal of every client ("Too many connections") is no answer.
	Up    bool
	Since time.Time // since when Up has its value; zero: never tried

	Connecting int // attempts under way
	Open       int // all connections, the proxy's own included

	Connects histogram.Histogram // durations of the attempts that ended with a login
	Errors   []CodeCount         // in the order of their codes, OtherCodes last
	// LastError is why the last failed attempt failed, or why a connection was lost since. It is ""
	// if neither has happened.
	LastError   string
	LastErrorAt time.Time
}

// CodeCount is how often an error has occurred.
type CodeCount struct {
	// of the server, or of a client library (2000 and above): see CodeUnreachable
	Code uint16
	N    uint64
}

// Codes of errors that do not come from a server, numbered as in client libraries (CR_...).
const (
	CodeUnreachable = 2003 // no connection, or no greeting in time
	CodeLost        = 2013 // the connection broke before the answer was complete
	CodeTLS         = 2026
	CodeMalformed   = 2027
	// OtherCodes counts all codes beyond the first maxCodes.
	OtherCodes = 0
)

// Stats returns the statistics of each node, in the order of the configuration, followed by the
// leaving ones. Each pair of shard and node comes once.
func (s *Shards) Stats() []NodeStats {
	targets := s.Routes().targets()
	all := make([]NodeStats, 0, len(targets))
	for _, t := range targets {
		all = append(all, t.shard.stats(t.node))
	}
	return s.leaving.addTo(all)
}

func (s *Shard) stats(n *Node) NodeStats {
	st := NodeStats{
		Shard: s.name, Node: n.String(), Primary: n == s.primary(),
		Connecting: int(n.counts.connecting.Load()), Open: int(n.counts.open.Load()),
		Connects: n.counts.connects.Read(), Errors: n.counts.errors.read(),
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.hello != nil {
		st.Version = n.hello.TrueVersion()
	}
	st.Up, st.Since = !n.met.at.IsZero() && n.met.err == nil, n.metSince
	if last := n.lastFailure; last.err != nil {
		st.LastError, st.LastErrorAt = last.err.Error(), last.at
	}
	return st
}

// nodeCounts holds the counters of a node.
type nodeCounts struct {
	connecting, open atomic.Int64
	connects         histogram.Shared
	errors           codeCounts
}

// maxCodes bounds the codes that have a count each.
const maxCodes = 64

// codeCounts counts errors by code, without a lock.
type codeCounts struct {
	slots [maxCodes]struct {
		code atomic.Uint32 // 0: free. A used slot keeps its code.
		n    atomic.Uint64
	}
	other atomic.Uint64
}

func (c *codeCounts) add(code uint16) {
	for i := range maxCodes {
		slot := &c.slots[(int(code)+i)%maxCodes]
		at := slot.code.Load()
		if at == 0 && !slot.code.CompareAndSwap(0, uint32(code)) {
			at = slot.code.Load()
		}
		if at == 0 || at == uint32(code) {
			slot.n.Add(1)
			return
		}
	}
	c.other.Add(1)
}

func (c *codeCounts) read() (counts []CodeCount) {
	for i := range c.slots {
		slot := &c.slots[i]
		if code := slot.code.Load(); code != 0 {
			counts = append(counts, CodeCount{uint16(code), slot.n.Load()})
		}
	}
	slices.SortFunc(counts, func(a, b CodeCount) int { return cmp.Compare(a.Code, b.Code) })
	if other := c.other.Load(); other > 0 {
		counts = append(counts, CodeCount{OtherCodes, other})
	}
	return counts
}

// count counts the error of an attempt to connect, if it failed.
func (n *Node) count(err error) {
	if err != nil {
		n.counts.errors.add(codeOf(err))
	}
}

// codeOf returns the code under which a failed attempt to connect is counted.
func codeOf(err error) uint16 {
	var refused *protocol.ServerError
	switch {
	case errors.As(err, &refused):
		return refused.Code
	case isTimeout(err):
		return CodeUnreachable
	case errors.Is(err, protocol.ErrNoTLS), errors.Is(err, protocol.ErrTLSHandshake):
		return CodeTLS
	case errors.Is(err, protocol.ErrMalformed):
		return CodeMalformed
	}
	return CodeUnreachable
}

// CountError counts an error that the server has answered with.
func (c *Conn) CountError(code uint16) { c.node.counts.errors.add(code) }

// CountLost records that the connection broke before an answer was complete, and why.
func (c *Conn) CountLost(cause error) {
	c.node.counts.errors.add(CodeLost)
	c.node.mu.Lock()
	c.node.doubtful = true
	c.node.lastFailure = meeting{at: time.Now(), err: fmt.Errorf("a connection was lost: %w", cause)}
	c.node.mu.Unlock()
}

// Close closes the connection at once. A second call does no harm.
func (c *Conn) Close() error {
	if !c.closed {
		c.closed = true
		c.node.counts.open.Add(-1)
	}
	return c.Conn.Close()
}
