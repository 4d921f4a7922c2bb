package snowflake

import (
	"sync/atomic"
	"time"
)

// steadyClock is the time of a Generator: one reading of the machine's clock, and the time that has
// passed since. So it goes on evenly when the clock is set; adjust decides when it follows.
type steadyClock struct {
	wall   func() time.Time
	begin  time.Time    // used only for the time since then
	offset atomic.Int64 // nanoseconds since 1970 at begin
	looked atomic.Int64 // nanoseconds since begin at the last comparison with the clock
}

func newSteadyClock(wall func() time.Time) *steadyClock {
	l := &steadyClock{wall: wall, begin: time.Now()}
	l.offset.Store(wall().UnixNano())
	return l
}

// now returns nanoseconds since 1970.
func (l *steadyClock) now() int64 { return int64(time.Since(l.begin)) + l.offset.Load() }

// off returns how far the clock of the machine is ahead.
func (l *steadyClock) off() time.Duration { return time.Duration(l.wall().UnixNano() - l.now()) }

// set sets it to a moment.
func (l *steadyClock) set(to int64) { l.offset.Add(to - l.now()) }

// stepped reports whether the clock was set or the machine slept since the last comparison. It
// compares only once each Look.
func (l *steadyClock) stepped(b Bounds) bool {
	since := int64(time.Since(l.begin))
	if since-l.looked.Load() < int64(b.Look) {
		return false
	}
	l.looked.Store(since)
	return l.off().Abs() > b.Behind
}
