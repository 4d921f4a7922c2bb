package statement

import (
	"bytes"
	"strings"
)

// head reads the first words of a statement, sets its kind and reads the rest.
// The current token is the first. It reports whether a semicolon ended the
// statement.
func (a *analyzer) head() bool {
	st := a.st
	switch {
	case a.kind == tWord:
	case a.is('('):
		return a.parenthesised()
	default:
		return a.other()
	}
	switch a.kw {
	case kwSelect:
		return a.dml(Select, "")
	case kwTable:
		return a.dml(Select, "NEXTVAL with TABLE")
	case kwInsert:
		return a.insert(Insert)
	case kwReplace:
		return a.insert(Replace)
	case kwUpdate:
		a.updatedTable()
		a.targets = true
		return a.dml(Update, "")
	case kwDelete:
		a.targets = true
		return a.dml(Delete, "")
	case kwWith:
		return a.dml(With, "")
	case kwValues:
		return a.values()
	case kwSet:
		return a.set()
	case kwUse:
		return a.use()
	case kwBegin:
		return a.begin()
	case kwStart:
		if a.advance(); a.kw == kwTransaction {
			return a.relayed(Begin)
		}
		return a.other()
	case kwCommit:
		return a.endTransaction(Commit)
	case kwRollback:
		return a.endTransaction(Rollback)
	case kwSavepoint:
		return a.relayed(Savepoint)
	case kwRelease:
		if a.advance(); a.kw == kwSavepoint {
			return a.relayed(Savepoint)
		}
		return a.other()
	case kwShow:
		return a.show()
	case kwGet:
		if a.advance(); a.kw == kwCurrent || a.kw == kwStacked {
			a.advance()
		}
		if a.kw == kwDiagnostics {
			st.Words |= ReadsWarnings | SetsUserVariable
			return a.relayed(GetDiagnostics)
		}
		return a.other()
	case kwExplain, kwDescribe, kwDesc:
		if a.explainRoute() {
			return false
		}
		a.explained()
		return a.relayed(Explain)
	case kwAnalyze:
		if a.advance(); a.kw == kwTable || a.kw == kwLocal || a.kw == kwNoWriteToBinlog {
			return a.relayed(OtherDDL)
		}
		a.explained()
		a.refusal = refusalInAnalyze
		a.hiddenInsert() // MariaDB's ANALYZE runs the statement
		return a.relayedFromHere(Explain)
	case kwCall:
		return a.call()
	case kwDo:
		return a.dml(Do, "")
	case kwLoad:
		return a.load()
	case kwPrepare:
		st.Words |= SQLPrepare
		return a.prepare(Prepare, "NEXTVAL in PREPARE ... FROM")
	case kwExecute:
		st.Words |= SQLPrepare
		if p := a.peek(); p.kw == kwImmediate {
			return a.prepare(ExecuteImmediate, "NEXTVAL in EXECUTE IMMEDIATE")
		}
		return a.dml(Execute, "")
	case kwDeallocate:
		st.Words |= SQLPrepare
		return a.relayed(Deallocate)
	case kwHandler:
		return a.handler()
	case kwLock:
		if a.advance(); a.kw == kwTable || a.kw == kwTables {
			st.Words |= TableLock
			return a.relayed(LockTables)
		}
		st.Words |= GlobalLock
		return a.other()
	case kwUnlock:
		if a.advance(); a.kw == kwTable || a.kw == kwTables {
			return a.relayed(UnlockTables)
		}
		return a.other()
	case kwBackup:
		st.Words |= GlobalLock
		return a.other()
	case kwFlush:
		return a.flush()
	case kwKill:
		return a.kill()
	case kwXA:
		return a.relayed(XA)
	case kwCreate:
		return a.create()
	case kwAlter:
		return a.alter()
	case kwDrop:
		return a.drop()
	case kwCheck, kwRepair:
		if p := a.peek(); p.kw == kwSequence {
			k := CheckSequence
			if a.kw == kwRepair {
				k = RepairSequence
			}
			a.advance()
			return a.namedSequences(k)
		}
		return a.relayed(OtherDDL)
	case kwSeqproxy:
		if p := a.peek(); p.is(':') { // the label of a compound statement
			return a.other()
		}
		return a.proxyStatement("SEQPROXY", proxyForms[:])
	case kwRename, kwTruncate, kwGrant, kwRevoke, kwOptimize, kwChecksum, kwCache:
		return a.relayed(OtherDDL)
	}
	return a.other()
}

