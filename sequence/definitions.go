package sequence

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"math"
)

// This file is how definitions are changed where there are several sequence servers. All members are locked, in the order of their
// positions, then changed, then committed one after the other, under one version. Whoever dies in between leaves members that differ: the
// entry with the higher version counts, also if it is a tombstone, and the others are brought in line by whoever looks for the sequence
// next (reconcile). No row of a member ever goes down, and that alone keeps its numbers unique.
// edit is a change of definitions under way on one member.
type edit struct {
	*sql.Tx
	v *server
	h share
}

// held is what a member has of a name, locked.
type held struct {
	edit
	row                // its id is 0 and its name empty if there is none
	hasRow, known bool // there is a row, and an entry among the options
	planFloor     uint64
}

// live reports whether the name is a sequence there, as far as this member knows.
func (e *held) live() bool { return e.hasRow }

// wholly says that a change needs all members.
const wholly = math.MaxInt

// edit calls f while the definitions of at least need members are locked, with the version of the change, and commits. f may be called
// again after a conflict.
func (a *servers) edit(ctx context.Context, w *view, need int, f func(edits []edit, version uint64) error) error {
	need = min(need, len(w.members))
	var conflict error
	for attempt := 1; ; attempt++ {
		err := a.editOnce(ctx, w, need, f)
		if conflict != nil && ctx.Err() != nil && err != nil && !errors.Is(err, errOutcome) {
			return conflict
		}
		if !isConflict(err) && !errors.Is(err, driver.ErrBadConn) || attempt == maxAttempts {
			return err
		}
		conflict = err
		a.counters.retries.Add(1)
		if !pause(ctx, jitter(a.timing.conflict<<attempt)) {
			return conflict
		}
	}
}

func (a *servers) editOnce(ctx context.Context, w *view, need int, f func(edits []edit, version uint64) error) error {
	var edits []edit
	defer func() {
		for _, e := range edits {
			_ = e.Rollback() // of those that are not committed
		}
	}()
	version := uint64(0)
	var missing []error
	for _, v := range w.members {
		begun, newest, err := a.beginEdit(ctx, w, v)
		if err != nil {
			if errors.Is(err, errPlan) || errors.Is(err, errPlanChanging) || isConflict(err) || errors.Is(err, ErrUnfit) || ctx.Err() != nil {
				return err
			}
			missing = append(missing, fmt.Errorf("sequence server %s is not reached: %w", v.name(), err))
			continue
		}
		edits = append(edits, begun)
		version = max(version, newest)
	}
	if len(edits) < need {
		return fmt.Errorf("%d of %d sequence servers are needed for this, and %d can be reached; start the others, or take them out with "+
			"SEQPROXY REMOVE SEQUENCE SERVER: %w", need, len(w.members), len(edits), errors.Join(missing...))
	}
	if err := f(edits, version); err != nil {
		return err
	}
	stamp := newStamp()
	for _, e := range edits {
		if _, err := e.ExecContext(ctx, "UPDATE "+e.v.table.options+" SET `version` = GREATEST(`version`, ?), `epoch` = ? WHERE `name` = ''", version, stamp); err != nil {
			return fmt.Errorf("raise the version on %s: %w", e.v.name(), err)
		}
	}
	for i, e := range edits {
		if err := commit(ctx, e.Tx); err != nil {
			return fmt.Errorf("%w (on %s, after %d of %d): %v", errOutcome, e.v.name(), i, len(edits), err)
		}
	}
	return nil
}

