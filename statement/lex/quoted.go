package lex

import "bytes"

// quoted returns the offset after the closing quote of the string whose text begins at i. A doubled
// quote is part of the string. The text is bad if there is no closing quote.
func (l *Lexer) quoted(i int, quote byte, escapes bool) int {
	src := l.Src
	if l.Mode.Charset.Multi() {
		return l.quotedMulti(i, quote, escapes)
	}
	for near := i + 32; i < len(src) && i < near; {
		switch c := src[i]; {
		case c == quote:
			if i+1 >= len(src) || src[i+1] != quote {
				return l.closed(i + 1)
			}
			i += 2
		case c == '\\' && escapes:
			i += 2
		default:
			i++
		}
	}
	// A long literal: vector instructions look for the end.
	closing := -1 // offset of the next quote at or after i
	for i < len(src) {
		if closing < i {
			n := bytes.IndexByte(src[i:], quote)
			if n < 0 {
				break
			}
			closing = i + n
		}
		if escapes {
			if n := bytes.IndexByte(src[i:closing], '\\'); n >= 0 {
				i += n + 2
				continue
			}
		}
		if closing+1 >= len(src) || src[closing+1] != quote {
			return l.closed(closing + 1)
		}
		i = closing + 2
	}
	l.Bad, l.Wrong = true, !l.SeenCond
	return len(src)
}

// quotedMulti is quoted for character sets in which a second byte may look like a backslash or a
// quote.
func (l *Lexer) quotedMulti(i int, quote byte, escapes bool) int {
	src, cs := l.Src, l.Mode.Charset
	for i < len(src) {
		switch c := src[i]; {
		case c >= 0x80:
			i += cs.CharLen(src, i)
		case c == quote:
			if i+1 >= len(src) || src[i+1] != quote {
				return l.closed(i + 1)
			}
			i += 2
		case c == '\\' && escapes:
			i++
			if i < len(src) {
				// The server skips one byte after the backslash. It then reads the rest of a
				// character that began with that byte as separate bytes.
				i++
			}
		default:
			i++
		}
	}
	l.Bad, l.Wrong = true, !l.SeenCond
	return len(src)
}

// closed checks a string inside a versioned comment. A server that skips the comment ends it at the
// first */, quoted or not.
func (l *Lexer) closed(end int) int {
	if l.inCond && bytes.Contains(l.Src[l.Start:end], []byte("*/")) {
		l.Bad = true
	}
	return end
}

// quotedIdentifier reads `x` or, under ANSI_QUOTES, "x".
func (l *Lexer) quotedIdentifier(quote byte) {
	l.Kind = Quoted
	l.Pos = l.quoted(l.Pos+1, quote, false)
	l.End = l.Pos
	if bytes.IndexByte(l.Src[l.Start:l.End], 0) >= 0 {
		l.Bad = true
	}
}

// variable reads @x and @@.
func (l *Lexer) variable() {
	i := l.Pos + 1
	l.Kind = UserVar
	if i < len(l.Src) {
		switch c := l.Src[i]; {
		case c == '@':
			l.Kind = SysVar
			i++
		case c == '\'' || c == '"' && !l.Mode.ANSIQuotes:
			i = l.quoted(i+1, c, !l.Mode.NoBackslashEscapes)
		case c == '`' || c == '"':
			i = l.quoted(i+1, c, false)
		default:
			// The server reads this name byte by byte, whatever the character set, up to the first
			// byte that is no letter.
		name:
			for i < len(l.Src) && (wordByte[l.Src[i]] || l.Src[i] == '.') {
				if cs := l.Mode.Charset; l.Src[i] >= 0x80 && cs != UTF8 {
					if cs.Multi() {
						l.Fail()
						return
					}
					if cs.upper(l.Src[i]) != 'w' {
						break name
					}
				}
				i++
			}
		}
	}
	l.End, l.Pos = i, i
}
