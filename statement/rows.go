package statement

import (
	"bytes"
	"slices"

	"seqproxy/statement/lex"
)

// RowColumn is a column of a result with a different number in each row.
type RowColumn struct {
	// Call is the index of the NEXTVAL in Statement.Calls.
	Call int
	// Column is the column's index. -1 is the last column and -2 the one before it, since only the
	// server knows how many columns a * stands for.
	Column int
}

// RowColumns finds, in order, the columns that are NEXTVALs of a SELECT ... FROM, or of the
// RETURNING of a statement that may write several rows. sql is the text that st was analysed from.
// refusal is set, in the words of Statement.Refusal, if a number is not a column by itself, or if
// the server would not only send the numbers. It allocates, and is only for statements with such
// calls.
func (st *Statement) RowColumns(sql []byte) (columns []RowColumn, refusal string) {
	r := rowReader{Lexer: lex.Lexer{Src: sql, Mode: st.mode}, st: st, firstStar: -1, lastStar: -1}
	switch st.Kind {
	case Select, With:
	case Insert, Replace, Delete:
		r.returning = true
	case Update:
		return nil, "NEXTVAL in UPDATE ... RETURNING, whose rows get no numbers,"
	default:
		return nil, "NEXTVAL in a multi-statement with SELECT ... FROM or RETURNING, where one result would get no numbers,"
	}
	for r.refusal == "" {
		prev := r.Lexer
		if r.Next(); r.Kind == lex.EOF {
			break
		}
		r.token(&prev)
	}
	if r.refusal == "" && (r.Bad || len(r.columns) == 0 || r.calls != len(st.Calls)) {
		r.refusal = "NEXTVAL in SELECT ... FROM"
	}
	if r.refusal == "" {
		r.place()
	}
	return r.columns, r.refusal
}

// rowReader reads the outermost SELECT of a text.
type rowReader struct {
	lex.Lexer
	st *Statement

	part      rowPart
	returning bool // the list is RETURNING's
	depth     int
	calls     int // index into st.Calls
	columns   []RowColumn
	names     itemNames // of columns, unless RETURNING's
	refusal   string

	item                int // index in the list
	empty               bool
	firstStar, lastStar int // indexes of items
	ordinals            []uint64
}

type rowPart uint8

const (
	beforeList rowPart = iota
	inSelectList
	inClauses
	inReferences // GROUP BY, HAVING or ORDER BY, which may refer to items
)

// token handles the current token. prev is the one before.
func (r *rowReader) token(prev *lex.Lexer) {
	if r.calls < len(r.st.Calls) && r.Start == r.st.Calls[r.calls].Start {
		r.call()
		return
	}
	switch {
	case r.Is('('):
		if r.part == beforeList && prev.Kind == lex.EOF && !r.returning {
			r.refusal = "NEXTVAL in (SELECT ... FROM)"
		}
		r.depth++
		r.empty = false
		return
	case r.Is(')'):
		r.depth--
		return
	}
	if r.depth == 0 {
		r.outermost(prev)
	}
	if r.part == inReferences && (r.Kind == lex.Word || r.Kind == lex.Quoted) && !r.AfterDot {
		if r.names.mayBe(r.st.arena.Decode(&r.Lexer)) {
			r.refusal = errReferred
		}
	}
}

// call handles the next call and moves past it.
func (r *rowReader) call() {
	c := &r.st.Calls[r.calls]
	switch {
	case c.Func != Nextval, r.returning && r.part == beforeList && c.Place == PlaceOnce:
	case r.returning:
		if r.depth > 0 || r.part != inSelectList || c.Item < 0 || r.st.Items[c.Item].Func != Nextval {
			r.refusal = "NEXTVAL in a part of RETURNING of several rows that is no item of its own, which only the server can work out,"
		}
		r.columns = append(r.columns, RowColumn{Call: r.calls, Column: r.item})
	default:
		switch {
		case r.depth > 0:
			r.refusal = "NEXTVAL in a part of SELECT ... FROM that the server may evaluate several times,"
		case r.part != inSelectList:
			r.refusal = "NEXTVAL outside the list of SELECT ... FROM, where the server may evaluate it several times,"
		case c.Item < 0 || r.st.Items[c.Item].Func != Nextval:
			r.refusal = "NEXTVAL in an expression of SELECT ... FROM, which only the server can work out,"
		}
		r.columns = append(r.columns, RowColumn{Call: r.calls, Column: r.item})
		if r.refusal == "" {
			r.names.add(r.st.ColumnName(r.Src, r.st.Items[c.Item]))
		}
	}
	r.calls++
	r.empty = false
	r.Pos, r.End = c.End, c.End
	r.Kind, r.Ch, r.Kw = lex.Punct, ')', lex.KwNone
}

