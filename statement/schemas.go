package statement

import (
	"slices"

	"seqproxy/statement/lex"
)

// maxNamed bounds the result of SchemasNamed, since each name is compared with all others.
const maxNamed = 100

// SchemasNamed returns the schemas that a text names before its tables: after FROM, JOIN, INTO,
// UPDATE and TABLE. Each comes once, in the client's character set, maxNamed at most. It allocates,
// so it is not for the data path.
func SchemasNamed(sql []byte, mode lex.Mode) (names []string) {
	var decoded lex.Arena
	l := lex.Lexer{Src: sql, Mode: mode}
	behind := false // the token before is such a word
	for l.Next(); l.Kind != lex.EOF && len(names) < maxNamed; {
		if behind && (l.Kind == lex.Word || l.Kind == lex.Quoted) {
			schema := l
			if l.Next(); !l.Is('.') {
				behind = false
				continue
			}
			if name := string(decoded.Decode(&schema)); !slices.Contains(names, name) {
				names = append(names, name)
			}
		}
		switch l.Kw {
		case lex.KwFrom, lex.KwInto, lex.KwUpdate, lex.KwTable:
			behind = true
		default:
			behind = !l.AfterDot && l.Spells("join")
		}
		l.Next()
	}
	return names
}
