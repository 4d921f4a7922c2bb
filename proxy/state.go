package proxy

import (
	"strings"

	"seqproxy/backend"
	"seqproxy/protocol"
	"seqproxy/statement"
)

// state is everything a session has that is not a connection: what would have to
// be brought along when the session goes on on another connection.
type state struct {
	schema string
	status protocol.Status // of the last answer: IN_TRANS, AUTOCOMMIT, ...
	mode   statement.Mode  // how the server reads the session's texts

	// modeUnknown: mode.Charset, and with a server that does not tell by its status
	// mode.ANSIQuotes, may have been changed by something that was not understood.
	modeUnknown bool

	lastID lastInsertID
	// lastOwn says whether the client's last statement was answered by the proxy,
	// so that the server's warnings and row counts are not those of that statement.
	lastOwn   ownKind
	lastConn  *backend.Conn         // that the last relayed command ran on
	lastError *protocol.ServerError // of ownError

	// version counts changes of variables; a connection knows up to which it has
	// them all.
	version int
	// sysvars are the system variables that were set, with the version of the last
	// change. Their values are the server's to know.
	sysvars map[string]int
	// uservars are the user variables that were set to a literal.
	uservars map[string]userVariable
	// told are those of sysvars whose values are known without a server.
	told map[string]string
	// synced is the version that each connection has.
	synced map[any]int

	// selectLimit: sql_select_limit was set, so even a SELECT of one row is the
	// server's to answer.
	selectLimit bool
	// option is the argument of the last COM_SET_OPTION.
	option []byte

	// pins are reasons why the session cannot leave its connection, in words.
	pins []string
	// nextTransaction: SET TRANSACTION was said for the next one only.
	nextTransaction bool
}

// userVariable is a user variable whose value is a literal.
type userVariable struct {
	literal string // as typed
	version int
}

// ownKind says what the proxy answered itself.
type ownKind uint8

const (
	ownNothing ownKind = iota // the last statement was relayed
	ownRows                   // a result set
	ownAnswer                 // anything else that succeeded
	ownError                  // an error
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
		mode: statement.Mode{Charset: st.mode.Charset},
	}
}

// observe takes note of the status that an answer ended with.
func (st *state) observe(status protocol.Status, mariaDB bool) {
	st.status = status & statusOfSession
	st.mode.NoBackslashEscapes = status.Has(protocol.NoBackslashEscapes)
	if mariaDB { // MySQL never sets the bit
		st.mode.ANSIQuotes = status.Has(protocol.ANSIQuotes)
	}
}

// inTransaction says whether leaving the connection would leave a transaction.
func (st *state) inTransaction() bool { return st.status.Has(protocol.InTransaction) }

// pin remembers why the session cannot leave its connection.
func (st *state) pin(why string) {
	for _, p := range st.pins {
		if p == why {
			return
		}
	}
	st.pins = append(st.pins, why)
}

// unpin takes a reason back.
func (st *state) unpin(why string) {
	for i, p := range st.pins {
		if p == why {
			st.pins = append(st.pins[:i], st.pins[i+1:]...)
			return
		}
	}
}

// Reasons to pin.
const (
	pinTemporaryTable = "a temporary table was created"
	pinUserLock       = "a lock was taken with GET_LOCK"
	pinTableLock      = "LOCK TABLES is in force"
	pinGlobalLock     = "FLUSH TABLES WITH READ LOCK is in force"
	pinHandler        = "a HANDLER is open"
	pinSQLPrepare     = "a statement was prepared with PREPARE"
	pinUserVariable   = "a user variable was set to something else than a literal"
	pinRole           = "SET ROLE was used"
	pinOpaque         = "a statement was run that may have changed anything (CALL, several statements in one, or one not understood)"
)

// pinFor remembers what a statement that is about to be relayed may leave on its
// connection.
func (st *state) pinFor(kind statement.Kind, words statement.Words) {
	for _, r := range [...]struct {
		words statement.Words
		why   string
	}{
		{statement.TemporaryTable, pinTemporaryTable},
		{statement.UserLock, pinUserLock},
		{statement.TableLock, pinTableLock},
		{statement.GlobalLock, pinGlobalLock},
		{statement.HandlerOpen, pinHandler},
		{statement.SQLPrepare, pinSQLPrepare},
		{statement.SetsUserVariable, pinUserVariable},
		{statement.Opaque, pinOpaque},
	} {
		if words&r.words != 0 {
			st.pin(r.why)
		}
	}
	switch kind {
	case statement.Other, statement.Call, statement.Multi, statement.ExecuteImmediate, statement.Execute, statement.XA:
		st.pin(pinOpaque)
		st.loseMode()
	case statement.UnlockTables:
		st.unpin(pinTableLock)
		st.unpin(pinGlobalLock)
	case statement.Commit, statement.Rollback:
		st.nextTransaction = false
	}
}

// setVariables takes note of a SET that the server accepted. text is its SQL.
func (st *state) setVariables(s *statement.Statement, text []byte) {
	st.version++
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
			name, _, _ := strings.Cut(value, " ")
			st.setCharset(unquote(name))
		case statement.UserVariable:
			name := string(a.Name)
			if !a.Literal {
				delete(st.uservars, name)
				st.pin(pinUserVariable)
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
			}
		case statement.Role:
			st.pin(pinRole)
		case statement.StatementFor, statement.TargetUnknown:
			st.pin(pinOpaque)
		}
	}
}

func (st *state) setSystem(name, value string, literal bool) {
	switch name {
	case "last_insert_id", "identity":
		return // carried as the LAST_INSERT_ID() that it is
	case "insert_id", "timestamp", "rand_seed1", "rand_seed2", "pseudo_thread_id":
		st.pin("the variable " + name + " was set")
		return
	case "sql_mode":
		if literal && !strings.EqualFold(value, "default") {
			st.mode.ANSIQuotes = impliesANSIQuotes(value)
		} else {
			st.loseMode()
		}
	case "sql_select_limit":
		st.selectLimit = !strings.EqualFold(value, "default")
	case "character_set_client":
		st.setCharset(unquote(value))
	}
	st.changed(name)
}

func (st *state) setCharset(name string) {
	st.mode.Charset = statement.CharsetByName(name)
	if st.mode.Charset == statement.Unsupported { // DEFAULT, a number, an expression
		st.loseMode()
	}
}

// loseMode takes note that the mode may be another now. Until it is asked for, only
// texts that are read in the same way in every mode are analysed in the one assumed
// here: see session.learnMode.
func (st *state) loseMode() {
	st.modeUnknown = true
	if st.mode.Charset == statement.Unsupported {
		st.mode.Charset = statement.UTF8
	}
}

func (st *state) changed(name string) {
	if st.sysvars == nil {
		st.sysvars = make(map[string]int)
	}
	st.sysvars[name] = st.version
}

// impliesANSIQuotes says whether a sql_mode makes "x" an identifier. The combined
// modes are those of https://dev.mysql.com/doc/refman/5.7/en/sql-mode.html and
// https://mariadb.com/kb/en/sql-mode/.
func impliesANSIQuotes(mode string) bool {
	for word := range strings.SplitSeq(strings.ToUpper(unquote(mode)), ",") {
		switch strings.TrimSpace(word) {
		case "ANSI_QUOTES", "ANSI", "DB2", "MAXDB", "MSSQL", "ORACLE", "POSTGRESQL":
			return true
		}
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
