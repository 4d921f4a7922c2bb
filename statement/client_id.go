package statement

import "strings"

// standsAlone reports whether nothing in the text can know the thread id that the server
// has for the connection: it consists of SELECTs without a table, and of nothing else than
// literals, system variables, aliases, operators and the functions of knowsNoThread. Where a
// word is not on that list the server's own id is the right one, since it may be compared
// with what the server knows.
func (st *Statement) standsAlone(sql []byte) bool {
	const more = FromTable | UnionWord | Into | Opaque | SystemSchema | UserLock | SetsLastInsertID | SetsUserVariable | ReadsUserVariable
	if st.Kind != Select && st.Kind != Multi || st.Words&more != 0 {
		return false
	}
	l := lexer{src: sql, mode: st.mode}
	before := lexer{kind: tPunct, ch: ';'}
	for begins := true; ; before = l {
		switch l.next(); {
		case l.kind == tEOF:
			return !l.bad
		case l.is(';'):
			begins = true
		case l.is('('):
			if !begins && !knowsNoThread(&before, &l) {
				return false
			}
		case begins:
			if l.kw != kwSelect {
				return false
			}
			begins = false
		case l.afterDot:
		case l.kw == kwSelect, l.kw == kwTable, l.kw == kwValues, l.kw == kwWith:
			return false // a query inside
		}
	}
}

// knowsNoThread reports whether what l stands in front of the parenthesis p is no function, or
// one that the server evaluates without the thread's id. A function with the name of a
// server's own may be a stored one where a space stands between.
func knowsNoThread(l, p *lexer) bool {
	switch l.kind {
	case tQuoted:
		return !l.afterDot && l.lookupName() == kwConnectionID
	case tWord:
	default:
		return true
	}
	if l.afterDot {
		return false
	}
	switch l.kw {
	case kwConnectionID, kwNextval, kwLastval, kwSetval, kwLastInsertID, kwRowCount, kwFoundRows,
		kwSelect, kwAnd, kwOr, kwXor, kwNot, kwIn, kwCase, kwWhen, kwThen, kwElse, kwDiv, kwMod, kwBetween, kwLike, kwIs:
		return true
	}
	w := l.src[l.start:l.end]
	for _, name := range [...]string{
		"version", "database", "schema", "user", "current_user", "session_user", "system_user", "current_role",
		"now", "current_timestamp", "localtime", "localtimestamp", "utc_timestamp", "curdate", "curtime", "unix_timestamp",
		"if", "ifnull", "coalesce", "nullif", "concat", "concat_ws", "cast", "convert", "char", "decimal", "hex", "lpad", "rpad",
		"greatest", "least",
	} {
		if strings.EqualFold(string(w), name) {
			return l.end == p.start
		}
	}
	return false
}
