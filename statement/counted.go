package statement

import (
	"slices"

	"seqproxy/statement/lex"
)

// CountedText is what Counted finds in the text of a statement.
type CountedText struct {
	// Limit is the LIMIT of its rows, or 0.
	Limit uint64
	// Numbers bounds how many numbers it takes if its rows are those of VALUES; otherwise 0.
	Numbers uint64
	// Updates: the text has ON DUPLICATE KEY UPDATE.
	Updates bool
	// Routines: the text may call stored functions.
	Routines bool
}

// Counted reads an INSERT ... SELECT, REPLACE ... SELECT or UPDATE again, to let the server count
// its NEXTVALs once per row (AsCounted). sql is the text that st was analysed from. A missing
// number must make the whole statement fail, and the statement must then be repeatable. If that is
// not certain, refusal says so in the words of Statement.Refusal.
func (st *Statement) Counted(sql []byte) (text CountedText, refusal string) {
	if refusal = st.mayNotCount(); refusal != "" {
		return text, refusal
	}
	update := st.Kind == Update
	r := countReader{Lexer: lex.Lexer{Src: sql, Mode: st.mode}, st: st, update: update, writes: !update, inRows: update}
	for r.refusal == "" {
		prev := r.Lexer
		if r.Next(); r.Kind == lex.EOF {
			break
		}
		r.token(&prev)
	}
	if r.rows > 0 {
		r.text.Numbers += r.rows * r.each
	}
	if r.refusal == "" && (r.Bad || r.calls != len(st.Calls)) {
		r.refusal = "NEXTVAL for each row"
	}
	return r.text, r.refusal
}

// mayNotCount refuses a statement for what is known of it without another look at its text.
func (st *Statement) mayNotCount() (refusal string) {
	switch {
	case st.Kind == Multi:
		return "NEXTVAL for each row of INSERT ... SELECT or UPDATE in a multi-statement, which cannot be repeated with more numbers,"
	case st.Kind == Delete:
		return "NEXTVAL in DELETE, where each examined row would get another number,"
	case st.Kind == Update && st.Table() == nil:
		return "NEXTVAL in UPDATE of several tables, some of which may keep changes if it fails,"
	case st.Kind != Insert && st.Kind != Replace && st.Kind != Update || st.Table() == nil:
		return "NEXTVAL for each row of a statement whose table is not its first word"
	case st.Words&SetsUserVariable != 0:
		return "NEXTVAL for each row beside @variable :=, which would be set again where it is repeated with more numbers,"
	case st.Words&UserLock != 0:
		return "NEXTVAL for each row beside GET_LOCK() and its like, which would be done again where it is repeated with more numbers,"
	case st.Words&SetsLastInsertID != 0:
		return "NEXTVAL for each row beside LAST_INSERT_ID(expression), by which the server counts the numbers,"
	case st.Words&ReadsCounts != 0:
		return "NEXTVAL for each row beside ROW_COUNT(), FOUND_ROWS() or counts of warnings, which taking the numbers changes,"
	}
	return ""
}

// countReader reads a statement whose numbers the server is to count.
type countReader struct {
	lex.Lexer
	st      *Statement
	text    CountedText
	refusal string

	update bool // the statement is an UPDATE
	around int  // open parentheses around the query of the rows
	depth  int  // other open parentheses
	calls  int  // index into st.Calls
	folded int  // depth of the function call whose arguments a server may evaluate only once; 0: none
	writes bool // the expressions are those of the rows that are written
	inRows bool // after the table and its columns

	values bool   // within VALUES
	rows   uint64 // its tuples
	each   uint64 // NEXTVALs of ON DUPLICATE KEY UPDATE

	inList bool      // in a select list
	item   uint64    // its current one, from 1 on
	counts bool      // it has a NEXTVAL
	star   bool      // an item before it, or it, stands for several columns
	names  itemNames // aliases of items with a NEXTVAL
	places []uint64  // positions of items with a NEXTVAL; 0: any
	refers bool      // in GROUP BY, HAVING or ORDER BY, which may refer to items

	limited bool // a LIMIT is not that of all rows
}

