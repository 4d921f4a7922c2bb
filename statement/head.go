package statement

import (
	"bytes"

	"seqproxy/statement/lex"
)

// head sets the kind of a statement by its first words, and reads the rest. The current token is
// the first. It reports whether a semicolon ended the statement.
func (a *analyzer) head() bool {
	st := a.st
	switch {
	case a.Kind == lex.Word:
	case a.Is('('):
		return a.parenthesised()
	default:
		return a.other()
	}
	switch a.Kw {
	case lex.KwSelect:
		if a.decodes() {
			return a.decodeSequence()
		}
		return a.dml(Select, "")
	case lex.KwTable:
		return a.dml(Select, "NEXTVAL with TABLE")
	case lex.KwInsert:
		return a.insert(Insert)
	case lex.KwReplace:
		return a.insert(Replace)
	case lex.KwUpdate:
		a.updatedTable()
		a.targets = true
		return a.dml(Update, "")
	case lex.KwDelete:
		a.targets = true
		return a.dml(Delete, "")
	case lex.KwWith:
		return a.dml(With, "")
	case lex.KwValues:
		return a.values()
	case lex.KwSet:
		return a.set()
	case lex.KwUse:
		return a.use()
	case lex.KwBegin:
		return a.begin()
	case lex.KwStart:
		if a.advance(); a.Kw == lex.KwTransaction {
			return a.relayed(Begin)
		}
		return a.other()
	case lex.KwCommit:
		return a.endTransaction(Commit)
	case lex.KwRollback:
		return a.endTransaction(Rollback)
	case lex.KwSavepoint:
		return a.relayed(Savepoint)
	case lex.KwRelease:
		if a.advance(); a.Kw == lex.KwSavepoint {
			return a.relayed(Savepoint)
		}
		return a.other()
	case lex.KwShow:
		return a.show()
	case lex.KwGet:
		if a.advance(); a.Kw == lex.KwCurrent || a.Kw == lex.KwStacked {
			a.advance()
		}
		if a.Kw == lex.KwDiagnostics {
			st.Words |= ReadsWarnings | SetsUserVariable
			return a.relayed(GetDiagnostics)
		}
		return a.other()
	case lex.KwExplain, lex.KwDescribe, lex.KwDesc:
		if a.explainRoute() {
			return false
		}
		a.explained()
		return a.relayed(Explain)
	case lex.KwAnalyze:
		if a.advance(); a.Kw == lex.KwTable || a.Kw == lex.KwLocal || a.Kw == lex.KwNoWriteToBinlog {
			return a.relayed(OtherDDL)
		}
		a.explained()
		a.refusal = refusalInAnalyze
		a.hiddenInsert() // MariaDB's ANALYZE runs the statement
		return a.relayedFromHere(Explain)
	case lex.KwCall:
		return a.call()
	case lex.KwDo:
		return a.dml(Do, "")
	case lex.KwLoad:
		return a.load()
	case lex.KwPrepare:
		st.Words |= SQLPrepare
		return a.prepare(Prepare, "NEXTVAL in PREPARE ... FROM")
	case lex.KwExecute:
		st.Words |= SQLPrepare
		if p := a.peek(); p.Kw == lex.KwImmediate {
			return a.prepare(ExecuteImmediate, "NEXTVAL in EXECUTE IMMEDIATE")
		}
		return a.dml(Execute, "")
	case lex.KwDeallocate:
		st.Words |= SQLPrepare
		return a.relayed(Deallocate)
	case lex.KwHandler:
		return a.handler()
	case lex.KwLock:
		if a.advance(); a.Kw == lex.KwTable || a.Kw == lex.KwTables {
			st.Words |= TableLock
			return a.relayed(LockTables)
		}
		st.Words |= GlobalLock
		return a.other()
	case lex.KwUnlock:
		if a.advance(); a.Kw == lex.KwTable || a.Kw == lex.KwTables {
			return a.relayed(UnlockTables)
		}
		return a.other()
	case lex.KwBackup:
		st.Words |= GlobalLock
		return a.other()
	case lex.KwFlush:
		return a.flush()
	case lex.KwKill:
		return a.kill()
	case lex.KwXA:
		return a.relayed(XA)
	case lex.KwCreate:
		return a.create()
	case lex.KwAlter:
		return a.alter()
	case lex.KwDrop:
		return a.drop()
	case lex.KwCheck, lex.KwRepair:
		if p := a.peek(); p.Kw == lex.KwSequence {
			k := CheckSequence
			if a.Kw == lex.KwRepair {
				k = RepairSequence
			}
			a.advance()
			return a.namedSequences(k)
		}
		return a.relayed(OtherDDL)
	case lex.KwSeqproxy:
		if p := a.peek(); p.Is(':') { // a label of a compound statement
			return a.other()
		}
		return a.proxyStatement(false)
	case lex.KwRename:
		a.st.Words |= ChangesTable
		return a.relayed(OtherDDL)
	case lex.KwTruncate, lex.KwGrant, lex.KwRevoke, lex.KwOptimize, lex.KwChecksum, lex.KwCache:
		return a.relayed(OtherDDL)
	}
	return a.other()
}

