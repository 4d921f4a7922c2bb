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
	r := lateReader{Lexer: lex.Lexer{Src: sql, Mode: st.mode}, st: st, numbers: numbers, leader: -1, at: -1, read: -1}
	r.skipTo(t.End)
	prev := r.Lexer
	for r.Next(); r.Kind != lex.EOF && (r.depth > 0 || !r.Is(';')); r.Next() {
		if !r.token(&prev) {
			return 0, 0, false
		}
		prev = r.Lexer
	}
	switch {
	case r.Bad || r.SeenCond || r.leader < 0 || !r.leaderWhole:
		return 0, 0, false
	case r.leader > r.read:
		return r.leader, r.leader, true
	case r.readWhole:
		return r.leader, r.read, true
	}
	return r.leader, r.at, r.whole && r.at > r.read
}

// IsValue reports whether a call in an INSERT or REPLACE is a whole value of its rows, so that the
// server surely evaluates it. sql is the text.
func (st *Statement) IsValue(sql []byte, call int) bool {
	t := st.Table()
	if t == nil {
		return false
	}
	r := lateReader{Lexer: lex.Lexer{Src: sql, Mode: st.mode}, st: st, numbers: make([]bool, call), leader: -1, at: -1, read: -1}
	r.skipTo(t.End)
	prev := r.Lexer
	for r.Next(); r.Kind != lex.EOF; r.Next() {
		if r.next == call && r.Start == st.Calls[call].Start {
			return r.pass(&prev) && !r.Bad && !r.SeenCond
		}
		if !r.token(&prev) {
			return false
		}
		prev = r.Lexer
	}
	return false
}

// lateReader reads the rows of an INSERT for Late.
type lateReader struct {
	lex.Lexer
	st      *Statement
	numbers []bool // the calls that are given a number

	next   int         // index into st.Calls
	depth  int         // of parentheses
	source lex.Keyword // VALUES, VALUE or SET within the rows; KwNone before; ON or RETURNING behind
	equals int         // number of = in this assignment of SET

	leader      int  // the first call with a number, or -1
	leaderWhole bool // it is a whole value
	read        int  // the last call that reads LAST_INSERT_ID(), or -1
	readWhole   bool // it is a whole value
	at          int  // the last of both kinds
	whole       bool // it is a whole value
}

// skipTo moves to the token that ends at end, and past the calls before it.
func (r *lateReader) skipTo(end int) {
	for r.End < end && r.Kind != lex.EOF || r.Pos == 0 {
		r.Next()
	}
	for r.next < len(r.st.Calls) && r.st.Calls[r.next].Start < end {
		r.next++
	}
}

// token handles the current token, and moves to the end of a call. prev is the token before. It
// returns false where values are not evaluated once each, in the order of the text.
func (r *lateReader) token(prev *lex.Lexer) bool {
	if r.next < len(r.st.Calls) && r.Start == r.st.Calls[r.next].Start {
		return r.call(prev)
	}
	switch {
	case r.Is('('):
		r.depth++
	case r.Is(')'):
		r.depth--
	case r.depth > 0:
	case r.Is(','):
		r.equals = 0
	case r.source == lex.KwSet && (r.Is('=') || r.Kind == lex.Assign):
		r.equals++
	case r.source == lex.KwNone && (r.Kw == lex.KwValues || r.Kw == lex.KwValue || r.Kw == lex.KwSet):
		r.source = r.Kw
	case r.source == lex.KwNone && (r.Kw == lex.KwSelect || r.Kw == lex.KwWith || r.Kw == lex.KwTable):
		return false
	case r.Kw == lex.KwOn, r.Kw == lex.KwReturning:
		r.source = r.Kw // rows decide how often the values are evaluated
	}
	return true
}

// call is token for the next call.
func (r *lateReader) call(prev *lex.Lexer) bool {
	c := &r.st.Calls[r.next]
	whole := r.pass(prev)
	reads := c.Func == LastInsertID || c.Func == LastInsertIDVariable
	if reads || r.numbers[r.next] {
		if !r.inRows() {
			return false
		}
		r.at, r.whole = r.next, whole
	}
	switch {
	case reads:
		r.read, r.readWhole = r.next, r.whole
	case r.numbers[r.next] && r.leader < 0:
		r.leader, r.leaderWhole = r.next, r.whole
	}
	r.next++
	return true
}

// pass moves to the end of the next call, and reports whether it is a whole value of the rows.
func (r *lateReader) pass(prev *lex.Lexer) bool {
	end := r.st.Calls[r.next].End
	r.Pos, r.End, r.Kind, r.Ch, r.Kw = end, end, lex.Punct, ')', lex.KwNone
	return r.inRows() && isWholeValue(&r.Lexer, prev, r.source, r.depth) && r.equals < 2
}

// inRows reports whether the current token is in VALUES or SET.
func (r *lateReader) inRows() bool {
	return r.source == lex.KwValues || r.source == lex.KwValue || r.source == lex.KwSet
}

// isWholeValue reports whether a call is a whole value of VALUES or SET. l is at its end, and
// before is the token in front of it.
func isWholeValue(l, before *lex.Lexer, source lex.Keyword, depth int) bool {
	behind := *l
	behind.Next()
	if source == lex.KwSet {
		return depth == 0 && (before.Is('=') || before.Kind == lex.Assign) &&
			(behind.Is(',') || behind.Is(';') || behind.Kind == lex.EOF || behind.Kw == lex.KwOn || behind.Kw == lex.KwReturning || behind.Kw == lex.KwAs)
	}
	return depth == 1 && (before.Is('(') || before.Is(',')) && (behind.Is(',') || behind.Is(')'))
}
