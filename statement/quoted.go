package statement

import "bytes"

// quoted returns the offset after the quote that closes the string whose text
// begins at i. A doubled quote is a quote. The text is bad if there is no end.
func (l *lexer) quoted(i int, quote byte, escapes bool) int {
	src := l.src
	if l.mode.Charset.multi() {
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
	// A long literal: let the vector instructions look for the end.
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
	l.bad, l.wrong = true, !l.seenCond
	return len(src)
}

// quotedMulti is quoted for character sets whose second bytes may look like a
// backslash or a quote.
func (l *lexer) quotedMulti(i int, quote byte, escapes bool) int {
	src, cs := l.src, l.mode.Charset
	for i < len(src) {
		switch c := src[i]; {
		case c >= 0x80:
			i += cs.mbLen(src, i)
		case c == quote:
			if i+1 >= len(src) || src[i+1] != quote {
				return l.closed(i + 1)
			}
			i += 2
		case c == '\\' && escapes:
			i++
			if i < len(src) {
				// The server skips one byte after the backslash, and reads the
				// rest of a character that began there as it comes.
				i++
			}
		default:
			i++
		}
	}
	l.bad, l.wrong = true, !l.seenCond
	return len(src)
}

// closed looks once more at a string inside a versioned comment: a server that
// skips the comment ends it at the first */, quoted or not.
func (l *lexer) closed(end int) int {
	if l.inCond && bytes.Contains(l.src[l.start:end], []byte("*/")) {
		l.bad = true
	}
	return end
}

// quotedIdentifier reads `x` or, under ANSI_QUOTES, "x".
func (l *lexer) quotedIdentifier(quote byte) {
	l.kind = tQuoted
	l.pos = l.quoted(l.pos+1, quote, false)
	l.end = l.pos
	if bytes.IndexByte(l.src[l.start:l.end], 0) >= 0 {
		l.bad = true
	}
}

// variable reads @x and @@.
func (l *lexer) variable() {
	i := l.pos + 1
	l.kind = tUserVar
	if i < len(l.src) {
		switch c := l.src[i]; {
		case c == '@':
			l.kind = tSysVar
			i++
		case c == '\'' || c == '"' && !l.mode.ANSIQuotes:
			i = l.quoted(i+1, c, !l.mode.NoBackslashEscapes)
		case c == '`' || c == '"':
			i = l.quoted(i+1, c, false)
		default:
			// The server reads this name byte by byte, whatever characters the
			// bytes make, and ends it at the first that is no letter.
		name:
			for i < len(l.src) && (wordByte[l.src[i]] || l.src[i] == '.') {
				if cs := l.mode.Charset; l.src[i] >= 0x80 && cs != UTF8 {
					if cs.multi() {
						l.fail()
						return
					}
					if cs.upper(l.src[i]) != 'w' {
						break name
					}
				}
				i++
			}
		}
	}
	l.end, l.pos = i, i
}