// dml reads a statement and records its calls. refusal is not empty if no NEXTVAL in such a
// statement can be given a number.
func (a *analyzer) dml(k Kind, refusal string) bool {
	a.st.Kind, a.calls, a.refusal = k, true, refusal
	a.token()
	return a.scan()
}

// values reads the statement VALUES (...), (...).
func (a *analyzer) values() bool {
	a.ins.row = -1
	return a.dml(Values, "")
}

// relayed reads a statement that goes to the server unchanged. It records words but no calls.
func (a *analyzer) relayed(k Kind) bool {
	a.st.Kind = k
	a.empty = false
	return a.scan()
}

// refusalInAnalyze is for statements that explain another by running it.
const refusalInAnalyze = "NEXTVAL in ANALYZE"

// explained prepares for a statement that is only explained. The result has the columns of a plan.
func (a *analyzer) explained() {
	a.calls = true
	a.st.levels[0].names = false
}

// explainRoute reads FORMAT = ROUTE after EXPLAIN, the current token. It skips the statement that
// follows. No server knows this form.
func (a *analyzer) explainRoute() bool {
	p := a.Lexer
	word := func(want string) bool {
		p.Next()
		return p.Spells(want)
	}
	if a.Kw != lex.KwExplain || a.InExec || !word("format") {
		return false
	}
	if p.Next(); !p.Is('=') || !word("route") || p.InExec {
		return false
	}
	a.st.Kind, a.st.Explained = ExplainRoute, p.End
	a.Lexer = p
	a.empty, a.Pos, a.Kind = false, len(a.Src), lex.EOF
	return true
}

// relayedFromHere is relayed with the current token included.
func (a *analyzer) relayedFromHere(k Kind) bool {
	a.st.Kind = k
	a.empty = false
	if a.Kind == lex.EOF || a.Is(';') {
		a.finish()
		return a.Kind != lex.EOF
	}
	a.token()
	return a.scan()
}

// other reads a text that it does not understand, to its end: semicolons may be part of it, as in a
// compound statement.
func (a *analyzer) other() bool {
	a.st.Kind, a.calls, a.refusal = Other, true, "NEXTVAL in this kind of statement"
	return a.rest()
}

// parenthesised reads a query in parentheses.
func (a *analyzer) parenthesised() bool {
	p := a.Lexer
	for p.Is('(') {
		p.Next()
	}
	switch p.Kw {
	case lex.KwSelect:
		return a.dml(Select, "")
	case lex.KwTable:
		return a.dml(Select, "NEXTVAL with TABLE")
	case lex.KwWith:
		return a.dml(With, "")
	case lex.KwValues:
		return a.dml(Values, "NEXTVAL in VALUES in parentheses")
	}
	return a.other()
}

// insert reads INSERT and REPLACE.
func (a *analyzer) insert(k Kind) bool {
	st := a.st
	st.Kind, a.calls = k, true
	a.ins = insertState{on: true, row: -1}
	st.levels[0].names = false
	a.empty = false
	for {
		if a.advance(); !insertOption(a.Kw) {
			break
		}
	}
	// Any word may be the table's name.
	tables := len(st.Tables)
	p, named := a.tableName(a.Lexer, k)
	if len(st.Tables) == tables {
		st.Words |= MayBringRows
	}
	if !named {
		return a.relayedFromHere(k)
	}
	a.moveTo(p)
	return a.scan()
}

// use reads USE schema.
func (a *analyzer) use() bool {
	name := a.peek()
	if name.Kind != lex.Word && name.Kind != lex.Quoted {
		return a.other()
	}
	p := name
	p.Next()
	if p.Kind != lex.EOF && !p.Is(';') {
		return a.other()
	}
	a.ofSchema(&name)
	a.moveTo(name)
	return a.relayed(Use)
}

