package statement

import (
	"slices"
	"strings"
)

// maxNamed bounds what SchemasNamed returns, since it looks through that for each name.
const maxNamed = 100

// SchemasNamed returns the first schemas, maxNamed at most, that a text names before its tables:
// behind FROM, JOIN, INTO, UPDATE and TABLE, each once, in the client's character set. It
// allocates; it is not for the data path.
func SchemasNamed(sql []byte, mode Mode) (names []string) {
	var decoded arena
	l := lexer{src: sql, mode: mode}
	behind := false // the token before is such a word
	for l.next(); l.kind != tEOF && len(names) < maxNamed; {
		if behind && (l.kind == tWord || l.kind == tQuoted) {
			schema := l
			if l.next(); !l.is('.') {
				behind = false
				continue
			}
			if name := string(decoded.decode(schema)); !slices.Contains(names, name) {
				names = append(names, name)
			}
		}
		switch l.kw {
		case kwFrom, kwInto, kwUpdate, kwTable:
			behind = true
		default:
			behind = l.kind == tWord && !l.afterDot && strings.EqualFold(string(l.src[l.start:l.end]), "join")
		}
		l.next()
	}
	return names
}
