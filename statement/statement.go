package statement

import (
	"seqproxy/statement/ddl"
	"seqproxy/statement/lex"
)

// Kind is the kind of a text, by its first words. It does not promise that the server accepts the
// text.
type Kind uint8

// The kinds. Other is any text that was not understood, such as one with an unterminated string or
// comment. It must be relayed unchanged, and it may do anything.
const (
	Other                Kind = iota
	Empty                     // nothing but white space, comments and semicolons
	Select                    // SELECT, (SELECT ...), TABLE t
	Insert                    // INSERT
	Replace                   // REPLACE
	Update                    // UPDATE
	Delete                    // DELETE
	With                      // WITH ..., with any statement after the common table expressions
	Values                    // VALUES (...), (...)
	Set                       // SET in all its forms, see Statement.Assignments
	Use                       // USE, see Statement.Schema
	Begin                     // START TRANSACTION ..., BEGIN [WORK]; never BEGIN NOT ATOMIC
	Commit                    // COMMIT [WORK] [AND [NO] CHAIN] [[NO] RELEASE]
	Rollback                  // ROLLBACK [WORK] [AND [NO] CHAIN] [[NO] RELEASE]
	RollbackToSavepoint       // ROLLBACK [WORK] TO [SAVEPOINT] x
	Savepoint                 // SAVEPOINT x, RELEASE SAVEPOINT x
	Show                      // SHOW, except for the three below
	ShowWarnings              // SHOW WARNINGS, SHOW ERRORS, SHOW COUNT(*) WARNINGS|ERRORS
	ShowSequences             // SHOW SEQUENCES, see Statement.Sequence
	ShowCreateSequence        // SHOW CREATE SEQUENCE, see Statement.Sequence
	GetDiagnostics            // GET [CURRENT|STACKED] DIAGNOSTICS
	Explain                   // EXPLAIN, DESCRIBE, DESC, ANALYZE <statement>
	Call                      // CALL
	Do                        // DO
	Load                      // LOAD DATA, LOAD XML
	Prepare                   // PREPARE s FROM ...
	Execute                   // EXECUTE s
	ExecuteImmediate          // EXECUTE IMMEDIATE ...
	Deallocate                // DEALLOCATE PREPARE s, DROP PREPARE s
	Handler                   // HANDLER
	LockTables                // LOCK TABLE[S]
	UnlockTables              // UNLOCK TABLE[S]
	Flush                     // FLUSH
	Kill                      // KILL, see Statement.Kill
	XA                        // XA
	CreateDatabase            // CREATE DATABASE|SCHEMA, see Statement.Schema
	AlterDatabase             // ALTER DATABASE|SCHEMA; Schema is nil for the current one
	DropDatabase              // DROP DATABASE|SCHEMA, see Statement.Schema
	CreateTemporaryTable      // CREATE [OR REPLACE] TEMPORARY TABLE
	// CREATE or ALTER of a VIEW, ROUTINE, PACKAGE, TRIGGER or EVENT; the body is not read
	CreateStored
	// any other CREATE, ALTER, DROP, RENAME, TRUNCATE, GRANT, REVOKE and table maintenance
	OtherDDL
	CreateSequence // CREATE [OR REPLACE] [TEMPORARY] SEQUENCE, see Statement.Sequence
	AlterSequence  // ALTER SEQUENCE, see Statement.Sequence
	DropSequence   // DROP [TEMPORARY] SEQUENCE, see Statement.Sequence
	FlushSequences // FLUSH SEQUENCES, see Statement.Sequence
	CheckSequence  // CHECK SEQUENCE, see Statement.Sequence
	RepairSequence // REPAIR SEQUENCE, see Statement.Sequence
	// SELECT SEQUENCE_DECODE(...) and nothing else, see Statement.Sequence
	DecodeSequence
	ExplainRoute // EXPLAIN FORMAT=ROUTE ..., see Statement.Explained
	Seqproxy     // SEQPROXY ..., SHOW SEQPROXY ..., see Statement.Proxy
	Multi        // more than one statement that is not empty
)

