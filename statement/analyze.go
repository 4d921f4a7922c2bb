package statement

import (
	"math"

	"seqproxy/statement/idiom"
	"seqproxy/statement/lex"
)

// maxDepth bounds the parentheses that are followed; deeper texts are Other.
const maxDepth = 2048

// maxCalls bounds the calls of a text that are recorded: each takes some twenty times the memory
// that its text takes.
const maxCalls = 100_000

// maxNamesDepth bounds the depth at which select items are recorded: each is
// read a second time for its alias, by every level around it.
const maxNamesDepth = 16

// analyzer is the state of one Analyze. It lives on the stack.
type analyzer struct {
	lex.Lexer
	st *Statement

	depth   int // current level: st.levels[depth]
	prevEnd int // where the token before ended
	nextval int // NEXTVALs seen
	muted   int // calls before this offset belong to another call's argument
	index   int // statements in front that are not empty
	first   int // where the current statement begins
	groups  int // where the last word begins that may make several groups of one
	setTo   int // arguments of a SETVAL were looked through up to here

	schema []byte // that the current statement names, as Statement.Schema

	problem string // first reason why a NEXTVAL cannot be given a number
	refusal string // why none in this statement can

	ins    insertState
	dotted *idiom.Dotted // nil until one is looked for

	empty bool        // the current level has no token yet
	prev  lex.Keyword // keyword of the token before, KwNone if it was none
	part  part

	calls bool // calls are recorded in this kind of statement
	table bool // within CREATE TABLE: only NEXTVAL('s') is recorded
	// compound: BEGIN NOT ATOMIC, whose body is the affair of the server.
	compound bool
	tooMany  bool // there are more calls than maxCalls
	prepares bool // a statement of the text is PREPARE or EXECUTE IMMEDIATE
	shifts   bool // a statement before may have changed how texts are read
	shifted  bool // a NEXTVAL stands behind one
	rows     bool // one of this statement is evaluated once per row of the result
	targets  bool // of an UPDATE or DELETE, the part that names tables
	grouped  bool // a GROUP BY came
}

// insertState is what an INSERT or REPLACE has shown of itself.
type insertState struct {
	on     bool       // within INSERT or REPLACE
	source insertFrom // where the rows come from
	row    int        // index of the VALUES tuple, -1 before the first
	update int        // NEXTVALs in ON DUPLICATE KEY UPDATE
}

// part is what a statement has come to, outside of parentheses.
type part uint8

const (
	partMain      part = iota
	partAlias          // of a VALUES, and what follows
	partUpdate         // ON DUPLICATE KEY UPDATE
	partReturning      // RETURNING
)

// Analyze finds out what sql asks for, and overwrites st. It keeps a reference
// to sql in the slices that it fills, does not change it, and allocates only
// until st's slices are large enough.
func (st *Statement) Analyze(sql []byte, mode lex.Mode) {
	st.reset(mode)
	st.resetRare()
	if mode.Charset >= lex.Unsupported || len(sql) > math.MaxInt32 {
		st.unreadable(sql)
		return
	}
	var a analyzer // field by field: a literal is made elsewhere, and copied
	a.Src, a.Mode, a.st = sql, mode, st
	statements := 0
	first := Empty
	for a.Pos < len(sql) || statements == 0 {
		st.Kind = Empty
		a.index = statements
		assigned := len(st.Assignments)
		more := a.statement()
		if st.Kind != Empty {
			if statements++; statements == 1 {
				first = st.Kind
			}
			if statements > 1 || more {
				st.Parts = append(st.Parts, Part{Kind: st.Kind, Schema: a.schema, From: assigned, To: len(st.Assignments)})
			}
		}
		if st.shiftsMode(assigned) {
			a.shifts = true
			st.Words |= ChangesReading
		}
		if a.Bad || !more {
			break
		}
	}
	switch {
	case a.Bad:
		a.unread(sql, mode)
		return
	case statements == 0:
		st.Kind = Empty
	case statements == 1:
		st.Kind, st.Parts = first, st.Parts[:0]
	default:
		st.Kind = Multi
		if a.prepares || a.shifts && readByMode(sql) && mayBringRows(sql) {
			st.Words |= MayBringRows
		}
		if a.shifted && readByMode(sql) {
			a.note("NEXTVAL behind a statement that may change the meaning of quotes, backslashes or letters")
		}
	}
	if a.tooMany {
		if a.nextval == 0 {
			st.bad(sql)
			return
		}
		a.problem = "NEXTVAL beside so many calls: more than 100,000 in one text"
	}
	if a.Execs > 0 || a.ByVersion {
		a.comments()
	}
	if a.nextval > 0 {
		st.Words |= HasNextval
		st.Refusal = a.problem
	}
	if first == Other || first > Values || st.Words&(UserLock|SetsUserVariable|ConnectionID) != 0 {
		// else what reset says is so
		st.Runs = st.runs(sql, first)
		st.ClientID = st.Words&ConnectionID != 0 && st.standsAlone(sql)
	}
	if st.Kind == Select && len(st.Calls) > 0 && st.Refusal == "" {
		st.selfContained(sql)
	}
}

