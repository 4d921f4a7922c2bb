package statement

// CountedText is what the text of a statement tells whose numbers the server counts off.
type CountedText struct {
	// Limit is the most rows that it says it has, 0 if it does not.
	Limit uint64
	// Numbers is how many it takes at most, where its rows are those of VALUES; else 0.
	Numbers uint64
	// Updates: it has ON DUPLICATE KEY UPDATE.
	Updates bool
	// Routines: it may call stored functions.
	Routines bool
}

// Counted reads an INSERT ... SELECT, REPLACE ... SELECT or UPDATE again whose NEXTVALs
// are to be counted by the server itself, once per row (AsCounted). sql is the text that
// st was analysed from. Where a number that is missing would not make the whole statement
// fail, or the statement could not be repeated then, refusal says so, in the words of
// Statement.Refusal.
func (st *Statement) Counted(sql []byte) (text CountedText, refusal string) {
	switch {
	case st.Kind == Multi:
		return text, "NEXTVAL for each row of INSERT ... SELECT or UPDATE in a multi-statement, which cannot be repeated with more numbers,"
	case st.Kind == Delete:
		return text, "NEXTVAL in DELETE, where it would be another number for each row that is looked at,"
	case st.Kind == Update && st.Table() == nil:
		return text, "NEXTVAL in UPDATE of several tables, of which some may keep what a statement has changed that fails,"
	case st.Kind != Insert && st.Kind != Replace && st.Kind != Update || st.Table() == nil:
		return text, "NEXTVAL for each row of a statement whose table is not its first word"
	case st.Words&SetsUserVariable != 0:
		return text, "NEXTVAL for each row beside @variable :=, which would be set again where it is repeated with more numbers,"
	case st.Words&UserLock != 0:
		return text, "NEXTVAL for each row beside GET_LOCK() and its like, which would be done again where it is repeated with more numbers,"
	case st.Words&SetsLastInsertID != 0:
		return text, "NEXTVAL for each row beside LAST_INSERT_ID(expression), by which the server counts the numbers,"
	case st.Words&(ReadsRowCount|ReadsFoundRows|ReadsWarnings) != 0:
		return text, "NEXTVAL for each row beside ROW_COUNT(), FOUND_ROWS() or counts of warnings, which taking the numbers changes,"
	}
	l := lexer{src: sql, mode: st.mode}
	depth, calls := 0, 0
	folded := 0 // how deep the function's parentheses are whose arguments a server may look at once
	inSet := st.Kind != Update
	limited, refers := false, false
	inRows := st.Kind == Update                       // behind the table and its columns
	rows, each, values := uint64(0), uint64(0), false // tuples; numbers that each may take in ON DUPLICATE KEY UPDATE; within VALUES
	inList, counts := false, false                    // in a select list; the item has a NEXTVAL
	var names [][]byte                                // of such items
	for {
		prev := l
		if l.next(); l.kind == tEOF {
			break
		}
		if refers && st.refersToNumber(names, &l, &prev) {
			return text, errReferred
		}
		if refers && depth == 0 && l.kind == tWord && severalGroupings(&l) {
			return text, "NEXTVAL in INSERT ... SELECT ... WITH ROLLUP, which repeats values," // MariaDB repeats values there
		}
		if calls < len(st.Calls) && l.start == st.Calls[calls].Start {
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
			l.pos, l.kind, l.kw = c.End, tPunct, kwNone
			l.ch = ')'
			calls++
			counts = inList && c.Func == Nextval || counts
			continue
		}
		if inList && depth == 0 && (l.is(',') || listEnds(&l)) {
			if counts && (prev.kind == tWord || prev.kind == tQuoted) { // an alias, perhaps
				names = append(names, st.arena.decode(prev))
			}
			inList, counts = l.is(','), false
		}
		switch {
		case l.is('('):
			text.Routines = text.Routines || inRows && mayCallRoutine(&l, &prev)
			tuple := values && depth == 0
			if tuple {
				rows++
			}
			if depth++; !tuple && folded == 0 && (prev.kind == tWord || prev.kind == tQuoted) && !looksEachTime(&prev) {
				folded = depth
			}
		case l.is(')'):
			if depth == folded {
				folded = 0
			}
			depth--
		case l.kw == kwIgnore && !indexFollows(l):
			return text, "NEXTVAL for each row with IGNORE, which would keep rows that there is no number for,"
		case l.kw == kwReturning:
			return text, "NEXTVAL for each row with RETURNING, whose rows may be sent before it fails for want of numbers,"
		case depth > 0:
		// The servers take what is counted for a constant there.
		case l.kw == kwDistinct, l.kw == kwDistinctRow:
			return text, "NEXTVAL in INSERT ... SELECT DISTINCT, where servers take it for a constant,"
		case l.kw == kwSQLBufferResult:
			return text, "NEXTVAL in INSERT ... SELECT SQL_BUFFER_RESULT, where it is evaluated for rows that go nowhere," // evaluated for rows that go nowhere
		case l.kw == kwGroup, l.kw == kwHaving, l.kw == kwOrder:
			refers = st.Kind != Update
			if st.Kind == Update {
				inSet = false
			}
		case l.kw == kwSelect:
			refers, inList, inRows = false, true, true
		case l.kw == kwOn:
			refers = false
			if p := l; !text.Updates {
				p.next()
				values, text.Updates = values && p.kw != kwDuplicate, p.kw == kwDuplicate
			}
		case st.Kind != Update && (l.kw == kwValues || l.kw == kwValue) && !inRows:
			values, inRows = true, true
		case st.Kind == Update && l.kw == kwSet:
			inSet = true
		case st.Kind == Update && l.kw == kwWhere:
			inSet = false
		case l.kw == kwUnion, l.kw == kwExcept, l.kw == kwIntersect:
			limited, text.Limit = true, 0
		case l.kw == kwLimit:
			refers, inSet = false, inSet && st.Kind != Update
			if p := l; !limited {
				p.next()
				n, ok := parseUint(p.src[p.start:p.end])
				if p.kind == tNumber && ok {
					text.Limit = n
				}
				if p.next(); p.is(',') || p.kw != kwNone { // an offset, ROWS EXAMINED
					text.Limit = 0
				}
			}
		}
	}
	if rows > 0 {
		text.Numbers += rows * each
	}
	if l.bad || calls != len(st.Calls) {
		return text, "NEXTVAL for each row"
	}
	return text, ""
}

