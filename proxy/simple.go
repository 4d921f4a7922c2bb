package proxy

import (
	"strconv"

	"github.com/go-mysql-org/go-mysql/mysql"

	"seqproxy/protocol"
	"seqproxy/proxy/state"
	"seqproxy/statement/idiom"
	"seqproxy/statement/lex"
)

// warningColumns are those of SHOW WARNINGS.
var warningColumns = []protocol.Column{
	textColumn("Level", 7),
	{Name: "Code", Charset: charsetBinary, Length: 4, Type: mysql.MYSQL_TYPE_LONGLONG, Flags: flagNotNull | flagUnsigned | flagBinary},
	textColumn("Message", 512),
}

const charsetUTF8MB4 = 45 // utf8mb4_general_ci

func textColumn(name string, chars uint32) protocol.Column {
	return protocol.Column{Name: name, Charset: charsetUTF8MB4, Length: 4 * chars, Type: mysql.MYSQL_TYPE_VAR_STRING, Decimals: 31}
}

// simpleTable answers a SELECT of system variables, literals and functions without
// arguments. Of any other it is an error.
func (s *session) simpleTable(sql []byte, mode lex.Mode) (*protocol.Table, error) {
	items, ok := idiom.SimpleSelect(sql, mode)
	if !ok {
		return nil, s.noServer()
	}
	t := &protocol.Table{}
	var row []any
	for i := range items {
		value, ok := s.simpleValue(&items[i])
		if !ok {
			return nil, s.noServer()
		}
		c := textColumn(items[i].Column, 64)
		switch value.(type) {
		case uint64:
			c = protocol.Column{
				Name: items[i].Column, Charset: charsetBinary, Length: 21, Type: mysql.MYSQL_TYPE_LONGLONG,
				Flags: flagUnsigned | flagBinary,
			}
		case nil:
			c.Type, c.Charset, c.Length = mysql.MYSQL_TYPE_NULL, charsetBinary, 0
		}
		t.Columns = append(t.Columns, c)
		row = append(row, value)
	}
	t.Rows = [][]any{row}
	return t, nil
}

func (s *session) simpleValue(it *idiom.SimpleItem) (value any, ok bool) {
	switch it.Kind {
	case idiom.SimpleVariable:
		return s.simpleVariable(it)
	case idiom.SimpleFunction:
		return s.simpleFunction(it.Name)
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

func (s *session) simpleVariable(it *idiom.SimpleItem) (value any, ok bool) {
	name := state.HereName(it.Name)
	value, ok = state.Asked[name]
	switch {
	case name == "version":
		return s.version(), true
	case name == "version_comment" && s.login.AtAdmin:
		return "seqproxy, admin address", true
	case name == state.StepVariable:
		value = s.set.Sequences.Turns() // see takeTurns
	}
	if it.Global {
		return value, ok
	}
	switch name {
	case "autocommit":
		if s.status().Has(protocol.Autocommit) {
			return uint64(1), true
		}
		return uint64(0), true
	case "last_insert_id", "identity":
		return s.state.LastID.Known()
	}
	return s.state.VariableHere(name, value, ok)
}

func (s *session) simpleFunction(name string) (value any, ok bool) {
	switch name {
	case "database", "schema":
		if s.state.Schema == "" {
			return nil, true
		}
		return s.state.Schema, true
	case "version":
		return s.version(), true
	case "user", "current_user", "session_user", "system_user":
		return s.login.Account.Name + "@" + protocol.HostOf(s.client.RemoteAddr()), true
	case "connection_id":
		return uint64(s.id), true
	case "last_insert_id":
		return s.state.LastID.Known()
	}
	return nil, false
}
