package statement

import "strings"

// Condition is one of WHERE that compares columns with constants.
type Condition struct {
	op     conditionOp
	parts  []Condition // of and, or and not
	column string      // in small letters
	values []constant
}

type conditionOp uint8

const (
	conditionAnd conditionOp = iota
	conditionOr
	conditionNot
	conditionEqual // to one of the values
	conditionLike
)

// constant is a literal, or a parameter.
type constant struct {
	text  string
	param int // from 1; 0: none
}

// truth is what a condition is of a row; the order is that of AND, which is the least of
// its parts.
type truth uint8

const (
	isFalse truth = iota
	isNull        // a comparison with NULL
	isTrue
)

// Holds says whether the condition is true of a row. value gives that of a column, whose
// name is in small letters, and is false for NULL; param is the text of a parameter, counted
// from 0, and false for NULL. Letter case does not count.
func (c *Condition) Holds(value func(column string) (string, bool), param func(i int) (string, bool)) bool {
	return c.of(value, param) == isTrue
}

func (c *Condition) of(value func(string) (string, bool), param func(int) (string, bool)) truth {
	switch c.op {
	case conditionAnd:
		all := isTrue
		for i := range c.parts {
			all = min(all, c.parts[i].of(value, param))
		}
		return all
	case conditionOr:
		any := isFalse
		for i := range c.parts {
			any = max(any, c.parts[i].of(value, param))
		}
		return any
	case conditionNot:
		return isTrue - c.parts[0].of(value, param)
	}
	is, ok := value(c.column)
	if !ok {
		return isNull
	}
	found := isFalse
	for _, v := range c.values {
		text, ok := v.text, true
		if v.param > 0 {
			text, ok = param(v.param - 1)
		}
		switch {
		case !ok:
			found = max(found, isNull)
		case c.op == conditionEqual && strings.EqualFold(is, text), c.op == conditionLike && Like(text, is):
			found = isTrue
		}
	}
	return found
}

// Columns calls f with the name of each column that is compared, in small letters.
func (c *Condition) Columns(f func(column string)) {
	for i := range c.parts {
		c.parts[i].Columns(f)
	}
	if c.column != "" {
		f(c.column)
	}
}

// conditionReader reads a condition from the current token on. It stops behind it, or
// where it does not understand it.
type conditionReader struct {
	metadataReader
	depth int
}

// maxCondition bounds how deep conditions stand in each other.
const maxCondition = 20

func (r *conditionReader) or() (Condition, bool) {
	return r.several(conditionOr, kwOr, func() (Condition, bool) {
		return r.several(conditionAnd, kwAnd, r.not)
	})
}

// several reads parts between which a word stands.
func (r *conditionReader) several(op conditionOp, between keyword, part func() (Condition, bool)) (Condition, bool) {
	c := Condition{op: op}
	for {
		p, ok := part()
		if !ok {
			return c, false
		}
		if c.parts = append(c.parts, p); r.kw != between {
			break
		}
		r.step()
	}
	if len(c.parts) == 1 {
		return c.parts[0], true
	}
	return c, true
}

func (r *conditionReader) not() (c Condition, ok bool) {
	if r.depth++; r.depth > maxCondition {
		return c, false
	}
	defer func() { r.depth-- }()
	switch {
	case r.kw == kwNot:
		r.step()
		c, ok = r.not()
		return negated(c), ok
	case r.is('('):
		r.step()
		if c, ok = r.or(); !ok || !r.is(')') {
			return c, false
		}
		r.step()
		return c, true
	}
	return r.comparison()
}

func negated(c Condition) Condition { return Condition{op: conditionNot, parts: []Condition{c}} }

// comparison reads [name .] column, how it is compared, and with what.
func (r *conditionReader) comparison() (Condition, bool) {
	c := Condition{op: conditionEqual}
	if r.kind == tWord && reservedWord(r.src[r.start:r.end]) {
		return c, false
	}
	for {
		if !r.named() {
			return c, false
		}
		c.column = strings.ToLower(r.text())
		if r.step(); !r.is('.') {
			break
		}
		r.step()
	}
	not := r.kw == kwNot
	if not {
		r.step()
	}
	ok := false
	switch {
	case r.kw == kwLike:
		c.op = conditionLike
		r.step()
		ok = r.constant(&c)
	case r.kw == kwIn:
		if r.step(); !r.is('(') {
			return c, false
		}
		for {
			r.step()
			if ok = r.constant(&c); !ok || !r.is(',') {
				break
			}
		}
		ok = ok && r.is(')')
		r.step()
	case not:
	case r.is('='):
		r.step()
		ok = r.constant(&c)
	case r.is('!'), r.is('<'):
		not = true
		want := byte('=')
		if r.is('<') {
			want = '>'
		}
		if r.step(); r.is(want) {
			r.step()
			ok = r.constant(&c)
		}
	}
	if not {
		c = negated(c)
	}
	return c, ok
}

// constant reads one value.
func (r *conditionReader) constant(c *Condition) bool {
	switch {
	case r.is('?'):
		c.values = append(c.values, constant{param: r.m.Params + 1})
	case r.string():
		c.values = append(c.values, constant{text: r.text()})
	case r.kind == tNumber && r.src[r.start] != '\\':
		c.values = append(c.values, constant{text: string(r.src[r.start:r.end])})
	default:
		return false
	}
	r.step()
	return r.kind != tString // in pieces
}
