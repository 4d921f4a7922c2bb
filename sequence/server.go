package sequence

import (
	"sync/atomic"
)

// server is one sequence server: the link to it, what is remembered of its tables, and the SQL that runs there.
type server struct {
	*link
	table    table
	counters *counters
	marks    *marks // of all members
	guard    guard

	tenure atomic.Pointer[tenure] // on which node signs of life are given

	place    atomic.Pointer[share] // in the plan that this process believes in; nil: there is none
	away     atomic.Bool           // it is left out while others serve
	trials   trials
	lowest   lowest
	unseen   atomic.Bool // that it still holds the sequences was not seen on other nodes, for ORDER
	follow   following
	rules    rules
	ordered  orderedRows
	bounds   bounds
	registry registry
}

// newServer does no I/O.
func newServer(opts Options, o ServerOptions, counters *counters, marks *marks) (*server, error) {
	to, err := newLink(opts, o, &counters.retries)
	if err != nil {
		return nil, err
	}
	return &server{
		link: to, table: newTable(o.Database, o.Table), counters: counters, marks: marks, guard: guard{adopting: newTurn()},
		registry: newRegistry(),
	}, nil
}

// share is which numbers are the server's, in the plan that this process believes in.
func (v *server) share() share {
	if place := v.place.Load(); place != nil {
		return *place
	}
	return alone
}
