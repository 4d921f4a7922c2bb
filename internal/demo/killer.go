package demo

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"
)

// killer kills the servers in turns and starts them again.
type killer struct {
	servers []Server
	mu      sync.Mutex
	states  []serverState
}

// serverState is what people want to know of a server.
type serverState struct {
	kills int
	since time.Time // when it was killed; zero: it runs
	back  time.Time // when it was started again last
}

// run goes on until ctx is done. All servers run then, unless there is an error.
func (k *killer) run(ctx context.Context, every, down time.Duration) error {
	for turn := 0; ; turn = (turn + 1) % len(k.servers) {
		if !sleep(ctx, every-down) {
			return nil
		}
		s := k.servers[turn]
		k.set(turn, func(state *serverState) { state.kills, state.since = state.kills+1, time.Now() })
		if err := s.Kill(); err != nil {
			return fmt.Errorf("kill the server at %s: %w", s.Addr(), err)
		}
		sleep(ctx, down)
		if err := s.Restart(context.WithoutCancel(ctx)); err != nil {
			// bounded by the server's own patience
			return fmt.Errorf("start the server at %s again: %w", s.Addr(), err)
		}
		k.set(turn, func(state *serverState) { state.since, state.back = time.Time{}, time.Now() })
	}
}

func (k *killer) set(i int, change func(*serverState)) {
	k.mu.Lock()
	defer k.mu.Unlock()
	change(&k.states[i])
}

// settling is how long after its start a server may still be missed: clients find out only when
// they use it that a connection has ended.
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

// sleep waits; false says that ctx was done before.
func sleep(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}
