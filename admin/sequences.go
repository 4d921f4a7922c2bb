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
	"seqproxy/sequence/kind"
	"seqproxy/statement"
	"seqproxy/statement/ddl"
)

// sequences is the part of the engine that most statements use.
type sequences interface {
	Create(ctx context.Context, o sequence.CreateOptions) (sequence.Created, error)
	Alter(ctx context.Context, name []byte, a sequence.Alteration) (sequence.Altered, error)
	Drop(ctx context.Context, name []byte, ifExists bool) (*sequence.Definition, error)
	Describe(ctx context.Context, name []byte) (sequence.Definition, sequence.State, error)
	Raise(ctx context.Context, name []byte, floor uint64) (raised bool, err error)
}

// caches is the part for numbers in the memory of proxies.
type caches interface {
	List(ctx context.Context) ([]sequence.Info, error)
	Flush(ctx context.Context, name []byte) error
}

// servers is the part for sequence servers.
type servers interface {
	SequenceServers(ctx context.Context) ([]sequence.SequenceServer, error)
	ChangePlan(ctx context.Context, change sequence.PlanChange) (sequence.Plan, error)
}

// engine is what statements manage. *sequence.Sequences implements it.
type engine interface {
	sequences
	caches
	servers
}

// Sequences answers statements about sequences and about the proxy itself. It is safe for
// concurrent use.
type Sequences struct {
	sequences sequences
	caches    caches
	servers   servers
	proxy     Overview
	control   Control
}

// whole is the whole proxy.
type whole interface {
	Overview
	Control
}

// NewSequences makes Sequences for an engine and a proxy, which may be nil.
func NewSequences(e engine, p whole) *Sequences {
	return &Sequences{sequences: e, caches: e, servers: e, proxy: p, control: p}
}

// Execute runs an analysed statement about sequences. Errors come from the engine or from by, or
// are a *protocol.ServerError.
func (s *Sequences) Execute(ctx context.Context, st *statement.Statement, by proxy.Caller) (*protocol.Table, error) {
	err := permitted(st, by)
	if err == nil {
		err = refused(st.Sequence)
	}
	var table *protocol.Table
	if err == nil {
		if table, err = s.execute(ctx, st, by); auditsEach(st) {
			return table, err // it has audited each name itself
		}
	}
	if changes(st) {
		by.Audit(describe(st), err)
	}
	return table, err
}

