package lex

import (
	"bytes"
	"unicode/utf8"
)

// maxWritten bounds a name as it is written: no name of a sequence, a table or a server is so long,
// even if each of its bytes is escaped.
const maxWritten = 4 << 10

// Arena has the names and strings that do not mean what stands in the text. What it gives is valid
// until its owner empties it. The zero value is ready for use.
type Arena []byte

// DecodeName is Decode for a name of which many copies may be made. Of one that is longer than
// any name it gives the beginning, which is still too long for one.
func (a *Arena) DecodeName(l *Lexer) []byte {
	if l.End-l.Start <= maxWritten {
		return a.Decode(l)
	}
	name := l.Src[l.Start : l.Start+maxWritten]
	if l.Kind != Word {
		name = name[1:]
	}
	for range utf8.UTFMax { // no part of a character
		if r, size := utf8.DecodeLastRune(name); r != utf8.RuneError || size != 1 {
			break
		}
		name = name[:len(name)-1]
	}
	return name
}

// Decode gives the meaning of the token at l: a word as it is, a quoted
// identifier or string without quotes, doubled quotes and escapes. The result
// aliases the text where it can and the arena where it must.
func (a *Arena) Decode(l *Lexer) []byte {
	raw := l.Src[l.Start:l.End]
	if l.Kind == UserVar && len(raw) > 0 {
		raw = raw[1:]
	}
	if len(raw) < 2 {
		return raw
	}
	quote := raw[0]
	if quote != '\'' && quote != '"' && quote != '`' {
		return raw
	}
	escapes := quote != '`' && !l.Mode.NoBackslashEscapes && (quote == '\'' || !l.Mode.ANSIQuotes)
	inner := raw[1 : len(raw)-1]
	if bytes.IndexByte(inner, quote) < 0 && (!escapes || bytes.IndexByte(inner, '\\') < 0) {
		return inner
	}
	from := len(*a)
	cs := l.Mode.Charset
	for i := 0; i < len(inner); i++ {
		c := inner[i]
		switch {
		case c >= 0x80 && cs.Multi():
			n := cs.CharLen(inner, i)
			*a = append(*a, inner[i:i+n]...)
			i += n - 1
		case c == quote: // doubled
			*a = append(*a, quote)
			i++
		case c == '\\' && escapes && i+1 < len(inner):
			i++
			*a = appendUnescaped(*a, inner[i])
		default:
			*a = append(*a, c)
		}
	}
	return (*a)[from:len(*a):len(*a)]
}

// appendUnescaped appends what a backslash and c mean in a string literal.
func appendUnescaped(dst []byte, c byte) []byte {
	switch c {
	case '0':
		return append(dst, 0)
	case 'b':
		return append(dst, '\b')
	case 'n':
		return append(dst, '\n')
	case 'r':
		return append(dst, '\r')
	case 't':
		return append(dst, '\t')
	case 'Z':
		return append(dst, 0x1a)
	case '%', '_':
		return append(dst, '\\', c) // kept, for LIKE
	default:
		return append(dst, c)
	}
}

// Qualified joins schema and name as "schema.name".
func (a *Arena) Qualified(schema, name []byte) []byte {
	from := len(*a)
	*a = append(*a, schema...)
	*a = append(*a, '.')
	*a = append(*a, name...)
	return (*a)[from:len(*a):len(*a)]
}

// Lowered gives name with ASCII letters in lower case.
func (a *Arena) Lowered(name []byte) []byte {
	for _, c := range name {
		if c >= 'A' && c <= 'Z' {
			from := len(*a)
			for _, c := range name {
				if c >= 'A' && c <= 'Z' {
					c |= 0x20
				}
				*a = append(*a, c)
			}
			return (*a)[from:len(*a):len(*a)]
		}
	}
	return name
}
