package statement

import (
	"bytes"

	"seqproxy/statement/lex"
)

// This file says which texts could put rows into a table that nobody has seen: those that
// Analyze does not read to their end, and have a word of the list below. Where a column is filled
// from a sequence, such a text must not reach a server: it would number the rows itself.

// rowWords are the words without which no statement puts rows into a table whose keys the
// server makes. CREATE TABLE ... SELECT is in Statement.Tables, as INSERT, REPLACE and LOAD are
// where they are understood. EXECUTE and PREPARE run a text that is not in this one.
var rowWords = [...]lex.Keyword{lex.KwInsert, lex.KwReplace, lex.KwLoad, lex.KwExecute, lex.KwPrepare}

// bringsRows reports whether the token is one of these words, and puts rows into a table.
func bringsRows(l *lex.Lexer) bool {
	if l.Kind != lex.Word {
		return false
	}
	for _, kw := range rowWords {
		if l.Kw == kw {
			if kw != lex.KwInsert && kw != lex.KwReplace {
				return true
			}
			p := *l // INSERT(...) and REPLACE(...) are functions
			p.Next()
			return !p.Is('(')
		}
	}
	return false
}

// mayBringRows reports whether one of the words stands anywhere in a text that cannot be cut
// into words.
func mayBringRows(sql []byte) bool {
	for i := 0; i < len(sql); i++ {
		for _, kw := range rowWords {
			word := kw.String()
			if sql[i]|0x20 == word[0] && len(sql)-i >= len(word) && bytes.EqualFold(sql[i:i+len(word)], []byte(word)) {
				return true
			}
		}
	}
	return false
}

// blocks follows the words of a text in which semicolons may be a part of a block, and knows
// whether another statement that brings rows stands behind it, outside of all blocks.
type blocks struct {
	brings bool
	depth  int  // of BEGIN, CASE, IF, LOOP, REPEAT, WHILE and FOR, which END closes
	starts bool // the next word begins a statement
	behind bool // a semicolon came outside of all blocks
	prev   lex.Lexer
}

func (b *blocks) token(l *lex.Lexer) {
	starts := b.starts
	b.starts = l.Is(';') || l.Is(':')
	if b.depth == 0 && l.Is(';') {
		b.behind = true
	}
	if l.Kind == lex.Word && !l.AfterDot && b.prev.Kw != lex.KwAs {
		switch word := l.Src[l.Start:l.End]; {
		case l.Kw == lex.KwBegin:
			if b.opens(l) {
				b.depth++
				b.starts = true
			}
		case l.Kw == lex.KwCase && b.prev.Kw != lex.KwEnd:
			b.depth++
		case starts && (l.Kw == lex.KwIf || l.Kw == lex.KwFor || isAnyOf(word, "loop", "repeat", "while")):
			b.depth++
			b.starts = true // behind LOOP and REPEAT
		case l.Kw == lex.KwEnd:
			b.depth = max(0, b.depth-1)
		case l.Kw == lex.KwThen, l.Kw == lex.KwElse, l.Kw == lex.KwDo, isAnyOf(word, "loop", "repeat"):
			b.starts = true
		case b.behind && b.depth == 0 && bringsRows(l):
			b.brings = true
		}
	}
	b.prev = *l
}

// opens reports whether BEGIN opens a block, and is not a name.
func (b *blocks) opens(l *lex.Lexer) bool {
	p := *l
	switch p.Next(); {
	case p.Kind == lex.EOF, p.Kw == lex.KwFrom, p.Kw == lex.KwAs:
		return false
	case p.Kind == lex.Punct:
		return false
	}
	return true
}

func isAnyOf(word []byte, lower ...string) bool {
	for _, w := range lower {
		if lex.EqualFold(word, w) {
			return true
		}
	}
	return false
}

// storedThenRows looks ahead, behind CREATE of something stored, for another statement in the same
// text that brings rows. In the body that is the affair of the server.
func (a *analyzer) storedThenRows() {
	p := a.Lexer
	var b blocks
	for ; p.Kind != lex.EOF; p.Next() {
		b.token(&p)
	}
	if b.brings || p.Bad && b.behind && mayBringRows(a.Src) {
		a.st.Words |= MayBringRows
	}
}
