package sequence

import (
	"sync/atomic"
)

// server is one sequence server, as those know it who take numbers: its tables, and what keeps numbers from coming twice.
type server struct {
	*store
	counters *counters
	guard    guard

	tenure atomic.Pointer[tenure] // on which node signs of life are given

	away   atomic.Bool // it is left out while others serve
	trials trials
	lowest lowest
	unseen atomic.Bool // that it still holds the sequences was not seen on other nodes, for ORDER
	follow following
	bounds bounds
}

// newServer does no I/O.
func newServer(opts Options, o ServerOptions, counters *counters, marks *marks) (*server, error) {
	to, err := newLink(opts, o, &counters.retries)
	if err != nil {
		return nil, err
	}
	return &server{
		store: newStore(to, marks), counters: counters, guard: guard{adopting: newTurn()},
	}, nil
}
