package statement

// looksEachTime reports whether a word in front of a parenthesis is an operator, or a
// function of which it is known that the servers evaluate its arguments for each row. Many
// others keep what they have made of one that looks constant, as LAST_INSERT_ID(n) does:
// ExtractValue() a document, JSON_SET() a path, a deterministic function its result.
func looksEachTime(l *lexer) bool {
	if l.kind != tWord || l.afterDot {
		return false
	}
	w := l.src[l.start:l.end]
	for _, name := range [...]string{
		"if", "ifnull", "coalesce", "nullif", "concat", "cast", "convert", "lpad", "rpad", "greatest", "least", "hex",
		"and", "or", "xor", "not", "when", "then", "else", "case", "div", "mod", "binary", "between",
	} {
		if equalFold(w, name) {
			return true
		}
	}
	return false
}

// mayCallRoutine reports whether what stands in front of a parenthesis, the token prev, may
// be the name of a stored function. One that has the name of the server's own is called
// with its schema only, or where a space stands between.
func mayCallRoutine(l, prev *lexer) bool {
	switch {
	case prev.kind == tQuoted:
		return true
	case prev.kind != tWord || looksEachTime(prev):
		return false
	case prev.afterDot:
		return true
	}
	switch prev.kw {
	case kwIn, kwExists, kwOver, kwOn, kwFrom, kwWhere, kwSelect, kwAs, kwValues, kwValue, kwBy, kwAny, kwAll, kwSome, kwLike:
		return false
	}
	if prev.end != l.start {
		return true
	}
	w := l.src[prev.start:prev.end]
	for _, name := range [...]string{
		"count", "max", "min", "sum", "avg", "upper", "lower", "concat_ws", "left", "right", "substr", "substring", "trim", "length",
		"char_length", "replace", "round", "floor", "abs", "date", "now", "date_format", "unix_timestamp", "from_unixtime", "row_number",
	} {
		if equalFold(w, name) {
			return false
		}
	}
	return true
}
