package agree

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"

	gomysql "github.com/go-mysql-org/go-mysql/mysql"

	"seqproxy/sequence/define"
	"seqproxy/sequence/kind"
	"seqproxy/sequence/link"
	"seqproxy/sequence/member"
	"seqproxy/sequence/store"
)

// Created says what Create did.
type Created struct {
	Existed  bool   // IfNotExists was given and the sequence exists; nothing was changed
	Replaced bool   // OrReplace was given and there was one
	First    uint64 // the first number that it will give
	// First is above Start: Floor is above it, or Given
	Raised bool
	// numbers up to it may have been given before, by a sequence of that name, and Floor is below;
	// else 0
	Given uint64
	Round uint64 // so many numbers make a block for each of several members; 0: there are no blocks
}

// New is a sequence that is to be made.
type New struct {
	define.CreateOptions
	Period bool // it is the counter of a period of a sequence
	Alone  bool // nobody has typed that it is to be made: its first number was asked for
	Anew   bool // its row is gone, and whoever says so knows above which numbers it goes on
}

// Made is what was made.
type Made struct {
	Created
	Above uint64 // the rows stand there, or above; 0 if that is not to be kept
	Row   string // the name of the rows
	// Unordered: it is not an ORDER sequence yet, because numbers of the one before may be held
	// somewhere.
	Unordered bool
}

// Create makes the rows and their options, on a majority of the members at least.
func (a Definitions) Create(ctx context.Context, o New, def define.Definition) (made Made, err error) {
	if err := a.dividable(&def); err != nil {
		return made, err
	}
	stored, look := define.StoredName(o.Name, def.Kind), o.Name
	if define.IsHidden(stored) {
		look = stored
	}
	found, err := a.Find(ctx, look)
	switch {
	case o.Period && (err == nil || member.IsUnfitRow(err)): // what its row is may be lost, and is said again
	case err == nil && (o.IfNotExists || !o.OrReplace):
		return o.existing(&found)
	case err == nil && found.Def.Kind != def.Kind:
		return made, &define.KindError{Sequence: o.Name, Kind: found.Def.Kind, Refused: "another kind of keys", WayOut: "create a sequence of another name"}
	case err != nil && !errors.Is(err, define.ErrUnknown) && !errors.Is(err, define.ErrExhausted):
		return made, err
	}
	if err := a.fits(&def); err != nil || o.DryRun {
		return made, err
	}
	row := func(e *edit) error { return e.makeRow(ctx, stored) }
	need := majority(len(a.Members))
	if define.IsWorker(stored) {
		need = 1 // of which one alone gives ticks, and all say the same of it
	}
	err = a.edit(ctx, need, stored, row, func(g *Agreed) (err error) {
		made, err = g.create(ctx, &o, def)
		return err
	})
	return o.outcome(made, err)
}

// create makes the rows and their options, unless there is the sequence.
func (g *Agreed) create(ctx context.Context, o *New, def define.Definition) (made Made, err error) {
	if g.live && (o.IfNotExists || !o.OrReplace) && (g.best.hasEntry || !o.Period) {
		r := g.merged()
		if made, err = o.existing(&r); err == nil {
			err = g.settle(ctx)
		}
		return made, err
	}
	if err := g.refuseOtherKind(ctx, o.Name, def.Kind); err != nil {
		return made, err
	}
	if err := cmp.Or(g.refuseUnsaidOwner(o), g.refuseSecond(ctx, &o.OwnedBy), g.mayBegin(ctx, o), g.refuseDeleted(ctx)); err != nil {
		return made, err
	}
	made.Replaced = g.live
	if h := g.all[0].h; h.InBlocks() {
		made.Round = h.Count * h.Block
	}
	limit := g.highest()
	if err := def.Check(limit); err != nil {
		return made, err
	}
	used := max(g.top, o.Floor) // without what the definition before says of its start
	if g.live && def.Increment != g.best.Def.Increment {
		used = max(used, g.used())
	}
	e := store.NoEntry()
	for i := range g.all {
		of := &g.all[i]
		used, e.Past, e.Epoch = max(used, of.Floor), max(e.Past, of.Past), max(e.Epoch, of.Epoch)
	}
	e.Def, e.Anchor, e.Version, e.Past = def, def.Start, g.version, max(e.Past, used)
	e.Def.Name = ""
	// Other proxies may still give numbers of the sequence before.
	made.Unordered = def.Order && (g.best != nil || g.marks.Of(g.name) > 0)
	e.Def.Order = def.Order && !made.Unordered
	if e.Def.Order {
		e.Home = g.newHome()
	}
	made.Row, made.Above, made.Raised = g.name, max(used, def.Start-1), used >= def.Start
	if made.Raised && used > o.Floor {
		made.Given = used
	}
	for i := range g.all {
		if err := g.all[i].write(ctx, &e, g.name, made.Above); err != nil {
			return made, err
		}
	}
	made.First = g.first(def.Limit(limit))
	switch {
	case made.First == 0 && len(g.missing) > 0: // the numbers may be theirs, as all ticks of a worker are of one
		return made, errors.Join(g.missing...)
	case made.First == 0:
		return made, &define.NameError{Name: define.ShownName(g.name), Err: define.ErrExhausted}
	}
	return made, nil
}

