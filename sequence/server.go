package sequence

import (
	"sync/atomic"

	"seqproxy/internal/await"
	"seqproxy/sequence/floor"
)

// server is one sequence server, as those know it who take numbers: its tables, and what keeps
// numbers from coming twice.
type server struct {
	*store
	counters *counters
	ceilings *ceilings

	tenure atomic.Pointer[tenure] // on which node signs of life are given

	away     atomic.Bool // it is left out while others serve
	trials   trials
	lowest   lowest
	follow   following
	recorded recorded
}

// newServer does no I/O.
func newServer(opts Options, o ServerOptions, counters *counters, marks *floor.Marks) (*server, error) {
	of, err := newSchema(opts, o, &counters.retries)
	if err != nil {
		return nil, err
	}
	tables := newStore(of, marks)
	return &server{
		store: tables, counters: counters, ceilings: &ceilings{store: tables, adopting: await.NewLock()},
	}, nil
}