// unreadable is Analyze of a text that is too long, or in a character set that is not known.
func (st *Statement) unreadable(sql []byte) {
	st.bad(sql)
	if len(sql) > math.MaxInt32 || MayRunOthers(sql, lex.Mode{Charset: lex.UTF8}) {
		st.Runs = RunsOthers
	}
}

// unread ends Analyze of a text that cannot be read to its end.
func (a *analyzer) unread(sql []byte, mode lex.Mode) {
	a.st.bad(sql)
	if a.Wrong && !mayEndEarlier(sql, mode) { // a server runs nothing of the text
		a.st.Words &^= MayBringRows
	}
	if MayRunOthers(sql, mode) {
		a.st.Runs = RunsOthers
	}
}

// mayEndEarlier reports whether a statement may end in front of the place where a text cannot be
// read on.
func mayEndEarlier(sql []byte, mode lex.Mode) bool {
	l := lex.Lexer{Src: sql, Mode: mode}
	for l.Next(); l.Kind != lex.EOF; l.Next() {
		if l.Is(';') {
			return true
		}
	}
	return false
}

// comments takes note of what is in executable comments.
func (a *analyzer) comments() {
	st := a.st
	if a.Execs > 0 {
		st.Words |= ExecutableComment
	}
	if a.ByVersion {
		st.Words |= ReadByVersion
	}
	if a.SeenCond {
		st.Words |= VersionedComment
		if a.nextval > 0 && a.problem == "" {
			a.problem = "NEXTVAL beside a versioned comment"
		}
	}
}

// reset empties st, but for what resetRare does, and keeps its memory. It is short enough to be
// inlined.
func (st *Statement) reset(mode lex.Mode) {
	st.Kind, st.Words, st.Params, st.Runs = Other, 0, 0, RunsFunctions
	st.Calls, st.Items, st.Assignments = st.Calls[:0], st.Items[:0], st.Assignments[:0]
	st.Tables, st.Parts = st.Tables[:0], st.Parts[:0]
	st.SelfContained, st.ClientID, st.Refusal, st.Schema = false, false, "", nil
	st.mode = mode
	st.arena = st.arena[:0]
}

// resetRare is reset for what few texts fill.
func (st *Statement) resetRare() {
	if !st.rare {
		return
	}
	st.rare = false
	st.Kill, st.Kills = KillTarget{}, st.Kills[:0]
	st.Sequence, st.Proxy = nil, nil
	st.ProcedureSchema, st.Procedure = nil, nil
}

// Trim drops what st found and all memory beyond a small bound, for a Statement
// that is kept while its session is idle.
func (st *Statement) Trim() {
	st.rare = true
	st.reset(st.mode)
	st.resetRare()
	st.Calls, st.Items, st.Assignments = trim(st.Calls, 4), trim(st.Items, 4), trim(st.Assignments, 4)
	st.Tables, st.Kills, st.Parts = trim(st.Tables, 4), trim(st.Kills, 1), trim(st.Parts, 1)
	st.sequence = nil
	st.levels, st.arena = trim(st.levels, 8), trim(st.arena, 64)
}

// trim empties s, and gives it up if it has room for more than n.
func trim[T any](s []T, n int) []T {
	if cap(s) > n {
		return nil
	}
	clear(s[:cap(s)])
	return s[:0]
}

// bad makes st the answer to a text that cannot be read: Other, no calls.
func (st *Statement) bad(sql []byte) {
	st.reset(st.mode)
	st.resetRare()
	st.Words = Opaque
	if mayBringRows(sql) {
		st.Words |= MayBringRows
	}
}

