package state

import (
	"slices"
	"time"

	"seqproxy/protocol"
	"seqproxy/statement"
	"seqproxy/statement/lex"
)

// State is everything a session has that is not a connection: what would have to
// be brought along when the session goes on on another connection.
type State struct {
	Schema string
	// SchemaUnknown: something that was not looked into may have said USE.
	SchemaUnknown bool
	Status        protocol.Status // of the last answer: IN_TRANS, AUTOCOMMIT, ...
	Mode          lex.Mode        // how the server reads the session's texts

	// What a server does not tell by its status may have been changed by something that
	// was not understood: ModeUnknown says that of the character set, QuotesUnknown of
	// Mode.Brackets and, with MySQL, Mode.ANSIQuotes. A session starts with the latter,
	// since the server's global sql_mode may change at any time.
	ModeUnknown, QuotesUnknown bool
	// EscapesUnknown: beside QuotesUnknown, what the status told may be untrue.
	EscapesUnknown bool
	// Charset is the name of character_set_client; "" if it is not known.
	Charset string

	LastID LastInsertID
	// LastAnswer says whether the client's last statement was answered by the proxy,
	// so that the server's warnings and row counts are not those of that statement.
	LastAnswer Answer
	LastConn   ConnID // that the last relayed command ran on; 0: none
	// of OurError; of OurTableRows and OurTableOK the warning, if any
	LastError   *protocol.ServerError
	LastChanged uint64 // rows, of OurChange
	// of ByServer: a warning of ours beside the server's; nil: none
	Notice *protocol.ServerError

	// Version counts changes of variables; a connection knows up to which it has
	// them all.
	Version int
	// Sysvars are the system variables that were set, with the version of the last
	// change. Their values are the server's to know.
	Sysvars map[string]int
	// Uservars are the user variables that were set to a literal.
	Uservars map[string]userVariable
	// Names is the version at which SET NAMES set the variables of SetByNames, if
	// none of them was set alone since.
	Names int
	// here are system variables that were set where there is no server, by HereName; nil is a value
	// that only a server would know.
	here map[string]any
	// synced is the version that each connection has.
	synced []syncedConn
	// Inserts is what a connection says of INSERTs.
	Inserts InsertModes

	// SelectLimit: sql_select_limit was set, so even a SELECT of one row is the
	// server's to answer.
	SelectLimit bool
	// StepLost: auto_increment_increment was set to its default, which the server takes for its
	// own.
	StepLost bool
	// ReadOnly: transactions to come are read-only, as far as the session has said.
	ReadOnly bool
	// Metadata: resultset_metadata may have been set, which leaves definitions out.
	Metadata bool
	// WaitTimeout is what wait_timeout was set to; 0: nothing, or UnknownTimeout.
	WaitTimeout time.Duration
	// Option is the argument of the last COM_SET_OPTION.
	Option []byte

	// Pins are reasons why the session cannot leave its connection.
	Pins Pins
	// NextTransaction: SET TRANSACTION was said for the next one only.
	NextTransaction bool
}

// ConnID is a connection of the session's to a server, by the number that the session gave it. 0 is
// none.
type ConnID uint32

// syncedConn says that a connection has all that was set up to a version.
type syncedConn struct {
	conn    ConnID
	version int
}

// Answer says who answered the last statement, and with what.
type Answer uint8

const (
	ByServer Answer = iota // the last statement was relayed
	OurRows                // a result set
	OurOK                  // anything else that succeeded
	OurError               // an error
	// OurRows of a statement that begins the warnings anew, as a SELECT of no table does not
	OurTableRows
	OurTableOK // OurOK of such a statement
	OurChange  // OK to a statement that changed rows, or found none to change
)

// statusOfSession is the part of a status word that tells of the session, not of
// the statement that it came with.
const statusOfSession = protocol.InTransaction | protocol.InReadOnlyTrans | protocol.Autocommit |
	protocol.NoBackslashEscapes | protocol.ANSIQuotes

// Reset makes the state that of a new session, or of one after
// COM_RESET_CONNECTION; the schema and the statuses of a login stay.
func (st *State) Reset() {
	*st = State{
		Schema: st.Schema, Status: protocol.Autocommit,
		Mode: lex.Mode{Charset: st.Mode.Charset, Server: st.Mode.Server}, Charset: st.Charset,
		QuotesUnknown: true,
	}
}

// Observe takes note of the status that an answer ended with.
func (st *State) Observe(status protocol.Status, mariaDB bool) {
	if st.InTransaction() && !status.Has(protocol.InTransaction) {
		st.NextTransaction = false // it was that one
	}
	before := st.Status
	st.Status = status & statusOfSession
	if (before^status)&(protocol.NoBackslashEscapes|protocol.ANSIQuotes) != 0 {
		st.TrustStatus(mariaDB)
		// What a routine sets is its own, but the status goes on to tell of it.
		st.QuotesUnknown, st.EscapesUnknown = true, true
	}
}

// Forget takes note that a connection is closed.
func (st *State) Forget(c ConnID) {
	st.synced = slices.DeleteFunc(st.synced, func(k syncedConn) bool { return k.conn == c })
	if st.LastConn == c {
		st.LastConn = 0
	}
	if st.LastID.Holder == c {
		st.LastID.Holder = 0
	}
}

// Needs says whether the session may read on a connection what it has left there.
func (st *State) Needs(c ConnID) bool { return st.LastID.Holder == c || st.LastConn == c }

// InTransaction says whether leaving the connection would leave a transaction.
func (st *State) InTransaction() bool { return st.Status.Has(protocol.InTransaction) }

// BeforeTransaction says whether SET TRANSACTION was said of a transaction that has not
// begun: a statement of ours might be it.
func (st *State) BeforeTransaction() bool { return st.NextTransaction && !st.InTransaction() }

// Pinged takes note of a ping: it resets ROW_COUNT(). Warnings stay, and so does that a
// change has cleared them.
func (st *State) Pinged() {
	st.LastID.Inserted = false
	if st.LastAnswer == OurChange {
		st.LastChanged = 0
		return
	}
	st.LastAnswer = ByServer
}

// Transacted takes note of a statement that was answered without an error. If it was a
// transaction of its own, what SET TRANSACTION said of the next is used up. Statements
// without tables are none.
func (st *State) Transacted(kind statement.Kind, words statement.Words) {
	if !st.NextTransaction || st.InTransaction() || !st.Status.Has(protocol.Autocommit) || words&statement.SystemSchema != 0 {
		return
	}
	switch kind {
	case statement.Insert, statement.Replace, statement.Update, statement.Delete, statement.Load, statement.OtherDDL:
		st.NextTransaction = false
	case statement.Select, statement.With:
		if words&statement.FromTable != 0 {
			st.NextTransaction = false
		}
	}
}

// Unquote takes the quotes off a simple literal.
func Unquote(s string) string {
	if len(s) >= 2 && (s[0] == '\'' || s[0] == '"' || s[0] == '`') && s[len(s)-1] == s[0] {
		return s[1 : len(s)-1]
	}
	return s
}
