package statement

import "seqproxy/statement/lex"

// looksEachTime reports whether the servers are known to evaluate the arguments of l for each row;
// l is a word before a parenthesis: a function or an operator. Many other functions keep what they
// have computed from an argument that looks constant, as LAST_INSERT_ID(n) does. ExtractValue()
// keeps a document, JSON_SET() a path, a deterministic function its result.
func looksEachTime(l *lex.Lexer) bool {
	if l.Kind != lex.Word || l.AfterDot {
		return false
	}
	return isAnyOf(l.Src[l.Start:l.End],
		"if", "ifnull", "coalesce", "nullif", "concat", "cast", "convert", "lpad", "rpad", "greatest", "least", "hex",
		"and", "or", "xor", "not", "when", "then", "else", "case", "div", "mod", "binary", "between",
	)
}

// mayCallRoutine reports whether l, a token before a parenthesis, may be the name of a stored
// function; prev is the token before l. A stored function with the name of a server's function is
// called with its schema, or with a space before the parenthesis.
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
	return !isAnyOf(l.Src[prev.Start:prev.End],
		"count", "max", "min", "sum", "avg", "upper", "lower", "concat_ws", "left", "right", "substr", "substring", "trim", "length",
		"char_length", "replace", "round", "floor", "abs", "date", "now", "date_format", "unix_timestamp", "from_unixtime", "row_number",
	)
}
