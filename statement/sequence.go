package statement

// createSequence reads what follows CREATE ... SEQUENCE
// (https://mariadb.com/kb/en/create-sequence/). What MariaDB knows and seqproxy
// does not is Unsupported; what nobody knows is a Problem.
func (a *analyzer) createSequence(orReplace, temporary bool) bool {
	a.st.Kind, a.st.rare = CreateSequence, true
	s := &a.st.Sequence
	if orReplace {
		a.unsupported("OR REPLACE")
	}
	if temporary {
		a.unsupported("TEMPORARY")
	}
	a.advance()
	if a.kw == kwIf {
		if p := a.peek(); p.kw == kwNot {
			if p.next(); p.kw == kwExists {
				s.IfExists = true
				a.moveTo(p)
				a.advance()
			}
		}
	}
	if !a.sequenceName() {
		return a.sequenceProblem("a sequence name is missing")
	}
	for a.kind != tEOF && !a.is(';') {
		if !a.sequenceOption() {
			return a.sequenceProblem("unknown option")
		}
	}
	a.finish()
	return a.kind != tEOF
}

// sequenceOption reads one option; false if it is none.
func (a *analyzer) sequenceOption() bool {
	s := &a.st.Sequence
	option := a.kw
	a.advance()
	switch option {
	case kwStart:
		if a.kw == kwWith {
			a.advance()
		} else {
			a.equals()
		}
		return a.sequenceNumber(&s.HasStart, &s.Start, "START")
	case kwCache:
		a.equals()
		return a.sequenceNumber(&s.HasCache, &s.Cache, "CACHE")
	case kwIncrement:
		a.unsupported("INCREMENT")
		if a.kw == kwBy {
			a.advance()
		} else {
			a.equals()
		}
		return a.signedNumber()
	case kwMinvalue, kwMaxvalue:
		a.unsupported(map[keyword]string{kwMinvalue: "MINVALUE", kwMaxvalue: "MAXVALUE"}[option])
		a.equals()
		return a.signedNumber()
	case kwNo:
		switch a.kw {
		case kwMinvalue:
			a.unsupported("NO MINVALUE")
		case kwMaxvalue:
			a.unsupported("NO MAXVALUE")
		case kwCache:
			a.unsupported("NO CACHE")
		case kwCycle:
			a.unsupported("NO CYCLE")
		case kwOrder:
			a.unsupported("NO ORDER")
		default:
			return false
		}
		a.advance()
		return true
	case kwNominvalue:
		a.unsupported("NOMINVALUE")
	case kwNomaxvalue:
		a.unsupported("NOMAXVALUE")
	case kwNocache:
		a.unsupported("NOCACHE")
	case kwCycle:
		a.unsupported("CYCLE")
	case kwNocycle:
		a.unsupported("NOCYCLE")
	case kwOrder:
		a.unsupported("ORDER")
	case kwNoorder:
		a.unsupported("NOORDER")
	case kwRestart:
		a.unsupported("RESTART")
		if a.kw == kwWith {
			a.advance()
		} else {
			a.equals()
		}
		a.signedNumber()
	case kwAs:
		// AS type [UNSIGNED]
		a.unsupported("AS")
		for a.kind == tWord && a.kw == kwNone {
			a.advance()
		}
	case kwEngine, kwComment:
		a.unsupported(map[keyword]string{kwEngine: "ENGINE", kwComment: "COMMENT"}[option])
		a.equals()
		if a.kind != tWord && a.kind != tString && a.kind != tQuoted {
			return false
		}
		a.advance()
	default:
		return false
	}
	return true
}

// sequenceNumber reads an option's number that must be positive.
func (a *analyzer) sequenceNumber(has *bool, value *uint64, option string) bool {
	if *has {
		a.sequenceError(option + " is given twice")
	}
	if a.is('-') {
		a.sequenceError(option + " must not be negative")
		return a.signedNumber()
	}
	if a.is('+') {
		a.advance()
	}
	n, ok := uint64(0), false
	if a.kind == tNumber {
		n, ok = parseUint(a.src[a.start:a.end])
	}
	if !ok {
		a.sequenceError(option + " needs a whole number")
		return false
	}
	*has, *value = true, n
	a.advance()
	return true
}

// signedNumber passes over a number.
func (a *analyzer) signedNumber() bool {
	if a.is('-') || a.is('+') {
		a.advance()
	}
	if a.kind != tNumber {
		return false
	}
	a.advance()
	return true
}

func (a *analyzer) equals() {
	if a.is('=') {
		a.advance()
	}
}

func (a *analyzer) unsupported(option string) {
	if a.st.Sequence.Unsupported == "" {
		a.st.Sequence.Unsupported = option
	}
}

func (a *analyzer) sequenceError(problem string) {
	if a.st.Sequence.Problem == "" {
		a.st.Sequence.Problem = problem
	}
}

// sequenceProblem notes a problem and passes over the rest.
func (a *analyzer) sequenceProblem(problem string) bool {
	a.sequenceError(problem)
	if a.kind == tEOF || a.is(';') {
		a.finish()
		return a.kind != tEOF
	}
	return a.scan()
}

// sequenceName reads a name, quoted in any way or not, and goes past it.
func (a *analyzer) sequenceName() bool {
	st := a.st
	if a.kind != tWord && a.kind != tQuoted && !a.plainString() {
		return false
	}
	name := st.decode(a.lexer)
	if p := a.peek(); a.kind != tString && p.is('.') {
		if p.next(); p.kind == tWord || p.kind == tQuoted {
			name = st.qualified(name, st.decode(p))
			a.moveTo(p)
		}
	}
	st.Sequence.Names = append(st.Sequence.Names, name)
	a.advance()
	return true
}

func (a *analyzer) plainString() bool {
	return a.kind == tString && (a.src[a.start] == '\'' || a.src[a.start] == '"')
}

// dropSequence reads what follows DROP ... SEQUENCE.
func (a *analyzer) dropSequence(temporary bool) bool {
	a.st.Kind, a.st.rare = DropSequence, true
	if temporary {
		a.unsupported("TEMPORARY")
	}
	a.advance()
	if a.kw == kwIf {
		if p := a.peek(); p.kw == kwExists {
			a.st.Sequence.IfExists = true
			a.moveTo(p)
			a.advance()
		}
	}
	for {
		if !a.sequenceName() {
			return a.sequenceProblem("a sequence name is missing")
		}
		if !a.is(',') {
			break
		}
		a.advance()
	}
	if a.kind != tEOF && !a.is(';') {
		return a.sequenceProblem("more than names")
	}
	a.finish()
	return a.kind != tEOF
}
