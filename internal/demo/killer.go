package demo

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"seqproxy/internal/await"
)

// killer kills one server after the other and starts it again.
type killer struct {
	servers []Server
	mu      sync.Mutex
	states  []serverState
}

// serverState is the state of a server for people.
type serverState struct {
	kills int
	since time.Time // when it was killed; zero if it runs
	back  time.Time // when it was last started again
}

// run kills and starts servers until ctx is done. Then all servers run, unless it returns an error.
func (k *killer) run(ctx context.Context, every, down time.Duration) error {
	for next := 0; ; next = (next + 1) % len(k.servers) {
		if !await.Pause(ctx, every-down) {
			return nil
		}
		s := k.servers[next]
		k.set(next, func(state *serverState) { state.kills, state.since = state.kills+1, time.Now() })
		if err := s.Kill(); err != nil {
			return fmt.Errorf("kill the server at %s: %w", s.Addr(), err)
		}
		await.Pause(ctx, down)
		// The server's start has a bound of its own.
		if err := s.Restart(context.WithoutCancel(ctx)); err != nil {
			return fmt.Errorf("start the server at %s again: %w", s.Addr(), err)
		}
		k.set(next, func(state *serverState) { state.since, state.back = time.Time{}, time.Now() })
	}
}

func (k *killer) set(i int, change func(*serverState)) {
	k.mu.Lock()
	defer k.mu.Unlock()
	change(&k.states[i])
}

// settling is how long after its start a server may still cause errors: clients notice a lost
// connection only when they use it.
const settling = 2 * time.Second

// down reports whether a server is down, or was a moment ago.
func (k *killer) down() bool {
	for _, s := range k.look() {
		if !s.since.IsZero() || time.Since(s.back) < settling {
			return true
		}
	}
	return false
}

// look returns the state of each server.
func (k *killer) look() []serverState {
	k.mu.Lock()
	defer k.mu.Unlock()
	return slices.Clone(k.states)
}
