package sequence

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"sync"

	gomysql "github.com/go-mysql-org/go-mysql/mysql"

	"seqproxy/sequence/link"
)

// orderedRows remembers what the rows of ORDER sequences were when they were last read, so that a
// reservation has to ask only whether they still are: every change of the options has another
// version.
type orderedRows struct {
	mu sync.Mutex
	by map[string]row // guarded by mu; by the table's spelling
}

func (o *orderedRows) of(name string) (row, bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	r, ok := o.by[name]
	return r, ok
}

// set takes note of a row that was read. One that is frozen goes on with the version that it has,
// if what it is frozen for is undone.
func (o *orderedRows) set(r *row) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if !r.def.Order || r.frozen {
		delete(o.by, r.name)
		return
	}
	if o.by == nil {
		o.by = make(map[string]row)
	}
	o.by[r.name] = *r
}

// takeAtOnce is take in one round trip, for a caller who waits for each: the statement that takes
// the numbers, and behind it in one text the questions that make sure of it. That they are two is
// because a SELECT from a table clears the number of warnings.
func (st *store) takeAtOnce(ctx context.Context, conn *sql.Conn, t *take, known row) attempt {
	text := t.text + "; SELECT ROW_COUNT(), @@warning_count, LAST_INSERT_ID(), @@global.read_only; " + st.table.unchanged()
	unwatched, unwatch, err := link.CloseWhenDone(ctx, conn)
	if err != nil {
		return st.failedWith(err)
	}
	defer unwatch()
	mayBeTaken := func(err error) attempt {
		a := st.notTaken(t, why(ctx, err))
		a.lost, a.why = t.share.Whole(t.n), UnusedUnknownCommit
		return a
	}
	rows, err := conn.QueryContext(unwatched, text, append(t.args, t.name, t.name, st.registry.id)...)
	switch {
	case link.HasCode(err, gomysql.ER_QUERY_INTERRUPTED):
		// by KILL QUERY: perhaps of a question, behind the UPDATE
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
		return mayBeTaken(noRow(rows)) // the questions failed, but not the UPDATE
	}
	if err := rows.Scan(&affected, &warnings, &last, &readOnly); err != nil {
		return st.notTaken(t, why(ctx, err))
	}
	stored, err := st.readUnchanged(rows, known)
	if closed := rows.Close(); err == nil {
		err = closed
	}
	if affected != 1 {
		unwatch() // the connection may be another's soon
		a := st.notOneRow(ctx, conn, affected, t)
		a.err = why(ctx, a.err)
		return a
	}
	// From here on the row has moved: whatever goes wrong, the range is not used.
	if err == nil && !link.IsOff(readOnly) {
		err = st.ReadOnly()
	}
	if errors.Is(err, errChanged) {
		if stored, err = st.readRow(ctx, conn, t.name); err != nil {
			err = fmt.Errorf("read back: %w", err)
		} else {
			st.learnAs(t.name, &stored)
		}
	}
	if err != nil {
		return st.unverified(err)
	}
	return st.judge(ctx, conn, t, 0, last, warnings, stored)
}

// errChanged: a row is not as it was, but for its id.
var errChanged = errors.New("the sequence was changed meanwhile")

// unchanged asks for the id of a row, the version of its options and the plan in force, of a proxy
// that is registered: rows found by their keys, where a join would have the server think about it.
// Without the first, second or last there is no answer. Its arguments are the name, twice, and the
// proxy's id.
func (t table) unchanged() string {
	return "SELECT CAST(s.`id` AS CHAR), o.`version`, " + t.obeyed() + " FROM " + t.full + " AS s, " + t.options + " AS o, " + t.proxies + " AS r " +
		"WHERE s.`name` = ? AND o.`name` = ? AND r.`id` = ?"
}

// readUnchanged reads the next result, which is that of table.unchanged.
func (st *store) readUnchanged(rows *sql.Rows, known row) (row, error) {
	if !rows.NextResultSet() || !rows.Next() {
		if err := rows.Err(); err != nil && link.IsUnknownOutcome(err) {
			return row{}, fmt.Errorf("read back: %w", err)
		}
		return row{}, errChanged // the row is gone, or the table of options: to read it says more
	}
	var id sql.NullString
	var version, plan uint64
	if err := rows.Scan(&id, &version, &plan); err != nil {
		return row{}, fmt.Errorf("read back: %w", err)
	}
	if version != known.version || plan != known.plan || version == 0 {
		return row{}, errChanged
	}
	known.registered = true
	var err error
	if known.id, err = st.parseID(known.name, id); err != nil {
		return row{}, err
	}
	st.complete(&known)
	return known, nil
}

// noRow is why there is no row where there must be one.
func noRow(rows *sql.Rows) error {
	if err := rows.Err(); err != nil {
		return err
	}
	return sql.ErrNoRows
}

// why is err, and what ended ctx if that did.
func why(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return fmt.Errorf("%w: %w", context.Cause(ctx), err)
	}
	return err
}
