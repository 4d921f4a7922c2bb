package statement

import (
	"bytes"
	"encoding/binary"
	"math/bits"
)

// tokenKind is what a token is made of.
type tokenKind uint8

const (
	tEOF     tokenKind = iota
	tWord              // an unquoted word; kw tells if it is a keyword
	tQuoted            // `x`, and "x" under ANSI_QUOTES: an identifier
	tString            // 'x', "x", and N'x', x'00', b'01' with their letter
	tNumber            // 1, 1.5, 1e5, 0x1F, .5, and \N
	tUserVar           // @x, @'x', @`x`
	tPunct             // one byte; ch tells which
	tAssign            // :=
	tSysVar            // @@, the name follows as other tokens
)

// lexer cuts a text into tokens the way the server's lexer does
// (sql/sql_lex.cc: MYSQLlex, get_text, consume_comment). It never allocates.
type lexer struct {
	src  []byte
	mode Mode
	pos  int // where the next token is looked for

	// The current token, filled by next.
	kind       tokenKind
	ch         byte // for tPunct
	kw         keyword
	start, end int

	afterDot bool // the token before was a dot: no keyword can follow
	inExec   bool // inside an executable comment
	inCond   bool // inside one of which it is not known whether the server runs it
	seenCond bool // such a comment was seen
	bad      bool // unterminated or unreadable: nothing may be concluded
	wrong    bool // it is bad since no server takes it
	// byVersion: a comment was read as the server of the Mode reads it, and others may not.
	byVersion bool
	execs     int32 // executable comment borders passed so far
}

// class sorts bytes by what a token that starts with them can be.
type class uint8

const (
	cBad class = iota
	cSpace
	cWord
	cDigit
	cPunct // always a token of its own
	cBracket
	cBackslash
	cQuote
	cDoubleQuote
	cBackquote
	cAt
	cSlash
	cStar
	cMinus
	cHash
	cDot
	cColon
)

// classes and wordByte are read-only after start.
var (
	classes  [256]class
	wordByte [256]bool
)

func init() {
	for c := 0; c < 256; c++ {
		switch b := byte(c); {
		case b >= '\t' && b <= '\r', b == ' ':
			classes[c] = cSpace
		case b >= 'a' && b <= 'z', b >= 'A' && b <= 'Z', b == '_', b == '$', b >= 0x80:
			classes[c], wordByte[c] = cWord, true
		case b >= '0' && b <= '9':
			classes[c], wordByte[c] = cDigit, true
		case b > ' ' && b < 0x7f:
			classes[c] = cPunct
		}
	}
	for b, k := range map[byte]class{
		'\'': cQuote, '"': cDoubleQuote, '`': cBackquote, '@': cAt, '/': cSlash, '*': cStar, '-': cMinus,
		'#': cHash, '.': cDot, ':': cColon, '[': cBracket, '\\': cBackslash,
	} {
		classes[b] = k
	}
}

// beginsWord reports whether a word may begin with c.
func beginsWord(c byte) bool { return classes[c] == cWord }

// inWord reports whether c may stand in a word.
func inWord(c byte) bool { return wordByte[c] }

// isDigit reports whether c is a decimal digit.
func isDigit(c byte) bool { return classes[c] == cDigit }

