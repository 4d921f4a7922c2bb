package sequence

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"math"
	"slices"

	"seqproxy/internal/await"
	"seqproxy/sequence/define"
	"seqproxy/sequence/floor"
	"seqproxy/sequence/link"
	"seqproxy/sequence/segment"
	"seqproxy/sequence/store"
)

// This file is how definitions are changed. The rows of all members are locked, in the order of
// their positions, then changed, then committed one after the other, under one version. On each
// member the row comes first: who waits for somebody else's lock on it has locked nothing that
// others need. A proxy that dies in between leaves members that differ: the entry with the higher
// version counts, also if it is a tombstone, and the next proxy that looks for the sequence brings
// the others in line (reconcile). No row of one of several members goes down, and that alone keeps
// its numbers unique.

// edit is a change of definitions under way on one member.
type edit struct {
	*sql.Tx
	conn  *sql.Conn
	v     *server
	among []*server // all members, by position
	h     segment.Share
	made  bool // the row, for this
	wrote bool // an entry
}

// end undoes what is not committed. The connection is not used again, see begin.
func (e *edit) end() {
	if e.Tx != nil {
		_ = e.Rollback()
	}
	_ = e.conn.Raw(func(any) error { return driver.ErrBadConn })
	_ = e.conn.Close()
}

// lockedName is what a member has of a name, locked.
type lockedName struct {
	*edit
	store.Row             // its id is 0 and its name empty if there is none
	hasRow, hasEntry bool // there is a row, and an entry among the options
	planFloor        uint64
}

// live reports whether the name is a sequence there, as far as this member knows.
func (of *lockedName) live() bool { return of.hasRow }

// given is the highest number that the member may have given of the name. The row of a single
// server says that alone, as it may have gone below the others since, by CYCLE or RESTART ...
// FORCE.
func (of *lockedName) given() uint64 {
	if of.hasRow && !of.h.Shared() {
		return of.ID
	}
	return max(of.ID, of.Floor, of.planFloor)
}

// edit calls f with what at least need members have of a name, which is locked, and commits. On
// each member it calls first before. f may be called again after a conflict.
func (w *view) edit(ctx context.Context, need int, name string, first func(e *edit) error, f func(g *agreed) error) error {
	return link.Again(ctx, w.links(), func() error { return w.editOnce(ctx, need, name, first, f) })
}

// amend is edit of all members, for a sequence that there is.
func (w *view) amend(ctx context.Context, name string, f func(g *agreed) error) error {
	return w.edit(ctx, len(w.Members), name, func(*edit) error { return nil }, func(g *agreed) error {
		if !g.live {
			return &NameError{Name: define.ShownName(name), Err: ErrUnknown}
		}
		return f(g)
	})
}

func (w *view) editOnce(ctx context.Context, need int, name string, first func(e *edit) error, f func(g *agreed) error) error {
	var edits []*edit
	defer func() {
		for _, e := range edits {
			e.end()
		}
	}()
	g := &agreed{name: name, marks: w.Members[0].Marks}
	var missing []error
	for _, v := range w.Members {
		e, err := w.begin(ctx, v)
		if err != nil {
			if !w.Several() || errors.Is(err, store.OutcomeOldPlan) || link.IsConflict(err) || errors.Is(err, ErrUnfit) || ctx.Err() != nil {
				return err
			}
			missing = append(missing, fmt.Errorf("sequence server %s is not reached: %w", v.Name(), err))
			continue
		}
		edits = append(edits, e)
		if err := first(e); err != nil {
			return err
		}
		of, next, err := e.lockName(ctx, name)
		if err != nil {
			return err
		}
		g.all, g.version = append(g.all, of), max(g.version, next)
	}
	if len(edits) < need {
		return fmt.Errorf("%d of %d sequence servers are needed for this, and %d can be reached; start the others, or take them out with "+
			"SEQPROXY REMOVE SEQUENCE SERVER: %w", need, len(w.Members), len(edits), errors.Join(missing...))
	}
	g.agree()
	if err := f(g); err != nil {
		return err
	}
	// A row that was deleted there, and was made to lock it, is not kept: it would give numbers
	// again.
	kept := slices.DeleteFunc(slices.Clone(edits), func(e *edit) bool { return e.made && !e.wrote })
	if slices.ContainsFunc(kept, func(e *edit) bool { return e.wrote }) {
		stamp := store.NewStamp()
		for _, e := range kept {
			if _, err := e.ExecContext(ctx, "UPDATE "+e.v.Table.Version+" SET `version` = GREATEST(`version`, ?), `stamp` = ? WHERE `one` = 1", g.version, stamp); err != nil {
				return fmt.Errorf("raise the version on %s: %w", e.v.Name(), err)
			}
		}
	}
	for i, e := range kept {
		if err := link.Commit(ctx, e.Tx); err != nil {
			if len(kept) > 1 { // a conflict is not tried again: others may have committed
				err = fmt.Errorf("on %s, after %d of %d: %v", e.v.Name(), i, len(kept), err)
			}
			return fmt.Errorf("%w: %w", link.ErrOutcome, err)
		}
	}
	return nil
}

