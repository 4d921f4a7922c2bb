package statement

import (
	"bytes"
	"math"
	"slices"

	"seqproxy/statement/idiom"
	"seqproxy/statement/lex"
)

// maxDepth bounds the depth of parentheses. A deeper text is Other.
const maxDepth = 2048

// maxCalls bounds the recorded calls of a text. A record takes about twenty times the memory of a
// call's text.
const maxCalls = 100_000

// Bounds of what else is recorded of a text: its parts, tables, assignments and KILLs together.
// Dumps and migrations have more text for each, so that a denser text is mostly made to take
// memory. It is Other.
const (
	leastRecords = 20_000
	textOfRecord = 10 // bytes of the text
)

// maxNamesDepth bounds the depth at which select items are recorded. Each level around an item
// reads it again to find its alias.
const maxNamesDepth = 16

// analyzer is the state of one Analyze. It lives on the stack.
type analyzer struct {
	lex.Lexer
	st *Statement

	depth   int // current level: st.levels[depth]
	prevEnd int // end of the token before
	nextval int // number of NEXTVALs so far
	muted   int // calls before this offset are part of another call's argument
	index   int // number of non-empty statements before this one
	first   int // start of the current statement
	groups  int // start of the last word that may split one group into several
	setTo   int // the arguments of a SETVAL were searched up to here

	schema []byte // of the current statement, as Statement.Schema

	records int    // number of records, see leastRecords
	tooMany string // why not all of the text is recorded; "": it is

	problem string // the first reason why a NEXTVAL cannot be given a number
	refusal string // why no NEXTVAL of this statement can be given one

	ins    insertState
	dotted *idiom.Dotted // nil until the text has such a call

	empty bool        // the current level has no token yet
	prev  lex.Keyword // keyword of the token before, or KwNone
	part  part

	calls bool // this kind of statement records calls
	table bool // within CREATE TABLE: only NEXTVAL('s') is recorded
	// compound: BEGIN NOT ATOMIC. The proxy does not look into its body.
	compound bool
	searched bool // all of the text from an earlier statement on was searched for rows
	prepares bool // the text has a PREPARE or EXECUTE IMMEDIATE
	shifts   bool // an earlier statement may have changed how texts are read
	shifted  bool // a NEXTVAL follows such a statement
	renames  bool // an earlier statement may have changed which names texts have, and no more
	rows     bool // a NEXTVAL of this statement is evaluated once per row of the result
	targets  bool // in an UPDATE or DELETE, where it names tables
	grouped  bool // a GROUP BY was seen
}

// insertState is the progress within an INSERT or REPLACE.
type insertState struct {
	on     bool         // within INSERT or REPLACE
	source InsertSource // the source of the rows
	row    int          // index of the VALUES tuple, -1 before the first
	update int          // number of NEXTVALs in ON DUPLICATE KEY UPDATE
}

// part is the part of a statement that was reached, outside of parentheses.
type part uint8

const (
	partMain      part = iota
	partAlias          // the alias of VALUES, and what follows
	partUpdate         // ON DUPLICATE KEY UPDATE
	partReturning      // RETURNING
)

