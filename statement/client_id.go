package statement

import "seqproxy/statement/lex"

// ignoresThread reports whether the text cannot depend on the server's thread id of the connection.
// The text then consists of SELECTs without a table, and these have only literals, system
// variables, aliases, operators and the functions of knowsNoThread. With any other word the
// server's own id is right, since the text may compare it with what the server knows.
func (st *Statement) ignoresThread(sql []byte) bool {
	const more = FromTable | UnionWord | Into | Opaque | SystemSchema | UserLock | SetsLastInsertID | SetsUserVariable | ReadsUserVariable
	if st.Kind != Select && st.Kind != Multi || st.Words&more != 0 {
		return false
	}
	l := lex.Lexer{Src: sql, Mode: st.mode, Pos: st.Start}
	before := lex.Lexer{Kind: lex.Punct, Ch: ';'}
	for begins := true; ; before = l {
		switch l.Next(); {
		case l.Kind == lex.EOF:
			return !l.Bad
		case l.Is(';'):
			begins = true
		case l.Is('('):
			if !begins && !knowsNoThread(&before, &l) {
				return false
			}
		case begins:
			if l.Kw != lex.KwSelect {
				return false
			}
			begins = false
		case l.AfterDot:
		case l.Kw == lex.KwSelect, l.Kw == lex.KwTable, l.Kw == lex.KwValues, l.Kw == lex.KwWith:
			return false // a subquery
		}
	}
}

// knowsNoThread reports whether the server evaluates l(...) without the thread's id, or l is no
// function; p is at the parenthesis. If a space precedes the parenthesis, the name of a server's
// function may also be a stored function.
func knowsNoThread(l, p *lex.Lexer) bool {
	switch l.Kind {
	case lex.Quoted:
		return !l.AfterDot && l.NameKeyword() == lex.KwConnectionID
	case lex.Word:
	default:
		return true
	}
	if l.AfterDot {
		return false
	}
	switch l.Kw {
	case lex.KwConnectionID, lex.KwNextval, lex.KwLastval, lex.KwSetval, lex.KwLastInsertID, lex.KwRowCount, lex.KwFoundRows,
		lex.KwSelect, lex.KwAnd, lex.KwOr, lex.KwXor, lex.KwNot, lex.KwIn, lex.KwCase, lex.KwWhen, lex.KwThen, lex.KwElse, lex.KwDiv, lex.KwMod, lex.KwBetween, lex.KwLike, lex.KwIs:
		return true
	}
	return l.End == p.Start && isAnyOf(l.Src[l.Start:l.End],
		"version", "database", "schema", "user", "current_user", "session_user", "system_user", "current_role",
		"now", "current_timestamp", "localtime", "localtimestamp", "utc_timestamp", "curdate", "curtime", "unix_timestamp",
		"if", "ifnull", "coalesce", "nullif", "concat", "concat_ws", "cast", "convert", "char", "decimal", "hex", "lpad", "rpad",
		"greatest", "least",
	)
}
