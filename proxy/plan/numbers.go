package plan

import "seqproxy/statement"

// Numbers are the numbers that a statement needs: how many, of which sequences, and for which
// slots. The encoder decides how they get there: as splices in a text, as parameters of an
// execution, or as parameters in each row of a bulk execution.
type Numbers struct {
	Slots  []Slot   // of the calls, in their order; When says when each gets its value
	Fill   *Filling // its keys get numbers before the statement is sent; nil: no keys
	Rows   *Rows    // numbers for each row of the answer; nil: none
	Counts *Counts  // numbers that the server counts; nil: none
}

// Traits returns the traits of the statement as it is sent. The placeholders for numbers in rows do
// not change LAST_INSERT_ID() on the server. The statement that begins a block brings
// LAST_INSERT_ID() there.
func (n *Numbers) Traits(t Traits) Traits {
	if n.Rows != nil && !n.Rows.Inserts || n.Counts != nil {
		t.MovesLastID = false
	}
	return t
}

// When is the time at which a slot gets its value.
type When uint8

// The times.
const (
	Untaken When = iota // the server is to handle the call
	Never               // the call is never evaluated, as in EXPLAIN
	Once                // before the statement is sent
	EachRow             // for each row of the client's result
	Counted             // the server counts, within a block
)

// Slot is a place in a text that gets a number, or another value of a sequence.
type Slot struct {
	When     When
	Func     statement.Func
	Sequence []byte // nil: none is named, or a parameter names it; valid as long as the text
	Count    uint64 // of numbers, the first of which is the value; 0: a parameter says it
	Set      *statement.SetvalArgs
	// Texts reports whether the slot gets texts, or bytes if Bytes is set. It is set only if the
	// keys are taken after planning.
	Texts, Bytes bool
	InsertID     bool // its number surely becomes the insert id
}

// Served reports whether the proxy serves the slot.
func (s *Slot) Served() bool { return s.When != Untaken }

// Takes reports whether the slot needs a sequence before the statement is sent.
func (s *Slot) Takes() bool { return s.When == Once && s.Sequence != nil }

// Rows are the columns of a statement's result that are numbers of sequences. The server sends a
// constant placeholder in their place, so it does not matter how often it evaluates that. The proxy
// replaces the placeholders as the rows pass. So each row that the client gets has a number, and no
// number goes to other rows.
type Rows struct {
	Columns []int  // as in protocol.FillOptions
	Slots   []Slot // by column; each row takes them once

	// Inserts says that the rows come from RETURNING of INSERT or REPLACE. The server then sets
	// LAST_INSERT_ID() itself.
	Inserts bool
	// Lead is the slot whose number in the first row becomes LAST_INSERT_ID() on the server, unless
	// the statement generates one; -1: none.
	Lead int
}

// Counts describes a statement whose numbers the server counts.
type Counts struct {
	Sequence []byte
	Calls    uint64 // per row
	Count    uint64 // numbers that a call takes; the first of them is its value
	Size     uint64 // values in the next block
	Insert   bool
	Given    statement.Given // columns that the statement numbers in every row
	Updates  bool            // ON DUPLICATE KEY UPDATE
	Routines bool            // stored functions may run in it
	// Key is the column of these numbers, in steps of auto_increment_increment; nil: they are of a
	// NEXTVAL.
	Key   *Binding
	Table CountedTable
}

// CountedTable is the table of a statement whose numbers the server counts.
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

// Most returns the size of the largest block.
func (n *Counts) Most() uint64 { return LastBlock / n.Count }
