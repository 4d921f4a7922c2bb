package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"sync"

	gomysql "github.com/go-mysql-org/go-mysql/mysql"

	"seqproxy/sequence/link"
)

// orderedRows remembers the rows of ORDER sequences as they were last read. A reservation asks only
// whether they have changed, which another version shows.
type orderedRows struct {
	mu sync.Mutex
	by map[string]Row // guarded by mu; by the table's spelling
}

func (o *orderedRows) of(name string) (Row, bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	r, ok := o.by[name]
	return r, ok
}

// set remembers a row that was read. A frozen one keeps its version if the freeze is undone.
func (o *orderedRows) set(r *Row) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if !r.Def.Order || r.Frozen {
		delete(o.by, r.Name)
		return
	}
	if o.by == nil {
		o.by = make(map[string]Row)
	}
	o.by[r.Name] = *r
}

// takeAtOnce is Take in one round trip, for a caller that waits for each: one text with the
// statement that takes the numbers and the queries that verify it. They are two, since a SELECT
// from a table clears the number of warnings.
func (st *Store) takeAtOnce(ctx context.Context, conn *sql.Conn, t *Taking, before Row) Attempt {
	text := t.text + "; SELECT ROW_COUNT(), @@warning_count, LAST_INSERT_ID(), @@global.read_only; " + st.Table.unchanged()
	unwatched, unwatch, err := link.CloseWhenDone(ctx, conn)
	if err != nil {
		return st.FailedWith(err)
	}
	defer unwatch()
	mayBeTaken := func(err error) Attempt {
		a := st.notTaken(t, why(ctx, err))
		a.Doubtful = t.Share.Whole(t.N)
		return a
	}
	rows, err := conn.QueryContext(unwatched, text, append(t.args, t.Name, t.Name, st.Registry.ID)...)
	switch {
	case link.HasCode(err, gomysql.ER_QUERY_INTERRUPTED):
		// by KILL QUERY, perhaps of a query behind the UPDATE
		return mayBeTaken(err)
	case err != nil:
		return st.notTaken(t, why(ctx, err))
	}
	defer func() { _ = rows.Close() }()
	var affected int64
	var warnings int
	var last uint64
	var readOnly string
	if !rows.Next() {
		return mayBeTaken(noRow(rows)) // the queries failed, but not the UPDATE
	}
	if err := rows.Scan(&affected, &warnings, &last, &readOnly); err != nil {
		return st.notTaken(t, why(ctx, err))
	}
	stored, err := st.readUnchanged(rows, before)
	if closed := rows.Close(); err == nil {
		err = closed
	}
	if affected != 1 {
		unwatch() // the connection may soon serve another caller
		a := st.notOneRow(ctx, conn, affected, t)
		a.Err = why(ctx, a.Err)
		return a
	}
	// From here on the row has moved: after any fault the numbers are not used.
	if !link.IsOff(readOnly) {
		defer link.Discard(conn) // see verify
		if err == nil || errors.Is(err, errChanged) {
			err = st.ReadOnly()
		}
	}
	if errors.Is(err, errChanged) {
		if stored, err = st.ReadRow(ctx, conn, t.Name); err != nil {
			err = fmt.Errorf("read back: %w", err)
		} else {
			st.LearnAs(t.Name, &stored)
		}
	}
	if err != nil {
		return st.unverified(err)
	}
	return st.judge(ctx, conn, t, 0, last, warnings, stored)
}

// errChanged says that a row differs in more than its id.
var errChanged = errors.New("the sequence was changed meanwhile")

// unchanged selects the id of a row, the version of its options and the plan in force, for a
// registered proxy. It finds rows by their keys, which a server plans faster than a join. There is
// no answer without the row, the version or the proxy (arguments name, name, proxy id).
func (t Table) unchanged() string {
	return "SELECT CAST(s.`id` AS CHAR), o.`version`, " + t.obeyed() + " FROM " + t.Sequence + " AS s, " + t.Options + " AS o, " + t.Proxies + " AS r " +
		"WHERE s.`name` = ? AND o.`name` = ? AND r.`id` = ?"
}

// readUnchanged reads the result of [Table.unchanged], which comes next.
func (st *Store) readUnchanged(rows *sql.Rows, before Row) (Row, error) {
	if !rows.NextResultSet() || !rows.Next() {
		if err := rows.Err(); err != nil && link.IsUnknownOutcome(err) {
			return Row{}, fmt.Errorf("read back: %w", err)
		}
		return Row{}, errChanged // the row or the options table is gone: reading it says more
	}
	var id sql.NullString
	var version, plan uint64
	if err := rows.Scan(&id, &version, &plan); err != nil {
		return Row{}, fmt.Errorf("read back: %w", err)
	}
	if version != before.Version || plan != before.Plan || version == 0 {
		return Row{}, errChanged
	}
	before.registered = true
	var err error
	if before.ID, err = st.ParseID(before.Name, id); err != nil {
		return Row{}, err
	}
	st.Complete(&before)
	return before, nil
}

// noRow returns why there is no row where there must be one.
func noRow(rows *sql.Rows) error {
	if err := rows.Err(); err != nil {
		return err
	}
	return sql.ErrNoRows
}

// why returns err, and what ended ctx if that did.
func why(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return fmt.Errorf("%w: %w", context.Cause(ctx), err)
	}
	return err
}
