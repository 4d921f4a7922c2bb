package admin

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"

	"github.com/go-mysql-org/go-mysql/mysql"

	"seqproxy/protocol"
	"seqproxy/proxy"
	"seqproxy/sequence"
	"seqproxy/statement"
)

// engine is what is administered. *sequence.Sequences implements it.
type engine interface {
	Create(ctx context.Context, o sequence.CreateOptions) (sequence.Created, error)
	Alter(ctx context.Context, name []byte, a sequence.Alteration) (sequence.Altered, error)
	Drop(ctx context.Context, name []byte, ifExists bool) (bool, error)
	Describe(ctx context.Context, name []byte) (sequence.Definition, sequence.State, error)
	List(ctx context.Context) ([]sequence.Info, error)
	Flush(ctx context.Context, name []byte) error
	Raise(ctx context.Context, name []byte, floor uint64) (raised bool, err error)
	SequenceServers(ctx context.Context) ([]sequence.SequenceServer, error)
	ChangePlan(ctx context.Context, change sequence.PlanChange) (sequence.Plan, error)
}

// Sequences answers statements about sequences and about the proxy itself. It is safe for
// concurrent use.
type Sequences struct {
	engine engine
	proxy  Control
}

// NewSequences makes Sequences of an engine and of what may be asked of the proxy.
func NewSequences(e engine, c Control) *Sequences {
	return &Sequences{engine: e, proxy: c}
}

// Execute runs an analysed statement about sequences. Errors are those of the engine and
// of by, or a *protocol.ServerError.
func (s *Sequences) Execute(ctx context.Context, st *statement.Statement, by proxy.Caller) (*protocol.Table, error) {
	err := permitted(st, by)
	if err == nil {
		err = refused(st.Sequence)
	}
	var table *protocol.Table
	if err == nil {
		if table, err = s.execute(ctx, st, by); auditsEach(st) {
			return table, err
		}
	}
	if changes(st) {
		by.Audit(describe(st), err)
	}
	return table, err
}

func (s *Sequences) execute(ctx context.Context, st *statement.Statement, by proxy.Caller) (*protocol.Table, error) {
	ddl := st.Sequence
	switch st.Kind {
	case statement.ShowSequences:
		return s.show(ctx, ddl, by)
	case statement.ShowCreateSequence:
		return s.showCreate(ctx, ddl.Names[0], by)
	case statement.CreateSequence:
		return s.create(ctx, ddl, by)
	case statement.AlterSequence:
		return s.alter(ctx, ddl, by)
	case statement.DropSequence:
		return s.drop(ctx, st, by)
	case statement.FlushSequences:
		return s.flush(ctx, st, by)
	case statement.CheckSequence, statement.RepairSequence:
		return s.check(ctx, st, by)
	case statement.Seqproxy:
		return s.command(ctx, st.Proxy, by)
	}
	return nil, notSupported("this statement")
}

// permitted is nil if the caller has the right to a statement. What it may see of it is
// another matter.
func permitted(st *statement.Statement, by proxy.Caller) error {
	need := "admin_users"
	switch {
	case st.Kind == statement.ShowSequences, st.Kind == statement.ShowCreateSequence, by.Admin():
		return nil
	case st.Kind == statement.Seqproxy && st.Proxy.Show:
		if by.Monitor() {
			return nil
		}
		need = "admin_users or monitor_users"
	}
	return &protocol.ServerError{
		Code: mysql.ER_SPECIFIC_ACCESS_DENIED_ERROR, State: "42000",
		Message: "Access denied; you need to be one of the proxy's " + need + " for this operation",
	}
}

// Columns returns the columns of the answer to a statement that Execute runs; none
// for one that is answered with OK.
func (s *Sequences) Columns(st *statement.Statement) []protocol.Column {
	switch st.Kind {
	case statement.ShowSequences:
		return showColumns
	case statement.ShowCreateSequence:
		return createColumns
	case statement.CheckSequence, statement.RepairSequence:
		return checkColumns
	case statement.Seqproxy:
		return commandColumns(st.Proxy)
	}
	return nil
}

