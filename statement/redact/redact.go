package redact

import "seqproxy/statement/lex"

// Longest bounds a redacted text in bytes, before its last word.
const Longest = 1 << 10

// NotUnderstood replaces a text that cannot be read, and therefore cannot be redacted.
const NotUnderstood = "(not understood)"

// Append appends sql to dst without anything that may be a secret. It writes a ? for each literal,
// no comments, and no more than Longest bytes. Of adjacent literals, and of rows, it keeps only the
// first. It replaces a whole text that it cannot read for certain: unterminated, malformed, or in
// an unknown character set. cut says that sql is only the beginning of the text.
//
// The result has keywords, names, operators, and words in places of names.
func Append(dst, sql []byte, mode lex.Mode, cut bool) []byte {
	if mode.Charset == lex.Unsupported {
		return append(dst, NotUnderstood...)
	}
	r := redactor{Lexer: lex.Lexer{Src: sql, Mode: mode}, dst: dst, begin: len(dst), cut: cut, first: true, values: -1}
	for r.step() {
		r.token()
	}
	if r.malformed || r.Bad && (!cut || len(r.dst) == r.begin) {
		return append(r.dst[:r.begin], NotUnderstood...)
	}
	r.hold()
	if r.stopped || cut {
		if n := len(r.dst); n > r.begin && r.dst[n-1] == ',' {
			r.dst = append(r.dst, ' ')
		}
		r.dst = append(r.dst, "..."...)
	}
	return r.dst
}

// redactor is one run of Append. The lexer is at the current token.
type redactor struct {
	lex.Lexer
	dst   []byte
	begin int // start of the output in dst
	cut   bool

	stopped   bool // the rest is left out
	malformed bool // no server accepts the text, so its meaning is unknown
	gap       bool // white space or a comment precedes the token

	// The token before.
	last   lex.Kind
	lastCh byte
	lastKw lex.Keyword

	first       bool // the token begins a statement
	administers bool // the statement does more than read and write rows

	depth  int  // of parentheses
	values int  // depth of the rows after VALUES; -1: none
	lists  bool // only literals since the last opening parenthesis

	list    list // state within a list of literals
	rows    list // state within a list of rows
	sign    byte // of a coming number, not yet written; 0: none
	signGap bool // gap before the sign
}

// list is a position in a list. A comma is written only when the next token turns out to be no
// further element.
type list uint8

const (
	noList    list = iota
	one            // after its first element
	oneComma       // and after a comma
	many           // after a further element; ", ..." is written for these
	manyComma      // and after a comma
)

// comma moves past a comma. It returns false outside of a list, where the comma is an ordinary one.
func (l *list) comma() bool {
	switch *l {
	case one:
		*l = oneComma
	case many:
		*l = manyComma
	default:
		return false
	}
	return true
}

// step reads the next token. It returns false at the end.
func (r *redactor) step() bool {
	if r.stopped || r.malformed {
		return false
	}
	last, lastEnd := r.Kind, r.End
	introduces := last == lex.Word && r.Src[r.Start] == '_' // _utf8mb4 and the like
	quotedBefore := last == lex.String || last == lex.Quoted || last == lex.UserVar && endsQuoted(r.Src[r.Start:r.End])
	r.last, r.lastCh, r.lastKw = last, r.Ch, r.Kw
	r.Next()
	r.gap = r.Start > lastEnd
	switch {
	case r.Bad, r.Kind == lex.EOF:
		return false
	case r.cut && r.End == len(r.Src), len(r.dst)-r.begin >= Longest: // the token may continue
		r.stopped = true
		return false
	}
	if r.gap || last == lex.EOF {
		return true
	}
	// it's: with an undoubled quote in a text, the server and this lexer read as literals what its
	// author meant to be between two literals.
	switch r.Kind {
	case lex.String:
		r.malformed = last == lex.Number || last == lex.Quoted || last == lex.UserVar || last == lex.Word && r.lastKw == lex.KwNone && !introduces
	case lex.Word, lex.Number, lex.Quoted:
		r.malformed = quotedBefore
	}
	return !r.malformed
}

func endsQuoted(w []byte) bool {
	c := w[len(w)-1]
	return c == '\'' || c == '"' || c == '`'
}

// token writes the current token.
func (r *redactor) token() {
	if r.first && r.Kind != lex.Punct {
		r.first, r.administers = false, !touchesRows(r.Kw)
	}
	switch w := r.Src[r.Start:r.End]; {
	case r.Kind == lex.Punct:
		r.punct()
	case r.Kind == lex.String, r.Kind == lex.Number, len(w) > longestName:
		r.literal()
	case r.Kind == lex.Quoted && w[0] == '"' && !isPlainName(w[1:len(w)-1]):
		r.literal() // the author means a string, whatever the server takes it for
	case r.Kind == lex.UserVar && (endsQuoted(w) && w[len(w)-1] != '`' || notASCII(w)):
		// bob@'host'
		r.before()
		r.dst = append(r.dst, "@?"...)
	case r.Kind == lex.Word && (w[0] >= '0' && w[0] <= '9' || notASCII(w)):
		// A number with something glued to it, a word in quotes beyond ASCII, or only a name. All
		// are rare.
		r.literal()
	case r.Kind == lex.Word && w[0] == '$': // MySQL takes text between $$ and $$ for a string
		r.before()
		r.stopped = true
	default:
		r.before()
		r.dst = append(r.dst, w...)
		if r.Kind == lex.Word {
			// What follows is secret, quoted or not.
			r.stopped = lex.EqualFold(w, "identified") || r.administers && endsIn(w, "password")
			if r.Kw == lex.KwValues || r.Kw == lex.KwValue {
				r.values = r.depth
			}
		}
	}
}

