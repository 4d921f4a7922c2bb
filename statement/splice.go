package statement

// Splice is Rewrite with additional splices. They are in text order and overlap neither each other
// nor replaced calls.
func (st *Statement) Splice(dst, sql []byte, substitutions []Substitution, splices []Splice) []byte {
	from, item, call := 0, 0, 0
	for i := range splices {
		s := &splices[i]
		for call < len(st.Calls) && st.Calls[call].Start < s.Start {
			dst, item, from = st.appendCall(dst, sql, substitutions, call, item, from)
			call++
		}
		dst = append(dst, sql[from:s.Start]...)
		dst = append(dst, s.Text...)
		from = s.End
	}
	for ; call < len(st.Calls); call++ {
		dst, item, from = st.appendCall(dst, sql, substitutions, call, item, from)
	}
	dst, _, from = st.appendAliases(dst, sql, substitutions, item, from, len(sql))
	return append(dst, sql[from:]...)
}
