package proxy

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"seqproxy/backend"
	"seqproxy/protocol"
	"seqproxy/proxy/plan"
	"seqproxy/sequence"
	"seqproxy/statement"
)

// blockGrowth is how much larger a block is than one that was too small.
const blockGrowth = 10

// blockPart is a part of a block, as a parameter of a prepared statement.
type blockPart uint8

const (
	noBlock blockPart = iota
	blockBefore
	blockBound
	blockStep
)

// part returns a part of the block as AsCounted has it.
func (n *counted) part(p blockPart) uint64 {
	switch p {
	case blockBefore:
		return n.first - n.step
	case blockBound:
		return n.last - n.step
	}
	return n.step
}

// substitute has the calls that are served count the block off.
func (n *counted) substitute(subs []statement.Substitution, slots []plan.Slot) {
	for i := range subs {
		if slots[i].Served() {
			subs[i] = statement.Substitution{
				Replacement: statement.AsCounted, Value: n.part(blockBefore), Bound: n.part(blockBound), Step: n.part(blockStep),
			}
		}
	}
}

// takeBlock takes a block of n.Size numbers and has c count from it.
func (s *session) takeBlock(c *backend.Conn, n *counted) error {
	t, err := s.numbers.Block(n.Sequence, n.Size*n.Count)
	for (errors.Is(err, sequence.ErrExhausted) || errors.Is(err, sequence.ErrSeveral)) && n.Size > 1 { // there may be enough for the rows
		n.limited = s.numbers.Patience.Over(err)
		n.Size = max(n.Size/blockGrowth, 1)
		t, err = s.numbers.Block(n.Sequence, n.Size*n.Count)
	}
	if err = s.numbers.Patience.Over(err); err != nil {
		return err
	}
	s.numbers.Blocked(t)
	n.block, n.rest = t, (n.Count-1)*t.Step
	n.first, n.step = t.First, t.Step*n.Count
	n.last = n.first + (n.Size-1)*n.step
	if n.first < n.step { // there is no number a step before it
		if n.Size == 1 {
			return s.takeBlock(c, n) // the next is larger
		}
		n.first += n.step
	}
	l := &s.state.LastID
	if !l.Pending {
		if err := s.bringLastID(c, false); err != nil {
			return err
		}
	}
	before := strconv.FormatUint(n.first-n.step, 10)
	row, err := s.ownRow(c, "SELECT LAST_INSERT_ID(), LAST_INSERT_ID("+before+")", 2, "LAST_INSERT_ID()")
	if err != nil {
		return err
	}
	if !l.Pending {
		previous, err := strconv.ParseUint(string(row[0]), 10, 64)
		if err != nil {
			return fmt.Errorf("LAST_INSERT_ID() of shard %s: %w", c.Shard().Name(), err)
		}
		// It stays what it was unless the statement tells of another: the server's own is
		// a number of nobody's now.
		l.Given(previous)
	}
	l.Rows = true // what the server says of rows is true
	return nil
}

// tellsOfNoRows says whether an OK packet, from its status flags on, has the text that
// tells how many rows a statement found, and that there were none.
func tellsOfNoRows(b []byte) bool {
	if len(b) < 5 {
		return false
	}
	size, k, ok := protocol.ReadLenEncInt(b[4:])
	if b = b[4+k:]; !ok || size > uint64(len(b)) {
		return false
	}
	text := strings.TrimLeftFunc(string(b[:size]), func(r rune) bool { return r < '0' || r > '9' }) // in whichever language
	return len(text) > 1 && text[0] == '0' && (text[1] < '0' || text[1] > '9')
}
