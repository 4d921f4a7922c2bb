package statement

import "seqproxy/statement/lex"

// set reads SET (https://dev.mysql.com/doc/refman/en/set-variable.html and
// MariaDB's additions).
func (a *analyzer) set() bool {
	st := a.st
	st.Kind, a.calls = Set, true
	a.advance()
	if a.Kw == lex.KwStatement {
		if p := a.peek(); p.Kind == lex.Word || p.Kind == lex.Quoted { // SET STATEMENT a = b FOR ...
			if a.limited() {
				return a.head()
			}
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
		a.advance() // move past the comma
	}
}

// limited moves behind the FOR of SET STATEMENT if that only limits the statement behind it.
// Drivers of MariaDB write that in front of the application's statement: max_statement_time for a
// query timeout (setQueryTimeout), sql_select_limit for a number of rows (setMaxRows). The
// statement is then read as if a comment stood before it.
func (a *analyzer) limited() bool {
	p, rows := a.peek(), false
	for {
		switch {
		case p.Spells("max_statement_time"):
		case p.Spells("sql_select_limit"):
			rows = true
		default:
			return false
		}
		if p.Next(); !p.Is('=') {
			return false
		}
		if p.Next(); p.Kind != lex.Number {
			return false
		}
		if p.Next(); !p.Is(',') {
			break
		}
		p.Next()
	}
	if p.Kw != lex.KwFor {
		return false
	}
	switch p.Next(); p.Kw {
	case lex.KwSelect:
	case lex.KwInsert, lex.KwReplace, lex.KwUpdate, lex.KwDelete:
		if rows {
			return false
		}
	default:
		return false
	}
	if p.Execs != a.Execs || p.SeenCond || p.Bad {
		return false
	}
	if !rows && a.index == 0 {
		a.st.Start = p.Start
	}
	a.Lexer, a.first = p, p.Start
	a.prev, a.prevEnd, a.calls = lex.KwNone, p.Start, false
	return true
}

// transactionScope reports whether the current token begins [GLOBAL | SESSION | LOCAL] TRANSACTION,
// and moves to TRANSACTION.
func (a *analyzer) transactionScope() (Scope, bool) {
	if a.Kw == lex.KwTransaction {
		p := a.peek() // SET transaction = ... does not exist
		return ScopeNext, p.Kind == lex.Word
	}
	scope := ScopeSession
	switch a.Kw {
	case lex.KwGlobal:
		scope = ScopeGlobal
	case lex.KwSession, lex.KwLocal:
	default:
		return 0, false
	}
	p := a.peek()
	if p.Kw != lex.KwTransaction {
		return 0, false
	}
	a.moveTo(p)
	return scope, true
}

// setWhole records the rest of the statement as the value of one assignment.
func (a *analyzer) setWhole(t Target, scope Scope) bool {
	as := Assignment{Target: t, Scope: scope}
	if t == StatementFor {
		// Any statement may follow FOR.
		a.st.Words |= Opaque
		a.refusal = "NEXTVAL in SET STATEMENT ... FOR"
		a.behindFor()
	}
	a.prevEnd = a.End
	as.Start, as.End, as.Literal = a.value(true)
	if t == StatementFor || t == Role || t == Password {
		as.Literal = false
	}
	if a.room() {
		a.st.Assignments = append(a.st.Assignments, as)
	}
	a.finish()
	return a.Kind != lex.EOF
}

// assignment reads one element of SET. Its first token is the current one. done says that the
// statement has ended, and more that a semicolon ended it.
func (a *analyzer) assignment(sticky *Target) (done, more bool) {
	st := a.st
	as := Assignment{}
	switch {
	case a.Kind == lex.UserVar:
		as.Target = UserVariable
		as.Name = st.arena.Lowered(st.arena.Decode(&a.Lexer))
		a.advance()
		a.assignValue(&as)
	case a.Kind == lex.SysVar:
		a.advance()
		as.Target = SessionVariable
		switch a.Kw {
		case lex.KwGlobal, lex.KwPersist, lex.KwPersistOnly:
			as.Target = GlobalVariable
			a.scopeDot()
		case lex.KwSession, lex.KwLocal:
			a.scopeDot()
		}
		a.variableName(&as)
	case a.Kind == lex.Word || a.Kind == lex.Quoted:
		next := a.peek()
		assigned := next.Is('=') || next.Kind == lex.Assign || next.Is('.')
		switch {
		case assigned && a.Kw != lex.KwPassword:
			as.Target = *sticky
			a.variableName(&as)
		case a.Kw == lex.KwGlobal, a.Kw == lex.KwPersist, a.Kw == lex.KwPersistOnly:
			*sticky = GlobalVariable
			as.Target = *sticky
			a.advance()
			a.variableName(&as)
		case a.Kw == lex.KwSession, a.Kw == lex.KwLocal:
			*sticky = SessionVariable
			as.Target = *sticky
			a.advance()
			a.variableName(&as)
		case a.Kw == lex.KwNames:
			as.Target = Names
			as.Start, as.End, as.Literal = a.value(false)
		case a.Kw == lex.KwCharset:
			as.Target = CharacterSet
			as.Start, as.End, as.Literal = a.value(false)
		case a.Kw == lex.KwCharacter && next.Kw == lex.KwSet:
			as.Target = CharacterSet
			a.advance()
			as.Start, as.End, as.Literal = a.value(false)
		case a.Kw == lex.KwPassword:
			as.Target = Password
			as.Start, as.End, _ = a.value(false)
		case a.Kw == lex.KwRole, a.Kw == lex.KwDefault && next.Kw == lex.KwRole:
			as.Target = Role
			as.Start, as.End, _ = a.value(true)
		default:
			as.Start, as.End, _ = a.value(true)
		}
	default:
		if a.Kind == lex.EOF || a.Is(';') {
			a.finish()
			return true, a.Kind != lex.EOF
		}
		a.token()
		as.Start, as.End, _ = a.value(true)
	}
	if as.Target == TargetUnknown {
		as.Literal = false
	}
	a.effect(&as)
	if a.room() {
		st.Assignments = append(st.Assignments, as)
	}
	if a.Is(',') && a.depth == 0 {
		return false, false
	}
	a.finish()
	return true, a.Kind != lex.EOF
}

// effect records in Words what an assignment does.
func (a *analyzer) effect(as *Assignment) {
	switch as.Target {
	case UserVariable:
		if as.Literal {
			a.st.Words |= SetsUserLiteral
		} else {
			a.st.Words |= SetsUserVariable
		}
	case SessionVariable:
		switch lex.Lookup(as.Name) {
		case lex.KwLastInsertID, lex.KwIdentity, lex.KwInsertID:
			a.st.Words |= SetsLastInsertID
		}
	case TargetUnknown:
		a.st.Words |= Opaque
	}
}

// scopeDot moves past the dot after a scope, to the variable's name.
func (a *analyzer) scopeDot() {
	a.advance()
	if a.Is('.') {
		a.advance()
	}
}

// variableName reads name [. name] and the value.
func (a *analyzer) variableName(as *Assignment) {
	if a.Kind != lex.Word && a.Kind != lex.Quoted {
		as.Target = TargetUnknown
		if a.Kind != lex.EOF && !a.Is(';') && !a.Is(',') {
			a.token()
			as.Start, as.End, _ = a.value(true)
		}
		return
	}
	name := a.st.arena.Decode(&a.Lexer)
	a.advance()
	if a.Is('.') { // a variable of a key cache or a component
		if p := a.peek(); p.Kind == lex.Word || p.Kind == lex.Quoted {
			name = a.st.arena.Qualified(name, a.st.arena.Decode(&p))
			a.moveTo(p)
			a.advance()
		}
	}
	as.Name = a.st.arena.Lowered(name)
	a.assignValue(as)
}

// assignValue reads = value. The current token is the sign.
func (a *analyzer) assignValue(as *Assignment) {
	if !a.Is('=') && a.Kind != lex.Assign {
		as.Target = TargetUnknown
		if a.Kind != lex.EOF && !a.Is(';') && !a.Is(',') {
			a.token()
			as.Start, as.End, _ = a.value(true)
		}
		return
	}
	var bare bool
	as.Start, as.End, as.Literal, bare = a.valueTokens(false)
	if bare && as.Target == UserVariable {
		as.Literal = false // it is a column, which the server rejects
	}
}

// value reads up to the end or a comma at depth 0. commas says that commas belong to the value.
func (a *analyzer) value(commas bool) (start, end int, literal bool) {
	start, end, literal, _ = a.valueTokens(commas)
	return start, end, literal
}

// valueTokens reads a value after the current token, and stops at the token that ends it. bare says
// that the literal is an unquoted word.
func (a *analyzer) valueTokens(commas bool) (start, end int, literal, bare bool) {
	start, end = -1, -1
	literal = true
	tokens, sign, strings := 0, false, 0
	for {
		a.advance()
		if a.Kind == lex.EOF || a.Is(';') && a.depth == 0 || a.Is(',') && a.depth == 0 && !commas {
			break
		}
		if start < 0 {
			start = a.Start
		}
		switch {
		case (a.Is('-') || a.Is('+')) && tokens == 0 && !sign:
			sign = true
			tokens--
		case a.Kind == lex.Number && tokens == 0:
		case a.Kind == lex.String && (tokens == 0 || strings == tokens) && !sign:
			strings++
		case a.Kind == lex.Word && tokens == 0 && !sign:
			switch a.Kw {
			case lex.KwTrue, lex.KwFalse, lex.KwNull:
			default:
				// COLLATE may follow the name of a character set.
				bare = true
			}
		case (bare || strings > 0) && a.Kw == lex.KwCollate, a.prev == lex.KwCollate && (a.Kind == lex.Word || a.Kind == lex.String):
			tokens--
		default:
			literal = false
		}
		tokens++
		a.token()
		end = a.End
	}
	if start < 0 {
		return a.Start, a.Start, false, false
	}
	return start, end, literal && tokens == 1 || literal && strings == tokens && strings > 0, bare
}
