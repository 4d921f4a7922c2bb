package sequence

import (
	"sync/atomic"

	"go.uber.org/zap"

	"seqproxy/sequence/floor"
	"seqproxy/sequence/group"
	"seqproxy/sequence/link"
	"seqproxy/sequence/stats"
	"seqproxy/sequence/store"
)

// server is one sequence server, as those know it who take numbers: its tables, and what keeps
// numbers from coming twice.
type server struct {
	*store.Store
	opts     ServerOptions
	timing   *timing
	tuning   *atomic.Pointer[Tuning]
	counters *stats.Counters
	ceilings *group.Ceilings

	tenure atomic.Pointer[tenure] // on which node signs of life are given

	away     atomic.Bool // it is left out while others serve
	trials   stats.Trials
	lowest   lowest
	follow   following
	recorded recorded
}

// newServer does no I/O.
func newServer(opts Options, o ServerOptions, tuning *atomic.Pointer[Tuning], counters *stats.Counters, marks *floor.Marks) (*server, error) {
	t := opts.timing
	of, err := store.NewSchema(store.Options{
		Link: link.Options{
			Name: o.Addr, Nodes: o.nodes(), Login: o.loginInUse(), DialTimeout: o.DialTimeout, IOTimeout: o.IOTimeout, MaxConns: o.MaxConns,
			Relaxed: opts.Durability == DurabilityRelaxed,
			Timing:  &t.Timing, Log: opts.Logger.With(zap.String("server", o.Addr)), Retries: &counters.Retries,
		},
		Database: o.Database, Table: o.Table, MayCreate: func() bool { return tuning.Load().CreateTable },
		FrozenBackoff: t.frozenBackoff, Beat: t.beat, Stale: t.stale,
	})
	if err != nil {
		return nil, err
	}
	tables := store.New(of, marks)
	return &server{
		Store: tables, opts: o, timing: t, tuning: tuning, counters: counters, ceilings: group.New(tables, t.Patience),
	}, nil
}
