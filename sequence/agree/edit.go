package agree

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"

	"seqproxy/internal/await"
	"seqproxy/sequence/define"
	"seqproxy/sequence/link"
	"seqproxy/sequence/member"
	"seqproxy/sequence/segment"
	"seqproxy/sequence/store"
)

// edit is a change of definitions under way on one member.
type edit struct {
	*sql.Tx
	conn  *sql.Conn
	v     *member.Server
	among []*member.Server // all members, by position
	h     segment.Share
	made  bool // the row, for this
	wrote bool // an entry
}

// end undoes what is not committed. The connection is not used again, see begin.
func (e *edit) end() {
	if e.Tx != nil {
		_ = e.Rollback()
	}
	link.Discard(e.conn)
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
// FORCE. A row that somebody made beside a tombstone does not.
func (of *lockedName) given() uint64 {
	if of.hasRow && !of.h.Shared() && of.Anchor != 0 {
		return of.ID
	}
	return max(of.ID, of.Floor, of.planFloor)
}

// edit calls f with what at least need members have of a name, which is locked, and commits. On
// each member it calls first before. f may be called again after a conflict.
func (a Definitions) edit(ctx context.Context, need int, name string, first func(e *edit) error, f func(g *Agreed) error) error {
	return link.Again(ctx, a.links(), func() error { return a.editOnce(ctx, need, name, first, f) })
}

// amend is edit of all members, for a sequence that there is.
func (a Definitions) amend(ctx context.Context, name string, f func(g *Agreed) error) error {
	return a.edit(ctx, len(a.Members), name, func(*edit) error { return nil }, func(g *Agreed) error {
		if !g.live {
			return &define.NameError{Name: define.ShownName(name), Err: define.ErrUnknown}
		}
		return f(g)
	})
}

func (a Definitions) editOnce(ctx context.Context, need int, name string, first func(e *edit) error, f func(g *Agreed) error) error {
	var edits []*edit
	defer func() {
		for _, e := range edits {
			e.end()
		}
	}()
	g := &Agreed{name: name, marks: a.Members[0].Marks}
	for _, v := range a.Members {
		e, err := a.begin(ctx, v)
		if err != nil {
			if !a.Several() || errors.Is(err, store.OutcomeOldPlan) || link.IsConflict(err) || errors.Is(err, link.ErrUnfit) || ctx.Err() != nil {
				return err
			}
			g.missing = append(g.missing, fmt.Errorf("sequence server %s is not reached: %w", v.Name(), err))
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
			"SEQPROXY REMOVE SEQUENCE SERVER: %w", need, len(a.Members), len(edits), errors.Join(g.missing...))
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
func (a Definitions) begin(ctx context.Context, v *member.Server) (*edit, error) {
	h := v.Share()
	if h.Plan != a.Number {
		return nil, store.OutcomeOldPlan
	}
	conn, err := a.connect(ctx, v)
	if err != nil {
		return nil, err
	}
	e := &edit{conn: conn, v: v, among: a.Members, h: h}
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
func (a Definitions) connect(ctx context.Context, v *member.Server) (*sql.Conn, error) {
	if a.Several() {
		try, stop := context.WithTimeoutCause(ctx, v.TryTime(), await.ErrPatience)
		defer stop()
		ctx = try
	}
	conn, err := v.Conn(ctx)
	if err != nil {
		return nil, err
	}
	if a.Several() {
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
		return of, 0, &define.NameError{Name: define.ShownName(name), Err: define.ErrUnknown}
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
	registered := uint64(0)
	if !e.h.Shared() {
		if registered, err = v.Proxies.HighestVersion(ctx, e.Tx); err != nil {
			return of, 0, err
		}
	}
	v.Complete(&of.Row)
	if of.hasRow && e.h.InSteps() && !e.h.Has(of.ID) && of.ID < v.Seen.Load().Max {
		// at its end it is nobody's
		return of, 0, v.WrongResidue(ctx, e.among, of.Name, of.ID, e.h)
	}
	return of, max(next, registered+1, of.Epoch+1, v.Marks.Epoch(of.Name)+1), nil
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
		return &define.NameError{Name: define.ShownName(name), Err: define.ErrExhausted}
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
	live := *to
	live.Anchor = max(live.Anchor, 1) // else it would be a tombstone
	return of.writeEntry(ctx, &live, name)
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

// lower sets the row of a single server, which gives numbers again then.
func (of *lockedName) lower(ctx context.Context, r *store.Row) error {
	if _, err := of.ExecContext(ctx, "UPDATE "+of.v.Table.Sequence+" SET `id` = ? WHERE `name` = ?", r.ID, r.Name); err != nil {
		return fmt.Errorf("write the row: %w", err)
	}
	if err := of.v.Limits.Want(ctx, of.Tx, r.Name, r.ID); err != nil { // FORCE may raise it, too
		return err
	}
	if err := of.v.Limits.Lower(ctx, of.Tx, r.Name, r.ID); err != nil {
		return err
	}
	return of.writeEntry(ctx, &r.Entry, r.Name)
}

// links are those of the members.
func (a Definitions) links() []*link.Link {
	all := make([]*link.Link, len(a.Members))
	for i, v := range a.Members {
		all[i] = v.Link
	}
	return all
}
