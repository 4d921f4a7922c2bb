package lex

import (
	"bytes"
	"unicode/utf8"
)

// maxWritten bounds the length of a name in a text. No name of a sequence, table or server is so
// long, even with each byte escaped.
const maxWritten = 4 << 10

// Arena is memory for names and strings whose value differs from their text. The results are valid
// until the owner empties the arena. The zero value is ready for use.
type Arena []byte

// DecodeName is Decode for a name that may be copied many times. It cuts an overlong name: the
// result is still too long to be a name.
func (a *Arena) DecodeName(l *Lexer) []byte {
	if l.End-l.Start <= maxWritten {
		return a.Decode(l)
	}
	name := l.Src[l.Start : l.Start+maxWritten]
	if l.Kind != Word {
		name = name[1:]
	}
	for range utf8.UTFMax { // do not end within a character
		if r, size := utf8.DecodeLastRune(name); r != utf8.RuneError || size != 1 {
			break
		}
		name = name[:len(name)-1]
	}
	return name
}

// Decode returns the value of the token at l: a word unchanged, a quoted identifier or string
// without quotes, doubled quotes and escapes. The result shares memory with the text if possible,
// otherwise with the arena.
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

// appendUnescaped appends the meaning of a backslash and c in a string literal.
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
		return append(dst, '\\', c) // LIKE needs the backslash
	default:
		return append(dst, c)
	}
}

// Qualified returns "schema.name".
func (a *Arena) Qualified(schema, name []byte) []byte {
	from := len(*a)
	*a = append(*a, schema...)
	*a = append(*a, '.')
	*a = append(*a, name...)
	return (*a)[from:len(*a):len(*a)]
}

// Lowered returns name with ASCII letters in lower case.
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
