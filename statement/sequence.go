package statement

import (
	"bytes"

	"seqproxy/statement/lex"
)

// Statements about sequences as things: MariaDB's
// (https://mariadb.com/kb/en/create-sequence/, https://mariadb.com/kb/en/alter-sequence/)
// and some of our own. What MariaDB knows and seqproxy does not is Unsupported; what
// nobody knows is a Problem.

// createSequence reads what follows CREATE ... SEQUENCE.
func (a *analyzer) createSequence(orReplace, temporary bool) bool {
	s := a.aboutSequence(CreateSequence)
	s.OrReplace = orReplace
	if temporary {
		a.unsupported("TEMPORARY")
	}
	s.IfExists = a.ifExists(true)
	if !a.sequenceName() {
		return a.sequenceProblem("a sequence name is missing")
	}
	return a.sequenceOptions()
}

// alterSequence reads what follows ALTER SEQUENCE.
func (a *analyzer) alterSequence() bool {
	s := a.aboutSequence(AlterSequence)
	s.IfExists = a.ifExists(false)
	if !a.sequenceName() {
		return a.sequenceProblem("a sequence name is missing")
	}
	if a.ended() {
		a.sequenceError("nothing to alter")
	}
	return a.sequenceOptions()
}

// dropSequence reads what follows DROP ... SEQUENCE.
func (a *analyzer) dropSequence(temporary bool) bool {
	s := a.aboutSequence(DropSequence)
	if temporary {
		a.unsupported("TEMPORARY")
	}
	s.IfExists = a.ifExists(false)
	return a.sequenceNames()
}

// namedSequences reads the names that are all that follows in SHOW CREATE, CHECK,
// REPAIR and FLUSH. The current token is the word SEQUENCE or SEQUENCES.
func (a *analyzer) namedSequences(k Kind) bool {
	a.aboutSequence(k)
	if k == FlushSequences && a.ended() {
		return a.sequenceEnd()
	}
	return a.sequenceNames()
}

// showSequences reads [LIKE 'pattern'] after SHOW SEQUENCES.
func (a *analyzer) showSequences() bool {
	s := a.aboutSequence(ShowSequences)
	switch a.Kw {
	case lex.KwLike:
		a.advance()
		if !a.plainString() {
			return a.sequenceProblem("LIKE needs a string")
		}
		s.HasPattern, s.Pattern = true, a.st.arena.Decode(&a.Lexer)
		a.advance()
	case lex.KwWhere:
		a.unsupported("SHOW SEQUENCES WHERE")
		return a.sequenceSkip()
	case lex.KwFrom, lex.KwIn:
		a.unsupported("SHOW SEQUENCES FROM a schema")
		return a.sequenceSkip()
	}
	return a.sequenceEnd()
}

// aboutSequence begins a statement of a kind, and goes past the word SEQUENCE.
func (a *analyzer) aboutSequence(k Kind) *SequenceDDL {
	a.st.Kind, a.st.rare = k, true
	a.st.Words |= SequenceStatement
	if a.st.Sequence == nil {
		a.st.Sequence = a.st.newDDL()
	}
	a.empty = false
	a.advance()
	return a.st.Sequence
}

// newDDL is an empty SequenceDDL, in the memory of the one before.
func (st *Statement) newDDL() *SequenceDDL {
	if st.ddl == nil {
		st.ddl = new(SequenceDDL)
	}
	*st.ddl = SequenceDDL{Names: st.ddl.Names[:0], Schemas: st.ddl.Schemas[:0]}
	return st.ddl
}

func (a *analyzer) ended() bool { return a.Kind == lex.EOF || a.Is(';') }

// sequenceEnd wants the end of the statement.
func (a *analyzer) sequenceEnd() bool {
	if !a.ended() {
		return a.sequenceProblem("more than the statement")
	}
	a.finish()
	return a.Kind != lex.EOF
}

// ifExists reads IF EXISTS, or IF NOT EXISTS.
func (a *analyzer) ifExists(not bool) bool {
	if a.Kw != lex.KwIf {
		return false
	}
	p := a.peek()
	if not {
		if p.Kw != lex.KwNot {
			return false
		}
		p.Next()
	}
	if p.Kw != lex.KwExists {
		return false // a sequence called "if"
	}
	a.moveTo(p)
	a.advance()
	return true
}

