package alone

import (
	"strconv"
	"strings"

	"github.com/go-mysql-org/go-mysql/mysql"

	"seqproxy/protocol"
	"seqproxy/proxy/state"
	"seqproxy/statement"
	"seqproxy/statement/idiom"
	"seqproxy/statement/lex"
)

// Facts are what the proxy itself knows of a session.
type Facts struct {
	State   *state.State
	Version string // the server's version, as the session shows it
	AtAdmin bool
	Stride  uint64 // the distance between numbers for applications that count themselves
	User    string
	Host    string // of the client
	ID      uint32 // the connection id that the client has
}

// WarningColumns are the columns of SHOW WARNINGS.
var WarningColumns = []protocol.Column{
	textColumn("Level", 7),
	{Name: "Code", Charset: BinaryCharset, Length: 4, Type: mysql.MYSQL_TYPE_LONGLONG, Flags: NotNull | Unsigned | Binary},
	textColumn("Message", 512),
}

const charsetUTF8MB4 = 45 // utf8mb4_general_ci

func textColumn(name string, chars uint32) protocol.Column {
	return protocol.Column{Name: name, Charset: charsetUTF8MB4, Length: 4 * chars, Type: mysql.MYSQL_TYPE_VAR_STRING, Decimals: 31}
}

// Select answers a SELECT of system variables, literals and functions without arguments. ok is
// false for others.
func (f *Facts) Select(sql []byte, mode lex.Mode) (t *protocol.Table, ok bool) {
	items, ok := idiom.SimpleSelect(sql, mode)
	if !ok {
		return nil, false
	}
	t = &protocol.Table{}
	var row []any
	for i := range items {
		value, ok := f.value(&items[i])
		if !ok {
			return nil, false
		}
		c := textColumn(items[i].Column, 64)
		switch value.(type) {
		case uint64:
			c = protocol.Column{
				Name: items[i].Column, Charset: BinaryCharset, Length: 21, Type: mysql.MYSQL_TYPE_LONGLONG,
				Flags: Unsigned | Binary,
			}
		case nil:
			c.Type, c.Charset, c.Length = mysql.MYSQL_TYPE_NULL, BinaryCharset, 0
		}
		t.Columns = append(t.Columns, c)
		row = append(row, value)
	}
	t.Rows = [][]any{row}
	return t, true
}

func (f *Facts) value(it *idiom.SimpleItem) (value any, ok bool) {
	switch it.Kind {
	case idiom.SimpleVariable:
		return f.variable(it)
	case idiom.SimpleFunction:
		return f.function(it.Name)
	case idiom.SimpleString:
		return it.Value, true
	case idiom.SimpleNumber:
		n, err := strconv.ParseUint(it.Value, 10, 64)
		return n, err == nil
	case idiom.SimpleWord:
		switch it.Value {
		case "true":
			return uint64(1), true
		case "false":
			return uint64(0), true
		}
		return nil, true
	}
	return nil, false
}

func (f *Facts) variable(it *idiom.SimpleItem) (value any, ok bool) {
	name := state.HereName(it.Name)
	value, ok = state.Asked[name]
	switch {
	case name == "version":
		return f.Version, true
	case name == "version_comment" && f.AtAdmin:
		return "seqproxy, admin address", true
	case name == state.StepVariable:
		value = f.Stride
	}
	if it.Global {
		return value, ok
	}
	switch name {
	case "autocommit":
		if f.State.Status.Has(protocol.Autocommit) {
			return uint64(1), true
		}
		return uint64(0), true
	case "last_insert_id", "identity":
		return f.State.LastID.Get()
	}
	return f.State.VariableHere(name, value, ok)
}

func (f *Facts) function(name string) (value any, ok bool) {
	switch name {
	case "database", "schema":
		if f.State.Schema == "" {
			return nil, true
		}
		return f.State.Schema, true
	case "version":
		return f.Version, true
	case "user", "current_user", "session_user", "system_user":
		return f.User + "@" + f.Host, true
	case "connection_id":
		return uint64(f.ID), true
	case "last_insert_id":
		return f.State.LastID.Get()
	}
	return nil, false
}

// mostVariables bounds the variables that a session without a server has set. Only a server knows
// which ones there are.
const mostVariables = 1000

// Set carries out a SET in a session without a server; false: it needs one.
func Set(s *state.State, st *statement.Statement, sql []byte) bool {
	if len(s.Sysvars)+len(s.Uservars)+len(st.Assignments) > mostVariables {
		return false
	}
	for i := range st.Assignments {
		a := &st.Assignments[i]
		if len(a.Name) > state.LongestName {
			return false
		}
		switch a.Target {
		case statement.SessionVariable:
			if string(a.Name) == "autocommit" {
				setAutocommit(s, string(sql[a.Start:a.End]))
			}
		case statement.Names, statement.CharacterSet, statement.Transaction, statement.UserVariable:
		default:
			return false
		}
	}
	s.SetVariables(st, sql)
	for i := range st.Assignments {
		a := &st.Assignments[i]
		value := string(sql[a.Start:a.End])
		switch a.Target {
		case statement.SessionVariable:
			s.SetHere(string(a.Name), value)
		case statement.Names:
			s.SetNamesHere(strings.Fields(value))
		case statement.CharacterSet:
			s.SetNamesHere(nil)
		case statement.Transaction:
			if a.Scope == statement.ScopeSession {
				s.SetTransactionHere(strings.Join(strings.Fields(strings.ToUpper(string(sql))), " "))
			}
		}
	}
	return true
}

func setAutocommit(s *state.State, value string) {
	switch state.Unquote(value) {
	case "0", "OFF", "off", "Off", "FALSE", "false", "False":
		s.Status &^= protocol.Autocommit
	default:
		s.Status |= protocol.Autocommit
	}
}

// Warnings is the answer to SHOW WARNINGS.
func Warnings(s *state.State) *protocol.Table {
	t := &protocol.Table{Columns: WarningColumns}
	switch s.LastAnswer {
	case state.OurError, state.OurTableRows, state.OurTableOK:
		if s.LastError == nil {
			break
		}
		level := "Error"
		if s.LastError.State == protocol.StateWarning {
			level = "Warning"
		}
		t.Rows = [][]any{{level, uint64(s.LastError.Code), s.LastError.Message}}
	}
	return t
}

// RowCount answers a SELECT of nothing but ROW_COUNT() and LAST_INSERT_ID(), right after a ticket.
// ok is false for others.
func RowCount(s *state.State, sql []byte) (t *protocol.Table, ok bool) {
	items, ok := idiom.SimpleSelect(sql, s.Mode)
	if !ok {
		return nil, false
	}
	t = &protocol.Table{Rows: [][]any{nil}}
	for i := range items {
		c := protocol.Column{
			Name: items[i].Column, Charset: BinaryCharset, Length: 21, Type: mysql.MYSQL_TYPE_LONGLONG, Flags: NotNull | Binary,
		}
		value := s.LastChanged
		switch {
		case items[i].Kind != idiom.SimpleFunction:
			return nil, false
		case items[i].Name == "row_count":
		case items[i].Name == "last_insert_id" && s.LastID.Pending:
			value = s.LastID.Value
			c.Flags |= Unsigned
		default:
			return nil, false
		}
		t.Columns = append(t.Columns, c)
		t.Rows[0] = append(t.Rows[0], value)
	}
	return t, true
}
