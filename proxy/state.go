package proxy

import (
	"slices"
	"strings"
	"time"

	"seqproxy/protocol"
	"seqproxy/statement"
	"seqproxy/statement/lex"
)

// state is everything a session has that is not a connection: what would have to
// be brought along when the session goes on on another connection.
type state struct {
	schema string
	// schemaUnknown: something that was not looked into may have said USE.
	schemaUnknown bool
	status        protocol.Status // of the last answer: IN_TRANS, AUTOCOMMIT, ...
	mode          lex.Mode        // how the server reads the session's texts

	// What a server does not tell by its status may have been changed by something that
	// was not understood: modeUnknown says that of the character set, quotesUnknown of
	// mode.Brackets and, with MySQL, mode.ANSIQuotes. A session starts with the latter,
	// since the server's global sql_mode may change at any time.
	modeUnknown, quotesUnknown bool
	// escapesUnknown: beside quotesUnknown, what the status told may be untrue.
	escapesUnknown bool
	// charset is the name of character_set_client; "" if it is not known.
	charset string

	lastID lastInsertID
	// lastOwn says whether the client's last statement was answered by the proxy,
	// so that the server's warnings and row counts are not those of that statement.
	lastOwn     ownKind
	lastConn    connID                // that the last relayed command ran on; 0: none
	lastError   *protocol.ServerError // of ownError; of ownTableRows and ownTableAnswer the warning, if any
	lastChanged uint64                // rows, of ownChange
	notice      *protocol.ServerError // of ownNothing: a warning of ours beside the server's; nil: none

	// version counts changes of variables; a connection knows up to which it has
	// them all.
	version int
	// sysvars are the system variables that were set, with the version of the last
	// change. Their values are the server's to know.
	sysvars map[string]int
	// uservars are the user variables that were set to a literal.
	uservars map[string]userVariable
	// names is the version at which SET NAMES set the variables of setByNames, if
	// none of them was set alone since.
	names int
	// here are system variables that were set where there is no server, by hereName; nil is a value
	// that only a server would know.
	here map[string]any
	// synced is the version that each connection has.
	synced []known
	// inserts is what a connection says of INSERTs.
	inserts insertModes

	// selectLimit: sql_select_limit was set, so even a SELECT of one row is the
	// server's to answer.
	selectLimit bool
	// stepLost: auto_increment_increment was set to its default, which the server takes for its own; see keepTurns.
	stepLost bool
	// readOnly: transactions to come are read-only, as far as the session has said.
	readOnly bool
	// metadata: resultset_metadata may have been set, which leaves definitions out.
	metadata bool
	// waitTimeout is what wait_timeout was set to; 0: nothing, or unknownTimeout.
	waitTimeout time.Duration
	// option is the argument of the last COM_SET_OPTION.
	option []byte

	// pins are reasons why the session cannot leave its connection.
	pins pins
	// nextTransaction: SET TRANSACTION was said for the next one only.
	nextTransaction bool
}

// connID is a connection of the session's to a server, by the number that the session gave it. 0 is
// none.
type connID uint32

// known says that a connection has all that was set up to a version.
type known struct {
	conn    connID
	version int
}

// userVariable is a user variable whose value is a literal.
type userVariable struct {
	literal string // as typed
	version int
}

// ownKind says what the proxy answered itself.
type ownKind uint8

const (
	ownNothing     ownKind = iota // the last statement was relayed
	ownRows                       // a result set
	ownAnswer                     // anything else that succeeded
	ownError                      // an error
	ownTableRows                  // ownRows of a statement that begins the warnings anew, as a SELECT of no table does not
	ownTableAnswer                // ownAnswer of such a statement
	ownChange                     // OK to a statement that changed rows, or found none to change
)

// statusOfSession is the part of a status word that tells of the session, not of
// the statement that it came with.
const statusOfSession = protocol.InTransaction | protocol.InReadOnlyTrans | protocol.Autocommit |
	protocol.NoBackslashEscapes | protocol.ANSIQuotes

// reset makes the state that of a new session, or of one after
// COM_RESET_CONNECTION; the schema and the statuses of a login stay.
func (st *state) reset() {
	*st = state{
		schema: st.schema, status: protocol.Autocommit,
		mode: lex.Mode{Charset: st.mode.Charset, Server: st.mode.Server}, charset: st.charset,
		quotesUnknown: true,
	}
}

// observe takes note of the status that an answer ended with.
func (st *state) observe(status protocol.Status, mariaDB bool) {
	if st.inTransaction() && !status.Has(protocol.InTransaction) {
		st.nextTransaction = false // it was that one
	}
	before := st.status
	st.status = status & statusOfSession
	if (before^status)&(protocol.NoBackslashEscapes|protocol.ANSIQuotes) != 0 {
		st.trustStatus(mariaDB)
		// What a routine sets is its own, but the status goes on to tell of it.
		st.quotesUnknown, st.escapesUnknown = true, true
	}
}