// beginEdit locks the definitions of one member, and says which version is the next one there.
func (a *servers) beginEdit(ctx context.Context, w *view, v *server) (e edit, version uint64, err error) {
	h := v.share()
	if h.plan != w.plan.Number {
		return e, 0, errPlan
	}
	try, stop := context.WithTimeoutCause(ctx, a.tryTime(), errPatience)
	defer stop()
	db := v.pool()
	if db == nil {
		return e, 0, ErrClosed
	}
	conn, err := db.Conn(try) // bounded; what follows is by the caller's time, as a transaction ends with its context
	if err != nil {
		return e, 0, err
	}
	err = conn.PingContext(try)
	_ = conn.Close()
	if err != nil {
		return e, 0, err
	}
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return e, 0, err
	}
	e = edit{tx, v, h}
	var plan uint64
	if _, err = tx.ExecContext(ctx, "INSERT INTO "+v.table.options+" (`name`) VALUES ('') ON DUPLICATE KEY UPDATE `version` = `version`"); err == nil {
		err = tx.QueryRowContext(ctx, "SELECT GREATEST(`version` + 1, "+micros+"), `saved` FROM "+v.table.options+" WHERE `name` = '' FOR UPDATE").Scan(&version, &plan)
	}
	if err == nil && plan != h.plan {
		err = errPlan
	}
	if err == nil {
		err = v.refuseWhileChanging(ctx, tx)
	}
	if err != nil {
		_ = tx.Rollback()
		return edit{}, 0, err
	}
	return e, version, nil
}

// hold locks what a member has of a name.
func (e edit) hold(ctx context.Context, name string) (held, error) {
	of := held{edit: e, row: row{name: name, entry: noEntry()}}
	v := e.v
	var id sql.NullString
	err := e.QueryRowContext(ctx, "SELECT `name`, CAST(`id` AS CHAR) FROM "+v.table.full+" WHERE `name` = ? FOR UPDATE", name).Scan(&of.name, &id)
	switch {
	case errors.Is(err, sql.ErrNoRows):
	case isNoSuchText(err):
		return of, &NameError{Name: name, Err: ErrUnknown}
	case err != nil:
		return of, fmt.Errorf("lock the row on %s: %w", v.name(), err)
	default:
		of.hasRow = true
		if of.id, err = v.parseID(of.name, id); err != nil {
			return of, err
		}
	}
	err = e.QueryRowContext(ctx, "SELECT "+entryOf+" FROM "+v.table.options+" AS o WHERE o.`name` = ? FOR UPDATE", name).Scan(of.fields()...)
	if err != nil && !errors.Is(err, sql.ErrNoRows) {
		return of, fmt.Errorf("read options on %s: %w", v.name(), err)
	}
	of.known = err == nil
	if of.planFloor, err = v.planFloor(ctx, e, e.h.plan, name); err != nil {
		return of, err
	}
	v.complete(&of.row)
	if of.hasRow && e.h.inSteps() && !e.h.owns(of.id) && of.id < v.seen.Load().max { // at its end it is nobody's
		return of, v.wrongResidue(ctx, of.name, of.id, e.h)
	}
	return of, nil
}

// write makes the row and the entry of a name be those of to, with the id at or above at: never below what it is.
func (of *held) write(ctx context.Context, to *entry, name string, at uint64) error {
	v := of.v
	at = max(at, of.id, of.floor, of.planFloor)
	id, ok := of.h.rest(at)
	if !ok || id > v.seen.Load().max {
		return &NameError{Name: name, Err: ErrExhausted}
	}
	var err error
	switch {
	case !of.hasRow:
		_, err = of.ExecContext(ctx, "INSERT INTO "+v.table.full+" (`name`, `id`) VALUES (?, ?)", name, id)
	case id != of.id:
		_, err = of.ExecContext(ctx, "UPDATE "+v.table.full+" SET `id` = ? WHERE `name` = ?", id, of.name)
	}
	if err != nil {
		return fmt.Errorf("write the row on %s: %w", v.name(), err)
	}
	if !of.hasRow {
		if err := v.refuseEmpty(ctx, of.Tx, name); err != nil {
			return err
		}
	}
	of.id, of.hasRow = id, true
	return of.writeEntry(ctx, to, name)
}