// word says whether the current token is a word, given in lower case, that is no
// keyword elsewhere.
func (a *analyzer) word(text string) bool {
	return a.Kind == lex.Word && bytes.EqualFold(a.Src[a.Start:a.End], []byte(text))
}

func (a *analyzer) sequenceOptions() bool {
	for !a.ended() {
		if !a.sequenceOption() {
			return a.sequenceProblem("unknown option")
		}
	}
	a.finish()
	return a.Kind != lex.EOF
}

// sequenceOption reads one option; false if it is none.
func (a *analyzer) sequenceOption() bool {
	s := a.st.Sequence
	switch {
	case a.word("owned"):
		return a.sequenceOwner()
	case a.word("json_safe"):
		return a.sequenceToggle(&s.JSONSafe, Yes, "JSON_SAFE")
	case a.word("outage_cover"):
		return a.sequenceCover()
	}
	option := a.Kw
	a.advance()
	switch option {
	case lex.KwStart:
		a.optionally(lex.KwWith)
		return a.sequenceNumber(&s.Start, "START")
	case lex.KwCache:
		if a.equals(); a.Kw == lex.KwDefault {
			return a.sequenceDefault(&s.Cache, "CACHE")
		}
		return a.sequenceNumber(&s.Cache, "CACHE")
	case lex.KwIncrement:
		a.optionally(lex.KwBy)
		ok := a.sequenceNumber(&s.Increment, "INCREMENT")
		if s.Increment.Given && s.Increment.Value == 0 && s.Problem == "" {
			a.unsupported("INCREMENT 0, by which numbers follow auto_increment_increment,")
		}
		return ok
	case lex.KwMinvalue:
		a.equals()
		ok := a.sequenceNumber(&s.Min, "MINVALUE")
		if s.Min.Given && s.Min.Value == 0 && s.Problem == "" {
			a.unsupported("MINVALUE 0, as 0 is no key,")
		}
		return ok
	case lex.KwMaxvalue:
		a.equals()
		return a.sequenceNumber(&s.Max, "MAXVALUE")
	case lex.KwNo:
		return a.sequenceNo()
	case lex.KwNominvalue:
		return a.sequenceDefaulted(&s.Min, "MINVALUE")
	case lex.KwNomaxvalue:
		return a.sequenceDefaulted(&s.Max, "MAXVALUE")
	case lex.KwNocache:
		return a.sequenceGiven(&s.Cache, 0, "CACHE")
	case lex.KwCycle:
		return a.sequenceToggled(&s.Cycle, Yes, "CYCLE")
	case lex.KwNocycle:
		return a.sequenceToggled(&s.Cycle, No, "CYCLE")
	case lex.KwOrder:
		return a.sequenceToggled(&s.Order, Yes, "ORDER")
	case lex.KwNoorder:
		return a.sequenceToggled(&s.Order, No, "ORDER")
	case lex.KwRestart:
		return a.sequenceRestart()
	case lex.KwAs:
		return a.sequenceType()
	case lex.KwEngine:
		a.equals()
		if a.Kind != lex.Word && a.Kind != lex.Quoted && !a.plainString() {
			return false
		}
		if name := a.st.arena.Decode(&a.Lexer); !bytes.EqualFold(name, []byte("innodb")) {
			a.unsupported("an ENGINE other than InnoDB")
		}
		a.advance()
	case lex.KwComment:
		a.equals()
		if !a.plainString() {
			return false
		}
		s.HasComment, s.Comment = true, a.st.arena.Decode(&a.Lexer)
		a.advance()
	default:
		return false
	}
	return true
}

// sequenceCover reads [=] seconds, or DEFAULT, after OUTAGE_COVER.
func (a *analyzer) sequenceCover() bool {
	s := a.st.Sequence
	a.advance()
	if a.equals(); a.Kw == lex.KwDefault {
		return a.sequenceDefault(&s.Cover, "OUTAGE_COVER")
	}
	ok := a.sequenceNumber(&s.Cover, "OUTAGE_COVER")
	if s.Cover.Given && s.Cover.Value == 0 && s.Problem == "" {
		a.unsupported("OUTAGE_COVER 0, for which there is CACHE n,")
	}
	return ok
}

