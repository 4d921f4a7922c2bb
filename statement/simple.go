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

// SimpleSelect reads a SELECT that consists of nothing but system variables,
// literals and functions without arguments, with or without aliases, FROM DUAL
// and a LIMIT that leaves its one row: what drivers send when they connect. It
// is false for any other text. It allocates; it is not for the data path.
func SimpleSelect(sql []byte, mode Mode) ([]SimpleItem, bool) {
	rows, _, ok := SimpleUnion(sql, mode)
	if !ok || len(rows) > 1 {
		return nil, false
	}
	return rows[0], true
}

// SimpleUnion is SimpleSelect for several such, of as many items each, with UNION between
// them, or UNION ALL: then all is set, and equal rows are as many in the result.
func SimpleUnion(sql []byte, mode Mode) (rows [][]SimpleItem, all, ok bool) {
	if mode.Charset == Unsupported || len(sql) > maxQuestion {
		return nil, false, false
	}
	s := simpleReader{lexer: lexer{src: sql, mode: mode}}
	s.next()
	for {
		items, ok := s.row()
		if !ok || len(items) > maxItems || len(rows) == maxUnion || len(rows) > 0 && len(items) != len(rows[0]) {
			return nil, false, false
		}
		rows = append(rows, items)
		if s.kw != kwUnion {
			break
		}
		s.next()
		each := s.kw == kwAll
		if each {
			s.next()
		}
		if len(rows) > 1 && each != all {
			return nil, false, false
		}
		all = each
	}
	if s.kw == kwLimit && len(rows) == 1 {
		s.next()
		if n, ok := parseUint(sql[s.start:s.end]); s.kind != tNumber || !ok || n == 0 {
			return nil, false, false
		}
		s.next()
	}
	for s.is(';') {
		s.next()
	}
	return rows, all, s.kind == tEOF && !s.bad && s.execs == 0
}

// row reads SELECT with its items, and FROM DUAL.
func (s *simpleReader) row() (items []SimpleItem, ok bool) {
	if s.kw != kwSelect {
		return nil, false
	}
	for {
		s.next()
		it, ok := s.item()
		if !ok {
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
	return items, true
}

type simpleReader struct {
	lexer
	st Statement // for decoding names
}

func (s *simpleReader) text() string { return string(s.st.decode(s.lexer)) }

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
		} else if !withoutParentheses(it.Name) {
			return it, false
		}
	default:
		return it, false
	}
	if it.Column == "" {
		it.Column = string(s.st.columnName(s.src[start:end]))
	}
	return it, s.alias(&it)
}

// withoutParentheses says whether a function may be called so.
func withoutParentheses(name string) bool {
	switch name {
	case "current_user", "current_timestamp", "localtime", "localtimestamp", "utc_timestamp":
		return true
	}
	return false
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
