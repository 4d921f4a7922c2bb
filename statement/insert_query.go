package statement

import (
	"slices"

	"seqproxy/statement/lex"
)

// InsertSelect is the outermost SELECT of an INSERT ... SELECT, as far as the key of its rows needs
// it.
type InsertSelect struct {
	// Refusal says why an item for the key cannot be added or read. It is empty if it can.
	Refusal string
	// ListEnd is the end of the last item in the select list.
	ListEnd int
	// From: the rows come from tables. FROM DUAL does not count.
	From bool
	// Values: the query is a VALUES in parentheses.
	Values bool

	items []selectItem
	outer [][2]int // parentheses around the whole query
}

const formOfSelect = "this form of SELECT"

// selectItem is an item of the select list.
type selectItem struct {
	value InsertValue // a literal's kind and position; for others the position
	star  bool        // *, for all columns of a table
}

// ReadSelect reads the query of an INSERT ... SELECT to its end. Call it after Read.
func (in *Insertion) ReadSelect() InsertSelect {
	var q InsertSelect
	l := &in.l
	var open []int
	for ; l.Is('('); in.next() {
		open = append(open, l.Start)
	}
	for depth := 0; l.Kw == lex.KwWith || depth > 0 || l.Kind != lex.EOF && l.Kw != lex.KwSelect; in.next() {
		switch {
		case l.Kind == lex.EOF, l.Is(';'), l.Kw == lex.KwTable && depth == 0, (l.Kw == lex.KwValues || l.Kw == lex.KwValue) && depth == 0:
			q.Refusal, q.Values = "another query than SELECT", l.Kw == lex.KwValues || l.Kw == lex.KwValue
			return q
		case l.Is('('):
			depth++
		case l.Is(')'):
			if depth--; depth < 0 {
				q.Refusal = formOfSelect
				return q
			}
		}
	}
	if !in.selectList(&q) {
		q.Refusal = formOfSelect
		return q
	}
	for depth := 0; l.Kind != lex.EOF && (depth > 0 || !l.Is(';')); in.next() {
		switch {
		case l.Is('('):
			depth++
		case l.Is(')'):
			if depth--; depth >= 0 {
				continue
			}
			depth++
			if len(open) == 0 || len(q.outer) > 0 && l.Start < q.outer[len(q.outer)-1][1] {
				q.Refusal = formOfSelect
				return q
			}
			q.outer = append(q.outer, [2]int{open[len(open)-1], l.Start})
			open = open[:len(open)-1]
		case l.Kw == lex.KwFrom && depth == 0:
			p := *l
			p.Next()
			q.From = p.Kw != lex.KwDual
		case len(q.outer) > 0:
			q.Refusal = "a SELECT in parentheses with something behind them"
			return q
		case depth > 0:
		case l.Kw == lex.KwUnion, l.Kw == lex.KwExcept, l.Kw == lex.KwIntersect:
			q.Refusal = "UNION and its like"
			return q
		case l.Kw == lex.KwInto:
			q.Refusal = "INTO"
			return q
		}
	}
	if l.Bad || l.SeenCond || len(open) > 0 {
		q.Refusal = formOfSelect
	}
	return q
}

// selectList reads SELECT and its list, and moves behind it.
func (in *Insertion) selectList(q *InsertSelect) bool {
	l := &in.l
	for in.next(); l.Kind == lex.Word && selectOption(l.Kw); {
		in.next()
	}
	for {
		start, params := l.Start, in.params
		var before, last lex.Lexer // the last two tokens
		as := -1                   // position of AS
		star, depth, tokens := false, 0, 0
		for ; l.Kind != lex.EOF && (depth > 0 || !l.Is(',') && !l.Is(';') && !l.Is(')') && !listEnds(l)); in.next() {
			switch {
			case l.Is('('):
				depth++
			case l.Is(')'):
				depth--
			case depth == 0 && l.Is('*') && (tokens == 0 || last.Is('.')):
				star = true
			case depth == 0 && l.Kw == lex.KwAs && as < 0:
				as = l.Start
			}
			tokens++
			before, last = last, *l
		}
		if tokens == 0 {
			return false
		}
		item := selectItem{star: star}
		switch {
		case as > start:
			item.value = in.literal(start, as)
		default:
			item.value = in.literal(start, last.End)
			if tokens > 1 && (item.value.Kind == ValueExpression || item.value.Kind == ValueOpaque) && (last.Kind == lex.Word || last.Kind == lex.Quoted) {
				item.value = in.literal(start, before.End) // possibly an alias
			}
		}
		item.value.Params = params
		q.items = append(q.items, item)
		q.ListEnd = last.End
		if !l.Is(',') {
			return true
		}
		in.next()
	}
}

// literal classifies src[start:end] as a value.
func (in *Insertion) literal(start, end int) InsertValue {
	part := Insertion{l: lex.Lexer{Src: in.l.Src[:end], Mode: in.l.Mode, Pos: start}}
	part.l.Next()
	v, ok := part.value(false)
	if !ok || part.l.Kind != lex.EOF {
		return InsertValue{Kind: ValueExpression, Start: start, End: end}
	}
	return v
}

// Listed reports whether the query has a select list that could be read.
func (q *InsertSelect) Listed() bool { return q.ListEnd > 0 }

// KeyItem returns the item for the column at index of n, or nil if only the server knows which it
// is.
func (q *InsertSelect) KeyItem(index, n int) *InsertValue {
	at := index
	if slices.ContainsFunc(q.items[:min(index+1, len(q.items))], isStar) {
		at = len(q.items) - (n - index)
		if at < 0 || slices.ContainsFunc(q.items[at:], isStar) {
			return nil
		}
	}
	if at >= len(q.items) {
		return nil // an error, or a star behind it
	}
	return &q.items[at].value
}

func isStar(i selectItem) bool { return i.star }

// Spell returns sql with NEXTVAL(sequence) as the key of each row. It replaces item, a literal of
// the text. If item is nil, it adds an item, and the column to the list of columns.
func (in *Insertion) Spell(sql []byte, q *InsertSelect, item *InsertValue, k *Key, sequence []byte) []byte {
	call := append(in.appendName([]byte(" NEXTVAL("), sequence), ')') // SELECT'0' may be glued
	var splices []Splice
	if item == nil || len(in.Columns) == 0 {
		splices = in.AppendList(splices, k)
	}
	if item == nil {
		splices = append(splices, Splice{q.ListEnd, q.ListEnd, in.apart(append([]byte(","), call...), q.ListEnd)})
	} else {
		splices = append(splices, Splice{item.Start, item.End, in.apart(call, item.End)})
	}
	for _, p := range q.outer {
		splices = append(splices, Splice{p[0], p[0] + 1, []byte(" ")}, Splice{p[1], p[1] + 1, []byte(" ")})
	}
	slices.SortStableFunc(splices, func(a, b Splice) int { return a.Start - b.Start })
	var st Statement
	return st.Rewrite(nil, sql, nil, splices...)
}
