package redact

import "seqproxy/statement/lex"

// Longest is how many bytes a redacted text may have, before its last word.
const Longest = 1 << 10

// NotUnderstood stands for a text that cannot be read, and therefore not be redacted.
const NotUnderstood = "(not understood)"

// Append appends sql to dst without anything that may be a secret: a ? for each literal, no
// comments, and no more than Longest bytes. Of literals one behind the other, and of rows,
// only the first is there. What cannot be read for certain, because it is unterminated,
// malformed or in a character set that is not known, is replaced whole. If cut is set sql is
// only the beginning of the text.
//
// What is left are keywords, names, operators, and words in the place of a name.
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

// redactor is one run of Append. The lexer's token is the one at hand.
type redactor struct {
	lex.Lexer
	dst   []byte
	begin int // of what is written, in dst
	cut   bool

	stopped   bool // the rest is left out
	malformed bool // no server takes it, so nothing is known of what it means
	gap       bool // white space or a comment stands before the token

	// The token before.
	last   lex.Kind
	lastCh byte
	lastKw lex.Keyword

	first       bool // the token is the first of a statement
	administers bool // the statement does more than to read and write rows

	depth  int  // of parentheses
	values int  // depth at which rows stand behind VALUES; -1: none do
	lists  bool // nothing but literals came behind the last parenthesis that was opened

	list    list // of literals
	rows    list // of rows
	sign    byte // of a number that is about to come, not written; 0: none
	signGap bool // before it
}

// list is where in a list the redactor is. A comma is written when it is known that what
// follows is no further element.
type list uint8

const (
	noList    list = iota
	one            // behind its first element
	oneComma       // and the comma
	many           // behind a further element; ", ..." is written for those
	manyComma      // and the comma
)

// comma goes on behind a comma; it is false if there is no list, so that the comma is
// nothing but a comma.
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

// step reads the next token, and says whether there is one to be looked at.
func (r *redactor) step() bool {
	if r.stopped || r.malformed {
		return false
	}
	last, lastEnd := r.Kind, r.End
	introduces := last == lex.Word && r.Src[r.Start] == '_' // _utf8mb4 or its like
	quotedBefore := last == lex.String || last == lex.Quoted || last == lex.UserVar && endsQuoted(r.Src[r.Start:r.End])
	r.last, r.lastCh, r.lastKw = last, r.Ch, r.Kw
	r.Next()
	r.gap = r.Start > lastEnd
	switch {
	case r.Bad, r.Kind == lex.EOF:
		return false
	case r.cut && r.End == len(r.Src), len(r.dst)-r.begin >= Longest: // the token may go on
		r.stopped = true
		return false
	}
	if r.gap || last == lex.EOF {
		return true
	}
	// it's: whoever does not double a quote has the server, and us, take what stands between
	// two literals for the literals.
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

// token writes the token at hand.
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
		r.literal() // who writes that means a string, whatever the server takes it for
	case r.Kind == lex.UserVar && (endsQuoted(w) && w[len(w)-1] != '`' || notASCII(w)):
		// bob@'host'
		r.before()
		r.dst = append(r.dst, "@?"...)
	case r.Kind == lex.Word && (w[0] >= '0' && w[0] <= '9' || notASCII(w)):
		// A number with something glued to it, a word in quotes that are not ASCII's, or
		// only a name: all of them are rare.
		r.literal()
	case r.Kind == lex.Word && w[0] == '$': // what MySQL has between $$ and $$ is a text
		r.before()
		r.stopped = true
	default:
		r.before()
		r.dst = append(r.dst, w...)
		if r.Kind == lex.Word {
			// what follows is secret, in quotes or not
			r.stopped = lex.EqualFold(w, "identified") || r.administers && endsIn(w, "password")
			if r.Kw == lex.KwValues || r.Kw == lex.KwValue {
				r.values = r.depth
			}
		}
	}
}

// longestName is what the longest name takes, in bytes and with quotes, and more.
const longestName = 300

// touchesRows says whether a statement that begins with kw does no more than to read and
// write rows.
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

// isPlainName says whether what stands in double quotes, under ANSI_QUOTES, is surely meant
// for a name.
func isPlainName(w []byte) bool {
	for _, c := range w {
		if c >= 0x80 || !lex.InWord(c) && c != '-' && c != '.' {
			return false
		}
	}
	return len(w) > 0 && !lex.IsDigit(w[0])
}

// literal writes a ? for the token at hand, or for a list of them.
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

// before writes what is due before a token that is written as it is.
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

// hold writes the comma that was held back, and ends the lists.
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
		r.stopped = r.administers // it may change how the rest is to be read
		r.first, r.values = true, -1
	default:
		r.before()
		r.dst = append(r.dst, c)
	}
}

// signs says whether the - or + at hand is the sign of what follows.
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

// skipRow leaves out a row, whose parenthesis is the token at hand.
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
