package plan

import "seqproxy/statement"

// Numbers are those that a statement needs: how many, of what, and into which slots. How they get
// into it is the encoder's affair: a text has them spliced in, an execution has parameters for
// them, a bulk execution as many for each row.
type Numbers struct {
	Slots  []Slot   // of the calls, in their order. The When of each says when it gets its value
	Fill   *Filling // each of its keys gets numbers before the statement is sent; nil: there are none
	Rows   *Rows    // what each row of the answer gets; nil: nothing
	Counts *Counts  // what the server counts off; nil: nothing
}

// Traits returns those of the statement as it is sent. What it asks the server for in place of the
// numbers of rows does not move LAST_INSERT_ID() there. What that was before a block is counted off
// is brought by the statement that begins to count.
func (n *Numbers) Traits(t Traits) Traits {
	if n.Rows != nil && !n.Rows.Inserts || n.Counts != nil {
		t.MovesLastID = false
	}
	return t
}

// Rows are the columns of a statement's result that are numbers of sequences. The server is
// asked for a placeholder in their place, which is constant, so that nothing it does with the
// rows depends on how often it evaluates it; the numbers are written over it as the rows pass.
// So there is one for each row that the client gets, and none for others.
type Rows struct {
	Columns []int  // as protocol.FillOptions has them
	Slots   []Slot // by column, taken once for each row

	// Inserts: they are those of RETURNING of INSERT or REPLACE, after which the server
	// itself knows best what LAST_INSERT_ID() is.
	Inserts bool
	// Lead is the slot of the statement whose number, the first of the first row, is made that on
	// the server, unless the statement generates one of its own; -1: none is.
	Lead int
}

// Counts is what is known of a statement whose numbers the server counts off.
type Counts struct {
	Sequence []byte
	Calls    uint64 // in a row
	Count    uint64 // of numbers that a call takes, its value being the first of them
	Size     uint64 // of the next block, in values
	Insert   bool
	Given    statement.Given // columns that are numbered as a whole
	Updates  bool            // ON DUPLICATE KEY UPDATE
	Routines bool            // stored functions may run in it
	// whose numbers these are, in steps of auto_increment_increment; nil: of a NEXTVAL
	Key   *Binding
	Table CountedTable
}

// CountedTable is the table of such a statement.
type CountedTable struct {
	Text   string // as the server takes it
	Schema string // empty: the current one
	Name   []byte
}

// Bounds of a block.
const (
	firstBlock = 1000
	LastBlock  = 10_000_000
)

// Most is the size of the largest block.
func (n *Counts) Most() uint64 { return LastBlock / n.Count }
