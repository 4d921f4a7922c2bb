package statement

import "bytes"

// This file says which texts could put rows into a table that nobody has seen: those that
// Analyze does not read to their end, and have a word of the list below. Where a column is filled
// from a sequence, such a text must not reach a server: it would number the rows itself.

// bringsRows lists the words without which no statement puts rows into a table whose keys the
// server makes. CREATE TABLE ... SELECT is in Statement.Tables, as INSERT, REPLACE and LOAD are
// where they are understood. EXECUTE and PREPARE run a text that is not in this one.
var bringsRows = [...]keyword{kwInsert, kwReplace, kwLoad, kwExecute, kwPrepare}

func (l *lexer) bringsRows() bool {
	if l.kind != tWord {
		return false
	}
	for _, kw := range bringsRows {
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
		for _, kw := range bringsRows {
			word := keywordText[kw]
			if sql[i]|0x20 == word[0] && len(sql)-i >= len(word) && bytes.EqualFold(sql[i:i+len(word)], []byte(word)) {
				return true
			}
		}
	}
	return false
}

// rowsBehind follows words of a text whose semicolons may be a part of a compound statement. It
// knows whether one that brings rows stands where no END comes behind it that could close
// such a statement around it.
type rowsBehind struct {
	brings bool
	cases  int // CASE expressions and statements that are open
	prev   keyword
}

func (r *rowsBehind) word(l *lexer) {
	switch {
	case l.bringsRows():
		r.brings = true
	case l.kw == kwCase && r.prev != kwEnd:
		r.cases++
	case l.kw == kwEnd && r.cases > 0:
		r.cases--
	case l.kw == kwEnd:
		r.brings = false
	}
	r.prev = l.kw
}

// storedThenRows looks ahead, behind CREATE of something stored, for another statement in the same
// text that brings rows. In the body that is the affair of the server.
func (a *analyzer) storedThenRows() {
	p := a.lexer
	var r rowsBehind
	for semicolon := false; p.kind != tEOF; p.next() {
		if semicolon || !p.bringsRows() { // an event of a trigger, or the body itself
			r.word(&p)
		}
		semicolon = p.is(';')
	}
	if r.brings && !p.bad {
		a.st.Words |= MayBringRows
	}
}
