package floor

import (
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"go.uber.org/zap"

	"seqproxy/internal/logfield"
	"seqproxy/internal/statefile"
)

// State is what outlives the process, in a directory of its own: the highest number ever reserved
// of each sequence and ticket table, on disk before the first number of a segment leaves, and the
// columns that own sequences. Without a directory nothing is kept.
//
// Its keys name the table and not the server: a backup is mostly brought back on another one, and
// that is when the marks count.
type State struct {
	File  *statefile.File // nil: nothing is kept
	table string          // "`app`.`sequence`"
	log   *zap.Logger
}

// ErrNotKept: what has to be remembered cannot be written.
var ErrNotKept = errors.New("no numbers are reserved until it can be, since after a crash they could be given again")

// Open reads what an earlier process left in a directory, which is this one's from now on.
// table is the quoted name of the table of sequences. Without a directory nothing is kept.
func Open(dir, table string, log *zap.Logger) (*State, error) {
	s := &State{table: table, log: log}
	if dir == "" {
		return s, nil
	}
	var err error
	if s.File, err = statefile.Open(dir, log); err != nil {
		return nil, err
	}
	if err := s.check(); err != nil {
		return nil, errors.Join(fmt.Errorf("state directory %s: %w", dir, err), s.Close())
	}
	return s, nil
}

// check makes sure that everything that was kept can be read.
func (s *State) check() error {
	for key, value := range s.File.All() {
		var err error
		switch kind, _, _ := strings.Cut(key, "\t"); kind {
		case stateMark:
			_, _, err = parseMark(value)
		case stateTicket:
			_, err = strconv.ParseUint(value, 10, 64)
		case stateOwners:
			err = json.Unmarshal([]byte(value), new([]struct{}))
		}
		if err != nil {
			return fmt.Errorf("%q is %q, which no version writes: %w", key, value, err)
		}
	}
	return nil
}

// Kinds of what is kept; a key begins with one.
const (
	stateMark   = "mark"
	stateTicket = "ticket"
	stateOwners = "owners"
)

// key is the key of a kind and a name, which may be empty.
func (s *State) key(kind, name string) string { return kind + "\t" + s.table + "\t" + name }

// put begins to keep a value; nil if nothing is kept.
func (s *State) put(kind, name, value string) *statefile.Write {
	if s.File == nil {
		return nil
	}
	return s.File.Put(s.key(kind, name), value)
}

// wait returns when the write is on disk. Errors wrap ErrNotKept.
func (s *State) wait(w *statefile.Write) error {
	if w == nil {
		return nil
	}
	if err := w.Wait(); err != nil {
		return fmt.Errorf("%w (%w)", err, ErrNotKept)
	}
	return nil
}

// Ready is nil unless the last write failed and the next would, too. Errors wrap ErrNotKept.
func (s *State) Ready() error {
	if s.File == nil {
		return nil
	}
	if err := s.File.Ready(); err != nil {
		return fmt.Errorf("%w (%w)", err, ErrNotKept)
	}
	return nil
}

// Close ends the use of the directory.
func (s *State) Close() error {
	if s.File == nil {
		return nil
	}
	return s.File.Close()
}

// Load takes over the marks that an earlier process left.
func (m *Marks) Load(from *State) {
	m.state = from
	if from.File == nil {
		return
	}
	for key, value := range from.File.All() {
		name, ok := strings.CutPrefix(key, from.key(stateMark, ""))
		if high, epoch, err := parseMark(value); ok && err == nil { // check has seen it
			m.high[name], m.epochs[name] = high, epoch
		}
	}
}

// Keep has the mark of name on disk when it returns. Errors wrap ErrNotKept.
func (m *Marks) Keep(name string) error {
	m.mu.Lock()
	w := m.state.put(stateMark, name, formatMark(m.high[name], m.epochs[name]))
	m.mu.Unlock()
	return m.state.wait(w)
}

// formatMark is how a mark is kept.
func formatMark(high, epoch uint64) string {
	return strconv.FormatUint(high, 10) + " " + strconv.FormatUint(epoch, 10)
}

func parseMark(text string) (high, epoch uint64, err error) {
	first, second, _ := strings.Cut(text, " ")
	if high, err = strconv.ParseUint(first, 10, 64); err == nil {
		epoch, err = strconv.ParseUint(second, 10, 64)
	}
	return high, epoch, err
}

// KeepLowered is Keep for a mark that was lowered: if that fails, the next process finds the row
// below it and raises the row, a gap.
func (m *Marks) KeepLowered(name string) {
	if err := m.Keep(name); err != nil {
		m.state.log.Warn("returned numbers not kept",
			logfield.Sequence(name), logfield.Err(err))
	}
}

// TicketMark is the highest number that an earlier process reserved of a ticket table.
func (s *State) TicketMark(full string) uint64 {
	if s.File == nil {
		return 0
	}
	value, _ := s.File.Get(s.key(stateTicket, full))
	high, _ := strconv.ParseUint(value, 10, 64) // check has seen it
	return high
}

// KeepTicket has the mark of a ticket table on disk when it returns. Errors wrap ErrNotKept.
func (s *State) KeepTicket(full string, high uint64) error {
	return s.wait(s.put(stateTicket, full, strconv.FormatUint(high, 10)))
}

// Owners is the list of columns that owned sequences when an earlier process, or this one, last
// knew, as JSON; false if none did.
func (s *State) Owners() (text string, ok bool) {
	if s.File == nil {
		return "", false
	}
	return s.File.Get(s.key(stateOwners, ""))
}

// KeepOwners remembers the list of columns that own sequences, as JSON. A failure is logged: they
// are known here, and only the next process misses them.
func (s *State) KeepOwners(text string) {
	if err := s.wait(s.put(stateOwners, "", text)); err != nil {
		s.log.Warn("owned columns not kept", logfield.Err(err))
	}
}

// Failing tells whether the last write failed; kept is false if nothing is kept.
func (s *State) Failing() (failing, kept bool) {
	if s.File == nil {
		return false, false
	}
	return s.File.Failing(), true
}
