package lex

import (
	"encoding/binary"
	"math/bits"
)

// Kind is the kind of a token.
type Kind uint8

// The kinds.
const (
	EOF     Kind = iota
	Word         // an unquoted word; Kw says which keyword it is
	Quoted       // `x`, and "x" under ANSI_QUOTES: an identifier
	String       // 'x', "x", and N'x', x'00', b'01' with their letter
	Number       // 1, 1.5, 1e5, 0x1F, .5, and \N
	UserVar      // @x, @'x', @`x`
	Punct        // one byte, in Ch
	Assign       // :=
	SysVar       // @@; the name follows in further tokens
)

// Lexer splits a text into tokens as the server's lexer does (sql/sql_lex.cc: MYSQLlex, get_text,
// consume_comment). It never allocates.
type Lexer struct {
	Src  []byte
	Mode Mode
	Pos  int // where the next token begins, or white space before it

	// The current token, filled by Next.
	Kind       Kind
	Ch         byte // for Punct
	Kw         Keyword
	Start, End int

	AfterDot bool // the token before was a dot, so this is no keyword
	InExec   bool // inside an executable comment
	inCond   bool // inside a comment that the server may or may not execute
	SeenCond bool // there was such a comment
	Bad      bool // the text is unterminated or unreadable: conclude nothing from it
	Wrong    bool // the text is bad because no server accepts it
	// ByVersion: a comment was read as the server of the Mode reads it. Other servers may read it
	// differently.
	ByVersion bool
	Execs     int32 // number of executable comments' borders so far
}

// class says which tokens can start with a byte.
type class uint8

