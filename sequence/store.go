package sequence

import (
	"sync/atomic"

	"seqproxy/sequence/segment"
)

// store is the tables of one sequence server, over a link, and what this process has read there. It
// reads and writes rows, and decides nothing: how an attempt to take numbers has ended is an
// outcome.
type store struct {
	*link
	table    table
	registry registry
	marks    *marks // of all members

	// in the plan that this process believes in; nil: there is none
	place   atomic.Pointer[segment.Share]
	rules   rules
	ordered orderedRows
}

func newStore(to *link, marks *marks) *store {
	return &store{link: to, table: newTable(to.opts.Database, to.opts.Table), registry: newRegistry(), marks: marks}
}

// share is which numbers are the server's, in the plan that this process believes in.
func (st *store) share() segment.Share {
	if place := st.place.Load(); place != nil {
		return *place
	}
	return segment.Alone
}
