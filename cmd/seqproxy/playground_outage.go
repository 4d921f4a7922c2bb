package main

import (
	"context"
	"fmt"
	"time"

	"seqproxy/internal/mysqld"
)

// awayFor is for how long a server that was killed is away, so that people see what goes on without
// it.
const awayFor = 10 * time.Second

// revive starts a server again whenever it is gone, until ctx is done. An error is that it cannot
// be started.
func (p *program) revive(ctx context.Context, s *mysqld.Server, holds string) error {
	for {
		select {
		case <-s.Done():
		case <-ctx.Done():
			return nil
		}
		p.say("\nThe server %s (%s) is gone. Keys go on; it is started again in %.0f seconds. Its log: %s\n", s.Addr(), holds, awayFor.Seconds(), s.LogFile())
		timer := time.NewTimer(awayFor)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
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
