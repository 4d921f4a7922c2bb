package statement

import "bytes"

// comment skips a comment, or enters an executable one.
func (l *lexer) comment() {
	body := l.pos + 2
	if l.inExec && (bytes.HasPrefix(l.src[body:], []byte("!")) || bytes.HasPrefix(l.src[body:], []byte("M!"))) {
		l.fail() // servers differ about one executable comment in another
		return
	}
	if !l.inExec && body < len(l.src) {
		mariaOnly := l.src[body] == 'M' && body+1 < len(l.src) && l.src[body+1] == '!'
		if mariaOnly {
			body++
		}
		if l.src[body] == '!' {
			l.enterExecutable(body+1, mariaOnly)
			return
		}
	}
	n := -1
	if l.pos+2 <= len(l.src) {
		n = bytes.Index(l.src[l.pos+2:], []byte("*/"))
	}
	if n < 0 {
		l.fail()
		return
	}
	l.pos += 2 + n + 2
}

// everyServerVersion: code in a comment with a version up to this runs on every
// server that the proxy can stand in front of. MariaDB skips versions from
// 50700 to 99999, MySQL versions above its own.
const everyServerVersion = 50699

// enterExecutable goes into the executable comment whose text begins at i.
func (l *lexer) enterExecutable(i int, mariaOnly bool) {
	version, n := 0, 0
	for n < 6 && i+n < len(l.src) && classes[l.src[i+n]] == cDigit {
		version = version*10 + int(l.src[i+n]-'0')
		n++
	}
	l.inExec = true
	l.execs++
	l.pos = i
	if n >= 5 { // fewer digits are part of the code
		l.pos = i + n
	}
	if mariaOnly || n >= 5 && version > everyServerVersion || n == 6 {
		l.inCond, l.seenCond = true, true
	}
}

// dashComment skips a comment that begins with two dashes; the server wants a
// space or control character behind them (the end of the text counts).
func (l *lexer) dashComment() bool {
	i := l.pos
	if i+1 >= len(l.src) || l.src[i+1] != '-' {
		return false
	}
	if i+2 < len(l.src) && l.src[i+2] > ' ' && l.src[i+2] != 0x7f {
		return false
	}
	l.lineComment()
	return true
}

// lineComment skips to the end of the line. A NUL ends it as well, and is an
// error where it stands.
func (l *lexer) lineComment() {
	n := bytes.IndexByte(l.src[l.pos:], '\n')
	if n < 0 {
		n = len(l.src) - l.pos - 1
	}
	if bytes.IndexByte(l.src[l.pos:l.pos+n+1], 0) >= 0 {
		l.fail()
		return
	}
	l.pos += n + 1
}
