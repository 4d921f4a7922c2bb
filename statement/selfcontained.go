package statement

// maxName is how many characters of a select item become its column's name
// (MAX_ALIAS_NAME less one). Longer aliases are the server's business.
const maxName = 255

// selfContained sets SelfContained if sql is exactly
//
//	SELECT call [[AS] alias] {, call [[AS] alias]} [FROM DUAL] [;]
//
// and everything the client will see of it is ASCII, so that no conversion
// between character sets can matter.
func (st *Statement) selfContained(sql []byte) {
	if st.Words&(UnionWord|FromTable|ExecutableComment|Into|Opaque) != 0 || len(st.Items) != len(st.Calls) {
		return
	}
	params := 0
	for i := range st.Calls {
		params += st.Calls[i].Markers()
	}
	if st.Params != params {
		return
	}
	l := lexer{src: sql, mode: st.mode}
	if l.next(); l.kw != kwSelect {
		return
	}
	for i := range st.Items {
		it, c := &st.Items[i], &st.Calls[i]
		if l.next(); l.start != c.Start || it.Func == 0 || c.Func == Nextval && c.Form != FormName && c.Form != FormQualified && c.Form != FormParam {
			return
		}
		if !plainName(sql[it.Start:it.End], false) {
			return
		}
		l = lexer{src: sql, mode: st.mode, pos: c.End, kind: tPunct, ch: ')'}
		l.next()
		if it.HasAlias {
			explicit := l.kw == kwAs
			if explicit {
				l.next()
			}
			switch {
			case l.kind == tWord && reservedWord(l.src[l.start:l.end]):
				return
			case l.kind == tString && l.src[l.start] != '\'' && l.src[l.start] != '"':
				return // AS N'x' is an error
			case l.kind != tWord && l.kind != tQuoted && l.kind != tString:
				return
			}
			if !plainName(it.Alias, true) {
				return
			}
			l.next()
		}
		if i+1 < len(st.Items) && !l.is(',') {
			return
		}
	}
	if l.kw == kwFrom {
		if l.next(); l.kw != kwDual {
			return
		}
		l.next()
	}
	for l.is(';') {
		l.next()
	}
	st.SelfContained = l.kind == tEOF && !l.bad
}

// plainName reports whether a column may bear the name, without any rule of the
// server's applying: printable ASCII, no space at either end, not too long. An
// alias may not be empty.
func plainName(name []byte, alias bool) bool {
	if len(name) > maxName || len(name) == 0 {
		return false
	}
	if alias && (name[0] == ' ' || name[len(name)-1] == ' ') {
		return false
	}
	for _, c := range name {
		if c >= 0x7f || c < ' ' && (alias || c != '\n' && c != '\t' && c != '\r') {
			return false
		}
	}
	return true
}
