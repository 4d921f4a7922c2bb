package plan

import (
	"seqproxy/proxy/state"
)

// Answer is the state of a question.
type Answer uint8

// The answers.
const (
	Unasked Answer = iota
	No
	Yes
)

// AnswerOf is Yes or No.
func AnswerOf(yes bool) Answer {
	if yes {
		return Yes
	}
	return No
}

// Unknown is the policy for a NEXTVAL of a name that is not served.
type Unknown uint8

// The policies for unknown names.
const (
	UnknownError  Unknown = iota // 4091, as from MariaDB
	UnknownCreate                // the sequence is created
	UnknownRelay                 // the statement goes to the server unchanged
)

// Moment is the purpose of a plan.
type Moment uint8

// The moments.
const (
	Now       Moment = iota // the text runs now
	AtPrepare               // each execution takes the numbers
	AtExecute               // the text was prepared, and the proxy answers it
	Explained               // EXPLAIN FORMAT=ROUTE prints the plan; nothing runs
	Inside                  // nothing runs; does a text inside another take numbers?
)

// Facts are what a plan depends on, besides the text and the session's state. They are data: a Need
// asks for a missing one.
type Facts struct {
	At      Moment
	Unknown Unknown
	Charset string // of the names in the text
	Schema  string // schema of the sequence table

	Admin   bool // the user may set sequences
	Limited bool // the user may use only some sequences

	MariaDB  bool // the session's server is MariaDB
	Server   bool // there is a server
	Attached bool // the session is connected to the server
	Warns    bool // the server warns of the client's flags at each statement, in its own words

	Fill *Filling // what to fill into the text; nil: nothing
	// Key is the column of the only NEXTVAL, which the client's text lacks; nil: none.
	Key *Binding

	Names  []Name // of the calls, in their order; a missing one is unasked
	Digits Answer // numbers in results are ASCII digits

	// Facts about the rows' server.
	Conn  state.ConnID
	Folds bool // the server ignores letter case in names of tables
	Bulk  bool // an execution may have many rows

	Bound  Bindings  // nil: nothing is bound
	Tables []Columns // of the text's tables, in their order; a missing one is unasked
	Texts  map[string]Text
}

// Text is a name in a character set that only a server can convert.
type Text struct {
	UTF8 []byte
	Is   Answer // No: the bytes are not valid
}

// Name is the facts about the name in a call.
type Name struct {
	// Given is the slot with the values of parameters. Its Func is 0 without parameters.
	Given Slot
	Named bool // a parameter names the sequence, in UTF-8

	Whole       Answer // a sequence has this name, with MyCat's prefix
	Exists      Answer // a sequence has the slot's name
	Usable      Answer // the user may take its numbers
	SameAsFirst Answer // it is the sequence of the first number
	Texts       Answer // its keys are texts or bytes, no numbers
	Bytes       bool   // its keys are bytes
}

// name returns the facts about a call's name.
func (f *Facts) name(call int) Name {
	if call < len(f.Names) {
		return f.Names[call]
	}
	return Name{}
}

// NameOf returns the place of the facts about a call's name.
func (f *Facts) NameOf(call int) *Name {
	for len(f.Names) <= call {
		f.Names = append(f.Names, Name{})
	}
	return &f.Names[call]
}

// TableOf returns the place of the facts about a table of the text.
func (f *Facts) TableOf(table int) *Columns {
	for len(f.Tables) <= table {
		f.Tables = append(f.Tables, Columns{})
	}
	return &f.Tables[table]
}

// SetText records a name in UTF-8.
func (f *Facts) SetText(name, utf8 []byte, is Answer) {
	if f.Texts == nil {
		f.Texts = make(map[string]Text)
	}
	f.Texts[string(name)] = Text{utf8, is}
}

// What is the kind of a Need.
type What uint8

// The kinds. Each names the field of Facts for the answer.
const (
	NeedText       What = iota + 1 // Name in UTF-8: Texts
	NeedWhole                      // whether there is a sequence Name: Name.Whole
	NeedExists                     // the same: Name.Exists
	NeedRight                      // whether the user may use the sequence Name: Name.Usable
	NeedTexts                      // whether the keys of the sequence Name are texts: Name.Texts
	NeedSame                       // whether Name and Other are one sequence: Name.SameAsFirst
	NeedDigits                     // Digits
	NeedDatabase                   // the current schema, which goes to the session's state
	NeedModes                      // how the server treats keys, which goes to the session's state
	NeedColumns                    // Tables
	NeedColumnsNow                 // Tables, straight from the server
	NeedAuto                       // Tables, unless the server refuses to say
	NeedAutoOnce                   // the same, however old the answer is
)

// Need is a fact that is missing for a plan.
type Need struct {
	What        What
	At          int    // the call, or the table
	Name, Other []byte // valid until the next plan
}

// Rounds bounds how often a plan may ask. A text that needs more rounds is refused.
const Rounds = 4
