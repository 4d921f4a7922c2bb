package statement

import "seqproxy/statement/lex"

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
	switch {
	case st.Kind == Multi:
		return text, "NEXTVAL for each row of INSERT ... SELECT or UPDATE in a multi-statement, which cannot be repeated with more numbers,"
	case st.Kind == Delete:
		return text, "NEXTVAL in DELETE, where each examined row would get another number,"
	case st.Kind == Update && st.Table() == nil:
		return text, "NEXTVAL in UPDATE of several tables, some of which may keep changes if it fails,"
	case st.Kind != Insert && st.Kind != Replace && st.Kind != Update || st.Table() == nil:
		return text, "NEXTVAL for each row of a statement whose table is not its first word"
	case st.Words&SetsUserVariable != 0:
		return text, "NEXTVAL for each row beside @variable :=, which would be set again where it is repeated with more numbers,"
	case st.Words&UserLock != 0:
		return text, "NEXTVAL for each row beside GET_LOCK() and its like, which would be done again where it is repeated with more numbers,"
	case st.Words&SetsLastInsertID != 0:
		return text, "NEXTVAL for each row beside LAST_INSERT_ID(expression), by which the server counts the numbers,"
	case st.Words&ReadsCounts != 0:
		return text, "NEXTVAL for each row beside ROW_COUNT(), FOUND_ROWS() or counts of warnings, which taking the numbers changes,"
	}
	l := lex.Lexer{Src: sql, Mode: st.mode}
	depth, calls := 0, 0
	folded := 0 // depth of the function call whose arguments a server may evaluate only once
	inSet := st.Kind != Update
	limited, refers := false, false
	inRows := st.Kind == Update // after the table and its columns
	// number of tuples; numbers for each in ON DUPLICATE KEY UPDATE; within VALUES
	rows, each, values := uint64(0), uint64(0), false
	inList, counts := false, false // in a select list; the item has a NEXTVAL
	var names [][]byte             // aliases of such items
	for {
		prev := l
		if l.Next(); l.Kind == lex.EOF {
			break
		}
		if refers && st.refersToNumber(names, &l, &prev) {
			return text, errReferred
		}
		if refers && depth == 0 && l.Kind == lex.Word && severalGroupings(&l) {
			// MariaDB repeats values with it.
			return text, "NEXTVAL in INSERT ... SELECT ... WITH ROLLUP, which repeats values,"
		}
		if calls < len(st.Calls) && l.Start == st.Calls[calls].Start {
			c := &st.Calls[calls]
			if c.Func == Nextval && !inSet {
				return text, "NEXTVAL in WHERE, ORDER BY or LIMIT of UPDATE, where it would be another number for each row that is looked at,"
			}
			switch {
			case c.Func != Nextval:
			case text.Updates:
				each++
			case values:
				text.Numbers++
			}
			if c.Func == Nextval && folded > 0 {
				return text, "NEXTVAL for each row in arguments of functions other than IF, IFNULL, COALESCE, CONCAT, CAST and their like, which may be evaluated once for all rows,"
			}
			l.Pos, l.Kind, l.Kw = c.End, lex.Punct, lex.KwNone
			l.Ch = ')'
			calls++
			counts = inList && c.Func == Nextval || counts
			continue
		}
		if inList && depth == 0 && (l.Is(',') || listEnds(&l)) {
			if counts && (prev.Kind == lex.Word || prev.Kind == lex.Quoted) { // possibly an alias
				names = append(names, st.arena.Decode(&prev))
			}
			inList, counts = l.Is(','), false
		}
		switch {
		case l.Is('('):
			text.Routines = text.Routines || inRows && mayCallRoutine(&l, &prev)
			tuple := values && depth == 0
			if tuple {
				rows++
			}
			if depth++; !tuple && folded == 0 && (prev.Kind == lex.Word || prev.Kind == lex.Quoted) && !looksEachTime(&prev) {
				folded = depth
			}
		case l.Is(')'):
			if depth == folded {
				folded = 0
			}
			depth--
		case l.Kw == lex.KwIgnore && !indexFollows(l):
			return text, "NEXTVAL for each row with IGNORE, which would keep rows without a number,"
		case l.Kw == lex.KwReturning:
			return text, "NEXTVAL for each row with RETURNING, which may send rows before the numbers run out,"
		case depth > 0:
		// There the servers take the counting expression for a constant.
		case l.Kw == lex.KwDistinct, l.Kw == lex.KwDistinctRow:
			return text, "NEXTVAL in INSERT ... SELECT DISTINCT, where servers take it for a constant,"
		case l.Kw == lex.KwSQLBufferResult:
			// It would be evaluated for rows that are not stored.
			return text, "NEXTVAL in INSERT ... SELECT SQL_BUFFER_RESULT, where it is evaluated for rows that go nowhere,"
		case l.Kw == lex.KwGroup, l.Kw == lex.KwHaving, l.Kw == lex.KwOrder:
			refers = st.Kind != Update
			if st.Kind == Update {
				inSet = false
			}
		case l.Kw == lex.KwSelect:
			refers, inList, inRows = false, true, true
		case l.Kw == lex.KwOn:
			refers = false
			if p := l; !text.Updates {
				p.Next()
				values, text.Updates = values && p.Kw != lex.KwDuplicate, p.Kw == lex.KwDuplicate
			}
		case st.Kind != Update && (l.Kw == lex.KwValues || l.Kw == lex.KwValue) && !inRows:
			values, inRows = true, true
		case st.Kind == Update && l.Kw == lex.KwSet:
			inSet = true
		case st.Kind == Update && l.Kw == lex.KwWhere:
			inSet = false
		case l.Kw == lex.KwUnion, l.Kw == lex.KwExcept, l.Kw == lex.KwIntersect:
			limited, text.Limit = true, 0
		case l.Kw == lex.KwLimit:
			refers, inSet = false, inSet && st.Kind != Update
			if p := l; !limited {
				p.Next()
				n, ok := lex.ParseUint(p.Src[p.Start:p.End])
				if p.Kind == lex.Number && ok {
					text.Limit = n
				}
				if p.Next(); p.Is(',') || p.Kw != lex.KwNone { // an offset, or ROWS EXAMINED
					text.Limit = 0
				}
			}
		}
	}
	if rows > 0 {
		text.Numbers += rows * each
	}
	if l.Bad || calls != len(st.Calls) {
		return text, "NEXTVAL for each row"
	}
	return text, ""
}

