package statement

// tableName reads the name of the table that a statement changes, whatever words
// it is of, and records it. name is its first token, and last its last. It is false
// if there is none.
func (a *analyzer) tableName(name lexer, k Kind) (last lexer, named bool) {
	if name.kind != tWord && name.kind != tQuoted {
		return name, false
	}
	t := TableRef{Kind: k, Statement: a.index, Begin: a.first, Start: name.start}
	first, parts := name, 1
	for {
		p := name
		if p.next(); !p.is('.') {
			break
		}
		if p.next(); p.kind != tWord && p.kind != tQuoted {
			parts = 0 // the server's error
			break
		}
		name = p
		parts++
	}
	// Of a name in three parts nobody knows what the first is.
	if parts != 1 && parts != 2 || name.seenCond || name.bad {
		return name, true
	}
	if parts == 2 {
		t.Schema = a.st.decode(first)
	}
	t.Name, t.End = a.st.decode(name), name.end
	a.st.Tables = append(a.st.Tables, t)
	return name, true
}

// updatedTable looks ahead to the table of UPDATE [LOW_PRIORITY] [IGNORE] t SET.
func (a *analyzer) updatedTable() {
	p := a.peek()
	for p.kw == kwLowPriority || p.kw == kwIgnore {
		p.next()
	}
	before := len(a.st.Tables)
	last, named := a.tableName(p, Update)
	if !named || len(a.st.Tables) == before {
		return
	}
	if last.next(); last.kw != kwSet || last.seenCond {
		a.st.Tables = a.st.Tables[:before]
	}
}
