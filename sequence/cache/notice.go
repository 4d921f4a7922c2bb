package cache

import (
	"fmt"
	"math"
	"sync"
	"sync/atomic"
)

// Notices are the warnings that a sequence nears its end, for the next client that takes its
// numbers. There is at most one for a sequence.
type Notices struct {
	waiting atomic.Int32 // how many there are
	mu      sync.Mutex   // locked last of all
	by      map[string]string
}

func (n *Notices) put(name, text string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.by == nil {
		n.by = make(map[string]string)
	}
	n.by[name] = text
	n.waiting.Store(int32(len(n.by)))
}

// Take returns the warning of a sequence, and drops it; "" if there is none. Without any warnings
// it costs next to nothing.
func (n *Notices) Take(name string) string {
	if n.waiting.Load() == 0 {
		return ""
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	text := n.by[name]
	delete(n.by, name)
	n.waiting.Store(int32(len(n.by)))
	return text
}

// notice is the text of the warning of a sequence.
func notice(name string, used float64, end uint64, seconds float64) string {
	text := fmt.Sprintf("%.5g%% of the numbers of sequence '%s' are used; the last is %d", percent(used), name, end)
	if !math.IsInf(seconds, 1) {
		text += "; " + estimate(seconds)
	}
	return text
}
