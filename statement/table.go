package statement

import (
	"bytes"

	"seqproxy/statement/lex"
)

// tableName reads and records the name of the table that a statement changes. Any word may be a
// name. name is its first token, and the result its last. It returns false if there is no name.
func (a *analyzer) tableName(name lex.Lexer, k Kind) (last lex.Lexer, named bool) {
	if name.Is('.') { // MariaDB takes .t for t
		name.Next()
	}
	if name.Kind != lex.Word && name.Kind != lex.Quoted {
		return name, false
	}
	t := TableRef{Kind: k, Statement: a.index, Begin: a.first, Start: name.Start}
	first, parts := name, 1
	for {
		p := name
		if p.Next(); !p.Is('.') {
			break
		}
		if p.Next(); p.Kind != lex.Word && p.Kind != lex.Quoted {
			parts = 0 // the server's error
			break
		}
		name = p
		parts++
	}
	// A name in three parts is ambiguous.
	if parts != 1 && parts != 2 || name.Bad || name.SeenCond && k == Update {
		return name, true
	}
	if name.SeenCond {
		t.Kind = Other
	}
	if parts == 2 {
		t.Schema = a.st.arena.Decode(&first)
	}
	t.Name, t.End = a.st.arena.Decode(&name), name.End
	if a.room() {
		a.st.Tables = append(a.st.Tables, t)
	}
	return name, true
}

// updatedTable looks ahead to the table of an UPDATE [LOW_PRIORITY] [IGNORE] t SET.
func (a *analyzer) updatedTable() {
	p := a.peek()
	for p.Kw == lex.KwLowPriority || p.Kw == lex.KwIgnore {
		p.Next()
	}
	before := len(a.st.Tables)
	last, named := a.tableName(p, Update)
	if !named || len(a.st.Tables) == before {
		return
	}
	if last.Next(); last.Kw != lex.KwSet || last.SeenCond {
		a.st.Tables = a.st.Tables[:before]
	}
}

// hiddenInsert looks ahead for the table of an INSERT or REPLACE inside a statement of another
// kind, after the current token.
func (a *analyzer) hiddenInsert() { a.hiddenInsertAt(a.Lexer) }

// hiddenInsertAt is hiddenInsert from another token.
func (a *analyzer) hiddenInsertAt(p lex.Lexer) {
	for p.Kw != lex.KwInsert && p.Kw != lex.KwReplace {
		if p.Kind == lex.EOF || p.Is(';') || p.Kw == lex.KwSelect {
			return
		}
		p.Next()
	}
	for p.Next(); insertOption(p.Kw); p.Next() {
		// [LOW_PRIORITY | ...] [IGNORE] [INTO]
	}
	a.tableName(p, Other)
}

// behindFor looks ahead to the statement of SET STATEMENT ... FOR.
func (a *analyzer) behindFor() {
	p := a.Lexer
	for depth := 0; (p.Kw != lex.KwFor || depth > 0) && p.Kind != lex.EOF && !p.Is(';'); p.Next() {
		switch {
		case p.Is('('):
			depth++
		case p.Is(')'):
			depth--
		}
	}
	switch p.Next(); p.Kw {
	case lex.KwLoad:
		if !a.loadedTable(Other) {
			a.st.Words |= MayBringRows
		}
	case lex.KwAlter, lex.KwDrop, lex.KwRename:
		a.st.Words |= ChangesTable
	case lex.KwCreate:
		a.st.Words |= ChangesTable
		for p.Kw != lex.KwTable && p.Kind != lex.EOF && !p.Is(';') {
			p.Next()
		}
		behind := *a
		behind.Lexer = p
		behind.tableOfQuery()
	case lex.KwInsert, lex.KwReplace, lex.KwAnalyze: // ANALYZE: an INSERT directly after it counts
		a.hiddenInsertAt(p)
	case lex.KwSelect, lex.KwUpdate, lex.KwDelete, lex.KwWith, lex.KwValues, lex.KwTable:
	default: // a block, another SET STATEMENT, a prepared text
		for ; p.Kind != lex.EOF && !a.searched; p.Next() {
			if bringsRows(&p) {
				a.st.Words |= MayBringRows
				break
			}
		}
		a.searched = true
	}
}

