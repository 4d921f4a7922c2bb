package sequence

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"
	"time"

	gomysql "github.com/go-mysql-org/go-mysql/mysql"
	"github.com/go-sql-driver/mysql"

	"seqproxy/internal/await"
	"seqproxy/internal/logfield"
	"seqproxy/sequence/define"
	"seqproxy/sequence/kind"
	"seqproxy/sequence/limit"
	"seqproxy/sequence/link"
	"seqproxy/sequence/store"
)

// CreateOptions describes a new sequence. The fields that Definition has too mean the same; 0 is
// the default of each.
type CreateOptions struct {
	Name        string
	OrReplace   bool   // an existing sequence is dropped
	IfNotExists bool   // an existing sequence is no error and stays as it is
	Increment   uint64 // 1 by default
	Min         uint64 // 1 by default
	Max         uint64 // as far as the column goes by default
	Start       uint64 // Min by default
	Cache       uint64
	Cycle       bool
	Comment     string
	OwnedBy     define.Column
	OwnerMax    uint64
	JSONSafe    bool
	Cover       uint64
	Order       bool
	Kind        kind.Kind
	// Floor: numbers up to this one are in use already, as in the column that owns the sequence.
	Floor uint64
	// DryRun checks what can be known before, and makes nothing: Created is empty unless the sequence
	// exists.
	DryRun bool

	period bool // it is the counter of a period of a sequence
	anew   bool // its row is gone, and whoever says so knows above which numbers it goes on
}

func (o *CreateOptions) definition() define.Definition {
	d := define.Definition{
		Name: o.Name, Increment: o.Increment, Min: o.Min, Max: o.Max, Start: o.Start, Cache: o.Cache, Cycle: o.Cycle,
		Comment: o.Comment, OwnedBy: o.OwnedBy, OwnerMax: o.OwnerMax, JSONSafe: o.JSONSafe, Cover: o.Cover, Order: o.Order, Kind: o.Kind,
	}
	if d.Kind.Resets() && d.Cache == 0 && d.Cover == 0 {
		d.Cache = 1 // people count these keys, and ask where one is that is missing
	}
	return d.Filled()
}

// Created says what Create did.
type Created struct {
	Existed  bool   // IfNotExists was given and the sequence exists; nothing was changed
	Replaced bool   // OrReplace was given and there was one
	First    uint64 // the first number that it will give
	// First is above Start: Floor is above it, or Given
	Raised bool
	// numbers up to it may have been given before, by a sequence of that name, and Floor is below; else 0
	Given uint64

	above uint64 // the rows stand there, or above; 0 if that is not to be kept
	row   string // the name of the rows
	// it is not an ORDER sequence yet, because numbers of the one before may be held somewhere
	unordered bool
}

// what says it for people.
func (c *Created) what() string {
	switch {
	case c.Existed:
		return "exists"
	case c.Replaced:
		return "was replaced"
	}
	return "was created"
}

// Create makes a sequence. If one of that name was dropped before, it continues above the dropped
// one's last number, because other proxies may still hold numbers of it; with Order it waits for
// those, as Alter does. Errors: ErrExists, ErrBadOption, ErrExhausted (the dropped one had reached
// the maximum), ErrUnfit, ErrClosed, ctx's cause, *UnavailableError.
func (s *Sequences) Create(ctx context.Context, o CreateOptions) (Created, error) {
	if o.Name == "" || len(o.Name) > maxNameBytes {
		return Created{}, define.BadOption("sequence name of %d bytes, want 1 to %d", len(o.Name), maxNameBytes)
	}
	if strings.Trim(o.Name, " ") == "" {
		return Created{}, define.BadOption("sequence name %q, want more than blanks", o.Name)
	}
	if strings.HasSuffix(o.Name, " ") {
		// Most servers take it for the name without them.
		return Created{}, define.BadOption("sequence name %q ends in a blank", o.Name)
	}
	if define.IsCounter(o.Name) {
		return Created{}, define.BadOption("sequence name %q ends in %s, as the rows of sequences with a kind of keys do", o.Name, define.CounterSuffix)
	}
	if _, ok := define.WorkerOf(o.Name); ok && !o.Kind.IsPlain() && o.Kind != kind.NewTicks() {
		return Created{}, define.BadOption("sequence name %q ends as the rows of the workers of SNOWFLAKE do, in %s and a number", o.Name, define.WorkerMark)
	}
	if _, ok := define.PeriodOf(o.Name); ok && !o.Kind.IsPlain() && !o.period {
		return Created{}, define.BadOption("sequence name %q ends as the rows of the periods of FORMAT ... RESET do, in %s and 4, 6 or 8 digits", o.Name, define.PeriodMark)
	}
	def := o.definition()
	if err := def.Check(math.MaxUint64); err != nil {
		return Created{}, err
	}
	if !s.begin() {
		return Created{}, ErrClosed
	}
	defer s.tasks.Done()
	r, stop := s.request(ctx)
	defer stop()
	made, err := s.servers.Create(r.ctx, o, def)
	if err != nil {
		return Created{}, r.failed(o.Name, err)
	}
	if o.DryRun {
		return made, nil
	}
	if def.Cycle && !made.Existed {
		s.warnOfCycle(o.Name)
	}
	s.unknown.clear()
	var lost error
	if made.above > 0 {
		if lost = s.servers.KeepMade(r.ctx, made.row, made.above); lost != nil {
			without := ""
			if made.unordered {
				without = ", without ORDER"
			}
			lost = fmt.Errorf("sequence %q %s%s, but a fail-over could undo that: %w", o.Name, made.what(), without, r.failed(o.Name, lost))
		}
	}
	if q := s.names.get([]byte(o.Name)); q != nil && made.Replaced {
		q.replaced.Add(1)
	}
	s.seeChanges(r.ctx)
	if lost != nil {
		return Created{}, lost
	}
	if made.unordered {
		if _, err := s.makeOrdered(ctx, []byte(o.Name), Alteration{Order: &o.Order}); err != nil {
			return Created{}, fmt.Errorf("sequence %q %s, but its ORDER is not confirmed: %w", o.Name, made.what(), err)
		}
	}
	return made, nil
}

