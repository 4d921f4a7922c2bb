package statement

// Late looks closely at statement index of a text of several, in which numbers are taken
// and LAST_INSERT_ID() is read: where the first number, of the call leader, can be made
// LAST_INSERT_ID() behind all that reads it. at is the call with that effect, which is
// leader itself if nothing reads behind it. sql is the text that st was analysed from, and
// numbers says which calls are given a number.
//
// It is known of INSERT and REPLACE with VALUES and SET: their values are evaluated in the
// order of the text, each once if it stands for itself.
func (st *Statement) Late(sql []byte, index int, numbers []bool) (leader, at int, ok bool) {
	var t *TableRef
	for i := range st.Tables {
		if st.Tables[i].Statement == index && (st.Tables[i].Kind == Insert || st.Tables[i].Kind == Replace) {
			t = &st.Tables[i]
		}
	}
	if t == nil {
		return 0, 0, false
	}
	l := lexer{src: sql, mode: st.mode}
	for l.end < t.End && l.kind != tEOF || l.pos == 0 {
		l.next()
	}
	next := 0 // of st.Calls
	for next < len(st.Calls) && st.Calls[next].Start < t.End {
		next++
	}
	leader, at = -1, -1
	read, readAlone, alone, leaderAlone := -1, false, false, false
	depth, source := 0, kwNone
	equals := 0 // in this assignment of SET
	prev := l
	for l.next(); l.kind != tEOF && (depth > 0 || !l.is(';')); l.next() {
		if next < len(st.Calls) && l.start == st.Calls[next].Start {
			c := &st.Calls[next]
			reads := c.Func == LastInsertID || c.Func == LastInsertIDVariable
			before := prev
			prev = l
			prev.pos, prev.end, prev.kind, prev.ch, prev.kw = c.End, c.End, tPunct, ')', kwNone
			l = prev
			if reads || numbers[next] {
				if source == kwNone {
					return 0, 0, false
				}
				alone = standsAlone(&l, &before, source, depth) && equals < 2
			}
			switch {
			case reads:
				read, readAlone = next, alone
			case numbers[next] && leader < 0:
				leader, leaderAlone = next, alone
			}
			if reads || numbers[next] {
				at = next
			}
			next++
			continue
		}
		switch {
		case l.is('('):
			depth++
		case l.is(')'):
			depth--
		case depth > 0:
		case l.is(','):
			equals = 0
		case source == kwSet && (l.is('=') || l.kind == tAssign):
			equals++
		case source == kwNone && (l.kw == kwValues || l.kw == kwValue || l.kw == kwSet):
			source = l.kw
		case source == kwNone && (l.kw == kwSelect || l.kw == kwWith || l.kw == kwTable):
			return 0, 0, false
		case l.kw == kwOn, l.kw == kwReturning:
			source = kwNone // what stands here is evaluated as often as rows ask for it
		}
		prev = l
	}
	switch {
	case l.bad || l.seenCond || leader < 0 || !leaderAlone:
		return 0, 0, false
	case leader > read:
		return leader, leader, true
	case readAlone:
		return leader, read, true
	}
	return leader, at, alone && at > read
}

// standsAlone reports whether a call, at whose end l is, is a whole value of VALUES or of
// SET; before is the token in front of it.
func standsAlone(l, before *lexer, source keyword, depth int) bool {
	behind := *l
	behind.next()
	if source == kwSet {
		return depth == 0 && (before.is('=') || before.kind == tAssign) &&
			(behind.is(',') || behind.is(';') || behind.kind == tEOF || behind.kw == kwOn || behind.kw == kwReturning || behind.kw == kwAs)
	}
	return depth == 1 && (before.is('(') || before.is(',')) && (behind.is(',') || behind.is(')'))
}
