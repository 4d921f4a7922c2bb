package statement

import "seqproxy/statement/lex"

// create reads CREATE: the words before the object's kind, and what is needed
// of what follows.
func (a *analyzer) create() bool {
	orReplace, temporary := a.qualifiers()
	switch a.Kw {
	case lex.KwTable:
		a.table = true
		a.refusal = "NEXTVAL in CREATE TABLE"
		if temporary {
			a.st.Words |= TemporaryTable
			return a.relayed(CreateTemporaryTable)
		}
		a.st.Words |= ChangesTable
		a.tableOfQuery()
	case lex.KwDatabase, lex.KwSchema:
		return a.database(CreateDatabase)
	case lex.KwSequence:
		return a.createSequence(orReplace, temporary)
	case lex.KwView:
		return a.view()
	case lex.KwProcedure, lex.KwFunction, lex.KwTrigger, lex.KwEvent, lex.KwPackage:
		a.st.Kind = CreateStored
		a.storedThenRows()
		return a.opaque()
	}
	return a.relayedFromHere(OtherDDL)
}

// alter reads ALTER.
func (a *analyzer) alter() bool {
	a.qualifiers()
	switch a.Kw {
	case lex.KwDatabase, lex.KwSchema:
		return a.database(AlterDatabase)
	case lex.KwView:
		return a.view()
	case lex.KwSequence:
		return a.alterSequence()
	case lex.KwProcedure, lex.KwFunction, lex.KwEvent, lex.KwPackage:
		a.st.Kind = CreateStored
		a.storedThenRows()
		return a.opaque()
	}
	for a.Kw == lex.KwIgnore || a.Kind == lex.Word && isAnyOf(a.Src[a.Start:a.End], "online") { // of MariaDB
		a.advance()
	}
	if a.Kw == lex.KwTable && !a.togglesKeys() {
		a.st.Words |= ChangesTable
	}
	return a.relayedFromHere(OtherDDL)
}

// togglesKeys reports whether ENABLE KEYS or DISABLE KEYS, which dumps have, follows the name of a
// table, which comes next.
func (a *analyzer) togglesKeys() bool {
	p := a.peek()
	for p.Next(); p.Is('.'); p.Next() {
		p.Next()
	}
	return isAnyOf(p.Src[p.Start:p.End], "enable", "disable")
}

// qualifiers goes past the words between CREATE or ALTER and the object's kind.
func (a *analyzer) qualifiers() (orReplace, temporary bool) {
	for {
		a.advance()
		switch {
		case a.Kw == lex.KwOr:
			if a.advance(); a.Kw == lex.KwReplace {
				orReplace = true
			}
		case a.Kw == lex.KwTemporary:
			temporary = true
		case a.Kw == lex.KwDefiner:
			a.definer()
		case a.Kw == lex.KwAlgorithm, a.Kw == lex.KwSQL, a.Kw == lex.KwSecurity, a.Kw == lex.KwAggregate, a.Is('='), a.viewOption():
		default:
			return orReplace, temporary
		}
	}
}

// viewOption reports whether the current word is a value of ALGORITHM or SQL
// SECURITY.
func (a *analyzer) viewOption() bool {
	if a.Kind != lex.Word || a.Kw != lex.KwNone {
		return false
	}
	for _, option := range [...]string{"undefined", "merge", "temptable", "invoker"} {
		if w := a.Src[a.Start:a.End]; lex.EqualFold(w, option) {
			return true
		}
	}
	return false
}

// definer passes over = user, so that a definer named like a keyword is not
// taken for one.
func (a *analyzer) definer() {
	p := a.peek()
	if !p.Is('=') {
		return
	}
	a.moveTo(p)
	p.Next()
	if p.Kind == lex.Word || p.Kind == lex.Quoted || p.Kind == lex.String {
		a.moveTo(p)
		// 'u'@'h' lexes as a string and a user variable; user() as parentheses.
		for p.Next(); p.Kind == lex.UserVar || p.Is('(') || p.Is(')'); p.Next() {
			a.moveTo(p)
		}
	}
}

// view reads CREATE VIEW and ALTER VIEW: up to the semicolon, since a view has
// none of its own, without looking for anything.
func (a *analyzer) view() bool {
	a.st.Kind = CreateStored
	for {
		if a.advance(); a.Kind == lex.EOF {
			return false
		}
		if a.Is(';') {
			return true
		}
		if a.Is('?') {
			a.st.Params++
		}
	}
}

func (a *analyzer) drop() bool {
	a.advance()
	temporary := a.Kw == lex.KwTemporary
	if temporary {
		a.st.Words |= TemporaryTable
		a.advance()
	}
	switch a.Kw {
	case lex.KwPrepare:
		a.st.Words |= SQLPrepare
		return a.relayed(Deallocate)
	case lex.KwDatabase, lex.KwSchema:
		a.st.Words |= ChangesTable
		return a.database(DropDatabase)
	case lex.KwSequence:
		return a.dropSequence(temporary)
	}
	if !temporary && (a.Kw == lex.KwTable || a.Kw == lex.KwTables) {
		a.st.Words |= ChangesTable
	}
	return a.relayedFromHere(OtherDDL)
}

// database reads [IF [NOT] EXISTS] name after DATABASE or SCHEMA. ALTER
// DATABASE may leave the name out.
func (a *analyzer) database(k Kind) bool {
	p := a.peek()
	if p.Kw == lex.KwIf {
		q := p
		for q.Next(); q.Kw == lex.KwNot || q.Kw == lex.KwExists; q.Next() {
			p = q
		}
		if p.Kw == lex.KwExists {
			p.Next()
		}
	}
	if p.Kind == lex.Word || p.Kind == lex.Quoted {
		switch {
		case k == AlterDatabase && p.Kind == lex.Word && a.databaseOption(p):
		default:
			a.ofSchema(&p)
			a.moveTo(p)
		}
	}
	return a.relayed(k)
}

// databaseOption reports whether p begins an option of ALTER DATABASE, whose
// name was left out.
func (a *analyzer) databaseOption(p lex.Lexer) bool {
	switch p.Kw {
	case lex.KwCharacter, lex.KwCharset, lex.KwCollate, lex.KwDefault, lex.KwComment:
	default:
		return false
	}
	first := p.Kw
	p.Next()
	switch first {
	case lex.KwCharacter:
		return p.Kw == lex.KwSet
	case lex.KwDefault:
		return true // reserved
	default:
		return p.Is('=') || p.Kind == lex.Word || p.Kind == lex.String
	}
}
