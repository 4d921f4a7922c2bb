package sequence

import (
	"maps"
	"slices"
	"strings"
	"sync"
)

// marks remembers the highest number ever reserved by this process, per sequence. A reservation at or below it proves that the
// row went back (a restored backup, a fail-over that lost its last second) and that its numbers were given before.
type marks struct {
	mu   sync.Mutex
	high map[string]uint64 // guarded by mu; by the table's spelling
}

// admit records s as reserved, or reports the mark that it violates.
func (m *marks) admit(name string, s Segment) (mark uint64, ok bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if mark = m.high[name]; s.next <= mark {
		return mark, false
	}
	m.high[name] = s.last
	return s.last, true
}

// of returns the mark of name, 0 if there is none.
func (m *marks) of(name string) uint64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.high[name]
}

// carry makes the mark of from count for to as well: the server said that both mean the same sequence.
func (m *marks) carry(from, to string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if mark := m.high[from]; mark > m.high[to] {
		m.high[to] = mark
	}
}

// like returns marked names that a server may take for name, other than name itself. They are candidates only.
func (m *marks) like(name string) []string {
	m.mu.Lock()
	defer m.mu.Unlock()
	if _, ok := m.high[name]; ok {
		return nil
	}
	return slices.DeleteFunc(slices.Collect(maps.Keys(m.high)), func(other string) bool {
		return !strings.EqualFold(strings.TrimRight(other, " "), strings.TrimRight(name, " "))
	})
}
