package sequence

import (
	"fmt"
	"math"
	"sync"
	"sync/atomic"
	"time"
)

// notices are the warnings that a sequence nears its end, until somebody who takes numbers of it has been told. There is one for a
// sequence at most.
type notices struct {
	waiting atomic.Int32 // how many there are
	mu      sync.Mutex   // taken last of all
	by      map[string]string
}

func (n *notices) put(name, text string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.by == nil {
		n.by = make(map[string]string)
	}
	n.by[name] = text
	n.waiting.Store(int32(len(n.by)))
}

func (n *notices) drop(name string) (text string, ok bool) {
	if n.waiting.Load() == 0 {
		return "", false
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	text, ok = n.by[name]
	delete(n.by, name)
	n.waiting.Store(int32(len(n.by)))
	return text, ok
}

// Notice returns what whoever takes numbers of a sequence is to be told beside them: that it has used 75, 90 or 99 percent of what it
// has. The first who asks is told, once for each of these marks. It does no I/O, and costs next to nothing where there is nothing to tell.
func (s *Sequences) Notice(name []byte) (text string, ok bool) {
	if s.notices.waiting.Load() == 0 {
		return "", false
	}
	c := s.names.get(name)
	if c == nil {
		return "", false
	}
	return s.notices.drop(c.name)
}

// noticeLocked words the warning. c.mu is held.
func (c *cache) noticeLocked(now time.Time, used float64) string {
	text := fmt.Sprintf("%.5g%% of the numbers of sequence '%s' are used; the last is %d", math.Floor(used*100)/100, c.name, c.limits.end)
	if !math.IsInf(c.secondsToEndLocked(now), 1) {
		text += "; " + c.estimateLocked(now)
	}
	return text
}
