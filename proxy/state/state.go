package state

import (
	"bytes"
	"slices"
	"time"

	"seqproxy/protocol"
	"seqproxy/statement"
	"seqproxy/statement/lex"
)

// State is everything a session has that is not a connection: what another connection would have to
// get when the session uses that one.
type State struct {
	Schema string
	// SchemaUnknown: a statement that was not analysed may have said USE.
	SchemaUnknown bool
	Status        protocol.Status // of the last answer: IN_TRANS, AUTOCOMMIT, ...
	Mode          lex.Mode        // how the server reads the session's texts

	// A statement that was not understood may have changed what the status does not show.
	// ModeUnknown: the character set. QuotesUnknown: Mode.Brackets and, with MySQL,
	// Mode.ANSIQuotes; a session starts with it, since the server's global sql_mode may change at
	// any time.
	ModeUnknown, QuotesUnknown bool
	// EscapesUnknown: in addition to QuotesUnknown, what the status showed may be untrue.
	EscapesUnknown bool
	// Charset is the name of character_set_client; "" if it is unknown.
	Charset string

	LastID LastInsertID
	// LastAnswer reports whether the proxy answered the client's last statement. Then the server's
	// warnings and row counts are not those of that statement.
	LastAnswer Answer
	LastConn   ConnID // of the last relayed command; 0: none
	// Of OurError; of OurTableRows and OurTableOK the warning, if any.
	LastError   *protocol.ServerError
	LastChanged uint64 // rows of OurChange
	// of ByServer: a warning of the proxy in addition to the server's; nil: none
	Notice *protocol.ServerError

	// Version counts changes of variables. synced says up to which version a connection has them.
	Version int
	// Sysvars are the system variables that were set, with the version of the last change. Only the
	// server knows their values.
	Sysvars map[string]int
	// Uservars are the user variables that were set to a literal.
	Uservars map[string]userVariable
	// Names is the version at which SET NAMES set the variables of SetByNames, if none of them was
	// set alone since.
	Names int
	// here is system variables that were set where no server can be asked, by HereName; nil is a
	// value that only a server would know.
	here map[string]any
	// synced is the version that each connection has.
	synced []syncedConn
	// Inserts is what a connection says of INSERTs.
	Inserts InsertModes

	// SelectLimit: sql_select_limit was set, so the server must answer even a SELECT of one row.
	SelectLimit bool
	// StepLost: auto_increment_increment was set to its default, whose value only the server knows.
	StepLost bool
	// ReadOnly: coming transactions are read-only, by what the session has set.
	ReadOnly bool
	// Metadata: resultset_metadata may have been set, which omits definitions.
	Metadata bool
	// WaitTimeout is what wait_timeout was set to; 0: nothing, or UnknownTimeout.
	WaitTimeout time.Duration
	// Option is the argument of the last COM_SET_OPTION.
	Option []byte

	// Pins are the reasons to keep the connection.
	Pins Pins
	// NextTransaction: SET TRANSACTION was said for the next one only.
	NextTransaction bool
}

// ConnID is a connection of the session to a server, by the session's number for it. 0 is none.
type ConnID uint32

// syncedConn says that a connection has all variables up to a version.
type syncedConn struct {
	conn    ConnID
	version int
}

// Answer says what answered the last statement, and with what.
type Answer uint8

const (
	ByServer Answer = iota // the last statement was relayed
	OurRows                // a result set
	OurOK                  // anything else that succeeded
	OurError               // an error
	// OurRows of a statement that resets the warnings, which a SELECT of no table does not
	OurTableRows
	OurTableOK // OurOK of such a statement
	OurChange  // OK to a statement that changed rows, or found none to change
)

// statusOfSession is the part of a status word that describes the session, not its last statement.
const statusOfSession = protocol.InTransaction | protocol.InReadOnlyTrans | protocol.Autocommit |
	protocol.NoBackslashEscapes | protocol.ANSIQuotes

// Reset makes the state that of a new session, or of one after COM_RESET_CONNECTION. The schema and
// the statuses of a login stay.
func (st *State) Reset() {
	*st = State{
		Schema: st.Schema, Status: protocol.Autocommit,
		Mode: lex.Mode{Charset: st.Mode.Charset, Server: st.Mode.Server}, Charset: st.Charset,
		QuotesUnknown: true,
	}
}

// Observe records the status that an answer ended with.
func (st *State) Observe(status protocol.Status, mariaDB bool) {
	if st.InTransaction() && !status.Has(protocol.InTransaction) {
		st.NextTransaction = false // it was that one
	}
	before := st.Status
	st.Status = status & statusOfSession
	if (before^status)&(protocol.NoBackslashEscapes|protocol.ANSIQuotes) != 0 {
		st.TrustStatus(mariaDB)
		// What a routine sets is local, but the status goes on to show it.
		st.QuotesUnknown, st.EscapesUnknown = true, true
	}
}

// Forget records that a connection is closed.
func (st *State) Forget(c ConnID) {
	st.synced = slices.DeleteFunc(st.synced, func(k syncedConn) bool { return k.conn == c })
	if st.LastConn == c {
		st.LastConn = 0
	}
	if st.LastID.Holder == c {
		st.LastID.Holder = 0
	}
}

// Needs reports whether the session may still read what it has left on a connection.
func (st *State) Needs(c ConnID) bool { return st.LastID.Holder == c || st.LastConn == c }

// InTransaction reports whether a transaction is open on the connection.
func (st *State) InTransaction() bool { return st.Status.Has(protocol.InTransaction) }

// ReadsAlike reports whether a text is read the same by all that is possible of how the server reads.
func (st *State) ReadsAlike(sql []byte) bool {
	if !st.ModeUnknown && !st.QuotesUnknown {
		return true
	}
	return !st.ModeUnknown && !st.EscapesUnknown && st.Mode.Charset != lex.Unsupported && bytes.IndexByte(sql, '"') < 0 &&
		!(st.Mode.ANSIQuotes && bytes.IndexByte(sql, '[') >= 0)
}

// Answered records that a server has answered on a connection, perhaps with rows.
func (st *State) Answered(c ConnID, rows bool) {
	st.LastConn = c
	st.LastID.Rows = st.LastID.Rows || rows
	st.LastID.Inserted = false
}

// BeforeTransaction reports whether SET TRANSACTION was said for a transaction that has not begun:
// a statement of the proxy could become it.
func (st *State) BeforeTransaction() bool { return st.NextTransaction && !st.InTransaction() }

// Pinged records a ping, which resets ROW_COUNT(). Warnings stay, and so does their loss by a
// change.
func (st *State) Pinged() {
	st.LastID.Inserted = false
	if st.LastAnswer == OurChange {
		st.LastChanged = 0
		return
	}
	st.LastAnswer = ByServer
}

// transacted records a statement that was answered without an error. If it was a transaction of its
// own, it has used up a SET TRANSACTION for the next one. Statements without tables are none.
func (st *State) transacted(kind statement.Kind, words statement.Words) {
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

// Unquote removes the quotes of a simple literal.
func Unquote(s string) string {
	if len(s) >= 2 && (s[0] == '\'' || s[0] == '"' || s[0] == '`') && s[len(s)-1] == s[0] {
		return s[1 : len(s)-1]
	}
	return s
}

// InsertModes is what a session has set for INSERTs.
type InsertModes struct {
	Conn              ConnID // the connection that was asked; 0: none, or something may have changed it since
	Version           int    // of the session's variables
	Increment         uint64
	ZeroStays, Strict bool // Strict: a text that is no number is an error, and never no key
}
