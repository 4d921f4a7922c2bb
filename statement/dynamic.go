package statement

// Dynamic is a statement about a prepared statement as text: PREPARE, EXECUTE, EXECUTE
// IMMEDIATE, DEALLOCATE PREPARE or DROP PREPARE.
type Dynamic struct {
	// Name is the prepared statement's, decoded and with ASCII letters lowered, and
	// sql[NameStart:NameEnd] as it was written. EXECUTE IMMEDIATE has none.
	Name               string
	NameStart, NameEnd int
	// TextStart and TextEnd bound what a PREPARE or EXECUTE IMMEDIATE takes its text
	// from: a literal, whose meaning is Text, or a user variable.
	TextStart, TextEnd int
	Text               []byte
	Variable           bool
}

// ReadDynamic reads a text that Analyze found to be of such a kind. It is false if the text
// is not exactly of a form that every server takes: the server then says what it means. It
// allocates; it is not for the data path.
func ReadDynamic(sql []byte, mode Mode) (d Dynamic, ok bool) {
	l := lexer{src: sql, mode: mode}
	l.next()
	kind := l.kw
	l.next()
	if kind == kwDeallocate || kind == kwDrop {
		if l.kw != kwPrepare {
			return d, false
		}
		l.next()
	}
	var names arena
	if kind == kwExecute && l.kw == kwImmediate {
		l.next()
		kind = kwImmediate
	} else {
		if l.kind != tWord && l.kind != tQuoted {
			return d, false
		}
		d.Name, d.NameStart, d.NameEnd = string(names.lowered(names.decode(l))), l.start, l.end
		l.next()
	}
	switch kind {
	case kwPrepare:
		if l.kw != kwFrom {
			return d, false
		}
		l.next()
		fallthrough
	case kwImmediate:
		d.TextStart, d.TextEnd = l.start, l.end
		switch {
		case l.kind == tUserVar:
			d.Variable = true
		case l.kind == tString && (sql[l.start] == '\'' || sql[l.start] == '"'):
			d.Text = append([]byte{}, names.decode(l)...)
		default:
			return d, false
		}
		l.next()
	}
	switch {
	case (kind == kwExecute || kind == kwImmediate) && l.kind == tWord && equalFold(l.src[l.start:l.end], "using"):
		for l.kind != tEOF {
			l.next()
		}
	default:
		for l.is(';') {
			l.next()
		}
	}
	return d, l.kind == tEOF && !l.bad && l.execs == 0
}
