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
	row                   // its id is 0 and its name empty if there is none
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
		return of.id
	}
	return max(of.id, of.floor, of.planFloor)
}

// edit calls f with what at least need members have of a name, which is locked, and commits. On
// each member it calls first before. f may be called again after a conflict.
func (w *view) edit(ctx context.Context, need int, name string, first func(e *edit) error, f func(g *agreed) error) error {
	return link.Again(ctx, w.links(), func() error { return w.editOnce(ctx, need, name, first, f) })
}

// amend is edit of all members, for a sequence that there is.
func (w *view) amend(ctx context.Context, name string, f func(g *agreed) error) error {
	return w.edit(ctx, len(w.members), name, func(*edit) error { return nil }, func(g *agreed) error {
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
	g := &agreed{name: name, marks: w.members[0].marks}
	var missing []error
	for _, v := range w.members {
		e, err := w.begin(ctx, v)
		if err != nil {
			if !w.several() || errors.Is(err, outcomeOldPlan) || link.IsConflict(err) || errors.Is(err, ErrUnfit) || ctx.Err() != nil {
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
			"SEQPROXY REMOVE SEQUENCE SERVER: %w", need, len(w.members), len(edits), errors.Join(missing...))
	}
	g.agree()
	if err := f(g); err != nil {
		return err
	}
	// A row that was deleted there, and was made to lock it, is not kept: it would give numbers
	// again.
	kept := slices.DeleteFunc(slices.Clone(edits), func(e *edit) bool { return e.made && !e.wrote })
	if slices.ContainsFunc(kept, func(e *edit) bool { return e.wrote }) {
		stamp := newStamp()
		for _, e := range kept {
			if _, err := e.ExecContext(ctx, "UPDATE "+e.v.table.version+" SET `version` = GREATEST(`version`, ?), `stamp` = ? WHERE `one` = 1", g.version, stamp); err != nil {
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

// begin begins the transaction on one member. All changes of definitions wait for it, as long as the
// server keeps it for a proxy that stands still.
func (w *view) begin(ctx context.Context, v *server) (*edit, error) {
	h := v.share()
	if h.Plan != w.plan.Number {
		return nil, outcomeOldPlan
	}
	conn, err := w.connect(ctx, v)
	if err != nil {
		return nil, err
	}
	e := &edit{conn: conn, v: v, among: w.members, h: h}
	_, err = conn.ExecContext(ctx, fmt.Sprintf("SET SESSION wait_timeout = CAST(LEAST(@@SESSION.wait_timeout, %d) AS UNSIGNED)", int(v.timing.editSilence.Seconds())))
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
	if w.several() {
		try, stop := context.WithTimeoutCause(ctx, v.tryTime(), await.ErrPatience)
		defer stop()
		ctx = try
	}
	conn, err := v.Conn(ctx)
	if err != nil {
		return nil, err
	}
	if w.several() {
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
	result, err := e.ExecContext(ctx, "INSERT INTO "+e.v.table.full+" (`name`, `id`) VALUES (?, 0) ON DUPLICATE KEY UPDATE `id` = `id`", name)
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
	if _, err = e.ExecContext(ctx, "INSERT INTO "+e.v.table.version+" (`one`) VALUES (1) ON DUPLICATE KEY UPDATE `version` = `version`"); err == nil {
		err = e.QueryRowContext(ctx, "SELECT GREATEST(`version` + 1, "+micros+") FROM "+e.v.table.version+" WHERE `one` = 1 FOR UPDATE").Scan(&next)
	}
	if err != nil {
		return 0, fmt.Errorf("lock the definitions on %s: %w", e.v.Name(), err)
	}
	if err := e.v.plans.mustObey(ctx, e.Tx, e.h.Plan); err != nil {
		return 0, err
	}
	return next, e.v.plans.refuseWhileChanging(ctx, e.Tx)
}

// lockName locks what a member has of a name. Nothing is read without a lock before: it would be
// older than what is locked then. The next version is above any epoch that a proxy may have seen.
// On a single server it is above what proxies say that they obey, too, as the table of options
// alone may have been restored; of several members the others tell.
func (e *edit) lockName(ctx context.Context, name string) (of lockedName, next uint64, err error) {
	of = lockedName{edit: e, row: row{name: name, entry: noEntry()}}
	v := e.v
	var id sql.NullString
	err = e.QueryRowContext(ctx, "SELECT `name`, CAST(`id` AS CHAR) FROM "+v.table.full+" WHERE `name` = ? FOR UPDATE", name).Scan(&of.name, &id)
	switch {
	case errors.Is(err, sql.ErrNoRows):
	case link.IsNoSuchText(err):
		return of, 0, &NameError{Name: define.ShownName(name), Err: ErrUnknown}
	case err != nil:
		return of, 0, fmt.Errorf("lock the row on %s: %w", v.Name(), err)
	default:
		of.hasRow = !e.made
		if of.id, err = v.parseID(of.name, id); err != nil {
			return of, 0, err
		}
	}
	if next, err = e.lockDefinitions(ctx); err != nil {
		return of, 0, err
	}
	err = e.QueryRowContext(ctx, "SELECT "+entryOf+" FROM "+v.table.options+" AS o WHERE o.`name` = ? FOR UPDATE", name).Scan(of.fields()...)
	if err != nil && !errors.Is(err, sql.ErrNoRows) {
		return of, 0, fmt.Errorf("read options on %s: %w", v.Name(), err)
	}
	of.hasEntry = err == nil
	if e.h.Plan != 0 {
		if of.planFloor, err = v.plans.floorOf(ctx, e, e.h.Plan, name); err != nil {
			return of, 0, err
		}
	}
	told := uint64(0)
	if !e.h.Shared() {
		if told, err = v.proxies.highestVersion(ctx, e.Tx); err != nil {
			return of, 0, err
		}
	}
	v.complete(&of.row)
	if of.hasRow && e.h.InSteps() && !e.h.Owns(of.id) && of.id < v.seen.Load().max {
		// at its end it is nobody's
		return of, 0, v.wrongResidue(ctx, e.among, of.name, of.id, e.h)
	}
	return of, max(next, told+1, of.epoch+1, v.marks.Epoch(of.name)+1), nil
}

// write makes the row and the entry of a name be those of to, with the id at or above at: never
// below what it is.
func (of *lockedName) write(ctx context.Context, to *entry, name string, at uint64) error {
	v := of.v
	at = max(at, of.given())
	if !of.hasRow {
		at = max(at, to.def.Start-1)
	}
	id, ok := of.h.Rest(at)
	if !ok || id > v.seen.Load().max {
		return &NameError{Name: define.ShownName(name), Err: ErrExhausted}
	}
	var err error
	switch {
	case !of.hasRow && !of.made:
		_, err = of.ExecContext(ctx, "INSERT INTO "+v.table.full+" (`name`, `id`) VALUES (?, ?)", name, id)
	case id != of.id:
		_, err = of.ExecContext(ctx, "UPDATE "+v.table.full+" SET `id` = ? WHERE `name` = ?", id, of.name)
	}
	if err != nil {
		return fmt.Errorf("write the row on %s: %w", v.Name(), err)
	}
	moved := id != of.id
	of.id, of.hasRow = id, true
	if moved {
		if err := v.limits.wants(ctx, of.Tx, name, id); err != nil {
			return err
		}
	}
	return of.writeEntry(ctx, to, name)
}

// writeEntry makes the entry of a name be that of to, but for the tombstone's floor, which does not
// go down.
func (of *lockedName) writeEntry(ctx context.Context, to *entry, name string) error {
	e := *to
	e.floor, e.past = max(e.floor, of.floor), max(e.past, of.past)
	if !of.hasEntry {
		if _, err := of.ExecContext(ctx, "INSERT INTO "+of.v.table.options+" (`name`) VALUES (?)", name); err != nil {
			return fmt.Errorf("write options on %s: %w", of.v.Name(), err)
		}
		of.hasEntry = true
	}
	of.entry, of.wrote = e, true
	return of.v.options.write(ctx, of.Tx, name, &e)
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
			g.name = of.name
		}
		g.top = max(g.top, of.given())
		switch {
		case !of.hasRow && !of.hasEntry:
		case g.best == nil, of.version > g.best.version, of.version == g.best.version && of.live() && !g.best.live():
			g.best = of
		}
	}
	g.top = max(g.top, g.marks.Of(g.name))
	g.live = g.best != nil && g.best.live()
	if g.live && g.best.h.Shared() {
		g.top = max(g.top, g.best.past)
	}
}

// deleted reports whether the row of a member went other than by DROP SEQUENCE.
func (g *agreed) deleted(of *lockedName) bool {
	return g.live && !of.hasRow && of.hasEntry && of.version == g.best.version
}

// settle brings all members in line with the newest of them. A single server is, also if its row
// was made by hand.
func (g *agreed) settle(ctx context.Context) error {
	if !g.best.h.Shared() {
		return nil
	}
	if !g.live {
		return g.bury(ctx, g.best.version)
	}
	to := g.best.entry
	if to.version == 0 {
		to.version = g.version // it was made by hand
	}
	for i := range g.all {
		of := &g.all[i]
		if g.deleted(of) || of.hasRow && of.version == to.version {
			continue
		}
		at := of.id
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
	tomb := noEntry()
	for i := range g.all {
		of := &g.all[i]
		tomb.floor, tomb.past, tomb.epoch = max(tomb.floor, of.floor), max(tomb.past, of.past), max(tomb.epoch, of.epoch)
	}
	tomb.def.Kind = g.best.def.Kind
	tomb.floor, tomb.version = max(tomb.floor, g.top), version
	for i := range g.all {
		of := &g.all[i]
		if !of.hasRow && of.hasEntry && of.version == version && of.floor >= tomb.floor {
			continue
		}
		if of.hasRow {
			if _, err := of.ExecContext(ctx, "DELETE FROM "+of.v.table.full+" WHERE `name` = ?", of.name); err != nil {
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
		highest = min(highest, g.all[i].v.seen.Load().max)
	}
	return highest
}

// merged is the row as it is for all members.
func (g *agreed) merged() row {
	r := g.best.row
	for i := range g.all {
		of := &g.all[i]
		r.id, r.max = max(r.id, of.id), min(r.max, of.row.max)
	}
	r.name, r.version = g.name, max(r.version, g.best.version)
	return r
}

// reconcile makes members agree on a name that they have differently, and returns its row.
// ErrUnknown if the newest of them knows that it was dropped.
func (w *view) reconcile(ctx context.Context, name string) (found row, err error) {
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
			found = row{}
		}
		return nil
	})
	if err == nil && found.name == "" {
		err = &NameError{Name: define.ShownName(name), Err: ErrUnknown}
	}
	if err != nil {
		return row{}, fmt.Errorf("have the sequence servers agree on sequence %q: %w", name, err)
	}
	return found, nil
}