const (
	cBad class = iota
	cSpace
	cWord
	cDigit
	cPunct // always a token by itself
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

// BeginsWord reports whether c can begin a word.
func BeginsWord(c byte) bool { return classes[c] == cWord }

// InWord reports whether c can be part of a word.
func InWord(c byte) bool { return wordByte[c] }

// IsDigit reports whether c is a decimal digit.
func IsDigit(c byte) bool { return classes[c] == cDigit }

// Next reads one token. At the end, and after a bad text, it always returns EOF.
func (l *Lexer) Next() {
	l.AfterDot = l.Kind == Punct && l.Ch == '.'
	l.Kw = KwNone
	src := l.Src
	for i := l.Pos; uint(i) < uint(len(src)); i = l.Pos { // unsigned saves a bounds check
		c := src[i]
		if c == ' ' && i+1 < len(src) {
			i++
			c = src[i]
		}
		l.Start = i
		k := classes[c]
		// Most tokens are words or single bytes. They come before the switch, whose jump is
		// mispredicted more often. This is the common case of word.
		if k == cWord && l.Mode.Charset == UTF8 {
			if i+8 <= len(src) {
				i += plainWord(binary.LittleEndian.Uint64(src[i:]))
			}
			for i < len(src) && wordByte[src[i]] {
				i++
			}
			n := i - l.Start
			if n < minKeyword {
				if i < len(src) && src[i] == '\'' {
					l.Pos = l.Start
					l.word()
					return
				}
			} else if mayBeKeyword(c, src[l.Start+1], n) && !l.AfterDot {
				if l.Kw = lookupAt(src, l.Start, i); i < len(src) && src[i] == '.' {
					l.qualifies(i)
				}
			}
			l.Kind, l.End, l.Pos = Word, i, i
			return
		}
		if k == cPunct {
			l.Kind, l.Ch, l.End, l.Pos = Punct, c, i+1, i+1
			return
		}
		l.Pos = i
		switch k {
		case cSpace:
			l.Pos++
			continue
		case cWord:
			if l.upper() {
				continue
			}
			return
		case cDigit:
			for i++; i < len(src) && classes[src[i]] == cDigit; i++ {
			}
			if i < len(src) && (wordByte[src[i]] || src[i] == '.') || l.AfterDot {
				l.number()
				return
			}
			l.Kind, l.End, l.Pos = Number, i, i
			return
		case cQuote:
			l.Kind, l.Pos = String, l.quoted(l.Pos+1, '\'', !l.Mode.NoBackslashEscapes)
			l.End = l.Pos
			return
		case cDoubleQuote:
			if l.Mode.ANSIQuotes {
				l.quotedIdentifier('"')
				return
			}
			l.Kind, l.Pos = String, l.quoted(l.Pos+1, '"', !l.Mode.NoBackslashEscapes)
			l.End = l.Pos
			return
		case cBackquote:
			l.quotedIdentifier('`')
			return
		case cAt:
			l.variable()
			return
		case cSlash:
			if l.Pos+1 < len(l.Src) && l.Src[l.Pos+1] == '*' {
				l.comment()
				continue
			}
		case cStar:
			if l.InExec && l.Pos+1 < len(l.Src) && l.Src[l.Pos+1] == '/' {
				l.InExec, l.inCond = false, false
				l.Execs++
				l.Pos += 2
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
			// .5 is a number, but t.5 is a column: right after an unquoted word the dot is a
			// separator.
			if (l.Kind != Word || l.End != l.Pos) && l.Pos+1 < len(l.Src) && classes[l.Src[l.Pos+1]] == cDigit {
				l.number()
				return
			}
		case cColon:
			if l.Pos+1 < len(l.Src) && l.Src[l.Pos+1] == '=' {
				l.Kind = Assign
				l.Pos += 2
				l.End = l.Pos
				return
			}
		case cBracket, cBackslash, cBad:
			if l.odd(k) {
				continue
			}
			return
		}
		l.Kind, l.Ch = Punct, c
		l.Pos++
		l.End = l.Pos
		return
	}
	if l.InExec {
		l.Bad, l.Wrong = true, !l.inCond // an executable comment without an end
	}
	l.Kind, l.Start, l.End = EOF, len(l.Src), len(l.Src)
}

// upper reads a word in a character set other than UTF8. It returns true for white space, and moves
// past it.
func (l *Lexer) upper() (space bool) {
	if c := l.Src[l.Pos]; c >= 0x80 && l.Mode.Charset.single() {
		switch l.Mode.Charset.upper(c) {
		case 's':
			l.Pos++
			return true
		case 'w':
		case '?':
			l.Fail()
			return false
		default:
			l.mistake()
			return false
		}
	}
	l.word()
	return false
}

// odd handles what hardly any text has outside of quotes. It returns true for a NUL that ends the
// text, and moves there.
func (l *Lexer) odd(k class) (end bool) {
	c := l.Src[l.Pos]
	switch {
	case k == cBracket && l.Mode.Brackets:
		l.Fail()
	case k == cBackslash && l.Pos+1 < len(l.Src) && l.Src[l.Pos+1] == 'N':
		// \N is MariaDB's NULL, whatever follows it directly. MySQL 8 no longer knows it.
		l.Kind, l.End = Number, l.Pos+2
		l.Pos = l.End
	case k != cBad:
		l.Kind, l.Ch, l.End = Punct, c, l.Pos+1
		l.Pos = l.End
	case c == 0 && l.endsAt(l.Pos):
		l.Pos = len(l.Src)
		return true
	default: // every server rejects control characters, and NUL in other places
		l.mistake()
	}
	return false
}

// mistake is Fail for a text that no server accepts.
func (l *Lexer) mistake() {
	l.Wrong = !l.Bad && !l.SeenCond
	l.Fail()
}

// Fail makes the text bad and ends it here.
func (l *Lexer) Fail() {
	l.Bad = true
	l.Pos = len(l.Src)
	l.Kind, l.Start, l.End, l.Kw = EOF, len(l.Src), len(l.Src), KwNone
}

// plainWord returns how many of eight bytes belong to a word, up to the first that is no ASCII
// letter, digit or underscore. The first byte is the lowest. This takes a third of the time of a
// loop, and saves 13 % for whole texts.
func plainWord(b uint64) int {
	const (
		each = 0x0101010101010101
		high = 0x80 * each
	)
	// Below, the high bit of each byte has the answer. Since the bytes' own high bits are cleared,
	// no sum overflows into the next byte.
	low := b &^ high
	lower := low | 0x20*each
	letter := (lower + (0x80-'a')*each) &^ (lower + (0x7f-'z')*each)
	digit := (low + (0x80-'0')*each) &^ (low + (0x7f-'9')*each)
	notUnderscore := (low ^ '_'*each) + 0x7f*each
	word := (letter | digit | ^notUnderscore) &^ b & high
	return bits.TrailingZeros64(word^high) / 8
}

// word reads an unquoted word, or a string with a letter before it.
func (l *Lexer) word() {
	i := l.Pos
	if l.Mode.Charset == UTF8 {
		for i < len(l.Src) && wordByte[l.Src[i]] {
			i++
		}
	} else {
		i = l.wordEnd(i)
	}
	if n := i - l.Start; n >= minKeyword && mayBeKeyword(l.Src[l.Start], l.Src[l.Start+1], n) && !l.AfterDot {
		if l.Kw = lookupAt(l.Src, l.Start, i); i < len(l.Src) && l.Src[i] == '.' {
			l.qualifies(i)
		}
	}
	l.Kind, l.End, l.Pos = Word, i, i
	if i-l.Start == 1 && i < len(l.Src) && l.Src[i] == '\'' {
		switch l.Src[l.Start] | 0x20 {
		case 'n':
			l.Kind, l.Pos = String, l.quoted(i+1, '\'', !l.Mode.NoBackslashEscapes)
			l.End = l.Pos
			return
		case 'x', 'b':
			l.Kind, l.Pos = String, l.quoted(i+1, '\'', false)
			l.End = l.Pos
			return
		}
	}
}

// qualifies removes the keyword if the dot at offset dot makes the word a name. l.Kind is still the
// kind of the token before. To a server a word with a dot and a name right behind it is no keyword
// (union.x is a column), unless it follows @@. The names of the two schemas are keywords in this
// package only, and nearly always have a dot behind them.
func (l *Lexer) qualifies(dot int) {
	if dot+1 < len(l.Src) && wordByte[l.Src[dot+1]] &&
		l.Kind != SysVar && l.Kw != KwInformationSchema && l.Kw != KwPerformanceSchema {
		l.Kw = KwNone
	}
}

// wordEnd is word's loop for character sets in which bytes from 0x80 need care.
func (l *Lexer) wordEnd(i int) int {
	cs := l.Mode.Charset
	for i < len(l.Src) && wordByte[l.Src[i]] {
		if l.Src[i] >= 0x80 {
			if cs.Multi() {
				i += cs.CharLen(l.Src, i)
				continue
			}
			if cs.upper(l.Src[i]) != 'w' {
				break
			}
		}
		i++
	}
	return i
}

// endsAt reports whether the NUL at an offset ends the text. It does if only white space and
// semicolons follow, since servers drop these first. It also does as the first token after a
// semicolon, since servers take it for the end of everything.
func (l *Lexer) endsAt(nul int) bool {
	if l.Kind == Punct && l.Ch == ';' {
		return true
	}
	for i := nul + 1; i < len(l.Src); i++ {
		c := l.Src[i]
		if c >= 0x80 && l.Mode.Charset.single() && l.Mode.Charset.upper(c) == 's' {
			continue
		}
		if c != ';' && classes[c] != cSpace {
			return false
		}
	}
	return true
}

// number reads a number. A word may begin with digits, too (1a).
func (l *Lexer) number() {
	i := l.Pos
	digits := func() {
		for i < len(l.Src) && classes[l.Src[i]] == cDigit {
			i++
		}
	}
	// exponent moves past e5 or e+5 at i.
	exponent := func() bool {
		j := i + 1
		if j < len(l.Src) && (l.Src[j] == '+' || l.Src[j] == '-') {
			j++
		}
		if j >= len(l.Src) || classes[l.Src[j]] != cDigit {
			return false
		}
		i = j
		digits()
		return true
	}
	digits()
	if i > l.Pos && l.AfterDot && l.Src[l.Start-1] == '.' {
		l.word() // t.1a and t.1: a name
		l.Kw = KwNone
		return
	}
	if i < len(l.Src) && l.Src[i] != '.' && wordByte[l.Src[i]] {
		// 1e5, 1e+5, 0x1F, 0b1, or a name such as 1a. A number with an exponent ends with its
		// digits, whatever follows directly: 1e5from is 1e5 FROM.
		if l.Src[i]|0x20 == 'e' && exponent() {
			l.Kind, l.End, l.Pos = Number, i, i
			return
		}
		l.word()
		if l.Kind == Word && IsNumberWord(l.Src[l.Start:l.End]) {
			l.Kind = Number
		}
		return
	}
	if i < len(l.Src) && l.Src[i] == '.' {
		i++
		digits()
		if i < len(l.Src) && l.Src[i]|0x20 == 'e' && !exponent() {
			// 1.e and 1.else are errors for today's servers. Older ones forget the number and go on
			// within the word.
			l.Fail()
			return
		}
	}
	l.Kind, l.End, l.Pos = Number, i, i
}

// IsNumberWord reports whether word characters that begin with a digit are a number: 0x1F, 0b01
// (the prefix in lower case only, as in the server).
func IsNumberWord(w []byte) bool {
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

// ParseUint reads a decimal number that fits in 64 bits.
func ParseUint(digits []byte) (uint64, bool) {
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

// Is reports whether the current token is the single byte ch.
func (l *Lexer) Is(ch byte) bool { return l.Kind == Punct && l.Ch == ch }

// IsVariableName reports whether l can be the name after an @@ that ended at end. The name follows
// directly, and not in double quotes, even under ANSI_QUOTES.
func (l *Lexer) IsVariableName(end int) bool {
	return l.Start == end && (l.Kind == Word || l.Kind == Quoted && l.Src[l.Start] == '`')
}

// NameKeyword returns the keyword that a name equals, quoted or not.
func (l *Lexer) NameKeyword() Keyword {
	if l.Kind == Quoted {
		if l.End-l.Start < 2 {
			return KwNone
		}
		return Lookup(l.Src[l.Start+1 : l.End-1])
	}
	return Lookup(l.Src[l.Start:l.End])
}

// Spells reports whether the current token is that word, in any letter case.
func (l *Lexer) Spells(word string) bool {
	return l.Kind == Word && EqualFold(l.Src[l.Start:l.End], word)
}
