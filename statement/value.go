package statement

import (
	"bytes"
	"math"
	"strconv"

	"seqproxy/statement/lex"
)

// ValueKind is what is known about a value in a row without asking a server.
type ValueKind uint8

// The kinds. ValueNumber, ValueExplicit and ValueZero concern the number that an integer column
// makes of the value.
const (
	ValueMissing    ValueKind = iota
	ValueNull                 // NULL, \N
	ValueDefault              // DEFAULT
	ValueZero                 // 0, '0', 0.0, FALSE, -0
	ValueNumber               // 5, '5', TRUE: see InsertValue.Number
	ValueExplicit             // a literal other than those, never NULL or 0: -5, 1.7
	ValueText                 // a string that is no number: an error or 0, depending on sql_mode
	ValueParam                // ?
	ValueExpression           // anything else that may be evaluated twice
	// an expression that may not: functions, subqueries, assignments, columns, dates, bits
	ValueOpaque
)

// InsertValue is a value in a row.
type InsertValue struct {
	Kind       ValueKind
	Start, End int    // sql[Start:End]
	Params     int    // number of markers before it
	EndParams  int    // and including those in it
	Number     uint64 // for ValueNumber
	Literal    bool   // a string or a number, also with a character set in front: never NULL
}

// valueState is the state while reading one value.
type valueState struct {
	tokens int
	first  lex.Lexer // the first token other than parentheses and signs
	signs  int       // number of signs before first
	minus  bool
	simple bool // only parentheses, signs and first so far
	opaque bool
	opened int // number of parentheses before first
}

// passValue skips a value in parentheses whose kind does not matter. That is true of most values,
// and takes a third of the time of value. It returns false if value would.
func (in *Insertion) passValue() bool {
	l := &in.l
	depth, operand := 0, false
	for ; l.Kind != lex.EOF; in.next() {
		switch {
		case l.Kind != lex.Punct:
			operand = true
		case l.Ch == '(':
			depth++
		case depth == 0 && (l.Ch == ',' || l.Ch == ')' || l.Ch == ';'):
			return operand
		case l.Ch == ')':
			depth--
		case l.Ch != '-' && l.Ch != '+':
			operand = true
		}
	}
	return operand && depth == 0
}

// value reads one value and moves behind it. parenthesis says that a closing parenthesis ends it,
// too.
func (in *Insertion) value(parenthesis bool) (v InsertValue, ok bool) {
	l := &in.l
	v = InsertValue{Start: l.Start, Params: in.params}
	s := valueState{simple: true}
	depth := 0
	before := lex.EOF // kind of the token before
	v.Literal = true
	for ; l.Kind != lex.EOF; in.next() {
		if depth == 0 {
			if l.Is(',') || l.Is(';') || parenthesis && l.Is(')') {
				break
			}
			if !parenthesis && s.tokens > 0 && (l.Kw == lex.KwOn || l.Kw == lex.KwReturning || l.Kw == lex.KwAs) {
				break
			}
		}
		switch {
		case l.Is('('):
			if s.first.Kind == lex.EOF && s.signs == 0 {
				s.opened++
			} else {
				s.simple = false
			}
			// MOD( and IN( count as functions here.
			if s.tokens > 0 && (before == lex.Word || before == lex.Quoted) {
				s.opaque = true
			}
			depth++
		case l.Is(')'):
			if depth--; depth < 0 {
				return v, false
			}
		case s.first.Kind == lex.EOF && (l.Is('-') || l.Is('+')):
			s.signs++
			s.minus = s.minus != l.Is('-')
		case s.first.Kind == lex.EOF:
			s.first = *l
		default:
			s.simple = false
		}
		if l.Is('/') || fractional(l) && l.Start != s.first.Start {
			s.opaque = true // it may be rounded to 0
		}
		if l.Kind == lex.Assign || l.Kw == lex.KwSelect || l.Kw == lex.KwTable || l.Kw == lex.KwValues || l.Kw == lex.KwNext || l.Kw == lex.KwPrevious || changesType(l) {
			s.opaque = true
		}
		v.Literal = v.Literal && literalPart(l, s.tokens, before)
		s.tokens++
		v.End = l.End
		before = l.Kind
	}
	if s.tokens == 0 || depth != 0 || s.first.Kind == lex.EOF {
		return v, false
	}
	v.EndParams = in.params
	v.Literal = v.Literal && before != lex.Word
	v.Kind, v.Number = s.classify(in)
	return v, true
}

// literalPart reports whether a value that is a literal so far may go on with a token: a string
// behind others, a number alone, and a character set before them.
func literalPart(l *lex.Lexer, tokens int, before lex.Kind) bool {
	switch l.Kind {
	case lex.String:
		return before != lex.Number
	case lex.Number:
		return (tokens == 0 || before == lex.Word) && l.Src[l.Start] != '\\' // NULL
	case lex.Word:
		return tokens == 0 && l.Src[l.Start] == '_'
	}
	return false
}

// fractional reports whether the token is a number with a fraction or exponent.
func fractional(l *lex.Lexer) bool {
	return l.Kind == lex.Number && bytes.ContainsAny(l.Src[l.Start:l.End], ".eE")
}

