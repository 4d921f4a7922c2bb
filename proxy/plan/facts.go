package plan

import (
	"seqproxy/proxy/state"
	"seqproxy/statement"
)

// Answer is what is known of a question.
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

// Unknown says what becomes of a NEXTVAL of a name that is not served.
type Unknown uint8

// The policies for unknown names.
const (
	UnknownError  Unknown = iota // 4091, as from MariaDB
	UnknownCreate                // the sequence is created
	UnknownRelay                 // the statement goes to the server as it is
)

// Moment says what a plan is made for.
type Moment uint8

// The moments.
const (
	Now       Moment = iota // the text is carried out
	AtPrepare               // its numbers are taken at each execution
	AtExecute               // it was prepared, and is answered by the proxy
	Explained               // nothing: EXPLAIN FORMAT=ROUTE prints it
	Inside                  // nothing: it is asked whether a text inside another takes numbers
)

// Facts are what a plan depends on, besides the text and the session's state. They are data: what
// is missing is asked for by a Need.
type Facts struct {
	At      Moment
	Unknown Unknown
	Charset string // of the names in the text
	Schema  string // of the sequence table

	Admin   bool // the user may set sequences on
	Limited bool // the user may use some sequences alone

	MariaDB  bool // the session's server is MariaDB
	Server   bool // there is one
	Attached bool // the session is connected to it
	Warns    bool // it warns of the client's flags at each statement, in its own words

	Fill *Filling // what of the text is filled in; nil: nothing
	// the column whose key the only NEXTVAL is, which the client's text has not; nil: none
	Key *Binding

	Names  []Name // of the calls, in their order; those that are missing are unasked
	Digits Answer // numbers in results come as ASCII digits

	// Of the server that rows go to.
	Conn  state.ConnID
	Folds bool // letter case means nothing in names of tables
	Bulk  bool // an execution may be of many rows

	Bound  Bindings  // nil: nothing is bound
	Tables []Columns // of the text, in their order; those that are missing are unasked
	Texts  map[string]Text
}

// Text is a name in a character set that only a server knows.
type Text struct {
	UTF8 []byte
	Is   Answer // No: the bytes are no name
}

// Name is what is known of the name in a call.
type Name struct {
	// Given is the slot by its parameters; its Func is 0 without parameters.
	Given Slot
	Named bool // a parameter has named the sequence, in UTF-8

	Whole       Answer // there is a sequence called so, MyCat's prefix included
	Exists      Answer // there is a sequence of the slot's name
	Usable      Answer // the user may take numbers of it
	SameAsFirst Answer // it is that of the first number that is taken
	Texts       Answer // the keys of the sequence are texts or bytes, and no numbers
	Bytes       bool   // they are bytes
}

// name is what is known of a call's name.
func (f *Facts) name(call int) Name {
	if call < len(f.Names) {
		return f.Names[call]
	}
	return Name{}
}

// NameOf is the place for what is known of a call's name.
func (f *Facts) NameOf(call int) *Name {
	for len(f.Names) <= call {
		f.Names = append(f.Names, Name{})
	}
	return &f.Names[call]
}

// TableOf is the place for what is known of a table of the text.
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

// What is a question that a plan has.
type What uint8

// The questions. The answer goes to the field of Facts that is named.
const (
	NeedText       What = iota + 1 // Name in UTF-8: Texts
	NeedWhole                      // whether there is a sequence Name: Name.Whole
	NeedExists                     // the same: Name.Exists
	NeedRight                      // whether the user may use the sequence Name: Name.Usable
	NeedTexts                      // whether the keys of the sequence Name are texts: Name.Texts
	NeedSame                       // whether Name and Other are one sequence: Name.SameAsFirst
	NeedDigits                     // Digits
	NeedDatabase                   // the current schema, which the session's state has then
	NeedModes                      // what the server does with keys; the state has it then
	NeedColumns                    // Tables
	NeedColumnsNow                 // the same, from the server
	NeedAuto                       // the same, if it can be known
)

// Need is what has to be known before a text can be planned.
type Need struct {
	What        What
	At          int    // the call, or the table
	Name, Other []byte // valid until the next plan
}

// Rounds bounds how often a plan may ask for something. A text that needs more is refused.
const Rounds = 4

// When says when the numbers of a slot are taken.
type When uint8

// The times.
const (
	Untaken When = iota // nothing is taken: the server is to make something of it
	Never               // it is not evaluated, as in EXPLAIN
	Once                // before the statement is sent
	EachRow             // for each row that the client gets
	Counted             // by the server, off a block
)

// Slot is a place of a text that gets a number, or another value of a sequence.
type Slot struct {
	When     When
	Func     statement.Func
	Sequence []byte // nil: none is named, or a parameter names it. Valid as long as the text
	Count    uint64 // of numbers, the first of which is the value; 0: a parameter says it
	Set      *statement.SetvalArgs
	// Texts: it gets texts, or with Bytes bytes. It is known where they are taken later than the
	// plan is made.
	Texts, Bytes bool
}

// Served reports whether the proxy answers for the slot.
func (s *Slot) Served() bool { return s.When != Untaken }

// Takes reports whether something is asked of a sequence before the statement is sent.
func (s *Slot) Takes() bool { return s.When == Once && s.Sequence != nil }
