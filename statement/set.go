package statement

// set reads SET (https://dev.mysql.com/doc/refman/en/set-variable.html and
// MariaDB's additions).
func (a *analyzer) set() bool {
	st := a.st
	st.Kind, a.calls = Set, true
	a.advance()
	if a.kw == kwStatement {
		if p := a.peek(); p.kind == tWord { // SET STATEMENT a = b FOR ...
			return a.setWhole(StatementFor, ScopeNext)
		}
	}
	if scope, ok := a.transactionScope(); ok {
		return a.setWhole(Transaction, scope)
	}
	sticky := SessionVariable
	for {
		done, more := a.assignment(&sticky)
		if done {
			return more
		}
		a.advance() // past the comma
	}
}

// transactionScope reports whether the current token begins
// [GLOBAL | SESSION | LOCAL] TRANSACTION, and goes to TRANSACTION.
func (a *analyzer) transactionScope() (Scope, bool) {
	if a.kw == kwTransaction {
		p := a.peek() // SET transaction = ... does not exist
		return ScopeNext, p.kind == tWord
	}
	scope := ScopeSession
	switch a.kw {
	case kwGlobal:
		scope = ScopeGlobal
	case kwSession, kwLocal:
	default:
		return 0, false
	}
	p := a.peek()
	if p.kw != kwTransaction {
		return 0, false
	}
	a.moveTo(p)
	return scope, true
}

// setWhole records what is left of the statement as the value of one
// assignment.
func (a *analyzer) setWhole(t Target, scope Scope) bool {
	as := Assignment{Target: t, Scope: scope}
	if t == StatementFor {
		// The statement behind FOR may be anything.
		a.st.Words |= Opaque
		a.refusal = "NEXTVAL in SET STATEMENT ... FOR"
		a.behindFor()
	}
	a.prevEnd = a.end
	as.Start, as.End, as.Literal = a.value(true)
	if t == StatementFor || t == Role || t == Password {
		as.Literal = false
	}
	a.st.Assignments = append(a.st.Assignments, as)
	a.finish()
	return a.kind != tEOF
}

// assignment reads one element of SET, whose first token is the current one.
// done says that the statement is over, more that a semicolon ended it.
func (a *analyzer) assignment(sticky *Target) (done, more bool) {
	st := a.st
	as := Assignment{}
	switch {
	case a.kind == tUserVar:
		as.Target = UserVariable
		as.Name = st.arena.lowered(st.arena.decode(a.lexer))
		a.advance()
		a.assignValue(&as)
	case a.kind == tSysVar:
		a.advance()
		as.Target = SessionVariable
		switch a.kw {
		case kwGlobal, kwPersist, kwPersistOnly:
			as.Target = GlobalVariable
			a.scopeDot()
		case kwSession, kwLocal:
			a.scopeDot()
		}
		a.variableName(&as)
	case a.kind == tWord || a.kind == tQuoted:
		next := a.peek()
		assigned := next.is('=') || next.kind == tAssign || next.is('.')
		switch {
		case assigned && a.kw != kwPassword:
			as.Target = *sticky
			a.variableName(&as)
		case a.kw == kwGlobal, a.kw == kwPersist, a.kw == kwPersistOnly:
			*sticky = GlobalVariable
			as.Target = *sticky
			a.advance()
			a.variableName(&as)
		case a.kw == kwSession, a.kw == kwLocal:
			*sticky = SessionVariable
			as.Target = *sticky
			a.advance()
			a.variableName(&as)
		case a.kw == kwNames:
			as.Target = Names
			as.Start, as.End, as.Literal = a.value(false)
		case a.kw == kwCharset:
			as.Target = CharacterSet
			as.Start, as.End, as.Literal = a.value(false)
		case a.kw == kwCharacter && next.kw == kwSet:
			as.Target = CharacterSet
			a.advance()
			as.Start, as.End, as.Literal = a.value(false)
		case a.kw == kwPassword:
			as.Target = Password
			as.Start, as.End, _ = a.value(false)
		case a.kw == kwRole, a.kw == kwDefault && next.kw == kwRole:
			as.Target = Role
			as.Start, as.End, _ = a.value(true)
		default:
			as.Start, as.End, _ = a.value(true)
		}
	default:
		if a.kind == tEOF || a.is(';') {
			a.finish()
			return true, a.kind != tEOF
		}
		a.token()
		as.Start, as.End, _ = a.value(true)
	}
	if as.Target == TargetUnknown {
		as.Literal = false
	}
	a.effect(&as)
	st.Assignments = append(st.Assignments, as)
	if a.is(',') && a.depth == 0 {
		return false, false
	}
	a.finish()
	return true, a.kind != tEOF
}

