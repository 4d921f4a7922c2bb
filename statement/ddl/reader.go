package ddl

import "seqproxy/statement/lex"

// Statements about sequences: MariaDB's (https://mariadb.com/kb/en/create-sequence/,
// https://mariadb.com/kb/en/alter-sequence/) and the proxy's own. What MariaDB has and seqproxy
// does not is Unsupported; what neither has is a Problem.

// Reader reads a statement after its first words, from the current token of its Lexer. It stops at
// the end of the statement, or at a part that forbids the execution, which it notes in To.
type Reader struct {
	lex.Lexer
	Memory *lex.Arena // for decoded names
	To     *Sequence  // filled by all statements of a text

	alters bool // the statement is ALTER SEQUENCE
}

// Create reads what follows CREATE ... SEQUENCE.
func (r *Reader) Create(orReplace, temporary bool) {
	r.To.OrReplace = orReplace
	if temporary {
		r.refuse("TEMPORARY", "")
	}
	r.To.IfExists = r.ifExists(true)
	if !r.name() {
		r.problem("a sequence name is missing")
		return
	}
	r.options()
}

// Alter reads what follows ALTER SEQUENCE.
func (r *Reader) Alter() {
	r.alters = true
	r.To.IfExists = r.ifExists(false)
	if !r.name() {
		r.problem("a sequence name is missing")
		return
	}
	if r.ended() {
		r.problem("nothing to alter")
	}
	r.options()
}

// Drop reads what follows DROP ... SEQUENCE.
func (r *Reader) Drop(temporary bool) {
	if temporary {
		r.refuse("TEMPORARY", "")
	}
	r.To.IfExists = r.ifExists(false)
	r.list(false)
}

// Name reads the only name of SHOW CREATE SEQUENCE and REPAIR SEQUENCE.
func (r *Reader) Name() { r.list(true) }

// Names reads the names of CHECK SEQUENCE.
func (r *Reader) Names() { r.list(false) }

// NamesIfAny reads the names of FLUSH SEQUENCES, which may have none.
func (r *Reader) NamesIfAny() {
	if !r.ended() {
		r.list(false)
	}
}

// Show reads [LIKE 'pattern'] after SHOW SEQUENCES.
func (r *Reader) Show() {
	switch r.Kw {
	case lex.KwLike:
		r.Next()
		if !r.plainString() {
			r.problem("LIKE needs a string")
			return
		}
		r.To.HasPattern, r.To.Pattern = true, r.Memory.Decode(&r.Lexer)
		r.Next()
	case lex.KwWhere:
		r.refuse("SHOW SEQUENCES WHERE", "")
		return
	case lex.KwFrom, lex.KwIn:
		r.refuse("SHOW SEQUENCES FROM a schema", "")
		return
	}
	r.end()
}

// Decode reads ('name', key) after SELECT SEQUENCE_DECODE.
func (r *Reader) Decode() {
	r.Next() // the parenthesis
	if !r.name() {
		r.problem("a sequence name is missing")
		return
	}
	if !r.Is(',') {
		r.problem("SEQUENCE_DECODE needs a name and a key")
		return
	}
	r.Next()
	ok := false
	switch {
	case r.Kind == lex.Number:
		r.To.Key, ok = lex.ParseUint(r.Src[r.Start:r.End])
	case r.plainString():
		r.To.KeyText, ok = append([]byte{}, r.Memory.Decode(&r.Lexer)...), true
	}
	if r.Next(); !ok || !r.Is(')') {
		r.refuse("SEQUENCE_DECODE of something else than a key, written as a whole number or a string,", "")
		return
	}
	if r.Next(); !r.ended() {
		r.refuse("SEQUENCE_DECODE beside anything else, or behind a word,", "")
	}
}

// end expects the end of the statement.
func (r *Reader) end() {
	if !r.ended() {
		r.problem("more than the statement")
	}
}

func (r *Reader) ended() bool { return r.Kind == lex.EOF || r.Is(';') }

// peek reads the token after the current one without moving on.
func (r *Reader) peek() lex.Lexer {
	p := r.Lexer
	p.Next()
	return p
}

// ifExists reads IF EXISTS, or IF NOT EXISTS.
func (r *Reader) ifExists(not bool) bool {
	if r.Kw != lex.KwIf {
		return false
	}
	p := r.peek()
	if not {
		if p.Kw != lex.KwNot {
			return false
		}
		p.Next()
	}
	if p.Kw != lex.KwExists {
		return false // a sequence called "if"
	}
	r.Lexer = p
	r.Next()
	return true
}

