package idiom

import (
	"bytes"

	"seqproxy/statement/lex"
)

// maxDotted bounds the number of different names before .NEXTVAL and .CURRVAL in a text.
const maxDotted = 8

// Dotted holds Oracle's [schema .] s . NEXTVAL and s . CURRVAL of a text, if they cannot be
// columns. They cannot if s is no other identifier in the text: then it is no table, alias, common
// table expression or schema there, and nothing else could bring a table into scope.
type Dotted struct {
	calls []DottedCall // in text order
	next  int          // the first that At has not looked at
}

// DottedCall is one such call: sql[Start:End].
type DottedCall struct {
	Start, End int
	Execs      int32 // as in the call's tokens
	// Schema and Name are decoded. Schema is nil if there is none.
	Schema, Name []byte

	schema, name lex.Lexer // schema.Kind is EOF if there is none
}

// At returns the call that ends at an offset, or nil. Callers must ask with rising offsets.
func (d *Dotted) At(end int) *DottedCall {
	for d.next < len(d.calls) && d.calls[d.next].End < end {
		d.next++
	}
	if d.next == len(d.calls) || d.calls[d.next].End != end {
		return nil
	}
	return &d.calls[d.next]
}

// FindDotted reads a text. It decodes names into memory. It allocates, since such texts are rare.
func FindDotted(sql []byte, mode lex.Mode, memory *lex.Arena) *Dotted {
	d := &Dotted{}
	var names [][]byte // the names before .NEXTVAL
	l := lex.Lexer{Src: sql, Mode: mode}
	l.Next()
	d.walk(l, func(t DottedCall) {
		t.Name = memory.DecodeName(&t.name)
		if t.schema.Kind != lex.EOF {
			t.Schema = memory.DecodeName(&t.schema)
		}
		d.calls = append(d.calls, t)
		for _, n := range names {
			if bytes.Equal(n, t.Name) {
				return
			}
		}
		if len(names) <= maxDotted {
			names = append(names, t.Name)
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
			taken[i] = taken[i] || lex.SameName(n, name)
		}
	})
	free := d.calls[:0]
	for _, t := range d.calls {
		for i, n := range names {
			if bytes.Equal(n, t.Name) && !taken[i] {
				free = append(free, t)
			}
		}
	}
	d.calls = free
	return d
}

// walk reads the tokens from l on. It calls found for each possible DottedCall, and other for every
// identifier outside of these. Either may be nil.
func (d *Dotted) walk(l lex.Lexer, found func(DottedCall), other func(lex.Lexer)) {
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
		// A chain of names joined by dots.
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
				n = len(chain) // a chain that ends in a dot is no call
				break
			}
		}
		if last := chain[max(0, min(n, 3)-1)]; !table && (n == 2 || n == 3) && !before && !l.Is('(') && last.Kind == lex.Word && isDottedWord(&last) &&
			chain[n-2].Execs == last.Execs && chain[0].Execs == last.Execs && notReserved(&chain[0]) {
			switch {
			case found != nil:
				t := DottedCall{Start: chain[0].Start, End: last.End, Execs: last.Execs, name: chain[n-2]}
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

// namesSequenceNext reports whether the name of a sequence follows a word, as in NEXTVAL(s) and
// NEXT VALUE FOR s. It moves next, the lexer behind the word, there.
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

// namesTable reports whether l precedes the name of a table, or of nothing.
func namesTable(l *lex.Lexer) bool {
	switch l.Kw {
	case lex.KwFrom, lex.KwInto, lex.KwUpdate, lex.KwTable, lex.KwStraightJoin:
		return true
	}
	return !l.AfterDot && l.Spells("join")
}

func isDottedWord(l *lex.Lexer) bool {
	word := l.Src[l.Start:l.End]
	return lex.EqualFold(word, "nextval") || lex.EqualFold(word, "currval")
}

func notReserved(l *lex.Lexer) bool {
	return l.Kind == lex.Quoted || !lex.Reserved(l.Src[l.Start:l.End])
}
