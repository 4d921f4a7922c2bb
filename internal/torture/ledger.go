package torture

import (
	"bufio"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
)

// entry is what a proxy logs of numbers, on the level debug.
type entry struct {
	Event    string `json:"event"`
	Server   string `json:"server"`
	Sequence string `json:"sequence"`
	Above    uint64 `json:"above"`
	First    uint64 `json:"first"`
	Last     uint64 `json:"reserved_up_to"`
	Reserved uint64 `json:"reserved"`
	Given    uint64 `json:"given"`
	Skipped  uint64 `json:"passed_over"`
	Unknown  uint64 `json:"outcome_unknown"`
	Held     uint64 `json:"held"`
	Err      string `json:"err"`
}

// ledger is what a process that has ended in order says of its numbers.
type ledger struct {
	proxy, life int
	entries     []entry
}

// readLedger reads it from a proxy's log.
func readLedger(proxy, life int, path string) (l ledger, err error) {
	l.proxy, l.life = proxy, life
	f, err := os.Open(path)
	if err != nil {
		return l, err
	}
	defer f.Close() //nolint:errcheck // only read
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 1<<20)
	stopped := false
	for lines.Scan() {
		stopped = stopped || strings.Contains(lines.Text(), `"event":"stopped"`)
		if !strings.Contains(lines.Text(), `"event":"numbers `) {
			continue
		}
		var e entry
		if err := json.Unmarshal(lines.Bytes(), &e); err != nil {
			return l, fmt.Errorf("%s: %w", lines.Text(), err)
		}
		l.entries = append(l.entries, e)
	}
	if err := lines.Err(); err != nil {
		return l, err
	}
	if !stopped {
		return l, errors.New("its log does not say that it stopped")
	}
	return l, nil
}

// of are the entries of a sequence.
func (l *ledger) of(sequence string) (some []entry) {
	for _, e := range l.entries {
		if e.Sequence == sequence {
			some = append(some, e)
		}
	}
	return some
}

// split says which numbers are those of one sequence server, as docs/sequence-servers.md has it.
type split struct {
	count, position uint64 // of how many, which one, from 0
	block           uint64 // 0: by steps
}

// owns reports whether n is one of its numbers.
func (s split) owns(n uint64) bool {
	switch {
	case n == 0:
		return false
	case s.count == 1:
		return true
	case s.block == 0:
		return (n-1)%s.count == s.position
	}
	return (n-1)/s.block%s.count == s.position
}

// step is between two of its numbers that follow each other, within a block.
func (s split) step() uint64 {
	if s.count > 1 && s.block == 0 {
		return s.count
	}
	return 1
}

// take is where a reservation of n numbers lies if the row stands at id, and no number up to above may be given.
func (s split) take(id, above, n uint64) (first, last uint64) {
	at := max(id, above)
	switch {
	case s.count == 1:
		return at + 1, at + n
	case s.block == 0:
		for first = at + 1; !s.owns(first); {
			first++
		}
		return first, first + (n-1)*s.count
	}
	if begun := at % s.block; s.owns(at+1) && begun+n <= s.block {
		return at + 1, at + n // in a block that was begun, or at the start of one
	}
	first = (at+s.block-1)/s.block*s.block + 1
	for !s.owns(first) {
		first += s.block
	}
	whole := (n - 1) / s.block // blocks before the last one
	last = first + whole*s.count*s.block
	if whole > 0 {
		return first, last + s.block - 1
	}
	return first, last + n - 1
}

// move is something that moved a row, or may have.
type move struct {
	what        string
	unsure      bool
	back        bool   // from last to below first
	first, last uint64 // where it is known
	above, n    uint64
}

func (m *move) String() string {
	return fmt.Sprintf("%s %d-%d (%d, above %d)", m.what, m.first, m.last, m.n, m.above)
}

// target is where a row stands after something was given back.
func (m *move) target(s split) uint64 { return m.first - min(s.step(), m.first) }

// from is where the row stands after m if it was at id before; false if m cannot have happened there.
func (m *move) from(id uint64, s split) (uint64, bool) {
	if m.back {
		return m.target(s), m.last == id
	}
	first, last := s.take(id, m.above, m.n)
	return last, m.unsure || first == m.first && last == m.last
}

// retraceSteps bounds the search for the way of a row. Nearly always each step is the only one that is possible.
const retraceSteps = 100_000

// retrace finds an order in which all that is known to have happened to a row, and some of what may have, leads from where it stood to where it stands. So there is no
// number between of which it is not known why it is used, or by nobody: it was reserved, or it lies below what its taker had from another server, or in a rest of a
// block that was too short. The error says how far it came.
func retrace(s split, from, to uint64, moves []move) error {
	slices.SortFunc(moves, func(a, b move) int {
		return cmp.Or(cmp.Compare(asNumber(a.unsure), asNumber(b.unsure)), cmp.Compare(a.last, b.last), cmp.Compare(asNumber(a.back), asNumber(b.back)))
	})
	t := tracer{split: s, to: to, moves: moves, used: make([]bool, len(moves)), failed: make(map[[2]uint64]bool), budget: retraceSteps, best: len(moves) + 1}
	for _, m := range moves {
		t.names = append(t.names, rand.Uint64())
		t.left += 1 - asNumber(m.unsure)
	}
	must := t.left
	if t.walk(from) {
		return nil
	}
	why := "nothing that is known"
	if t.budget < 0 {
		why = "no order that was tried"
	}
	return fmt.Errorf("%s leads from %d to %d: after %d of %d moves it is at %d; left are %s", why, from, to, must-t.best, must, t.bestAt, strings.Join(few(t.rest), ", "))
}