// options reads all options of CREATE and ALTER.
func (r *Reader) options() {
	for !r.ended() {
		token := r.Src[r.Start:r.End]
		if !r.option() {
			r.problem(unknown(token))
			return
		}
	}
}

// unknown is the problem of a token that is no option.
func unknown(token []byte) string {
	if word, example := partOfKind(token); word != "" {
		return word + ", which stands behind a kind of keys, as in " + example
	}
	return "unknown option"
}

// partOfKind returns the word of a token that is an option of a kind, with an example.
func partOfKind(token []byte) (word, example string) {
	for _, part := range partsOfKinds {
		if lex.EqualFold(token, part.word) {
			return part.word, part.example
		}
	}
	return "", ""
}

var partsOfKinds = [...]struct {
	word    string
	example string
}{
	{"DIGITS", "ROTATE 1 DIGITS 12"},
	{"BITS", "SHARD BITS 4"},
	{"WIDEN", "FORMAT '{n:6}' WIDEN"},
	{"RESET", "FORMAT '{yyyyMMdd}{n:6}' RESET DAILY"},
	{"TIME", "FORMAT '{yyyyMMdd}{n:6}' TIME ZONE 'Asia/Shanghai' or SNOWFLAKE TIME BITS 41"},
	{"EPOCH", "SNOWFLAKE EPOCH '2026-01-01'"},
	{"TICK", "SNOWFLAKE TICK '10ms'"},
	{"WORKER", "SNOWFLAKE WORKER BITS 10"},
	{"COUNTER", "SNOWFLAKE COUNTER BITS 12"},
	{"VERSION", "UUID VERSION 4"},
	{"BINARY", "UUID BINARY"},
}

// kindStays says why the kind of keys cannot be altered.
const kindStays = "the kind of its keys never changes; create a sequence of another name"

// option reads one option. It returns false if the token begins none.
func (r *Reader) option() bool {
	s := r.To
	switch {
	case r.Spells("owned"):
		return r.owner()
	case r.Spells("json_safe"):
		return r.toggle(&s.JSONSafe, Yes, "JSON_SAFE")
	case r.Spells("outage_cover"):
		return r.cover()
	case r.Spells("bit_reversed"):
		return r.kind("BIT_REVERSED")
	case r.Spells("rotate"):
		return r.kind("ROTATE")
	case r.Spells("shard"):
		return r.kind("SHARD BITS")
	case r.Spells("snowflake"):
		return r.kind("SNOWFLAKE")
	case r.Spells("skip"):
		return r.skipRange()
	case r.Spells("format"):
		return r.kind("FORMAT")
	case r.Spells("uuid"):
		return r.kind("UUID")
	}
	if word, _ := partOfKind(r.Src[r.Start:r.End]); r.alters && word != "" {
		r.refuse(word+" in ALTER SEQUENCE", kindStays)
		return r.goPast()
	}
	option := r.Kw
	r.Next()
	switch option {
	case lex.KwStart:
		r.optionally(lex.KwWith)
		return r.number(&s.Start, "START")
	case lex.KwCache:
		if r.equals(); r.Kw == lex.KwDefault {
			return r.toDefault(&s.Cache, "CACHE")
		}
		return r.number(&s.Cache, "CACHE")
	case lex.KwIncrement:
		r.optionally(lex.KwBy)
		ok := r.number(&s.Increment, "INCREMENT")
		if s.Increment.Given && s.Increment.Value == 0 && s.Problem == "" {
			r.refuse("INCREMENT 0", "by it numbers would follow auto_increment_increment; want 1 or more")
		}
		return ok
	case lex.KwMinvalue:
		r.equals()
		ok := r.number(&s.Min, "MINVALUE")
		if s.Min.Given && s.Min.Value == 0 && s.Problem == "" {
			r.refuse("MINVALUE 0", "0 is no key; want 1 or more")
		}
		return ok
	case lex.KwMaxvalue:
		r.equals()
		return r.number(&s.Max, "MAXVALUE")
	case lex.KwNo:
		return r.no()
	case lex.KwNominvalue:
		return r.defaulted(&s.Min, "MINVALUE")
	case lex.KwNomaxvalue:
		return r.defaulted(&s.Max, "MAXVALUE")
	case lex.KwNocache:
		return r.given(&s.Cache, 0, "CACHE")
	case lex.KwCycle:
		return r.toggled(&s.Cycle, Yes, "CYCLE")
	case lex.KwNocycle:
		return r.toggled(&s.Cycle, No, "CYCLE")
	case lex.KwOrder:
		return r.toggled(&s.Order, Yes, "ORDER")
	case lex.KwNoorder:
		return r.toggled(&s.Order, No, "ORDER")
	case lex.KwRestart:
		return r.restart()
	case lex.KwAs:
		return r.ofType()
	case lex.KwEngine:
		r.equals()
		if r.Kind != lex.Word && r.Kind != lex.Quoted && !r.plainString() {
			return false
		}
		if name := r.Memory.Decode(&r.Lexer); !lex.EqualFold(name, "innodb") {
			r.refuse("an ENGINE other than InnoDB", "")
		}
		r.Next()
	case lex.KwComment:
		r.equals()
		if !r.plainString() {
			return false
		}
		s.HasComment, s.Comment = true, r.Memory.Decode(&r.Lexer)
		r.Next()
	default:
		return false
	}
	return true
}