// tableOfQuery looks ahead to the new table of a CREATE TABLE ... SELECT, which inserts rows into
// it. The current token is TABLE.
func (a *analyzer) tableOfQuery() {
	name := a.peek()
	if name.Kw == lex.KwIf {
		p := name // IF NOT EXISTS
		for p.Next(); p.Kw == lex.KwNot || p.Kw == lex.KwExists; p.Next() {
			name = p
		}
		if name.Kw == lex.KwExists {
			name.Next()
		}
	}
	for p := name; p.Kind != lex.EOF && !p.Is(';'); p.Next() {
		switch p.Kw {
		case lex.KwSelect, lex.KwWith, lex.KwTable, lex.KwValues:
			if p.Start > name.Start && queryBegins(p) {
				a.tableName(name, Other)
				return
			}
		}
	}
}

// queryBegins reports whether a word in CREATE TABLE begins a query. TABLE, VALUES and WITH have
// other meanings, too: DATA DIRECTORY, VALUES LESS THAN, WITH PARSER, WITH SYSTEM VERSIONING.
func queryBegins(p lex.Lexer) bool {
	word := p.Kw
	p.Next()
	switch word {
	case lex.KwWith:
		if p.Kw == lex.KwRecursive {
			return true
		}
		if p.Kind != lex.Word && p.Kind != lex.Quoted {
			return false
		}
		if p.Next(); p.Kw == lex.KwAs {
			return true
		}
		return p.Is('(')
	case lex.KwTable:
		return p.Kind == lex.Word || p.Kind == lex.Quoted
	case lex.KwValues:
		return p.Is('(') || p.Spells("row")
	}
	return true
}

// loadedTable looks ahead to the table of a LOAD DATA or LOAD XML. It returns false if there is
// none.
func (a *analyzer) loadedTable(k Kind) bool {
	p := a.Lexer
	for p.Kind != lex.EOF && !p.Is(';') {
		into := p.Kw == lex.KwInto
		if p.Next(); into && p.Kw == lex.KwTable {
			p.Next()
			tables := len(a.st.Tables)
			a.tableName(p, k)
			return len(a.st.Tables) > tables
		}
	}
	return false
}

// insertOption reports whether a word may stand between INSERT and the table's name.
func insertOption(kw lex.Keyword) bool {
	switch kw {
	case lex.KwLowPriority, lex.KwHighPriority, lex.KwDelayed, lex.KwIgnore, lex.KwInto:
		return true
	}
	return false
}

// Beginning is what the first words of a text say about rows that the text inserts.
type Beginning struct {
	// Table is the table of an INSERT or REPLACE, or nil for another text. Its names have memory of
	// their own.
	Table *TableRef
	// Certain: the first statement of the text inserts rows into no other table.
	Certain bool
}

// ReadBeginning reads the first words of a text. sql is only the beginning of the text.
func ReadBeginning(sql []byte, mode lex.Mode) (b Beginning) {
	if mode.Charset >= lex.Unsupported {
		return b
	}
	var st Statement
	a := analyzer{Lexer: lex.Lexer{Src: sql, Mode: mode}, st: &st}
	for a.Next(); a.Is('('); a.Next() {
		// ((SELECT ...) UNION ...)
	}
	switch a.Kw {
	case lex.KwSelect, lex.KwUpdate, lex.KwDelete, lex.KwWith, lex.KwValues, lex.KwDo, lex.KwCall, lex.KwShow:
		b.Certain = !a.SeenCond
	case lex.KwSet:
		a.Next()
		b.Certain = a.Kw != lex.KwStatement && !a.SeenCond
	case lex.KwInsert, lex.KwReplace:
		for a.Next(); insertOption(a.Kw); a.Next() {
		}
		last, _ := a.tableName(a.Lexer, Insert)
		if last.Next(); len(st.Tables) > 0 && last.Kind != lex.EOF { // otherwise the name may continue
			t := st.Tables[0]
			t.Schema, t.Name = bytes.Clone(t.Schema), bytes.Clone(t.Name)
			b.Table, b.Certain = &t, t.Kind == Insert
		}
	}
	return b
}
