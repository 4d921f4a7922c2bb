package statement

import (
	"sort"

	"seqproxy/statement/lex"
)

// function handles the name of a function if a parenthesis follows. For these functions both
// servers allow white space and comments in between, with and without IGNORE_SPACE.
func (a *analyzer) function(kw lex.Keyword) {
	if a.prev == lex.KwWith || a.prev == lex.KwRecursive {
		return // the name of a common table expression
	}
	p := a.peek()
	if !p.Is('(') {
		return
	}
	st := a.st
	switch kw {
	case lex.KwRowCount:
		st.Words |= ReadsRowCount
	case lex.KwFoundRows:
		st.Words |= ReadsFoundRows
	case lex.KwGetLock, lex.KwReleaseLock, lex.KwReleaseAllLocks, lex.KwServiceGetReadLocks, lex.KwServiceGetWriteLocks,
		lex.KwServiceReleaseLocks:
		st.Words |= UserLock
	case lex.KwLastval, lex.KwSetval:
		st.Words |= SequenceFunction
		if a.calls {
			a.valueCall(kw, p)
		}
	case lex.KwLastInsertID:
		if p.Next(); !p.Is(')') {
			st.Words |= SetsLastInsertID
			return
		}
		st.Words |= ReadsLastInsertID
		a.record(LastInsertID, p)
	case lex.KwConnectionID:
		if p.Next(); p.Is(')') {
			st.Words |= ConnectionID
			a.record(CallConnectionID, p)
		}
	case lex.KwNextval:
		// In CREATE TABLE, NEXTVAL(s) belongs to MariaDB. MariaDB allows no string there.
		if a.calls || a.table && stringFollows(p) {
			a.sequenceCall(p)
		}
	}
}

// stringFollows reports whether the token after l is a string.
func stringFollows(l lex.Lexer) bool {
	l.Next()
	return l.Kind == lex.String
}

// quotedCall handles a back-quoted name. For servers `last_insert_id`() is their own function, and
// `nextval`() is a stored function.
func (a *analyzer) quotedCall() {
	if a.AfterDot {
		return
	}
	switch kw := a.NameKeyword(); kw {
	case lex.KwLastInsertID, lex.KwConnectionID, lex.KwRowCount, lex.KwFoundRows, lex.KwGetLock, lex.KwReleaseLock, lex.KwReleaseAllLocks,
		lex.KwServiceGetReadLocks, lex.KwServiceGetWriteLocks, lex.KwServiceReleaseLocks:
		a.function(kw)
	case lex.KwInformationSchema, lex.KwPerformanceSchema:
		a.st.Words |= SystemSchema
	case lex.KwMinimumValue, lex.KwNextNotCachedValue:
		a.sequenceColumn()
	case lex.KwSessionVariables, lex.KwSystemVariables:
		a.st.Words |= ReadsLastInsertID | ReadsWarnings
	}
}

// systemVariable reads the name after @@ and moves past it.
func (a *analyzer) systemVariable() {
	p := a.peek()
	if !p.IsVariableName(a.End) {
		return
	}
	name := p.NameKeyword()
	scope := lex.KwNone
	q := p
	if q.Next(); q.Is('.') {
		if q.Next(); q.Kind == lex.Word || q.Kind == lex.Quoted {
			scope, name = name, q.NameKeyword()
			p = q
		}
	}
	if scope != lex.KwNone && scope != lex.KwSession && scope != lex.KwLocal {
		a.moveTo(p)
		return
	}
	switch name {
	case lex.KwLastInsertID, lex.KwIdentity:
		a.st.Words |= ReadsLastInsertID
		a.record(LastInsertIDVariable, p)
	case lex.KwWarningCount, lex.KwErrorCount:
		a.st.Words |= ReadsWarnings
		a.moveTo(p)
	case lex.KwPseudoThreadID:
		a.st.Words |= ConnectionID
		a.record(PseudoThreadID, p)
	default:
		a.moveTo(p)
	}
}

// moveTo moves to the given position. The token there counts as no keyword.
func (a *analyzer) moveTo(to lex.Lexer) {
	a.Lexer = to
	a.Kw = lex.KwNone
}