// cover reads [=] seconds, or DEFAULT, after OUTAGE_COVER.
func (r *Reader) cover() bool {
	s := r.To
	r.Next()
	if r.equals(); r.Kw == lex.KwDefault {
		return r.toDefault(&s.Cover, "OUTAGE_COVER")
	}
	ok := r.number(&s.Cover, "OUTAGE_COVER")
	if s.Cover.Given && s.Cover.Value == 0 && s.Problem == "" {
		r.refuse("OUTAGE_COVER 0", "say CACHE n instead")
	}
	return ok
}

// kind reads a clause that begins with word.
func (r *Reader) kind(word string) bool {
	k := &r.To.Kind
	switch {
	case r.alters:
		r.refuse(word+" in ALTER SEQUENCE", kindStays)
	case k.Word == word:
		r.twice(word)
	case k.Word != "":
		r.refuse(word+" beside "+k.Word, "a sequence has one kind of keys; leave one of them out")
	}
	*k = Kind{Word: word, SkipFrom: k.SkipFrom, SkipTo: k.SkipTo}
	r.Next()
	switch word {
	case "FORMAT":
		return r.format(k)
	case "UUID":
		if r.Spells("version") {
			r.Next()
			if !r.number(&k.N, "UUID VERSION") {
				return false
			}
		}
		if k.Binary = r.Spells("binary"); k.Binary {
			r.Next()
		}
	case "ROTATE":
		if !r.number(&k.N, word) {
			return false
		}
		if !r.Spells("digits") {
			r.problem("ROTATE d needs DIGITS w")
			return false
		}
		r.Next()
		return r.number(&k.Digits, "DIGITS")
	case "SHARD BITS":
		if !r.Spells("bits") {
			r.problem("SHARD needs BITS s")
			return false
		}
		r.Next()
		return r.number(&k.N, word)
	case "SNOWFLAKE":
		return r.snowflake(k)
	}
	return true
}

// format reads 'format' and its options, after FORMAT.
func (r *Reader) format(k *Kind) bool {
	r.equals()
	if !r.plainString() {
		r.problem("FORMAT needs a string, as in FORMAT 'PO-{yyyyMMdd}-{n:6}'")
		return false
	}
	k.Format = append([]byte{}, r.Memory.Decode(&r.Lexer)...)
	r.Next()
	for {
		switch {
		case r.Spells("widen") && !k.Widen:
			k.Widen = true
		case r.Spells("widen"):
			r.twice("WIDEN")
		case r.Spells("reset"):
			if k.Reset != "" {
				r.twice("RESET")
			}
			if k.Reset = r.period(); k.Reset == "" {
				r.problem("RESET needs DAILY, MONTHLY or YEARLY behind it")
				return false
			}
		case r.Spells("time"):
			if k.Zone != nil {
				r.twice("TIME ZONE")
			}
			if r.Next(); !r.Spells("zone") {
				r.problem("TIME needs ZONE 'name', as in TIME ZONE 'Asia/Shanghai'")
				return false
			}
			if r.Next(); !r.plainString() {
				r.problem("TIME ZONE needs a string, as in TIME ZONE 'Asia/Shanghai'")
				return false
			}
			k.Zone = append([]byte{}, r.Memory.Decode(&r.Lexer)...)
		default:
			return true
		}
		r.Next()
	}
}

// period reads the word after RESET; "" if it is none.
func (r *Reader) period() string {
	r.Next()
	for _, word := range [...]string{"DAILY", "MONTHLY", "YEARLY"} {
		if r.Spells(word) {
			return word
		}
	}
	return ""
}

