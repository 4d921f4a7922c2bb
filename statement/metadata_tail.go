package statement

import "strings"

// MetadataOrder is a part of ORDER BY.
type MetadataOrder struct {
	Column     string // of the result or else of the table; "" for one that Place tells
	Table      string // the name before the dot, if there is one: then Column is of the table
	Place      int    // in the result, from 1
	Descending bool
}

// MetadataLimit is what LIMIT says.
type MetadataLimit struct{ from, most constant }

// Bounds tells which of n rows are left: those from from on, up to, but without, to. param is the text of a parameter, as for
// [Condition.Holds]; one that is NULL leaves none. ok is false for what is no number. A nil MetadataLimit leaves all.
func (l *MetadataLimit) Bounds(n int, param func(i int) (string, bool)) (from, to int, ok bool) {
	if l == nil {
		return 0, n, true
	}
	number := func(c constant) (uint64, bool) {
		text, known := c.text, true
		if c.param > 0 {
			text, known = param(c.param - 1)
		}
		if !known || text == "" {
			return 0, true
		}
		return parseUint([]byte(text))
	}
	skip, ok := number(l.from)
	most, isNumber := number(l.most)
	if !ok || !isNumber {
		return 0, 0, false
	}
	from = int(min(skip, uint64(n)))
	return from, from + int(min(most, uint64(n-from))), true
}

// maxOrder is by how many columns rows are put in order at most.
const maxOrder = 64

// tail reads ORDER BY columns, and LIMIT, where nothing else follows. If it is false nothing was read.
func (r *metadataReader) tail() bool {
	t := *r
	if t.kw == kwOrder && !t.order() || t.kw == kwLimit && !t.limit() || t.kind != tEOF && !t.is(';') {
		return false
	}
	*r = t
	return true
}

func (r *metadataReader) order() bool {
	if r.step(); r.kw != kwBy {
		return false
	}
	for {
		var o MetadataOrder
		switch r.step(); {
		case r.kind == tNumber:
			place, ok := parseUint(r.src[r.start:r.end])
			if !ok || place == 0 || place > maxItems {
				return false
			}
			o.Place = int(place)
			r.step()
		case !r.named() || r.kind == tWord && reservedWord(r.src[r.start:r.end]):
			return false
		default:
			for o.Column = r.text(); ; o.Table, o.Column = o.Column, r.text() { // [[schema.]table.]column
				if r.step(); !r.is('.') {
					break
				}
				if r.step(); !r.named() {
					return false
				}
			}
		}
		if o.Descending = r.kw == kwDesc; o.Descending || r.word("asc") {
			r.step()
		}
		if r.m.Order = append(r.m.Order, o); len(r.m.Order) > maxOrder {
			return false
		}
		if !r.is(',') {
			return true
		}
	}
}

func (r *metadataReader) limit() bool {
	var l MetadataLimit
	number := func() (c constant, ok bool) {
		switch r.step(); {
		case r.is('?'):
			c.param = r.m.Params + 1
		case r.kind == tNumber:
			if c.text = string(r.src[r.start:r.end]); strings.Trim(c.text, "0123456789") != "" {
				return c, false
			}
		default:
			return c, false
		}
		r.step()
		return c, true
	}
	var ok bool
	if l.most, ok = number(); !ok {
		return false
	}
	switch {
	case r.is(','):
		l.from = l.most
		l.most, ok = number()
	case r.word("offset"):
		l.from, ok = number()
	}
	r.m.Limit = &l
	return ok
}
