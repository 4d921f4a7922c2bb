package statement

import (
	"seqproxy/statement/ddl"
	"seqproxy/statement/lex"
)

// Kind says what a text is, by its first words. A Kind never promises that the
// server will accept the text.
type Kind uint8

// The kinds. Other is everything that was not understood, including texts with
// an unterminated string or comment: it must be relayed untouched and
// everything must be assumed possible.
const (
	Other                Kind = iota
	Empty                     // nothing but white space, comments and semicolons
	Select                    // SELECT, (SELECT ...), TABLE t
	Insert                    // INSERT
	Replace                   // REPLACE
	Update                    // UPDATE
	Delete                    // DELETE
	With                      // WITH ... whatever follows the common table expressions
	Values                    // VALUES (...), (...)
	Set                       // SET in all its forms, see Statement.Assignments
	Use                       // USE, see Statement.Schema
	Begin                     // START TRANSACTION ..., BEGIN [WORK]; never BEGIN NOT ATOMIC
	Commit                    // COMMIT [WORK] [AND [NO] CHAIN] [[NO] RELEASE]
	Rollback                  // ROLLBACK [WORK] [AND [NO] CHAIN] [[NO] RELEASE]
	RollbackToSavepoint       // ROLLBACK [WORK] TO [SAVEPOINT] x
	Savepoint                 // SAVEPOINT x, RELEASE SAVEPOINT x
	Show                      // SHOW, but for the three below
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
	AlterDatabase             // ALTER DATABASE|SCHEMA; Schema is nil when the current one is meant
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

// Words is a set of facts about a text, gathered over the whole of it.
// In a text of a kind that is not looked into (CreateStored, the tail of
// Other) the set may be incomplete.
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
	// code that not every server runs, and it is not known which server it is
	VersionedComment
	// a comment that servers of other versions read in another way
	ReadByVersion
	ExecutableComment // code inside any executable comment
	UnionWord         // UNION, EXCEPT or INTERSECT
	FromTable         // a FROM clause other than FROM DUAL, at any depth
	Opaque            // a part of the text was not looked into
	// later texts may be read in another way: SET of sql_mode or character sets, CALL, EXECUTE
	ChangesReading
	CallsProcedure // CALL
	// rows may come into a table that is not in Tables: see unread.go
	MayBringRows
	// CREATE SEQUENCE, SHOW SEQUENCES, SEQPROXY ...: see AboutSequences
	SequenceStatement
	// may be a question of ReadSequenceQuestion, as may be one with SystemSchema
	LooksForSequences
)

// Func says which function a Call is.
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

// Form says how a sequence was named.
type Form uint8

// The forms. Only those with a name can be given a number.
const (
	FormNone         Form = iota
	FormName              // NEXTVAL('s'), NEXTVAL("s"), NEXTVAL(`s`), NEXTVAL(s)
	FormQualified         // NEXTVAL(db.s); see FuncCall.Schema
	FormParam             // NEXTVAL(?): the name is a parameter
	FormUserVariable      // NEXTVAL(@x)
	FormExpression        // anything else, also NEXTVAL()
)

// Place says how often a server would evaluate a NEXTVAL, by where it stands.
type Place uint8

// The places. Only a call at PlaceOnce may simply be replaced by a number.
const (
	// PlaceOnce: at most once in an execution. SELECT without a table, VALUES, SET, CALL.
	PlaceOnce Place = iota
	// PlaceRow: the call is a whole item of the list of a SELECT ... FROM whose rows the
	// client gets: once for each of them. The SELECT stands alone, without UNION,
	// DISTINCT and INTO; it may have GROUP BY, ORDER BY and LIMIT, and an item may be
	// referred to by its name or number there.
	PlaceRow
	// PlaceSource: the call stands in the list of the SELECT ... FROM, or of one of those
	// joined by UNION, that INSERT or REPLACE takes its rows from: once for each of them.
	// It may be a part of an item.
	PlaceSource
	// PlaceChange: the call stands in UPDATE or DELETE, in no query within: once for each
	// row that is looked at.
	PlaceChange
	// PlaceNever: the call stands in an EXPLAIN, which evaluates nothing. Any number does.
	PlaceNever
)