// sequenceNo reads what follows NO.
func (a *analyzer) sequenceNo() bool {
	s := a.st.Sequence
	switch {
	case a.Kw == lex.KwMinvalue:
		return a.sequenceDefault(&s.Min, "MINVALUE")
	case a.Kw == lex.KwMaxvalue:
		return a.sequenceDefault(&s.Max, "MAXVALUE")
	case a.Kw == lex.KwCache:
		a.advance()
		return a.sequenceGiven(&s.Cache, 0, "CACHE")
	case a.Kw == lex.KwCycle:
		return a.sequenceToggle(&s.Cycle, No, "CYCLE")
	case a.word("json_safe"):
		return a.sequenceToggle(&s.JSONSafe, No, "JSON_SAFE")
	case a.Kw == lex.KwOrder:
		return a.sequenceToggle(&s.Order, No, "ORDER")
	}
	return false
}

// sequenceRestart reads [[WITH | =] n] [FORCE] after RESTART.
func (a *analyzer) sequenceRestart() bool {
	s := a.st.Sequence
	if a.st.Kind != AlterSequence {
		a.sequenceError("RESTART, which is an option of ALTER SEQUENCE")
	}
	if s.Restart {
		a.twice("RESTART")
	}
	s.Restart = true
	if with := a.Kw == lex.KwWith || a.Is('='); with || a.Kind == lex.Number || a.Is('-') || a.Is('+') {
		a.optionally(lex.KwWith)
		if !a.sequenceNumber(&s.RestartWith, "RESTART") {
			return false
		}
	}
	if a.word("force") {
		s.Force = true
		a.advance()
	}
	return true
}

// sequenceTypes are the types of AS, and the greatest numbers of each: signed, unsigned.
var sequenceTypes = [...]struct {
	name             string
	signed, unsigned uint64
}{
	{"tinyint", 1<<7 - 1, 1<<8 - 1},
	{"smallint", 1<<15 - 1, 1<<16 - 1},
	{"mediumint", 1<<23 - 1, 1<<24 - 1},
	{"int", 1<<31 - 1, 1<<32 - 1},
	{"integer", 1<<31 - 1, 1<<32 - 1},
	{"bigint", 1<<63 - 1, 1<<64 - 1},
}

// sequenceType reads type [SIGNED | UNSIGNED | ZEROFILL] after AS, which MariaDB knows
// since 11.5.
func (a *analyzer) sequenceType() bool {
	s := a.st.Sequence
	if s.TypeMax != 0 {
		a.twice("AS")
	}
	for i := range sequenceTypes {
		t := &sequenceTypes[i]
		if !a.word(t.name) {
			continue
		}
		s.TypeMax = t.signed
		switch a.advance(); {
		case a.word("unsigned"), a.word("zerofill"):
			s.TypeMax = t.unsigned
			a.advance()
		case a.word("signed"):
			a.advance()
		}
		return true
	}
	return false
}

// sequenceOwner reads BY [schema.]table.column, or BY NONE, after OWNED.
func (a *analyzer) sequenceOwner() bool {
	s := a.st.Sequence
	if s.HasOwner {
		a.twice("OWNED BY")
	}
	if a.advance(); a.Kw != lex.KwBy {
		return false
	}
	a.advance()
	s.HasOwner = true
	if p := a.peek(); a.word("none") && !p.Is('.') {
		a.advance()
		return true
	}
	var parts [3][]byte
	n := 0
	for {
		if a.Kind != lex.Word && a.Kind != lex.Quoted || n == len(parts) {
			return false
		}
		parts[n] = a.st.arena.DecodeName(&a.Lexer)
		n++
		if a.advance(); !a.Is('.') {
			break
		}
		a.advance()
	}
	switch n {
	case 2:
		s.OwnerTable, s.OwnerColumn = parts[0], parts[1]
	case 3:
		s.OwnerSchema, s.OwnerTable, s.OwnerColumn = parts[0], parts[1], parts[2]
	default:
		a.sequenceError("OWNED BY needs a table and a column")
	}
	return true
}