// Words is a set of facts about a whole text. It may be incomplete for kinds whose text is not read
// to the end (CreateStored, the tail of Other).
type Words uint64

// The facts.
const (
	// LAST_INSERT_ID() without argument, @@last_insert_id, @@identity, SHOW VARIABLES
	ReadsLastInsertID Words = 1 << iota
	// LAST_INSERT_ID(expr), SET last_insert_id, SET identity, SET insert_id
	SetsLastInsertID
	ReadsRowCount  // ROW_COUNT()
	ReadsFoundRows // FOUND_ROWS()
	// @@warning_count, @@error_count, SHOW WARNINGS, GET DIAGNOSTICS
	ReadsWarnings
	CalcFoundRows // SQL_CALC_FOUND_ROWS
	// @x changed by anything but a literal in SET: :=, INTO @x, SET @x = expr
	SetsUserVariable
	SetsUserLiteral   // SET @x = literal
	ReadsUserVariable // @x
	UserLock          // GET_LOCK(), RELEASE_LOCK() and their kin
	TableLock         // LOCK TABLES
	// FLUSH TABLES ... WITH READ LOCK or FOR EXPORT, BACKUP, LOCK INSTANCE
	GlobalLock
	TemporaryTable   // CREATE or DROP TEMPORARY
	HandlerOpen      // HANDLER t OPEN
	SQLPrepare       // PREPARE, EXECUTE, EXECUTE IMMEDIATE, DEALLOCATE
	Into             // SELECT ... INTO OUTFILE, DUMPFILE or variables
	LocalInfile      // LOAD ... LOCAL INFILE
	ConnectionID     // CONNECTION_ID(), @@pseudo_thread_id
	HasNextval       // NEXTVAL in any of its spellings
	SequenceFunction // LASTVAL(), SETVAL(), NEXT VALUE FOR, PREVIOUS VALUE FOR
	SystemSchema     // information_schema or performance_schema is named
	Chain            // COMMIT or ROLLBACK AND CHAIN
	// COMMIT or ROLLBACK ... RELEASE: the server closes the connection
	Release
	// code that not every server runs, and the server is not known
	VersionedComment
	// a comment that servers of other versions read differently
	ReadByVersion
	ExecutableComment // code inside any executable comment
	UnionWord         // UNION, EXCEPT or INTERSECT
	FromTable         // a FROM clause other than FROM DUAL, at any depth
	Opaque            // a part of the text was not read
	// later texts may be read differently: SET of sql_mode or character sets, CALL, EXECUTE
	ChangesReading
	CallsProcedure // CALL
	// rows may go into a table that is not in Tables: see unread.go
	MayBringRows
	// CREATE SEQUENCE, SHOW SEQUENCES, SEQPROXY ...: see AboutSequences
	SequenceStatement
	// may be a question for ReadSequenceQuestion; so may a text with SystemSchema
	LooksForSequences
	ChangesTable // CREATE TABLE, ALTER TABLE, DROP TABLE, DROP DATABASE, RENAME
	// Several statements, each of which alone would leave no more than rows and what the next one
	// may read (LAST_INSERT_ID, row counts, warnings): see onlyPlain
	PlainParts
	// USE, and what may set sql_mode or auto_increment_increment; only of several statements
	UsesSchema
	MaySetMode
	MaySetStep
)

// ReadsCounts are the words of texts that read row counts or warnings of the last statement.
const ReadsCounts = ReadsRowCount | ReadsFoundRows | ReadsWarnings

// Func is the function of a call.
type Func uint8

// The functions.
const (
	Nextval              Func = iota + 1 // NEXTVAL(...)
	LastInsertID                         // LAST_INSERT_ID()
	LastInsertIDVariable                 // @@last_insert_id, @@identity, with any session scope
	CallConnectionID                     // CONNECTION_ID()
	PseudoThreadID                       // @@pseudo_thread_id
	Lastval                              // LASTVAL(s), PREVIOUS VALUE FOR s, s.CURRVAL
	Setval                               // SETVAL(s, n [, used [, round]]), see FuncCall.Set
)

