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

// UnknownSequence says what becomes of a NEXTVAL of a name that is not served.
type UnknownSequence = plan.Unknown

// The policies for unknown names.
const (
	UnknownError  = plan.UnknownError
	UnknownCreate = plan.UnknownCreate
	UnknownRelay  = plan.UnknownRelay
)

// Sequencer is where keys come from, by what each part of a session sees of it.
// *sequence.Sequences implements it.
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

// sequenceNames is what planning has to know of names.
type sequenceNames interface {
	// Exists reports whether a sequence of that name is served.
	Exists(ctx context.Context, name []byte) (bool, error)
	// Same reports whether two names are spellings of one sequence.
	Same(ctx context.Context, a, b []byte) (bool, error)
	// FormOf says what the keys of a sequence are.
	FormOf(ctx context.Context, name []byte) (sequence.Form, error)
	// InUTF8 returns a name that is in another character set of MySQL's; sequence.ErrNoText
	// says that it is no text.
	InUTF8(ctx context.Context, charset string, name []byte) ([]byte, error)
}

// sequenceSteps knows how far apart numbers are that applications count themselves.
type sequenceSteps interface {
	// Stride is how far apart the numbers of one sequence server are, where several divide the
	// numbers in steps; else 1. It does no I/O.
	Stride() uint64
	// Divided reports whether several sequence servers divide the numbers, and by multiples of how
	// many others may move a row of theirs; 1: by none. It asks them.
	Divided(ctx context.Context) (several bool, multiple uint64, err error)
}

// sequenceSetter sets sequences on.
type sequenceSetter interface {
	// Identify returns the identity of a sequence, however its name is spelled.
	Identify(ctx context.Context, name []byte) (sequence.Identity, error)
	// SetValue has a sequence go on behind n, or at n if that is not used; ok is false if it
	// is beyond that already.
	SetValue(ctx context.Context, name []byte, n uint64, used bool) (value uint64, ok bool, err error)
}

// columnOwners knows which columns are filled from sequences.
type columnOwners interface {
	// Owners returns the columns that own sequences, without I/O; nil if they are not
	// known. LoadOwners waits until they are.
	Owners() *sequence.Owners
	LoadOwners(ctx context.Context) (*sequence.Owners, error)
}

// administrator answers statements about sequences as things (CREATE SEQUENCE, SHOW
// SEQUENCES, ...). *admin.Sequences implements it.
type administrator interface {
	// Execute runs an analysed statement of such a kind for a caller.
	Execute(ctx context.Context, st *statement.Statement, by Caller) (*protocol.Table, error)
	// Columns returns the columns of the answer to such a statement.
	Columns(st *statement.Statement) []protocol.Column
}

// KeyOptions say where keys come from, and where they go.
type KeyOptions struct {
	Sequences Sequencer
	Admin     administrator
	Unknown   UnknownSequence
	// Tickets are the tables whose ticket idioms are answered here.
	Tickets []TicketTable
	// Bindings are columns that are filled from sequences.
	Bindings []Binding
	// MultiRowFirst fills in several rows also with keys that are not a step apart: the insert id
	// is the first one's alone.
	MultiRowFirst bool
	// LastInsertIDExact brings a number given by a SELECT of ours to the server
	// before every statement, for triggers and views that read it.
	LastInsertIDExact bool
}

// StatementOptions bound statements.
type StatementOptions struct {
	// PauseTimeout is how long a command waits for a shard that is paused.
	PauseTimeout time.Duration
	WriteTimeout time.Duration // how long a client may leave an answer unread
	// SlowStatement is how long a statement takes at least that is logged for it; 0: none is.
	SlowStatement time.Duration
	MaxStatement  int // bytes up to which a statement is kept in memory and analysed
	// StatementMemory is how many bytes statements above 64 KiB may take in all sessions; others
	// wait. 0: any number.
	StatementMemory int64
}

// Settings are what a reload changes, all at once: a server's are replaced, and never
// change themselves. Each command of a session sees one of them from begin to end.
type Settings struct {
	StatementOptions
	// AdminAddressOnly has statements to the proxy answered at the admin address alone.
	AdminAddressOnly bool

	Routes *backend.Routes
	Login  login.Policy

	// As KeyOptions say.
	admin             administrator
	unknown           UnknownSequence
	configured        []Binding
	multiRowFirst     bool
	lastInsertIDExact bool

	// The sequences, by what each part of a session sees of them.
	numbers  keys.Sequences
	right    keys.Names // to which a user has
	counters ticket.Sequences
	shown    shown.Sequences
	names    sequenceNames
	steps    sequenceSteps
	setter   sequenceSetter
	owners   columnOwners

	sequenceSchema string // of the sequence table

	tickets  ticket.Tables // nil: there are none
	memory   *statementMemory
	bindings atomic.Pointer[bindings] // nil: see bound
}

// NewSettings makes settings; before are those that they replace, or nil.
func NewSettings(keys KeyOptions, statements StatementOptions, routes *backend.Routes, policy login.Policy, before *Settings) *Settings {
	from := keys.Sequences
	s := &Settings{
		StatementOptions: statements, Routes: routes, Login: policy,
		admin: keys.Admin, unknown: keys.Unknown, configured: keys.Bindings, multiRowFirst: keys.MultiRowFirst, lastInsertIDExact: keys.LastInsertIDExact,
		numbers: from, right: from, counters: from, shown: from, names: from, steps: from, setter: from, owners: from, sequenceSchema: from.Schema(),
		tickets: ticket.NewTables(keys.Tickets),
	}
	if before != nil && before.StatementMemory == statements.StatementMemory {
		s.memory = before.memory
	} else {
		// shares of the one before are not counted in it
		s.memory = newStatementMemory(statements.StatementMemory)
	}
	return s
}

// MemoryInUse is how much memory large statements may take, and take now, and how many sessions
// wait for some.
func (s *Settings) MemoryInUse() (size, used, waiting uint64) {
	m := s.memory
	return uint64(m.size), uint64(m.used.Load()), uint64(m.waiting.Load())
}