// dividable refuses a definition whose numbers several members cannot divide.
func (a Definitions) dividable(d *define.Definition) error {
	switch {
	case !a.Several():
	case !a.Members[0].Share().Divides(d.Increment):
		return store.NotDivided(a.Members[0].Share(), d.Name, d.Increment)
	case d.Cycle:
		return define.NeedsOneServer("sequence %q: CYCLE", d.Name)
	case d.Kind.HasClock() && a.Members[0].Share().InSteps():
		return define.NeedsOneServer("sequence %q: SNOWFLAKE with interleave = \"step\"", d.Name)
	}
	return nil
}

// existing is the outcome where there is the sequence.
func (o *New) existing(r *store.Row) (Made, error) {
	if !o.IfNotExists {
		return Made{}, &define.NameError{Name: define.ShownName(r.Name), Err: define.ErrExists}
	}
	first, _ := r.Rule().Next(r.Position(), r.Max)
	// whoever made it may not know whether it stays
	return Made{Created: Created{Existed: true, First: first}, Above: r.Position(), Row: r.Name}, nil
}

// outcome is that of a transaction that should have made the sequence.
func (o *New) outcome(made Made, err error) (Made, error) {
	switch {
	case link.HasCode(err, gomysql.ER_DUP_ENTRY):
		// Made by somebody else between the look and the insert.
		if o.IfNotExists {
			return Made{Created: Created{Existed: true}}, nil
		}
		return Made{}, &define.NameError{Name: o.Name, Err: define.ErrExists}
	case link.HasCode(err, gomysql.ER_DATA_TOO_LONG, gomysql.ER_TRUNCATED_WRONG_VALUE_FOR_FIELD) || link.IsNoSuchText(err):
		return Made{}, define.BadOption("sequence name %q does not fit the column `name`, or its comment or owner theirs: %v", o.Name, err)
	case err != nil:
		return Made{}, fmt.Errorf("create sequence %q: %w", o.Name, err)
	}
	return made, nil
}

// refuseUnsaidOwner refuses to make a sequence in place of one that a column owns, or owned before
// somebody deleted its row, unless the statement says what becomes of the column. If the column
// lost its sequence, each shard would give its keys. A tombstone has no options.
func (g *Agreed) refuseUnsaidOwner(o *New) error {
	if g.best == nil || o.Unowned || !o.OwnedBy.IsZero() || g.best.Def.OwnedBy.IsZero() || define.IsHidden(g.name) {
		return nil
	}
	v, column := g.all[0].v, g.best.Def.OwnedBy.Quoted()
	if g.live {
		return define.BadOption("the column %s owns sequence %q: add OWNED BY %s, or OWNED BY NONE, after which each server's own AUTO_INCREMENT, or nobody, gives its keys",
			column, define.ShownName(g.name), column)
	}
	return &link.UnfitError{
		Server: v.At(), Table: v.Table.Sequence, OfSequence: true,
		Finding: fmt.Sprintf("the row of sequence %q was deleted, and it was OWNED BY %s", define.ShownName(g.name), column),
		Remedy: fmt.Sprintf("FLUSH SEQUENCES on every proxy, and then CREATE SEQUENCE %s, with the kind that it had, START WITH n OWNED BY %s, n above all its keys; or with OWNED BY NONE",
			define.Quote(define.ShownName(g.name)), column),
	}
}

// mayBegin refuses to make a sequence whose row went other than by DROP SEQUENCE: others may have
// given higher numbers than are known. People may say where it goes on, or stop all who may have
// numbers. A row that a fail-over lost is no such row: the takeover has left a floor for it.
func (g *Agreed) mayBegin(ctx context.Context, o *New) error {
	typed := !o.Period && !o.Alone && !define.IsWorker(g.name)
	ofOtherRows := o.Kind.HasClock() || o.Kind.Resets() || !o.Kind.Counts() // or of no row
	// IF NOT EXISTS is what programs say at each start: their START is that of a new sequence.
	if o.Anew || g.live || typed && (o.Start != 0 && !o.IfNotExists || ofOtherRows) {
		return nil
	}
	// Tables that were made anew, or restored from before, have no entry. All but a period go on
	// above this process's mark.
	if g.best == nil && !(o.Period && g.marks.Of(g.name) > 0) || g.best != nil && g.best.Dropped() {
		return nil
	}
	deleted := g.rowIsGone(o)
	unread := o.OwnedBy.IsZero() // else Floor is what the column has
	if !typed || unread && (o.IfNotExists || g.best != nil && !g.best.Def.OwnedBy.IsZero()) {
		return deleted
	}
	for i := range g.all {
		others := new(store.RegisteredError)
		switch err := g.all[i].v.RefuseOthers(ctx, g.all[i].Tx, g.name); {
		case errors.As(err, &others):
			deleted.Finding = fmt.Sprintf("the row of sequence %q was deleted, and other proxies may have numbers of it in memory: %s", define.ShownName(g.name), others.List())
			return deleted
		case err != nil:
			return err
		}
	}
	return nil
}

