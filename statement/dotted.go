package statement

import (
	"seqproxy/statement/idiom"
	"seqproxy/statement/lex"
)

// dottedCall handles a seven-letter word after a dot: NEXTVAL or CURRVAL of a sequence, where there
// can be no column.
func (a *analyzer) dottedCall() {
	word := a.Src[a.Start:a.End]
	if !a.calls || !lex.EqualFold(word, "nextval") && !lex.EqualFold(word, "currval") || a.Start < a.muted || !a.expressionHere() {
		return
	}
	if a.dotted == nil {
		a.dotted = idiom.FindDotted(a.Src, a.Mode, &a.st.arena)
	}
	t := a.dotted.At(a.End)
	if t == nil || t.Execs != a.Execs {
		return
	}
	c := FuncCall{Func: Nextval, Form: FormName, Spelling: AsColumn, Start: t.Start, End: t.End, Schema: t.Schema, Name: t.Name, Count: 1}
	if lex.EqualFold(word, "currval") {
		c.Func, c.Count = Lastval, 0
		a.st.Words |= SequenceFunction
	} else {
		a.number()
	}
	if t.Schema != nil {
		c.Form = FormQualified
	}
	a.add(c)
}

// expressionHere reports whether the current token is part of an expression, and not of a list of
// tables or columns.
func (a *analyzer) expressionHere() bool {
	switch a.st.Kind {
	case Select, With, Values, Set, Do, Call:
	case Insert, Replace:
		if a.ins.source == InsertUnknown {
			return false
		}
	case Update, Delete:
		if a.targets {
			return false
		}
	default:
		return false
	}
	for i := a.depth; i >= 0; i-- {
		lv := &a.st.levels[i]
		if lv.inFrom {
			return false
		}
		if lv.query {
			break
		}
	}
	return true
}
