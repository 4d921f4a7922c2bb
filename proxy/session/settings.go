package session

import (
	"context"
	"sync/atomic"
	"time"

	"seqproxy/backend"
	"seqproxy/protocol"
	"seqproxy/proxy/keys"
	"seqproxy/proxy/login"
	"seqproxy/proxy/plan"
	"seqproxy/proxy/shown"
	"seqproxy/proxy/ticket"
	"seqproxy/sequence"
	"seqproxy/statement"
)

// UnknownSequence is the policy for a NEXTVAL of a name that is not served.
type UnknownSequence = plan.Unknown

// The policies for unknown names.
const (
	UnknownError  = plan.UnknownError
	UnknownCreate = plan.UnknownCreate
	UnknownRelay  = plan.UnknownRelay
)

// Sequencer gives the keys. Its parts are what each part of a session uses. *sequence.Sequences
// implements it.
type Sequencer interface {
	keys.Sequences
	keys.Names
	ticket.Sequences
	shown.Sequences
	sequenceNames
	sequenceSteps
	sequenceSetter
	columnOwners
	// Schema is the schema of the sequence table.
	Schema() string
}

// sequenceNames is what planning asks about names.
type sequenceNames interface {
	// Exists reports whether a sequence of that name is served.
	Exists(ctx context.Context, name []byte) (bool, error)
	// Same reports whether two names are spellings of one sequence.
	Same(ctx context.Context, a, b []byte) (bool, error)
	// FormOf returns the form of a sequence's keys.
	FormOf(ctx context.Context, name []byte) (sequence.Form, error)
	// InUTF8 converts a name from another character set of MySQL's. The error is sequence.ErrNoText
	// if the bytes are no text.
	InUTF8(ctx context.Context, charset string, name []byte) ([]byte, error)
}

// sequenceSteps says how far apart the numbers are that applications count themselves.
type sequenceSteps interface {
	// Stride returns how far apart the numbers of one sequence server are, if several divide the
	// numbers in steps, else 1. It does no I/O.
	Stride() uint64
	// Divided asks the sequence servers whether several of them divide the numbers. multiple is the
	// multiple by which others may move a row of theirs, or 1 if they may not.
	Divided(ctx context.Context) (several bool, multiple uint64, err error)
}

// sequenceSetter sets the next number of sequences.
type sequenceSetter interface {
	// Identify returns the identity of a sequence, in whichever spelling.
	Identify(ctx context.Context, name []byte) (sequence.Identity, error)
	// SetValue lets a sequence go on after n, or with n if it is not used. ok is false if the
	// sequence is beyond that already.
	SetValue(ctx context.Context, name []byte, n uint64, used bool) (value uint64, ok bool, err error)
}

// columnOwners says which columns are filled from sequences.
type columnOwners interface {
	// Owners returns the columns that own sequences, without I/O. It returns nil while they are
	// unknown. LoadOwners waits for them.
	Owners() *sequence.Owners
	LoadOwners(ctx context.Context) (*sequence.Owners, error)
}

// administrator answers statements that define, change or show sequences (CREATE SEQUENCE, SHOW
// SEQUENCES, ...). *admin.Sequences implements it.
type administrator interface {
	// Execute runs an analysed statement for a caller.
	Execute(ctx context.Context, st *statement.Statement, by Caller) (*protocol.Table, error)
	// Columns returns the columns of the answer to such a statement.
	Columns(st *statement.Statement) []protocol.Column
}

// KeyOptions say where keys come from, and where they go.
type KeyOptions struct {
	Sequences Sequencer
	Admin     administrator
	Unknown   UnknownSequence
	// Tickets are the tables whose ticket idioms the proxy answers.
	Tickets []TicketTable
	// Bindings are columns that are filled from sequences.
	Bindings []Binding
	// MultiRowFirst also fills several rows with keys that are not a step apart: the insert id then
	// says nothing about rows after the first.
	MultiRowFirst bool
	// LastInsertIDExact brings a number of the proxy's own SELECT to the server before every
	// statement, for triggers and views that read it.
	LastInsertIDExact bool
}

// StatementOptions bound statements.
type StatementOptions struct {
	// PauseTimeout is how long a command waits for a paused shard, or for memory.
	PauseTimeout time.Duration
	WriteTimeout time.Duration // how long a client may leave an answer unread
	// SlowStatement is the duration from which a statement is logged as slow; 0: none is.
	SlowStatement time.Duration
	MaxStatement  int // the longest statement in bytes that is kept in memory and analysed
	// StatementMemory bounds the bytes of all sessions' statements above 64 KiB. More of them wait.
	// 0 means no bound.
	StatementMemory int64
}

// Settings are what a reload changes, all at once. They are immutable: a reload replaces them. Each
// command of a session uses the same Settings from begin to end.
type Settings struct {
	StatementOptions
	// AdminAddressOnly restricts statements to the proxy to the admin address.
	AdminAddressOnly bool

	Routes *backend.Routes
	Login  login.Policy

	// From KeyOptions.
	admin             administrator
	unknown           UnknownSequence
	configured        []Binding
	multiRowFirst     bool
	lastInsertIDExact bool

	// The sequences, as each part of a session sees them.
	numbers  keys.Sequences
	right    keys.Names // for the user's rights
	counters ticket.Sequences
	shown    shown.Sequences
	names    sequenceNames
	steps    sequenceSteps
	setter   sequenceSetter
	owners   columnOwners

	sequenceSchema string // schema of the sequence table

	tickets  ticket.Tables // nil: none
	memory   *statementMemory
	bindings atomic.Pointer[bindings] // nil before the first use: see bound
}

// NewSettings makes settings. before are the ones that they replace, or nil.
func NewSettings(key KeyOptions, statements StatementOptions, routes *backend.Routes, policy login.Policy, before *Settings) *Settings {
	from := key.Sequences
	s := &Settings{
		StatementOptions: statements, Routes: routes, Login: policy,
		admin: key.Admin, unknown: key.Unknown, configured: key.Bindings, multiRowFirst: key.MultiRowFirst, lastInsertIDExact: key.LastInsertIDExact,
		numbers: from, right: from, counters: from, shown: from, names: from, steps: from, setter: from, owners: from, sequenceSchema: from.Schema(),
		tickets: ticket.NewTables(key.Tickets),
	}
	if before != nil && before.StatementMemory == statements.StatementMemory {
		s.memory = before.memory
	} else {
		// The new memory does not count the shares of the old one.
		s.memory = newStatementMemory(statements.StatementMemory)
	}
	return s
}

// MemoryInUse returns the bound of the memory for large statements, the memory in use, and the
// number of sessions that wait for some.
func (s *Settings) MemoryInUse() (size, used, waiting uint64) {
	m := s.memory
	return uint64(m.size), uint64(m.used.Load()), uint64(m.waiting.Load())
}