// longestName is more bytes than any name has with its quotes.
const longestName = 300

// touchesRows reports whether a statement that begins with kw only reads and writes rows.
func touchesRows(kw lex.Keyword) bool {
	switch kw {
	case lex.KwSelect, lex.KwInsert, lex.KwUpdate, lex.KwDelete, lex.KwReplace, lex.KwWith, lex.KwValues, lex.KwDo, lex.KwExplain, lex.KwDescribe, lex.KwDesc,
		lex.KwBegin, lex.KwStart, lex.KwCommit, lex.KwRollback, lex.KwShow:
		return true
	}
	return false
}

func endsIn(w []byte, folded string) bool {
	return len(w) >= len(folded) && lex.EqualFold(w[len(w)-len(folded):], folded)
}

func notASCII(w []byte) bool {
	for _, c := range w {
		if c >= 0x80 {
			return true
		}
	}
	return false
}

// isPlainName reports whether a text in double quotes, under ANSI_QUOTES, is certainly meant as a
// name.
func isPlainName(w []byte) bool {
	for _, c := range w {
		if c >= 0x80 || !lex.InWord(c) && c != '-' && c != '.' {
			return false
		}
	}
	return len(w) > 0 && !lex.IsDigit(w[0])
}

// literal writes a ? for the current token, or for a list of them.
func (r *redactor) literal() {
	switch r.list {
	case oneComma:
		r.dst = append(r.dst, ", ..."...)
		r.list = many
	case manyComma:
		r.list = many
	default:
		if r.Kind == lex.String && r.last == lex.String { // 'a' 'b' is one
			return
		}
		r.lists = r.last == lex.Punct && r.lastCh == '(' || r.sign != 0 && r.lists
		gap := r.gap
		if r.sign != 0 {
			gap = r.signGap
		}
		r.hold()
		r.space(gap)
		r.dst = append(r.dst, '?')
		r.list = one
	}
	r.sign = 0
}

// before writes what must precede a token that is written unchanged.
func (r *redactor) before() {
	r.hold()
	if r.sign != 0 {
		r.space(r.signGap)
		r.dst = append(r.dst, r.sign)
		r.sign = 0
	}
	r.space(r.gap)
	r.lists = false
}

// hold writes a comma that was held back, and ends the lists.
func (r *redactor) hold() {
	if r.list == oneComma || r.list == manyComma || r.rows == oneComma || r.rows == manyComma {
		r.dst = append(r.dst, ',')
	}
	r.list, r.rows = noList, noList
}

// space writes the space before a token.
func (r *redactor) space(gap bool) {
	if n := len(r.dst); gap && n > r.begin && r.dst[n-1] != '(' {
		r.dst = append(r.dst, ' ')
	}
}

// punct writes one byte.
func (r *redactor) punct() {
	switch c := r.Ch; {
	case c == '?':
		r.literal()
	case c == ',' && r.sign == 0 && (r.list.comma() || r.rows.comma()):
	case c == '(' && r.rows != noList && r.last == lex.Punct && r.lastCh == ',':
		r.skipRow()
	case c == '(':
		r.before()
		r.dst = append(r.dst, c)
		r.depth++
		r.lists = true
	case c == ')':
		row := r.lists && (r.list == one || r.list == many) || r.depth == r.values+1 && r.values >= 0
		r.gap = false
		r.before()
		r.dst = append(r.dst, c)
		r.depth--
		if row {
			r.rows = one
		}
	case (c == '-' || c == '+') && r.sign == 0 && r.signs():
		r.sign, r.signGap = c, r.gap
		r.lists = r.lists && r.last == lex.Punct && r.lastCh == '(' || r.list != noList && r.lists
	case c == ';':
		r.before()
		r.dst = append(r.dst, c)
		r.stopped = r.administers // the statement may change how the rest is read
		r.first, r.values = true, -1
	default:
		r.before()
		r.dst = append(r.dst, c)
	}
}

// signs reports whether the current - or + is the sign of the next token.
func (r *redactor) signs() bool {
	switch r.last {
	case lex.Punct:
		return r.lastCh != ')' && r.lastCh != '?' && r.lastCh != '-' && r.lastCh != '+'
	case lex.Assign:
		return true
	case lex.Word:
		return r.lastKw != lex.KwNone
	}
	return false
}

// skipRow skips a row. The current token is its parenthesis.
func (r *redactor) skipRow() {
	if r.rows == oneComma {
		r.dst = append(r.dst, ", ..."...)
	}
	r.rows = many
	for depth := 1; depth > 0 && r.step(); {
		switch {
		case r.Is('('):
			depth++
		case r.Is(')'):
			depth--
		}
	}
}
