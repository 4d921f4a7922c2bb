package statement

// create reads CREATE: the words before the object's kind, and what is needed
// of what follows.
func (a *analyzer) create() bool {
	orReplace, temporary := a.qualifiers()
	switch a.kw {
	case kwTable:
		a.table = true
		a.refusal = "NEXTVAL in CREATE TABLE"
		if temporary {
			a.st.Words |= TemporaryTable
			return a.relayed(CreateTemporaryTable)
		}
		a.tableOfQuery()
	case kwDatabase, kwSchema:
		return a.database(CreateDatabase)
	case kwSequence:
		return a.createSequence(orReplace, temporary)
	case kwView:
		return a.view()
	case kwProcedure, kwFunction, kwTrigger, kwEvent, kwPackage:
		a.st.Kind = CreateStored
		a.storedThenRows()
		return a.opaque()
	}
	return a.relayedFromHere(OtherDDL)
}

// alter reads ALTER.
func (a *analyzer) alter() bool {
	a.qualifiers()
	switch a.kw {
	case kwDatabase, kwSchema:
		return a.database(AlterDatabase)
	case kwView:
		return a.view()
	case kwSequence:
		return a.alterSequence()
	case kwProcedure, kwFunction, kwEvent, kwPackage:
		a.st.Kind = CreateStored
		a.storedThenRows()
		return a.opaque()
	}
	return a.relayedFromHere(OtherDDL)
}

// qualifiers goes past the words between CREATE or ALTER and the object's kind.
func (a *analyzer) qualifiers() (orReplace, temporary bool) {
	for {
		a.advance()
		switch {
		case a.kw == kwOr:
			if a.advance(); a.kw == kwReplace {
				orReplace = true
			}
		case a.kw == kwTemporary:
			temporary = true
		case a.kw == kwDefiner:
			a.definer()
		case a.kw == kwAlgorithm, a.kw == kwSQL, a.kw == kwSecurity, a.kw == kwAggregate, a.is('='), a.viewOption():
		default:
			return orReplace, temporary
		}
	}
}

// viewOption reports whether the current word is a value of ALGORITHM or SQL
// SECURITY.
func (a *analyzer) viewOption() bool {
	if a.kind != tWord || a.kw != kwNone {
		return false
	}
	for _, option := range [...]string{"undefined", "merge", "temptable", "invoker"} {
		if w := a.src[a.start:a.end]; equalFold(w, option) {
			return true
		}
	}
	return false
}

// definer passes over = user, so that a definer named like a keyword is not
// taken for one.
func (a *analyzer) definer() {
	p := a.peek()
	if !p.is('=') {
		return
	}
	a.moveTo(p)
	p.next()
	if p.kind == tWord || p.kind == tQuoted || p.kind == tString {
		a.moveTo(p)
		// 'u'@'h' lexes as a string and a user variable; user() as parentheses.
		for p.next(); p.kind == tUserVar || p.is('(') || p.is(')'); p.next() {
			a.moveTo(p)
		}
	}
}

// view reads CREATE VIEW and ALTER VIEW: up to the semicolon, since a view has
// none of its own, without looking for anything.
func (a *analyzer) view() bool {
	a.st.Kind = CreateStored
	for {
		if a.advance(); a.kind == tEOF {
			return false
		}
		if a.is(';') {
			return true
		}
		if a.is('?') {
			a.st.Params++
		}
	}
}

func (a *analyzer) drop() bool {
	a.advance()
	temporary := a.kw == kwTemporary
	if temporary {
		a.st.Words |= TemporaryTable
		a.advance()
	}
	switch a.kw {
	case kwPrepare:
		a.st.Words |= SQLPrepare
		return a.relayed(Deallocate)
	case kwDatabase, kwSchema:
		return a.database(DropDatabase)
	case kwSequence:
		return a.dropSequence(temporary)
	}
	return a.relayedFromHere(OtherDDL)
}

// database reads [IF [NOT] EXISTS] name after DATABASE or SCHEMA. ALTER
// DATABASE may leave the name out.
func (a *analyzer) database(k Kind) bool {
	p := a.peek()
	if p.kw == kwIf {
		q := p
		for q.next(); q.kw == kwNot || q.kw == kwExists; q.next() {
			p = q
		}
		if p.kw == kwExists {
			p.next()
		}
	}
	if p.kind == tWord || p.kind == tQuoted {
		switch {
		case k == AlterDatabase && p.kind == tWord && a.databaseOption(p):
		default:
			a.st.Schema = a.st.arena.decode(p)
			a.moveTo(p)
		}
	}
	return a.relayed(k)
}

// databaseOption reports whether p begins an option of ALTER DATABASE, whose
// name was left out.
func (a *analyzer) databaseOption(p lexer) bool {
	switch p.kw {
	case kwCharacter, kwCharset, kwCollate, kwDefault, kwComment:
	default:
		return false
	}
	first := p.kw
	p.next()
	switch first {
	case kwCharacter:
		return p.kw == kwSet
	case kwDefault:
		return true // reserved
	default:
		return p.is('=') || p.kind == tWord || p.kind == tString
	}
}