// Spelling says in which of its spellings a NEXTVAL or LASTVAL was written.
type Spelling uint8

// The spellings. AsColumn and AsSelectValue are also how a column is written: such a
// call is one only if there is a sequence of that name. AsColumn is found only where no
// table, alias or schema of the text could be meant.
const (
	AsFunction    Spelling = iota // NEXTVAL(s), LASTVAL(s)
	AsValueFor                    // NEXT VALUE FOR s, PREVIOUS VALUE FOR s
	AsColumn                      // s.NEXTVAL, s.CURRVAL
	AsSelectValue                 // SELECT NEXT VALUE FROM s
	AsSelectCount                 // SELECT NEXT n VALUES FROM s
)

// Markers is how many parameter markers the call has: for its name, and behind that for
// its count or the value that it sets.
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

// MaxCount is the most numbers that one NEXTVAL may take.
const MaxCount = 1_000_000

// SetvalArgs are the arguments of a SETVAL behind the name.
type SetvalArgs struct {
	// Value is n; Negative is set if it is less than 0, whatever Value is.
	Value    uint64
	Negative bool
	// Param is set if n is a parameter: SETVAL(s, ?).
	Param bool
	// Unused is set by is_used = 0: n itself is the next number.
	Unused bool
	Round  uint64
}

// FuncCall is one place in the text whose value the proxy may have to provide.
// Calls never overlap and stand in text order.
type FuncCall struct {
	Func Func
	Form Form
	// Start and End are byte offsets into the text: sql[Start:End] is the call,
	// from the first letter of the name to after the closing parenthesis.
	Start, End int
	// Name is the sequence's name, decoded, in the client's character set
	// and letter case. It aliases the text or the Statement: valid until the
	// next Analyze, and as long as the text is not changed.
	Name []byte
	// Schema is what stands in front of the name in FormQualified. Valid as
	// long as Name.
	Schema []byte
	// Spelling is how a Nextval or Lastval was written.
	Spelling Spelling
	// Count is how many numbers a Nextval takes, 1 to MaxCount; its value is the
	// first of them. 0: a parameter tells.
	Count uint64
	// Set is filled for Setval, unless its arguments are no literals. Nobody
	// changes what it points at.
	Set *SetvalArgs
	// ParamsBefore counts the parameter markers (?) in front of the call. Its own
	// are the next Markers() ones.
	ParamsBefore int
	// Place is set for NEXTVAL. It means nothing where there is a Refusal.
	Place Place
	// Statement is the index of the statement the call stands in, among those of the
	// text that are not empty.
	Statement int
	// Row is the index of the VALUES tuple the call stands in, of INSERT, REPLACE or the
	// statement VALUES; else 0.
	Row int
	// Item is the index into Statement.Items of the innermost item around the
	// call, or -1.
	Item int

	depth  int  // of the parentheses around it
	inList bool // directly in the list of the SELECT at this depth
}

// Item is one item of a select list whose names the client (or an outer
// query) sees, and which contains at least one Call. In a SelfContained
// statement the Items are the whole select list.
type Item struct {
	// Start and End bound the expression without alias, trailing white space
	// and comments. sql[Start:End] is what the server makes the column name
	// of when there is no alias; see Statement.ColumnName.
	Start, End int
	// FirstCall and EndCall bound the calls inside: Calls[FirstCall:EndCall].
	FirstCall, EndCall int
	// HasAlias is set if the item has an alias; Alias is it, decoded, valid
	// as long as FuncCall.Name.
	HasAlias bool
	Alias    []byte
	// Func is the one call that this item consists of; 0 if it is more.
	Func Func
	// named: the column's name is Alias though there is no alias.
	named bool
}

