package statement

import "seqproxy/statement/lex"

// This file decides which texts could insert rows into a table unseen: Analyze does not read them
// to their end, and they have one of the words below. If a sequence fills a column of some table,
// such a text must not reach a server: the server would number the rows itself.

// rowWords are the words that every statement needs to insert rows into a table with keys made by
// the server. Statement.Tables has CREATE TABLE ... SELECT, and also INSERT, REPLACE and LOAD where
// they are understood. EXECUTE and PREPARE run another text.
var rowWords = [...]lex.Keyword{lex.KwInsert, lex.KwReplace, lex.KwLoad, lex.KwExecute, lex.KwPrepare}

// bringsRows reports whether the token is one of these words and inserts rows.
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

// mayBringRows reports whether one of the words occurs anywhere in a text that cannot be split into
// words.
func mayBringRows(sql []byte) bool {
	for i := 0; i < len(sql); i++ {
		for _, kw := range rowWords {
			word := kw.String()
			if sql[i]|0x20 == word[0] && len(sql)-i >= len(word) && lex.EqualFold(sql[i:i+len(word)], word) {
				return true
			}
		}
	}
	return false
}

// blocks follows a text in which semicolons may be part of a block. It finds another statement that
// inserts rows after that, outside of all blocks. Only BEGIN and CASE count as blocks: what stands
// in IF, LOOP and others, without a BEGIN around them, is taken for another statement.
type blocks struct {
	brings bool
	depth  int  // number of open BEGIN and CASE, each closed by END
	behind bool // a semicolon outside of all blocks was seen
	prev   lex.Lexer
}

func (b *blocks) token(l *lex.Lexer) {
	if b.depth == 0 && l.Is(';') {
		b.behind = true
	}
	if l.Kind == lex.Word && !l.AfterDot && b.prev.Kw != lex.KwAs {
		switch {
		case l.Kw == lex.KwBegin:
			if b.opens(l) {
				b.depth++
			}
		case l.Kw == lex.KwCase && b.prev.Kw != lex.KwEnd:
			b.depth++
		case l.Kw == lex.KwEnd:
			if b.closes(l) {
				b.depth = max(0, b.depth-1)
			}
		case b.behind && b.depth == 0 && bringsRows(l):
			b.brings = true
		}
	}
	b.prev = *l
}

// opens reports whether BEGIN opens a block. Else it is a name, or begins a transaction.
func (b *blocks) opens(l *lex.Lexer) bool {
	p := *l
	switch p.Next(); {
	case p.Kind == lex.EOF, p.Kind == lex.Punct, p.Kw == lex.KwFrom, p.Kw == lex.KwAs, isAnyOf(p.Src[p.Start:p.End], "work"):
		return false
	}
	switch prev := &b.prev; prev.Kw {
	case lex.KwBy, lex.KwSelect, lex.KwWhere, lex.KwAnd, lex.KwOr, lex.KwOn, lex.KwSet, lex.KwFrom: // of an expression
		return false
	default:
		operator := prev.Kind == lex.Punct && !prev.Is(')') && !prev.Is(';') && !prev.Is(':')
		return !operator && !isAnyOf(prev.Src[prev.Start:prev.End], "xa")
	}
}

// closes reports whether END closes BEGIN or CASE. Else it closes IF, LOOP, REPEAT, WHILE or FOR.
// Behind the END of a CASE there may be a FOR UPDATE.
func (b *blocks) closes(l *lex.Lexer) bool {
	p := *l
	p.Next()
	if p.Kw == lex.KwFor {
		p.Next()
		return isAnyOf(p.Src[p.Start:p.End], "update", "share")
	}
	return p.Kw != lex.KwIf && !isAnyOf(p.Src[p.Start:p.End], "loop", "repeat", "while")
}

func isAnyOf(word []byte, lower ...string) bool {
	for _, w := range lower {
		if lex.EqualFold(word, w) {
			return true
		}
	}
	return false
}

// storedThenRows looks ahead, after a CREATE of a stored object, for another statement of the text
// that inserts rows. The proxy does not look into the body.
func (a *analyzer) storedThenRows() {
	p := a.Lexer
	var b blocks
	for ; p.Kind != lex.EOF; p.Next() {
		b.token(&p)
	}
	if b.brings || p.Bad && mayBringRows(a.Src) {
		a.st.Words |= MayBringRows
	}
}
