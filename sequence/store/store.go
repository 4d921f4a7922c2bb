package store

import (
	"context"
	"sync/atomic"
	"time"

	"go.uber.org/zap"

	"seqproxy/internal/await"
	"seqproxy/sequence/define"
	"seqproxy/sequence/floor"
	"seqproxy/sequence/link"
	"seqproxy/sequence/segment"
)

// Options are those of the way to a server and its tables.
type Options struct {
	Link            link.Options // without its Probe
	Database, Table string       // the table of the sequences; the others are beside it
	MayCreate       func() bool  // tables that are missing
	FrozenBackoff   time.Duration
	// A proxy gives a sign of life each Beat, and is stale after so long a silence.
	Beat, Stale time.Duration
}

// Schema is the way to one sequence server, and its tables: how they are called, whether they are
// there, and whether they are fit.
type Schema struct {
	*link.Link
	Config Options
	Log    *zap.Logger
	Table  Table

	Seen   atomic.Pointer[Layout] // what the last check found; nil before the first
	making await.Lock             // of tables that are missing
}

// NewSchema does no I/O.
func NewSchema(o Options) (*Schema, error) {
	s := &Schema{Config: o, Log: o.Link.Log, Table: NewTable(o.Database, o.Table), making: await.NewLock()}
	o.Link.Probe = "SELECT 1 FROM " + s.Table.Sequence + " LIMIT 0"
	var err error
	s.Link, err = link.New(o.Link, s)
	if err != nil {
		return nil, define.BadOption("%v", err)
	}
	return s, nil
}

// checked is what the last check found out, of a connection that is made for that if there was
// none.
func (s *Schema) checked(ctx context.Context) (*Layout, error) {
	if seen := s.Seen.Load(); seen != nil {
		return seen, nil
	}
	conn, err := s.Conn(ctx)
	if err != nil {
		return nil, err
	}
	return s.Seen.Load(), conn.Close()
}

// Store is the rows of one sequence server, and what this process has read there. It reads and
// writes rows, and decides nothing: how an attempt to take numbers has ended is an outcome. The
// tables beside them have types of their own.
type Store struct {
	*Schema
	Limits   LimitTable
	Options  OptionTable
	Plans    PlanTable
	Proxies  ProxyTable
	Registry Registration
	Marks    *floor.Marks // of all members

	// in the plan that this process believes in; nil: there is none
	Place   atomic.Pointer[segment.Share]
	Rules   Rules
	ordered orderedRows
}

func New(of *Schema, marks *floor.Marks) *Store {
	return &Store{
		Schema: of, Limits: LimitTable{of}, Options: OptionTable{of}, Plans: PlanTable{of}, Proxies: ProxyTable{of}, Registry: NewRegistration(), Marks: marks,
	}
}

// Share is which numbers are the server's, in the plan that this process believes in.
func (st *Store) Share() segment.Share {
	if place := st.Place.Load(); place != nil {
		return *place
	}
	return segment.Alone
}

// ShareOf is share of a sequence that goes by a rule, as its row is named.
func (st *Store) ShareOf(name string, r segment.Rule) segment.Share {
	return ShareIn(st.Share(), name, r)
}

// ShareIn is which numbers of a sequence are of a member. The ticks of a worker are all of one: see
// clocked.go.
func ShareIn(h segment.Share, name string, r segment.Rule) segment.Share {
	if worker, ok := define.WorkerIn(name); ok {
		h = h.Home(worker)
	}
	return h.By(r)
}
