package link

import (
	"sync/atomic"
	"time"

	"go.uber.org/zap"
)

// Options is how a sequence server is reached.
type Options struct {
	Name  string    // how errors and logs call it: its address, or those of all nodes
	Nodes []Address // its address, or those of a group
	Login *Login

	DialTimeout time.Duration // connect and login
	IOTimeout   time.Duration // each read and write
	MaxConns    int           // to the node that is written to

	Relaxed bool   // keys may repeat after a crash
	Probe   string // a statement that reads no row of a table

	Timing  *Timing // is not changed once a connection is made
	Log     *zap.Logger
	Retries *atomic.Uint64 // counts what is tried again after a conflict
}

// Timing is the clocks of the connections to a server, and of looking at its nodes.
type Timing struct {
	// Late is for how long a choice of a node waits for others once it has heard enough.
	Late time.Duration
	// Flush is how often the nodes of a cluster are asked whether they flush at commit, apart from
	// each choice of the one to write to.
	Flush time.Duration
	// Answered is for how long it is believed whether a server answers.
	Answered time.Duration
	// Conflict is the first pause, doubling with each attempt, after a deadlock or the like.
	Conflict time.Duration

	// Silence is for how long a server keeps a connection that says nothing, and with it what that
	// has locked: the machine of a proxy may vanish in the middle of a transaction, or its network,
	// and by itself a server notices that after hours. In whole seconds.
	Silence time.Duration
	// A connection lives for ConnLife, so that a setting or a table that was changed is checked
	// again soon. One to look at a node lives for LookLife. Unused ones are closed after ConnIdle.
	ConnLife, LookLife, ConnIdle time.Duration
	// Redial is for how long a failed dial answers for the next ones too: an outage is not made
	// worse by every sequence knocking at once.
	Redial time.Duration
}
