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

// Options are the settings of a server and its tables.
type Options struct {
	Link            link.Options // without its Probe
	Database, Table string       // the table of the sequences; the others are named after it
	MayCreate       func() bool  // whether missing tables may be created
	LookOnly        bool         // none is created; a server without any has no sequence
	FrozenBackoff   time.Duration
	EditSilence     time.Duration // after which the server ends a change of definitions
	// Cover is CoverOf.
	Cover func(name string) uint64
	// A proxy sends a heartbeat each Beat, and is stale after a silence of Stale.
	Beat, Stale time.Duration
}

// Schema is the way to one sequence server and its tables: their names, whether they exist, and
// whether they fit.
type Schema struct {
	*link.Link
	Config Options
	Log    *zap.Logger
	Table  Table

	Seen   atomic.Pointer[Layout] // what the last check found; nil before the first
	making await.Lock             // locked while missing tables are made
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

// checked returns what the last check found. It makes a connection if there was no check yet.
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

// Store is the rows of one sequence server, and what this process has read there. It decides
// nothing: an attempt to take numbers ends with an outcome. The other tables have types of their
// own.
type Store struct {
	*Schema
	Limits   LimitTable
	Options  OptionTable
	Plans    PlanTable
	Proxies  ProxyTable
	Registry Registration
	Marks    *floor.Marks // of all members

	// the share in the plan that this process believes in; nil: no plan
	Place   atomic.Pointer[segment.Share]
	Rules   Rules
	ordered orderedRows
}

func New(of *Schema, marks *floor.Marks) *Store {
	return &Store{
		Schema: of, Limits: LimitTable{of}, Options: OptionTable{of}, Plans: PlanTable{of}, Proxies: ProxyTable{of}, Registry: NewRegistration(), Marks: marks,
	}
}

// Share returns which numbers are the server's, in the plan that this process believes in.
func (st *Store) Share() segment.Share {
	if place := st.Place.Load(); place != nil {
		return *place
	}
	return segment.Alone
}

// ShareOf is Share for a sequence with a rule. name is the name of its row.
func (st *Store) ShareOf(name string, r segment.Rule) segment.Share {
	return ShareIn(st.Share(), name, r)
}

// ShareIn returns which numbers of a sequence are a member's. All ticks of a worker belong to one
// member.
func ShareIn(h segment.Share, name string, r segment.Rule) segment.Share {
	if worker, ok := define.WorkerIn(name); ok {
		h = h.Home(worker)
	}
	return h.By(r)
}
