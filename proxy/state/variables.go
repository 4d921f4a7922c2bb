package state

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"seqproxy/statement"
	"seqproxy/statement/lex"
)

// userVariable is a user variable whose value is a literal.
type userVariable struct {
	Number  string // as the client wrote it; empty: no number
	Version int
}

// longestLiteral is how long the literal of a user variable may be, in bytes, that moves with the
// session to another connection.
const longestLiteral = 64 << 10

// longestNumber is longestLiteral for a number, which the session keeps as it is written.
const longestNumber = 256

// isNumber reports whether a literal is a number or a word (TRUE, NULL), which always means the
// same. Others are '...', "...", X'..', 0x.., _charset'..'.
func isNumber(literal string) bool {
	return literal != "" && !strings.ContainsAny(literal, "'\"_xX")
}

// Synced records that a connection has all variables up to a version.
func (st *State) Synced(c ConnID, version int) {
	for i := range st.synced {
		if st.synced[i].conn == c {
			st.synced[i].version = version
			return
		}
	}
	st.synced = append(st.synced, syncedConn{c, version})
}

// SyncedTo returns the version of the variables on a connection.
func (st *State) SyncedTo(c ConnID) int {
	for _, k := range st.synced {
		if k.conn == c {
			return k.version
		}
	}
	return 0
}

// SetNames records that the server has set the variables of SET NAMES. Other connections then get
// them as if the client had sent SET NAMES.
func (st *State) SetNames() {
	st.Version++
	st.Names = st.Version
}

// SetVariables records a SET that the server accepted. text is its SQL.
func (st *State) SetVariables(s *statement.Statement, text []byte) {
	st.Version++
	if s.Words&statement.VersionedComment != 0 { // some servers skip it
		defer st.LoseMode()
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
				st.Names = st.Version
			}
			name, _, _ := strings.Cut(value, " ")
			st.setCharset(Unquote(name))
		case statement.UserVariable:
			name := string(a.Name)
			if !lex.ASCII(a.Name) {
				// MariaDB converts `x` from the client's character set, but not x.
				delete(st.Uservars, name)
				st.pin(PinVariableName)
				continue
			}
			longest := longestLiteral
			if isNumber(value) {
				longest = longestNumber
			}
			if !a.Literal || len(value) > longest {
				delete(st.Uservars, name)
				st.pin(PinUserVariable)
				continue
			}
			if st.Uservars == nil {
				st.Uservars = make(map[string]userVariable)
			}
			if !isNumber(value) {
				value = ""
			}
			st.Uservars[name] = userVariable{value, st.Version}
		case statement.Transaction:
			switch a.Scope {
			case statement.ScopeNext:
				st.NextTransaction = true
			case statement.ScopeSession:
				st.changed("tx_isolation")
				st.changed("tx_read_only")
				switch words := strings.Join(strings.Fields(strings.ToUpper(string(text))), " "); {
				case strings.Contains(words, "READ ONLY"):
					st.ReadOnly = true
				case strings.Contains(words, "READ WRITE"):
					st.ReadOnly = false
				}
			}
		case statement.Role:
			st.pin(PinRole)
		case statement.StatementFor, statement.TargetUnknown:
			st.pin(PinOpaque)
		}
	}
}

// IsDefault reports whether a SET to value gives a variable its default.
func IsDefault(value string) bool { return strings.EqualFold(value, "default") }

func (st *State) setSystem(name, value string, literal bool) {
	switch name {
	case "last_insert_id", "identity":
		return // LAST_INSERT_ID() travels by itself
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
			st.SetSQLMode(mode)
			st.QuotesUnknown, st.EscapesUnknown = false, false
		} else {
			st.LoseMode()
		}
	case "tx_read_only", "transaction_read_only":
		st.ReadOnly = !slices.Contains([]string{"0", "OFF", "FALSE"}, strings.ToUpper(Unquote(value)))
	case "sql_select_limit":
		st.SelectLimit = !IsDefault(value)
	case "wait_timeout":
		st.WaitTimeout = timeoutOf(value, literal)
	case "resultset_metadata":
		st.Metadata = true
	case "session_track_system_variables":
		st.TracksGTID = strings.Contains(value, "*") || strings.Contains(strings.ToLower(value), "last_gtid")
	case StepVariable:
		st.StepLost = IsDefault(value)
	case "character_set_client":
		st.setCharset(Unquote(value))
	}
	st.changed(name)
}

func (st *State) setCharset(name string) {
	st.Charset, st.Mode.Charset = strings.Clone(strings.ToLower(name)), lex.CharsetByName(name)
	st.ModeUnknown = false
	if st.Mode.Charset == lex.Unsupported { // DEFAULT, a number, an expression
		st.LoseMode()
	}
}

func (st *State) changed(name string) {
	if st.Sysvars == nil {
		st.Sysvars = make(map[string]int)
	}
	st.Sysvars[name] = st.Version
	if SetByNames(name) {
		st.Names = 0
	}
}

// SetByNames reports whether SET NAMES sets a variable.
func SetByNames(name string) bool {
	switch name {
	case "character_set_client", "character_set_connection", "character_set_results", "collation_connection":
		return true
	}
	return false
}

// StepVariable is the distance between the keys of a statement's rows. The session keeps it equal
// to the sequences' (keepStep).
const StepVariable = "auto_increment_increment"

// UnknownTimeout is a wait_timeout whose value only the server knows.
const UnknownTimeout = -1

// timeoutOf returns the value of a SET wait_timeout.
func timeoutOf(value string, literal bool) time.Duration {
	const longest = 31536000 // the limit of servers: a year
	seconds, err := strconv.ParseUint(strings.TrimSpace(value), 10, 64)
	if err != nil || !literal {
		return UnknownTimeout
	}
	return time.Duration(min(max(seconds, 1), longest)) * time.Second
}
