package statement

// addItem records the select item that l is about to read, to its end, whose
// first call is Calls[first]. Select options in front of the first item are
// passed over. An item that the border of an executable comment runs through
// is left out: what the server takes for its name is the text without it.
func (st *Statement) addItem(l lexer, first int) {
	l.next()
	for l.kind == tWord && selectOption(l.kw) {
		l.next()
	}
	it := Item{Start: l.start, End: len(l.src), FirstCall: first, EndCall: len(st.Calls)}
	if !st.alias(l, &it) || it.Start >= it.End {
		return
	}
	if it.EndCall-it.FirstCall == 1 {
		if c := &st.Calls[it.FirstCall]; c.Start == it.Start && c.End == it.End {
			it.Func = c.Func
			if c.Spelling >= AsSelectValue { // Vitess's name
				it.named, it.Alias = true, columnNextval
			}
		}
	}
	st.Items = append(st.Items, it)
	st.claim(len(st.Items) - 1)
}

// claim makes item i the item of its calls that have none yet: inner items
// come first.
func (st *Statement) claim(i int) {
	for c := st.Items[i].FirstCall; c < st.Items[i].EndCall; c++ {
		if st.Calls[c].Item < 0 {
			st.Calls[c].Item = i
		}
	}
}

// selectOption reports whether a word may stand between SELECT and the list.
func selectOption(kw keyword) bool {
	switch kw {
	case kwAll, kwDistinct, kwDistinctRow, kwHighPriority, kwStraightJoin, kwSQLSmallResult, kwSQLBigResult,
		kwSQLBufferResult, kwSQLCache, kwSQLNoCache, kwSQLCalcFoundRows:
		return true
	}
	return false
}

// alias finds out whether the item that begins at token l has an alias, and
// where its expression ends. An alias is what follows AS outside of
// parentheses, or a last name or string that an operand stands before. In doubt
// there is one: a missing alias changes a column's name, a second one would be
// an error. It is false if the item is not one piece of text.
func (st *Statement) alias(l lexer, it *Item) bool {
	execs, depth, cases := l.execs, 0, 0
	interval := false
	before, last := lexer{}, lexer{} // the tokens before, at depth 0 or closing it
	next := it.FirstCall
	for ; l.kind != tEOF; l.next() {
		if l.execs != execs {
			return false
		}
		// A call of several words ends as one with parentheses does.
		for next < it.EndCall && st.Calls[next].Start < l.start {
			next++
		}
		if next < it.EndCall && st.Calls[next].Start == l.start && st.Calls[next].Spelling != AsFunction {
			l.pos, l.end = st.Calls[next].End, st.Calls[next].End
			l.kind, l.ch, l.kw, l.afterDot = tPunct, ')', kwNone, false
			if depth == 0 {
				before, last = last, l
			}
			continue
		}
		if depth == 0 && l.kw == kwAs {
			it.End, it.HasAlias = last.end, true
			l.next()
			it.Alias = st.arena.decode(l)
			return true
		}
		switch {
		case l.is('('):
			depth++
			continue
		case l.is(')'):
			if depth--; depth < 0 {
				return false // more is closed than was opened: the server's error
			}
		case depth > 0:
			continue
		case l.kw == kwCase:
			cases++
		case l.kw == kwInterval:
			interval = true
		case l.kw == kwEnd && cases > 0:
			cases--
			l.kind, l.ch, l.kw = tPunct, ')', kwNone // closes, as a parenthesis does
		}
		before, last = last, l
	}
	if depth > 0 {
		return false
	}
	it.End = last.end
	if last.kind != tWord && last.kind != tQuoted && last.kind != tString {
		return true
	}
	if last.afterDot || !operandEnd(&before) || before.kind == tString && last.kind == tString {
		return true
	}
	switch last.kw {
	case kwNull, kwTrue, kwFalse, kwUnknown:
		return true
	}
	if interval && last.kind == tWord && intervalUnit(last.src[last.start:last.end]) {
		return true
	}
	it.End, it.HasAlias = before.end, true
	it.Alias = st.arena.decode(last)
	return true
}

// operandEnd reports whether an operand can end with l, so that a name behind
// it is an alias.
func operandEnd(l *lexer) bool {
	switch l.kind {
	case tQuoted, tString, tNumber, tUserVar:
		return true
	case tPunct:
		return l.ch == ')' || l.ch == '?'
	case tWord:
		if !l.afterDot && l.src[l.start] == '_' {
			return false // _utf8mb4 'x'
		}
		switch l.kw {
		case kwAnd, kwOr, kwXor, kwNot, kwIs, kwLike, kwRegexp, kwRlike, kwDiv, kwMod, kwBetween, kwIn, kwCollate,
			kwEscape, kwBinary, kwInterval, kwCase, kwWhen, kwThen, kwElse, kwExists, kwOver, kwAll, kwAny, kwSome,
			kwDate, kwTime, kwTimestamp, kwSounds, kwDistinct:
			return false
		}
		return true
	default:
		return false
	}
}

// intervalUnit reports whether w is a unit of INTERVAL: DAY, DAY_HOUR, ...
func intervalUnit(w []byte) bool {
	for _, unit := range [...]string{"microsecond", "second", "minute", "hour", "day", "week", "month", "quarter", "year"} {
		if len(w) >= len(unit) && equalFold(w[len(w)-len(unit):], unit) &&
			(len(w) == len(unit) || w[len(w)-len(unit)-1] == '_') {
			return true
		}
	}
	return false
}
