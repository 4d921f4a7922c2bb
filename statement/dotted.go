package statement

import (
	"bytes"

	"seqproxy/statement/lex"
)

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
	schema, name lex.Lexer // schema.Kind is EOF if there is none
	decoded      []byte
}

// dottedCall looks at a word of seven letters behind a dot: NEXTVAL or CURRVAL of a
// sequence, where no column could stand.
func (a *analyzer) dottedCall() {
	word := a.Src[a.Start:a.End]
	if !a.calls || !lex.EqualFold(word, "nextval") && !lex.EqualFold(word, "currval") || a.Start < a.muted || !a.expressionHere() {
		return
	}
	if a.dotted == nil {
		a.dotted = findDotted(a.Src, a.Mode, &a.st.arena)
	}
	d := a.dotted
	for d.next < len(d.calls) && d.calls[d.next].end < a.End {
		d.next++
	}
	if d.next == len(d.calls) || d.calls[d.next].end != a.End {
		return
	}
	t := &d.calls[d.next]
	if t.execs != a.Execs {
		return
	}
	c := FuncCall{Func: Nextval, Form: FormName, Spelling: AsColumn, Start: t.start, End: t.end, Name: t.decoded, Count: 1}
	if lex.EqualFold(word, "currval") {
		c.Func, c.Count = Lastval, 0
		a.st.Words |= SequenceFunction
	} else {
		a.number()
	}
	if t.schema.Kind != lex.EOF {
		c.Form, c.Schema = FormQualified, a.st.arena.DecodeName(&t.schema)
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
func findDotted(sql []byte, mode lex.Mode, decoded *lex.Arena) *dottedTokens {
	d := &dottedTokens{}
	var names [][]byte // in front of .NEXTVAL
	l := lex.Lexer{Src: sql, Mode: mode}
	l.Next()
	d.walk(l, func(t dottedToken) {
		t.decoded = decoded.DecodeName(&t.name)
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
	var scratch lex.Arena
	d.walk(l, nil, func(l lex.Lexer) {
		scratch = scratch[:0]
		name := scratch.DecodeName(&l)
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
func (d *dottedTokens) walk(l lex.Lexer, found func(dottedToken), other func(lex.Lexer)) {
	identifier := func(l *lex.Lexer) bool { return l.Kind == lex.Word || l.Kind == lex.Quoted }
	for l.Kind != lex.EOF {
		if !identifier(&l) {
			system := l.Kind == lex.SysVar
			if l.Next(); system && identifier(&l) { // @@s.nextval
				l.Next()
			}
			continue
		}
		table := namesTable(&l)
		if table {
			if l.Next(); !identifier(&l) {
				continue
			}
		}
		// A chain of names with dots between.
		var chain [4]lex.Lexer
		n := 0
		before := l.AfterDot
		for {
			if n < len(chain) {
				chain[n] = l
			} else if other != nil {
				other(l)
			}
			n++
			l.Next()
			if !l.Is('.') {
				break
			}
			if l.Next(); !identifier(&l) {
				n = len(chain) // nothing that ends with a dot is one
				break
			}
		}
		if last := chain[max(0, min(n, 3)-1)]; !table && (n == 2 || n == 3) && !before && !l.Is('(') && last.Kind == lex.Word && isDottedWord(&last) &&
			chain[n-2].Execs == last.Execs && chain[0].Execs == last.Execs && notReserved(&chain[0]) {
			switch {
			case found != nil:
				t := dottedToken{start: chain[0].Start, end: last.End, execs: last.Execs, name: chain[n-2]}
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
			for identifier(&l) || l.Is('.') {
				l.Next()
			}
		}
	}
}

// namesSequenceNext reports whether the name of a sequence follows a word, as in NEXTVAL(s)
// and NEXT VALUE FOR s, and goes there. next is what stands behind the word.
func namesSequenceNext(word, next *lex.Lexer) bool {
	switch word.Kw {
	case lex.KwNextval, lex.KwLastval, lex.KwSetval:
		if !next.Is('(') {
			return false
		}
	case lex.KwValue:
		if next.Kw != lex.KwFor {
			return false
		}
	default:
		return false
	}
	next.Next()
	return true
}

// namesTable reports whether the name of a table, or of nothing, follows l.
func namesTable(l *lex.Lexer) bool {
	switch l.Kw {
	case lex.KwFrom, lex.KwInto, lex.KwUpdate, lex.KwTable, lex.KwStraightJoin:
		return true
	}
	return l.Kind == lex.Word && !l.AfterDot && lex.EqualFold(l.Src[l.Start:l.End], "join")
}

func isDottedWord(l *lex.Lexer) bool {
	word := l.Src[l.Start:l.End]
	return lex.EqualFold(word, "nextval") || lex.EqualFold(word, "currval")
}

func notReserved(l *lex.Lexer) bool {
	return l.Kind == lex.Quoted || !lex.Reserved(l.Src[l.Start:l.End])
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
