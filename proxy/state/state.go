package state

import (
	"bytes"
	"slices"
	"time"

	"seqproxy/protocol"
	"seqproxy/statement"
	"seqproxy/statement/lex"
)

// State is everything in a session that is not a connection: what another connection must get
// before the session uses it.
type State struct {
	Schema string
	// SchemaUnknown says that an unread statement may have been USE.
	SchemaUnknown bool
	Status        protocol.Status // of the last answer that has one: IN_TRANS, AUTOCOMMIT, ...
	// StatusUnsure says that an error came since. It may have begun or ended a transaction.
	StatusUnsure bool
	Mode         lex.Mode // how the server reads the session's texts

	// A statement that was not understood may have changed what the status does not show.
	// ModeUnknown is about the character set, QuotesUnknown about Mode.Brackets and, with MySQL,
	// Mode.ANSIQuotes. A session starts with QuotesUnknown, since the server's global sql_mode may
	// change at any time.
	ModeUnknown, QuotesUnknown bool
	// EscapesUnknown says, in addition to QuotesUnknown, that the status may have been untrue.
	EscapesUnknown bool
	// Charset is the name of character_set_client; "": unknown.
	Charset string

	LastID LastInsertID
	// LastAnswer says who answered the client's last statement. If it was the proxy, the server's
	// warnings and row counts are not that statement's.
	LastAnswer Answer
	LastConn   ConnID // of the last relayed command; 0: none
	// The error of OurError, or the error or warning of OurTableRows and OurTableOK, if any.
	LastError   *protocol.ServerError
	LastChanged uint64 // rows that OurChange changed
	// Notice is the proxy's own warning in addition to the server's, after ByServer; nil: none.
	Notice *protocol.ServerError

	// Version counts changes of variables. synced has the version that each connection has got.
	Version int
	// Sysvars are the system variables that were set, with the version of the last change. Only the
	// server knows their values.
	Sysvars map[string]int
	// Uservars are the user variables that were set to a literal.
	Uservars map[string]userVariable
	// Names is the version of the SET NAMES that set the variables of SetByNames, if none of them
	// was set alone since.
	Names int
	// here has the system variables that were set where no server can be asked, by HereName. nil is
	// a value that only a server would know.
	here map[string]any
	// synced is the version that each connection has.
	synced []syncedConn
	// Inserts is a connection's answer about INSERTs.
	Inserts InsertModes

	// SelectLimit says that sql_select_limit was set: the server must answer even a SELECT of one
	// row.
	SelectLimit bool
	// StepLost says that auto_increment_increment was set to its default, whose value only the
	// server knows.
	StepLost bool
	// ReadOnly says that the session has made its next transactions read-only.
	ReadOnly bool
	// TracksGTID says that session_track_system_variables was set to a list that may have last_gtid,
	// by which MariaDB tells of each transaction.
	TracksGTID bool
	// Metadata says that resultset_metadata may have been set, which omits definitions.
	Metadata bool
	// WaitTimeout is the value of wait_timeout that was set; 0: none. It may be UnknownTimeout.
	WaitTimeout time.Duration
	// Option is the argument of the last COM_SET_OPTION: two bytes, or none.
	Option []byte

	// Pins are the reasons to keep the connection.
	Pins Pins
	// NextTransaction says that SET TRANSACTION is in force for the next transaction only.
	NextTransaction bool
}

// ConnID is the session's number for one of its connections to servers. 0 is none.
type ConnID uint32

// syncedConn says that a connection has all variables up to a version.
type syncedConn struct {
	conn    ConnID
	version int
}

// Answer is the kind of the last answer, and who gave it.
type Answer uint8

const (
	ByServer Answer = iota // the server's
	OurRows                // the proxy's own result set
	OurOK                  // any other success of the proxy's own
	OurError               // the proxy's own error
	// OurRows of a statement that resets the warnings, unlike a SELECT without a table; or of such a
	// SELECT behind one
	OurTableRows
	OurTableOK // OurOK of such a statement, or OurError with a ping behind it
	OurChange  // the proxy's own OK to a change of rows, which may have found none
)

// statusOfSession is the part of a status word that describes the session, not its last statement.
const statusOfSession = protocol.InTransaction | protocol.InReadOnlyTrans | protocol.Autocommit |
	protocol.NoBackslashEscapes | protocol.ANSIQuotes