// changesType reports whether an expression with this token may become another number in IFNULL(),
// where it is a string. 0x3F2 is 1010, and 1 as a string; DATE '2020-01-01' is 20200101, and 2020
// as a string. A column may be a date.
func changesType(l *lex.Lexer) bool {
	text := l.Src[l.Start:l.End]
	switch l.Kind {
	case lex.Number:
		return len(text) > 1 && text[0] == '0' && !lex.IsDigit(text[1]) && text[1]|0x20 != 'e' && text[1] != '.'
	case lex.String:
		return text[0]|0x20 == 'x' || text[0]|0x20 == 'b'
	case lex.Quoted:
		return true
	case lex.Word:
		// _utf8mb4, for one, is a character set before a string
		return text[0] != '_' && !isAnyOf(text,
			"null", "default", "true", "false", "unknown", "and", "or", "xor", "not", "is", "in", "like", "between", "div", "mod",
			"case", "when", "then", "else", "end",
		)
	}
	return false
}

// baseNumber reads 0x3F2 and 0b11. An integer column takes them as numbers.
func baseNumber(text []byte) (n uint64, ok bool) {
	base := 16
	switch {
	case len(text) < 3 || text[0] != '0':
		return 0, false
	case text[1] == 'b':
		base = 2
	case text[1] != 'x':
		return 0, false
	}
	n, err := strconv.ParseUint(string(text[2:]), base, 64)
	return n, err == nil
}

// classify returns the kind of a value, and its number.
func (s *valueState) classify(in *Insertion) (ValueKind, uint64) {
	f := &s.first
	text := f.Src[f.Start:f.End]
	if !s.simple {
		if s.opaque || fractional(f) {
			return ValueOpaque, 0
		}
		return ValueExpression, 0
	}
	switch f.Kind {
	case lex.Word:
		switch {
		case s.signs > 0: // -NULL is NULL, and -x may be anything
		case f.Kw == lex.KwNull:
			return ValueNull, 0
		case f.Kw == lex.KwDefault && s.opened == 0:
			return ValueDefault, 0
		case f.Kw == lex.KwTrue:
			return ValueNumber, 1
		case f.Kw == lex.KwFalse:
			return ValueZero, 0
		}
	case lex.Punct:
		if f.Ch == '?' && s.tokens == 1 {
			return ValueParam, 0
		}
	case lex.Number:
		if text[0] == '\\' {
			return ValueNull, 0
		}
		if n, ok := baseNumber(text); ok && n > 0 && s.signs == 0 {
			return ValueNumber, n
		}
		if s.opaque {
			return ValueOpaque, 0
		}
		return s.number(text)
	case lex.String:
		if text[0] != '\'' && text[0] != '"' || s.signs > 0 || s.opened > 0 {
			break // N'5', x'35'
		}
		return TextValue(in.arena.Decode(f))
	}
	if s.opaque {
		return ValueOpaque, 0
	}
	return ValueExpression, 0
}

// TextValue returns the kind and number of a string in an integer column.
func TextValue(text []byte) (ValueKind, uint64) {
	text = bytes.Trim(text, " \t\r\n\v\f")
	var s valueState
	kind, n := s.number(text)
	if kind == ValueOpaque {
		return ValueText, 0
	}
	if kind == ValueExpression {
		// If sql_mode allows it, its value is the number at its start.
		kind = ValueText
		if begin := leadingNumber(text); len(begin) < len(text) {
			s = valueState{}
			if k, _ := s.number(begin); k == ValueNumber || k == ValueExplicit {
				kind = ValueExplicit
			}
		}
	}
	return kind, n
}

// number returns the kind and number of a literal in an integer column.
func (s *valueState) number(text []byte) (ValueKind, uint64) {
	if len(text) > 0 && (text[0] == '-' || text[0] == '+') { // inside a string
		if s.signs > 0 {
			return ValueExpression, 0
		}
		s.signs, s.minus = 1, text[0] == '-'
		text = text[1:]
	}
	n, whole := lex.ParseUint(text)
	if !whole {
		if len(text) == 0 || !lex.IsDigit(text[0]) && text[0] != '.' || lex.IsNumberWord(text) || bytes.ContainsAny(text, "xX") {
			return ValueExpression, 0 // 0x1F, b'1', and 0x1p4, which is a number only to Go
		}
		f, err := strconv.ParseFloat(string(text), 64)
		switch {
		case err != nil && math.IsInf(f, 1):
			return ValueExplicit, 0 // too large for any integer
		case err != nil:
			return ValueExpression, 0
		case f == 0.5:
			return ValueOpaque, 0 // rounded according to its type
		case f < 0.5:
			return ValueZero, 0
		case f < 0.75:
			return ValueExplicit, 0
		case f != math.Trunc(f) || f >= 1<<53:
			return ValueExplicit, 0
		}
		n = uint64(f)
	}
	switch {
	case n == 0:
		return ValueZero, 0
	case s.minus:
		return ValueExplicit, 0
	}
	return ValueNumber, n
}

// leadingNumber returns the number without exponent at the start of text.
func leadingNumber(text []byte) []byte {
	i := 0
	if len(text) > 0 && (text[0] == '-' || text[0] == '+') {
		i = 1
	}
	for dot := false; i < len(text) && (lex.IsDigit(text[i]) || text[i] == '.' && !dot); i++ {
		dot = dot || text[i] == '.'
	}
	return text[:i]
}
