package proxy

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"seqproxy/protocol"
	"seqproxy/statement"
)

// totalsOf is the row of a SELECT of totals of n rows. ok is false if that is not known: of any but none only their number is.
func totalsOf(items []statement.MetadataItem, n int) (row []any, ok bool) {
	for i := range items {
		switch {
		case items[i].Rows || n == 0 && items[i].Count:
			row = append(row, int64(n))
		case n == 0:
			row = append(row, nil)
		default:
			return nil, false
		}
	}
	return row, true
}

// arrange puts rows of the relation in the order of a SELECT, whose result has these columns; picked tells which of the relation's they are.
// It is false if that is not known.
func (r *relation) arrange(rows [][]any, order []statement.MetadataOrder, columns []protocol.Column, picked []int) bool {
	by := make([]int, 0, len(order))
	for i := range order {
		o, at := &order[i], order[i].Place-1
		if o.Column != "" && o.Table == "" {
			at = columnNamed(columns, o.Column)
		}
		switch {
		case at >= len(picked):
			return false
		case at >= 0:
			at = picked[at]
		case o.Table == "" || strings.EqualFold(o.Table, r.alias):
			at = columnNamed(r.columns, o.Column)
		}
		if at < 0 {
			return false
		}
		by = append(by, at)
	}
	slices.SortStableFunc(rows, func(a, b []any) int {
		for i, at := range by {
			if c := compareValues(a[at], b[at]); c != 0 {
				if order[i].Descending {
					return -c
				}
				return c
			}
		}
		return 0
	})
	return true
}

// compareValues is the order of two values of one column, with NULL as the least. Letter case does not count, as in the collation that is told of.
func compareValues(a, b any) int {
	if a == nil || b == nil {
		switch {
		case a != nil:
			return 1
		case b != nil:
			return -1
		}
		return 0
	}
	if a, ok := a.(int64); ok {
		if b, ok := b.(int64); ok {
			return cmp.Compare(a, b)
		}
	}
	return strings.Compare(strings.ToLower(fmt.Sprint(a)), strings.ToLower(fmt.Sprint(b)))
}
