package torture

import (
	"bufio"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// entry is what a proxy logs of numbers, on the level debug.
type entry struct {
	Time     time.Time `json:"ts"`
	Event    string    `json:"event"`
	Server   string    `json:"server"`
	Sequence string    `json:"sequence"`
	Above    uint64    `json:"above"`
	Wanted   uint64    `json:"wanted"`
	First    uint64    `json:"first"`
	Last     uint64    `json:"reserved_up_to"`
	Reserved uint64    `json:"reserved"`
	Given    uint64    `json:"given"`
	Skipped  uint64    `json:"passed_over"`
	Unknown  uint64    `json:"outcome_unknown"`
	Held     uint64    `json:"held"`
	Was      uint64    `json:"was"`
	At       uint64    `json:"at"`
	Why      string    `json:"why"`
	Err      string    `json:"err"`
}

// Events that entries are of.
const (
	entryAsked    = "numbers asked for"
	entryReserved = "numbers reserved"
	entryUnseen   = "numbers given up unseen"
	entryStub     = "numbers of a stub given up unseen"
	entryBack     = "numbers given back"
	entryVain     = "numbers reserved in vain"
	entrySum      = "numbers of a sequence"
	entrySet      = "row to be set"
)

// ledger is what a process says of its numbers.
type ledger struct {
	proxy, life int
	stopped     bool // in order: then it said all
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
	var torn error
	for lines.Scan() {
		l.stopped = l.stopped || strings.Contains(lines.Text(), `"event":"stopped"`)
		if !strings.Contains(lines.Text(), `"event":"numbers `) && !strings.Contains(lines.Text(), `"event":"`+entrySet+`"`) {
			continue
		}
		if torn != nil {
			return l, torn
		}
		var e entry
		if err := json.Unmarshal(lines.Bytes(), &e); err != nil {
			torn = fmt.Errorf("%s: %w", lines.Text(), err) // as the last line of a killed process may be
			continue
		}
		l.entries = append(l.entries, e)
	}
	return l, lines.Err()
}

// ledgers are those of all processes that there were.
func (w *world) ledgers() (all []ledger, err error) {
	for _, p := range w.proxies {
		_, lives := p.current()
		for life := 1; life <= lives; life++ {
			l, err := readLedger(p.number, life, filepath.Join(p.dir, logName(p.number, life)))
			if err != nil {
				return nil, fmt.Errorf("proxy %d: %w", p.number, err)
			}
			all = append(all, l)
		}
	}
	return all, nil
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

// each calls f for all numbers of a reservation.
func (s split) each(first, last uint64, f func(n uint64)) {
	for n := first; n <= last; n++ {
		if s.owns(n) {
			f(n)
		}
	}
}

// frozen is what the row of a sequence holds that nobody may reserve of.
const frozen = math.MaxUint64

// move is something that has moved a row, or may have.
type move struct {
	what  string
	at    time.Time
	sure  bool   // it has
	to    uint64 // where the row stands afterwards; 0 if that is not known
	fits  func(*change) bool
	taken int // which change it is, from 1
}

// taking is a move that reserves n numbers above a floor; first and last are 0 where they are not known.
func taking(what string, sure bool, at time.Time, first, last, above, n uint64) move {
	what = fmt.Sprintf("%s %d numbers above %d", what, n, above)
	if first > 0 {
		what += fmt.Sprintf(", %d-%d", first, last)
	}
	return move{what: what, sure: sure, at: at, to: last, fits: func(c *change) bool {
		if c.made || c.deleted || c.before == frozen || last > 0 && c.after != last {
			return false
		}
		from, to := c.split.take(c.before, above, n)
		return to == c.after && (first == 0 || first == from)
	}}
}

// setting is a move that sets a row to a number.
func setting(what string, sure bool, at time.Time, to uint64) move {
	return move{what: fmt.Sprintf("%s to %d", what, to), sure: sure, at: at, to: to, fits: func(c *change) bool { return c.after == to }}
}

// moves are what a ledger says of the rows of a sequence, by the name of the server.
func (l *ledger) moves(sequence string) map[string][]move {
	by := make(map[string][]move)
	who := fmt.Sprintf("proxy %d, process %d: ", l.proxy, l.life)
	add := func(e *entry, m move) { by[e.Server] = append(by[e.Server], m) }
	var asked *entry
	entries := l.of(sequence)
	for i := range entries {
		switch e := &entries[i]; e.Event {
		case entryAsked:
			asked = e
		case entryReserved:
			asked = nil
			add(e, taking(who+"reserved", true, e.Time, e.First, e.Last, e.Above, e.Reserved))
		case entryUnseen:
			asked = nil
			add(e, taking(who+"may have reserved", false, e.Time, 0, 0, e.Above, e.Unknown))
		case entryBack:
			add(e, move{what: fmt.Sprintf("%sgave back %d-%d", who, e.First, e.Last), sure: true, at: e.Time, fits: func(c *change) bool {
				return c.before == e.Last && c.after < e.First
			}})
		case entrySet:
			add(e, setting(who+e.Why+", set", false, e.Time, e.At))
		}
	}
	if asked != nil && !l.stopped {
		add(asked, taking(who+"asked last for", false, asked.Time, 0, 0, asked.Above, asked.Wanted))
	}
	return by
}

// explain finds for each change of a row a move that made it, and for each move that is sure a change. No move makes two changes. It returns what is left of both.
func explain(changes []change, moves []move) (unexplained []*change, unmade []*move) {
	x := explanation{changes: changes, moves: moves, to: make(map[uint64][]int)}
	for _, sure := range []bool{true, false} {
		for i := range moves {
			if m := &moves[i]; m.sure == sure {
				x.to[m.to] = append(x.to[m.to], i)
			}
		}
	}
	for i := range changes {
		if !x.assign(i, make(map[int]bool)) {
			unexplained = append(unexplained, &changes[i])
		}
	}
	// What is sure has happened: it takes the place of what may have.
	for i := range moves {
		if m := &moves[i]; m.sure && m.taken == 0 && !x.claim(i) {
			unmade = append(unmade, m)
		}
	}
	return unexplained, unmade
}

// explanation is the search of explain.
type explanation struct {
	changes []change
	moves   []move
	to      map[uint64][]int // moves by where the row stands afterwards; the sure ones first
}

// assign gives a change to a move, which may have another give up its own for one that fits it, too.
func (x *explanation) assign(i int, seen map[int]bool) bool {
	c := &x.changes[i]
	some := x.to[c.after]
	if c.after != 0 {
		some = slices.Concat(some, x.to[0])
	}
	for _, k := range some {
		m := &x.moves[k]
		if seen[k] || !m.fits(c) {
			continue
		}
		seen[k] = true
		if m.taken == 0 || x.assign(m.taken-1, seen) {
			m.taken = i + 1
			return true
		}
	}
	return false
}

// claim gives a move a change that one has which is not sure.
func (x *explanation) claim(k int) bool {
	for i := range x.moves {
		m := &x.moves[i]
		if !m.sure && m.taken > 0 && x.moves[k].fits(&x.changes[m.taken-1]) {
			x.moves[k].taken, m.taken = m.taken, 0
			return true
		}
	}
	return false
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
// reserved is given, passed over, given back, or left over. Of a process that was killed only the first is known. splitOf is that of the server whose row stood at a number.
func (l *ledger) balance(sequence string, splitOf func(server string, last uint64) (split, bool), got receipts) (wrong []string) {
	kept := make(map[uint64]int)  // how often: a sequence may begin again
	vain := make(map[uint64]bool) // by the last number
	var reserved, back, missing uint64
	var said *entry
	entries := l.of(sequence)
	for i := range entries {
		e := &entries[i]
		var each func(f func(n uint64))
		if e.Event == entryReserved || e.Event == entryBack {
			s, ok := splitOf(e.Server, e.Last)
			if !ok {
				missing++ // it was found not to be stored, which is told elsewhere
				continue
			}
			each = func(f func(n uint64)) { s.each(e.First, e.Last, f) }
		}
		switch e.Event {
		case entryReserved:
			delete(vain, e.Last)
			reserved += e.Reserved
			each(func(n uint64) { kept[n]++ })
		case entryBack:
			if !vain[e.Last] {
				back += e.Held
			}
			each(func(n uint64) { kept[n]-- })
		case entryVain:
			vain[e.Last] = true
			reserved -= e.Held
		case entrySum:
			said = e
		}
	}
	have := uint64(len(got.numbers))
	for _, n := range got.numbers {
		if kept[n]--; kept[n] < 0 {
			wrong = append(wrong, fmt.Sprintf("clients received %d, which it did not have", n))
		}
	}
	if !l.stopped || missing > 0 {
		return few(wrong)
	}
	if said == nil {
		if have > 0 || reserved > 0 {
			wrong = append(wrong, "it says nothing of them at its end")
		}
		return few(wrong)
	}
	if reserved != said.Reserved {
		wrong = append(wrong, fmt.Sprintf("it reserved %d numbers and says %d", reserved, said.Reserved))
	}
	if sum := said.Given + said.Skipped + said.Held + back; sum != said.Reserved {
		wrong = append(wrong, fmt.Sprintf("of %d numbers that it reserved it gave %d, passed over %d, gave back %d and has %d left: that makes %d",
			said.Reserved, said.Given, said.Skipped, back, said.Held, sum))
	}
	if said.Given < have || said.Given > have+got.unsure {
		wrong = append(wrong, fmt.Sprintf("it gave %d numbers; clients received %d, and asked for %d without an answer", said.Given, have, got.unsure))
	}
	return few(wrong)
}