// begin reads BEGIN [WORK]. Any other BEGIN starts a compound statement.
func (a *analyzer) begin() bool {
	p := a.peek()
	if p.Kw == lex.KwWork {
		p.Next()
	}
	if p.Kind == lex.EOF || p.Is(';') {
		return a.relayed(Begin)
	}
	a.compound = true
	return a.other()
}

// endTransaction reads what follows COMMIT and ROLLBACK.
func (a *analyzer) endTransaction(k Kind) bool {
	p := a.peek()
	if p.Kw == lex.KwWork {
		p.Next()
	}
	if p.Kw == lex.KwTo && k == Rollback {
		return a.relayed(RollbackToSavepoint)
	}
	no := false
	for {
		switch p.Kw {
		case lex.KwAnd, lex.KwNo:
			no = p.Kw == lex.KwNo
			p.Next()
			continue
		case lex.KwChain:
			if !no {
				a.st.Words |= Chain
			}
			no = false
			p.Next()
			continue
		case lex.KwRelease:
			if !no {
				a.st.Words |= Release
			}
			no = false
			p.Next()
			continue
		}
		break
	}
	if p.Kind != lex.EOF && !p.Is(';') {
		return a.other()
	}
	return a.relayed(k)
}

// show sets the kind of a SHOW.
func (a *analyzer) show() bool {
	p := a.peek()
	switch p.Kw {
	case lex.KwWarnings, lex.KwErrors, lex.KwCount: // SHOW COUNT(*) WARNINGS
		a.st.Words |= ReadsWarnings
		return a.relayed(ShowWarnings)
	case lex.KwSequences:
		a.advance()
		return a.showSequences()
	case lex.KwSeqproxy:
		a.advance()
		return a.proxyStatement(true)
	case lex.KwCreate:
		if p.Next(); p.Kw == lex.KwSequence {
			a.moveTo(p)
			return a.namedSequences(ShowCreateSequence)
		}
		return a.relayed(Show)
	case lex.KwSession, lex.KwLocal:
		p.Next()
	}
	if p.Spells("full") {
		if p.Next(); p.Kw == lex.KwTables {
			a.st.Words |= LooksForSequences
		}
	}
	if p.Kw == lex.KwVariables {
		// The variables include identity, last_insert_id and warning_count.
		a.st.Words |= ReadsLastInsertID | ReadsWarnings
	}
	return a.relayed(Show)
}

// call reads CALL. The procedure's name never counts as a function.
func (a *analyzer) call() bool {
	a.st.Kind, a.calls = Call, true
	a.st.Words |= CallsProcedure
	if p := a.peek(); p.Kind == lex.Word || p.Kind == lex.Quoted {
		a.moveTo(p)
		if a.index == 0 {
			a.procedure(p)
		}
	}
	return a.scan()
}

// procedure reads the name of the called procedure from p.
func (a *analyzer) procedure(p lex.Lexer) {
	dot := p
	name := p
	if dot.Next(); dot.Is('.') {
		if dot.Next(); dot.Kind != lex.Word && dot.Kind != lex.Quoted {
			return
		}
		a.st.ProcedureSchema, name = a.st.arena.Decode(&p), dot
	}
	a.st.rare = true
	a.st.Procedure = a.st.arena.Decode(&name)
}

func (a *analyzer) load() bool {
	p := a.peek()
	name := "NEXTVAL in LOAD DATA"
	switch {
	case p.Kw == lex.KwXML:
		name = "NEXTVAL in LOAD XML"
	case p.Kind == lex.Word && p.Kw == lex.KwNone: // LOAD INDEX INTO CACHE
		return a.relayed(OtherDDL)
	case p.Kw != lex.KwData:
		return a.other()
	}
	for p.Next(); p.Kw == lex.KwLowPriority || p.Kind == lex.Word && p.Kw == lex.KwNone; p.Next() {
		// [LOW_PRIORITY | CONCURRENT]
	}
	if p.Kw == lex.KwLocal {
		a.st.Words |= LocalInfile
	}
	if !a.loadedTable(Load) {
		a.st.Words |= MayBringRows
	}
	return a.dml(Load, name)
}

// prepare reads PREPARE and EXECUTE IMMEDIATE. Their statement is a string.
func (a *analyzer) prepare(k Kind, refusal string) bool {
	a.st.Kind, a.calls, a.refusal, a.prepares = k, true, refusal, true
	p := a.Lexer
	for p.Kind != lex.EOF && !p.Is(';') {
		p.Next()
		if p.Kind == lex.String && a.namesSequence(p) {
			a.number()
		}
	}
	return a.scan()
}

