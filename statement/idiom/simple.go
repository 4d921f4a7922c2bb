package idiom

import (
	"strings"

	"seqproxy/statement/lex"
)

// SimpleKind says what a SimpleItem is.
type SimpleKind uint8

// The kinds of simple items.
const (
	SimpleVariable SimpleKind = iota + 1 // @@name, @@session.name, @@global.name
	SimpleFunction                       // name(), and CURRENT_USER without parentheses
	SimpleNumber                         // an unsigned number; Value is its text
	SimpleString                         // a string; Value is its decoded text
	SimpleWord                           // NULL, TRUE or FALSE; Value is in lower case
)

// SimpleItem is one item of a SELECT that needs no table.
type SimpleItem struct {
	Kind SimpleKind
	// Name is the variable's or function's name in lower case.
	Name string
	// Global is set for @@global.name.
	Global bool
	// Value is a literal's text.
	Value string
	// Column is the column's name: the alias, or the server's name for an item with this text.
	Column string
}

// maxItems bounds the number of items, since the whole answer is made in memory.
const maxItems = 1000

// SimpleSelect reads a SELECT of system variables, literals and functions without arguments. It may
// have aliases, FROM DUAL, and a LIMIT that keeps its single row. Drivers send such texts when they
// connect. It returns false for any other text. It allocates, so it is not for the data path.
func SimpleSelect(sql []byte, mode lex.Mode) ([]SimpleItem, bool) {
	if mode.Charset == lex.Unsupported || len(sql) > maxQuestion {
		return nil, false
	}
	s := simpleReader{Lexer: lex.Lexer{Src: sql, Mode: mode}}
	if s.Next(); s.Kw != lex.KwSelect {
		return nil, false
	}
	var items []SimpleItem
	for {
		s.Next()
		it, ok := s.item()
		if !ok || len(items) == maxItems {
			return nil, false
		}
		items = append(items, it)
		if !s.Is(',') {
			break
		}
	}
	if s.Kw == lex.KwFrom {
		if s.Next(); s.Kw != lex.KwDual {
			return nil, false
		}
		s.Next()
	}
	if s.Kw == lex.KwLimit {
		s.Next()
		if n, ok := lex.ParseUint(sql[s.Start:s.End]); s.Kind != lex.Number || !ok || n == 0 {
			return nil, false
		}
		s.Next()
	}
	for s.Is(';') {
		s.Next()
	}
	if s.Kind != lex.EOF || s.Bad || s.Execs > 0 {
		return nil, false
	}
	return items, true
}

type simpleReader struct {
	lex.Lexer
	arena lex.Arena
}

func (s *simpleReader) text() string { return string(s.arena.Decode(&s.Lexer)) }

// item reads one item that begins at the current token, and its alias.
func (s *simpleReader) item() (SimpleItem, bool) {
	var it SimpleItem
	start, end := s.Start, s.End
	switch {
	case s.Kind == lex.SysVar:
		it.Kind = SimpleVariable
		s.Next()
		if !s.IsVariableName(end) {
			return it, false
		}
		it.Name, end = s.text(), s.End
		if s.Next(); s.Is('.') {
			scope := strings.ToLower(it.Name)
			s.Next()
			if s.Kind != lex.Word && s.Kind != lex.Quoted {
				return it, false
			}
			switch scope {
			case "global":
				it.Global = true
				it.Name = s.text()
			case "session", "local":
				it.Name = s.text()
			default:
				it.Name += "." + s.text()
			}
			end = s.End
			s.Next()
		}
		it.Name = strings.ToLower(it.Name)
	case s.Kind == lex.Number && s.Src[s.Start] != '\\': // and not \N
		it.Kind, it.Value = SimpleNumber, string(s.Src[s.Start:s.End])
		s.Next()
	case s.Kind == lex.String && (s.Src[s.Start] == '\'' || s.Src[s.Start] == '"'):
		it.Kind, it.Value = SimpleString, s.text()
		it.Column = it.Value // the server names a string's column by its value
		s.Next()
		if s.Kind == lex.String {
			return it, false // adjacent strings, or an alias without AS: too rare
		}
	case s.Kw == lex.KwNull, s.Kw == lex.KwTrue, s.Kw == lex.KwFalse:
		it.Kind, it.Value = SimpleWord, strings.ToLower(string(s.Src[s.Start:s.End]))
		it.Column = strings.ToUpper(it.Value) // in any letter case in the text
		s.Next()
	case s.Kind == lex.Word:
		it.Kind, it.Name = SimpleFunction, strings.ToLower(string(s.Src[s.Start:s.End]))
		if s.Next(); s.Is('(') {
			if s.Next(); !s.Is(')') {
				return it, false
			}
			end = s.End
			s.Next()
		} else if it.Name != "current_user" {
			return it, false
		}
	default:
		return it, false
	}
	if it.Column == "" {
		it.Column = string(lex.ColumnName(s.Src[start:end], s.Mode.Charset))
	}
	return it, s.alias(&it)
}

// alias reads [[AS] alias].
func (s *simpleReader) alias(it *SimpleItem) bool {
	as := s.Kw == lex.KwAs
	if as {
		s.Next()
	}
	switch {
	case s.Kind == lex.Word && !lex.Reserved(s.Src[s.Start:s.End]), s.Kind == lex.Quoted,
		s.Kind == lex.String && (s.Src[s.Start] == '\'' || s.Src[s.Start] == '"'):
		it.Column = s.text()
		s.Next()
		return true
	default:
		return !as
	}
}
