package floor

import (
	"maps"
	"slices"
	"strings"
	"sync"

	"seqproxy/internal/planted"
	"seqproxy/sequence/segment"
)

// Marks remember the highest number ever reserved by this process, per sequence, and by those
// before it with the same state directory. A reservation at or below it proves that the row went
// back (a restored backup, a fail-over that lost its last second) and that its numbers were given
// before.
//
// Where somebody has a sequence go back on purpose, a new epoch begins: what was reserved before is
// given by nobody any more, and the mark is gone.
type Marks struct {
	mu   sync.Mutex
	high map[string]uint64 // guarded by mu; by the table's spelling
	// guarded by mu; by the table's spelling, of each sequence whose row was read
	epochs map[string]uint64
	// guarded by mu; those that have begun again, of which the caches have not heard; see TakeBegun
	begun map[string]bool
	state *State // where they are kept
}

func NewMarks() *Marks {
	return &Marks{high: make(map[string]uint64), epochs: make(map[string]uint64), begun: make(map[string]bool), state: new(State)}
}

// Ready is nil unless marks cannot be kept. Errors wrap ErrNotKept.
func (m *Marks) Ready() error { return m.state.Ready() }

// Learn takes note of a sequence's epoch, as its row has it. If a new one has begun, TakeBegun
// tells whoever holds numbers of the one before.
func (m *Marks) Learn(name string, epoch uint64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.enterLocked(name, epoch) {
		m.begun[name] = true
	}
}

// TakeBegun returns the sequences in a new epoch that nobody has returned yet. The caller gives up
// what is held of them, before anybody may say that nothing is.
func (m *Marks) TakeBegun() []string {
	m.mu.Lock()
	defer m.mu.Unlock()
	names := slices.Collect(maps.Keys(m.begun))
	clear(m.begun)
	return names
}

// Enter is Learn for a caller who gives up what is held if it returns true: a new epoch has begun.
func (m *Marks) Enter(name string, epoch uint64) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	begun := m.begun[name]
	delete(m.begun, name)
	return m.enterLocked(name, epoch) || begun
}

// enterLocked reports whether a new epoch has begun. m.mu is held.
func (m *Marks) enterLocked(name string, epoch uint64) bool {
	old, known := m.epochs[name]
	if known && epoch <= old {
		return false
	}
	m.epochs[name] = epoch
	if !known {
		return false
	}
	delete(m.high, name)
	for other := range m.high {
		if alike(other, name) {
			delete(m.high, other) // would count for name again when it is looked up
		}
	}
	return true
}

// Reenter takes note that a sequence is in an earlier epoch than was known: a later one is lost, as
// by a fail-over. It reports whether that is so. What was reserved in the lost one still counts,
// but what is held of it may be given again, as nobody knows by now whether the sequence has begun
// again since.
func (m *Marks) Reenter(name string, epoch uint64) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if epoch >= m.epochs[name] {
		return false
	}
	m.epochs[name] = epoch
	return true
}

// Epoch is the one that name is in.
func (m *Marks) Epoch(name string) uint64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.epochs[name]
}

// Admit records s, whose reservation began in the given epoch. The row was seen at low, if that is
// not 0. It reports the mark that s violates, or 0 if the epoch is over.
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

// Lower makes the numbers of s, which are about to be given back and were given to nobody, as if
// they had not been reserved.
func (m *Marks) Lower(name string, s segment.Segment) Mark {
	m.mu.Lock()
	defer m.mu.Unlock()
	was := Mark{m.epochs[name], m.high[name]}
	if was.High == s.Last() {
		m.high[name] = s.Next() - 1
	}
	return was
}

// Restore undoes Lower.
func (m *Marks) Restore(name string, was Mark) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.epochs[name] == was.Epoch {
		m.high[name] = max(m.high[name], was.High)
	}
}

// Raise has numbers up to n count as reserved.
func (m *Marks) Raise(name string, n uint64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.high[name] = max(m.high[name], n)
}

// Of returns the mark of name, 0 if there is none.
func (m *Marks) Of(name string) uint64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.high[name]
}

// Carry makes the mark of from count for to as well: the server said that both mean the same
// sequence.
func (m *Marks) Carry(from, to string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if mark := m.high[from]; mark > m.high[to] {
		m.high[to] = mark
	}
}

// Rename is Carry, after which from is nothing any more. Its epoch is that of to, unless that is
// known.
func (m *Marks) Rename(from, to string) {
	m.Carry(from, to)
	m.mu.Lock()
	defer m.mu.Unlock()
	if epoch, ok := m.epochs[from]; ok {
		if _, known := m.epochs[to]; !known {
			m.epochs[to] = epoch
		}
	}
	delete(m.high, from)
	delete(m.epochs, from)
}

// Like returns marked names that a server may take for name, other than name itself. They are
// candidates only.
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