// trustStatus takes the modes from the status, which is true at the start of a session.
func (st *state) trustStatus(mariaDB bool) {
	st.mode.NoBackslashEscapes = st.status.Has(protocol.NoBackslashEscapes)
	if mariaDB { // MySQL never sets the bit
		st.mode.ANSIQuotes = st.status.Has(protocol.ANSIQuotes)
	}
}

// knows takes note that a connection has all that was set up to a version.
func (st *state) knows(c connID, version int) {
	for i := range st.synced {
		if st.synced[i].conn == c {
			st.synced[i].version = version
			return
		}
	}
	st.synced = append(st.synced, known{c, version})
}

// known is the version that a connection has.
func (st *state) known(c connID) int {
	for _, k := range st.synced {
		if k.conn == c {
			return k.version
		}
	}
	return 0
}

// forget takes note that a connection is closed.
func (st *state) forget(c connID) {
	st.synced = slices.DeleteFunc(st.synced, func(k known) bool { return k.conn == c })
	if st.lastConn == c {
		st.lastConn = 0
	}
	if st.lastID.holder == c {
		st.lastID.holder = 0
	}
}

// needs says whether the session may read on a connection what it has left there.
func (st *state) needs(c connID) bool { return st.lastID.holder == c || st.lastConn == c }

// inTransaction says whether leaving the connection would leave a transaction.
func (st *state) inTransaction() bool { return st.status.Has(protocol.InTransaction) }

// beforeTransaction says whether SET TRANSACTION was said of a transaction that has not
// begun: a statement of ours might be it.
func (st *state) beforeTransaction() bool { return st.nextTransaction && !st.inTransaction() }

// pinged takes note of a ping: it resets ROW_COUNT(). Warnings stay, and so does that a
// change has cleared them.
func (st *state) pinged() {
	st.lastID.inserted = false
	if st.lastOwn == ownChange {
		st.lastChanged = 0
		return
	}
	st.lastOwn = ownNothing
}

// pin remembers why the session cannot leave its connection.
func (st *state) pin(why Pin) { st.pins |= 1 << why }

// pinned says whether it was remembered.
func (st *state) pinned(why Pin) bool { return st.pins.has(why) }

// unpin takes a reason back.
func (st *state) unpin(why Pin) { st.pins &^= 1 << why }

// pinFor remembers what a statement that has run may have left on its connection.
func (st *state) pinFor(kind statement.Kind, words statement.Words) {
	for _, r := range [...]struct {
		words statement.Words
		why   Pin
	}{
		{statement.TemporaryTable, PinTemporaryTable},
		{statement.UserLock, PinUserLock},
		{statement.TableLock, PinTableLock},
		{statement.GlobalLock, PinGlobalLock},
		{statement.HandlerOpen, PinHandler},
		{statement.SQLPrepare, PinSQLPrepare},
		{statement.SetsUserVariable, PinUserVariable},
		{statement.Opaque, PinOpaque},
	} {
		if words&r.words != 0 {
			st.pin(r.why)
		}
	}
	if words&statement.Opaque != 0 { // also a SET behind a CREATE PROCEDURE
		st.loseMode()
	}
	switch kind {
	case statement.Other, statement.Call, statement.Multi, statement.ExecuteImmediate, statement.Execute, statement.XA:
		st.pin(PinOpaque)
		st.loseMode()
	case statement.Begin: // gives up such locks
		st.unpin(PinTableLock)
	case statement.UnlockTables:
		st.unpin(PinTableLock)
		st.unpin(PinGlobalLock)
	case statement.Commit, statement.Rollback:
		st.nextTransaction = false
	}
}

// transacted takes note of a statement that was answered without an error. If it was a
// transaction of its own, what SET TRANSACTION said of the next is used up. Statements
// without tables are none.
func (st *state) transacted(kind statement.Kind, words statement.Words) {
	if !st.nextTransaction || st.inTransaction() || !st.status.Has(protocol.Autocommit) || words&statement.SystemSchema != 0 {
		return
	}
	switch kind {
	case statement.Insert, statement.Replace, statement.Update, statement.Delete, statement.Load, statement.OtherDDL:
		st.nextTransaction = false
	case statement.Select, statement.With:
		if words&statement.FromTable != 0 {
			st.nextTransaction = false
		}
	}
}

