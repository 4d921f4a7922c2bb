package statement

import (
	"bytes"

	"seqproxy/statement/ddl"
	"seqproxy/statement/lex"
)

// sequence begins a statement about sequences, or to the proxy. The current token is the word
// SEQUENCE or a similar one. The result reads what follows it.
func (a *analyzer) sequence(k Kind) ddl.Reader {
	st := a.st
	st.Kind, st.rare = k, true
	st.Words |= SequenceStatement
	if st.Sequence == nil {
		st.Sequence = st.newSequence()
	}
	a.empty = false
	a.advance()
	return ddl.Reader{Lexer: a.Lexer, Memory: &st.arena, To: st.Sequence}
}

// newSequence returns an empty Sequence in the memory of the last one.
func (st *Statement) newSequence() *ddl.Sequence {
	if st.sequence == nil {
		st.sequence = new(ddl.Sequence)
	}
	*st.sequence = ddl.Sequence{Names: st.sequence.Names[:0], Schemas: st.sequence.Schemas[:0]}
	return st.sequence
}

// behind moves to r's position and skips the rest of the statement.
func (a *analyzer) behind(r *ddl.Reader) bool {
	a.Lexer = r.Lexer
	if a.Kind != lex.EOF && !a.Is(';') {
		return a.scan()
	}
	a.finish()
	return a.Kind != lex.EOF
}

// createSequence reads CREATE ... SEQUENCE. The current token is its last word.
func (a *analyzer) createSequence(orReplace, temporary bool) bool {
	r := a.sequence(CreateSequence)
	r.Create(orReplace, temporary)
	return a.behind(&r)
}

// alterSequence reads ALTER SEQUENCE. The current token is its last word.
func (a *analyzer) alterSequence() bool {
	r := a.sequence(AlterSequence)
	r.Alter()
	return a.behind(&r)
}

// dropSequence reads DROP ... SEQUENCE. The current token is its last word.
func (a *analyzer) dropSequence(temporary bool) bool {
	r := a.sequence(DropSequence)
	r.Drop(temporary)
	return a.behind(&r)
}

// namedSequences reads a statement in which only names follow. The current token is its last word.
func (a *analyzer) namedSequences(k Kind) bool {
	r := a.sequence(k)
	switch k {
	case FlushSequences:
		r.NamesIfAny()
	case CheckSequence:
		r.Names()
	default:
		r.Name()
	}
	return a.behind(&r)
}

// showSequences reads SHOW SEQUENCES. The current token is its last word.
func (a *analyzer) showSequences() bool {
	r := a.sequence(ShowSequences)
	r.Show()
	return a.behind(&r)
}

// decodeFunction is the second word of SELECT SEQUENCE_DECODE.
const decodeFunction = "SEQUENCE_DECODE"

// decodes reports whether SEQUENCE_DECODE follows SELECT, the current token. It runs for each
// SELECT, so it compares bytes before it reads a token.
func (a *analyzer) decodes() bool {
	rest := bytes.TrimLeft(a.Src[a.End:], " \t\r\n")
	if n := len(decodeFunction); len(rest) <= n || !lex.EqualFold(rest[:n], decodeFunction) {
		return false
	}
	p := a.peek()
	if p.Kind != lex.Word || p.End-p.Start != len(decodeFunction) {
		return false
	}
	p.Next()
	return p.Is('(')
}

// decodeSequence reads SELECT SEQUENCE_DECODE(...). The current token is its first word.
func (a *analyzer) decodeSequence() bool {
	a.advance()
	r := a.sequence(DecodeSequence)
	r.Decode()
	return a.behind(&r)
}

// proxyStatement reads SEQPROXY and SHOW SEQPROXY. The current token is their last word.
func (a *analyzer) proxyStatement(show bool) bool {
	r := a.sequence(Seqproxy)
	a.st.Proxy = r.Proxy(show)
	return a.behind(&r)
}