// token handles the current token. prev is the one before.
func (r *countReader) token(prev *lex.Lexer) {
	switch {
	case r.refers && (r.refersByName() || r.depth == 0 && r.refersByPlace(prev)):
		r.refusal = errReferred
		return
	case r.refers && r.depth == 0 && r.Kind == lex.Word && severalGroupings(&r.Lexer):
		// MariaDB repeats values with it.
		r.refusal = "NEXTVAL in INSERT ... SELECT ... WITH ROLLUP, which repeats values,"
		return
	case r.calls < len(r.st.Calls) && r.Start == r.st.Calls[r.calls].Start:
		r.call()
		return
	case r.inList && r.depth == 0 && (r.Is(',') || r.Is(')') || listEnds(&r.Lexer)):
		r.endItem(prev)
	case r.inList && r.depth == 0 && r.Is('*'):
		r.star = r.star || prev.Kw == lex.KwSelect || selectOption(prev.Kw) || prev.Is(',') || prev.Is('.')
	}
	switch {
	case r.Is('(') && r.opensQuery(prev):
		r.around++
	case r.Is(')') && r.depth == 0 && r.around > 0:
		r.around--
		r.limited, r.text.Limit = true, 0
	case r.Is('('):
		r.open(prev)
	case r.Is(')'):
		if r.depth == r.folded {
			r.folded = 0
		}
		r.depth--
	case r.Kw == lex.KwIgnore && !indexFollows(r.Lexer):
		r.refusal = "NEXTVAL for each row with IGNORE, which would keep rows without a number,"
	case r.Kw == lex.KwReturning && r.depth <= 0:
		r.refusal = "NEXTVAL for each row with RETURNING, which may send rows before the numbers run out,"
	case r.depth <= 0: // there may be too many closing ones
		r.outermost()
	}
}

// call handles the next call and moves past it.
func (r *countReader) call() {
	c := &r.st.Calls[r.calls]
	if c.Func == Nextval {
		switch {
		case !r.writes:
			r.refusal = "NEXTVAL in WHERE, ORDER BY or LIMIT of UPDATE, where it would be another number for each row that is looked at,"
			return
		case r.text.Updates:
			r.each++
		case r.values:
			r.text.Numbers++
		}
		if r.folded > 0 {
			r.refusal = "NEXTVAL for each row in arguments of functions other than IF, IFNULL, COALESCE, CONCAT, CAST and their like, which may be evaluated once for all rows,"
			return
		}
		r.counts = r.counts || r.inList
	}
	r.Pos, r.Kind, r.Kw = c.End, lex.Punct, lex.KwNone
	r.Ch = ')'
	r.calls++
}

// endItem ends an item of the select list, or the list. prev is the last token of the item.
func (r *countReader) endItem(prev *lex.Lexer) {
	if r.counts {
		if prev.Kind == lex.Word || prev.Kind == lex.Quoted { // possibly an alias
			r.names.add(r.st.arena.Decode(prev))
		}
		place := r.item
		if r.star {
			place = 0
		}
		r.places = append(r.places, place)
	}
	r.inList, r.counts = r.Is(','), false
	r.item++
}

// opensQuery reports whether an opening parenthesis is one around the query of the rows. prev is
// the token before. That of a WITH stands behind AS.
func (r *countReader) opensQuery(prev *lex.Lexer) bool {
	if r.inRows || r.depth > 0 || prev.Kw == lex.KwAs {
		return false
	}
	l := r.Lexer
	l.Next()
	return l.Kw == lex.KwSelect || l.Kw == lex.KwWith || l.Is('(')
}

// open handles an opening parenthesis. prev is the token before.
func (r *countReader) open(prev *lex.Lexer) {
	r.text.Routines = r.text.Routines || r.inRows && mayCallRoutine(&r.Lexer, prev)
	tuple := r.values && r.depth == 0
	if tuple {
		r.rows++
	}
	r.depth++
	if !tuple && r.folded == 0 && (prev.Kind == lex.Word || prev.Kind == lex.Quoted) && !looksEachTime(prev) {
		r.folded = r.depth
	}
}