// Form is the form of a sequence's name.
type Form uint8

// The forms. Only those with a name can be given a number.
const (
	FormNone         Form = iota
	FormName              // NEXTVAL('s'), NEXTVAL("s"), NEXTVAL(`s`), NEXTVAL(s)
	FormQualified         // NEXTVAL(db.s); see FuncCall.Schema
	FormParam             // NEXTVAL(?): the name is a parameter
	FormUserVariable      // NEXTVAL(@x)
	FormExpression        // anything else, and NEXTVAL()
)

// Place says how often a server would evaluate a NEXTVAL. It depends on where the call stands.
type Place uint8

// The places. Only a call at PlaceOnce may simply be replaced by a number.
const (
	// PlaceOnce: at most once per execution. SELECT without a table, VALUES, SET, CALL.
	PlaceOnce Place = iota
	// PlaceRow: once for each row that the client gets. The call is a whole item of a SELECT ...
	// FROM. The SELECT has no UNION, DISTINCT or INTO. It may have GROUP BY, ORDER BY and LIMIT,
	// and these may refer to an item by its name or position.
	PlaceRow
	// PlaceSource: once for each row of the SELECT ... FROM, or of a UNION, that an INSERT or
	// REPLACE reads. The call is in the select list, possibly as a part of an item.
	PlaceSource
	// PlaceChange: once for each row that an UPDATE or DELETE looks at. The call is outside of its
	// subqueries.
	PlaceChange
	// PlaceNever: never, since the call is in an EXPLAIN. Any number will do.
	PlaceNever
)

// Spelling is the form of a NEXTVAL or LASTVAL.
type Spelling uint8

// The spellings. AsColumn and AsSelectValue may also be a column. Such a call is one only if there
// is a sequence of that name. AsColumn is found only where no table, alias or schema of the text
// can be meant.
const (
	AsFunction    Spelling = iota // NEXTVAL(s), LASTVAL(s)
	AsValueFor                    // NEXT VALUE FOR s, PREVIOUS VALUE FOR s
	AsColumn                      // s.NEXTVAL, s.CURRVAL
	AsSelectValue                 // SELECT NEXT VALUE FROM s
	AsSelectCount                 // SELECT NEXT n VALUES FROM s
)

// Markers is the number of parameter markers in the call: one for its name, then one for its count
// or the value to set.
func (c *FuncCall) Markers() int {
	n := 0
	if c.Form == FormParam {
		n++
	}
	if c.Func == Nextval && c.Count == 0 || c.Set != nil && c.Set.Param {
		n++
	}
	return n
}

// MaxCount bounds the numbers that one NEXTVAL may take.
const MaxCount = 1_000_000

// SetvalArgs are the arguments of a SETVAL after the name.
type SetvalArgs struct {
	// Value is n. Negative means that n is less than 0; Value is then meaningless.
	Value    uint64
	Negative bool
	// Param is set if n is a parameter: SETVAL(s, ?).
	Param bool
	// Unused is set by is_used = 0: n itself is the next number.
	Unused bool
	Round  uint64
}

// FuncCall is a call whose value the proxy may have to provide. Calls do not overlap and are in
// text order.
type FuncCall struct {
	Func Func
	Form Form
	// Start and End are byte offsets: sql[Start:End] is the call, from the first letter of its name
	// to its closing parenthesis.
	Start, End int
	// Name is the sequence's name, decoded, in the client's character set and letter case. It
	// shares memory with the text or the Statement. It is valid until the next Analyze, as long as
	// the text does not change.
	Name []byte
	// Schema precedes the name in FormQualified. It is valid as long as Name.
	Schema []byte
	// Spelling is the form of a Nextval or Lastval.
	Spelling Spelling
	// Count is how many numbers a Nextval takes, 1 to MaxCount. The call's value is the first of
	// them. 0 means that a parameter has the count.
	Count uint64
	// Set is filled for Setval if its arguments are literals. It is immutable.
	Set *SetvalArgs
	// ParamsBefore is the number of parameter markers (?) before the call. The call's own are the
	// next Markers() ones.
	ParamsBefore int
	// Place is set for NEXTVAL. It has no meaning if there is a Refusal.
	Place Place
	// Statement is the index of the call's statement among the non-empty ones of the text.
	Statement int
	// Row is the index of the VALUES tuple that contains the call, in INSERT, REPLACE or the
	// statement VALUES; else 0.
	Row int
	// Item is the index in Statement.Items of the innermost item that contains the call, or -1.
	Item int

	depth  int  // number of parentheses around it
	inList bool // directly in the select list at this depth
}