// tracer is the search of retrace.
type tracer struct {
	split  split
	to     uint64
	moves  []move // the sure ones first, by their last numbers
	names  []uint64
	used   []bool
	left   int                // how many that are sure are not used
	failed map[[2]uint64]bool // where the row was, and the names of what was used
	name   uint64             // of what is used: that of each, by exclusive or
	budget int

	best   int // how few were left
	bestAt uint64
	rest   []string // them
}

// walk goes on from id, and reports whether that led to the end.
func (t *tracer) walk(id uint64) bool {
	if t.left == 0 && id == t.to {
		return true
	}
	key := [2]uint64{id, t.name}
	if t.budget--; t.budget < 0 || t.failed[key] {
		return false
	}
	if t.left < t.best {
		t.best, t.bestAt, t.rest = t.left, id, nil
		for i := range t.moves {
			if !t.used[i] {
				t.rest = append(t.rest, t.moves[i].String())
			}
		}
	}
	low := id // the row comes no lower
	for i := range t.moves {
		if m := &t.moves[i]; m.back && !t.used[i] {
			low = min(low, m.target(t.split))
		}
	}
	for i := range t.moves {
		if m := &t.moves[i]; !m.back && !m.unsure && !t.used[i] && m.first <= low {
			t.failed[key] = true
			return false // it was passed, and its turn does not come
		}
	}
	for i := range t.moves {
		m := &t.moves[i]
		next, ok := m.from(id, t.split)
		if !ok || t.used[i] {
			continue
		}
		t.turn(i, true)
		if t.walk(next) {
			return true
		}
		t.turn(i, false)
	}
	t.failed[key] = true
	return false
}

// turn uses a move, or undoes that.
func (t *tracer) turn(i int, on bool) {
	t.used[i] = on
	t.name ^= t.names[i]
	if t.moves[i].unsure {
		return
	}
	if t.left++; on {
		t.left -= 2
	}
}

func asNumber(b bool) int {
	if b {
		return 1
	}
	return 0
}

// receipts are what clients had of one process and sequence.
type receipts struct {
	numbers []uint64
	unsure  uint64 // how many were asked for without an answer
}

// balance compares what a process says of a sequence with what clients received from it: each number that they have is one that it reserved and did not give back, and what it
// reserved is given, passed over, given back, or left over. It returns the numbers that it kept.
func balance(entries []entry, s []split, got receipts) (kept map[uint64]bool, wrong []string) {
	kept = make(map[uint64]bool)
	each := func(e *entry, f func(n uint64)) {
		for _, one := range s {
			if !one.owns(e.First) {
				continue
			}
			for n := e.First; n <= e.Last; n += one.step() {
				if one.owns(n) {
					f(n)
				}
			}
		}
	}
	var reserved, back, refused uint64
	var said *entry
	for i := range entries {
		switch e := &entries[i]; e.Event {
		case "numbers reserved":
			reserved += e.Reserved
			each(e, func(n uint64) { kept[n] = true })
		case "numbers given back":
			back += e.Held
			each(e, func(n uint64) { delete(kept, n) })
		case "numbers not given back":
			refused += e.Held
		case "numbers of a sequence":
			said = e
		}
	}
	if said == nil {
		if len(got.numbers) > 0 || reserved > 0 {
			wrong = append(wrong, "it says nothing of them at its end")
		}
		return kept, wrong
	}
	if uint64(len(kept)) != reserved-back {
		wrong = append(wrong, fmt.Sprintf("it reserved %d numbers and gave %d back, and has %d different ones", reserved, back, len(kept)))
	}
	if reserved != said.Reserved {
		wrong = append(wrong, fmt.Sprintf("it reserved %d numbers and says %d", reserved, said.Reserved))
	}
	if sum := said.Given + said.Skipped + said.Held + back + refused; sum != said.Reserved {
		wrong = append(wrong, fmt.Sprintf("of %d numbers that it reserved it gave %d, passed over %d, gave back %d, could not give back %d and has %d left: that makes %d",
			said.Reserved, said.Given, said.Skipped, back, refused, said.Held, sum))
	}
	if have := uint64(len(got.numbers)); said.Given < have || said.Given > have+got.unsure {
		wrong = append(wrong, fmt.Sprintf("it gave %d numbers; clients received %d, and asked for %d without an answer", said.Given, have, got.unsure))
	}
	for _, n := range got.numbers {
		if !kept[n] {
			wrong = append(wrong, fmt.Sprintf("clients received %d, which it did not have", n))
		}
	}
	return kept, few(wrong)
}
