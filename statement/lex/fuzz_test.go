package lex_test

import (
	"bytes"
	"regexp"
	"testing"

	"seqproxy/statement/lex"
	"seqproxy/test/texts"
)

// FuzzLexer compares which bytes are string, comment or identifier with a reference that goes byte
// by byte. The reference asks the lexer only where a word begins.
func FuzzLexer(f *testing.F) {
	for _, sql := range texts.Corpus {
		f.Add([]byte(sql), byte(0))
		f.Add([]byte(sql), byte(1))
		f.Add([]byte(sql), byte(2))
		f.Add([]byte(sql), byte(lex.GBK)<<2)
		f.Add([]byte(sql), byte(lex.SJIS)<<2)
	}
	f.Fuzz(func(t *testing.T, sql []byte, m byte) {
		mode := texts.ModeOf(m)
		if mode.Charset == lex.Unsupported {
			return
		}
		want, wantOK := referenceCode(sql, mode)
		got := make([]bool, len(sql))
		l := lex.Lexer{Src: sql, Mode: mode}
		end := 0
		for l.Next(); l.Kind != lex.EOF; l.Next() {
			if l.Start < end || l.End <= l.Start || l.End > len(sql) {
				t.Fatalf("%q: token at [%d,%d) after %d", sql, l.Start, l.End, end)
			}
			end = l.End
			text := l.Kind == lex.String || l.Kind == lex.Quoted || l.Kind == lex.UserVar
			for i := l.Start; i < l.End; i++ {
				got[i] = !text
			}
			if text {
				// For the reference, @ and the letters before a string are code.
				for i := l.Start; i < l.End && !isQuote(sql[i]); i++ {
					got[i] = true
				}
			}
		}
		if l.Bad == wantOK && !(l.Bad && unreadable(sql[end:], mode)) {
			t.Fatalf("%q %+v: got bad %v, want ok %v", sql, mode, l.Bad, wantOK)
		}
		if l.Bad {
			return
		}
		for i := range sql {
			if isSpace(sql[i]) {
				continue // the reference counts space within code as code
			}
			if got[i] != want[i] {
				t.Fatalf("%q %+v: byte %d (%q): got code %v, want %v", sql, mode, i, sql[i], got[i], want[i])
			}
		}
	})
}

// noExponent is a number with an exponent that may lack digits.
var noExponent = regexp.MustCompile(`\.[0-9]*[eE]`)

// unreadable reports whether the lexer gives up on text outside of strings and comments: a number
// such as 1.e, or a user variable with multi-byte characters that may contain punctuation.
func unreadable(text []byte, mode lex.Mode) bool {
	for i, c := range text {
		if c != '@' || !mode.Charset.Multi() {
			continue
		}
		for i++; i < len(text) && (lex.InWord(text[i]) || text[i] == '.'); i++ {
			if text[i] >= 0x80 {
				return true
			}
		}
	}
	return noExponent.Match(text)
}

func isQuote(c byte) bool { return c == '\'' || c == '"' || c == '`' }
func isSpace(c byte) bool { return c == ' ' || c >= '\t' && c <= '\r' }

