package statement

import "sort"

// function takes a function's name into account, if a parenthesis follows:
// both servers allow white space and comments between the two for all of these
// functions, with and without IGNORE_SPACE.
func (a *analyzer) function(kw keyword) {
	if a.prev == kwWith || a.prev == kwRecursive {
		return // the name of a common table expression
	}
	p := a.peek()
	if !p.is('(') {
		return
	}
	st := a.st
	switch kw {
	case kwRowCount:
		st.Words |= ReadsRowCount
	case kwFoundRows:
		st.Words |= ReadsFoundRows
	case kwGetLock, kwReleaseLock, kwReleaseAllLocks, kwServiceGetReadLocks, kwServiceGetWriteLocks,
		kwServiceReleaseLocks:
		st.Words |= UserLock
	case kwLastval, kwSetval:
		st.Words |= SequenceFunction
		if a.calls {
			a.valueCall(kw, p)
		}
	case kwLastInsertID:
		if p.next(); !p.is(')') {
			st.Words |= SetsLastInsertID
			return
		}
		st.Words |= ReadsLastInsertID
		a.record(LastInsertID, p)
	case kwConnectionID:
		if p.next(); p.is(')') {
			st.Words |= ConnectionID
			a.record(CallConnectionID, p)
		}
	case kwNextval:
		// NEXTVAL(s) in CREATE TABLE is MariaDB's own; it takes no string.
		if a.calls || a.table && stringFollows(p) {
			a.sequenceCall(p)
		}
	}
}

// stringFollows reports whether a string is the token behind l.
func stringFollows(l lexer) bool {
	l.next()
	return l.kind == tString
}

// quotedCall looks at a back-quoted name: the servers take `last_insert_id`()
// for their own function. `nextval`() is a stored function on all of them.
func (a *analyzer) quotedCall() {
	if a.afterDot || a.end-a.start < minKeyword+2 {
		return
	}
	switch kw := lookup(a.src[a.start+1 : a.end-1]); kw {
	case kwLastInsertID, kwConnectionID, kwRowCount, kwFoundRows, kwGetLock, kwReleaseLock, kwReleaseAllLocks,
		kwServiceGetReadLocks, kwServiceGetWriteLocks, kwServiceReleaseLocks:
		a.function(kw)
	case kwInformationSchema, kwPerformanceSchema:
		a.st.Words |= SystemSchema
	case kwMinimumValue, kwNextNotCachedValue:
		a.sequenceColumn()
	case kwSessionVariables, kwSystemVariables:
		a.st.Words |= ReadsLastInsertID | ReadsWarnings
	}
}

// systemVariable reads the name after @@ and goes past it.
func (a *analyzer) systemVariable() {
	p := a.peek()
	if !p.isVariableName(a.end) {
		return
	}
	name := p.lookupName()
	scope := kwNone
	q := p
	if q.next(); q.is('.') {
		if q.next(); q.kind == tWord || q.kind == tQuoted {
			scope, name = name, q.lookupName()
			p = q
		}
	}
	if scope != kwNone && scope != kwSession && scope != kwLocal {
		a.moveTo(p)
		return
	}
	switch name {
	case kwLastInsertID, kwIdentity:
		a.st.Words |= ReadsLastInsertID
		a.record(LastInsertIDVariable, p)
	case kwWarningCount, kwErrorCount:
		a.st.Words |= ReadsWarnings
		a.moveTo(p)
	case kwPseudoThreadID:
		a.st.Words |= ConnectionID
		a.record(PseudoThreadID, p)
	default:
		a.moveTo(p)
	}
}

// moveTo makes to the current position. The token there counts as no keyword.
func (a *analyzer) moveTo(to lexer) {
	a.lexer = to
	a.kw = kwNone
}

// record adds a call that begins at the current token and ends with to, and
// goes there.
func (a *analyzer) record(f Func, to lexer) {
	if a.calls && a.st.Kind != Explain && a.start >= a.muted {
		if a.execs == to.execs {
			a.add(FuncCall{Func: f, Start: a.start, End: to.end})
		} else {
			a.note("NEXTVAL beside a call across a comment's border")
		}
	}
	a.moveTo(to)
}

// add completes c and appends it.
func (a *analyzer) add(c FuncCall) {
	if a.ins.on && a.ins.source == fromNowhere {
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
		a.tooMany = true
		return
	}
	a.st.Calls = append(a.st.Calls, c)
}

// sequenceCall reads a NEXTVAL whose opening parenthesis is p.
func (a *analyzer) sequenceCall(p lexer) {
	a.number()
	if a.start < a.muted {
		return
	}
	c := FuncCall{Func: Nextval, Start: a.start, Count: 1}
	q := p
	q.next()
	form := FormNone
	switch {
	case q.is('?'):
		form = FormParam
		q.next()
		a.count(&c, &q)
	case a.named(&c, &q):
		form = c.Form
		a.count(&c, &q)
	case q.kind == tUserVar:
		form = FormUserVariable
		q.next()
	}
	if form == FormNone || !q.is(')') {
		a.expressionCall(c, p)
		return
	}
	if q.execs != a.execs {
		a.note("NEXTVAL across a comment's border")
	}
	c.Form, c.End = form, q.end
	if form == FormUserVariable {
		a.note("NEXTVAL(@variable)")
		a.st.Words |= ReadsUserVariable
	}
	a.add(c)
	a.st.Params += c.Markers()
	a.moveTo(q)
}

// count reads what may follow the name at q: a comma and the count of numbers.
func (a *analyzer) count(c *FuncCall, q *lexer) {
	if !q.is(',') {
		return
	}
	q.next()
	switch n, ok := parseUint(a.src[q.start:q.end]); {
	case q.is('?'):
		c.Count = 0
	case q.kind != tNumber:
		return // which is an expression, or nothing
	default:
		if !ok || n == 0 || n > MaxCount {
			a.note("NEXTVAL of no numbers, or of more than 1000000,")
			n = 1
		}
		c.Count = n
	}
	q.next()
}

// expressionCall records a NEXTVAL whose argument is no name, and leaves the
// argument to be read as everything else.
func (a *analyzer) expressionCall(c FuncCall, p lexer) {
	depth, comma := 1, false
	for depth > 0 && p.kind != tEOF {
		p.next()
		switch {
		case p.is('('):
			depth++
		case p.is(')'):
			depth--
		case p.is(',') && depth == 1:
			comma = true
		}
	}
	if comma {
		a.note("NEXTVAL with an expression for the count")
	} else {
		a.note("NEXTVAL(expression)")
	}
	c.Form, c.Name, c.Schema, c.Count, c.End = FormExpression, nil, nil, 1, p.end
	a.add(c)
	a.muted = p.end
}

// CallAt returns the call that sql[start:end] is, or nil.
func (st *Statement) CallAt(start, end int) *FuncCall {
	first, after := st.callsBetween(start, end)
	if first >= after || st.Calls[first].Start != start || st.Calls[first].End != end {
		return nil
	}
	return &st.Calls[first]
}

// callsBetween gives the calls that lie in [start, end).
func (st *Statement) callsBetween(start, end int) (first, after int) {
	first = sort.Search(len(st.Calls), func(i int) bool { return st.Calls[i].Start >= start })
	after = sort.Search(len(st.Calls), func(i int) bool { return st.Calls[i].End > end })
	return first, after
}
