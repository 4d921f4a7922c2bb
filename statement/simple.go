package statement

import "strings"

// SimpleKind says what a SimpleItem is.
type SimpleKind uint8

// The kinds of simple items.
const (
	SimpleVariable SimpleKind = iota + 1 // @@name, @@session.name, @@global.name
	SimpleFunction                       // name(), and CURRENT_USER without parentheses
	SimpleNumber                         // a number without sign; Value is its text
	SimpleString                         // a string; Value is its decoded text
	SimpleWord                           // NULL, TRUE or FALSE; Value is it in lower case
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
	// Column is the column's name: the alias, or what the server makes of the
	// item's text.
	Column string
}

// maxItems is how many items are read at most: an answer is made whole.
const maxItems = 1000

// SimpleSelect reads a SELECT that consists of nothing but system variables,
// literals and functions without arguments, with or without aliases, FROM DUAL
// and a LIMIT that leaves its one row: what drivers send when they connect. It
// is false for any other text. It allocates; it is not for the data path.
func SimpleSelect(sql []byte, mode Mode) ([]SimpleItem, bool) {
	if mode.Charset == Unsupported || len(sql) > maxQuestion {
		return nil, false
	}
	s := simpleReader{lexer: lexer{src: sql, mode: mode}}
	if s.next(); s.kw != kwSelect {
		return nil, false
	}
	var items []SimpleItem
	for {
		s.next()
		it, ok := s.item()
		if !ok || len(items) == maxItems {
			return nil, false
		}
		items = append(items, it)
		if !s.is(',') {
			break
		}
	}
	if s.kw == kwFrom {
		if s.next(); s.kw != kwDual {
			return nil, false
		}
		s.next()
	}
	if s.kw == kwLimit {
		s.next()
		if n, ok := parseUint(sql[s.start:s.end]); s.kind != tNumber || !ok || n == 0 {
			return nil, false
		}
		s.next()
	}
	for s.is(';') {
		s.next()
	}
	if s.kind != tEOF || s.bad || s.execs > 0 {
		return nil, false
	}
	return items, true
}

type simpleReader struct {
	lexer
	arena arena
}

func (s *simpleReader) text() string { return string(s.arena.decode(s.lexer)) }

// item reads one item that begins at the current token, and its alias.
func (s *simpleReader) item() (SimpleItem, bool) {
	var it SimpleItem
	start, end := s.start, s.end
	switch {
	case s.kind == tSysVar:
		it.Kind = SimpleVariable
		s.next()
		if !s.isVariableName(end) {
			return it, false
		}
		it.Name, end = s.text(), s.end
		if s.next(); s.is('.') {
			scope := strings.ToLower(it.Name)
			s.next()
			if s.kind != tWord && s.kind != tQuoted {
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
			end = s.end
			s.next()
		}
		it.Name = strings.ToLower(it.Name)
	case s.kind == tNumber && s.src[s.start] != '\\': // not \N
		it.Kind, it.Value = SimpleNumber, string(s.src[s.start:s.end])
		s.next()
	case s.kind == tString && (s.src[s.start] == '\'' || s.src[s.start] == '"'):
		it.Kind, it.Value = SimpleString, s.text()
		it.Column = it.Value // a string's column is named by its text
		s.next()
		if s.kind == tString {
			return it, false // adjacent strings, or an alias: rare enough
		}
	case s.kw == kwNull, s.kw == kwTrue, s.kw == kwFalse:
		it.Kind, it.Value = SimpleWord, strings.ToLower(string(s.src[s.start:s.end]))
		it.Column = strings.ToUpper(it.Value) // whatever case it was typed in
		s.next()
	case s.kind == tWord:
		it.Kind, it.Name = SimpleFunction, strings.ToLower(string(s.src[s.start:s.end]))
		if s.next(); s.is('(') {
			if s.next(); !s.is(')') {
				return it, false
			}
			end = s.end
			s.next()
		} else if it.Name != "current_user" {
			return it, false
		}
	default:
		return it, false
	}
	if it.Column == "" {
		it.Column = string(columnName(s.src[start:end], s.mode.Charset))
	}
	return it, s.alias(&it)
}

// alias reads [[AS] alias].
func (s *simpleReader) alias(it *SimpleItem) bool {
	as := s.kw == kwAs
	if as {
		s.next()
	}
	switch {
	case s.kind == tWord && !reservedWord(s.src[s.start:s.end]), s.kind == tQuoted,
		s.kind == tString && (s.src[s.start] == '\'' || s.src[s.start] == '"'):
		it.Column = s.text()
		s.next()
		return true
	default:
		return !as
	}
}
