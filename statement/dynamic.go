package statement

import "seqproxy/statement/lex"

// Dynamic is a text that concerns a prepared statement: PREPARE, EXECUTE, EXECUTE IMMEDIATE,
// DEALLOCATE PREPARE or DROP PREPARE.
type Dynamic struct {
	// Name is the prepared statement's name, decoded, with ASCII letters in lower case. EXECUTE
	// IMMEDIATE has no name.
	Name string
	// TextStart and TextEnd bound the source of a PREPARE or EXECUTE IMMEDIATE: a literal, with the
	// value Text, or a user variable.
	TextStart, TextEnd int
	Text               []byte
	Variable           bool
}

// ReadDynamic reads a text for which Analyze found one of these kinds. It returns false unless the
// text has exactly a form that every server accepts. The server then decides about the text. It
// allocates, so it is not for the data path.
func ReadDynamic(sql []byte, mode lex.Mode) (d Dynamic, ok bool) {
	l := lex.Lexer{Src: sql, Mode: mode}
	l.Next()
	kind := l.Kw
	l.Next()
	if kind == lex.KwDeallocate || kind == lex.KwDrop {
		if l.Kw != lex.KwPrepare {
			return d, false
		}
		l.Next()
	}
	var names lex.Arena
	if kind == lex.KwExecute && l.Kw == lex.KwImmediate {
		l.Next()
		kind = lex.KwImmediate
	} else {
		if l.Kind != lex.Word && l.Kind != lex.Quoted {
			return d, false
		}
		d.Name = string(names.Lowered(names.Decode(&l)))
		l.Next()
	}
	switch kind {
	case lex.KwPrepare:
		if l.Kw != lex.KwFrom {
			return d, false
		}
		l.Next()
		fallthrough
	case lex.KwImmediate:
		d.TextStart, d.TextEnd = l.Start, l.End
		switch {
		case l.Kind == lex.UserVar:
			d.Variable = true
		case l.Kind == lex.String && (sql[l.Start] == '\'' || sql[l.Start] == '"'):
			d.Text = append([]byte{}, names.Decode(&l)...)
		default:
			return d, false
		}
		l.Next()
	}
	switch {
	case (kind == lex.KwExecute || kind == lex.KwImmediate) && l.Spells("using"):
		for l.Kind != lex.EOF {
			l.Next()
		}
	default:
		for l.Is(';') {
			l.Next()
		}
	}
	return d, l.Kind == lex.EOF && !l.Bad && l.Execs == 0
}
