package statement

import "strings"

// Runs says what the first statement of a text may run beside itself, and so what its
// failure proves.
type Runs uint8

// The kinds of it.
const (
	// RunsFunctions: it may call stored functions or have triggers. An error that is met while the text
	// is parsed proves that nothing was run.
	RunsFunctions Runs = iota
	// RunsItself: nothing but itself. So do errors that are met while names are resolved. Said
	// only of what locks or sets a user variable.
	RunsItself
	// RunsOthers: statements that are not looked at one by one: CALL, EXECUTE, a block. No
	// error proves anything.
	RunsOthers
)

// runs says it of a text whose first statement is of a kind.
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
		// MariaDB evaluates one assignment before it looks for what the next one names.
		if st.Kind == first && len(st.Assignments) < 2 && !mayCallStored(sql, st.mode) {
			return RunsItself
		}
	}
	return RunsFunctions
}

// MayRunOthers reports whether a text that is not understood may be one that runs others,
// judged by how it begins. Letters that are not ASCII need not be read for that.
func MayRunOthers(sql []byte, mode Mode) bool {
	l := lexer{src: sql, mode: mode}
	l.next()
	switch {
	case l.execs > 0 || l.seenCond || l.bad:
		return true
	case l.kind == tQuoted, l.is('<'): // a label
		return hasEnd(l)
	case l.kind != tWord:
		return false
	}
	w := l.src[l.start:l.end]
	p := l
	p.next()
	switch {
	case l.kw == kwCall, l.kw == kwExecute, l.kw == kwSet && p.kw == kwStatement:
		return true
	case p.is(':'):
		return hasEnd(p)
	}
	for _, name := range [...]string{"begin", "declare", "if", "case", "loop", "while", "repeat", "for"} {
		if strings.EqualFold(string(w), name) {
			return hasEnd(p)
		}
	}
	return false
}

// hasEnd reports whether the word END, which every block has, follows.
func hasEnd(l lexer) bool {
	for l.kind != tEOF {
		if l.kw == kwEnd {
			return true
		}
		l.next()
	}
	return l.bad
}

// isCall reports whether a text begins with a CALL that a server may take: of a name, with
// nothing behind it or parentheses.
func isCall(sql []byte, mode Mode) bool {
	l := lexer{src: sql, mode: mode}
	l.next()
	for {
		if l.next(); l.kind != tWord && l.kind != tQuoted {
			return l.bad
		}
		dot := l
		if dot.next(); !dot.is('.') {
			break
		}
		l = dot
	}
	l.next()
	if l.is('(') {
		for depth := 1; depth > 0 && l.kind != tEOF; {
			switch l.next(); {
			case l.is('('):
				depth++
			case l.is(')'):
				depth--
			}
		}
		if l.kind == tEOF {
			return l.bad
		}
		l.next()
	}
	return l.kind == tEOF || l.is(';')
}

// mayCallStored reports whether a text may call a stored function.
func mayCallStored(sql []byte, mode Mode) bool {
	l := lexer{src: sql, mode: mode}
	for before := l; ; before = l {
		switch l.next(); {
		case l.kind == tEOF:
			return l.bad
		case !l.is('('):
			continue
		}
		switch before.kw {
		case kwGetLock, kwReleaseLock, kwReleaseAllLocks, kwLastInsertID, kwConnectionID, kwRowCount, kwFoundRows, kwNextval:
			if !before.afterDot {
				continue
			}
		}
		if mayCallRoutine(&l, &before) {
			return true
		}
	}
}