// record adds a call from the current token to the end of to's token, and moves there.
func (a *analyzer) record(f Func, to lex.Lexer) {
	if a.calls && a.st.Kind != Explain && a.Start >= a.muted {
		if a.Execs == to.Execs {
			a.add(FuncCall{Func: f, Start: a.Start, End: to.End})
		} else {
			a.note("NEXTVAL beside a call across a comment's border")
		}
	}
	a.moveTo(to)
}

// add completes c and appends it to the calls.
func (a *analyzer) add(c FuncCall) {
	if a.ins.on && a.ins.source == InsertUnknown {
		a.note("NEXTVAL in front of VALUES")
	}
	c.ParamsBefore, c.Item, c.Statement = a.st.Params, -1, a.index
	c.depth, c.inList = a.depth, a.st.levels[a.depth].inList
	switch {
	case a.st.Kind == Explain:
		c.Place = PlaceNever
	case c.Func == Nextval:
		a.place(&c)
	}
	if a.ins.row > 0 {
		c.Row = a.ins.row
	}
	if len(a.st.Calls) == maxCalls {
		a.tooMany = "NEXTVAL beside so many calls: more than 100,000 in one text"
		return
	}
	a.st.Calls = append(a.st.Calls, c)
}

// sequenceCall reads a NEXTVAL; p is at its opening parenthesis.
func (a *analyzer) sequenceCall(p lex.Lexer) {
	a.number()
	if a.Start < a.muted {
		return
	}
	c := FuncCall{Func: Nextval, Start: a.Start, Count: 1}
	q := p
	q.Next()
	form := FormNone
	switch {
	case q.Is('?'):
		form = FormParam
		q.Next()
		a.count(&c, &q)
	case a.named(&c, &q):
		form = c.Form
		a.count(&c, &q)
	case q.Kind == lex.UserVar:
		form = FormUserVariable
		q.Next()
	}
	if form == FormNone || !q.Is(')') {
		a.expressionCall(c, p)
		return
	}
	if q.Execs != a.Execs {
		a.note("NEXTVAL across a comment's border")
	}
	c.Form, c.End = form, q.End
	if form == FormUserVariable {
		a.note("NEXTVAL(@variable)")
		a.st.Words |= ReadsUserVariable
	}
	a.add(c)
	a.st.Params += c.Markers()
	a.moveTo(q)
}

// count reads the optional comma and count after the name; q is behind the name.
func (a *analyzer) count(c *FuncCall, q *lex.Lexer) {
	if !q.Is(',') {
		return
	}
	q.Next()
	switch n, ok := lex.ParseUint(a.Src[q.Start:q.End]); {
	case q.Is('?'):
		c.Count = 0
	case q.Kind != lex.Number:
		return // an expression, or nothing
	default:
		if !ok || n == 0 || n > MaxCount {
			a.note("NEXTVAL of no numbers, or of more than 1000000,")
			n = 1
		}
		c.Count = n
	}
	q.Next()
}

// expressionCall records a NEXTVAL whose argument is no name. The argument is then read like any
// other text.
func (a *analyzer) expressionCall(c FuncCall, p lex.Lexer) {
	depth, comma := 1, false
	for depth > 0 && p.Kind != lex.EOF {
		p.Next()
		switch {
		case p.Is('('):
			depth++
		case p.Is(')'):
			depth--
		case p.Is(',') && depth == 1:
			comma = true
		}
	}
	if comma {
		a.note("NEXTVAL with an expression for the count")
	} else {
		a.note("NEXTVAL(expression)")
	}
	c.Form, c.Name, c.Schema, c.Count, c.End = FormExpression, nil, nil, 1, p.End
	a.add(c)
	a.muted = p.End
}

// CallFrom returns the call that begins at an offset, or nil.
func (st *Statement) CallFrom(start int) *FuncCall {
	if first, _ := st.callsBetween(start, start); first < len(st.Calls) && st.Calls[first].Start == start {
		return &st.Calls[first]
	}
	return nil
}

// callsBetween returns the indexes of the calls within [start, end).
func (st *Statement) callsBetween(start, end int) (first, after int) {
	first = sort.Search(len(st.Calls), func(i int) bool { return st.Calls[i].Start >= start })
	after = sort.Search(len(st.Calls), func(i int) bool { return st.Calls[i].End > end })
	return first, after
}

// sequenceColumn records a column that MariaDB's sequences have.
func (a *analyzer) sequenceColumn() {
	if a.st.Kind == Select { // only a SELECT can ask for one
		a.st.Words |= LooksForSequences
	}
}