// next reads one token. After a bad text and at the end it gives tEOF for ever.
func (l *lexer) next() {
	l.afterDot = l.kind == tPunct && l.ch == '.'
	l.kw = kwNone
	src := l.src
	for i := l.pos; uint(i) < uint(len(src)); i = l.pos { // unsigned: no further check of bounds
		c := src[i]
		if c == ' ' && i+1 < len(src) {
			i++
			c = src[i]
		}
		l.start = i
		k := classes[c]
		// Most tokens of most texts are words, of which this is word's common case, or one byte.
		// They come in front of the switch, whose jump is more often mispredicted.
		if k == cWord && l.mode.Charset == UTF8 {
			if i+8 <= len(src) {
				i += plainWord(binary.LittleEndian.Uint64(src[i:]))
			}
			for i < len(src) && wordByte[src[i]] {
				i++
			}
			n := i - l.start
			if n < minKeyword {
				if i < len(src) && src[i] == '\'' {
					l.pos = l.start
					l.word()
					return
				}
			} else if mayBeKeyword(c, src[l.start+1], n) && !l.afterDot {
				if l.kw = lookupAt(src, l.start, i); i < len(src) && src[i] == '.' {
					l.qualifies(i)
				}
			}
			l.kind, l.end, l.pos = tWord, i, i
			return
		}
		if k == cPunct {
			l.kind, l.ch, l.end, l.pos = tPunct, c, i+1, i+1
			return
		}
		l.pos = i
		switch k {
		case cSpace:
			l.pos++
			continue
		case cWord:
			if l.upper() {
				continue
			}
			return
		case cDigit:
			for i++; i < len(src) && classes[src[i]] == cDigit; i++ {
			}
			if i < len(src) && (wordByte[src[i]] || src[i] == '.') || l.afterDot {
				l.number()
				return
			}
			l.kind, l.end, l.pos = tNumber, i, i
			return
		case cQuote:
			l.kind, l.pos = tString, l.quoted(l.pos+1, '\'', !l.mode.NoBackslashEscapes)
			l.end = l.pos
			return
		case cDoubleQuote:
			if l.mode.ANSIQuotes {
				l.quotedIdentifier('"')
				return
			}
			l.kind, l.pos = tString, l.quoted(l.pos+1, '"', !l.mode.NoBackslashEscapes)
			l.end = l.pos
			return
		case cBackquote:
			l.quotedIdentifier('`')
			return
		case cAt:
			l.variable()
			return
		case cSlash:
			if l.pos+1 < len(l.src) && l.src[l.pos+1] == '*' {
				l.comment()
				continue
			}
		case cStar:
			if l.inExec && l.pos+1 < len(l.src) && l.src[l.pos+1] == '/' {
				l.inExec, l.inCond = false, false
				l.execs++
				l.pos += 2
				continue
			}
		case cMinus:
			if l.dashComment() {
				continue
			}
		case cHash:
			l.lineComment()
			continue
		case cDot:
			// .5 is a number, but t.5 is a column: only right behind an unquoted
			// word does the server take the dot for a separator.
			if (l.kind != tWord || l.end != l.pos) && l.pos+1 < len(l.src) && classes[l.src[l.pos+1]] == cDigit {
				l.number()
				return
			}
		case cColon:
			if l.pos+1 < len(l.src) && l.src[l.pos+1] == '=' {
				l.kind = tAssign
				l.pos += 2
				l.end = l.pos
				return
			}
		case cBracket, cBackslash, cBad:
			if l.odd(k) {
				continue
			}
			return
		}
		l.kind, l.ch = tPunct, c
		l.pos++
		l.end = l.pos
		return
	}
	if l.inExec {
		l.bad, l.wrong = true, !l.inCond // an unterminated executable comment
	}
	l.kind, l.start, l.end = tEOF, len(l.src), len(l.src)
}

// upper reads a word where it is not UTF-8. It is true at white space, which it goes past.
func (l *lexer) upper() (space bool) {
	if c := l.src[l.pos]; c >= 0x80 && l.mode.Charset.single() {
		switch l.mode.Charset.upper(c) {
		case 's':
			l.pos++
			return true
		case 'w':
		case '?':
			l.fail()
			return false
		default:
			l.mistake()
			return false
		}
	}
	l.word()
	return false
}

// odd reads what hardly any text has outside of quotes. It is true for a NUL that ends the text,
// and goes there.
func (l *lexer) odd(k class) (end bool) {
	c := l.src[l.pos]
	switch {
	case k == cBracket && l.mode.Brackets:
		l.fail()
	case k == cBackslash && l.pos+1 < len(l.src) && l.src[l.pos+1] == 'N':
		// MariaDB's NULL, whatever is glued to it. MySQL 8 knows it no more.
		l.kind, l.end = tNumber, l.pos+2
		l.pos = l.end
	case k != cBad:
		l.kind, l.ch, l.end = tPunct, c, l.pos+1
		l.pos = l.end
	case c == 0 && l.endsAt(l.pos):
		l.pos = len(l.src)
		return true
	default: // a control character is a syntax error for every server, and so is a NUL elsewhere
		l.mistake()
	}
	return false
}

