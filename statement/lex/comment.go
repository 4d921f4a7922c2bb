package lex

import "bytes"

// comment skips a comment or enters an executable one, as the server of the Mode does. If the
// server is not known and servers differ, the text is bad or in doubt.
func (l *Lexer) comment() {
	src, body := l.Src, l.Pos+2
	mariaOnly := bytes.HasPrefix(src[body:], []byte("M!"))
	server := l.Mode.Server
	if !mariaOnly && !bytes.HasPrefix(src[body:], []byte("!")) || mariaOnly && server.IsMySQL() {
		l.skipComment(body, false)
		return
	}
	if l.InExec && !server.Identified() {
		l.Fail() // servers differ about executable comments inside each other
		return
	}
	code := body + 1
	if mariaOnly {
		code++
	}
	version, digits := server.codeVersion(src[code:], l.Mode.Charset)
	l.ByVersion = l.ByVersion || digits > 0 && version > everyServerVersion || digits > 5 || mariaOnly
	if digits > 0 && server.Identified() && !server.runs(version, mariaOnly) {
		l.skipComment(code+digits, true)
		return
	}
	l.InExec = true
	l.Execs++
	l.Pos = code + digits
	if !server.Identified() && l.ByVersion {
		l.inCond, l.SeenCond = true, true
	}
}

// skipComment moves past the comment whose text begins at i. A comment skipped for its version may
// contain comments, and these contain none.
func (l *Lexer) skipComment(i int, nested bool) {
	for nested && i < len(l.Src) {
		open, end := bytes.Index(l.Src[i:], []byte("/*")), bytes.Index(l.Src[i:], []byte("*/"))
		if open < 0 || end >= 0 && end < open {
			break
		}
		inner := bytes.Index(l.Src[i+open+2:], []byte("*/"))
		if inner < 0 {
			l.mistake()
			return
		}
		i += open + 2 + inner + 2
	}
	n := -1
	if i <= len(l.Src) {
		n = bytes.Index(l.Src[i:], []byte("*/"))
	}
	if n < 0 {
		l.mistake()
		return
	}
	l.Pos = i + n + 2
}

// dashComment skips a comment that begins with two dashes. The server wants a space, a control
// character or the end of the text after the dashes.
func (l *Lexer) dashComment() bool {
	i := l.Pos
	if i+1 >= len(l.Src) || l.Src[i+1] != '-' {
		return false
	}
	if i+2 < len(l.Src) && l.Src[i+2] > ' ' && l.Src[i+2] != 0x7f {
		c := l.Src[i+2]
		if c < 0x80 || !l.Mode.Charset.single() || l.Mode.Charset.upper(c) != 's' && l.Mode.Charset.upper(c) != 'c' {
			return false
		}
	}
	l.lineComment()
	return true
}

// lineComment skips to the end of the line. A NUL also ends it and is not skipped.
func (l *Lexer) lineComment() {
	line := l.Src[l.Pos:]
	if n := bytes.IndexByte(line, '\n'); n >= 0 {
		line = line[:n+1]
	}
	if n := bytes.IndexByte(line, 0); n >= 0 {
		line = line[:n]
	}
	l.Pos += len(line)
}
