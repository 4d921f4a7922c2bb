package main

import (
	"context"
	"fmt"
	"time"

	"seqproxy/internal/await"
	"seqproxy/internal/mysqld"
)

// awayFor is how long a killed server stays away, so that people see what works without it.
const awayFor = 10 * time.Second

// revive restarts a server whenever it has ended, until ctx is done. It returns an error if the
// server cannot be started.
func (p *program) revive(ctx context.Context, s *mysqld.Server, holds string) error {
	for {
		select {
		case <-s.Done():
		case <-ctx.Done():
			return nil
		}
		p.say("\nThe server %s (%s) is gone. Keys go on; it is started again in %.0f seconds. Its log: %s\n", s.Addr(), holds, awayFor.Seconds(), s.LogFile())
		if !await.Pause(ctx, awayFor) {
			return nil
		}
		switch err := s.Restart(ctx); {
		case ctx.Err() != nil:
			return nil
		case err != nil:
			return fmt.Errorf("the server %s (%s) was gone, and cannot be started again: %w", s.Addr(), holds, err)
		}
		p.say("The server %s is back, with pid %d.\n", s.Addr(), s.PID())
	}
}