// sequenceNumber reads an option's number, which must not be negative.
func (a *analyzer) sequenceNumber(value *SequenceNumber, option string) bool {
	if a.Is('-') {
		a.unsupported(option + " with a negative number")
		if a.advance(); a.Kind != lex.Number {
			return false
		}
		a.advance()
		return true
	}
	if a.Is('+') {
		a.advance()
	}
	n, ok := uint64(0), false
	if a.Kind == lex.Number {
		n, ok = lex.ParseUint(a.Src[a.Start:a.End])
	}
	if !ok {
		a.sequenceError(option + " needs a whole number")
		return false
	}
	a.advance()
	return a.sequenceGiven(value, n, option)
}

func (a *analyzer) sequenceGiven(value *SequenceNumber, n uint64, option string) bool {
	if value.Given || value.Default {
		a.twice(option)
	}
	*value = SequenceNumber{Given: true, Value: n}
	return true
}

// sequenceDefault is sequenceDefaulted for an option whose last word is the current token.
func (a *analyzer) sequenceDefault(value *SequenceNumber, option string) bool {
	a.advance()
	return a.sequenceDefaulted(value, option)
}

func (a *analyzer) sequenceDefaulted(value *SequenceNumber, option string) bool {
	if value.Given || value.Default {
		a.twice(option)
	}
	*value = SequenceNumber{Default: true}
	return true
}

// sequenceToggle is sequenceToggled for an option whose last word is the current token.
func (a *analyzer) sequenceToggle(value *Toggle, to Toggle, option string) bool {
	a.advance()
	return a.sequenceToggled(value, to, option)
}

func (a *analyzer) sequenceToggled(value *Toggle, to Toggle, option string) bool {
	if *value != NotSaid {
		a.twice(option)
	}
	*value = to
	return true
}

// optionally goes past a word or an equals sign.
func (a *analyzer) optionally(kw lex.Keyword) {
	if a.Kw == kw {
		a.advance()
	} else {
		a.equals()
	}
}

func (a *analyzer) equals() {
	if a.Is('=') {
		a.advance()
	}
}

func (a *analyzer) unsupported(option string) {
	if a.st.Sequence.Unsupported == "" {
		a.st.Sequence.Unsupported = option
	}
}

func (a *analyzer) twice(option string) {
	if a.st.Sequence.Twice == "" {
		a.st.Sequence.Twice = option
	}
}

func (a *analyzer) sequenceError(problem string) {
	if a.st.Sequence.Problem == "" {
		a.st.Sequence.Problem = problem
	}
}

// sequenceProblem notes a problem and passes over the rest.
func (a *analyzer) sequenceProblem(problem string) bool {
	a.sequenceError(problem)
	return a.sequenceSkip()
}

// sequenceSkip passes over the rest, the current token included.
func (a *analyzer) sequenceSkip() bool {
	if a.ended() {
		a.finish()
		return a.Kind != lex.EOF
	}
	return a.scan()
}

// sequenceNames reads a list of names and wants the end behind it.
func (a *analyzer) sequenceNames() bool {
	for {
		if !a.sequenceName() {
			return a.sequenceProblem("a sequence name is missing")
		}
		if !a.Is(',') {
			break
		}
		a.advance()
	}
	switch k := a.st.Kind; {
	case !a.ended():
		return a.sequenceProblem("more than names")
	case (k == ShowCreateSequence || k == RepairSequence) && len(a.st.Sequence.Names) > 1:
		a.sequenceError("more than one name")
	}
	return a.sequenceEnd()
}

// sequenceName reads a name, quoted in any way or not, and goes past it.
func (a *analyzer) sequenceName() bool {
	st := a.st
	if a.Kind != lex.Word && a.Kind != lex.Quoted && !a.plainString() {
		return false
	}
	name, schema := st.arena.DecodeName(&a.Lexer), 0
	if p := a.peek(); a.Kind != lex.String && p.Is('.') {
		if p.Next(); p.Kind == lex.Word || p.Kind == lex.Quoted {
			schema = len(name)
			name = st.arena.Qualified(name, st.arena.DecodeName(&p))
			a.moveTo(p)
		}
	}
	st.Sequence.Names = append(st.Sequence.Names, name)
	st.Sequence.Schemas = append(st.Sequence.Schemas, schema)
	a.advance()
	return true
}

func (a *analyzer) plainString() bool {
	return a.Kind == lex.String && (a.Src[a.Start] == '\'' || a.Src[a.Start] == '"')
}