// begin begins the transaction on one member. All changes of definitions wait for it, as long as
// the server keeps it for a proxy that stands still.
func (w *view) begin(ctx context.Context, v *server) (*edit, error) {
	h := v.Share()
	if h.Plan != w.Plan.Number {
		return nil, store.OutcomeOldPlan
	}
	conn, err := w.connect(ctx, v)
	if err != nil {
		return nil, err
	}
	e := &edit{conn: conn, v: v, among: w.Members, h: h}
	_, err = conn.ExecContext(ctx, fmt.Sprintf("SET SESSION wait_timeout = CAST(LEAST(@@SESSION.wait_timeout, %d) AS UNSIGNED)", int(v.Config.EditSilence.Seconds())))
	if err == nil {
		e.Tx, err = conn.BeginTx(ctx, nil)
	}
	if err != nil {
		e.end()
		return nil, fmt.Errorf("begin: %w", err)
	}
	return e, nil
}

// connect attaches a connection to a member that can be written to. If there are others it takes
// tryTime at most. What follows has the caller's time, as a transaction ends with its context.
func (w *view) connect(ctx context.Context, v *server) (*sql.Conn, error) {
	if w.Several() {
		try, stop := context.WithTimeoutCause(ctx, v.TryTime(), await.ErrPatience)
		defer stop()
		ctx = try
	}
	conn, err := v.Conn(ctx)
	if err != nil {
		return nil, err
	}
	if w.Several() {
		err = conn.PingContext(ctx)
	}
	if err == nil {
		err = v.Writable(ctx, conn)
	}
	if err != nil {
		_ = conn.Close()
		return nil, err
	}
	return conn, nil
}

// makeRow makes the row of a name, unless there is one, and locks it. To look for one that is
// missing would lock the names around it, and two who make it would wait for each other.
func (e *edit) makeRow(ctx context.Context, name string) error {
	result, err := e.ExecContext(ctx, "INSERT INTO "+e.v.Table.Sequence+" (`name`, `id`) VALUES (?, 0) ON DUPLICATE KEY UPDATE `id` = `id`", name)
	if err != nil {
		return fmt.Errorf("make the row on %s: %w", e.v.Name(), err)
	}
	n, err := result.RowsAffected()
	e.made = n > 0
	return err
}

// lockDefinitions keeps other changes of definitions, and those of the plan, from this member, and
// says which version is the next one there.
func (e *edit) lockDefinitions(ctx context.Context) (next uint64, err error) {
	if _, err = e.ExecContext(ctx, "INSERT INTO "+e.v.Table.Version+" (`one`) VALUES (1) ON DUPLICATE KEY UPDATE `version` = `version`"); err == nil {
		err = e.QueryRowContext(ctx, "SELECT GREATEST(`version` + 1, "+store.ServerMicros+") FROM "+e.v.Table.Version+" WHERE `one` = 1 FOR UPDATE").Scan(&next)
	}
	if err != nil {
		return 0, fmt.Errorf("lock the definitions on %s: %w", e.v.Name(), err)
	}
	if err := e.v.Plans.MustObey(ctx, e.Tx, e.h.Plan); err != nil {
		return 0, err
	}
	return next, e.v.Plans.RefuseWhileChanging(ctx, e.Tx)
}