// create makes a sequence, above the keys of the column that owns it.
func (s *Sequences) create(ctx context.Context, ddl *statement.SequenceDDL, by proxy.Caller) (*protocol.Table, error) {
	name := string(ddl.Names[0])
	highest, err := bounds(name, ddl)
	if err != nil {
		return nil, err
	}
	o := sequence.CreateOptions{
		Name: name, OrReplace: ddl.OrReplace, IfNotExists: ddl.IfExists,
		Increment: ddl.Increment.Value, Min: ddl.Min.Value, Start: ddl.Start.Value, Max: deref(highest), Cache: deref(cacheOf(ddl)),
		Cycle: ddl.Cycle == statement.Yes, Comment: string(ddl.Comment), OwnedBy: ownerOf(ddl), JSONSafe: ddl.JSONSafe == statement.Yes,
		Cover: ddl.Cover.Value, Order: ddl.Order == statement.Yes,
	}
	var keys owned
	if !o.OwnedBy.IsZero() {
		if keys, err = readOwned(ctx, by, o.OwnedBy); err != nil {
			return nil, err
		}
		o.Floor, o.OwnerMax = keys.floor, keys.limit
	}
	made, err := s.engine.Create(ctx, o)
	if err != nil {
		return nil, err
	}
	switch {
	case made.Existed:
		return noted(mysql.ER_TABLE_EXISTS_ERROR, "Sequence '%s' already exists and stays as it is", name), nil
	case made.Raised && keys.floor != 0 && made.First > keys.floor:
		return noted(mysql.ER_UNKNOWN_ERROR, "sequence begins at %d: %s", made.First, keys.where), nil
	case made.Raised:
		return noted(mysql.ER_UNKNOWN_ERROR, "sequence begins at %d: a dropped sequence of that name gave the numbers below", made.First), nil
	case o.Cycle:
		return cycleNote(), nil
	}
	return &protocol.Table{}, nil
}

func (s *Sequences) alter(ctx context.Context, ddl *statement.SequenceDDL, by proxy.Caller) (*protocol.Table, error) {
	name := ddl.Names[0]
	a, err := alteration(ddl)
	if err != nil {
		return nil, err
	}
	var keys owned
	if a.OwnedBy != nil {
		a.OwnerMax = new(uint64)
	}
	if a.OwnedBy != nil && !a.OwnedBy.IsZero() {
		if keys, err = readOwned(ctx, by, *a.OwnedBy); err != nil {
			return nil, err
		}
		*a.OwnerMax = keys.limit
		// Before the column is filled from the sequence for the first time.
		if _, err := s.engine.Raise(ctx, name, keys.floor); err != nil {
			return s.altered(ddl, err)
		}
	}
	done, err := s.engine.Alter(ctx, name, a)
	switch {
	case err != nil:
		return s.altered(ddl, err)
	case keys.floor != 0 && done.Next > keys.floor:
		return noted(mysql.ER_UNKNOWN_ERROR, "sequence continues at %d: %s", done.Next, keys.where), nil
	case ddl.Cycle == statement.Yes:
		return cycleNote(), nil
	case ddl.Restart:
		return &protocol.Table{OK: protocol.OK{Info: fmt.Sprintf("sequence continues at %d", done.Next)}}, nil
	}
	return &protocol.Table{}, nil
}

// altered is the outcome of an ALTER that failed.
func (s *Sequences) altered(ddl *statement.SequenceDDL, err error) (*protocol.Table, error) {
	if ddl.IfExists && errors.Is(err, sequence.ErrUnknown) {
		return noted(erUnknownSequence, "Unknown SEQUENCE: '%s'", ddl.Names[0]), nil
	}
	return nil, err
}

// alteration is what an ALTER changes, but for the column's limit.
func alteration(ddl *statement.SequenceDDL) (a sequence.Alteration, err error) {
	a = sequence.Alteration{
		Increment: given(ddl.Increment), Min: given(ddl.Min), Start: given(ddl.Start), Cache: cacheOf(ddl), Cover: given(ddl.Cover),
		Cycle: toggled(ddl.Cycle), JSONSafe: toggled(ddl.JSONSafe), Order: toggled(ddl.Order), Force: ddl.Force,
	}
	if a.Max, err = bounds(string(ddl.Names[0]), ddl); err != nil {
		return a, err
	}
	if ddl.Min.Default {
		*a.Min = 1
	}
	if ddl.HasComment {
		text := string(ddl.Comment)
		a.Comment = &text
	}
	if ddl.HasOwner {
		owner := ownerOf(ddl)
		a.OwnedBy = &owner
	}
	if ddl.Restart {
		a.Restart = &ddl.RestartWith.Value // without a number 0, which is START
	}
	return a, nil
}