// statement reads one statement up to its semicolon and reports whether there
// was one.
func (a *analyzer) statement() bool {
	if a.Pos > 0 { // else all of it is new
		a.depth, a.prev, a.calls, a.table, a.muted = 0, lex.KwNone, false, false, 0
		a.ins, a.part, a.refusal, a.targets, a.schema = insertState{}, partMain, "", false, nil
		a.rows, a.grouped, a.groups, a.setTo = false, false, 0, 0
	}
	a.empty = true
	if len(a.st.levels) == 0 {
		a.st.levels = append(a.st.levels, level{})
	}
	top := &a.st.levels[0] // field by field, too
	*top = level{}
	top.calls, top.numbers = int32(len(a.st.Calls)), int32(a.nextval)
	top.names, top.top = true, true
	a.Next()
	if a.Kind == lex.EOF {
		return false
	}
	if a.Kind == lex.Punct && a.Ch == ';' {
		return true
	}
	a.first = a.Start
	return a.head()
}

// scan follows the rest of a statement, from the token after the current one,
// to its end. It reports whether a semicolon ended it.
func (a *analyzer) scan() bool {
	for {
		a.advance()
		switch a.Kind {
		case lex.Word:
			// What token does, at once.
			if a.Kw != lex.KwNone {
				a.keyword()
			} else if a.AfterDot || a.grouped {
				a.token()
			}
			a.empty = false
			continue
		case lex.Number, lex.String: // token has nothing to do
			a.empty = false
			continue
		case lex.EOF:
			a.finish()
			return false
		case lex.Punct:
			if a.Ch == ';' && a.depth == 0 {
				a.finish()
				return true
			}
		}
		a.token()
	}
}

// ofSchema takes note of the schema that the statement is about, which is the token of p.
func (a *analyzer) ofSchema(p *lex.Lexer) {
	a.schema = a.st.arena.Decode(p)
	a.st.Schema = a.schema
}

// advance moves to the next token and remembers the one before.
func (a *analyzer) advance() {
	a.prev, a.prevEnd = a.Kw, a.End
	a.Next()
}

// opaque passes over the rest of the text unread, for bodies whose semicolons
// are their own.
func (a *analyzer) opaque() bool {
	a.st.Words |= Opaque
	a.Pos = len(a.Src)
	a.InExec = false
	a.Kind = lex.EOF
	return false
}

// rest follows the text to its very end, taking semicolons for a part of it.
func (a *analyzer) rest() bool {
	a.st.Words |= Opaque
	var b blocks
	for a.Kind != lex.EOF {
		if a.compound {
			b.token(&a.Lexer)
		} else {
			b.brings = b.brings || bringsRows(&a.Lexer)
		}
		a.token()
		a.advance()
	}
	if b.brings {
		a.st.Words |= MayBringRows
	}
	a.finish()
	return false
}

// note gives the reason why a NEXTVAL of this text cannot be given a number,
// should there be one. The first reason counts.
func (a *analyzer) note(reason string) {
	if a.problem == "" {
		a.problem = reason
	}
}

// number takes a NEXTVAL into account.
func (a *analyzer) number() {
	a.nextval++
	a.shifted = a.shifted || a.shifts
	if a.refusal != "" {
		a.note(a.refusal)
	}
}

// shiftsMode reports whether the statement just read may change how the server reads
// those behind it in the same text. Its assignments are those from the one given.
func (st *Statement) shiftsMode(assignment int) bool {
	switch st.Kind {
	case Call, Execute, ExecuteImmediate:
		return true
	case Set:
		for i := range st.Assignments[assignment:] {
			switch as := &st.Assignments[assignment+i]; as.Target {
			case UserVariable, GlobalVariable, Transaction, Password, Role, StatementFor:
			case SessionVariable:
				switch string(as.Name) {
				case "sql_mode", "character_set_client", "character_set_connection", "collation_connection":
					return true
				}
			default:
				return true
			}
		}
	}
	return false
}

// readByMode reports whether a Mode makes a difference to a text.
func readByMode(sql []byte) bool {
	for _, c := range sql {
		if c >= 0x80 || c == '"' || c == '\\' || c == '[' {
			return true
		}
	}
	return false
}

// peek reads the token after the current one without moving on.
func (a *analyzer) peek() lex.Lexer {
	p := a.Lexer
	p.Next()
	return p
}

// finish closes what is open at the end of a statement.
func (a *analyzer) finish() {
	if len(a.st.Calls) == 0 && a.nextval == 0 {
		return // most texts: it is about calls and where they stand
	}
	for a.depth > 0 {
		a.closeLevel()
	}
	lv := &a.st.levels[0]
	a.endList(lv)
	a.endSelect(lv)
	if (a.ins.row > 0 || lv.union) && a.ins.update > 0 {
		a.placeUpdates()
	}
}