// snowflake reads the options of SNOWFLAKE, in any order.
func (r *Reader) snowflake(k *Kind) bool {
	for {
		var bits *Number
		var text *[]byte
		var option string
		switch {
		case r.Spells("epoch"):
			text, option = &k.Epoch, "EPOCH"
		case r.Spells("tick"):
			text, option = &k.Tick, "TICK"
		case r.Spells("time"):
			bits, option = &k.TimeBits, "TIME BITS"
		case r.Spells("worker"):
			bits, option = &k.WorkerBits, "WORKER BITS"
		case r.Spells("counter"):
			bits, option = &k.CounterBits, "COUNTER BITS"
		default:
			return true
		}
		switch r.Next(); {
		case text != nil && !r.plainString():
			r.problem(option + " needs a string")
			return false
		case text != nil:
			if *text != nil {
				r.twice(option)
			}
			*text = append([]byte{}, r.Memory.Decode(&r.Lexer)...)
			r.Next()
		case !r.Spells("bits"):
			r.problem(option + " n needs BITS")
			return false
		default:
			r.Next()
			if !r.number(bits, option) {
				return false
			}
		}
	}
}

// skipRange reads RANGE a TO b after SKIP.
func (r *Reader) skipRange() bool {
	k := &r.To.Kind
	if r.alters {
		r.refuse("SKIP RANGE in ALTER SEQUENCE", kindStays)
	}
	if r.Next(); !r.Spells("range") {
		r.problem("SKIP needs RANGE a TO b")
		return false
	}
	r.Next()
	if !r.number(&k.SkipFrom, "SKIP RANGE") {
		return false
	}
	if !r.Spells("to") {
		r.problem("SKIP RANGE a needs TO b")
		return false
	}
	r.Next()
	return r.number(&k.SkipTo, "SKIP RANGE ... TO")
}

// goPast skips the rest of the statement.
func (r *Reader) goPast() bool {
	for !r.ended() {
		r.Next()
	}
	return true
}

// no reads what follows NO.
func (r *Reader) no() bool {
	s := r.To
	switch {
	case r.Kw == lex.KwMinvalue:
		return r.toDefault(&s.Min, "MINVALUE")
	case r.Kw == lex.KwMaxvalue:
		return r.toDefault(&s.Max, "MAXVALUE")
	case r.Kw == lex.KwCache:
		r.Next()
		return r.given(&s.Cache, 0, "CACHE")
	case r.Kw == lex.KwCycle:
		return r.toggle(&s.Cycle, No, "CYCLE")
	case r.Spells("json_safe"):
		return r.toggle(&s.JSONSafe, No, "JSON_SAFE")
	case r.Kw == lex.KwOrder:
		return r.toggle(&s.Order, No, "ORDER")
	}
	return false
}

// restart reads [[WITH | =] n] [FORCE] after RESTART.
func (r *Reader) restart() bool {
	s := r.To
	if !r.alters {
		r.problem("RESTART, which is an option of ALTER SEQUENCE")
	}
	if s.Restart {
		r.twice("RESTART")
	}
	s.Restart = true
	if with := r.Kw == lex.KwWith || r.Is('='); with || r.Kind == lex.Number || r.Is('-') || r.Is('+') {
		r.optionally(lex.KwWith)
		if !r.number(&s.RestartWith, "RESTART") {
			return false
		}
	}
	if r.Spells("force") {
		s.Force = true
		r.Next()
	}
	return true
}

// sequenceTypes are the types of AS, with the greatest number of each: signed, unsigned.
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

// ofType reads type [SIGNED | UNSIGNED | ZEROFILL] after AS, which MariaDB has since 11.5.
func (r *Reader) ofType() bool {
	s := r.To
	if s.TypeMax != 0 {
		r.twice("AS")
	}
	for i := range sequenceTypes {
		t := &sequenceTypes[i]
		if !r.Spells(t.name) {
			continue
		}
		s.TypeMax = t.signed
		switch r.Next(); {
		case r.Spells("unsigned"), r.Spells("zerofill"):
			s.TypeMax = t.unsigned
			r.Next()
		case r.Spells("signed"):
			r.Next()
		}
		return true
	}
	return false
}