func (s *Sequences) execute(ctx context.Context, st *statement.Statement, by proxy.Caller) (*protocol.Table, error) {
	asked := st.Sequence
	switch st.Kind {
	case statement.ShowSequences:
		return s.show(ctx, asked, by)
	case statement.ShowCreateSequence:
		return s.showCreate(ctx, asked.Names[0], by)
	case statement.DecodeSequence:
		return s.decode(ctx, asked, by)
	case statement.CreateSequence:
		return s.create(ctx, asked, by)
	case statement.AlterSequence:
		return s.alter(ctx, asked, by)
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

// permitted returns nil if the caller may use the statement. What the caller may see in the answer
// is decided later.
func permitted(st *statement.Statement, by proxy.Caller) error {
	need := "admin_users"
	switch {
	case st.Kind == statement.ShowSequences, st.Kind == statement.ShowCreateSequence, st.Kind == statement.DecodeSequence, by.Admin:
		return nil
	case st.Kind == statement.Seqproxy && st.Proxy.Show:
		if by.Monitor {
			return nil
		}
		need = "admin_users or monitor_users"
	}
	return &protocol.ServerError{
		Code: mysql.ER_SPECIFIC_ACCESS_DENIED_ERROR, State: "42000",
		Message: "Access denied; you need to be one of the proxy's " + need + " for this operation",
	}
}

// Columns returns the columns of the answer to a statement that Execute runs. There are none if the
// answer is an OK.
func (s *Sequences) Columns(st *statement.Statement) []protocol.Column {
	switch st.Kind {
	case statement.ShowSequences:
		return showColumns
	case statement.ShowCreateSequence:
		return createColumns
	case statement.DecodeSequence:
		return decodeColumns
	case statement.CheckSequence, statement.RepairSequence:
		return checkColumns
	case statement.Seqproxy:
		return commandColumns(st.Proxy)
	}
	return nil
}

// create makes a sequence, above the keys of the column that owns it.
func (s *Sequences) create(ctx context.Context, asked *ddl.Sequence, by proxy.Caller) (*protocol.Table, error) {
	name := string(asked.Names[0])
	highest, err := bounds(name, asked)
	if err != nil {
		return nil, err
	}
	o := sequence.CreateOptions{
		Name: name, OrReplace: asked.OrReplace, IfNotExists: asked.IfExists,
		Increment: asked.Increment.Value, Min: asked.Min.Value, Start: asked.Start.Value, Max: deref(highest), Cache: deref(cacheOf(asked)),
		Cycle: asked.Cycle == ddl.Yes, Comment: string(asked.Comment), OwnedBy: ownerOf(asked), JSONSafe: asked.JSONSafe == ddl.Yes,
		Cover: asked.Cover.Value, Order: asked.Order == ddl.Yes, Unowned: asked.HasOwner && len(asked.OwnerTable) == 0,
		Adaptive: asked.Cache.Default,
	}
	if o.Kind, err = kindOf(name, asked); err != nil {
		return nil, err
	}
	if !o.Kind.IsPlain() && !asked.Max.Given {
		o.Max = 0 // the type after AS is the type of the keys
	}
	var keys owned
	if !o.OwnedBy.IsZero() {
		// An existing sequence has its keys in the column. They need not be keys of the kind asked
		// for.
		def := o.Definition()
		end := def.Limit(math.MaxUint64)
		is, last, there, err := s.existing(ctx, &o)
		switch {
		case err != nil:
			return nil, err
		case there && !o.OrReplace:
			return existsNote(name), nil
		case there && !asked.Kind.SkipTo.Given && is.WithoutSkip() == o.Kind:
			o.Kind = is
			if keys, err = readOwned(ctx, by, o.OwnedBy, o.Kind, end); err == nil {
				err = keys.allOwn(o.OwnedBy, is, last)
			}
		default:
			keys, o.Kind, err = readNewlyOwned(ctx, by, o.OwnedBy, o.Kind, end)
		}
		if err == nil {
			err = keys.atEnd(o.OwnedBy, o.Kind, end)
		}
		if err != nil {
			return nil, err
		}
		o.Floor, o.OwnerMax = keys.floor, keys.ends(o.Kind)
	}
	made, err := s.sequences.Create(ctx, o)
	if err != nil {
		return nil, err
	}
	switch {
	case !made.Existed && keys.skipped > 0:
		return noted(mysql.ER_UNKNOWN_ERROR, "the sequence does not give the keys up to %d, which are not of its kind: %s", keys.skipped, keys.where), nil
	case made.Existed:
		return existsNote(name), nil
	case made.Given != 0:
		return noted(mysql.ER_UNKNOWN_ERROR, "sequence begins at %d: a sequence of that name may have given numbers up to %d", made.First, made.Given), nil
	case made.Raised:
		return noted(mysql.ER_UNKNOWN_ERROR, "sequence begins at %d: %s", made.First, keys.where), nil
	case o.Cycle:
		return cycleNote(), nil
	}
	var notes []string
	if note := uncompared(o.OwnedBy, o.Kind); note != "" && !o.OwnedBy.IsZero() && (!asked.Start.Given || o.Kind.Resets()) {
		notes = append(notes, note)
	}
	if most := o.Kind.MaxCounter(); most < made.Round {
		notes = append(notes, fmt.Sprintf("%d counters are too few for a block on each sequence server: while one is away there may be no key; want more digits", most))
	}
	if notes != nil {
		return noted(mysql.ER_UNKNOWN_ERROR, "%s", strings.Join(notes, "; ")), nil
	}
	return &protocol.Table{}, nil
}

// existing returns the kind of the sequence if it exists already, and where it stands.
func (s *Sequences) existing(ctx context.Context, o *sequence.CreateOptions) (k kind.Kind, last uint64, there bool, err error) {
	if !o.IfNotExists && !o.OrReplace {
		return k, 0, false, nil
	}
	d, at, err := s.sequences.Describe(ctx, []byte(o.Name))
	switch {
	case errors.Is(err, sequence.ErrUnknown):
		return k, 0, false, nil
	case err != nil:
		return k, 0, false, err
	}
	return d.Kind, at.Last, true, nil
}

func existsNote(name string) *protocol.Table {
	return noted(mysql.ER_TABLE_EXISTS_ERROR, "Sequence '%s' already exists and stays as it is", name)
}

func (s *Sequences) alter(ctx context.Context, asked *ddl.Sequence, by proxy.Caller) (*protocol.Table, error) {
	name := asked.Names[0]
	a, err := alteration(asked)
	if err != nil {
		return nil, err
	}
	var keys owned
	var note string
	if a.OwnedBy != nil {
		a.OwnerMax = new(uint64)
	}
	if a.OwnedBy != nil && !a.OwnedBy.IsZero() {
		d, at, err := s.sequences.Describe(ctx, name)
		if err != nil {
			return s.altered(asked, err)
		}
		a.Apply(&d)
		end := d.Limit(math.MaxUint64)
		if keys, err = readOwned(ctx, by, *a.OwnedBy, d.Kind, end); err != nil {
			return nil, err
		}
		if at.Last < keys.floor && !d.Cycle {
			if err := keys.atEnd(*a.OwnedBy, d.Kind, end); err != nil {
				return nil, err
			}
		}
		if err := keys.allOwn(*a.OwnedBy, d.Kind, at.Last); err != nil {
			return nil, err
		}
		*a.OwnerMax = keys.ends(d.Kind)
		if *a.OwnerMax != 0 && *a.OwnerMax <= at.Last && at.After != 0 && !d.Cycle && !a.Force {
			return nil, wrongColumn(*a.OwnedBy, "it holds numbers up to %d, and the sequence stands at %d, so it would give none: make the column wider", keys.limit, at.Last)
		}
		a.Floor, note = keys.floor, uncompared(*a.OwnedBy, d.Kind)
	}
	done, err := s.sequences.Alter(ctx, name, a)
	switch {
	case err != nil:
		return s.altered(asked, err)
	case keys.floor != 0 && done.Next > keys.floor:
		return noted(mysql.ER_UNKNOWN_ERROR, "sequence continues at %d: %s", done.Next, keys.where), nil
	case asked.Cycle == ddl.Yes:
		return cycleNote(), nil
	case asked.Restart:
		return &protocol.Table{OK: protocol.OK{Info: fmt.Sprintf("sequence continues at %d", done.Next)}}, nil
	case note != "":
		return noted(mysql.ER_UNKNOWN_ERROR, "%s", note), nil
	}
	return &protocol.Table{}, nil
}

// altered is the result of an ALTER that failed.
func (s *Sequences) altered(asked *ddl.Sequence, err error) (*protocol.Table, error) {
	if asked.IfExists && errors.Is(err, sequence.ErrUnknown) {
		return noted(erUnknownSequence, "Unknown SEQUENCE: '%s'", asked.Names[0]), nil
	}
	return nil, err
}

// alteration returns what an ALTER changes, except for the column's limit.
func alteration(asked *ddl.Sequence) (a sequence.Alteration, err error) {
	a = sequence.Alteration{
		Increment: given(asked.Increment), Min: given(asked.Min), Start: given(asked.Start), Cache: cacheOf(asked), Cover: given(asked.Cover),
		Cycle: toggled(asked.Cycle), JSONSafe: toggled(asked.JSONSafe), Order: toggled(asked.Order), Force: asked.Force,
	}
	if a.Max, err = bounds(string(asked.Names[0]), asked); err != nil {
		return a, err
	}
	if asked.Min.Default {
		*a.Min = 1
	}
	if asked.HasComment {
		text := string(asked.Comment)
		a.Comment = &text
	}
	if asked.HasOwner {
		owner := ownerOf(asked)
		a.OwnedBy = &owner
	}
	if asked.Restart {
		a.Restart = &asked.RestartWith.Value // RESTART without a number is 0, which means START
	}
	return a, nil
}

// drop drops the sequences that exist. One error names all others, as for tables.
func (s *Sequences) drop(ctx context.Context, st *statement.Statement, by proxy.Caller) (*protocol.Table, error) {
	asked := st.Sequence
	var unknown, freed []string
	for _, name := range asked.Names {
		dropped, err := s.sequences.Drop(ctx, name, asked.IfExists)
		by.Audit(describeOne(st, name), err)
		switch {
		case errors.Is(err, sequence.ErrUnknown), err == nil && dropped == nil:
			unknown = append(unknown, string(name))
		case err != nil:
			return nil, err
		case !dropped.OwnedBy.IsZero():
			freed = append(freed, dropped.OwnedBy.String())
		}
	}
	names := strings.Join(unknown, ",")
	switch {
	case freed != nil && (names == "" || asked.IfExists):
		return noted(mysql.ER_UNKNOWN_ERROR, "from now on each server's own AUTO_INCREMENT, or nobody, gives the keys of %s", strings.Join(freed, ", ")), nil
	case names == "":
		return &protocol.Table{}, nil
	case asked.IfExists:
		return noted(erUnknownSequence, "Unknown SEQUENCE: '%s'", names), nil
	}
	return nil, &sequence.NameError{Name: names, Err: sequence.ErrUnknown}
}

// flush drops the numbers in memory of the named sequences, or of all.
func (s *Sequences) flush(ctx context.Context, st *statement.Statement, by proxy.Caller) (*protocol.Table, error) {
	names := st.Sequence.Names
	if len(names) == 0 {
		names = [][]byte{nil}
	}
	for _, name := range names {
		err := s.caches.Flush(ctx, name)
		by.Audit(describeOne(st, name), err)
		if err != nil {
			return nil, err
		}
	}
	return &protocol.Table{}, nil
}

// noted is an OK with a text that SHOW WARNINGS shows, too.
func noted(code uint16, format string, args ...any) *protocol.Table {
	text := fmt.Sprintf(format, args...)
	return &protocol.Table{OK: protocol.OK{Info: text}, Warning: warning(code, text)}
}

// warning is the answer of SHOW WARNINGS after a statement.
func warning(code uint16, text string) *protocol.ServerError {
	return &protocol.ServerError{Code: code, State: "01000", Message: text}
}

func cycleNote() *protocol.Table {
	return noted(mysql.ER_UNKNOWN_ERROR, "with CYCLE the sequence gives its numbers again after its end: they are no keys then")
}

// cacheOf returns the option CACHE, or nil without one. 0 means adaptive, and NOCACHE is 1.
func cacheOf(asked *ddl.Sequence) *uint64 {
	cache := given(asked.Cache)
	if asked.Cache.Given {
		*cache = max(*cache, 1)
	}
	return cache
}

// bounds refuses options of 0 that the engine would understand differently. It returns MAXVALUE:
// nil without one, 0 for none.
func bounds(name string, asked *ddl.Sequence) (highest *uint64, err error) {
	for _, n := range [...]ddl.Number{asked.Start, asked.Max, asked.RestartWith} {
		if n.Given && n.Value == 0 {
			return nil, conflicting(name)
		}
	}
	highest = given(asked.Max)
	switch bound := asked.TypeMax; {
	case bound == 0:
	case asked.Max.Given && asked.Max.Value > bound:
		return nil, conflicting(name)
	case asked.Max.Given:
	case bound == math.MaxUint64:
		highest = new(uint64)
	default:
		highest = &bound
	}
	return highest, nil
}

// given returns the number of an option: nil if it is missing, 0 for the default.
func given(n ddl.Number) *uint64 {
	if !n.Given && !n.Default {
		return nil
	}
	return &n.Value
}

func toggled(t ddl.Toggle) *bool {
	if t == ddl.NotSaid {
		return nil
	}
	on := t == ddl.Yes
	return &on
}

func deref(n *uint64) uint64 {
	if n == nil {
		return 0
	}
	return *n
}

func ownerOf(asked *ddl.Sequence) sequence.Column {
	return sequence.Column{Schema: string(asked.OwnerSchema), Table: string(asked.OwnerTable), Column: string(asked.OwnerColumn)}
}