// outermost handles a token outside of all parentheses.
func (r *rowReader) outermost(prev *lex.Lexer) {
	if r.returning {
		switch {
		case r.part == inSelectList:
			r.inList(prev)
		case r.Kw == lex.KwReturning:
			r.part, r.empty = inSelectList, true
		}
		return
	}
	switch r.Kw {
	case lex.KwSelect:
		if r.part == beforeList {
			r.part, r.empty = inSelectList, true
			return
		}
	case lex.KwUnion, lex.KwExcept, lex.KwIntersect:
		r.refusal = "NEXTVAL in UNION, which compares rows before they have numbers,"
	case lex.KwInto:
		r.refusal = "NEXTVAL in SELECT ... FROM ... INTO, whose rows do not come to the proxy,"
	case lex.KwProcedure:
		r.refusal = "NEXTVAL in SELECT ... FROM ... PROCEDURE, whose rows are others,"
	case lex.KwDistinct, lex.KwDistinctRow:
		if r.part == inSelectList && r.empty && r.item == 0 {
			r.refusal = "NEXTVAL in SELECT DISTINCT, which compares rows before they have numbers,"
		}
	}
	switch r.part {
	case inSelectList:
		r.inList(prev)
	case inClauses, inReferences:
		r.inClause(prev)
	}
}

// clause reports whether the token begins a clause, and keeps which.
func (r *rowReader) clause() bool {
	switch r.Kw {
	case lex.KwFrom, lex.KwWhere, lex.KwLimit, lex.KwLock, lex.KwFetch, lex.KwFor:
		r.part = inClauses
	case lex.KwGroup, lex.KwHaving, lex.KwOrder:
		if r.part = inReferences; len(r.columns) > maxReferred {
			r.refusal = errManyReferred
		}
	default:
		return false
	}
	return true
}

func (r *rowReader) inList(prev *lex.Lexer) {
	if r.clause() {
		return
	}
	switch {
	case r.Is(','):
		r.item++
		r.empty = true
		return
	case r.Kind == lex.Word && selectOption(r.Kw) && r.empty && r.item == 0:
		return
	case r.Is('*') && (r.empty || prev.Is('.')):
		if r.firstStar < 0 {
			r.firstStar = r.item
		}
		r.lastStar = r.item
	}
	r.empty = false
}

func (r *rowReader) inClause(prev *lex.Lexer) {
	if r.clause() || r.part != inReferences || prev.Kw != lex.KwBy && !prev.Is(',') {
		return
	}
	switch {
	case r.Kind == lex.Number:
		n, ok := lex.ParseUint(r.Src[r.Start:r.End])
		if ok {
			r.ordinals = append(r.ordinals, n)
		}
	case r.Is('?'):
		r.refusal = "NEXTVAL in SELECT ... FROM with ORDER BY ? or GROUP BY ?, which may mean its column,"
	}
}

// Refusals of numbers by which the server would sort or group.
const (
	errReferred     = "NEXTVAL in an item that ORDER BY, GROUP BY or HAVING refers to, which look at rows before they have numbers,"
	errManyReferred = "NEXTVAL in more than 64 items of a SELECT with ORDER BY, GROUP BY or HAVING"
)

// maxReferred bounds the items that every word and number of an ORDER BY is compared with.
const maxReferred = 64

// itemNames are the names of items with a NEXTVAL.
type itemNames struct {
	names   [][]byte
	foreign bool // one has characters beyond ASCII
}

func (n *itemNames) add(name []byte) {
	n.names = append(n.names, name)
	n.foreign = n.foreign || !lex.ASCII(name)
}

// mayBe reports whether a name may refer to an item. Any may refer to one with characters beyond
// ASCII.
func (n *itemNames) mayBe(name []byte) bool {
	return n.foreign || slices.ContainsFunc(n.names, func(item []byte) bool { return bytes.EqualFold(item, name) })
}

// place turns indexes of items into indexes of columns.
func (r *rowReader) place() {
	for i := range r.columns {
		c := &r.columns[i]
		for _, n := range r.ordinals {
			if n == uint64(c.Column)+1 || r.firstStar >= 0 && r.firstStar < c.Column && n > uint64(r.firstStar) {
				r.refusal = errReferred
			}
		}
		switch {
		case r.firstStar < 0 || c.Column < r.firstStar:
		case c.Column > r.lastStar:
			c.Column -= r.item + 1
		default:
			r.refusal = "NEXTVAL between two * in SELECT ... FROM, whose columns cannot be counted,"
		}
	}
}
