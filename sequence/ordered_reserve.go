package sequence

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"sync"
)

// orderedRows remembers what the rows of ORDER sequences were when they were last read, so that a reservation has to ask only
// whether they still are: every change of the options has another version.
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

// set takes note of a row that was read.
func (o *orderedRows) set(r *row) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if !r.def.Order {
		delete(o.by, r.name)
		return
	}
	if o.by == nil {
		o.by = make(map[string]row)
	}
	o.by[r.name] = *r
}

// reserveAtOnce is reserveOnce in one round trip, for a caller who waits for each: the statement that takes the numbers, and behind
// it in one text the questions that make sure of it.
func (v *server) reserveAtOnce(ctx context.Context, conn *sql.Conn, name string, n uint64, t take, used rule, h share, known row) (g grant, err error) {
	text := t.text + "; SELECT ROW_COUNT(), @@warning_count, LAST_INSERT_ID(), @@global.read_only; " + v.table.unchanged()
	rows, err := conn.QueryContext(ctx, text, append(t.args, name)...)
	if err != nil {
		return g, v.failedToTake(err, h.whole(n))
	}
	defer func() { _ = rows.Close() }()
	var affected int64
	var warnings int
	var last uint64
	var readOnly string
	if !rows.Next() {
		return g, v.failedToTake(noRow(rows), h.whole(n))
	}
	if err := rows.Scan(&affected, &warnings, &last, &readOnly); err != nil {
		return g, v.failedToTake(err, h.whole(n))
	}
	stored, err := v.readUnchanged(rows, known)
	if closed := rows.Close(); err == nil {
		err = closed
	}
	if affected != 1 {
		return g, v.notOneRow(ctx, conn, name, affected, used, h, t.bound, t.upTo)
	}
	// From here on the row has moved: whatever goes wrong, the range is not used.
	if err == nil && !isOff(readOnly) {
		err = v.readOnly()
	}
	if errors.Is(err, errChanged) {
		if stored, err = v.readRow(ctx, conn, name); err != nil {
			err = fmt.Errorf("read back: %w", err)
		} else {
			v.learnAs(name, &stored)
		}
	}
	if err == nil {
		last, stored, err = v.judge(ctx, conn, name, 0, last, t.width, warnings, used, h, stored)
	}
	return v.granted(ctx, conn, name, n, t, used, h, last, stored, err)
}

// errChanged: a row is not as it was, but for its id.
var errChanged = errors.New("the sequence was changed meanwhile")

// unchanged asks for the id of a row, the version of its options and the plan in force. Its argument is the name.
func (t table) unchanged() string {
	return "SELECT CAST(s.`id` AS CHAR), IFNULL(o.`version`, 0), IFNULL((SELECT p.`saved` FROM " + t.options + " AS p WHERE p.`name` = ''), 0) FROM " +
		t.full + " AS s LEFT JOIN " + t.options + " AS o ON o.`name` = s.`name` WHERE s.`name` = ?"
}

// readUnchanged reads the next result, which is that of table.unchanged.
func (v *server) readUnchanged(rows *sql.Rows, known row) (row, error) {
	if !rows.NextResultSet() || !rows.Next() {
		if err := rows.Err(); err != nil && isUnknownOutcome(err) {
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
	var err error
	if known.id, err = v.parseID(known.name, id); err != nil {
		return row{}, err
	}
	v.complete(&known)
	return known, nil
}

// noRow is why there is no row where there must be one.
func noRow(rows *sql.Rows) error {
	if err := rows.Err(); err != nil {
		return err
	}
	return sql.ErrNoRows
}