// warnOfCycle says what was asked for.
func (s *Sequences) warnOfCycle(name string) {
	s.log.Warn("sequence with CYCLE begins again", logfield.Sequence(name))
}

// Drop removes a sequence and reports whether there was one. Its last number is kept as a
// tombstone, above which a later Create of the name continues. Numbers in memory here are not given
// any more; other proxies notice within a second. Errors: ErrUnknown (not if ifExists), ErrUnfit,
// ErrClosed, ctx's cause, *UnavailableError.
func (s *Sequences) Drop(ctx context.Context, name []byte, ifExists bool) (bool, error) {
	if !s.begin() {
		return false, ErrClosed
	}
	defer s.tasks.Done()
	r, stop := s.request(ctx)
	defer stop()
	stored, err := s.servers.Drop(r.ctx, string(name))
	if errors.Is(err, ErrUnknown) && ifExists {
		err = nil
	}
	if err != nil {
		return false, r.failed(string(name), err)
	}
	if stored == "" {
		return false, nil
	}
	s.end(stored)
	s.seeChanges(r.ctx)
	return true, nil
}

// end stops giving numbers of a sequence that was dropped.
func (s *Sequences) end(name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.endLocked(name)
}

func (s *Sequences) endLocked(name string) {
	if q := s.sequences[name]; q != nil {
		q.shut(&NameError{Name: define.ShownName(name), Err: ErrUnknown})
		s.removeLocked(q)
	}
}

// request is something that only the server can answer.
type request struct {
	s *Sequences
	// ends with the caller's, after the allocate timeout, and when Close gives up waiting
	ctx   context.Context
	begin time.Time
}

// request begins a request. The caller calls stop at its end.
func (s *Sequences) request(ctx context.Context) (r request, stop func()) {
	return s.requestWithin(ctx, s.patience(ctx))
}

// requestWithin is request for what may take longer.
func (s *Sequences) requestWithin(ctx context.Context, patience time.Duration) (r request, stop func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	unhook := context.AfterFunc(s.ctx, func() { cancel(context.Cause(s.ctx)) })
	ctx, stopTimer := context.WithTimeoutCause(ctx, patience, await.ErrPatience)
	return request{s: s, ctx: ctx, begin: time.Now()}, func() {
		stopTimer()
		unhook()
		cancel(nil)
		s.takeNote()
	}
}

// failed turns the error of a request into what the caller is promised.
func (r request) failed(name string, err error) error {
	s := r.s
	if errors.As(err, new(*define.KindError)) {
		return err
	}
	for _, known := range []error{ErrUnknown, ErrExists, ErrExhausted, ErrUnfit, ErrClosed, define.ErrBadOption, ErrSeveral, store.OutcomeFrozen} {
		if errors.Is(err, known) {
			return err
		}
	}
	s.counters.Errors.Add(1)
	if cause := context.Cause(r.ctx); cause != nil {
		if !errors.Is(cause, await.ErrPatience) {
			return cause
		}
		if !errors.As(err, new(*mysql.MySQLError)) && !errors.As(err, new(*unheardError)) && !errors.As(err, new(*limit.SeenError)) && !errors.Is(err, link.ErrOutcome) && !errors.Is(err, errEnlisting) && !errors.Is(err, errUnlisted) {
			err = s.whyNot() // the end of the wait itself says nothing
		}
	}
	return &UnavailableError{Sequence: define.ShownName(name), Server: s.serverName(), Waited: time.Since(r.begin), Err: store.WithGrants(err, s.opts.Servers[0].Database)}
}

// existing is the outcome where there is the sequence.
func (o *CreateOptions) existing(r *store.Row) (Created, error) {
	if !o.IfNotExists {
		return Created{}, &NameError{Name: define.ShownName(r.Name), Err: ErrExists}
	}
	first, _ := r.Rule().Next(r.Position(), r.Max)
	// whoever made it may not know whether it stays
	return Created{Existed: true, First: first, above: r.Position(), row: r.Name}, nil
}

// outcome is that of a transaction that should have made the sequence.
func (o *CreateOptions) outcome(made Created, err error) (Created, error) {
	switch {
	case link.HasCode(err, gomysql.ER_DUP_ENTRY):
		// Made by somebody else between the look and the insert.
		if o.IfNotExists {
			return Created{Existed: true}, nil
		}
		return Created{}, &NameError{Name: o.Name, Err: ErrExists}
	case link.HasCode(err, gomysql.ER_DATA_TOO_LONG, gomysql.ER_TRUNCATED_WRONG_VALUE_FOR_FIELD) || link.IsNoSuchText(err):
		return Created{}, define.BadOption("sequence name %q does not fit the column `name`, or its comment or owner theirs: %v", o.Name, err)
	case err != nil:
		return Created{}, fmt.Errorf("create sequence %q: %w", o.Name, err)
	}
	return made, nil
}