// rowIsGone is the finding about the deleted row of a sequence that would be made by itself.
func (g *Agreed) rowIsGone(o *New) *link.UnfitError {
	v, base := g.all[0].v, define.ShownName(g.name)
	deleted := &link.UnfitError{Server: v.At(), Table: v.Table.Sequence, OfSequence: true}
	switch {
	case define.IsWorker(g.name):
		deleted.Finding = fmt.Sprintf("the row %q was deleted, which says which ticks of a worker are reserved", g.name)
		deleted.Remedy = fmt.Sprintf("leave that worker alone; or after twice the OUTAGE_COVER, and a minute, DELETE FROM %s WHERE name = '%s'", v.Table.Options, g.name)
	case o.Period:
		deleted.Finding = fmt.Sprintf("the row %q was deleted, which counts in the present period of sequence %q, and nobody knows which keys of it were given", g.name, base)
		deleted.Remedy = fmt.Sprintf("FLUSH SEQUENCES %s on every proxy, and then ALTER SEQUENCE %s RESTART WITH n on one, n above the counters of all keys of this period (SELECT SEQUENCE_DECODE tells that of a key)",
			base, define.Quote(base))
	default:
		keys := "all its keys"
		if !o.Kind.IsPlain() {
			keys = "the counters of all its keys"
		}
		deleted.Finding = fmt.Sprintf("the row of sequence %q was deleted, so it is not created by itself: nobody knows which numbers of it were given", base)
		deleted.Remedy = fmt.Sprintf("FLUSH SEQUENCES on every proxy, and then say where it goes on, with n above %s: CREATE SEQUENCE %s START WITH n, with the kind that it had", keys, define.Quote(base))
	}
	return deleted
}

// refuseOtherKind refuses to make a sequence under a name that has, or had, another kind of keys.
// Changes of definitions are locked.
func (g *Agreed) refuseOtherKind(ctx context.Context, name string, k kind.Kind) error {
	const wayOut = "it could give the same keys; say the kind that it had, or create a sequence of another name"
	for i := range g.all {
		if of := &g.all[i]; of.hasEntry && of.Def.Kind != k {
			return &define.KindError{Sequence: name, Kind: of.Def.Kind, Refused: "another kind of keys", WayOut: wayOut}
		}
	}
	other := name
	switch {
	case define.IsHidden(define.CounterName(name)): // a plain one is another sequence
		return nil
	case k.IsPlain():
		other = define.CounterName(name)
	}
	for i := range g.all {
		v := g.all[i].v
		var exists bool
		var floor uint64
		// also of one whose row was deleted by hand, so that there is no tombstone
		var past kind.Kind
		err := g.all[i].QueryRowContext(ctx, "SELECT EXISTS (SELECT 1 FROM "+v.Table.Sequence+" WHERE `name` = ?), "+
			"IFNULL((SELECT o.`floor` FROM "+v.Table.Options+" AS o WHERE o.`name` = ?), 0), "+
			"IFNULL((SELECT o.`kind` FROM "+v.Table.Options+" AS o WHERE o.`name` = ?), '')", other, other, other).Scan(&exists, &floor, store.KindColumn{Kind: &past})
		if err != nil {
			return fmt.Errorf("look for %q on %s: %w", other, v.Name(), err)
		}
		if exists || floor > 0 || !past.IsPlain() || g.marks.Of(other) > 0 {
			if k.IsPlain() && past.IsPlain() {
				return &define.KindError{Sequence: name, KindLost: true, Refused: "a plain sequence", WayOut: "it could give the same keys; create it with the kind that it had, or create a sequence of another name"}
			}
			return &define.KindError{Sequence: name, Kind: past, Refused: "another kind of keys", WayOut: wayOut}
		}
	}
	return nil
}

// LimitOfNew is the highest number of a new sequence. It refuses what several servers cannot have.
func (a Definitions) LimitOfNew(def *define.Definition) (uint64, error) {
	limit := uint64(math.MaxUint64)
	for _, v := range a.Members {
		if seen := v.Seen.Load(); seen != nil {
			limit = min(limit, seen.Max)
		}
	}
	return limit, cmp.Or(a.dividable(def), a.fits(def))
}