// writeEntry makes the entry of a name be that of to, but for the tombstone's floor, which does not go down.
func (of *held) writeEntry(ctx context.Context, to *entry, name string) error {
	e := *to
	e.floor, e.past = max(e.floor, of.floor), max(e.past, of.past)
	if !of.known {
		if _, err := of.ExecContext(ctx, "INSERT INTO "+of.v.table.options+" (`name`) VALUES (?)", name); err != nil {
			return fmt.Errorf("write options on %s: %w", of.v.name(), err)
		}
		of.known = true
	}
	of.entry = e
	return of.v.writeEntry(ctx, of.Tx, name, &e)
}

// agreed is what members have of a name, and what they should have.
type agreed struct {
	all  []held
	name string // as it is stored
	best *held  // of the highest version; nil: nobody has heard of the name
	live bool   // there is a sequence of that name
	top  uint64 // the highest id, or number that is not given any more for another reason
}

// agree locks what members have of a name.
func (a *servers) agree(ctx context.Context, edits []edit, name string) (*agreed, error) {
	g := &agreed{name: name, top: a.marks.of(name)}
	for _, e := range edits {
		of, err := e.hold(ctx, name)
		if err != nil {
			return nil, err
		}
		if of.hasRow {
			g.name = of.name
		}
		g.all = append(g.all, of)
		g.top = max(g.top, of.id, of.floor, of.planFloor)
	}
	for i := range g.all {
		of := &g.all[i]
		switch {
		case !of.hasRow && !of.known:
		case g.best == nil, of.version > g.best.version, of.version == g.best.version && of.live() && !g.best.live():
			g.best = of
		}
	}
	g.live = g.best != nil && g.best.live()
	if g.live {
		g.top = max(g.top, g.best.past, g.best.def.Start-1)
	}
	return g, nil
}

// deleted reports whether the row of a member went other than by DROP SEQUENCE.
func (g *agreed) deleted(of *held) bool {
	return g.live && !of.hasRow && of.known && of.version == g.best.version
}

// settle brings all members in line with the newest of them.
func (g *agreed) settle(ctx context.Context, version uint64) error {
	if !g.live {
		return g.bury(ctx, g.best.version)
	}
	to := g.best.entry
	if to.version == 0 {
		to.version = version // it was made by hand
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
		tomb.past, tomb.epoch = max(tomb.past, of.past), max(tomb.epoch, of.epoch)
	}
	tomb.floor, tomb.version = g.top, version
	for i := range g.all {
		of := &g.all[i]
		if !of.hasRow && of.known && of.version == version && of.floor >= tomb.floor {
			continue
		}
		if of.hasRow {
			if _, err := of.ExecContext(ctx, "DELETE FROM "+of.v.table.full+" WHERE `name` = ?", of.name); err != nil {
				return fmt.Errorf("delete the row on %s: %w", of.v.name(), err)
			}
		}
		if err := of.writeEntry(ctx, &tomb, g.name); err != nil {
			return err
		}
	}
	return nil
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

// reconcile makes members agree on a name that they have differently, and returns its row. ErrUnknown if the newest of them knows that it
// was dropped.
func (a *servers) reconcile(ctx context.Context, w *view, name string) (found row, err error) {
	err = a.edit(ctx, w, 1, func(edits []edit, version uint64) error {
		g, err := a.agree(ctx, edits, name)
		if err != nil {
			return err
		}
		if g.best == nil {
			return &NameError{Name: name, Err: ErrUnknown}
		}
		if err := g.settle(ctx, version); err != nil {
			return err
		}
		found = g.merged()
		if !g.live {
			found = row{}
		}
		return nil
	})
	if err == nil && found.name == "" {
		err = &NameError{Name: name, Err: ErrUnknown}
	}
	if err != nil {
		return row{}, fmt.Errorf("have the sequence servers agree on sequence %q: %w", name, err)
	}
	return found, nil
}