// namesSequence reports whether the text in the string token p calls NEXTVAL.
func (a *analyzer) namesSequence(p lex.Lexer) bool {
	if lex.BeginsWord(p.Src[p.Start]) {
		p.Start++ // N'...'
	}
	text := lex.Lexer{Src: a.st.arena.Decode(&p), Mode: a.Mode}
	for text.Next(); text.Kind != lex.EOF; text.Next() {
		next := text
		if next.Next(); text.Kw == lex.KwNextval && next.Is('(') {
			return true
		}
		if text.Kw == lex.KwNext && (next.Kw == lex.KwValue || next.Kind == lex.Number) {
			if next.Next(); next.Kw == lex.KwFor || next.Kw == lex.KwValues {
				return true
			}
		}
	}
	return false
}

func (a *analyzer) handler() bool {
	p := a.peek() // table [. table] OPEN
	for p.Kind == lex.Word || p.Kind == lex.Quoted || p.Is('.') {
		if p.Next(); p.Kw == lex.KwOpen {
			a.st.Words |= HandlerOpen
			break
		}
	}
	return a.dml(Handler, "NEXTVAL in HANDLER")
}

func (a *analyzer) flush() bool {
	p := a.peek()
	if p.Kw == lex.KwSequences {
		a.advance()
		return a.namedSequences(FlushSequences)
	}
	for p.Kind != lex.EOF && !p.Is(';') {
		with := p.Kw
		p.Next()
		if with == lex.KwWith && p.Kw == lex.KwRead || with == lex.KwFor && p.Kw == lex.KwExport {
			a.st.Words |= GlobalLock
		}
	}
	return a.relayed(Flush)
}

// kill reads KILL [HARD | SOFT] [CONNECTION | QUERY] operand.
func (a *analyzer) kill() bool {
	st := a.st
	st.rare = true
	p := a.peek()
	t := KillTarget{Hard: p.Kw == lex.KwHard, Soft: p.Kw == lex.KwSoft}
	if t.Hard || t.Soft {
		p.Next()
	}
	t.Query = p.Kw == lex.KwQuery
	if t.Query || p.Kw == lex.KwConnection {
		p.Next()
	}
	t.Start, t.End = p.Start, p.End
	switch id, number := lex.ParseUint(p.Src[p.Start:p.End]); {
	case p.Kind == lex.Number && number:
		t.Operand, t.ID = KillNumber, id
	case p.Kind == lex.String:
		if id, number = lex.ParseUint(p.Src[p.Start+1 : max(p.Start+1, p.End-1)]); number {
			t.Operand, t.ID = KillNumber, id
		}
	case p.Is('-'):
		// Connector/J reads the greeting's id as a signed number and uses that for KILL.
		p.Next()
		if n, number := lex.ParseUint(p.Src[p.Start:p.End]); p.Kind == lex.Number && number && n > 0 && n <= 1<<31 {
			t.Operand, t.ID, t.End = KillNumber, 1<<32-n, p.End
		}
	case p.Is('?'):
		t.Operand = KillParam
	case p.Kind == lex.UserVar:
		t.Operand = KillVariable
	case p.Kw == lex.KwConnectionID:
		if p.Next(); p.Is('(') {
			if p.Next(); p.Is(')') {
				t.Operand, t.End = KillSelf, p.End
			}
		}
	}
	execs := p.Execs
	p.Next()
	// Servers drop semicolons at the end of a text. After a comment, a semicolon ends an empty
	// statement.
	alone := p.Kind == lex.EOF || p.Is(';') && len(bytes.TrimLeft(p.Src[p.Start:], "; \t\r\n")) == 0
	if t.Operand != KillOther && alone && !p.Bad && !p.SeenCond {
		st.Kill = t
	}
	if t.Operand == KillNumber && (!alone || a.index > 0) && (p.Kind == lex.EOF || p.Is(';')) && !p.Bad && !p.SeenCond && execs == a.Execs {
		t.Begin, t.Results = a.first, a.index
		if st.Words&(CallsProcedure|SQLPrepare|Opaque) != 0 { // the statements before
			t.Results = -1
		}
		if a.room() {
			st.Kills = append(st.Kills, t)
		}
	}
	return a.dml(Kill, "NEXTVAL in KILL")
}
