package statement

import "bytes"

// This file says which texts could put rows into a table that nobody has seen: those that
// Analyze does not read to their end, and have a word of the list below. Where a column is filled
// from a sequence, such a text must not reach a server: it would number the rows itself.

// rowWords are the words without which no statement puts rows into a table whose keys the
// server makes. CREATE TABLE ... SELECT is in Statement.Tables, as INSERT, REPLACE and LOAD are
// where they are understood. EXECUTE and PREPARE run a text that is not in this one.
var rowWords = [...]keyword{kwInsert, kwReplace, kwLoad, kwExecute, kwPrepare}

// bringsRows reports whether the token is one of these words, and puts rows into a table.
func bringsRows(l *lexer) bool {
	if l.kind != tWord {
		return false
	}
	for _, kw := range rowWords {
		if l.kw == kw {
			if kw != kwInsert && kw != kwReplace {
				return true
			}
			p := *l // INSERT(...) and REPLACE(...) are functions
			p.next()
			return !p.is('(')
		}
	}
	return false
}

// mayBringRows reports whether one of the words stands anywhere in a text that cannot be cut
// into words.
func mayBringRows(sql []byte) bool {
	for i := 0; i < len(sql); i++ {
		for _, kw := range rowWords {
			word := keywordText[kw]
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
	prev   lexer
}

func (b *blocks) token(l *lexer) {
	starts := b.starts
	b.starts = l.is(';') || l.is(':')
	if b.depth == 0 && l.is(';') {
		b.behind = true
	}
	if l.kind == tWord && !l.afterDot && b.prev.kw != kwAs {
		switch word := l.src[l.start:l.end]; {
		case l.kw == kwBegin:
			if b.opens(l) {
				b.depth++
				b.starts = true
			}
		case l.kw == kwCase && b.prev.kw != kwEnd:
			b.depth++
		case starts && (l.kw == kwIf || l.kw == kwFor || isAnyOf(word, "loop", "repeat", "while")):
			b.depth++
			b.starts = true // behind LOOP and REPEAT
		case l.kw == kwEnd:
			b.depth = max(0, b.depth-1)
		case l.kw == kwThen, l.kw == kwElse, l.kw == kwDo, isAnyOf(word, "loop", "repeat"):
			b.starts = true
		case b.behind && b.depth == 0 && bringsRows(l):
			b.brings = true
		}
	}
	b.prev = *l
}

// opens reports whether BEGIN opens a block, and is not a name.
func (b *blocks) opens(l *lexer) bool {
	p := *l
	switch p.next(); {
	case p.kind == tEOF, p.kw == kwFrom, p.kw == kwAs:
		return false
	case p.kind == tPunct:
		return false
	}
	return true
}

func isAnyOf(word []byte, lower ...string) bool {
	for _, w := range lower {
		if equalFold(word, w) {
			return true
		}
	}
	return false
}

// storedThenRows looks ahead, behind CREATE of something stored, for another statement in the same
// text that brings rows. In the body that is the affair of the server.
func (a *analyzer) storedThenRows() {
	p := a.lexer
	var b blocks
	for ; p.kind != tEOF; p.next() {
		b.token(&p)
	}
	if b.brings || p.bad && b.behind && mayBringRows(a.src) {
		a.st.Words |= MayBringRows
	}
}