// TableRef is the table that an INSERT, REPLACE or UPDATE changes.
type TableRef struct {
	// Kind is Insert, Replace, Update or Load; Other for an INSERT or REPLACE that is
	// a part of another statement (ANALYZE INSERT, SET STATEMENT ... FOR INSERT), or has
	// code in front of the name that not every server runs.
	Kind Kind
	// Statement counts the statements in front, in a text of several; empty ones
	// do not count.
	Statement int
	// Begin is where the statement begins: the offset of its first word.
	Begin int
	// Schema and Name are decoded, in the client's character set and letter
	// case; Schema is nil where the current one is meant. Valid as long as
	// FuncCall.Name.
	Schema, Name []byte
	// Start and End bound the name with its schema: sql[Start:End].
	Start, End int
}

// Target says what an Assignment sets.
type Target uint8

// The targets.
const (
	TargetUnknown   Target = iota // not understood: assume anything
	UserVariable                  // @x = ...
	SessionVariable               // x =, SESSION x =, LOCAL x =, @@x =, @@session.x =, @@local.x =
	GlobalVariable                // GLOBAL, PERSIST, PERSIST_ONLY in either spelling
	Names                         // SET NAMES value [COLLATE c]; the value spans both
	CharacterSet                  // SET CHARACTER SET value, SET CHARSET value
	Transaction                   // SET [scope] TRANSACTION ...; see Scope
	Password                      // SET PASSWORD ...
	Role                          // SET [DEFAULT] ROLE ...
	StatementFor                  // SET STATEMENT ... FOR ...; what follows FOR is not looked into
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
	// Name is the variable's name, decoded and with ASCII letters lowered,
	// without @ and scope. Valid as long as FuncCall.Name.
	Name []byte
	// Start and End bound the value: sql[Start:End], without white space and
	// comments around it. Empty where there is none.
	Start, End int
	// Literal is set if the value is the same on every server and at every
	// time: a number, a string, TRUE, FALSE, NULL, and for anything but a user
	// variable also a bare word (ON, DEFAULT, utf8mb4).
	Literal bool
}

// KillOperand says how a KILL statement names the connection.
type KillOperand uint8

// The operands.
const (
	KillOther    KillOperand = iota // KILL USER, KILL QUERY ID, an expression: the server's to read
	KillNumber                      // an id, bare or as a string of digits
	KillParam                       // ?
	KillVariable                    // @x
	KillSelf                        // CONNECTION_ID()
)

// KillTarget is what a KILL [HARD|SOFT] [CONNECTION|QUERY] statement names. With
// KillOther the rest is zero.
type KillTarget struct {
	Operand KillOperand
	// Query is set for KILL QUERY: the connection stays.
	Query bool
	// Hard and Soft are set for MariaDB's words.
	Hard, Soft bool
	// ID is the connection id of a KillNumber. One of 2^31 and above may be written as
	// the signed number of 32 bits that has its bits.
	ID uint64
	// Start and End bound the operand.
	Start, End int
	// Begin is where the statement begins. Results is the number of answers that come before
	// its own, those of the statements in front; -1 if it cannot be said.
	Begin, Results int
}

