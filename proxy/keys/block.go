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
// there are. A block of numbers is taken, and the server counts them off itself: each evaluation is
// LAST_INSERT_ID(LAST_INSERT_ID()+1), from the number before the block on, which a statement of
// ours sets.
//
// A value set before a statement may be lost, or be another's. It does no harm here: each
// evaluation checks that its number is one of the block, and the whole statement fails if it is not
// (statement.AsCounted). The block is this statement's alone and each evaluation rises, however
// often the server evaluates the call for a row, so no two rows have one number, wherever it began.
// The rest of the block is a gap.
//
// A block that is too small makes the statement fail as a whole, and it is sent again
// with a larger one. So it may be done only where a statement that fails leaves nothing:
// in a transactional table without triggers, and without IGNORE. And the rows must be
// what goes into the binary log: a replica that ran the text would count from elsewhere.

// Block is such a statement, and the block that it counts off.
type Block struct {
	plan.Counts
	// Of the server that counts, once it is Countable.
	ask       Asker
	conn      *backend.Conn
	lastID    *state.LastInsertID // the session's
	generates bool                // the table has an AUTO_INCREMENT column, and may generate values for it

	taken             sequence.Taken
	first, last, step uint64 // values
	rest              uint64 // from a value to the last number that is taken with it
	limited           error  // why the block could not be larger
}

// Asker asks the server that the statement goes to.
type Asker interface {
	// Ask runs a statement of ours, AskAll a SHOW of which every row counts, and AskRow a SELECT of n
	// values in one row, which are what.
	Ask(c *backend.Conn, sql string) ([][][]byte, error)
	AskAll(c *backend.Conn, show string) ([][][]byte, error)
	AskRow(c *backend.Conn, sql string, n int, what string) ([][]byte, error)
	// BringLastID makes LAST_INSERT_ID() there what it is for the session; with keep, what the last
	// statement left there stays.
	BringLastID(c *backend.Conn, keep bool) error
}

// blockGrowth is how much larger a block is than one that was too small.
const blockGrowth = 10

// number is the block as statement.AsCounted has it.
func (n *Block) number() Number {
	return Number{Value: n.first - n.step, Last: n.last - n.step, Step: n.step}
}

// Space has the numbers of the key be increment apart, as drivers think that they are.
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

// block takes a block of n.Size numbers and has the server count from it.
func (t *Taker) block(n *Block) error {
	l := n.lastID
	got, err := t.sequences.TakeRun(&t.Patience, n.Sequence, n.Size*n.Count)
	for (errors.Is(err, sequence.ErrExhausted) || errors.Is(err, sequence.ErrSeveral)) && n.Size > 1 {
		// there may be enough for the rows
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
		t.notice = got.Notice
	}
	n.taken, n.rest = got, (n.Count-1)*got.Step
	n.first, n.step = got.First, got.Step*n.Count
	n.last = n.first + (n.Size-1)*n.step
	if n.first < n.step { // there is no number a step before it
		if n.Size == 1 {
			return t.block(n) // the next is larger
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
			return fmt.Errorf("LAST_INSERT_ID() of shard %s: %w", n.conn.Shard().Name(), err)
		}
		// It stays what it was unless the statement has set another: the server has a number of
		// nobody's now.
		l.Given(previous)
	}
	l.Rows = true // what the server says of rows is true
	return nil
}

// errNotCounted refuses texts, which the server cannot count off.
func errNotCounted(name []byte) error {
	return protocol.NotSupported("NEXTVAL for each row of sequence %s, whose keys are texts, is not supported: write NEXTVAL in each row of VALUES, or take the keys one by one", name)
}

// smaller is how many rows to try after there were not so many numbers in a row: as many as there
// are, if the error says that.
func smaller(err error, n *Block) uint64 {
	var few fits
	if errors.As(err, &few) && few.Fits()/n.Count < n.Size {
		return max(few.Fits()/n.Count, 1)
	}
	return max(n.Size/blockGrowth, 1)
}

// TooSmall reports whether an answer is that of a statement that wanted more numbers than the block
// has.
func (n *Block) TooSmall(payload []byte) bool {
	var e *protocol.ServerError
	return payload[0] == 0xff && errors.As(protocol.ParseServerError(payload), &e) && e.Code == mysql.ER_DATA_OUT_OF_RANGE &&
		strings.Contains(e.Message, "(last_insert_id() | 1) + 18446744073709551615")
}

// Grow makes the next block a larger one. An error is why there is none.
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

// Answered appends to b the packet of a server's answer for the client, with a number. It records
// what the statement has done to LAST_INSERT_ID(), whose value the connection on then has: the same
// as before if no number was given, else the last number, as with LAST_INSERT_ID(n). INSERT and
// REPLACE answer with the first, as with keys that the server generates for many rows: that is what
// drivers count from.
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
		// It may be a value that the server generated.
		given = !n.Updates && id == n.first+(affected*n.Calls-1)*n.step
	}
	rest := payload[1+k+size:]
	last := n.last
	if given {
		last = id
	}
	// Behind a stored function the servers do not send it.
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
	at := len(b)
	b = append(b, 0, 0, 0, 0)
	b = append(b, payload[:1+k]...)
	b = protocol.AppendLenEncInt(b, n.first)
	b = append(b, rest...)
	protocol.PutHeader(b[at:], len(b)-at-protocol.HeaderSize, num)
	return b
}

// foundNoRows reports whether an OK packet, from its status flags on, has the text with the number
// of rows that a statement found, and that is 0.
func foundNoRows(b []byte) bool {
	if len(b) < 5 {
		return false
	}
	size, k, ok := protocol.ReadLenEncInt(b[4:])
	if b = b[4+k:]; !ok || size > uint64(len(b)) {
		return false
	}
	// in whichever language
	text := strings.TrimLeftFunc(string(b[:size]), func(r rune) bool { return r < '0' || r > '9' })
	return len(text) > 1 && text[0] == '0' && (text[1] < '0' || text[1] > '9')
}
