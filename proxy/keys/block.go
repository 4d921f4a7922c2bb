package keys

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/go-mysql-org/go-mysql/mysql"

	"seqproxy/backend"
	"seqproxy/protocol"
	"seqproxy/proxy/plan"
	"seqproxy/proxy/state"
	"seqproxy/sequence"
)

// INSERT ... SELECT and UPDATE with a number for each row. Only the server knows how many rows
// there are. So the proxy takes a block of numbers, and the server counts within it: each
// evaluation is LAST_INSERT_ID(LAST_INSERT_ID()+1). A statement of the proxy's own first sets
// LAST_INSERT_ID() to the number before the block.
//
// That value may be lost, or be another's. It does no harm: each evaluation checks that its number
// is in the block, and otherwise the whole statement fails (statement.AsCounted). The block belongs
// to this statement alone, and each evaluation counts up, however often the server evaluates the
// call for a row. So no two rows have one number, wherever the count began. The rest of the block
// is a gap.
//
// A block that is too small makes the whole statement fail, and the proxy sends it again with a
// larger one. So a failed statement must leave nothing: the table has transactions and no triggers,
// and the statement has no IGNORE. And the binary log must have rows: a replica that ran the text
// would count from elsewhere.

// Block is a statement whose numbers the server counts, and its block.
type Block struct {
	plan.Counts
	// The server that counts. Countable sets these.
	ask       Asker
	conn      *backend.Conn
	lastID    *state.LastInsertID // the session's
	generates bool                // the server may generate values for an AUTO_INCREMENT column

	taken             sequence.Taken
	first, last, step uint64 // values
	rest              uint64 // from a value to the last number of its call
	limited           error  // why a larger block is impossible
}

// Asker asks the statement's server.
type Asker interface {
	// Ask runs a statement of the proxy's own, AskAll a SHOW that must return all rows, and AskRow
	// a SELECT of n values in one row. what names these in an error.
	Ask(c *backend.Conn, sql string) ([][][]byte, error)
	AskAll(c *backend.Conn, show string) ([][][]byte, error)
	AskRow(c *backend.Conn, sql string, n int, what string) ([][]byte, error)
	// BringLastID gives LAST_INSERT_ID() there the session's value. keep preserves what the last
	// statement has left there.
	BringLastID(c *backend.Conn, keep bool) error
}

// blockGrowth is the factor from a block that was too small to the next.
const blockGrowth = 10

// number returns the block as statement.AsCounted needs it.
func (n *Block) number() Number {
	return Number{Value: n.first - n.step, Last: n.last - n.step, Step: n.step}
}

// Space sets the distance of the key's numbers to increment, which drivers expect.
func (t *Taker) Space(n *Block, increment uint64) error {
	apart, err := t.sequences.Step(&t.Patience, n.Sequence)
	if err = t.Patience.Over(err); err != nil {
		return err
	}
	if increment%apart != 0 {
		return protocol.NotSupported("%v", &apartError{n.Key, apart, increment})
	}
	n.Count = increment / apart
	n.Size = min(n.Size, n.Most())
	return nil
}

// block takes a block of n.Size numbers and makes the server count from it.
func (t *Taker) block(n *Block) error {
	l := n.lastID
	got, err := t.sequences.TakeRun(&t.Patience, n.Sequence, n.Size*n.Count)
	for (errors.Is(err, sequence.ErrExhausted) || errors.Is(err, sequence.ErrSeveral)) && n.Size > 1 {
		// Fewer numbers may be enough for the rows.
		n.limited = t.Patience.Over(err)
		n.Size = smaller(err, n)
		got, err = t.sequences.TakeRun(&t.Patience, n.Sequence, n.Size*n.Count)
	}
	if err = t.Patience.Over(err); err != nil {
		return err
	}
	if got.Text != "" {
		return errNotCounted(n.Sequence)
	}
	if got.Notice != "" {
		t.Pending = got.Notice
	}
	n.taken, n.rest = got, (n.Count-1)*got.Step
	n.first, n.step = got.First, got.Step*n.Count
	n.last = n.first + (n.Size-1)*n.step
	if n.first < n.step { // no number is a step before the first
		if n.Size == 1 {
			return t.block(n) // the next number is larger
		}
		n.first += n.step
	}
	if !l.Pending {
		if err := n.ask.BringLastID(n.conn, false); err != nil {
			return err
		}
	}
	before := strconv.FormatUint(n.first-n.step, 10)
	row, err := n.ask.AskRow(n.conn, "SELECT LAST_INSERT_ID(), LAST_INSERT_ID("+before+")", 2, "LAST_INSERT_ID()")
	if err != nil {
		return err
	}
	if !l.Pending {
		previous, err := strconv.ParseUint(string(row[0]), 10, 64)
		if err != nil {
			return fmt.Errorf("LAST_INSERT_ID() of shard %s: %w", n.conn.Shard.Name(), err)
		}
		// The session keeps its value unless the statement sets another: the server's is of the
		// block now.
		l.Given(previous)
	}
	l.Rows = true // the server is right about rows
	return nil
}

