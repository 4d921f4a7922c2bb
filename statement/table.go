package statement

import "bytes"

// tableName reads the name of the table that a statement changes, whatever words
// it is of, and records it. name is its first token, and last its last. It is false
// if there is none.
func (a *analyzer) tableName(name lexer, k Kind) (last lexer, named bool) {
	if name.is('.') { // MariaDB takes .t for t
		name.next()
	}
	if name.kind != tWord && name.kind != tQuoted {
		return name, false
	}
	t := TableRef{Kind: k, Statement: a.index, Begin: a.first, Start: name.start}
	first, parts := name, 1
	for {
		p := name
		if p.next(); !p.is('.') {
			break
		}
		if p.next(); p.kind != tWord && p.kind != tQuoted {
			parts = 0 // the server's error
			break
		}
		name = p
		parts++
	}
	// Of a name in three parts nobody knows what the first is.
	if parts != 1 && parts != 2 || name.bad || name.seenCond && k == Update {
		return name, true
	}
	if name.seenCond {
		t.Kind = Other
	}
	if parts == 2 {
		t.Schema = a.st.arena.decode(first)
	}
	t.Name, t.End = a.st.arena.decode(name), name.end
	a.st.Tables = append(a.st.Tables, t)
	return name, true
}

// updatedTable looks ahead to the table of UPDATE [LOW_PRIORITY] [IGNORE] t SET.
func (a *analyzer) updatedTable() {
	p := a.peek()
	for p.kw == kwLowPriority || p.kw == kwIgnore {
		p.next()
	}
	before := len(a.st.Tables)
	last, named := a.tableName(p, Update)
	if !named || len(a.st.Tables) == before {
		return
	}
	if last.next(); last.kw != kwSet || last.seenCond {
		a.st.Tables = a.st.Tables[:before]
	}
}

// hiddenInsert looks ahead to the table of an INSERT or REPLACE that is a part of a
// statement of another kind, behind the current token.
func (a *analyzer) hiddenInsert() { a.hiddenInsertAt(a.lexer) }

// hiddenInsertAt is hiddenInsert from another token on.
func (a *analyzer) hiddenInsertAt(p lexer) {
	for p.kw != kwInsert && p.kw != kwReplace {
		if p.kind == tEOF || p.is(';') || p.kw == kwSelect {
			return
		}
		p.next()
	}
	for p.next(); insertOption(p.kw); p.next() {
		// [LOW_PRIORITY | ...] [IGNORE] [INTO]
	}
	a.tableName(p, Other)
}

// behindFor looks ahead to what SET STATEMENT ... FOR runs.
func (a *analyzer) behindFor() {
	p := a.lexer
	for depth := 0; (p.kw != kwFor || depth > 0) && p.kind != tEOF && !p.is(';'); p.next() {
		switch {
		case p.is('('):
			depth++
		case p.is(')'):
			depth--
		}
	}
	switch p.next(); p.kw {
	case kwLoad:
		if !a.loadedTable(Other) {
			a.st.Words |= MayBringRows
		}
	case kwCreate:
		for p.kw != kwTable && p.kind != tEOF && !p.is(';') {
			p.next()
		}
		behind := *a
		behind.lexer = p
		behind.tableOfQuery()
	case kwInsert, kwReplace, kwAnalyze: // whose INSERT is the first behind it
		a.hiddenInsertAt(p)
	case kwSelect, kwUpdate, kwDelete, kwWith, kwValues, kwTable:
	default: // a block, another SET STATEMENT, a text that is prepared
		for ; p.kind != tEOF; p.next() {
			if bringsRows(&p) {
				a.st.Words |= MayBringRows
				return
			}
		}
	}
}

// tableOfQuery looks ahead to the table that CREATE TABLE ... SELECT makes and puts rows into. The
// current token is TABLE.
func (a *analyzer) tableOfQuery() {
	name := a.peek()
	if name.kw == kwIf {
		p := name // IF NOT EXISTS
		for p.next(); p.kw == kwNot || p.kw == kwExists; p.next() {
			name = p
		}
		if name.kw == kwExists {
			name.next()
		}
	}
	for p := name; p.kind != tEOF && !p.is(';'); p.next() {
		switch p.kw {
		case kwSelect, kwWith, kwTable, kwValues:
			if p.start > name.start && queryBegins(p) {
				a.tableName(name, Other)
				return
			}
		}
	}
}

// queryBegins reports whether a word in CREATE TABLE begins a query. TABLE, VALUES and WITH have
// other meanings there: DATA DIRECTORY, VALUES LESS THAN, WITH PARSER, WITH SYSTEM VERSIONING.
func queryBegins(p lexer) bool {
	word := p.kw
	p.next()
	switch word {
	case kwWith:
		if p.kw == kwRecursive {
			return true
		}
		if p.kind != tWord && p.kind != tQuoted {
			return false
		}
		if p.next(); p.kw == kwAs {
			return true
		}
		return p.is('(') && p.kind != tEOF
	case kwTable:
		return p.kind == tWord || p.kind == tQuoted
	case kwValues:
		return p.is('(') || p.kind == tWord && equalFold(p.src[p.start:p.end], "row")
	}
	return true
}

// loadedTable looks ahead to the table of LOAD DATA and LOAD XML. It is false if there is none.
func (a *analyzer) loadedTable(k Kind) bool {
	p := a.lexer
	for p.kind != tEOF && !p.is(';') {
		into := p.kw == kwInto
		if p.next(); into && p.kw == kwTable {
			p.next()
			tables := len(a.st.Tables)
			a.tableName(p, k)
			return len(a.st.Tables) > tables
		}
	}
	return false
}

// insertOption reports whether a word may stand between INSERT and the table's name.
func insertOption(kw keyword) bool {
	switch kw {
	case kwLowPriority, kwHighPriority, kwDelayed, kwIgnore, kwInto:
		return true
	}
	return false
}

// Beginning is what the beginning of a text says of rows that the text puts into tables.
type Beginning struct {
	// Table is the table of an INSERT or REPLACE, nil if the text begins with something else. Its
	// names are in memory of their own.
	Table *TableRef
	// Certain: the statement that the text begins with puts rows into no other table.
	Certain bool
}

// ReadBeginning reads the first words of a text, of which sql is no more than the beginning.
func ReadBeginning(sql []byte, mode Mode) (b Beginning) {
	if mode.Charset >= Unsupported {
		return b
	}
	var st Statement
	a := analyzer{lexer: lexer{src: sql, mode: mode}, st: &st}
	for a.next(); a.is('('); a.next() {
		// ((SELECT ...) UNION ...)
	}
	switch a.kw {
	case kwSelect, kwUpdate, kwDelete, kwWith, kwValues, kwDo, kwCall, kwShow:
		b.Certain = !a.seenCond
	case kwSet:
		a.next()
		b.Certain = a.kw != kwStatement && !a.seenCond
	case kwInsert, kwReplace:
		for a.next(); insertOption(a.kw); a.next() {
		}
		last, _ := a.tableName(a.lexer, Insert)
		if last.next(); len(st.Tables) > 0 && last.kind != tEOF { // else the name may go on
			t := st.Tables[0]
			t.Schema, t.Name = bytes.Clone(t.Schema), bytes.Clone(t.Name)
			b.Table, b.Certain = &t, t.Kind == Insert
		}
	}
	return b
}