// mistake is fail for what no server takes.
func (l *lexer) mistake() {
	l.wrong = !l.bad && !l.seenCond
	l.fail()
}

// fail ends the text: what follows cannot be read.
func (l *lexer) fail() {
	l.bad = true
	l.pos = len(l.src)
	l.kind, l.start, l.end, l.kw = tEOF, len(l.src), len(l.src), kwNone
}

// plainWord returns how many of eight bytes, the first in the lowest, belong to a word, up to
// the first that is no ASCII letter, digit or underscore. Eight at a time they take a third of
// what a loop takes, and whole texts 13 % less.
func plainWord(b uint64) int {
	const (
		each = 0x0101010101010101
		high = 0x80 * each
	)
	// Below, the high bit of each byte tells. Without their own high bits no sum leaves its byte.
	low := b &^ high
	lower := low | 0x20*each
	letter := (lower + (0x80-'a')*each) &^ (lower + (0x7f-'z')*each)
	digit := (low + (0x80-'0')*each) &^ (low + (0x7f-'9')*each)
	notUnderscore := (low ^ '_'*each) + 0x7f*each
	word := (letter | digit | ^notUnderscore) &^ b & high
	return bits.TrailingZeros64(word^high) / 8
}

// word reads an unquoted word, or a string with a letter in front.
func (l *lexer) word() {
	i := l.pos
	if l.mode.Charset == UTF8 {
		for i < len(l.src) && wordByte[l.src[i]] {
			i++
		}
	} else {
		i = l.wordEnd(i)
	}
	if n := i - l.start; n >= minKeyword && mayBeKeyword(l.src[l.start], l.src[l.start+1], n) && !l.afterDot {
		if l.kw = lookupAt(l.src, l.start, i); i < len(l.src) && l.src[i] == '.' {
			l.qualifies(i)
		}
	}
	l.kind, l.end, l.pos = tWord, i, i
	if i-l.start == 1 && i < len(l.src) && l.src[i] == '\'' {
		switch l.src[l.start] | 0x20 {
		case 'n':
			l.kind, l.pos = tString, l.quoted(i+1, '\'', !l.mode.NoBackslashEscapes)
			l.end = l.pos
			return
		case 'x', 'b':
			l.kind, l.pos = tString, l.quoted(i+1, '\'', false)
			l.end = l.pos
			return
		}
	}
}

// qualifies forgets the keyword if the dot at offset dot, behind it, makes it a name;
// l.kind is still that of the token before. For the server a word is none if a dot and
// a name are glued to it (union.x is a column), unless it follows @@. The two schemas
// are no keywords of the server's, and nearly always have a dot behind them.
func (l *lexer) qualifies(dot int) {
	if dot+1 < len(l.src) && wordByte[l.src[dot+1]] &&
		l.kind != tSysVar && l.kw != kwInformationSchema && l.kw != kwPerformanceSchema {
		l.kw = kwNone
	}
}

// wordEnd is word's loop for the character sets where bytes from 0x80 need care.
func (l *lexer) wordEnd(i int) int {
	cs := l.mode.Charset
	for i < len(l.src) && wordByte[l.src[i]] {
		if l.src[i] >= 0x80 {
			if cs.multi() {
				i += cs.mbLen(l.src, i)
				continue
			}
			if cs.upper(l.src[i]) != 'w' {
				break
			}
		}
		i++
	}
	return i
}