// Analyze reads sql and overwrites st with the result. The slices of st refer to sql, which it does
// not change. It allocates only until st's slices are large enough.
func (st *Statement) Analyze(sql []byte, mode lex.Mode) {
	st.reset(mode)
	st.resetRare()
	if mode.Charset >= lex.Unsupported || len(sql) > math.MaxInt32 {
		st.unreadable(sql)
		return
	}
	var a analyzer // field by field, since a literal would be built elsewhere and copied
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
			if (statements > 1 || more) && a.room() {
				st.Words |= st.changesForLater(assigned)
				st.Parts = append(st.Parts, Part{Kind: st.Kind, Schema: a.schema, From: assigned, To: len(st.Assignments), Words: st.Words})
			}
		}
		if st.shiftsMode(assigned) {
			a.renames = true
			a.shifts = a.shifts || !a.staysUTF8(assigned)
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
		if a.renames && st.namesConverted() {
			a.shifts, a.shifted = true, a.nextval > 0
		}
		if a.prepares || a.shifts && readByMode(sql) && mayBringRows(sql) {
			st.Words |= MayBringRows
		}
		if a.shifted && readByMode(sql) {
			a.note("NEXTVAL behind a statement that may change the meaning of quotes, backslashes or letters")
		}
	}
	if a.tooMany != "" {
		if a.nextval == 0 {
			st.Trim()
			a.unread(sql, mode)
			return
		}
		a.problem = a.tooMany
		if a.crowded() {
			st.Words |= opaque(sql)
		}
	}
	if a.Execs > 0 || a.ByVersion {
		a.comments()
	}
	if a.nextval > 0 {
		st.Words |= HasNextval
		st.Refusal = a.problem
	}
	if st.Kind == Multi && st.onlyPlain() {
		st.Words |= PlainParts
	}
	if first == Other || first > Values || st.Words&(UserLock|SetsUserVariable|ConnectionID) != 0 {
		// otherwise reset has set it
		st.Runs = st.runs(sql, first)
		st.ClientID = st.Words&ConnectionID != 0 && st.ignoresThread(sql)
	}
	if st.Kind == Select && len(st.Calls) > 0 && st.Refusal == "" {
		st.selfContained(sql)
	}
}

// room counts a part, table, assignment or KILL, and reports whether the text may have it.
func (a *analyzer) room() bool {
	if a.records++; a.crowded() {
		a.tooMany = "NEXTVAL beside so many short statements or assignments in one text"
		return false
	}
	return true
}

// crowded reports whether not all parts, tables, assignments and KILLs are recorded.
func (a *analyzer) crowded() bool {
	return a.records > leastRecords && a.records > leastRecords+len(a.Src)/textOfRecord
}

// unreadable is Analyze for a text that is too long or in an unsupported character set.
func (st *Statement) unreadable(sql []byte) {
	st.bad(sql)
	if len(sql) > math.MaxInt32 || MayRunOthers(sql, lex.Mode{Charset: lex.UTF8}) {
		st.Runs = RunsOthers
	}
}

// unread is Analyze for a text that cannot be read to its end.
func (a *analyzer) unread(sql []byte, mode lex.Mode) {
	a.st.bad(sql)
	if a.Wrong && !mayEndEarlier(sql, mode) { // no server runs any part of the text
		a.st.Words &^= MayBringRows
	}
	if MayRunOthers(sql, mode) {
		a.st.Runs = RunsOthers
	}
}

// mayEndEarlier reports whether a statement may end before the unreadable place of a text.
func mayEndEarlier(sql []byte, mode lex.Mode) bool {
	l := lex.Lexer{Src: sql, Mode: mode}
	for l.Next(); l.Kind != lex.EOF; l.Next() {
		if l.Is(';') {
			return true
		}
	}
	return false
}

// comments records what the text has in executable comments.
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

// bad sets the result for an unreadable text: Other, no calls.
func (st *Statement) bad(sql []byte) {
	st.reset(st.mode)
	st.resetRare()
	st.Words = opaque(sql)
}

// opaque returns the words of a text that is not read to its end.
func opaque(sql []byte) Words {
	if mayBringRows(sql) {
		return Opaque | MayBringRows
	}
	return Opaque
}