// referenceCode marks the bytes outside of quotes, comments and the borders of executable comments.
// ok is false if the text cannot be read.
func referenceCode(sql []byte, mode lex.Mode) (code []bool, ok bool) {
	code = make([]bool, len(sql))
	at := func(i int) int {
		if i < len(sql) {
			return int(sql[i])
		}
		return -1
	}
	// char is the length of the character at i, as the server sees it.
	char := func(i int) int {
		a, b := at(i), at(i+1)
		in := func(x, lo, hi int) bool { return x >= lo && x <= hi }
		tail := in(b, 0x40, 0x7e) || in(b, 0x80, 0xfe)
		two := false
		switch mode.Charset {
		case lex.GBK:
			two = in(a, 0x81, 0xfe) && tail
		case lex.GB18030:
			if in(a, 0x81, 0xfe) && in(b, 0x30, 0x39) && in(at(i+2), 0x81, 0xfe) && in(at(i+3), 0x30, 0x39) {
				return 4
			}
			two = in(a, 0x81, 0xfe) && tail
		case lex.Big5:
			two = in(a, 0xa1, 0xf9) && (in(b, 0x40, 0x7e) || in(b, 0xa1, 0xfe))
		case lex.SJIS:
			two = (in(a, 0x81, 0x9f) || in(a, 0xe0, 0xfc)) && (in(b, 0x40, 0x7e) || in(b, 0x80, 0xfc))
		}
		if two {
			return 2
		}
		return 1
	}
	hidden := false // in an executable comment that a server may skip
	inside := false // in an executable comment
	last := 0       // byte of code
	ends := func(c int) bool {
		return c >= 0x80 && mode.Charset.Single() && (mode.Charset.Upper(byte(c)) == 'c' || mode.Charset.Upper(byte(c)) == 's')
	}
	for i := 0; i < len(sql); {
		c := at(i)
		switch {
		case c == '\'' || c == '"' || c == '`':
			escapes := c != '`' && !mode.NoBackslashEscapes && (c == '\'' || !mode.ANSIQuotes)
			// x'..' and b'..' have no escapes, if the letter is a word of its own.
			if c == '\'' && i > 0 && bytes.IndexByte([]byte("xXbB"), sql[i-1]) >= 0 && prefixAlone(sql, code, i-1, mode) {
				escapes = false
			}
			j := i + 1
			for {
				if j >= len(sql) {
					return code, false
				}
				if n := char(j); n > 1 {
					j += n
					continue
				}
				if escapes && sql[j] == '\\' {
					j += 2
					continue
				}
				if at(j) == c {
					if at(j+1) != c {
						break
					}
					j++
				}
				j++
			}
			text := sql[i : j+1]
			identifier := c == '`' || c == '"' && mode.ANSIQuotes
			afterAt := i > 0 && code[i-1] && sql[i-1] == '@'
			if identifier && !afterAt && bytes.IndexByte(text, 0) >= 0 {
				return code, false
			}
			if hidden && bytes.Contains(text, []byte("*/")) {
				return code, false
			}
			i, last = j+1, '"'
		case c == '#', c == '-' && at(i+1) == '-' && (at(i+2) <= ' ' || at(i+2) == 0x7f || ends(at(i+2))):
			for i < len(sql) && sql[i] != '\n' && sql[i] != 0 {
				i++
			}
		case c == '/' && at(i+1) == '*':
			maria := at(i+2) == 'M' && at(i+3) == '!'
			if inside && (at(i+2) == '!' || maria) {
				return code, false
			}
			if !inside && (at(i+2) == '!' || maria) {
				i += 3
				if maria {
					i++
				}
				digits, version := 0, 0
				for digits < 6 && at(i+digits) >= '0' && at(i+digits) <= '9' {
					version = version*10 + at(i+digits) - '0'
					digits++
				}
				if digits >= 5 {
					i += digits
				}
				inside = true
				hidden = maria || digits == 6 || digits == 5 && version > 50699
				continue
			}
			n := bytes.Index(sql[i+2:], []byte("*/"))
			if n < 0 {
				return code, false
			}
			i += n + 4
		case c == '*' && at(i+1) == '/' && inside:
			inside, hidden = false, false
			i += 2
		case c == 0 && (last == ';' || len(bytes.Trim(sql[i+1:], "; \t\n\v\f\r")) == 0):
			return code, !inside
		case c < ' ' && !isSpace(byte(c)), c == 0x7f, c == '[' && mode.Brackets:
			return code, false
		case c >= 0x80 && mode.Charset.Single() && mode.Charset.Upper(byte(c)) != 'w':
			if mode.Charset.Upper(byte(c)) != 's' {
				return code, false
			}
			i++
		default:
			if !isSpace(byte(c)) {
				last = c
			}
			for n := char(i); n > 0; n-- {
				code[i] = true
				i++
			}
		}
	}
	return code, !inside
}

// prefixAlone reports whether the letter at i is a word of its own.
func prefixAlone(sql []byte, code []bool, i int, mode lex.Mode) bool {
	if !code[i] {
		return false
	}
	l := lex.Lexer{Src: sql[:i+1], Mode: mode}
	for l.Next(); l.Kind != lex.EOF; l.Next() {
		if l.End == i+1 {
			return l.Kind == lex.Word && l.Start == i
		}
	}
	return false
}
