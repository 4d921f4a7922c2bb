package statement

import "seqproxy/statement/lex"

// level is the state of one depth of parentheses. Level 0 is the statement itself.
type level struct {
	calls     int32 // len(Calls) when the current SELECT of this level began
	numbers   int32 // number of NEXTVALs at that time
	itemStart int32 // start of the current select item
	itemCalls int32 // len(Calls) at that time
	itemExec  bool  // it starts inside an executable comment
	query     bool  // the level has SELECT, VALUES, TABLE or WITH
	from      bool  // the current SELECT has a FROM clause with a table
	groupBy   int32 // start of the current SELECT's GROUP BY clause, or 0
	inFrom    bool  // within the FROM clause
	inList    bool  // within the select list
	names     bool  // the client or an outer query sees the names of this select list
	with      bool  // within the common table expressions of a WITH
	top       bool  // the statement itself, or its query if that is merely in parentheses
	within    bool  // inside a query
	union     bool  // UNION, EXCEPT or INTERSECT joins SELECTs
	distinct  bool  // the current SELECT has DISTINCT
	into      bool  // the current SELECT has an INTO clause
}

// token handles the current token.
func (a *analyzer) token() {
	switch a.Kind {
	case lex.Word:
		if a.Kw != lex.KwNone {
			a.keyword()
		} else if a.AfterDot && a.End-a.Start == len("nextval") {
			a.dottedCall()
		} else if a.grouped {
			a.grouping()
		}
	case lex.Punct:
		switch a.Ch {
		case '(':
			a.openLevel()
			return
		case ')':
			a.closeLevel()
		case ',':
			if lv := &a.st.levels[a.depth]; lv.inList {
				a.endItem(lv)
				a.beginItem(lv)
			}
		case '?':
			a.st.Params++
		}
	case lex.Quoted:
		a.quotedCall()
	case lex.UserVar:
		switch {
		case a.prev == lex.KwInto:
			a.st.Words |= SetsUserVariable | Into
		case a.st.Kind == Load: // a place for a field of the file
			a.st.Words |= SetsUserVariable | ReadsUserVariable
		default:
			a.st.Words |= ReadsUserVariable
		}
	case lex.Assign:
		a.st.Words |= SetsUserVariable
	case lex.SysVar:
		a.systemVariable()
	}
	a.empty = false
}

func (a *analyzer) openLevel() {
	parent := &a.st.levels[a.depth]
	names := a.depth < maxNamesDepth &&
		(parent.inFrom || parent.names && a.empty || parent.with && a.prev == lex.KwAs)
	if a.depth+1 >= maxDepth {
		a.Fail()
		return
	}
	top := parent.top && a.empty
	if a.depth == 0 && a.st.Kind == Values {
		a.ins.row++
	}
	if a.depth == 0 && a.ins.on {
		switch {
		case a.ins.source == InsertValues && a.part == partMain:
			a.ins.row++
		case a.ins.source == InsertUnknown: // column names, or the query
			top = true
		}
	}
	a.depth++
	a.empty = true
	lv := level{
		calls: int32(len(a.st.Calls)), numbers: int32(a.nextval), names: names, top: top,
		within: parent.within || parent.query,
	}
	if a.depth < len(a.st.levels) {
		a.st.levels[a.depth] = lv
	} else {
		a.st.levels = append(a.st.levels, lv)
	}
}

func (a *analyzer) closeLevel() {
	if a.depth == 0 {
		return // too many closing parentheses: the server's error
	}
	lv := &a.st.levels[a.depth]
	a.endList(lv)
	a.endSelect(lv)
	a.depth--
}

// endSelect ends one SELECT of a query level: at a UNION or at the level's end.
func (a *analyzer) endSelect(lv *level) {
	if (lv.from || lv.groupBy > 0) && a.st.Kind != Explain {
		a.placeCalls(lv)
	}
	lv.calls, lv.numbers = int32(len(a.st.Calls)), int32(a.nextval)
	lv.from, lv.groupBy, lv.inFrom, lv.distinct, lv.into = false, 0, false, false, false
}

func (a *analyzer) endList(lv *level) {
	if lv.inList {
		a.endItem(lv)
		lv.inList = false
	}
}

// beginItem begins a select item after the current token.
func (a *analyzer) beginItem(lv *level) {
	lv.itemStart, lv.itemCalls, lv.itemExec = int32(a.End), int32(len(a.st.Calls)), a.InExec
}

// endItem records the select item before the current token, if it has a call.
func (a *analyzer) endItem(lv *level) {
	if len(a.st.Calls) > int(lv.itemCalls) && lv.names {
		l := lex.Lexer{Src: a.Src[:a.prevEnd], Mode: a.Mode, Pos: int(lv.itemStart), InExec: lv.itemExec}
		a.st.addItem(l, int(lv.itemCalls))
	}
}

