package statement

// What stands for NEXTVAL, LASTVAL and SETVAL in other products, and what follows a name.

// columnNextval is the name of the column of Vitess's SELECT NEXT VALUE. Read-only.
var columnNextval = []byte("nextval")

// named reads a sequence's name at q, [schema .] name, and goes behind it. It fills in
// c's form and names.
func (a *analyzer) named(c *FuncCall, q *lexer) bool {
	name := *q
	switch {
	case q.kind == tString && (a.src[q.start] == '\'' || a.src[q.start] == '"'):
		q.next()
		c.Form, c.Name = FormName, a.st.arena.decodeName(name)
		return true
	case q.kind != tWord && q.kind != tQuoted:
		return false
	}
	if q.next(); !q.is('.') {
		c.Form, c.Name = FormName, a.st.arena.decodeName(name)
		return true
	}
	if q.next(); q.kind != tWord && q.kind != tQuoted {
		return false
	}
	c.Form, c.Schema, c.Name = FormQualified, a.st.arena.decodeName(name), a.st.arena.decodeName(*q)
	q.next()
	return true
}

// valueCall reads a LASTVAL or SETVAL whose opening parenthesis is p. What has no name
// in it, or other things behind that, is left to the server.
func (a *analyzer) valueCall(kw keyword, p lexer) {
	if a.start < a.muted || kw == kwSetval && a.start < a.setTo { // what was looked through is not again
		return
	}
	c := FuncCall{Func: Lastval, Start: a.start}
	q := p
	if q.next(); q.is('?') {
		c.Form = FormParam
		q.next()
	} else if !a.named(&c, &q) {
		return
	}
	if kw == kwSetval {
		c.Func, c.Set = Setval, setvalArgs(&q)
	}
	whole := q.is(')')
	for depth := 1; !whole && kw == kwSetval; q.next() {
		switch {
		case q.is('('):
			depth++
		case q.is(')'):
			depth--
		}
		if depth == 0 || q.kind == tEOF {
			c.Set = nil
			break
		}
	}
	if kw == kwSetval {
		a.setTo = q.end
	}
	if !q.is(')') || q.execs != a.execs {
		return
	}
	c.End = q.end
	a.add(c)
	if a.muted = c.End; whole {
		a.st.Params += c.Markers()
		a.moveTo(q)
	}
}

// setvalArgs reads what follows the name of a SETVAL: , n [, is_used [, round]]. It is
// nil if that is something else than literals, which MariaDB does not take either.
func setvalArgs(q *lexer) *SetvalArgs {
	var args SetvalArgs
	if !q.is(',') {
		return nil
	}
	q.next()
	if args.Negative = q.is('-'); args.Negative || q.is('+') {
		q.next()
	}
	var ok bool
	if args.Param = q.is('?') && !args.Negative; !args.Param {
		if args.Value, ok = parseUint(q.src[q.start:q.end]); q.kind != tNumber || !ok {
			return nil
		}
	}
	if q.next(); !q.is(',') {
		return &args
	}
	q.next()
	switch used, number := parseUint(q.src[q.start:q.end]); {
	case q.kw == kwTrue:
	case q.kw == kwFalse:
		args.Unused = true
	case q.kind == tNumber && number:
		args.Unused = used == 0
	default:
		return nil
	}
	if q.next(); !q.is(',') {
		return &args
	}
	q.next()
	if args.Round, ok = parseUint(q.src[q.start:q.end]); q.kind != tNumber || !ok {
		return nil
	}
	q.next()
	return &args
}

// valueFor looks at a NEXT or PREVIOUS that may begin NEXT VALUE FOR s, PREVIOUS VALUE
// FOR s, SELECT NEXT VALUE FROM s or SELECT NEXT n VALUES FROM s.
func (a *analyzer) valueFor() {
	c := FuncCall{Func: Nextval, Start: a.start, Count: 1, Spelling: AsValueFor}
	if a.kw == kwPrevious {
		c.Func, c.Count = Lastval, 0
	}
	q := a.peek()
	switch {
	case q.kw == kwValue:
		q.next()
		switch {
		case q.kw == kwFor:
		case q.kw == kwFrom && c.Func == Nextval && a.alone():
			c.Spelling = AsSelectValue
		default:
			return
		}
	case c.Func == Nextval && a.alone() && (q.kind == tNumber || q.is('?')):
		count := q
		if q.next(); q.kw != kwValues {
			return
		}
		if q.next(); q.kw != kwFrom && q.kw != kwFor {
			return
		}
		c.Spelling = AsSelectCount
		n, ok := parseUint(a.src[count.start:count.end])
		switch {
		case count.is('?'):
		case !ok || n == 0 || n > MaxCount:
			a.note("NEXT VALUES of no numbers, or of more than 1000000,")
			n = 1
		}
		c.Count = n
	default:
		return
	}
	if q.next(); q.kind == tString || q.kind == tWord && !sequenceWord(&q) || !a.named(&c, &q) {
		return
	}
	if c.Spelling >= AsSelectValue && q.kind != tEOF && !q.is(';') {
		return
	}
	a.finishCall(&c, q)
}

// finishCall adds a call that ends before q, and goes to its last token.
func (a *analyzer) finishCall(c *FuncCall, q lexer) {
	last := a.lexer
	for l := last; l.start < q.start && l.kind != tEOF; l.next() {
		last = l
	}
	c.End = last.end
	if c.Func == Nextval {
		a.number()
		if last.execs != a.execs {
			a.note("NEXTVAL across a comment's border")
		}
	} else if a.st.Words |= SequenceFunction; last.execs != a.execs {
		return
	}
	if c.Start >= a.muted {
		a.add(*c)
		a.st.Params += c.Markers()
	}
	a.moveTo(last)
}

// alone reports whether the current token is the first behind the SELECT of a statement
// that is one SELECT: with a name and nothing more behind, that is Vitess's.
func (a *analyzer) alone() bool {
	return a.depth == 0 && a.prev == kwSelect && a.st.Kind == Select && !a.ins.on && a.st.levels[0].query &&
		a.st.Words&UnionWord == 0 && !a.inExec
}

// sequenceWord reports whether an unquoted word behind FOR or FROM may be a sequence's
// name: SELECT next value FOR UPDATE and FOR SHARE read a column, FROM next value FOR
// SYSTEM_TIME a table.
func sequenceWord(l *lexer) bool {
	word := l.src[l.start:l.end]
	return !reservedWord(word) && !equalFold(word, "share") && !equalFold(word, "system\x7ftime") // as fold makes it
}
