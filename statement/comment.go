package statement

import "bytes"

// comment skips a comment, or enters an executable one, as the server of the Mode does. Where
// that is not known, and servers differ, the text is bad or in doubt.
func (l *lexer) comment() {
	src, body := l.src, l.pos+2
	mariaOnly := bytes.HasPrefix(src[body:], []byte("M!"))
	server := l.mode.Server
	if !mariaOnly && !bytes.HasPrefix(src[body:], []byte("!")) || mariaOnly && server.isMySQL() {
		l.skipComment(body, false)
		return
	}
	if l.inExec && !server.Known() {
		l.fail() // servers differ about one executable comment in another
		return
	}
	code := body + 1
	if mariaOnly {
		code++
	}
	version, digits := server.codeVersion(src[code:], l.mode.Charset)
	l.byVersion = l.byVersion || digits > 0 && version > everyServerVersion || digits > 5 || mariaOnly
	if digits > 0 && server.Known() && !server.runs(version, mariaOnly) {
		l.skipComment(code+digits, true)
		return
	}
	l.inExec = true
	l.execs++
	l.pos = code + digits
	if !server.Known() && l.byVersion {
		l.inCond, l.seenCond = true, true
	}
}

// skipComment goes behind the comment whose text begins at i. One that is skipped for its
// version may have comments inside, which have none.
func (l *lexer) skipComment(i int, nested bool) {
	for nested && i < len(l.src) {
		open, end := bytes.Index(l.src[i:], []byte("/*")), bytes.Index(l.src[i:], []byte("*/"))
		if open < 0 || end >= 0 && end < open {
			break
		}
		inner := bytes.Index(l.src[i+open+2:], []byte("*/"))
		if inner < 0 {
			l.mistake()
			return
		}
		i += open + 2 + inner + 2
	}
	n := -1
	if i <= len(l.src) {
		n = bytes.Index(l.src[i:], []byte("*/"))
	}
	if n < 0 {
		l.mistake()
		return
	}
	l.pos = i + n + 2
}

// dashComment skips a comment that begins with two dashes; the server wants a
// space or control character behind them (the end of the text counts).
func (l *lexer) dashComment() bool {
	i := l.pos
	if i+1 >= len(l.src) || l.src[i+1] != '-' {
		return false
	}
	if i+2 < len(l.src) && l.src[i+2] > ' ' && l.src[i+2] != 0x7f {
		c := l.src[i+2]
		if c < 0x80 || !l.mode.Charset.single() || l.mode.Charset.upper(c) != 's' && l.mode.Charset.upper(c) != 'c' {
			return false
		}
	}
	l.lineComment()
	return true
}

// lineComment skips to the end of the line. A NUL ends it as well, and stays.
func (l *lexer) lineComment() {
	line := l.src[l.pos:]
	if n := bytes.IndexByte(line, '\n'); n >= 0 {
		line = line[:n+1]
	}
	if n := bytes.IndexByte(line, 0); n >= 0 {
		line = line[:n]
	}
	l.pos += len(line)
}