// effect notes what an assignment does in Words.
func (a *analyzer) effect(as *Assignment) {
	switch as.Target {
	case UserVariable:
		if as.Literal {
			a.st.Words |= SetsUserLiteral
		} else {
			a.st.Words |= SetsUserVariable
		}
	case SessionVariable:
		switch lookup(as.Name) {
		case kwLastInsertID, kwIdentity, kwInsertID:
			a.st.Words |= SetsLastInsertID
		}
	case TargetUnknown:
		a.st.Words |= Opaque
	}
}

// scopeDot goes past the dot behind a scope, to the variable's name.
func (a *analyzer) scopeDot() {
	a.advance()
	if a.is('.') {
		a.advance()
	}
}

// variableName reads name [. name] and the value behind it.
func (a *analyzer) variableName(as *Assignment) {
	if a.kind != tWord && a.kind != tQuoted {
		as.Target = TargetUnknown
		if a.kind != tEOF && !a.is(';') && !a.is(',') {
			a.token()
			as.Start, as.End, _ = a.value(true)
		}
		return
	}
	name := a.st.arena.decode(a.lexer)
	a.advance()
	if a.is('.') { // a key cache's or a component's variable
		if p := a.peek(); p.kind == tWord || p.kind == tQuoted {
			name = a.st.arena.qualified(name, a.st.arena.decode(p))
			a.moveTo(p)
			a.advance()
		}
	}
	as.Name = a.st.arena.lowered(name)
	a.assignValue(as)
}

// assignValue reads = value, the current token being the sign.
func (a *analyzer) assignValue(as *Assignment) {
	if !a.is('=') && a.kind != tAssign {
		as.Target = TargetUnknown
		if a.kind != tEOF && !a.is(';') && !a.is(',') {
			a.token()
			as.Start, as.End, _ = a.value(true)
		}
		return
	}
	var bare bool
	as.Start, as.End, as.Literal, bare = a.valueTokens(false)
	if bare && as.Target == UserVariable {
		as.Literal = false // a column, which the server refuses
	}
}

// value reads up to a comma at depth 0 (or through commas), or the end.
func (a *analyzer) value(commas bool) (start, end int, literal bool) {
	start, end, literal, _ = a.valueTokens(commas)
	return start, end, literal
}

// valueTokens reads a value that begins behind the current token, and stays at
// the token that ended it. bare says that the literal is a bare word.
func (a *analyzer) valueTokens(commas bool) (start, end int, literal, bare bool) {
	start, end = -1, -1
	literal = true
	tokens, sign, strings := 0, false, 0
	for {
		a.advance()
		if a.kind == tEOF || a.is(';') && a.depth == 0 || a.is(',') && a.depth == 0 && !commas {
			break
		}
		if start < 0 {
			start = a.start
		}
		switch {
		case (a.is('-') || a.is('+')) && tokens == 0 && !sign:
			sign = true
			tokens--
		case a.kind == tNumber && tokens == 0:
		case a.kind == tString && (tokens == 0 || strings == tokens) && !sign:
			strings++
		case a.kind == tWord && tokens == 0 && !sign:
			switch a.kw {
			case kwTrue, kwFalse, kwNull:
			default:
				// COLLATE may follow the name of a character set.
				bare = true
			}
		case (bare || strings > 0) && a.kw == kwCollate, a.prev == kwCollate && (a.kind == tWord || a.kind == tString):
			tokens--
		default:
			literal = false
		}
		tokens++
		a.token()
		end = a.end
	}
	if start < 0 {
		return a.start, a.start, false, false
	}
	return start, end, literal && tokens == 1 || literal && strings == tokens && strings > 0, bare
}