// lockName locks what a member has of a name. Nothing is read without a lock before: it would be
// older than what is locked then. The next version is above any epoch that a proxy may have seen.
// On a single server it is above what proxies say that they obey, too, as the table of options
// alone may have been restored; of several members the others tell.
func (e *edit) lockName(ctx context.Context, name string) (of lockedName, next uint64, err error) {
	of = lockedName{edit: e, Row: store.Row{Name: name, Entry: store.NoEntry()}}
	v := e.v
	var id sql.NullString
	err = e.QueryRowContext(ctx, "SELECT `name`, CAST(`id` AS CHAR) FROM "+v.Table.Sequence+" WHERE `name` = ? FOR UPDATE", name).Scan(&of.Name, &id)
	switch {
	case errors.Is(err, sql.ErrNoRows):
	case link.IsNoSuchText(err):
		return of, 0, &NameError{Name: define.ShownName(name), Err: ErrUnknown}
	case err != nil:
		return of, 0, fmt.Errorf("lock the row on %s: %w", v.Name(), err)
	default:
		of.hasRow = !e.made
		if of.ID, err = v.ParseID(of.Name, id); err != nil {
			return of, 0, err
		}
	}
	if next, err = e.lockDefinitions(ctx); err != nil {
		return of, 0, err
	}
	err = e.QueryRowContext(ctx, "SELECT "+store.EntryOf+" FROM "+v.Table.Options+" AS o WHERE o.`name` = ? FOR UPDATE", name).Scan(of.Fields()...)
	if err != nil && !errors.Is(err, sql.ErrNoRows) {
		return of, 0, fmt.Errorf("read options on %s: %w", v.Name(), err)
	}
	of.hasEntry = err == nil
	if e.h.Plan != 0 {
		if of.planFloor, err = v.Plans.FloorOf(ctx, e, e.h.Plan, name); err != nil {
			return of, 0, err
		}
	}
	told := uint64(0)
	if !e.h.Shared() {
		if told, err = v.Proxies.HighestVersion(ctx, e.Tx); err != nil {
			return of, 0, err
		}
	}
	v.Complete(&of.Row)
	if of.hasRow && e.h.InSteps() && !e.h.Has(of.ID) && of.ID < v.Seen.Load().Max {
		// at its end it is nobody's
		return of, 0, v.WrongResidue(ctx, e.among, of.Name, of.ID, e.h)
	}
	return of, max(next, told+1, of.Epoch+1, v.Marks.Epoch(of.Name)+1), nil
}

// write makes the row and the entry of a name be those of to, with the id at or above at: never
// below what it is.
func (of *lockedName) write(ctx context.Context, to *store.Entry, name string, at uint64) error {
	v := of.v
	at = max(at, of.given())
	if !of.hasRow {
		at = max(at, to.Def.Start-1)
	}
	id, ok := of.h.Rest(at)
	if !ok || id > v.Seen.Load().Max {
		return &NameError{Name: define.ShownName(name), Err: ErrExhausted}
	}
	var err error
	switch {
	case !of.hasRow && !of.made:
		_, err = of.ExecContext(ctx, "INSERT INTO "+v.Table.Sequence+" (`name`, `id`) VALUES (?, ?)", name, id)
	case id != of.ID:
		_, err = of.ExecContext(ctx, "UPDATE "+v.Table.Sequence+" SET `id` = ? WHERE `name` = ?", id, of.Name)
	}
	if err != nil {
		return fmt.Errorf("write the row on %s: %w", v.Name(), err)
	}
	moved := id != of.ID
	of.ID, of.hasRow = id, true
	if moved {
		if err := v.Limits.Want(ctx, of.Tx, name, id); err != nil {
			return err
		}
	}
	return of.writeEntry(ctx, to, name)
}

// writeEntry makes the entry of a name be that of to, but for the tombstone's floor, which does not
// go down.
func (of *lockedName) writeEntry(ctx context.Context, to *store.Entry, name string) error {
	e := *to
	e.Floor, e.Past = max(e.Floor, of.Floor), max(e.Past, of.Past)
	if !of.hasEntry {
		if _, err := of.ExecContext(ctx, "INSERT INTO "+of.v.Table.Options+" (`name`) VALUES (?)", name); err != nil {
			return fmt.Errorf("write options on %s: %w", of.v.Name(), err)
		}
		of.hasEntry = true
	}
	of.Entry, of.wrote = e, true
	return of.v.Options.Write(ctx, of.Tx, name, &e)
}

// agreed is what members have of a name, and what they should have.
type agreed struct {
	all     []lockedName
	marks   *floor.Marks
	name    string      // as it is stored
	version uint64      // of the change
	best    *lockedName // of the highest version; nil: nobody has heard of the name
	live    bool        // there is a sequence of that name
	top     uint64      // the highest id, or number that is not given any more for another reason
}

