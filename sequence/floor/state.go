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
	"seqproxy/sequence/define"
)

// State is what outlives the process, in a directory of its own: the highest number ever reserved
// of each sequence and ticket table, on disk before the first number of a segment leaves, and the
// columns with sequences. Without a directory nothing is kept.
//
// Its keys name the table and not the server: a backup is usually restored on another server, and
// then the marks must count.
type State struct {
	File  *statefile.File // nil: nothing is kept
	table string          // "`app`.`sequence`"
	log   *zap.Logger
}

// ErrNotKept: the state file cannot be written.
var ErrNotKept = errors.New("no numbers are reserved until it can be, since after a crash they could be given again")

// Open reads what an earlier process wrote to a directory, which now belongs to this one. table is
// the quoted name of the table of sequences. Without a directory nothing is kept.
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

// check makes sure that all entries can be read.
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

// Kinds of entries; a key begins with one.
const (
	stateMark   = "mark"
	stateTicket = "ticket"
	stateOwners = "owners"
)

// key returns the key of a kind and a name, which may be empty.
func (s *State) key(kind, name string) string { return kind + "\t" + s.table + "\t" + name }

// put begins to write a value; nil if nothing is kept.
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
	if err := s.File.Wait(w); err != nil {
		return fmt.Errorf("%w (%w)", err, ErrNotKept)
	}
	return nil
}

// Ready returns nil unless the last write failed and the next would fail, too. Errors wrap
// ErrNotKept.
func (s *State) Ready() error {
	if s.File == nil {
		return nil
	}
	if err := s.File.Ready(); err != nil {
		return fmt.Errorf("%w (%w)", err, ErrNotKept)
	}
	return nil
}

// Close releases the directory.
func (s *State) Close() error {
	if s.File == nil {
		return nil
	}
	return s.File.Close()
}

// Load reads the marks of an earlier process.
func (m *Marks) Load(from *State) {
	m.state = from
	if from.File == nil {
		return
	}
	for key, value := range from.File.All() {
		name, ok := strings.CutPrefix(key, from.key(stateMark, ""))
		if high, epoch, err := parseMark(value); ok && err == nil { // check has accepted it
			m.high[name], m.epochs[name] = high, epoch
		}
	}
}

// Keep returns when the mark of name is on disk. Errors wrap ErrNotKept.
func (m *Marks) Keep(name string) error {
	m.mu.Lock()
	w := m.state.put(stateMark, name, formatMark(m.high[name], m.epochs[name]))
	m.mu.Unlock()
	return m.state.wait(w)
}

// formatMark formats a mark for the file.
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

// KeepLowered is Keep for a lowered mark. If it fails, the next process finds the row below the
// mark and raises the row: a gap.
func (m *Marks) KeepLowered(name string) {
	if err := m.Keep(name); err != nil {
		m.state.log.Warn("returned numbers not kept",
			logfield.Sequence(define.ShownName(name)), logfield.Err(err))
	}
}

// TicketMark returns the highest number that an earlier process reserved of a ticket table.
func (s *State) TicketMark(full string) uint64 {
	if s.File == nil {
		return 0
	}
	value, _ := s.File.Get(s.key(stateTicket, full))
	high, _ := strconv.ParseUint(value, 10, 64) // check has accepted it
	return high
}

// KeepTicket returns when the mark of a ticket table is on disk. Errors wrap ErrNotKept.
func (s *State) KeepTicket(full string, high uint64) error {
	return s.wait(s.put(stateTicket, full, strconv.FormatUint(high, 10)))
}

// Owners returns the last list of columns with sequences, as JSON; false if there is none.
func (s *State) Owners() (text string, ok bool) {
	if s.File == nil {
		return "", false
	}
	return s.File.Get(s.key(stateOwners, ""))
}

// KeepOwners remembers the list of columns with sequences, as JSON. It only logs a failure: this
// process has the list, and only the next one lacks it.
func (s *State) KeepOwners(text string) {
	if err := s.wait(s.put(stateOwners, "", text)); err != nil {
		s.log.Warn("owned columns not kept", logfield.Err(err))
	}
}

// Failing reports whether the last write failed; kept is false if nothing is kept.
func (s *State) Failing() (failing, kept bool) {
	if s.File == nil {
		return false, false
	}
	return s.File.Failing(), true
}