// maxReferred bounds the names that every word of an ORDER BY is compared with.
const maxReferred = 64

// listEnds reports whether a word ends a select list.
func listEnds(l *lexer) bool {
	switch l.kw {
	case kwReturning: // MySQL does not know it, and takes it for a name
		return !l.mode.Server.isMySQL()
	case kwFrom, kwWhere, kwGroup, kwHaving, kwOrder, kwLimit, kwUnion, kwExcept, kwIntersect, kwInto, kwOn, kwFor, kwLock, kwProcedure:
		return true
	}
	return false
}

// refersToNumber reports whether the token of a GROUP BY, HAVING or ORDER BY may mean an
// item with a NEXTVAL, by one of names or by its number.
func (st *Statement) refersToNumber(names [][]byte, l, prev *lexer) bool {
	switch {
	case len(names) > maxReferred:
		return true
	case (l.kind == tNumber || l.is('?')) && (prev.kw == kwBy || prev.is(',')):
		return true
	case l.kind != tWord && l.kind != tQuoted || l.afterDot:
		return false
	}
	name := st.arena.decode(*l)
	for _, own := range names {
		if sameIdentifier(own, name) || !ascii(own) {
			return true
		}
	}
	return false
}

// severalGroupings reports whether a word behind GROUP BY makes sums of sums.
func severalGroupings(l *lexer) bool {
	for _, word := range [...]string{"rollup", "cube", "grouping"} {
		if w := l.src[l.start:l.end]; equalFold(w, word) {
			return true
		}
	}
	return false
}

// indexFollows reports whether the word is that of an index hint: IGNORE INDEX (i).
func indexFollows(l lexer) bool {
	l.next()
	w := l.src[l.start:l.end]
	return l.kind == tWord && (equalFold(w, "index") || equalFold(w, "key"))
}
