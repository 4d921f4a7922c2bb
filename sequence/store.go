package sequence

import (
	"context"
	"sync/atomic"

	"go.uber.org/zap"

	"seqproxy/internal/await"
	"seqproxy/sequence/define"
	"seqproxy/sequence/floor"
	"seqproxy/sequence/link"
	"seqproxy/sequence/segment"
)

// schema is the way to one sequence server, and its tables: how they are called, whether they are
// there, and whether they are fit.
type schema struct {
	*link.Link
	opts    ServerOptions
	relaxed bool // keys may repeat after a crash
	timing  *timing
	log     *zap.Logger
	table   table
	tuning  *atomic.Pointer[Tuning]

	seen   atomic.Pointer[layout] // what the last check found; nil before the first
	making await.Lock             // of tables that are missing
}

// newSchema does no I/O.
func newSchema(opts Options, o ServerOptions, retries *atomic.Uint64) (*schema, error) {
	s := &schema{
		opts: o, relaxed: opts.Durability == DurabilityRelaxed, timing: opts.timing, log: opts.Logger.With(zap.String("server", o.Addr)),
		table: newTable(o.Database, o.Table), tuning: new(atomic.Pointer[Tuning]), making: await.NewLock(),
	}
	s.tuning.Store(opts.tuning()) // until whoever owns it has one
	var err error
	s.Link, err = link.New(link.Options{
		Name: o.Addr, Nodes: o.nodes(), Login: o.loginInUse(), DialTimeout: o.DialTimeout, IOTimeout: o.IOTimeout, MaxConns: o.MaxConns,
		Relaxed: s.relaxed, Probe: "SELECT 1 FROM " + s.table.full + " LIMIT 0",
		Timing: &opts.timing.Timing, Log: s.log, Retries: retries,
	}, s)
	if err != nil {
		return nil, define.BadOption("%v", err)
	}
	return s, nil
}

// checked is what the last check found out, of a connection that is made for that if there was
// none.
func (s *schema) checked(ctx context.Context) (*layout, error) {
	if seen := s.seen.Load(); seen != nil {
		return seen, nil
	}
	conn, err := s.Conn(ctx)
	if err != nil {
		return nil, err
	}
	return s.seen.Load(), conn.Close()
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

func newStore(of *schema, marks *floor.Marks) *store {
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

// shareOf is share of a sequence that goes by a rule, as its row is named.
func (st *store) shareOf(name string, r segment.Rule) segment.Share {
	return shareIn(st.share(), name, r)
}

// shareIn is which numbers of a sequence are of a member. The ticks of a worker are all of one: see
// clocked.go.
func shareIn(h segment.Share, name string, r segment.Rule) segment.Share {
	if worker, ok := define.WorkerIn(name); ok {
		h = h.Home(worker)
	}
	return h.By(r)
}
