package statement

// Counted reads an INSERT ... SELECT, REPLACE ... SELECT or UPDATE again whose NEXTVALs
// are to be counted by the server itself, once per row (AsCounted). sql is the text that
// st was analysed from. Where a number that is missing would not make the whole statement
// fail, or the statement could not be repeated then, refusal says so, in the words of
// Statement.Refusal. limit is the most rows that the text says it has, 0 if it does not.
func (st *Statement) Counted(sql []byte) (limit uint64, refusal string) {
	switch {
	case st.Kind == Multi:
		return 0, "NEXTVAL for each row of INSERT ... SELECT or UPDATE in a multi-statement"
	case st.Kind == Delete:
		return 0, "NEXTVAL in DELETE"
	case st.Kind == Update && st.Table() == nil:
		return 0, "NEXTVAL in UPDATE of several tables"
	case st.Kind != Insert && st.Kind != Replace && st.Kind != Update || st.Table() == nil:
		return 0, "NEXTVAL for each row of a statement whose table is not its first word"
	case st.Words&SetsUserVariable != 0:
		return 0, "NEXTVAL for each row beside @variable :="
	case st.Words&UserLock != 0:
		return 0, "NEXTVAL for each row beside GET_LOCK() and its like"
	case st.Words&SetsLastInsertID != 0:
		return 0, "NEXTVAL for each row beside LAST_INSERT_ID(expression)"
	case st.Words&(ReadsRowCount|ReadsFoundRows|ReadsWarnings) != 0:
		return 0, "NEXTVAL for each row beside ROW_COUNT(), FOUND_ROWS() or counts of warnings"
	}
	l := lexer{src: sql, mode: st.mode}
	depth, calls := 0, 0
	folded := 0 // how deep the function's parentheses are whose arguments a server may look at once
	inSet := st.Kind != Update
	limited, refers := false, false
	inList, counts := false, false // in a select list; the item has a NEXTVAL
	var names [][]byte             // of such items
	for {
		prev := l
		if l.next(); l.kind == tEOF {
			break
		}
		if refers && st.refersToNumber(names, &l, &prev) {
			return 0, errReferred
		}
		if refers && depth == 0 && l.kind == tWord && l.severalGroupings() {
			return 0, "NEXTVAL in INSERT ... SELECT ... WITH ROLLUP" // MariaDB repeats values there
		}
		if calls < len(st.Calls) && l.start == st.Calls[calls].Start {
			c := &st.Calls[calls]
			if c.Func == Nextval && !inSet {
				return 0, "NEXTVAL in WHERE, ORDER BY or LIMIT of UPDATE"
			}
			if c.Func == Nextval && folded > 0 {
				return 0, "NEXTVAL for each row in arguments of functions other than IF, IFNULL, COALESCE, CONCAT, CAST and their like"
			}
			l.pos, l.kind, l.kw = c.End, tPunct, kwNone
			l.ch = ')'
			calls++
			counts = inList && c.Func == Nextval || counts
			continue
		}
		if inList && depth == 0 && (l.is(',') || listEnds(l.kw)) {
			if counts && (prev.kind == tWord || prev.kind == tQuoted) { // an alias, perhaps
				names = append(names, st.decode(prev))
			}
			inList, counts = l.is(','), false
		}
		switch {
		case l.is('('):
			if depth++; folded == 0 && (prev.kind == tWord || prev.kind == tQuoted) && !prev.looksEachTime() {
				folded = depth
			}
		case l.is(')'):
			if depth == folded {
				folded = 0
			}
			depth--
		case l.kw == kwIgnore && !l.indexFollows():
			return 0, "NEXTVAL for each row with IGNORE"
		case l.kw == kwReturning:
			return 0, "NEXTVAL for each row with RETURNING"
		case depth > 0:
		// The servers take what is counted for a constant there.
		case l.kw == kwDistinct, l.kw == kwDistinctRow:
			return 0, "NEXTVAL in INSERT ... SELECT DISTINCT"
		case l.kw == kwSQLBufferResult:
			return 0, "NEXTVAL in INSERT ... SELECT SQL_BUFFER_RESULT" // evaluated for rows that go nowhere
		case l.kw == kwGroup, l.kw == kwHaving, l.kw == kwOrder:
			refers = st.Kind != Update
			if st.Kind == Update {
				inSet = false
			}
		case l.kw == kwSelect:
			refers, inList = false, true
		case l.kw == kwOn:
			refers = false
		case st.Kind == Update && l.kw == kwSet:
			inSet = true
		case st.Kind == Update && l.kw == kwWhere:
			inSet = false
		case l.kw == kwUnion, l.kw == kwExcept, l.kw == kwIntersect:
			limited, limit = true, 0
		case l.kw == kwLimit:
			refers, inSet = false, inSet && st.Kind != Update
			if p := l; !limited {
				p.next()
				n, ok := parseUint(p.src[p.start:p.end])
				if p.kind == tNumber && ok {
					limit = n
				}
				if p.next(); p.is(',') || p.kw != kwNone { // an offset, ROWS EXAMINED
					limit = 0
				}
			}
		}
	}
	if l.bad || calls != len(st.Calls) {
		return 0, "NEXTVAL for each row"
	}
	return limit, ""
}

// maxReferred bounds the names that every word of an ORDER BY is compared with.
const maxReferred = 64

// looksEachTime reports whether a word in front of a parenthesis is an operator, or a
// function of which it is known that the servers evaluate its arguments for each row. Many
// others keep what they have made of one that looks constant, as LAST_INSERT_ID(n) does:
// ExtractValue() a document, JSON_SET() a path, a deterministic function its result.
func (l *lexer) looksEachTime() bool {
	if l.kind != tWord || l.afterDot {
		return false
	}
	w := l.src[l.start:l.end]
	for _, name := range [...]string{
		"if", "ifnull", "coalesce", "nullif", "concat", "cast", "convert", "lpad", "rpad", "greatest", "least", "hex",
		"and", "or", "xor", "not", "when", "then", "else", "case", "div", "mod", "binary", "between",
	} {
		if len(w) == len(name) && equalFolded(w, name) {
			return true
		}
	}
	return false
}

// listEnds reports whether a word ends a select list.
func listEnds(kw keyword) bool {
	switch kw {
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
	name := st.decode(*l)
	for _, own := range names {
		if sameIdentifier(own, name) || !ascii(own) {
			return true
		}
	}
	return false
}

// severalGroupings reports whether a word behind GROUP BY makes sums of sums.
func (l *lexer) severalGroupings() bool {
	for _, word := range [...]string{"rollup", "cube", "grouping"} {
		if w := l.src[l.start:l.end]; len(w) == len(word) && equalFolded(w, word) {
			return true
		}
	}
	return false
}

// indexFollows reports whether the word is that of an index hint: IGNORE INDEX (i).
func (l lexer) indexFollows() bool {
	l.next()
	w := l.src[l.start:l.end]
	return l.kind == tWord && (len(w) == 5 && equalFolded(w, "index") || len(w) == 3 && equalFolded(w, "key"))
}