// agree finds out what members should have.
func (g *agreed) agree() {
	g.top = g.marks.Of(g.name)
	for i := range g.all {
		of := &g.all[i]
		if of.hasRow {
			g.name = of.Name
		}
		g.top = max(g.top, of.given())
		switch {
		case !of.hasRow && !of.hasEntry:
		case g.best == nil, of.Version > g.best.Version, of.Version == g.best.Version && of.live() && !g.best.live():
			g.best = of
		}
	}
	g.top = max(g.top, g.marks.Of(g.name))
	g.live = g.best != nil && g.best.live()
	if g.live && g.best.h.Shared() {
		g.top = max(g.top, g.best.Past)
	}
}

// deleted reports whether the row of a member went other than by DROP SEQUENCE.
func (g *agreed) deleted(of *lockedName) bool {
	return g.live && !of.hasRow && of.hasEntry && of.Version == g.best.Version
}

// settle brings all members in line with the newest of them. A single server is, also if its row
// was made by hand.
func (g *agreed) settle(ctx context.Context) error {
	if !g.best.h.Shared() {
		return nil
	}
	if !g.live {
		return g.bury(ctx, g.best.Version)
	}
	to := g.best.Entry
	if to.Version == 0 {
		to.Version = g.version // it was made by hand
	}
	for i := range g.all {
		of := &g.all[i]
		if g.deleted(of) || of.hasRow && of.Version == to.Version {
			continue
		}
		at := of.ID
		if !of.hasRow {
			at = g.top
		}
		if err := of.write(ctx, &to, g.name, at); err != nil {
			return err
		}
	}
	return nil
}

// bury leaves a tombstone everywhere.
func (g *agreed) bury(ctx context.Context, version uint64) error {
	tomb := store.NoEntry()
	for i := range g.all {
		of := &g.all[i]
		tomb.Floor, tomb.Past, tomb.Epoch = max(tomb.Floor, of.Floor), max(tomb.Past, of.Past), max(tomb.Epoch, of.Epoch)
	}
	tomb.Def.Kind = g.best.Def.Kind
	tomb.Floor, tomb.Version = max(tomb.Floor, g.top), version
	for i := range g.all {
		of := &g.all[i]
		if !of.hasRow && of.hasEntry && of.Version == version && of.Floor >= tomb.Floor {
			continue
		}
		if of.hasRow {
			if _, err := of.ExecContext(ctx, "DELETE FROM "+of.v.Table.Sequence+" WHERE `name` = ?", of.Name); err != nil {
				return fmt.Errorf("delete the row on %s: %w", of.v.Name(), err)
			}
		}
		if err := of.writeEntry(ctx, &tomb, g.name); err != nil {
			return err
		}
	}
	return nil
}

// highest is the highest number that the columns of all members hold.
func (g *agreed) highest() uint64 {
	highest := uint64(math.MaxUint64)
	for i := range g.all {
		highest = min(highest, g.all[i].v.Seen.Load().Max)
	}
	return highest
}

// merged is the row as it is for all members.
func (g *agreed) merged() store.Row {
	r := g.best.Row
	for i := range g.all {
		of := &g.all[i]
		r.ID, r.Max = max(r.ID, of.ID), min(r.Max, of.Row.Max)
	}
	r.Name, r.Version = g.name, max(r.Version, g.best.Version)
	return r
}

// reconcile makes members agree on a name that they have differently, and returns its row.
// ErrUnknown if the newest of them knows that it was dropped.
func (w *view) reconcile(ctx context.Context, name string) (found store.Row, err error) {
	// Some lack the row, and two who look for it would wait for each other to make it.
	definitions := func(e *edit) error { _, err := e.lockDefinitions(ctx); return err }
	err = w.edit(ctx, 1, name, definitions, func(g *agreed) error {
		if g.best == nil {
			return &NameError{Name: define.ShownName(name), Err: ErrUnknown}
		}
		if err := g.settle(ctx); err != nil {
			return err
		}
		found = g.merged()
		if !g.live {
			found = store.Row{}
		}
		return nil
	})
	if err == nil && found.Name == "" {
		err = &NameError{Name: define.ShownName(name), Err: ErrUnknown}
	}
	if err != nil {
		return store.Row{}, fmt.Errorf("have the sequence servers agree on sequence %q: %w", name, err)
	}
	return found, nil
}
