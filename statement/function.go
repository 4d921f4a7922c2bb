package statement

import "seqproxy/statement/lex"

// looksEachTime reports whether a word in front of a parenthesis is an operator, or a
// function of which it is known that the servers evaluate its arguments for each row. Many
// others keep what they have made of one that looks constant, as LAST_INSERT_ID(n) does:
// ExtractValue() a document, JSON_SET() a path, a deterministic function its result.
func looksEachTime(l *lex.Lexer) bool {
	if l.Kind != lex.Word || l.AfterDot {
		return false
	}
	w := l.Src[l.Start:l.End]
	for _, name := range [...]string{
		"if", "ifnull", "coalesce", "nullif", "concat", "cast", "convert", "lpad", "rpad", "greatest", "least", "hex",
		"and", "or", "xor", "not", "when", "then", "else", "case", "div", "mod", "binary", "between",
	} {
		if lex.EqualFold(w, name) {
			return true
		}
	}
	return false
}

// mayCallRoutine reports whether what stands in front of a parenthesis, the token prev, may
// be the name of a stored function. One that has the name of the server's own is called
// with its schema only, or where a space stands between.
func mayCallRoutine(l, prev *lex.Lexer) bool {
	switch {
	case prev.Kind == lex.Quoted:
		return true
	case prev.Kind != lex.Word || looksEachTime(prev):
		return false
	case prev.AfterDot:
		return true
	}
	switch prev.Kw {
	case lex.KwIn, lex.KwExists, lex.KwOver, lex.KwOn, lex.KwFrom, lex.KwWhere, lex.KwSelect, lex.KwAs, lex.KwValues, lex.KwValue, lex.KwBy, lex.KwAny, lex.KwAll, lex.KwSome, lex.KwLike:
		return false
	}
	if prev.End != l.Start {
		return true
	}
	w := l.Src[prev.Start:prev.End]
	for _, name := range [...]string{
		"count", "max", "min", "sum", "avg", "upper", "lower", "concat_ws", "left", "right", "substr", "substring", "trim", "length",
		"char_length", "replace", "round", "floor", "abs", "date", "now", "date_format", "unix_timestamp", "from_unixtime", "row_number",
	} {
		if lex.EqualFold(w, name) {
			return false
		}
	}
	return true
}