// Item is an item of a select list that contains at least one Call, and whose name the client or an
// outer query sees. In a SelfContained statement Items are the whole select list.
type Item struct {
	// Start and End bound the expression without alias, trailing white space and comments. Without
	// an alias the server makes the column's name from sql[Start:End]: see Statement.ColumnName.
	Start, End int
	// FirstCall and EndCall bound the calls in the item: Calls[FirstCall:EndCall].
	FirstCall, EndCall int
	// HasAlias is set if the item has an alias. Alias is the decoded alias, valid as long as
	// FuncCall.Name.
	HasAlias bool
	Alias    []byte
	// Func is set if the item is exactly one call; else 0.
	Func Func
	// named: the text has no alias, but the column's name is Alias.
	named bool
}

// ColumnName returns the server's name for the column of item it: its alias, or its text. The name
// is in the client's character set. It shares memory with sql or st.
func (st *Statement) ColumnName(sql []byte, it Item) []byte {
	if it.HasAlias || it.named {
		return it.Alias
	}
	return lex.ColumnName(sql[it.Start:it.End], st.mode.Charset)
}

// TableRef is the table that an INSERT, REPLACE or UPDATE changes.
type TableRef struct {
	// Kind is Insert, Replace, Update or Load. It is Other for an INSERT or REPLACE that is part of
	// another statement (ANALYZE INSERT, SET STATEMENT ... FOR INSERT), or that has code before the
	// name that not every server runs.
	Kind Kind
	// Statement is the number of non-empty statements before it in the text.
	Statement int
	// Begin is the offset of the statement's first word.
	Begin int
	// Schema and Name are decoded, in the client's character set and letter case. Schema is nil for
	// the current one. They are valid as long as FuncCall.Name.
	Schema, Name []byte
	// Start and End bound the name and its schema: sql[Start:End].
	Start, End int
}

// Target is what an Assignment sets.
type Target uint8

// The targets.
const (
	TargetUnknown   Target = iota // not understood: assume anything
	UserVariable                  // @x = ...
	SessionVariable               // x =, SESSION x =, LOCAL x =, @@x =, @@session.x =, @@local.x =
	GlobalVariable                // GLOBAL, PERSIST, PERSIST_ONLY in either spelling
	Names                         // SET NAMES value [COLLATE c]; the value is both
	CharacterSet                  // SET CHARACTER SET value, SET CHARSET value
	Transaction                   // SET [scope] TRANSACTION ...; see Scope
	Password                      // SET PASSWORD ...
	Role                          // SET [DEFAULT] ROLE ...
	StatementFor                  // SET STATEMENT ... FOR ...; the part after FOR is not read
)

// Scope is the scope of SET TRANSACTION.
type Scope uint8

// The scopes.
const (
	ScopeNext Scope = iota // the next transaction only
	ScopeSession
	ScopeGlobal
)

// Assignment is one element of a SET statement.
type Assignment struct {
	Target Target
	Scope  Scope
	// Name is the variable's name without @ and scope, decoded, with ASCII letters in lower case.
	// It is valid as long as FuncCall.Name.
	Name []byte
	// Start and End bound the value: sql[Start:End], without white space and comments around it.
	// They are equal if there is no value.
	Start, End int
	// Literal says that the value is the same on every server at any time: a number, a string,
	// TRUE, FALSE or NULL. Except for user variables it may also be an unquoted word (ON, DEFAULT,
	// utf8mb4).
	Literal bool
}

