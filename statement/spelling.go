package statement

import "seqproxy/statement/lex"

// Other products' forms of NEXTVAL, LASTVAL and SETVAL, and what follows a name.

// columnNextval is the column name of Vitess's SELECT NEXT VALUE. Read-only.
var columnNextval = []byte("nextval")

// named reads a sequence's name, [schema .] name, at q and moves behind it. It sets the form and
// names of c.
func (a *analyzer) named(c *FuncCall, q *lex.Lexer) bool {
	name := *q
	switch {
	case q.Kind == lex.String && (a.Src[q.Start] == '\'' || a.Src[q.Start] == '"'):
		q.Next()
		c.Form, c.Name = FormName, a.st.arena.DecodeName(&name)
		return true
	case q.Kind != lex.Word && q.Kind != lex.Quoted:
		return false
	}
	if q.Next(); !q.Is('.') {
		c.Form, c.Name = FormName, a.st.arena.DecodeName(&name)
		return true
	}
	if q.Next(); q.Kind != lex.Word && q.Kind != lex.Quoted {
		return false
	}
	c.Form, c.Schema, c.Name = FormQualified, a.st.arena.DecodeName(&name), a.st.arena.DecodeName(q)
	q.Next()
	return true
}

// valueCall reads a LASTVAL or SETVAL; p is at its opening parenthesis. The server handles a call
// without a name, or with something else after the name.
func (a *analyzer) valueCall(kw lex.Keyword, p lex.Lexer) {
	if a.Start < a.muted || kw == lex.KwSetval && a.Start < a.setTo {
		// This part was searched before.
		return
	}
	c := FuncCall{Func: Lastval, Start: a.Start}
	q := p
	if q.Next(); q.Is('?') {
		c.Form = FormParam
		q.Next()
	} else if !a.named(&c, &q) {
		return
	}
	if kw == lex.KwSetval {
		c.Func, c.Set = Setval, setvalArgs(&q)
	}
	whole := q.Is(')')
	for depth := 1; !whole && kw == lex.KwSetval; q.Next() {
		switch {
		case q.Is('('):
			depth++
		case q.Is(')'):
			depth--
		}
		if depth == 0 || q.Kind == lex.EOF {
			c.Set = nil
			break
		}
	}
	if kw == lex.KwSetval {
		a.setTo = q.End
	}
	if !q.Is(')') || q.Execs != a.Execs {
		return
	}
	c.End = q.End
	a.add(c)
	if a.muted = c.End; whole {
		a.st.Params += c.Markers()
		a.moveTo(q)
	}
}

// setvalArgs reads what follows the name in a SETVAL: , n [, is_used [, round]]. It returns nil
// unless these are literals. MariaDB accepts nothing else, either.
func setvalArgs(q *lex.Lexer) *SetvalArgs {
	var args SetvalArgs
	if !q.Is(',') {
		return nil
	}
	q.Next()
	if args.Negative = q.Is('-'); args.Negative || q.Is('+') {
		q.Next()
	}
	var ok bool
	if args.Param = q.Is('?') && !args.Negative; !args.Param {
		if args.Value, ok = lex.ParseUint(q.Src[q.Start:q.End]); q.Kind != lex.Number || !ok {
			return nil
		}
	}
	if q.Next(); !q.Is(',') {
		return &args
	}
	q.Next()
	switch used, number := lex.ParseUint(q.Src[q.Start:q.End]); {
	case q.Kw == lex.KwTrue:
	case q.Kw == lex.KwFalse:
		args.Unused = true
	case q.Kind == lex.Number && number:
		args.Unused = used == 0
	default:
		return nil
	}
	if q.Next(); !q.Is(',') {
		return &args
	}
	q.Next()
	if args.Round, ok = lex.ParseUint(q.Src[q.Start:q.End]); q.Kind != lex.Number || !ok {
		return nil
	}
	q.Next()
	return &args
}

// valueFor handles NEXT or PREVIOUS, which may begin NEXT VALUE FOR s, PREVIOUS VALUE FOR s, SELECT
// NEXT VALUE FROM s or SELECT NEXT n VALUES FROM s.
func (a *analyzer) valueFor() {
	c := FuncCall{Func: Nextval, Start: a.Start, Count: 1, Spelling: AsValueFor}
	if a.Kw == lex.KwPrevious {
		c.Func, c.Count = Lastval, 0
	}
	q := a.peek()
	switch {
	case q.Kw == lex.KwValue:
		q.Next()
		switch {
		case q.Kw == lex.KwFor:
		case q.Kw == lex.KwFrom && c.Func == Nextval && a.alone():
			c.Spelling = AsSelectValue
		default:
			return
		}
	case c.Func == Nextval && a.alone() && (q.Kind == lex.Number || q.Is('?')):
		count := q
		if q.Next(); q.Kw != lex.KwValues {
			return
		}
		if q.Next(); q.Kw != lex.KwFrom && q.Kw != lex.KwFor {
			return
		}
		c.Spelling = AsSelectCount
		n, ok := lex.ParseUint(a.Src[count.Start:count.End])
		switch {
		case count.Is('?'):
		case !ok || n == 0 || n > MaxCount:
			a.note("NEXT VALUES of no numbers, or of more than 1000000,")
			n = 1
		}
		c.Count = n
	default:
		return
	}
	if q.Next(); q.Kind == lex.String || q.Kind == lex.Word && !sequenceWord(&q) || !a.named(&c, &q) {
		return
	}
	if c.Spelling >= AsSelectValue && q.Kind != lex.EOF && !q.Is(';') {
		return
	}
	a.finishCall(&c, q)
}

// finishCall adds a call that ends before q, and moves to its last token.
func (a *analyzer) finishCall(c *FuncCall, q lex.Lexer) {
	last := a.Lexer
	for l := last; l.Start < q.Start && l.Kind != lex.EOF; l.Next() {
		last = l
	}
	c.End = last.End
	if c.Func == Nextval {
		a.number()
		if last.Execs != a.Execs {
			a.note("NEXTVAL across a comment's border")
		}
	} else if a.st.Words |= SequenceFunction; last.Execs != a.Execs {
		return
	}
	if c.Start >= a.muted {
		a.add(*c)
		a.st.Params += c.Markers()
	}
	a.moveTo(last)
}

// alone reports whether the current token is the first after the SELECT of a statement that is a
// single SELECT. With a name and nothing else behind, that is Vitess's form.
func (a *analyzer) alone() bool {
	return a.depth == 0 && a.prev == lex.KwSelect && a.st.Kind == Select && !a.ins.on && a.st.levels[0].query &&
		a.st.Words&UnionWord == 0 && !a.InExec
}

// sequenceWord reports whether an unquoted word after FOR or FROM may be a sequence's name. SELECT
// next value FOR UPDATE and FOR SHARE read a column, and FROM next value FOR SYSTEM_TIME reads a
// table.
func sequenceWord(l *lex.Lexer) bool {
	word := l.Src[l.Start:l.End]
	return !lex.Reserved(word) && !lex.EqualFold(word, "share") && !lex.EqualFold(word, "system_time")
}