// drop drops the sequences that exist. The others are named in one error, as with
// tables.
func (s *Sequences) drop(ctx context.Context, st *statement.Statement, by proxy.Caller) (*protocol.Table, error) {
	ddl := st.Sequence
	var unknown []string
	for _, name := range ddl.Names {
		dropped, err := s.engine.Drop(ctx, name, ddl.IfExists)
		by.Audit(describeOne(st, name), err)
		switch {
		case errors.Is(err, sequence.ErrUnknown), err == nil && !dropped:
			unknown = append(unknown, string(name))
		case err != nil:
			return nil, err
		}
	}
	names := strings.Join(unknown, ",")
	switch {
	case names == "":
		return &protocol.Table{}, nil
	case ddl.IfExists:
		return noted(erUnknownSequence, "Unknown SEQUENCE: '%s'", names), nil
	}
	return nil, &sequence.NameError{Name: names, Err: sequence.ErrUnknown}
}

// flush gives up the numbers in memory of sequences, or of all.
func (s *Sequences) flush(ctx context.Context, st *statement.Statement, by proxy.Caller) (*protocol.Table, error) {
	names := st.Sequence.Names
	if len(names) == 0 {
		names = [][]byte{nil}
	}
	for _, name := range names {
		err := s.engine.Flush(ctx, name)
		by.Audit(describeOne(st, name), err)
		if err != nil {
			return nil, err
		}
	}
	return &protocol.Table{}, nil
}

// noted answers OK with a text, which is also what SHOW WARNINGS tells.
func noted(code uint16, format string, args ...any) *protocol.Table {
	text := fmt.Sprintf(format, args...)
	return &protocol.Table{OK: protocol.OK{Info: text}, Warning: warning(code, text)}
}

// warning is what SHOW WARNINGS tells of a statement.
func warning(code uint16, text string) *protocol.ServerError {
	return &protocol.ServerError{Code: code, State: "01000", Message: text}
}

func cycleNote() *protocol.Table {
	return noted(mysql.ER_UNKNOWN_ERROR, "with CYCLE the sequence gives its numbers again after its end: they are no keys then")
}

// cacheOf is the option CACHE, nil if it is not given: 0 is adaptive, 1 what NOCACHE is here.
func cacheOf(ddl *statement.SequenceDDL) *uint64 {
	cache := given(ddl.Cache)
	if ddl.Cache.Given {
		*cache = max(*cache, 1)
	}
	return cache
}

// bounds checks the options of which 0 would mean something else to the engine, and
// returns MAXVALUE, nil if it is not given: 0 is none.
func bounds(name string, ddl *statement.SequenceDDL) (highest *uint64, err error) {
	for _, n := range [...]statement.SequenceNumber{ddl.Start, ddl.Max, ddl.RestartWith} {
		if n.Given && n.Value == 0 {
			return nil, conflicting(name)
		}
	}
	highest = given(ddl.Max)
	switch bound := ddl.TypeMax; {
	case bound == 0:
	case ddl.Max.Given && ddl.Max.Value > bound:
		return nil, conflicting(name)
	case ddl.Max.Given:
	case bound == math.MaxUint64:
		highest = new(uint64)
	default:
		highest = &bound
	}
	return highest, nil
}

// given is an option's number, nil if it is not given, 0 if it is to be the default.
func given(n statement.SequenceNumber) *uint64 {
	if !n.Given && !n.Default {
		return nil
	}
	return &n.Value
}

func toggled(t statement.Toggle) *bool {
	if t == statement.NotSaid {
		return nil
	}
	on := t == statement.Yes
	return &on
}

func deref(n *uint64) uint64 {
	if n == nil {
		return 0
	}
	return *n
}

func ownerOf(ddl *statement.SequenceDDL) sequence.Column {
	return sequence.Column{Schema: string(ddl.OwnerSchema), Table: string(ddl.OwnerTable), Column: string(ddl.OwnerColumn)}
}