// Reset makes the state that of a new session, or of one after COM_RESET_CONNECTION. It keeps the
// status of a login, and what servers keep: the schema and COM_SET_OPTION.
func (st *State) Reset() {
	*st = State{
		Schema: st.Schema, SchemaUnknown: st.SchemaUnknown, Option: st.Option, Status: protocol.Autocommit,
		Mode: lex.Mode{Charset: st.Mode.Charset, Server: st.Mode.Server}, Charset: st.Charset,
		QuotesUnknown: true,
	}
}

// Observe records the status at the end of an answer.
func (st *State) Observe(status protocol.Status, mariaDB bool) {
	before := st.Status
	if before&^status&protocol.InTransaction != 0 {
		st.NextTransaction = false // that transaction has begun
	}
	st.Status, st.StatusUnsure = status&statusOfSession, false
	if (before^status)&(protocol.NoBackslashEscapes|protocol.ANSIQuotes) != 0 {
		st.TrustStatus(mariaDB)
		// A routine's setting is local, but the status goes on to show it.
		st.QuotesUnknown, st.EscapesUnknown = true, true
	}
}

// Forget records that a connection is closed.
func (st *State) Forget(c ConnID) {
	st.synced = slices.DeleteFunc(st.synced, func(k syncedConn) bool { return k.conn == c })
	if st.LastConn == c {
		st.LastConn, st.Notice = 0, nil
	}
	if st.LastID.Holder == c {
		st.LastID.Holder = 0
	}
}

// Needs reports whether the session may still read what it has left on a connection.
func (st *State) Needs(c ConnID) bool { return st.LastID.Holder == c || st.LastConn == c }

// InTransaction reports whether a transaction is open on the connection.
func (st *State) InTransaction() bool { return st.Status&protocol.InTransaction != 0 }

// AllPins returns Pins and the pins that the status shows.
func (st *State) AllPins() Pins {
	p := st.Pins
	if st.InTransaction() {
		p |= 1 << PinTransaction
	}
	if st.NextTransaction {
		p |= 1 << PinNextTransaction
	}
	return p
}

// ReadsAlike reports whether a text means the same in every mode that the session may have.
func (st *State) ReadsAlike(sql []byte) bool {
	if !st.ModeUnknown && !st.QuotesUnknown {
		return true
	}
	return !st.ModeUnknown && !st.EscapesUnknown && st.Mode.Charset != lex.Unsupported && bytes.IndexByte(sql, '"') < 0 &&
		!(st.Mode.ANSIQuotes && bytes.IndexByte(sql, '[') >= 0)
}

// Answered records that a server has answered on a connection, and whether with rows.
func (st *State) Answered(c ConnID, rows bool) {
	st.LastConn = c
	st.LastID.Rows = st.LastID.Rows || rows
	st.LastID.Inserted = false
}

// BeforeTransaction reports whether SET TRANSACTION waits for its transaction, which a statement of
// the proxy's own would become.
func (st *State) BeforeTransaction() bool { return st.NextTransaction && !st.InTransaction() }

// Pinged records a ping, or another command that makes ROW_COUNT() 0. Warnings stay, and so does
// their loss by a change, or with MySQL by OurRows.
func (st *State) Pinged() {
	st.LastID.Inserted = false
	switch st.LastAnswer {
	case OurChange:
		st.LastChanged = 0
	case OurError, OurTableRows:
		st.LastAnswer = OurTableOK
	case OurRows:
		st.LastAnswer = OurOK
	}
}

// Selected records the proxy's answer to a SELECT without a table. With MariaDB it keeps the
// warnings, also those that the proxy has not brought to the server.
func (st *State) Selected(mariaDB bool) {
	switch st.LastAnswer {
	case OurError, OurTableRows, OurTableOK, OurChange:
		if mariaDB {
			st.LastAnswer = OurTableRows
			return
		}
	}
	st.LastAnswer = OurRows
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

// InsertModes is how a session's server treats keys in INSERTs.
type InsertModes struct {
	Conn              ConnID // which was asked; 0: none, or the answer may be outdated
	Version           int    // of the session's variables
	Increment         uint64
	ZeroStays, Strict bool
	EmptyIsNull       bool // MariaDB's mode EMPTY_STRING_IS_NULL
}

// TextIsZero reports whether the server makes 0 of a text that is no number. ignore says whether
// the statement has IGNORE.
func (m *InsertModes) TextIsZero(ignore bool) bool { return !m.Strict || ignore }
