package statement

// place sets what is known of a NEXTVAL's place when it is read. endSelect adds later what the
// SELECT around it turns out to be.
func (a *analyzer) place(c *FuncCall) {
	switch {
	case a.part == partReturning:
		// Evaluated for each written row, of which VALUES may have one.
		if !a.ins.on || a.ins.row > 0 || a.st.levels[0].union || a.ins.source != InsertValues && a.ins.source != InsertSet {
			c.Place = PlaceRow
		}
		return
	case a.part == partUpdate:
		if a.ins.update++; a.ins.source != InsertValues && a.ins.source != InsertSet {
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

// placeUpdates handles NEXTVALs in the ON DUPLICATE KEY UPDATE of a statement with several rows.
// The server has to count all numbers of the statement: only it knows which rows are changed.
func (a *analyzer) placeUpdates() {
	for i := len(a.st.Calls) - 1; i >= 0 && a.st.Calls[i].Statement == a.index; i-- {
		if c := &a.st.Calls[i]; c.Func == Nextval && c.Place == PlaceOnce {
			c.Place = PlaceSource
		}
	}
}

// mainQuery moves from the common table expressions of a WITH to its query. Common table
// expressions may be evaluated more than once, row by row, or never.
func (a *analyzer) mainQuery(lv *level) {
	if a.nextval > int(lv.numbers) && a.st.Kind != Explain {
		a.note("NEXTVAL in WITH ... AS, which the server may evaluate several times,")
	}
	lv.with, lv.from, lv.calls, lv.numbers = false, false, int32(len(a.st.Calls)), int32(a.nextval)
}

// placeCalls sets how often the NEXTVALs of the SELECT that ends here are evaluated. The SELECT has
// a table with many rows, or groups; there may be several groups even without a table. It looks at
// each call once, since texts may be long and deep.
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

// placeUnion records that the SELECTs so far are joined with one that follows. They may be in
// parentheses.
func (a *analyzer) placeUnion(lv *level) {
	if lv.top && a.rows {
		a.note("NEXTVAL in SELECT ... FROM ... UNION, which compares rows before they have numbers,")
	}
}

// grouping handles a word after GROUP BY.
func (a *analyzer) grouping() {
	if isAnyOf(a.Src[a.Start:a.End], "rollup", "cube", "grouping", "sets") {
		a.groups = a.Start
	}
}

// severalGroups reports whether a GROUP BY without a table may return more than one row, as with
// MySQL's ROLLUP. Such a word counts anywhere after GROUP BY.
func (a *analyzer) severalGroups(lv *level) bool {
	return a.groups >= int(lv.groupBy)
}
