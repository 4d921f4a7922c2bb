package statement

import "seqproxy/statement/lex"

// place says of a NEXTVAL what is known when it is read. What the SELECT around it turns
// out to be is told by endSelect, which comes later.
func (a *analyzer) place(c *FuncCall) {
	switch {
	case a.part == partReturning:
		// A row for each that is written, of which VALUES may have one.
		if !a.ins.on || a.ins.row > 0 || a.st.levels[0].union || a.ins.source != fromValues && a.ins.source != fromSet {
			c.Place = PlaceRow
		}
		return
	case a.part == partUpdate:
		if a.ins.update++; a.ins.source != fromValues && a.ins.source != fromSet {
			c.Place = PlaceSource
		}
	}
	switch a.st.Kind {
	case Values:
		if a.depth == 0 {
			a.note("NEXTVAL behind the rows of VALUES")
		}
	case Update, Delete:
		c.Place = PlaceChange
		if lv := &a.st.levels[a.depth]; lv.within || lv.query {
			a.note("NEXTVAL in a subquery of UPDATE or DELETE, which the server may evaluate several times,")
		}
	}
}

// placeUpdates says of a statement with NEXTVAL behind ON DUPLICATE KEY UPDATE, which has
// several rows, that the server has to count all its numbers off: it alone knows which of
// the rows are changed.
func (a *analyzer) placeUpdates() {
	for i := len(a.st.Calls) - 1; i >= 0 && a.st.Calls[i].Statement == a.index; i-- {
		if c := &a.st.Calls[i]; c.Func == Nextval && c.Place == PlaceOnce {
			c.Place = PlaceSource
		}
	}
}

// mainQuery goes from the common table expressions of a WITH to its query. They may be
// read more than once, row by row, or not at all.
func (a *analyzer) mainQuery(lv *level) {
	if a.nextval > int(lv.numbers) && a.st.Kind != Explain {
		a.note("NEXTVAL in WITH ... AS, which the server may evaluate several times,")
	}
	lv.with, lv.from, lv.calls, lv.numbers = false, false, int32(len(a.st.Calls)), int32(a.nextval)
}

// placeCalls says of the NEXTVALs of the SELECT that ends here how often they are
// evaluated: it has a table, whose rows are many, or groups, of which there may be more
// than one even without a table. Texts may be long and deep: a call is looked at once.
func (a *analyzer) placeCalls(lv *level) {
	switch {
	case a.nextval == int(lv.numbers) || a.problem != "":
		return
	case !lv.from:
		if a.severalGroups(lv) {
			a.note("NEXTVAL in SELECT ... GROUP BY ... WITH ROLLUP, which repeats values,")
		}
		return
	}
	query := lv.top && (a.st.Kind == Select || a.st.Kind == With)
	for i := int(lv.calls); i < len(a.st.Calls); i++ {
		c := &a.st.Calls[i]
		if c.Func != Nextval {
			continue
		}
		listed := c.inList && c.depth == a.depth
		switch {
		case lv.with:
			a.note("NEXTVAL in WITH ... AS, which the server may evaluate several times,")
		case lv.top && a.ins.on && listed:
			c.Place = PlaceSource
		case lv.union && query && listed:
			a.note("NEXTVAL in SELECT ... FROM ... UNION, which compares rows before they have numbers,")
		case !query || !listed || c.Item < 0 || a.st.Items[c.Item].Func != Nextval:
			a.note("NEXTVAL in SELECT ... FROM outside the outermost list, where the server may evaluate it several times,")
		case lv.distinct:
			a.note("NEXTVAL in SELECT DISTINCT ... FROM, which compares rows before they have numbers,")
		case lv.into:
			a.note("NEXTVAL in SELECT ... FROM ... INTO, whose rows do not come to the proxy,")
		default:
			c.Place = PlaceRow
			a.rows = true
		}
	}
}

// placeUnion takes note that the SELECTs up to here, in parentheses perhaps, are joined
// with one that follows.
func (a *analyzer) placeUnion(lv *level) {
	if lv.top && a.rows {
		a.note("NEXTVAL in SELECT ... FROM ... UNION, which compares rows before they have numbers,")
	}
}

// grouping takes a word behind GROUP BY into account.
func (a *analyzer) grouping() {
	word := a.Src[a.Start:a.End]
	for _, several := range [...]string{"rollup", "cube", "grouping", "sets"} {
		if lex.EqualFold(word, several) {
			a.groups = a.Start
		}
	}
}

// severalGroups reports whether a GROUP BY without a table may make more than one row, as
// MySQL's ROLLUP does. Such words count wherever they stand behind it.
func (a *analyzer) severalGroups(lv *level) bool {
	return a.groups >= int(lv.groupBy)
}