// dml reads a statement in which calls are looked for. refusal is the reason
// why a NEXTVAL in it cannot be given a number, if it never can.
func (a *analyzer) dml(k Kind, refusal string) bool {
	a.st.Kind, a.calls, a.refusal = k, true, refusal
	a.token()
	return a.scan()
}

// values reads VALUES (...), (...), the statement.
func (a *analyzer) values() bool {
	a.ins.row = -1
	return a.dml(Values, "")
}

// relayed reads a statement that goes to the server as it is: words, no calls.
func (a *analyzer) relayed(k Kind) bool {
	a.st.Kind = k
	a.empty = false
	return a.scan()
}

// refusalInAnalyze is for what runs a statement in order to explain it.
const refusalInAnalyze = "NEXTVAL in ANALYZE"

// explained prepares for a statement whose plan is asked for. Its columns are the plan's.
func (a *analyzer) explained() {
	a.calls = true
	a.st.levels[0].names = false
}

// explainRoute reads FORMAT = ROUTE after EXPLAIN, the current token, which no server knows, and
// passes over what stands behind it.
func (a *analyzer) explainRoute() bool {
	p := a.lexer
	word := func(want string) bool {
		p.next()
		return p.kind == tWord && strings.EqualFold(string(p.src[p.start:p.end]), want)
	}
	if a.kw != kwExplain || a.inExec || !word("format") {
		return false
	}
	if p.next(); !p.is('=') || !word("route") || p.inExec {
		return false
	}
	a.st.Kind, a.st.Explained = ExplainRoute, p.end
	a.lexer = p
	a.empty, a.pos, a.kind = false, len(a.src), tEOF
	return true
}

// relayedFromHere is relayed for a current token that is not accounted for yet.
func (a *analyzer) relayedFromHere(k Kind) bool {
	a.st.Kind = k
	a.empty = false
	if a.kind == tEOF || a.is(';') {
		a.finish()
		return a.kind != tEOF
	}
	a.token()
	return a.scan()
}

// other reads a text that is not understood. Semicolons may be a part of it
// (compound statements), so it reaches to the end.
func (a *analyzer) other() bool {
	a.st.Kind, a.calls, a.refusal = Other, true, "NEXTVAL in this kind of statement"
	return a.rest()
}

// parenthesised reads a statement that begins with parentheses: a query.
func (a *analyzer) parenthesised() bool {
	p := a.lexer
	for p.is('(') {
		p.next()
	}
	switch p.kw {
	case kwSelect:
		return a.dml(Select, "")
	case kwTable:
		return a.dml(Select, "NEXTVAL with TABLE")
	case kwWith:
		return a.dml(With, "")
	case kwValues:
		return a.dml(Values, "NEXTVAL in VALUES in parentheses")
	}
	return a.other()
}

// insert reads INSERT and REPLACE up to the table's name, and then the rest.
func (a *analyzer) insert(k Kind) bool {
	st := a.st
	st.Kind, a.calls = k, true
	a.ins = insertState{on: true, row: -1}
	st.levels[0].names = false
	a.empty = false
	for {
		if a.advance(); !insertOption(a.kw) {
			break
		}
	}
	// The table's name, whatever word it is.
	tables := len(st.Tables)
	p, named := a.tableName(a.lexer, k)
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
	if name.kind != tWord && name.kind != tQuoted {
		return a.other()
	}
	p := name
	p.next()
	if p.kind != tEOF && !p.is(';') {
		return a.other()
	}
	a.st.Schema = a.st.arena.decode(name)
	a.moveTo(name)
	return a.relayed(Use)
}