// statement reads one statement up to its semicolon. It reports whether there was one.
func (a *analyzer) statement() bool {
	if a.Pos > 0 { // otherwise everything is new
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

// scan reads the rest of a statement after the current token. It reports whether a semicolon ended
// it.
func (a *analyzer) scan() bool {
	for {
		a.advance()
		switch a.Kind {
		case lex.Word:
			// This is token, inlined.
			if a.Kw != lex.KwNone {
				a.keyword()
			} else if a.AfterDot || a.grouped {
				a.token()
			}
			a.empty = false
			continue
		case lex.Number, lex.String: // token would do nothing
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

// ofSchema records the schema of the statement; p is at its name.
func (a *analyzer) ofSchema(p *lex.Lexer) {
	a.schema = a.st.arena.Decode(p)
	a.st.Schema = a.schema
}

// advance moves to the next token and remembers the present one.
func (a *analyzer) advance() {
	a.prev, a.prevEnd = a.Kw, a.End
	a.Next()
}

// opaque skips the rest of the text, for bodies that contain semicolons.
func (a *analyzer) opaque() bool {
	a.st.Words |= Opaque
	a.Pos = len(a.Src)
	a.InExec = false
	a.Kind = lex.EOF
	return false
}

// rest reads the text to its very end. Semicolons do not end the statement.
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

// note records a reason why a NEXTVAL of this text cannot be given a number. The first reason
// counts.
func (a *analyzer) note(reason string) {
	if a.problem == "" {
		a.problem = reason
	}
}

// number records a NEXTVAL.
func (a *analyzer) number() {
	a.nextval++
	a.shifted = a.shifted || a.shifts
	if a.refusal != "" {
		a.note(a.refusal)
	}
}

// shiftsMode reports whether the statement just read may change how the server reads later
// statements of the same text. assignment is the index of its first assignment.
func (st *Statement) shiftsMode(assignment int) bool {
	switch st.Kind {
	case Call, Execute, ExecuteImmediate:
		return true
	case Set:
		return slices.ContainsFunc(st.Assignments[assignment:], Assignment.shiftsMode)
	}
	return false
}

// changesForLater returns what the statement just read, among several, may change for the later
// ones of the text. assignment is the index of its first assignment.
func (st *Statement) changesForLater(assignment int) (words Words) {
	switch st.Kind {
	case Use:
		return UsesSchema
	case Execute, ExecuteImmediate:
		return MaySetMode | MaySetStep
	}
	for i := range st.Assignments[assignment:] {
		switch as := &st.Assignments[assignment+i]; {
		case as.Target == TargetUnknown:
			words |= MaySetMode | MaySetStep
		case as.Target != SessionVariable:
		case string(as.Name) == "sql_mode":
			words |= MaySetMode
		case string(as.Name) == "auto_increment_increment":
			words |= MaySetStep
		}
	}
	return words
}

// shiftsMode reports whether the assignment may change how the server reads later texts.
func (as Assignment) shiftsMode() bool {
	switch as.Target {
	case UserVariable, GlobalVariable, Transaction, Password, Role, StatementFor:
		return false
	case SessionVariable:
		switch string(as.Name) {
		case "sql_mode", "character_set_client", "character_set_connection", "collation_connection":
			return true
		}
		return false
	}
	return true
}

// staysUTF8 reports whether a statement for which shiftsMode is true is SET NAMES utf8mb4, or utf8,
// where texts are read as UTF-8. Bytes of another set may have become other characters, but quotes
// and words end where they did.
func (a *analyzer) staysUTF8(assignment int) bool {
	if a.st.Kind != Set || a.Mode.Charset != lex.UTF8 {
		return false
	}
	for _, as := range a.st.Assignments[assignment:] {
		if !as.shiftsMode() {
			continue
		}
		name, _, _ := bytes.Cut(a.Src[as.Start:as.End], []byte(" "))
		if as.Target != Names || !isAnyOf(bytes.Trim(name, "'"), "utf8mb4", "utf8mb3", "utf8") {
			return false
		}
	}
	return true
}

// namesConverted reports whether the text has names of tables or sequences that depend on the
// character set.
func (st *Statement) namesConverted() bool {
	for i := range st.Tables {
		if !lex.ASCII(st.Tables[i].Name) || !lex.ASCII(st.Tables[i].Schema) {
			return true
		}
	}
	for i := range st.Calls {
		if !lex.ASCII(st.Calls[i].Name) || !lex.ASCII(st.Calls[i].Schema) {
			return true
		}
	}
	return false
}

// readByMode reports whether the meaning of a text depends on the Mode.
func readByMode(sql []byte) bool {
	for _, c := range sql {
		if c >= 0x80 || c == '"' || c == '\\' || c == '[' {
			return true
		}
	}
	return false
}

// peek returns the lexer at the next token and does not move.
func (a *analyzer) peek() lex.Lexer {
	p := a.Lexer
	p.Next()
	return p
}

// finish completes what is open at the end of a statement.
func (a *analyzer) finish() {
	if len(a.st.Calls) == 0 && a.nextval == 0 {
		return // most texts: the rest concerns calls only
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
