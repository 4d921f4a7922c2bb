package sequence

import (
	"sync/atomic"

	"seqproxy/sequence/floor"
	"seqproxy/sequence/segment"
)

// schema is the way to one sequence server, and how its tables are called.
type schema struct {
	*link
	table table
}

// store is the rows of one sequence server, and what this process has read there. It reads and
// writes rows, and decides nothing: how an attempt to take numbers has ended is an outcome. The
// tables beside them have types of their own.
type store struct {
	*schema
	limits   limitTable
	options  optionTable
	plans    planTable
	proxies  proxyTable
	registry registry
	marks    *floor.Marks // of all members

	// in the plan that this process believes in; nil: there is none
	place   atomic.Pointer[segment.Share]
	rules   rules
	ordered orderedRows
}

func newStore(to *link, marks *floor.Marks) *store {
	of := &schema{link: to, table: newTable(to.opts.Database, to.opts.Table)}
	return &store{
		schema: of, limits: limitTable{of}, options: optionTable{of}, plans: planTable{of}, proxies: proxyTable{of}, registry: newRegistry(), marks: marks,
	}
}

// share is which numbers are the server's, in the plan that this process believes in.
func (st *store) share() segment.Share {
	if place := st.place.Load(); place != nil {
		return *place
	}
	return segment.Alone
}
