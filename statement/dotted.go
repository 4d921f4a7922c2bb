package statement

import "bytes"

// maxDotted bounds the different names in front of .NEXTVAL and .CURRVAL in a text.
const maxDotted = 8

// dottedTokens is what a text has of [schema .] s . NEXTVAL and . CURRVAL that can be no
// column: s stands nowhere else in the text as an identifier, so it is no table, alias,
// common table expression or schema of it. Nothing else could bring a table into scope.
type dottedTokens struct {
	calls []dottedToken // in text order
	next  int           // the first that was not asked for yet
}

type dottedToken struct {
	start, end   int
	execs        int32
	schema, name lexer // schema.kind is tEOF if there is none
	decoded      []byte
}

// dottedCall looks at a word of seven letters behind a dot: NEXTVAL or CURRVAL of a
// sequence, where no column could stand.
func (a *analyzer) dottedCall() {
	word := a.src[a.start:a.end]
	if !a.calls || !equalFold(word, "nextval") && !equalFold(word, "currval") || a.start < a.muted || !a.expressionHere() {
		return
	}
	if a.dotted == nil {
		a.dotted = findDotted(a.src, a.mode, &a.st.arena)
	}
	d := a.dotted
	for d.next < len(d.calls) && d.calls[d.next].end < a.end {
		d.next++
	}
	if d.next == len(d.calls) || d.calls[d.next].end != a.end {
		return
	}
	t := &d.calls[d.next]
	if t.execs != a.execs {
		return
	}
	c := FuncCall{Func: Nextval, Form: FormName, Spelling: AsColumn, Start: t.start, End: t.end, Name: t.decoded, Count: 1}
	if equalFold(word, "currval") {
		c.Func, c.Count = Lastval, 0
		a.st.Words |= SequenceFunction
	} else {
		a.number()
	}
	if t.schema.kind != tEOF {
		c.Form, c.Schema = FormQualified, a.st.arena.decodeName(t.schema)
	}
	a.add(c)
}

// expressionHere reports whether the current token is within an expression and not where
// tables or columns are named.
func (a *analyzer) expressionHere() bool {
	switch a.st.Kind {
	case Select, With, Values, Set, Do, Call:
	case Insert, Replace:
		if a.ins.source == fromNowhere {
			return false
		}
	case Update, Delete:
		if a.targets {
			return false
		}
	default:
		return false
	}
	for i := a.depth; i >= 0; i-- {
		lv := &a.st.levels[i]
		if lv.inFrom {
			return false
		}
		if lv.query {
			break
		}
	}
	return true
}

// findDotted reads a text for dottedTokens. It allocates: such texts are rare.
func findDotted(sql []byte, mode Mode, decoded *arena) *dottedTokens {
	d := &dottedTokens{}
	var names [][]byte // in front of .NEXTVAL
	l := lexer{src: sql, mode: mode}
	l.next()
	d.walk(l, func(t dottedToken) {
		t.decoded = decoded.decodeName(t.name)
		d.calls = append(d.calls, t)
		for _, n := range names {
			if bytes.Equal(n, t.decoded) {
				return
			}
		}
		if len(names) <= maxDotted {
			names = append(names, t.decoded)
		}
	}, nil)
	if len(names) > maxDotted {
		d.calls = nil
	}
	if len(d.calls) == 0 {
		return d
	}
	taken := make([]bool, len(names))
	var scratch arena
	d.walk(l, nil, func(l lexer) {
		scratch = scratch[:0]
		name := scratch.decodeName(l)
		for i, n := range names {
			taken[i] = taken[i] || sameIdentifier(n, name)
		}
	})
	free := d.calls[:0]
	for _, t := range d.calls {
		for i, n := range names {
			if bytes.Equal(n, t.decoded) && !taken[i] {
				free = append(free, t)
			}
		}
	}
	d.calls = free
	return d
}

// walk goes through the tokens from l on: found is told of each that can be a
// dottedToken, other of every identifier that is no part of one. Either may be nil.
func (d *dottedTokens) walk(l lexer, found func(dottedToken), other func(lexer)) {
	identifier := func(l *lexer) bool { return l.kind == tWord || l.kind == tQuoted }
	for l.kind != tEOF {
		if !identifier(&l) {
			system := l.kind == tSysVar
			if l.next(); system && identifier(&l) { // @@s.nextval
				l.next()
			}
			continue
		}
		table := namesTable(&l)
		if table {
			if l.next(); !identifier(&l) {
				continue
			}
		}
		// A chain of names with dots between.
		var chain [4]lexer
		n := 0
		before := l.afterDot
		for {
			if n < len(chain) {
				chain[n] = l
			} else if other != nil {
				other(l)
			}
			n++
			l.next()
			if !l.is('.') {
				break
			}
			if l.next(); !identifier(&l) {
				n = len(chain) // nothing that ends with a dot is one
				break
			}
		}
		if last := chain[max(0, min(n, 3)-1)]; !table && (n == 2 || n == 3) && !before && !l.is('(') && last.kind == tWord && isDottedWord(&last) &&
			chain[n-2].execs == last.execs && chain[0].execs == last.execs && notReserved(&chain[0]) {
			switch {
			case found != nil:
				t := dottedToken{start: chain[0].start, end: last.end, execs: last.execs, name: chain[n-2]}
				if n == 3 {
					t.schema = chain[0]
				}
				found(t)
			case n == 3:
				other(chain[0])
			}
			continue
		}
		if other != nil {
			for i := range min(n, len(chain)) {
				if identifier(&chain[i]) {
					other(chain[i])
				}
			}
		}
		if n == 1 && !before && namesSequenceNext(&chain[0], &l) {
			for identifier(&l) || l.is('.') {
				l.next()
			}
		}
	}
}

// namesSequenceNext reports whether the name of a sequence follows a word, as in NEXTVAL(s)
// and NEXT VALUE FOR s, and goes there. next is what stands behind the word.
func namesSequenceNext(word, next *lexer) bool {
	switch word.kw {
	case kwNextval, kwLastval, kwSetval:
		if !next.is('(') {
			return false
		}
	case kwValue:
		if next.kw != kwFor {
			return false
		}
	default:
		return false
	}
	next.next()
	return true
}

// namesTable reports whether the name of a table, or of nothing, follows l.
func namesTable(l *lexer) bool {
	switch l.kw {
	case kwFrom, kwInto, kwUpdate, kwTable, kwStraightJoin:
		return true
	}
	return l.kind == tWord && !l.afterDot && equalFold(l.src[l.start:l.end], "join")
}

func isDottedWord(l *lexer) bool {
	word := l.src[l.start:l.end]
	return equalFold(word, "nextval") || equalFold(word, "currval")
}

func notReserved(l *lexer) bool {
	return l.kind == tQuoted || !reservedWord(l.src[l.start:l.end])
}

// sameIdentifier reports whether a server could take two identifiers for the same. What
// it holds equal beyond ASCII is not known here.
func sameIdentifier(a, b []byte) bool {
	return bytes.EqualFold(a, b) || !ascii(a) && !ascii(b)
}

func ascii(b []byte) bool {
	for _, c := range b {
		if c >= 0x80 {
			return false
		}
	}
	return true
}
