package statement

import "seqproxy/statement/lex"

// Runs says what the first statement of a text may run besides itself. This decides what its
// failure proves.
type Runs uint8

// The kinds of it.
const (
	// RunsFunctions: the statement may call stored functions or fire triggers. An error found by
	// the parser proves that nothing was run.
	RunsFunctions Runs = iota
	// RunsItself: the statement runs nothing else. An error found when names are resolved proves
	// that nothing was run, too. It is used only for statements that take locks or set user
	// variables.
	RunsItself
	// RunsOthers: the statement runs others that Analyze does not see: CALL, EXECUTE, a block. No
	// error proves anything.
	RunsOthers
)

// runs returns the Runs of a text whose first statement has the kind first.
func (st *Statement) runs(sql []byte, first Kind) Runs {
	switch {
	case first == Call && isCall(sql, st.mode), first == Execute, first == ExecuteImmediate, first == Set && st.Words&Opaque != 0,
		first == Other && MayRunOthers(sql, st.mode):
		return RunsOthers
	case st.Words&(UserLock|SetsUserVariable) == 0 || st.Words&(FromTable|Opaque) != 0:
		return RunsFunctions
	}
	switch first {
	case Select, Set, Do:
		// MariaDB evaluates one assignment before it resolves the names of the next.
		if st.Kind == first && len(st.Assignments) < 2 && !mayCallStored(sql, st.mode) {
			return RunsItself
		}
	}
	return RunsFunctions
}

// MayRunOthers reports whether a text that is not understood may run other statements, judging by
// its beginning. That needs no letters beyond ASCII.
func MayRunOthers(sql []byte, mode lex.Mode) bool {
	l := lex.Lexer{Src: sql, Mode: mode}
	l.Next()
	switch {
	case l.Execs > 0 || l.SeenCond || l.Bad:
		return true
	case l.Kind == lex.Quoted, l.Is('<'): // a label
		return hasEnd(l)
	case l.Kind != lex.Word:
		return false
	}
	w := l.Src[l.Start:l.End]
	p := l
	p.Next()
	switch {
	case l.Kw == lex.KwCall, l.Kw == lex.KwExecute, l.Kw == lex.KwSet && p.Kw == lex.KwStatement:
		return true
	case p.Is(':'):
		return hasEnd(p)
	}
	return isAnyOf(w, "begin", "declare", "if", "case", "loop", "while", "repeat", "for") && hasEnd(p)
}

// hasEnd reports whether the word END follows. Every block has one.
func hasEnd(l lex.Lexer) bool {
	for l.Kind != lex.EOF {
		if l.Kw == lex.KwEnd {
			return true
		}
		l.Next()
	}
	return l.Bad
}

// isCall reports whether a text begins with a CALL that a server may accept: of a name, followed by
// nothing or parentheses.
func isCall(sql []byte, mode lex.Mode) bool {
	l := lex.Lexer{Src: sql, Mode: mode}
	l.Next()
	for {
		if l.Next(); l.Kind != lex.Word && l.Kind != lex.Quoted {
			return l.Bad
		}
		dot := l
		if dot.Next(); !dot.Is('.') {
			break
		}
		l = dot
	}
	l.Next()
	if l.Is('(') {
		for depth := 1; depth > 0 && l.Kind != lex.EOF; {
			switch l.Next(); {
			case l.Is('('):
				depth++
			case l.Is(')'):
				depth--
			}
		}
		if l.Kind == lex.EOF {
			return l.Bad
		}
		l.Next()
	}
	return l.Kind == lex.EOF || l.Is(';')
}

// mayCallStored reports whether a text may call a stored function.
func mayCallStored(sql []byte, mode lex.Mode) bool {
	l := lex.Lexer{Src: sql, Mode: mode}
	for before := l; ; before = l {
		switch l.Next(); {
		case l.Kind == lex.EOF:
			return l.Bad
		case !l.Is('('):
			continue
		}
		switch before.Kw {
		case lex.KwGetLock, lex.KwReleaseLock, lex.KwReleaseAllLocks, lex.KwLastInsertID, lex.KwConnectionID, lex.KwRowCount, lex.KwFoundRows, lex.KwNextval:
			if !before.AfterDot {
				continue
			}
		}
		if mayCallRoutine(&l, &before) {
			return true
		}
	}
}
