package statement

import "seqproxy/statement/lex"

// addItem records the select item that l is about to read. Its first call is Calls[first]. It skips
// select options before the first item. It leaves out an item that crosses the border of an
// executable comment: the server makes its name from the text without the comment.
func (st *Statement) addItem(l lex.Lexer, first int) {
	l.Next()
	for l.Kind == lex.Word && selectOption(l.Kw) {
		l.Next()
	}
	it := Item{Start: l.Start, End: len(l.Src), FirstCall: first, EndCall: len(st.Calls)}
	if !st.alias(l, &it) || it.Start >= it.End {
		return
	}
	if it.EndCall-it.FirstCall == 1 {
		if c := &st.Calls[it.FirstCall]; c.Start == it.Start && c.End == it.End {
			it.Func = c.Func
			if c.Spelling >= AsSelectValue { // Vitess's column name
				it.named, it.Alias = true, columnNextval
			}
		}
	}
	st.Items = append(st.Items, it)
	st.claim(len(st.Items) - 1)
}

// claim sets item i in its calls that have no item yet. Inner items come first.
func (st *Statement) claim(i int) {
	for c := st.Items[i].FirstCall; c < st.Items[i].EndCall; c++ {
		if st.Calls[c].Item < 0 {
			st.Calls[c].Item = i
		}
	}
}

// selectOption reports whether a word may stand between SELECT and its list.
func selectOption(kw lex.Keyword) bool {
	switch kw {
	case lex.KwAll, lex.KwDistinct, lex.KwDistinctRow, lex.KwHighPriority, lex.KwStraightJoin, lex.KwSQLSmallResult, lex.KwSQLBigResult,
		lex.KwSQLBufferResult, lex.KwSQLCache, lex.KwSQLNoCache, lex.KwSQLCalcFoundRows:
		return true
	}
	return false
}

// alias finds the alias of the item that begins at token l, and the end of its expression. An alias
// follows AS outside of parentheses, or it is a last name or string after an operand. In doubt
// alias assumes one: a missing alias would change a column's name, and a second alias would be an
// error. It returns false if the item is not one piece of text.
func (st *Statement) alias(l lex.Lexer, it *Item) bool {
	execs, depth, cases := l.Execs, 0, 0
	interval := false
	before, last := lex.Lexer{}, lex.Lexer{} // the last two tokens at depth 0, or that return to it
	next := it.FirstCall
	for ; l.Kind != lex.EOF; l.Next() {
		if l.Execs != execs {
			return false
		}
		// A call of several words ends like one with parentheses.
		for next < it.EndCall && st.Calls[next].Start < l.Start {
			next++
		}
		if next < it.EndCall && st.Calls[next].Start == l.Start && st.Calls[next].Spelling != AsFunction {
			l.Pos, l.End = st.Calls[next].End, st.Calls[next].End
			l.Kind, l.Ch, l.Kw, l.AfterDot = lex.Punct, ')', lex.KwNone, false
			if depth == 0 {
				before, last = last, l
			}
			continue
		}
		if depth == 0 && l.Kw == lex.KwAs {
			it.End, it.HasAlias = last.End, true
			l.Next()
			it.Alias = st.arena.Decode(&l)
			return true
		}
		switch {
		case l.Is('('):
			depth++
			continue
		case l.Is(')'):
			if depth--; depth < 0 {
				return false // too many closing parentheses: the server's error
			}
		case depth > 0:
			continue
		case l.Kw == lex.KwCase:
			cases++
		case l.Kw == lex.KwInterval:
			interval = true
		case l.Kw == lex.KwEnd && cases > 0:
			cases--
			l.Kind, l.Ch, l.Kw = lex.Punct, ')', lex.KwNone // ends like a parenthesis
		}
		before, last = last, l
	}
	if depth > 0 {
		return false
	}
	it.End = last.End
	if last.Kind != lex.Word && last.Kind != lex.Quoted && last.Kind != lex.String {
		return true
	}
	if last.AfterDot || !operandEnd(&before) || before.Kind == lex.String && last.Kind == lex.String {
		return true
	}
	switch last.Kw {
	case lex.KwNull, lex.KwTrue, lex.KwFalse, lex.KwUnknown:
		return true
	}
	if interval && last.Kind == lex.Word && intervalUnit(last.Src[last.Start:last.End]) {
		return true
	}
	it.End, it.HasAlias = before.End, true
	it.Alias = st.arena.Decode(&last)
	return true
}

// operandEnd reports whether an operand can end with l, so that a following name is an alias.
func operandEnd(l *lex.Lexer) bool {
	switch l.Kind {
	case lex.Quoted, lex.String, lex.Number, lex.UserVar:
		return true
	case lex.Punct:
		return l.Ch == ')' || l.Ch == '?'
	case lex.Word:
		if !l.AfterDot && l.Src[l.Start] == '_' {
			return false // _utf8mb4 'x'
		}
		switch l.Kw {
		case lex.KwAnd, lex.KwOr, lex.KwXor, lex.KwNot, lex.KwIs, lex.KwLike, lex.KwRegexp, lex.KwRlike, lex.KwDiv, lex.KwMod, lex.KwBetween, lex.KwIn, lex.KwCollate,
			lex.KwEscape, lex.KwBinary, lex.KwInterval, lex.KwCase, lex.KwWhen, lex.KwThen, lex.KwElse, lex.KwExists, lex.KwOver, lex.KwAll, lex.KwAny, lex.KwSome,
			lex.KwDate, lex.KwTime, lex.KwTimestamp, lex.KwSounds, lex.KwDistinct:
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
		if len(w) >= len(unit) && lex.EqualFold(w[len(w)-len(unit):], unit) &&
			(len(w) == len(unit) || w[len(w)-len(unit)-1] == '_') {
			return true
		}
	}
	return false
}