// outermost handles a word outside of parentheses. Within them the servers take the counting
// expression for a constant.
func (r *countReader) outermost() {
	switch r.Kw {
	case lex.KwDistinct, lex.KwDistinctRow:
		r.refusal = "NEXTVAL in INSERT ... SELECT DISTINCT, where servers take it for a constant,"
	case lex.KwSQLBufferResult:
		// It would be evaluated for rows that are not stored.
		r.refusal = "NEXTVAL in INSERT ... SELECT SQL_BUFFER_RESULT, where it is evaluated for rows that go nowhere,"
	case lex.KwGroup, lex.KwHaving, lex.KwOrder:
		if r.refers = !r.update; r.refers && len(r.places) > maxReferred {
			r.refusal = errManyReferred
		}
		r.writes = r.writes && !r.update
	case lex.KwSelect:
		r.refers, r.inList, r.inRows = false, true, true
		r.item, r.star = 1, false
	case lex.KwOn:
		r.refers = false
		if p := r.Lexer; !r.text.Updates {
			p.Next()
			r.text.Updates = p.Kw == lex.KwDuplicate
			r.values = r.values && !r.text.Updates
		}
	case lex.KwValues, lex.KwValue:
		if !r.update && !r.inRows {
			r.values, r.inRows = true, true
		}
	case lex.KwSet:
		r.writes, r.inRows = r.writes || r.update, true
	case lex.KwWhere:
		r.writes = r.writes && !r.update
	case lex.KwUnion, lex.KwExcept, lex.KwIntersect:
		r.limited, r.text.Limit = true, 0
	case lex.KwLimit:
		r.refers, r.writes = false, r.writes && !r.update
		if !r.limited {
			r.limit()
		}
	}
}

// limit reads what follows LIMIT.
func (r *countReader) limit() {
	p := r.Lexer
	p.Next()
	n, ok := lex.ParseUint(p.Src[p.Start:p.End])
	if p.Kind == lex.Number && ok {
		r.text.Limit = n
	}
	if p.Next(); p.Is(',') || p.Kw != lex.KwNone { // an offset, or ROWS EXAMINED
		r.text.Limit = 0
	}
}

// listEnds reports whether a word ends a select list.
func listEnds(l *lex.Lexer) bool {
	switch l.Kw {
	case lex.KwReturning: // for MySQL it is a plain name
		return !l.Mode.Server.IsMySQL()
	case lex.KwFrom, lex.KwWhere, lex.KwGroup, lex.KwHaving, lex.KwOrder, lex.KwLimit, lex.KwUnion, lex.KwExcept, lex.KwIntersect, lex.KwInto, lex.KwOn, lex.KwFor, lex.KwLock, lex.KwProcedure:
		return true
	}
	return false
}

// refersByPlace reports whether the current token of a GROUP BY or ORDER BY may be the position of
// an item with a NEXTVAL. prev is the token before.
func (r *countReader) refersByPlace(prev *lex.Lexer) bool {
	if r.Kind != lex.Number && !r.Is('?') || prev.Kw != lex.KwBy && !prev.Is(',') {
		return false
	}
	n, ok := lex.ParseUint(r.Src[r.Start:r.End])
	return !ok || slices.ContainsFunc(r.places, func(place uint64) bool { return place == 0 || place == n })
}

// refersByName reports whether the current token of a GROUP BY, HAVING or ORDER BY may refer to an
// item with a NEXTVAL by its name.
func (r *countReader) refersByName() bool {
	return (r.Kind == lex.Word || r.Kind == lex.Quoted) && !r.AfterDot && r.names.mayBe(r.st.arena.Decode(&r.Lexer))
}

// severalGroupings reports whether a word after GROUP BY adds super-aggregate rows.
func severalGroupings(l *lex.Lexer) bool {
	return isAnyOf(l.Src[l.Start:l.End], "rollup", "cube", "grouping")
}

// indexFollows reports whether l begins an index hint, such as IGNORE INDEX (i).
func indexFollows(l lex.Lexer) bool {
	l.Next()
	return l.Spells("index") || l.Spells("key")
}