// KillOperand is the form in which a KILL names the connection.
type KillOperand uint8

// The operands.
const (
	KillOther    KillOperand = iota // KILL USER, KILL QUERY ID, an expression: for the server
	KillNumber                      // an id, bare or as a string of digits
	KillParam                       // ?
	KillVariable                    // @x
	KillSelf                        // CONNECTION_ID()
)

// KillTarget is the operand of a KILL [HARD|SOFT] [CONNECTION|QUERY]. With KillOther the other
// fields are zero.
type KillTarget struct {
	Operand KillOperand
	// Query is set for KILL QUERY, which leaves the connection open.
	Query bool
	// Hard and Soft are MariaDB's words.
	Hard, Soft bool
	// ID is the connection id of a KillNumber. A client may write an id from 2^31 as the signed
	// 32-bit number with the same bits.
	ID uint64
	// Start and End bound the operand.
	Start, End int
	// Begin is the start of the statement. Results is the number of answers from the statements
	// before it, or -1 if that is unknown.
	Begin, Results int
}

// Statement is the result of Analyze for one text. The zero value is ready for use. Only one
// goroutine may use it. The next Analyze overwrites its slices.
type Statement struct {
	Kind  Kind
	Words Words
	// Params is the number of parameter markers (?) in the whole text.
	Params int
	// Calls are the calls that may be replaced. There are none for DDL, CreateStored and other
	// texts that go to the server unchanged. For Explain there are only those of sequences. In
	// CREATE TABLE only NEXTVAL('s') counts, which no server understands. NEXTVALs are listed even
	// if Refusal is set.
	Calls []FuncCall
	// Items are the select items around Calls, ordered by End.
	Items []Item
	// Start is where the first statement of the text begins. It is 0, or behind a limit of the time
	// that it may take: SET STATEMENT max_statement_time = 30 FOR.
	Start int
	// SelfContained: the text is a SELECT of calls only, possibly with aliases and FROM DUAL. It
	// can be answered without a server. All names and aliases are ASCII.
	SelfContained bool
	// ClientID: CONNECTION_ID() and @@pseudo_thread_id mean the id that the client has, since the
	// text cannot depend on the server's.
	ClientID bool
	// Runs is what the first statement may run besides itself.
	Runs Runs
	// Procedure is the name in the last CALL, decoded. ProcedureSchema precedes it, or is nil. They
	// are valid as long as FuncCall.Name.
	ProcedureSchema, Procedure []byte
	// Refusal is set if the text uses NEXTVAL in a way that cannot be rewritten. It names the form,
	// for the client. Such a text must not be rewritten. It may be relayed only if the proxy serves
	// none of the names in Calls, and such names are relayed.
	Refusal string
	// Assignments are the elements of SET, in order.
	Assignments []Assignment
	// Schema is the decoded schema in a Use, CreateDatabase, AlterDatabase or DropDatabase. It is
	// valid as long as FuncCall.Name.
	Schema []byte
	// Kill is filled for Kill.
	Kill KillTarget
	// Kills are the KILLs with a number that are not the whole text, in order.
	Kills []KillTarget
	// Sequence is set with the word SequenceStatement, else nil. For several statements it has the
	// names of all.
	Sequence *ddl.Sequence
	// Proxy is set for the kind Seqproxy, else nil. In a text of several statements it is for the
	// last such one. Sequence.Problem says what is wrong with the statement.
	Proxy *ddl.ProxyCommand
	// Explained is the start of the text that an ExplainRoute explains. The text extends to the
	// end.
	Explained int
	// Tables are the tables that INSERT, REPLACE, LOAD DATA and UPDATE change, in order. An UPDATE
	// counts only with one table and without alias and joins. See Table.
	Tables []TableRef
	// Parts are the non-empty statements of a Multi, in order.
	Parts []Part

	rare     bool          // Kill, Kills, Procedure, Sequence or Proxy is set
	sequence *ddl.Sequence // memory for Sequence
	mode     lex.Mode
	levels   []level
	arena    lex.Arena
}