// owner reads BY [schema.]table.column, or BY NONE, after OWNED.
func (r *Reader) owner() bool {
	s := r.To
	if s.HasOwner {
		r.twice("OWNED BY")
	}
	if r.Next(); r.Kw != lex.KwBy {
		return false
	}
	r.Next()
	s.HasOwner = true
	if p := r.peek(); r.Spells("none") && !p.Is('.') {
		r.Next()
		return true
	}
	var parts [3][]byte
	n := 0
	for {
		if r.Kind != lex.Word && r.Kind != lex.Quoted || n == len(parts) {
			return false
		}
		parts[n] = r.Memory.DecodeName(&r.Lexer)
		n++
		if r.Next(); !r.Is('.') {
			break
		}
		r.Next()
	}
	switch n {
	case 2:
		s.OwnerTable, s.OwnerColumn = parts[0], parts[1]
	case 3:
		s.OwnerSchema, s.OwnerTable, s.OwnerColumn = parts[0], parts[1], parts[2]
	default:
		r.problem("OWNED BY needs a table and a column")
	}
	return true
}

// number reads an option's number, which must not be negative.
func (r *Reader) number(value *Number, option string) bool {
	if r.Is('-') {
		r.refuse(option+" with a negative number", "")
		if r.Next(); r.Kind != lex.Number {
			return false
		}
		r.Next()
		return true
	}
	if r.Is('+') {
		r.Next()
	}
	n, ok := r.wholeNumber()
	if !ok {
		r.problem(option + notWhole)
		return false
	}
	return r.given(value, n, option)
}

const notWhole = " needs a whole number"

// wholeNumber reads a number without a sign.
func (r *Reader) wholeNumber() (n uint64, ok bool) {
	if r.Kind == lex.Number {
		n, ok = lex.ParseUint(r.Src[r.Start:r.End])
	}
	if ok {
		r.Next()
	}
	return n, ok
}

func (r *Reader) given(value *Number, n uint64, option string) bool {
	if value.Given || value.Default {
		r.twice(option)
	}
	*value = Number{Given: true, Value: n}
	return true
}

// toDefault is defaulted, for an option whose last word is the current token.
func (r *Reader) toDefault(value *Number, option string) bool {
	r.Next()
	return r.defaulted(value, option)
}

func (r *Reader) defaulted(value *Number, option string) bool {
	if value.Given || value.Default {
		r.twice(option)
	}
	*value = Number{Default: true}
	return true
}

// toggle is toggled, for an option whose last word is the current token.
func (r *Reader) toggle(value *Toggle, to Toggle, option string) bool {
	r.Next()
	return r.toggled(value, to, option)
}

func (r *Reader) toggled(value *Toggle, to Toggle, option string) bool {
	if *value != NotSaid {
		r.twice(option)
	}
	*value = to
	return true
}

// optionally skips a word or an equals sign.
func (r *Reader) optionally(kw lex.Keyword) {
	if r.Kw == kw {
		r.Next()
	} else {
		r.equals()
	}
}

func (r *Reader) equals() {
	if r.Is('=') {
		r.Next()
	}
}

// refuse notes what is not supported, with a reason or a way out if there is one.
func (r *Reader) refuse(option, wayOut string) {
	if r.To.Unsupported == "" {
		r.To.Unsupported, r.To.WayOut = option, wayOut
	}
}

func (r *Reader) twice(option string) {
	if r.To.Twice == "" {
		r.To.Twice = option
	}
}

func (r *Reader) problem(problem string) {
	if r.To.Problem == "" {
		r.To.Problem = problem
	}
}

// mostNames bounds the names in a list.
const mostNames = 10_000

// list reads a list of names, or with one a single one, and expects the end after it.
func (r *Reader) list(one bool) {
	for n := 0; ; n++ {
		if n == mostNames {
			r.problem("more than 10,000 names")
			return
		}
		if !r.name() {
			r.problem("a sequence name is missing")
			return
		}
		if !r.Is(',') {
			break
		}
		r.Next()
	}
	switch {
	case !r.ended():
		r.problem("more than names")
	case one && len(r.To.Names) > 1:
		r.problem("more than one name")
	}
}

// name reads a name, quoted in any way or not.
func (r *Reader) name() bool {
	if r.Kind != lex.Word && r.Kind != lex.Quoted && !r.plainString() {
		return false
	}
	name, schema := r.Memory.DecodeName(&r.Lexer), 0
	if p := r.peek(); r.Kind != lex.String && p.Is('.') {
		if p.Next(); p.Kind == lex.Word || p.Kind == lex.Quoted {
			schema = len(name)
			name = r.Memory.Qualified(name, r.Memory.DecodeName(&p))
			r.Lexer = p
		}
	}
	r.To.Names = append(r.To.Names, name)
	r.To.Schemas = append(r.To.Schemas, schema)
	r.Next()
	return true
}

func (r *Reader) plainString() bool {
	return r.Kind == lex.String && (r.Src[r.Start] == '\'' || r.Src[r.Start] == '"')
}