// setVariables takes note of a SET that the server accepted. text is its SQL.
func (st *state) setVariables(s *statement.Statement, text []byte) {
	st.version++
	if s.Words&statement.VersionedComment != 0 { // some servers skip it
		defer st.loseMode()
	}
	for i := range s.Assignments {
		a := &s.Assignments[i]
		value := string(text[a.Start:a.End])
		switch a.Target {
		case statement.SessionVariable:
			st.setSystem(string(a.Name), value, a.Literal)
		case statement.Names, statement.CharacterSet:
			for _, name := range [...]string{"character_set_client", "character_set_results", "collation_connection"} {
				st.changed(name)
			}
			if a.Target == statement.CharacterSet {
				st.changed("character_set_connection")
			}
			if a.Target == statement.Names {
				st.names = st.version
			}
			name, _, _ := strings.Cut(value, " ")
			st.setCharset(unquote(name))
		case statement.UserVariable:
			name := string(a.Name)
			if !lex.ASCII(a.Name) {
				// MariaDB converts `x` from the client's character set, but not x.
				delete(st.uservars, name)
				st.pin(PinVariableName)
				continue
			}
			if !a.Literal {
				delete(st.uservars, name)
				st.pin(PinUserVariable)
				continue
			}
			if st.uservars == nil {
				st.uservars = make(map[string]userVariable)
			}
			st.uservars[name] = userVariable{value, st.version}
		case statement.Transaction:
			switch a.Scope {
			case statement.ScopeNext:
				st.nextTransaction = true
			case statement.ScopeSession:
				st.changed("tx_isolation")
				st.changed("tx_read_only")
				switch words := strings.Join(strings.Fields(strings.ToUpper(string(text))), " "); {
				case strings.Contains(words, "READ ONLY"):
					st.readOnly = true
				case strings.Contains(words, "READ WRITE"):
					st.readOnly = false
				}
			}
		case statement.Role:
			st.pin(PinRole)
		case statement.StatementFor, statement.TargetUnknown:
			st.pin(PinOpaque)
		}
	}
}

// isDefault says whether a SET gives a variable its default by this.
func isDefault(value string) bool { return strings.EqualFold(value, "default") }

func (st *state) setSystem(name, value string, literal bool) {
	switch name {
	case "last_insert_id", "identity":
		return // carried as the LAST_INSERT_ID() that it is
	case "insert_id":
		st.pin(PinInsertID)
		return
	case "timestamp":
		st.pin(PinTimestamp)
		return
	case "rand_seed1", "rand_seed2":
		st.pin(PinRandSeed)
		return
	case "pseudo_thread_id":
		st.pin(PinPseudoThreadID)
		return
	case "sql_mode":
		if mode, ok := plainMode(value); ok && literal {
			st.setSQLMode(mode)
			st.quotesUnknown, st.escapesUnknown = false, false
		} else {
			st.loseMode()
		}
	case "tx_read_only", "transaction_read_only":
		st.readOnly = !slices.Contains([]string{"0", "OFF", "FALSE"}, strings.ToUpper(unquote(value)))
	case "sql_select_limit":
		st.selectLimit = !isDefault(value)
	case "wait_timeout":
		st.waitTimeout = timeoutOf(value, literal)
	case "resultset_metadata":
		st.metadata = true
	case stepVariable:
		st.stepLost = isDefault(value)
	case "character_set_client":
		st.setCharset(unquote(value))
	}
	st.changed(name)
}

func (st *state) setCharset(name string) {
	st.charset, st.mode.Charset = strings.ToLower(name), lex.CharsetByName(name)
	st.modeUnknown = false
	if st.mode.Charset == lex.Unsupported { // DEFAULT, a number, an expression
		st.loseMode()
	}
}

// loseMode takes note that the mode may be another now. Until it is asked for, only
// texts that are read in the same way in every mode are analysed in the one assumed
// here: see session.readable.
func (st *state) loseMode() {
	st.metadata, st.quotesUnknown, st.escapesUnknown = true, true, true
	st.inserts.conn = 0
	st.askMode()
}

// askMode is loseMode where it is certain that nothing else was lost.
func (st *state) askMode() {
	st.modeUnknown = true
	if st.mode.Charset == lex.Unsupported {
		st.mode.Charset, st.charset = lex.UTF8, ""
	}
}

func (st *state) changed(name string) {
	if st.sysvars == nil {
		st.sysvars = make(map[string]int)
	}
	st.sysvars[name] = st.version
	if setByNames(name) {
		st.names = 0
	}
}

// setByNames says whether SET NAMES sets a variable.
func setByNames(name string) bool {
	switch name {
	case "character_set_client", "character_set_connection", "character_set_results", "collation_connection":
		return true
	}
	return false
}

// unquote takes the quotes off a simple literal.
func unquote(s string) string {
	if len(s) >= 2 && (s[0] == '\'' || s[0] == '"' || s[0] == '`') && s[len(s)-1] == s[0] {
		return s[1 : len(s)-1]
	}
	return s
}