// keyword handles a keyword, at any place.
func (a *analyzer) keyword() {
	st := a.st
	lv := &st.levels[a.depth]
	switch a.Kw {
	case lex.KwSelect:
		if lv.with {
			a.mainQuery(lv)
		}
		lv.query, lv.inList = true, true
		a.beginItem(lv)
		a.insertSource(InsertQuery)
	case lex.KwFrom:
		if lv.query {
			a.endList(lv)
			lv.inFrom = true
			a.dual(lv)
		}
	case lex.KwGroup:
		a.endList(lv)
		lv.groupBy, lv.inFrom = int32(a.End), false
		a.grouped = true
	case lex.KwAnalyze:
		if a.st.Kind == Explain && a.depth == 0 {
			a.refusal = refusalInAnalyze
		}
	case lex.KwWhere, lex.KwHaving, lex.KwOrder, lex.KwLimit, lex.KwProcedure, lex.KwLock, lex.KwFetch:
		a.targets = a.targets && a.depth > 0
		a.endList(lv)
		lv.inFrom = false
	case lex.KwNext, lex.KwPrevious:
		if a.calls {
			a.valueFor()
		}
	case lex.KwFor:
		if a.prev != lex.KwValue { // NEXT VALUE FOR
			a.endList(lv)
			lv.inFrom = false
		}
	case lex.KwUnion, lex.KwExcept, lex.KwIntersect:
		if lv.query || !a.empty {
			a.endList(lv)
			lv.union = true
			a.endSelect(lv)
			a.placeUnion(lv)
			lv.names = false
			st.Words |= UnionWord
		}
	case lex.KwInto:
		a.endList(lv)
		lv.into = true
	case lex.KwDistinct, lex.KwDistinctRow:
		lv.distinct = lv.distinct || lv.inList
	case lex.KwOutfile, lex.KwDumpfile:
		if a.prev == lex.KwInto {
			st.Words |= Into
		}
	case lex.KwWith:
		a.groups = a.Start // WITH ROLLUP
		if a.empty || a.depth == 0 && a.ins.on && a.ins.source == InsertUnknown {
			lv.query, lv.with, lv.from = true, true, true
			st.Words |= FromTable
		}
		if a.depth == 0 {
			a.insertSource(InsertQuery)
		}
	case lex.KwTable:
		if a.depth == 0 && a.ins.on {
			a.insertSource(InsertQuery)
		} else if a.empty {
			lv.query, lv.from = true, true
			st.Words |= FromTable
		}
	case lex.KwValues, lex.KwValue:
		if a.depth == 0 {
			a.insertSource(InsertValues)
		}
		if a.Kw == lex.KwValue && (a.prev == lex.KwNext || a.prev == lex.KwPrevious) {
			st.Words |= SequenceFunction
		}
	case lex.KwSet:
		if a.depth == 0 {
			a.targets = false
			a.insertSource(InsertSet)
		}
	case lex.KwOn:
		if a.ins.on && a.depth == 0 {
			if p := a.peek(); p.Kw == lex.KwDuplicate {
				a.endList(lv)
				a.endSelect(lv)
				a.part = partUpdate
			}
		}
	case lex.KwAs:
		if a.ins.on && a.depth == 0 && a.ins.source == InsertValues && a.part == partMain {
			a.part = partAlias // its names are no tuple
		}
	case lex.KwReturning:
		if a.depth == 0 {
			a.endList(lv)
			if a.ins.on {
				a.endSelect(lv)
			}
			a.part = partReturning
			if a.ins.on || st.Kind == Delete { // the client sees these columns
				lv.names, lv.inList = true, true
				a.beginItem(lv)
			}
		}
	case lex.KwUpdate, lex.KwDelete:
		if lv.with && a.depth == 0 {
			a.refusal = "NEXTVAL in WITH ... UPDATE and WITH ... DELETE, where the server may evaluate it several times,"
		}
	case lex.KwSQLCalcFoundRows:
		st.Words |= CalcFoundRows
	case lex.KwNextval, lex.KwLastInsertID, lex.KwConnectionID, lex.KwRowCount, lex.KwFoundRows, lex.KwGetLock, lex.KwReleaseLock,
		lex.KwReleaseAllLocks, lex.KwServiceGetReadLocks, lex.KwServiceGetWriteLocks, lex.KwServiceReleaseLocks, lex.KwLastval, lex.KwSetval:
		a.function(a.Kw)
	case lex.KwInformationSchema, lex.KwPerformanceSchema:
		st.Words |= SystemSchema
	case lex.KwMinimumValue, lex.KwNextNotCachedValue:
		a.sequenceColumn()
	case lex.KwSessionVariables, lex.KwSystemVariables:
		st.Words |= ReadsLastInsertID | ReadsWarnings
	}
}

// dual handles the word after FROM: FROM DUAL is no table.
func (a *analyzer) dual(lv *level) {
	if i := a.Pos + 1; i < len(a.Src) && a.Src[a.Pos] == ' ' && a.Src[i]|0x20 != 'd' && lex.BeginsWord(a.Src[i]) {
		a.st.Words |= FromTable // true for most tables, without a look ahead
		lv.from = true
		return
	}
	p := a.peek()
	if p.Kw != lex.KwDual {
		a.st.Words |= FromTable
		lv.from = true
		return
	}
	p.Next()
	switch {
	case p.Kind == lex.EOF, p.Is(';'), p.Is(')'):
		return
	case p.Kind == lex.Word:
		switch p.Kw {
		case lex.KwWhere, lex.KwGroup, lex.KwHaving, lex.KwOrder, lex.KwLimit, lex.KwProcedure, lex.KwLock, lex.KwFetch, lex.KwFor, lex.KwInto, lex.KwUnion,
			lex.KwExcept, lex.KwIntersect:
			return
		}
	}
	a.st.Words |= FromTable
	lv.from = true
}

// insertSource records the source of an INSERT's rows at the first word that shows it.
func (a *analyzer) insertSource(from InsertSource) {
	if a.ins.on && a.ins.source == InsertUnknown {
		a.ins.source = from
	}
}