// begin reads BEGIN [WORK]. Any other BEGIN opens a compound statement.
func (a *analyzer) begin() bool {
	p := a.peek()
	if p.kw == kwWork {
		p.next()
	}
	if p.kind == tEOF || p.is(';') {
		return a.relayed(Begin)
	}
	a.compound = true
	return a.other()
}

// endTransaction reads what follows COMMIT and ROLLBACK.
func (a *analyzer) endTransaction(k Kind) bool {
	p := a.peek()
	if p.kw == kwWork {
		p.next()
	}
	if p.kw == kwTo && k == Rollback {
		return a.relayed(RollbackToSavepoint)
	}
	no := false
	for {
		switch p.kw {
		case kwAnd, kwNo:
			no = p.kw == kwNo
			p.next()
			continue
		case kwChain:
			if !no {
				a.st.Words |= Chain
			}
			no = false
			p.next()
			continue
		case kwRelease:
			if !no {
				a.st.Words |= Release
			}
			no = false
			p.next()
			continue
		}
		break
	}
	if p.kind != tEOF && !p.is(';') {
		return a.other()
	}
	return a.relayed(k)
}

// show tells the kinds of SHOW apart.
func (a *analyzer) show() bool {
	p := a.peek()
	switch p.kw {
	case kwWarnings, kwErrors:
		a.st.Words |= ReadsWarnings
		return a.relayed(ShowWarnings)
	case kwCount: // SHOW COUNT(*) WARNINGS
		a.st.Words |= ReadsWarnings
		return a.relayed(ShowWarnings)
	case kwSequences:
		a.advance()
		return a.showSequences()
	case kwSeqproxy:
		a.advance()
		return a.proxyStatement("SHOW SEQPROXY", proxyShows[:])
	case kwCreate:
		if p.next(); p.kw == kwSequence {
			a.moveTo(p)
			return a.namedSequences(ShowCreateSequence)
		}
		return a.relayed(Show)
	case kwSession, kwLocal:
		p.next()
	}
	if p.spells("full") {
		if p.next(); p.kw == kwTables {
			a.st.Words |= LooksForSequences
		}
	}
	if p.kw == kwVariables {
		// identity, last_insert_id and warning_count are among them.
		a.st.Words |= ReadsLastInsertID | ReadsWarnings
	}
	return a.relayed(Show)
}

// call reads CALL; the procedure's name is no function, whatever it is.
func (a *analyzer) call() bool {
	a.st.Kind, a.calls = Call, true
	a.st.Words |= CallsProcedure
	if p := a.peek(); p.kind == tWord || p.kind == tQuoted {
		a.moveTo(p)
		if a.index == 0 {
			a.procedure(p)
		}
	}
	return a.scan()
}

// procedure reads the name of the procedure that is called, which begins with p.
func (a *analyzer) procedure(p lexer) {
	dot := p
	name := p
	if dot.next(); dot.is('.') {
		if dot.next(); dot.kind != tWord && dot.kind != tQuoted {
			return
		}
		a.st.ProcedureSchema, name = a.st.arena.decode(p), dot
	}
	a.st.rare = true
	a.st.Procedure = a.st.arena.decode(name)
}

func (a *analyzer) load() bool {
	p := a.peek()
	name := "NEXTVAL in LOAD DATA"
	switch {
	case p.kw == kwXML:
		name = "NEXTVAL in LOAD XML"
	case p.kind == tWord && p.kw == kwNone: // LOAD INDEX INTO CACHE
		return a.relayed(OtherDDL)
	case p.kw != kwData:
		return a.other()
	}
	for p.next(); p.kw == kwLowPriority || p.kind == tWord && p.kw == kwNone; p.next() {
		// [LOW_PRIORITY | CONCURRENT]
	}
	if p.kw == kwLocal {
		a.st.Words |= LocalInfile
	}
	if !a.loadedTable(Load) {
		a.st.Words |= MayBringRows
	}
	return a.dml(Load, name)
}

