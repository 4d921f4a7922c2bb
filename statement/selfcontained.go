package statement

import "seqproxy/statement/lex"

// selfContained sets SelfContained if sql is exactly
//
//	SELECT call [[AS] alias] {, call [[AS] alias]} [FROM DUAL] [;]
//
// and if the client will see ASCII only, so that no conversion between character sets matters. The
// text begins at st.Start.
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
	l := lex.Lexer{Src: sql, Mode: st.mode, Pos: st.Start}
	if l.Next(); l.Kw != lex.KwSelect {
		return
	}
	for i := range st.Items {
		it, c := &st.Items[i], &st.Calls[i]
		if l.Next(); l.Start != c.Start || it.Func == 0 || c.Func == Nextval && c.Form != FormName && c.Form != FormQualified && c.Form != FormParam {
			return
		}
		if !plainName(sql[it.Start:it.End], false) {
			return
		}
		l = lex.Lexer{Src: sql, Mode: st.mode, Pos: c.End, Kind: lex.Punct, Ch: ')'}
		l.Next()
		if it.HasAlias {
			explicit := l.Kw == lex.KwAs
			if explicit {
				l.Next()
			}
			switch {
			case l.Kind == lex.Word && lex.Reserved(l.Src[l.Start:l.End]):
				return
			case l.Kind == lex.String && l.Src[l.Start] != '\'' && l.Src[l.Start] != '"':
				return // AS N'x' is an error
			case l.Kind != lex.Word && l.Kind != lex.Quoted && l.Kind != lex.String:
				return
			}
			if !plainName(it.Alias, true) {
				return
			}
			l.Next()
		}
		if i+1 < len(st.Items) && !l.Is(',') {
			return
		}
	}
	if l.Kw == lex.KwFrom {
		if l.Next(); l.Kw != lex.KwDual {
			return
		}
		l.Next()
	}
	for l.Is(';') {
		l.Next()
	}
	st.SelfContained = l.Kind == lex.EOF && !l.Bad
}

// plainName reports whether a column can have the name without any rule of the server's: printable
// ASCII, no space at either end, not too long. An alias must not be empty.
func plainName(name []byte, alias bool) bool {
	if len(name) > lex.MaxColumn || len(name) == 0 {
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
