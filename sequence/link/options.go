package link

import (
	"sync/atomic"
	"time"

	"go.uber.org/zap"
)

// Options say how a sequence server is reached.
type Options struct {
	Name  string    // in errors and logs: its address, or those of all nodes
	Nodes []Address // its address, or those of a group
	Login *Login

	DialTimeout time.Duration // connect and login
	IOTimeout   time.Duration // each read and write
	MaxConns    int           // to the writable node

	Relaxed bool   // keys may repeat after a crash
	Probe   string // a statement that reads no row of a table

	Timing  *Timing // does not change after the first connection
	Log     *zap.Logger
	Retries *atomic.Uint64 // counts attempts repeated after a conflict
}

// Timing is the intervals of connections to a server and of looks at its nodes.
type Timing struct {
	// Late bounds the wait for further nodes once enough have answered.
	Late time.Duration
	// Flush is how often the nodes of a cluster are asked whether they flush at commit, apart from
	// each choice of a writable node.
	Flush time.Duration
	// Answered is how long the last answer of a server stays valid.
	Answered time.Duration
	// Conflict is the first pause after a deadlock or the like. It doubles with each attempt.
	Conflict time.Duration

	// Silence is how long a server keeps a silent connection, and with it the locks: a proxy's
	// machine or network may vanish in the middle of a transaction, which a server by default
	// notices after hours. Whole seconds.
	Silence time.Duration
	// A connection lives for ConnLife, so that a changed setting or table is soon checked again.
	// One that looks at a node lives for LookLife. Idle ones are closed after ConnIdle.
	ConnLife, LookLife, ConnIdle time.Duration
	// Redial is how long a failed dial also fails the next callers, so that an outage does not
	// bring one dial for each sequence.
	Redial time.Duration
}
