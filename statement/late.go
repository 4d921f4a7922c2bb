package statement

import "seqproxy/statement/lex"

// Late looks at statement index of a text of several statements, which takes numbers and reads
// LAST_INSERT_ID(). It finds out whether the first number can become LAST_INSERT_ID() after all
// calls that read it. leader is the call that gets the first number. at is the call that gets the
// effect; it is leader if nothing reads LAST_INSERT_ID() later. sql is the text that st was
// analysed from. numbers says which calls are given a number.
//
// It works for INSERT and REPLACE with VALUES and SET. Servers evaluate these values in text order,
// each exactly once if the call is the whole value.
func (st *Statement) Late(sql []byte, index int, numbers []bool) (leader, at int, ok bool) {
	var t *TableRef
	for i := range st.Tables {
		if st.Tables[i].Statement == index && (st.Tables[i].Kind == Insert || st.Tables[i].Kind == Replace) {
			t = &st.Tables[i]
		}
	}
	if t == nil {
		return 0, 0, false
	}
	l := lex.Lexer{Src: sql, Mode: st.mode}
	for l.End < t.End && l.Kind != lex.EOF || l.Pos == 0 {
		l.Next()
	}
	next := 0 // index into st.Calls
	for next < len(st.Calls) && st.Calls[next].Start < t.End {
		next++
	}
	leader, at = -1, -1
	read, readAlone, alone, leaderAlone := -1, false, false, false
	depth, source := 0, lex.KwNone
	equals := 0 // number of = in this assignment of SET
	prev := l
	for l.Next(); l.Kind != lex.EOF && (depth > 0 || !l.Is(';')); l.Next() {
		if next < len(st.Calls) && l.Start == st.Calls[next].Start {
			c := &st.Calls[next]
			reads := c.Func == LastInsertID || c.Func == LastInsertIDVariable
			before := prev
			prev = l
			prev.Pos, prev.End, prev.Kind, prev.Ch, prev.Kw = c.End, c.End, lex.Punct, ')', lex.KwNone
			l = prev
			if reads || numbers[next] {
				if source == lex.KwNone {
					return 0, 0, false
				}
				alone = isWholeValue(&l, &before, source, depth) && equals < 2
			}
			switch {
			case reads:
				read, readAlone = next, alone
			case numbers[next] && leader < 0:
				leader, leaderAlone = next, alone
			}
			if reads || numbers[next] {
				at = next
			}
			next++
			continue
		}
		switch {
		case l.Is('('):
			depth++
		case l.Is(')'):
			depth--
		case depth > 0:
		case l.Is(','):
			equals = 0
		case source == lex.KwSet && (l.Is('=') || l.Kind == lex.Assign):
			equals++
		case source == lex.KwNone && (l.Kw == lex.KwValues || l.Kw == lex.KwValue || l.Kw == lex.KwSet):
			source = l.Kw
		case source == lex.KwNone && (l.Kw == lex.KwSelect || l.Kw == lex.KwWith || l.Kw == lex.KwTable):
			return 0, 0, false
		case l.Kw == lex.KwOn, l.Kw == lex.KwReturning:
			source = lex.KwNone // rows decide how often the values are evaluated
		}
		prev = l
	}
	switch {
	case l.Bad || l.SeenCond || leader < 0 || !leaderAlone:
		return 0, 0, false
	case leader > read:
		return leader, leader, true
	case readAlone:
		return leader, read, true
	}
	return leader, at, alone && at > read
}

// isWholeValue reports whether a call is a whole value of VALUES or SET; l is at its end, and before
// is the token in front of it.
func isWholeValue(l, before *lex.Lexer, source lex.Keyword, depth int) bool {
	behind := *l
	behind.Next()
	if source == lex.KwSet {
		return depth == 0 && (before.Is('=') || before.Kind == lex.Assign) &&
			(behind.Is(',') || behind.Is(';') || behind.Kind == lex.EOF || behind.Kw == lex.KwOn || behind.Kw == lex.KwReturning || behind.Kw == lex.KwAs)
	}
	return depth == 1 && (before.Is('(') || before.Is(',')) && (behind.Is(',') || behind.Is(')'))
}