// endsAt reports whether the NUL at an offset ends the text. It does where nothing but white
// space and semicolons is behind it, which servers drop before they read, and as the first
// token behind a semicolon, where they take the NUL for the end of everything.
func (l *lexer) endsAt(nul int) bool {
	if l.kind == tPunct && l.ch == ';' {
		return true
	}
	for i := nul + 1; i < len(l.src); i++ {
		c := l.src[i]
		if c >= 0x80 && l.mode.Charset.single() && l.mode.Charset.upper(c) == 's' {
			continue
		}
		if c != ';' && classes[c] != cSpace {
			return false
		}
	}
	return true
}

// number reads a number; a word may begin with digits (1a), then it is one.
func (l *lexer) number() {
	i := l.pos
	digits := func() {
		for i < len(l.src) && classes[l.src[i]] == cDigit {
			i++
		}
	}
	// exponent goes past e5 or e+5, if that is what stands at i.
	exponent := func() bool {
		j := i + 1
		if j < len(l.src) && (l.src[j] == '+' || l.src[j] == '-') {
			j++
		}
		if j >= len(l.src) || classes[l.src[j]] != cDigit {
			return false
		}
		i = j
		digits()
		return true
	}
	digits()
	if i > l.pos && l.afterDot && l.src[l.start-1] == '.' {
		l.word() // t.1a and t.1: a name
		l.kw = kwNone
		return
	}
	if i < len(l.src) && l.src[i] != '.' && wordByte[l.src[i]] {
		// 1e5, 1e+5, 0x1F, 0b1, or a name such as 1a. A number with an exponent
		// ends with its digits, whatever is glued to it: 1e5from is 1e5 FROM.
		if l.src[i]|0x20 == 'e' && exponent() {
			l.kind, l.end, l.pos = tNumber, i, i
			return
		}
		l.word()
		if l.kind == tWord && isNumberWord(l.src[l.start:l.end]) {
			l.kind = tNumber
		}
		return
	}
	if i < len(l.src) && l.src[i] == '.' {
		i++
		digits()
		if i < len(l.src) && l.src[i]|0x20 == 'e' && !exponent() {
			// 1.e and 1.else: an error for today's servers; older ones forget
			// the number and go on in the middle of what follows.
			l.fail()
			return
		}
	}
	l.kind, l.end, l.pos = tNumber, i, i
}

// isNumberWord reports whether a run of word characters that begins with a
// digit is a number: 0x1F, 0b01 (lower-case prefix only, as in the server).
func isNumberWord(w []byte) bool {
	if len(w) <= 2 || w[0] != '0' || w[1] != 'x' && w[1] != 'b' {
		return false
	}
	for _, c := range w[2:] {
		lower := c | 0x20
		hex := classes[c] == cDigit || lower >= 'a' && lower <= 'f'
		if w[1] == 'x' && !hex || w[1] == 'b' && c != '0' && c != '1' {
			return false
		}
	}
	return true
}

// parseUint reads a decimal number that fits in 64 bits.
func parseUint(digits []byte) (uint64, bool) {
	var n uint64
	for _, c := range digits {
		if c < '0' || c > '9' {
			return 0, false
		}
		d := uint64(c - '0')
		if n > (1<<64-1-d)/10 {
			return 0, false
		}
		n = n*10 + d
	}
	return n, len(digits) > 0
}

// is reports whether the current token is one byte, ch.
func (l *lexer) is(ch byte) bool { return l.kind == tPunct && l.ch == ch }

// isVariableName reports whether l can be the name behind an @@ that ended at
// end: glued to it, and not in double quotes even under ANSI_QUOTES.
func (l *lexer) isVariableName(end int) bool {
	return l.start == end && (l.kind == tWord || l.kind == tQuoted && l.src[l.start] == '`')
}

// lookupName finds the keyword that a name is, quoted or not.
func (l *lexer) lookupName() keyword {
	if l.kind == tQuoted {
		if l.end-l.start < 2 {
			return kwNone
		}
		return lookup(l.src[l.start+1 : l.end-1])
	}
	return lookup(l.src[l.start:l.end])
}

// spells says whether the current token is that word, in any letter case.
func (l *lexer) spells(word string) bool {
	return l.kind == tWord && bytes.EqualFold(l.src[l.start:l.end], []byte(word))
}