// prepare reads PREPARE and EXECUTE IMMEDIATE, whose text is in a string.
func (a *analyzer) prepare(k Kind, refusal string) bool {
	a.st.Kind, a.calls, a.refusal, a.prepares = k, true, refusal, true
	p := a.lexer
	for p.kind != tEOF && !p.is(';') {
		p.next()
		if p.kind == tString && a.namesSequence(p) {
			a.number()
		}
	}
	return a.scan()
}

// namesSequence reports whether the text in the string token p calls NEXTVAL.
func (a *analyzer) namesSequence(p lexer) bool {
	if beginsWord(p.src[p.start]) {
		p.start++ // N'...'
	}
	text := lexer{src: a.st.arena.decode(p), mode: a.mode}
	for text.next(); text.kind != tEOF; text.next() {
		next := text
		if next.next(); text.kw == kwNextval && next.is('(') {
			return true
		}
		if text.kw == kwNext && (next.kw == kwValue || next.kind == tNumber) {
			if next.next(); next.kw == kwFor || next.kw == kwValues {
				return true
			}
		}
	}
	return false
}

func (a *analyzer) handler() bool {
	p := a.peek() // table [. table] OPEN
	for p.kind == tWord || p.kind == tQuoted || p.is('.') {
		if p.next(); p.kw == kwOpen {
			a.st.Words |= HandlerOpen
			break
		}
	}
	return a.dml(Handler, "NEXTVAL in HANDLER")
}

func (a *analyzer) flush() bool {
	p := a.peek()
	if p.kw == kwSequences {
		a.advance()
		return a.namedSequences(FlushSequences)
	}
	for p.kind != tEOF && !p.is(';') {
		with := p.kw
		p.next()
		if with == kwWith && p.kw == kwRead || with == kwFor && p.kw == kwExport {
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
	t := KillTarget{Hard: p.kw == kwHard, Soft: p.kw == kwSoft}
	if t.Hard || t.Soft {
		p.next()
	}
	t.Query = p.kw == kwQuery
	if t.Query || p.kw == kwConnection {
		p.next()
	}
	t.Start, t.End = p.start, p.end
	switch id, number := parseUint(p.src[p.start:p.end]); {
	case p.kind == tNumber && number:
		t.Operand, t.ID = KillNumber, id
	case p.kind == tString:
		if id, number = parseUint(p.src[p.start+1 : max(p.start+1, p.end-1)]); number {
			t.Operand, t.ID = KillNumber, id
		}
	case p.is('-'):
		// Connector/J reads the greeting's id as a signed number, and kills by that.
		p.next()
		if n, number := parseUint(p.src[p.start:p.end]); p.kind == tNumber && number && n > 0 && n <= 1<<31 {
			t.Operand, t.ID, t.End = KillNumber, 1<<32-n, p.end
		}
	case p.is('?'):
		t.Operand = KillParam
	case p.kind == tUserVar:
		t.Operand = KillVariable
	case p.kw == kwConnectionID:
		if p.next(); p.is('(') {
			if p.next(); p.is(')') {
				t.Operand, t.End = KillSelf, p.end
			}
		}
	}
	execs := p.execs
	p.next()
	// Servers drop semicolons at the end; behind a comment they are of another statement.
	alone := p.kind == tEOF || p.is(';') && len(bytes.Trim(p.src[p.start:], "; \t\r\n")) == 0
	if t.Operand != KillOther && alone && !p.bad && !p.seenCond {
		st.Kill = t
	}
	if t.Operand == KillNumber && (!alone || a.index > 0) && (p.kind == tEOF || p.is(';')) && !p.bad && !p.seenCond && execs == a.execs {
		t.Begin, t.Results = a.first, a.index
		if st.Words&(CallsProcedure|SQLPrepare|Opaque) != 0 { // of the statements in front
			t.Results = -1
		}
		st.Kills = append(st.Kills, t)
	}
	return a.dml(Kill, "NEXTVAL in KILL")
}
