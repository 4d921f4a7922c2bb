package statement

import "slices"

// InsertSelect is the outermost SELECT of an INSERT ... SELECT, as far as that matters to
// the key of its rows.
type InsertSelect struct {
	// Refusal says why no item for a key can be added, or read; empty if it can.
	Refusal string
	// ListEnd is behind the last item of the select list.
	ListEnd int
	// From: the rows come from tables. FROM DUAL is none.
	From bool
	// Values: the query is VALUES in parentheses.
	Values bool

	items []selectItem
	outer [][2]int // parentheses around the whole query
}

const formOfSelect = "this form of SELECT"

// selectItem is an item of the select list.
type selectItem struct {
	value InsertValue // of a literal, else of whatever kind
	star  bool        // as many columns as a table has
}

// ReadSelect reads, behind Read, the query of an INSERT ... SELECT to its end.
func (in *Insertion) ReadSelect() InsertSelect {
	var q InsertSelect
	l := &in.l
	var open []int
	for ; l.is('('); in.next() {
		open = append(open, l.start)
	}
	for depth := 0; l.kw == kwWith || depth > 0 || l.kind != tEOF && l.kw != kwSelect; in.next() {
		switch {
		case l.kind == tEOF, l.is(';'), l.kw == kwTable && depth == 0, (l.kw == kwValues || l.kw == kwValue) && depth == 0:
			q.Refusal, q.Values = "another query than SELECT", l.kw == kwValues || l.kw == kwValue
			return q
		case l.is('('):
			depth++
		case l.is(')'):
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
	for depth := 0; l.kind != tEOF && (depth > 0 || !l.is(';')); in.next() {
		switch {
		case l.is('('):
			depth++
		case l.is(')'):
			if depth--; depth >= 0 {
				continue
			}
			depth++
			if len(open) == 0 || len(q.outer) > 0 && l.start < q.outer[len(q.outer)-1][1] {
				q.Refusal = formOfSelect
				return q
			}
			q.outer = append(q.outer, [2]int{open[len(open)-1], l.start})
			open = open[:len(open)-1]
		case l.kw == kwFrom && depth == 0:
			p := *l
			p.next()
			q.From = p.kw != kwDual
		case len(q.outer) > 0:
			q.Refusal = "a SELECT in parentheses with something behind them"
			return q
		case depth > 0:
		case l.kw == kwUnion, l.kw == kwExcept, l.kw == kwIntersect:
			q.Refusal = "UNION and its like"
			return q
		case l.kw == kwInto:
			q.Refusal = "INTO"
			return q
		}
	}
	if l.bad || l.seenCond || len(open) > 0 {
		q.Refusal = formOfSelect
	}
	return q
}

// selectList reads SELECT and its list, to the token behind.
func (in *Insertion) selectList(q *InsertSelect) bool {
	l := &in.l
	for in.next(); l.kind == tWord && selectOption(l.kw); {
		in.next()
	}
	for {
		start, params := l.start, in.params
		var before, last lexer // the last two tokens
		as := -1               // where AS stands
		star, depth, tokens := false, 0, 0
		for ; l.kind != tEOF && (depth > 0 || !l.is(',') && !l.is(';') && !l.is(')') && !listEnds(l)); in.next() {
			switch {
			case l.is('('):
				depth++
			case l.is(')'):
				depth--
			case depth == 0 && l.is('*') && (tokens == 0 || last.is('.')):
				star = true
			case depth == 0 && l.kw == kwAs && as < 0:
				as = l.start
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
			item.value = in.literal(start, last.end)
			if tokens > 1 && (item.value.Kind == ValueExpression || item.value.Kind == ValueOpaque) && (last.kind == tWord || last.kind == tQuoted) {
				item.value = in.literal(start, before.end) // an alias, perhaps
			}
		}
		item.value.Params = params
		q.items = append(q.items, item)
		q.ListEnd = last.end
		if !l.is(',') {
			return true
		}
		in.next()
	}
}

// literal says what src[start:end] is as a value.
func (in *Insertion) literal(start, end int) InsertValue {
	part := Insertion{l: lexer{src: in.l.src[:end], mode: in.l.mode, pos: start}}
	part.l.next()
	v, ok := part.value(false)
	if !ok || part.l.kind != tEOF {
		return InsertValue{Kind: ValueExpression, Start: start, End: end}
	}
	return v
}

// Listed reports whether the select list was read.
func (q *InsertSelect) Listed() bool { return q.ListEnd > 0 }

// KeyItem returns the item for the column with this index of n, or nil if only the
// server knows which it is.
func (q *InsertSelect) KeyItem(index, n int) *InsertValue {
	at := index
	if slices.ContainsFunc(q.items[:min(index+1, len(q.items))], isStar) {
		at = len(q.items) - (n - index)
		if at < 0 || slices.ContainsFunc(q.items[at:], isStar) {
			return nil
		}
	}
	if at >= len(q.items) {
		return nil // a mistake, or a star behind
	}
	return &q.items[at].value
}

func isStar(i selectItem) bool { return i.star }

// Spell returns sql with NEXTVAL(sequence) as the key of each row: in the place of item,
// which is one of its literals, or if that is nil as a further item, for which the column
// is added to those that are listed.
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
	return st.Splice(nil, sql, nil, splices)
}