// errNotCounted refuses texts, which the server cannot count.
func errNotCounted(name []byte) error {
	return protocol.NotSupported("%s", plan.NotCounted(name))
}

// smaller returns the size to try if a block had too few numbers in a row: as many as there are, if
// the error says that.
func smaller(err error, n *Block) uint64 {
	var few fits
	if errors.As(err, &few) && few.Fits()/n.Count < n.Size {
		return max(few.Fits()/n.Count, 1)
	}
	return max(n.Size/blockGrowth, 1)
}

// TooSmall reports whether an answer is the error of a statement that needs more numbers than the
// block has.
func (n *Block) TooSmall(payload []byte) bool {
	var e *protocol.ServerError
	return payload[0] == 0xff && errors.As(protocol.ParseServerError(payload), &e) && e.Code == mysql.ER_DATA_OUT_OF_RANGE &&
		strings.Contains(e.Message, "(last_insert_id() | 1) + 18446744073709551615")
}

// Grow makes the next block larger. The error says why that is impossible.
func (n *Block) Grow() error {
	switch {
	case n.limited != nil:
		return n.limited
	case n.Size >= n.Most():
		return protocol.NotSupported("NEXTVAL for each of more than %d rows of one statement is not supported: change them in parts", n.Size/n.Calls)
	}
	n.Size = min(n.Size*blockGrowth, n.Most())
	return nil
}

// Answered appends to b the packet of a server's answer for the client, with the packet number num.
// It records what has become of LAST_INSERT_ID() on the connection on: without a number it stays,
// else it is the last number, as with LAST_INSERT_ID(n). INSERT and REPLACE answer with the first
// number, like keys that the server generates for many rows, because drivers count from it.
func (t *Taker) Answered(b, payload []byte, num uint8, n *Block, on state.ConnID) []byte {
	if payload[0] != 0 {
		b, _ = protocol.AppendPacket(b, payload, num)
		return b
	}
	l := n.lastID
	affected, k, _ := protocol.ReadLenEncInt(payload[1:])
	id, size, _ := protocol.ReadLenEncInt(payload[1+k:])
	given := id >= n.first && id <= n.last
	if given && n.generates {
		// The server may have generated the value.
		given = !n.Updates && id == n.first+(affected*n.Calls-1)*n.step
	}
	rest := payload[1+k+size:]
	last := n.last
	if given {
		last = id
	}
	// Servers do not send the id after a stored function.
	untold := id == 0 && n.Routines && !foundNoRows(rest)
	if id != 0 || untold {
		t.lasts.took(n.taken.Of, last+n.rest)
		*l = state.LastInsertID{Holder: on}
	}
	if n.Insert && (given || untold) {
		l.Given(n.first)
		l.Rows = true
	}
	if !n.Insert || !given {
		b, _ = protocol.AppendPacket(b, payload, num)
		return b
	}
	return protocol.AppendOKFor(b, payload, n.first, num)
}

// foundNoRows reports whether an OK packet, from its status flags on, has a text that counts found
// rows, and the count is 0.
func foundNoRows(b []byte) bool {
	if len(b) < 5 {
		return false
	}
	size, k, ok := protocol.ReadLenEncInt(b[4:])
	if b = b[4+k:]; !ok || size > uint64(len(b)) {
		return false
	}
	// The text before the count may be in any language.
	text := strings.TrimLeftFunc(string(b[:size]), func(r rune) bool { return r < '0' || r > '9' })
	return len(text) > 1 && text[0] == '0' && (text[1] < '0' || text[1] > '9')
}
