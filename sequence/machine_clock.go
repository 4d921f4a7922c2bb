package sequence

import (
	"context"
	"sync/atomic"
	"time"

	"seqproxy/internal/await"
	"seqproxy/sequence/snowflake"
)

// machineClock is how far the clock of this machine was from that of the sequence server when that
// was last asked. What passes from then on is counted apart from the clock, so that a step of it is
// seen at once, and without the server.
type machineClock struct {
	asking await.Lock // held while the server is asked
	last   atomic.Pointer[clockReading]
}

// clockReading is one comparison.
type clockReading struct {
	at   time.Time     // by which passed time is counted
	wall int64         // nanoseconds since 1970, by the machine
	off  time.Duration // that this was ahead of the server
}

// offAt is how far the clock is ahead of the server's when it says wall, by what is known.
func (r *clockReading) offAt(wall time.Time) time.Duration {
	return r.off + time.Duration(wall.UnixNano()-r.wall) - time.Since(r.at)
}

// wall is what the clock of the machine says.
func (s *Sequences) wall() time.Time { return s.opts.wall() }

// clockAgrees reports whether wall, which the clock has just said, is near the time of the sequence
// server as far as is known. It does no I/O.
func (s *Sequences) clockAgrees(wall time.Time) bool {
	r := s.clock.last.Load()
	return r != nil && r.offAt(wall).Abs() <= s.timing.clockOff
}

// checkClock asks the sequence server for the time, unless that was done a moment ago. The error
// is a *ClockError if the machine's clock is too far from it.
func (s *Sequences) checkClock(ctx context.Context, sequence string) error {
	if err := s.clock.asking.Acquire(ctx); err != nil {
		return err
	}
	defer s.clock.asking.Release()
	r := s.clock.last.Load()
	if r == nil || time.Since(r.at) >= s.timing.clockAgain {
		server, err := s.periodRows.clock(ctx)
		if err != nil {
			return err
		}
		r = s.noteClock(server)
	}
	if off := r.offAt(s.wall()); off.Abs() > s.timing.clockOff {
		return &snowflake.ClockError{Sequence: sequence, Off: off, Most: s.timing.clockOff}
	}
	return nil
}

// noteClock compares the clock with that of the sequence server, which has just said a time.
func (s *Sequences) noteClock(server time.Time) *clockReading {
	wall := s.wall()
	r := &clockReading{at: time.Now(), wall: wall.UnixNano(), off: wall.Sub(server)}
	s.clock.last.Store(r)
	return r
}

// ClockAhead is how far the clock of this machine is ahead of the sequence server's, as far as is
// known: keys with a time or a date ask for that. It does no I/O.
func (s *Sequences) ClockAhead() (ahead time.Duration, known bool) {
	r := s.clock.last.Load()
	if r == nil {
		return 0, false
	}
	return r.offAt(s.wall()), true
}
