package statement

import (
	"slices"
	"strings"
)

// selectOptions may stand between SELECT and its items.
var selectOptions = []string{
	"all", "distinct", "distinctrow", "high_priority", "straight_join", "sql_small_result", "sql_big_result", "sql_buffer_result", "sql_no_cache", "sql_cache",
}

// items reads the items of a SELECT up to FROM. total says that they are totals.
func (r *metadataReader) items() (total, ok bool) {
	for r.kind == tWord && slices.Contains(selectOptions, strings.ToLower(string(r.src[r.start:r.end]))) {
		r.m.Rest = true
		r.step()
	}
	totals := 0
	for {
		var tokens []lexer
		for depth := 0; ; r.step() {
			if r.kind == tEOF || r.kw == kwInto || r.is(';') || depth == 0 && (r.is(',') || r.kw == kwFrom) {
				break
			}
			switch {
			case r.is('('):
				depth++
			case r.is(')'):
				depth--
			}
			tokens = append(tokens, r.lexer)
		}
		item, isTotal, ok := r.itemOf(tokens)
		if !ok {
			return false, false
		}
		if isTotal {
			totals++
		}
		if r.m.Items = append(r.m.Items, item); len(r.m.Items) > maxItems {
			return false, false
		}
		if !r.is(',') {
			break
		}
		r.step()
	}
	return totals > 0, totals == 0 || totals == len(r.m.Items)
}

// itemOf makes an item of its tokens.
func (r *metadataReader) itemOf(tokens []lexer) (item MetadataItem, total, ok bool) {
	at := r.lexer
	defer func() { r.lexer = at }()
	text := func(l lexer) string {
		r.lexer = l
		return r.text()
	}
	n := len(tokens)
	if n == 0 || tokens[n-1].kw == kwAs {
		return item, false, false
	}
	if n > 1 {
		last, before := tokens[n-1], tokens[n-2]
		r.lexer = last
		switch {
		case before.kw == kwAs && n > 2 && (r.named() || r.string()):
			item.Name, tokens = r.text(), tokens[:n-2]
		case (last.kind == tWord && !reservedWord(last.src[last.start:last.end]) || last.kind == tQuoted || r.string()) && endsValue(before):
			if last.kind == tString && before.kind == tString {
				return item, false, false // one string in pieces
			}
			item.Name, tokens = r.text(), tokens[:n-1]
		}
	}
	if column, table, is := columnOf(tokens); is {
		if table >= 0 {
			item.Table = text(tokens[table])
		}
		if item.All = tokens[column].is('*'); item.All {
			return item, false, item.Name == ""
		}
		item.Column = text(tokens[column])
		if item.Name == "" {
			item.Name = item.Column
		}
		return item, false, true
	}
	if item.Name == "" {
		first, last := tokens[0], tokens[len(tokens)-1]
		if r.lexer = first; len(tokens) == 1 && r.string() {
			item.Name = r.text()
		} else {
			item.Name = string(r.st.columnName(r.src[first.start:last.end]))
		}
	}
	total, whole := totalIn(tokens)
	item.Count = total && tokens[0].kw == kwCount
	item.Rows = item.Count && len(tokens) == 4 && (tokens[2].is('*') || tokens[2].kind == tNumber && tokens[2].src[tokens[2].start] != '\\')
	return item, total, !total || whole
}

// endsValue says whether what follows a token may be the alias of what it ends.
func endsValue(l lexer) bool {
	switch l.kind {
	case tQuoted, tString, tNumber:
		return true
	case tWord:
		return l.kw == kwNull || l.kw == kwTrue || l.kw == kwFalse || !reservedWord(l.src[l.start:l.end])
	}
	return l.is(')')
}

// columnOf says which of an item's tokens name the column and, from 0, its table (-1: none), if
// it is a column or an asterisk.
func columnOf(tokens []lexer) (column, table int, ok bool) {
	n := len(tokens)
	if n%2 == 0 || n > 5 {
		return 0, 0, false
	}
	for i := range tokens {
		l := &tokens[i]
		switch {
		case i%2 == 1:
			ok = l.is('.')
		case i == n-1 && l.is('*'):
			ok = true
		default:
			ok = l.kind == tQuoted || l.kind == tWord && (i > 0 || !reservedWord(l.src[l.start:l.end]))
		}
		if !ok {
			return 0, 0, false
		}
	}
	return n - 1, n - 3, true
}

// totals are functions of all rows at once. COUNT of none is 0, of the others NULL.
var totals = []string{
	"count", "sum", "min", "max", "avg", "group_concat", "any_value", "std", "stddev", "stddev_pop", "stddev_samp", "var_pop", "var_samp", "variance",
	"bit_and", "bit_or", "bit_xor", "json_arrayagg", "json_objectagg",
}

// isTotal says whether a call of such a function begins at token i.
func isTotal(tokens []lexer, i int) bool {
	l := &tokens[i]
	return l.kind == tWord && i+1 < len(tokens) && tokens[i+1].is('(') && slices.Contains(totals, strings.ToLower(string(l.src[l.start:l.end])))
}

// totalIn looks for such a call, outside of queries in parentheses; whole says that it is
// all there is, and not what is known only of rows (BIT_AND).
func totalIn(tokens []lexer) (total, whole bool) {
	depth, query, end := 0, 0, -1 // query is the depth in which one began; end where the first parentheses do
	for i := range tokens {
		switch l := &tokens[i]; {
		case l.is('('):
			depth++
		case l.is(')'):
			if depth == query {
				query = 0
			}
			if depth--; depth == 0 && end < 0 {
				end = i
			}
		case l.kw == kwSelect && query == 0:
			query = depth
		case query == 0 && isTotal(tokens, i):
			total = true
		}
	}
	first := &tokens[0]
	bits := strings.HasPrefix(strings.ToLower(string(first.src[first.start:first.end])), "bit_")
	return total, total && end == len(tokens)-1 && isTotal(tokens, 0) && !bits
}
