package torture

import (
	"sync"
	"time"
)

// op is one request for keys, as its client saw it. Times are since the start of the run, by one
// monotonic clock.
type op struct {
	kind   *kind
	client int // the writer
	conn   int // among all connections of the run
	proxy  int // -1: a sequence server itself
	member int // which one, if it is one
	life   int // which process of the proxy it was
	shard  int // the shard of the session's connection, -1 if none
	begin  time.Duration
	end    time.Duration
	first  uint64    // 0 if none came
	n      uint64    // how many were asked for: first, first+1 ...
	text   string    // the key, if it is no number; see taken
	dated  time.Time // the time in the key of a format
	tag    string    // of the row that it wrote
	kept   bool      // the row was committed
	err    error
}

// last is the highest number that was received.
func (o *op) last() uint64 { return o.first + o.n - 1 }

// window is a time in which parts of the installation were not well.
type window struct {
	fault string
	parts []part
	begin time.Duration
	end   time.Duration // 0 while it lasts
}

// clock is the one clock of a run.
type clock struct{ start time.Time }

func (c clock) now() time.Duration { return time.Since(c.start) }

// trouble is what was done to the installation, and when.
type trouble struct {
	clock clock

	mu      sync.Mutex
	windows []*window
	epochs  []epochChange
}

// epochChange is an attempt to make a sequence begin again. Its keys repeat from then on, if the
// attempt succeeded.
type epochChange struct {
	begin, end time.Duration
	done       bool // it certainly succeeded
	undone     bool // it certainly failed
}

// begin notes that parts are about to suffer; over notes the end.
func (t *trouble) begin(fault string, parts ...part) *window {
	t.mu.Lock()
	defer t.mu.Unlock()
	w := &window{fault: fault, parts: parts, begin: t.clock.now()}
	t.windows = append(t.windows, w)
	return w
}

// note adds a window that was found out later.
func (t *trouble) note(w window) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.windows = append(t.windows, &w)
}

func (t *trouble) over(w *window) {
	t.mu.Lock()
	defer t.mu.Unlock()
	w.end = t.clock.now()
}

func (t *trouble) epoch(e epochChange) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.epochs = append(t.epochs, e)
}

// explains returns a fault that hit one of the parts within [begin-before, end], or before that
// while its consequences may still be met, or "".
func (t *trouble) explains(begin, end, before time.Duration, parts ...part) string {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, w := range t.windows {
		if w.begin > end || w.end != 0 && w.end+before < begin {
			continue
		}
		for _, p := range w.parts {
			for _, q := range parts {
				if p == q {
					return w.fault
				}
			}
		}
	}
	return ""
}

// suffered returns for how long between begin and end one of the parts was not well.
func (t *trouble) suffered(begin, end time.Duration, parts ...part) (sum time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, w := range t.windows {
		hit := false
		for _, p := range w.parts {
			for _, q := range parts {
				hit = hit || p == q
			}
		}
		if !hit {
			continue
		}
		until := w.end
		if until == 0 || until > end {
			until = end
		}
		if from := max(w.begin, begin); until > from {
			sum += until - from
		}
	}
	return sum
}

// restarting reports whether the sequence was made to begin again around the time of o: meanwhile
// it gives nothing.
func (t *trouble) restarting(o *op) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, e := range t.epochs {
		if o.begin <= e.end+aftermath && o.end >= e.begin {
			return true
		}
	}
	return false
}