// reset empties st and keeps its memory. resetRare does the rest. It is short enough to be inlined.
func (st *Statement) reset(mode lex.Mode) {
	st.Kind, st.Words, st.Params, st.Runs = Other, 0, 0, RunsFunctions
	st.Calls, st.Items, st.Assignments = st.Calls[:0], st.Items[:0], st.Assignments[:0]
	st.Tables, st.Parts = st.Tables[:0], st.Parts[:0]
	st.SelfContained, st.ClientID, st.Refusal, st.Schema, st.Start = false, false, "", nil, 0
	st.mode = mode
	st.arena = st.arena[:0]
}

// resetRare empties the fields that few texts fill.
func (st *Statement) resetRare() {
	if !st.rare {
		return
	}
	st.rare = false
	st.Kill, st.Kills = KillTarget{}, st.Kills[:0]
	st.Sequence, st.Proxy = nil, nil
	st.ProcedureSchema, st.Procedure = nil, nil
}

// Trim empties st and frees memory beyond a small bound. Call it for a Statement whose session is
// idle.
func (st *Statement) Trim() {
	st.rare = true
	st.reset(st.mode)
	st.resetRare()
	st.Calls, st.Items, st.Assignments = trim(st.Calls, 4), trim(st.Items, 4), trim(st.Assignments, 4)
	st.Tables, st.Kills, st.Parts = trim(st.Tables, 4), trim(st.Kills, 1), trim(st.Parts, 1)
	st.sequence = nil
	st.levels, st.arena = trim(st.levels, 8), trim(st.arena, 64)
}

// trim empties s. It frees the memory if that has room for more than n elements.
func trim[T any](s []T, n int) []T {
	if cap(s) > n {
		return nil
	}
	clear(s[:cap(s)])
	return s[:0]
}

// Part is one statement in a text of several.
type Part struct {
	Kind     Kind
	Schema   []byte // as Statement.Schema
	From, To int    // its elements of Statement.Assignments
	Words    Words  // those of the text up to its end
}

// RecordSize is about how many bytes a record takes.
const RecordSize = 100

// Records is the number of parts, tables, assignments and KILLs.
func (st *Statement) Records() int {
	return len(st.Parts) + len(st.Tables) + len(st.Assignments) + len(st.Kills)
}

// WordsBefore returns the words of the statements before the one at index.
func (st *Statement) WordsBefore(index int) Words {
	if index = min(index, len(st.Parts)); index == 0 {
		return 0
	}
	return st.Parts[index-1].Words
}

// ReadsOfLast returns the words of ReadsCounts that concern the statement before the text. Behind
// its first statement the text reads row counts of its own, and behind its first INSERT or UPDATE
// warnings of its own.
func (st *Statement) ReadsOfLast() Words {
	words := st.Words & ReadsCounts
	if len(st.Parts) == 0 {
		return words
	}
	before := words
	if len(st.Tables) > 0 {
		before = st.WordsBefore(st.Tables[0].Statement + 1)
	}
	return st.Parts[0].Words&ReadsRowCount | before&ReadsWarnings | words&ReadsFoundRows
}

// Table returns the table of a text that is a single INSERT, REPLACE, UPDATE or LOAD. It returns
// nil for other texts, and for unusual forms of a table's name. The result belongs to st.
func (st *Statement) Table() *TableRef {
	if len(st.Tables) == 1 && st.Tables[0].Kind == st.Kind {
		return &st.Tables[0]
	}
	return nil
}

// Plain reports whether the text is a single statement that is understood, needs no rewriting, and
// has no effect on the session: it changes neither session state, routing, framing nor how later
// texts are read. It must neither read nor explicitly set what the statement before left behind
// (LAST_INSERT_ID, row counts, warnings). Such a statement may be sent to the server together with
// its neighbours.
func (st *Statement) Plain() bool {
	switch st.Kind {
	case Select, Insert, Replace, Update, Delete, With, Values, Show:
		const harmless = ReadsUserVariable | ExecutableComment | UnionWord | FromTable
		return st.Words&^harmless == 0 && len(st.Calls) == 0 && st.Refusal == ""
	default:
		return false
	}
}

