package snowflake

import (
	"sync/atomic"
	"time"
)

// line is the time as a Generator counts it: what the clock of the machine said once, and the time
// that has passed since then. So it goes on evenly where the clock is set; adjust says when it
// follows.
type line struct {
	wall   func() time.Time
	begin  time.Time    // of which only what has passed since then is used
	offset atomic.Int64 // nanoseconds since 1970 at begin
	looked atomic.Int64 // nanoseconds since begin, when the clock was last compared
}

func newLine(wall func() time.Time) *line {
	if wall == nil {
		wall = time.Now
	}
	l := &line{wall: wall, begin: time.Now()}
	l.offset.Store(wall().UnixNano())
	return l
}

// now is in nanoseconds since 1970.
func (l *line) now() int64 { return int64(time.Since(l.begin)) + l.offset.Load() }

// off is how far the clock of the machine is ahead.
func (l *line) off() time.Duration { return time.Duration(l.wall().UnixNano() - l.now()) }

// set has it go on from a moment.
func (l *line) set(to int64) { l.offset.Add(to - l.now()) }

// stepped reports whether the clock was set since it was last compared, or the machine slept. It
// does not look often.
func (l *line) stepped(b Bounds) bool {
	since := int64(time.Since(l.begin))
	if since-l.looked.Load() < int64(b.Look) {
		return false
	}
	l.looked.Store(since)
	return l.off().Abs() > b.Behind
}