// Statement is what Analyze found out about one text. The zero value is ready
// for use. A Statement belongs to one goroutine; its slices are overwritten by
// the next Analyze.
type Statement struct {
	Kind  Kind
	Words Words
	// Params counts the parameter markers (?) of the whole text.
	Params int
	// Calls lists the calls of texts in which calls may be replaced: it is empty for DDL,
	// CreateStored and everything else that goes to the server as it is, and holds only those of
	// sequences for Explain. NEXTVALs are listed even if Refusal is set; of those in CREATE TABLE
	// only NEXTVAL('s'), which no server understands.
	Calls []FuncCall
	// Items lists the select items around Calls, ordered by End.
	Items []Item
	// SelfContained: the text is a SELECT of nothing but calls, with or
	// without aliases and FROM DUAL, so that it can be answered without a
	// server. All names and aliases are ASCII.
	SelfContained bool
	// ClientID: CONNECTION_ID() and @@pseudo_thread_id mean the id that the client knows, as
	// nothing in the text can know the server's for the connection.
	ClientID bool
	// Runs is what the first statement may run beside itself.
	Runs Runs
	// Procedure is the name that a Call names last, decoded; ProcedureSchema is what stands in
	// front of it, nil if nothing does. Valid as long as FuncCall.Name.
	ProcedureSchema, Procedure []byte
	// Refusal is not empty if the text uses NEXTVAL in a way that cannot be
	// rewritten; it names the form, for the client. Such a text must not be
	// rewritten, and must not be sent on unless none of the names in Calls is
	// served here and such names are relayed.
	Refusal string
	// Assignments are the elements of SET, in order.
	Assignments []Assignment
	// Schema is the schema that Use, CreateDatabase, AlterDatabase and
	// DropDatabase name, decoded. Valid as long as FuncCall.Name.
	Schema []byte
	// Kill is filled for Kill.
	Kill KillTarget
	// Kills are the KILLs of a number that are not the whole text, in order.
	Kills []KillTarget
	// Sequence is there with the word SequenceStatement, else nil. Of several statements in
	// one text it has the names of all.
	Sequence *ddl.Sequence
	// Proxy is there with the kind Seqproxy, else nil; in a text of several it is that of the
	// last such statement. What is wrong with the statement is Sequence.Problem.
	Proxy *ddl.ProxyCommand
	// Explained is where the text begins, all the rest, that an ExplainRoute is about.
	Explained int
	// Tables are the tables that INSERT, REPLACE, LOAD DATA and UPDATE change, in
	// order; of UPDATE only where it names one table without alias and joins. See Table.
	Tables []TableRef
	// Parts are the statements of a Multi, in order, without empty ones.
	Parts []Part

	rare     bool          // Kill, Kills, Procedure, Sequence or Proxy is filled
	sequence *ddl.Sequence // memory for Sequence
	mode     lex.Mode
	levels   []level
	arena    lex.Arena
}

// Part is one statement of a text of several.
type Part struct {
	Kind     Kind
	Schema   []byte // as Statement.Schema
	From, To int    // which of Statement.Assignments it has
}

// Table returns the table of a text that is one INSERT, REPLACE, UPDATE or LOAD, or nil
// if it is none, or names its table in an unusual way. It belongs to st.
func (st *Statement) Table() *TableRef {
	if len(st.Tables) == 1 && st.Tables[0].Kind == st.Kind {
		return &st.Tables[0]
	}
	return nil
}

// Plain reports whether the text is one understood statement that cannot
// change session state, routing, framing or how later texts are read, and
// neither reads nor explicitly sets what the previous statement left behind
// (LAST_INSERT_ID, row counts, warnings). It needs no rewriting. Such
// statements may be sent to the server together with their neighbours.
func (st *Statement) Plain() bool {
	switch st.Kind {
	case Select, Insert, Replace, Update, Delete, With, Values, Show:
		const harmless = ReadsUserVariable | ExecutableComment | UnionWord | FromTable
		return st.Words&^harmless == 0 && len(st.Calls) == 0 && st.Refusal == ""
	default:
		return false
	}
}

// ReadFor reports whether a server would read the text as it was read here.
func (st *Statement) ReadFor(server lex.Server) bool {
	return st.Words&ReadByVersion == 0 || st.mode.Server == server || !st.mode.Server.Known()
}

// AboutSequences reports whether the text is one statement about sequences as things, or to the
// proxy itself, none of which are a server's business unless MariaDB knows a sequence of the name.
func (st *Statement) AboutSequences() bool {
	switch st.Kind {
	case CreateSequence, AlterSequence, DropSequence, ShowSequences, ShowCreateSequence, FlushSequences, CheckSequence, RepairSequence, DecodeSequence, Seqproxy:
		return true
	default:
		return false
	}
}

// MayChangeLastInsertID reports whether the server's LAST_INSERT_ID() may be
// another after this text. Stored functions and triggers restore it.
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

// MayReadLastStatement reports whether the text could see what an earlier
// statement left behind: LAST_INSERT_ID, ROW_COUNT, FOUND_ROWS, warnings and
// diagnostics, whether by name or because it runs code that Analyze cannot see.
// Triggers, views and stored functions are not considered.
func (st *Statement) MayReadLastStatement() bool {
	const reads = ReadsLastInsertID | ReadsRowCount | ReadsFoundRows | ReadsWarnings | SystemSchema | VersionedComment | Opaque
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
