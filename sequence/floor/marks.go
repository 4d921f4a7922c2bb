package floor

import (
	"maps"
	"slices"
	"strings"
	"sync"

	"seqproxy/internal/planted"
	"seqproxy/sequence/segment"
)

// Marks remember the highest number that this process ever reserved of each sequence, and those
// before it with the same state directory. A reservation at or below the mark proves that the row
// went back (a restored backup, a fail-over that lost its last second) and that its numbers were
// given before.
//
// When a sequence goes back on purpose, a new epoch begins. What was reserved in the old one is
// never given, and its mark is gone.
type Marks struct {
	mu   sync.Mutex
	high map[string]uint64 // guarded by mu; by the table's spelling
	// guarded by mu; by the table's spelling, for each sequence whose row was read
	epochs map[string]uint64
	// guarded by mu; restarted sequences for TakeBegun
	begun map[string]bool
	state *State // where marks are kept
}

func NewMarks() *Marks {
	return &Marks{high: make(map[string]uint64), epochs: make(map[string]uint64), begun: make(map[string]bool), state: new(State)}
}

// Ready returns nil unless marks cannot be kept. Errors wrap ErrNotKept.
func (m *Marks) Ready() error { return m.state.Ready() }

// Learn notes the epoch in a sequence's row. TakeBegun returns the sequence if the epoch is new.
func (m *Marks) Learn(name string, epoch uint64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.enterLocked(name, epoch) {
		m.begun[name] = true
	}
}

// TakeBegun returns, once, the sequences in a new epoch. The caller discards their numbers before
// it reports that none are left.
func (m *Marks) TakeBegun() []string {
	m.mu.Lock()
	defer m.mu.Unlock()
	names := slices.Collect(maps.Keys(m.begun))
	clear(m.begun)
	return names
}

// Enter is Learn for a caller that discards the numbers in memory itself: it returns true if a new
// epoch has begun.
func (m *Marks) Enter(name string, epoch uint64) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	begun := m.begun[name]
	delete(m.begun, name)
	return m.enterLocked(name, epoch) || begun
}

// enterLocked reports whether a new epoch has begun. The caller has locked m.mu.
func (m *Marks) enterLocked(name string, epoch uint64) bool {
	old, seen := m.epochs[name]
	if seen && epoch <= old {
		return false
	}
	m.epochs[name] = epoch
	if !seen {
		return false
	}
	delete(m.high, name)
	for other := range m.high {
		if alike(other, name) {
			delete(m.high, other) // it would count for name again at the next lookup
		}
	}
	return true
}

// Reenter notes that a sequence is in an earlier epoch than seen before, and reports whether that
// is so: the later one was lost, as by a fail-over. What was reserved in the lost one still counts.
// Its numbers in memory may be given again, since the sequence may have restarted since.
func (m *Marks) Reenter(name string, epoch uint64) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if epoch >= m.epochs[name] {
		return false
	}
	m.epochs[name] = epoch
	return true
}

// Epoch returns the epoch of name.
func (m *Marks) Epoch(name string) uint64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.epochs[name]
}

// Admit records s, whose reservation began in the given epoch. The row was seen at low, unless low
// is 0. Without ok, mark is the mark that s violates, or 0 if the epoch is over.
func (m *Marks) Admit(name string, epoch, low uint64, s segment.Segment) (mark uint64, ok bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.epochs[name] != epoch {
		return 0, false
	}
	if mark = max(m.high[name], low); !planted.Fault(planted.Floor) && s.Next() <= mark {
		return mark, false
	}
	m.high[name] = s.Last()
	return s.Last(), true
}

// Mark is the highest number ever reserved of a sequence in an epoch.
type Mark struct{ Epoch, High uint64 }

// Mark returns the mark of name.
func (m *Marks) Mark(name string) Mark {
	m.mu.Lock()
	defer m.mu.Unlock()
	return Mark{m.epochs[name], m.high[name]}
}

// Lower takes back the reservation of s, whose numbers were never given and are about to be put
// back.
func (m *Marks) Lower(name string, s segment.Segment) Mark {
	m.mu.Lock()
	defer m.mu.Unlock()
	was := Mark{m.epochs[name], m.high[name]}
	if was.High == s.Last() {
		m.high[name] = s.Next() - 1
	}
	return was
}

// UndoLower undoes Lower.
func (m *Marks) UndoLower(name string, was Mark) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.epochs[name] == was.Epoch {
		m.high[name] = max(m.high[name], was.High)
	}
}

// Raise makes numbers up to n count as reserved.
func (m *Marks) Raise(name string, n uint64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.high[name] = max(m.high[name], n)
}

// Of returns the mark of name, 0 if it has none.
func (m *Marks) Of(name string) uint64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.high[name]
}

// Carry makes the mark of from count for to as well: the server said that both name the same
// sequence.
func (m *Marks) Carry(from, to string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if mark := m.high[from]; mark > m.high[to] {
		m.high[to] = mark
	}
}

// Rename is Carry that forgets from. The epoch is that of to, if it has one.
func (m *Marks) Rename(from, to string) {
	m.Carry(from, to)
	m.mu.Lock()
	defer m.mu.Unlock()
	if epoch, ok := m.epochs[from]; ok {
		if _, ok := m.epochs[to]; !ok {
			m.epochs[to] = epoch
		}
	}
	delete(m.high, from)
	delete(m.epochs, from)
}

// Like returns the other marked names that a server may take for name. They are only candidates.
func (m *Marks) Like(name string) []string {
	m.mu.Lock()
	defer m.mu.Unlock()
	if _, ok := m.high[name]; ok {
		return nil
	}
	return slices.DeleteFunc(slices.Collect(maps.Keys(m.high)), func(other string) bool {
		return !alike(other, name)
	})
}

// alike reports whether a server may take both for one name.
func alike(a, b string) bool {
	return strings.EqualFold(strings.TrimRight(a, " "), strings.TrimRight(b, " "))
}
