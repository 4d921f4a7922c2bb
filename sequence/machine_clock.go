package sequence

import (
	"context"
	"sync/atomic"
	"time"

	"seqproxy/internal/await"
	"seqproxy/sequence/snowflake"
)

// serverClock asks a sequence server for its time.
type serverClock interface {
	Clock(ctx context.Context) (time.Time, error)
}

// machineClock is the clock of this machine, and how far it was from that of the sequence server
// when that was last asked. What passes from then on is counted apart from the clock, so that a
// step of it is seen at once, and without the server.
type machineClock struct {
	wall   func() time.Time // what it says
	server serverClock
	most   time.Duration // so far from the server's it is believed
	again  time.Duration // for so long the server is not asked again
	look   time.Duration // so often it is asked in any case

	asking await.Lock // held while the server is asked
	last   atomic.Pointer[clockReading]
}

func newMachineClock(wall func() time.Time, server serverClock, t *timing) *machineClock {
	return &machineClock{wall: wall, server: server, most: t.clockOff, again: t.clockAgain, look: t.clockLook, asking: await.NewLock()}
}

// clockReading is one comparison.
type clockReading struct {
	at   time.Time     // by which passed time is counted
	wall int64         // nanoseconds since 1970, by the machine
	off  time.Duration // that this was ahead of the server
}

// offAt is how far the clock is ahead of the server's when it says wall, as far as is known.
func (r *clockReading) offAt(wall time.Time) time.Duration {
	return r.off + time.Duration(wall.UnixNano()-r.wall) - time.Since(r.at)
}

// agrees reports whether wall, which the clock has just said, is near the time of the sequence
// server as far as is known. It does no I/O.
func (c *machineClock) agrees(wall time.Time) bool {
	r := c.last.Load()
	return r != nil && r.offAt(wall).Abs() <= c.most
}

// isOld reports whether the last comparison was long ago. A machine that was suspended, or whose
// clock drifts, shows that in the next one alone.
func (c *machineClock) isOld() bool {
	r := c.last.Load()
	return r != nil && time.Since(r.at) >= c.look
}

// check asks the sequence server for the time, unless that was done a moment ago. The error is a
// *ClockError if the clock is too far from it.
func (c *machineClock) check(ctx context.Context, sequence string) error {
	if err := c.asking.Acquire(ctx); err != nil {
		return err
	}
	defer c.asking.Release()
	r := c.last.Load()
	if r == nil || time.Since(r.at) >= c.again {
		server, err := c.server.Clock(ctx)
		if err != nil {
			return err
		}
		r = c.note(server)
	}
	if off := r.offAt(c.wall()); off.Abs() > c.most {
		return &snowflake.ClockError{Sequence: sequence, Off: off, Most: c.most}
	}
	return nil
}

// note compares the clock with that of the sequence server, which has just said a time.
func (c *machineClock) note(server time.Time) *clockReading {
	wall := c.wall()
	r := &clockReading{at: time.Now(), wall: wall.UnixNano(), off: wall.Sub(server)}
	c.last.Store(r)
	return r
}

// ClockAhead is how far the clock of this machine is ahead of the sequence server's, as far as is
// known: keys with a time or a date compare the clocks. It does no I/O.
func (s *Sequences) ClockAhead() (ahead time.Duration, known bool) {
	r := s.clock.last.Load()
	if r == nil {
		return 0, false
	}
	return r.offAt(s.clock.wall()), true
}