// maxReferred bounds the aliases that every word of an ORDER BY is compared with.
const maxReferred = 64

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

// refersToNumber reports whether the current token of a GROUP BY, HAVING or ORDER BY may refer to
// an item with a NEXTVAL, by its name or its position.
func (st *Statement) refersToNumber(names [][]byte, l, prev *lex.Lexer) bool {
	switch {
	case len(names) > maxReferred:
		return true
	case (l.Kind == lex.Number || l.Is('?')) && (prev.Kw == lex.KwBy || prev.Is(',')):
		return true
	case l.Kind != lex.Word && l.Kind != lex.Quoted || l.AfterDot:
		return false
	}
	name := st.arena.Decode(l)
	for _, alias := range names {
		if lex.SameName(alias, name) || !lex.ASCII(alias) {
			return true
		}
	}
	return false
}

// severalGroupings reports whether a word after GROUP BY adds super-aggregate rows.
func severalGroupings(l *lex.Lexer) bool {
	for _, word := range [...]string{"rollup", "cube", "grouping"} {
		if w := l.Src[l.Start:l.End]; lex.EqualFold(w, word) {
			return true
		}
	}
	return false
}

// indexFollows reports whether l begins an index hint, such as IGNORE INDEX (i).
func indexFollows(l lex.Lexer) bool {
	l.Next()
	return l.Spells("index") || l.Spells("key")
}