// onlyPlain reports whether the text has PlainParts. In doubt it has not.
func (st *Statement) onlyPlain() bool {
	const harmless = ReadsLastInsertID | SetsLastInsertID | ReadsCounts | CalcFoundRows | ReadsUserVariable | ConnectionID | HasNextval |
		SystemSchema | ExecutableComment | UnionWord | FromTable
	for i := range st.Parts {
		switch st.Parts[i].Kind {
		case Select, Insert, Replace, Update, Delete, With, Values:
		default:
			return false
		}
	}
	return st.Words&^harmless == 0
}

// ReadFor reports whether the given server reads the text as Analyze has.
func (st *Statement) ReadFor(server lex.Server) bool {
	return st.Words&ReadByVersion == 0 || st.mode.Server == server || !st.mode.Server.Identified()
}

// AboutSequences reports whether the text is a single statement that manages sequences or addresses
// the proxy. A server cannot run it, except that MariaDB may have a sequence of that name.
func (st *Statement) AboutSequences() bool {
	switch st.Kind {
	case CreateSequence, AlterSequence, DropSequence, ShowSequences, ShowCreateSequence, FlushSequences, CheckSequence, RepairSequence, DecodeSequence, Seqproxy:
		return true
	default:
		return false
	}
}

// ChangesTables reports whether the text may change the columns of a table for other sessions.
func (st *Statement) ChangesTables() bool {
	switch st.Kind {
	case OtherDDL, CreateStored, Other:
		return true
	}
	return st.Words&ChangesTable != 0
}

// ExplainsID reports whether an insert id is expected of the text: it says LAST_INSERT_ID(n), or
// the tables that it inserts into are known.
func (st *Statement) ExplainsID() bool {
	hidden := Opaque
	switch {
	case st.Kind == Multi: // any of the statements may have given it
		hidden |= VersionedComment
	case st.Kind == Set && len(st.Tables) > 0: // SET STATEMENT ... FOR INSERT
		hidden = 0
	}
	return st.Words&hidden == 0 && (len(st.Tables) > 0 || st.Words&SetsLastInsertID != 0)
}

// MayChangeLastInsertID reports whether the text may change the server's LAST_INSERT_ID(). Stored
// functions and triggers restore it.
func (st *Statement) MayChangeLastInsertID() bool {
	if st.Words&(SetsLastInsertID|HasNextval|VersionedComment|Opaque) != 0 {
		return true
	}
	switch st.Kind {
	case Empty, Select, Values, Set, Use, Begin, Commit, Rollback, RollbackToSavepoint, Savepoint,
		Show, ShowWarnings, ShowSequences, ShowCreateSequence, GetDiagnostics, Do, Prepare, Deallocate, Handler,
		LockTables, UnlockTables, Flush, Kill, CreateDatabase, AlterDatabase, DropDatabase,
		CreateSequence, AlterSequence, DropSequence, FlushSequences, CheckSequence, RepairSequence, DecodeSequence, Seqproxy, ExplainRoute:
		return false
	default:
		return true
	}
}

// MayReadLastStatement reports whether the text may read what an earlier statement left behind:
// LAST_INSERT_ID, ROW_COUNT, FOUND_ROWS, warnings and diagnostics. It may name them, or run code
// that Analyze cannot see. Triggers, views and stored functions are not considered.
func (st *Statement) MayReadLastStatement() bool {
	const reads = ReadsLastInsertID | ReadsCounts | SystemSchema | VersionedComment | Opaque
	if st.Words&reads != 0 {
		return true
	}
	switch st.Kind {
	case Other, Call, Execute, ExecuteImmediate, Multi, ShowWarnings, GetDiagnostics, Explain:
		return true
	default:
		return false
	}
}
