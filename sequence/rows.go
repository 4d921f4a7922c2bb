package sequence

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"seqproxy/sequence/define"

	gomysql "github.com/go-mysql-org/go-mysql/mysql"

	"seqproxy/sequence/link"
	"seqproxy/sequence/segment"
)

// find reads the row that name means. No such row is ErrUnknown, and a server that obeys another
// plan outcomeOldPlan.
func (st *store) find(ctx context.Context, name string) (row, error) {
	found, err := st.look(ctx, name)
	if err == nil && found.plan != found.share.Plan {
		return row{}, outcomeOldPlan
	}
	return found, err
}

// look is find whatever plan the server obeys.
func (st *store) look(ctx context.Context, name string) (row, error) {
	return st.lookBy(ctx, func(conn *sql.Conn) (row, error) { return st.readRow(ctx, conn, name) })
}

// lookEither is look for a sequence of any kind.
func (st *store) lookEither(ctx context.Context, name string) (row, error) {
	return st.lookBy(ctx, func(conn *sql.Conn) (row, error) {
		found, err := st.readBy(ctx, conn, st.table.either(st.registry.entry()), name, define.CounterName(name), name, define.CounterName(name))
		var unknown *NameError
		switch {
		case err == nil:
			err = st.fitsKind(&found)
		case errors.As(err, &unknown) && unknown.Deleted == 0:
			unknown.Deleted = st.deleted(ctx, conn, define.CounterName(name))
		}
		return found, err
	})
}

func (st *store) lookBy(ctx context.Context, read func(conn *sql.Conn) (row, error)) (row, error) {
	conn, err := st.Conn(ctx)
	if err != nil {
		return row{}, err
	}
	defer func() { _ = conn.Close() }()
	found, err := read(conn)
	if err != nil {
		return row{}, err
	}
	// A row made again under another spelling must not escape the mark of the old one.
	for _, other := range st.marks.Like(found.name) {
		if same, err := st.readRow(ctx, conn, other); err == nil && same.name == found.name {
			st.marks.Carry(other, found.name)
		} else if err != nil && !errors.Is(err, ErrUnknown) {
			return row{}, err
		}
	}
	return found, nil
}

// deleted returns the mark of a sequence that has no row any more, 0 if it was dropped: then there
// is a tombstone.
func (st *store) deleted(ctx context.Context, conn *sql.Conn, name string) uint64 {
	mark := st.marks.Of(name)
	if mark == 0 {
		return mark
	}
	var floor uint64
	err := conn.QueryRowContext(ctx, "SELECT `floor` FROM "+st.table.options+" WHERE `name` = ?", name).Scan(&floor)
	if err == nil && floor > 0 || err != nil && !errors.Is(err, sql.ErrNoRows) {
		return 0
	}
	return mark
}

// readRow is find on a connection.
func (st *store) readRow(ctx context.Context, conn *sql.Conn, name string) (row, error) {
	return st.readBy(ctx, conn, st.table.one(st.registry.entry()), name, name)
}

// readBy reads the row of a name with a statement and its arguments.
func (st *store) readBy(ctx context.Context, conn *sql.Conn, text, name string, args ...any) (row, error) {
	found, err := st.scanRow(conn.QueryRowContext(ctx, text, args...))
	if link.HasCode(err, gomysql.ER_CANT_AGGREGATE_2COLLATIONS) {
		if err := st.comparable(ctx, conn); err != nil {
			return row{}, err
		}
	}
	if errors.Is(err, sql.ErrNoRows) || link.IsNoSuchText(err) {
		return row{}, &NameError{Name: define.ShownName(name), Err: ErrUnknown, Deleted: st.deleted(ctx, conn, name)}
	}
	if err == nil {
		err = st.plans.frozen(ctx, conn, &found)
	}
	if err == nil {
		st.learn(&found)
	}
	return found, err
}

// learn takes over what a row says about how to reserve, and which epoch it is in.
func (st *store) learn(r *row) {
	st.rules.set(r.name, r.rule())
	st.ordered.set(r)
	st.marks.Learn(r.name, r.epoch)
}

// learnAs is learn for a row that is made again under another spelling than the one that numbers
// are reserved by.
func (st *store) learnAs(name string, r *row) {
	if name != r.name {
		renamed := *r
		renamed.name = name
		st.learn(&renamed)
	}
}

// comparable makes sure that the names of both tables can be compared, after a statement said of
// some text that it cannot.
func (st *store) comparable(ctx context.Context, conn *sql.Conn) error {
	_, err := conn.ExecContext(ctx, "SELECT 1 FROM "+st.table.full+" AS s JOIN "+st.table.options+" AS o ON o.`name` = s.`name` LIMIT 0")
	if !link.HasCode(err, gomysql.ER_CANT_AGGREGATE_2COLLATIONS) {
		return err
	}
	if err := st.CheckAgain(ctx, conn); err != nil {
		// the column has been changed, perhaps since this connection was made
		return err
	}
	return st.Unfit(st.table.options, fmt.Sprintf("its column `name` compares otherwise than the one of %s: %v", st.table.full, err),
		"ALTER TABLE "+st.table.options+" MODIFY `name` "+st.seen.Load().nameType+" NOT NULL")
}

// scanRow reads what table.rows selects.
func (st *store) scanRow(from interface{ Scan(...any) error }) (r row, err error) {
	var id sql.NullString
	if err := from.Scan(append([]any{&r.name, &id, &r.registered, &r.plan}, r.fields()...)...); err != nil {
		return row{}, err
	}
	if r.id, err = st.parseID(r.name, id); err != nil {
		return row{}, err
	}
	st.complete(&r)
	return r, nil
}

// complete fills in what follows from the other fields.
func (st *store) complete(r *row) {
	r.share = st.share()
	r.defined(st.seen.Load().max) // there is a connection, so there was a check
}

// defined fills in what follows from the definition where columns hold numbers up to highest.
func (r *row) defined(highest uint64) {
	r.max = r.def.Limit(highest)
	if r.exact = r.def.Cache; r.def.Order {
		r.exact = 1
	}
}

// common is the rule that the row's sequence goes by, as caches know it.
func (r *row) common() segment.Rule { return r.share.Common(r.rule()) }

// parseID reads the id of a row.
func (st *store) parseID(name string, id sql.NullString) (uint64, error) {
	if !id.Valid {
		return 0, st.Unfit(st.table.full, fmt.Sprintf("sequence %q: its id is NULL", name),
			"UPDATE "+st.table.full+" SET `id` = the last number given")
	}
	n, err := strconv.ParseUint(id.String, 10, 64)
	if err != nil {
		return 0, st.Unfit(st.table.full, fmt.Sprintf("sequence %q: its id is %s, which is not the last number given", name, id.String),
			"UPDATE "+st.table.full+" SET `id` = 0 or the last number given")
	}
	return n, nil
}

// rowsOf reads the rows of so many names, without those whose id is none. It does not say whether
// they are frozen.
func (st *store) rowsOf(ctx context.Context, names []string) ([]row, error) {
	conn, err := st.Conn(ctx)
	if err != nil {
		return nil, err
	}
	defer func() { _ = conn.Close() }()
	rows, err := conn.QueryContext(ctx, st.table.rows("")+" WHERE s.`name` IN (?"+strings.Repeat(", ?", len(names)-1)+")", asArgs(names)...)
	if err != nil {
		return nil, err
	}
	defer func() { _ = rows.Close() }()
	var all []row
	for rows.Next() {
		switch r, err := st.scanRow(rows); {
		case err == nil:
			all = append(all, r)
		case !errors.Is(err, ErrUnfit):
			return nil, err
		}
	}
	return all, rows.Err()
}

// list reads all rows.
func (st *store) list(ctx context.Context) ([]row, error) {
	conn, err := st.Conn(ctx)
	if err != nil {
		return nil, err
	}
	defer func() { _ = conn.Close() }()
	rows, err := conn.QueryContext(ctx, st.table.rows(st.registry.entry()))
	if err != nil {
		if link.HasCode(err, gomysql.ER_CANT_AGGREGATE_2COLLATIONS) {
			err = errors.Join(st.comparable(ctx, conn), err)
		}
		return nil, err
	}
	defer func() { _ = rows.Close() }()
	var all []row
	for rows.Next() {
		r, err := st.scanRow(rows)
		if err != nil {
			return nil, err
		}
		all = append(all, r)
	}
	if err := rows.Err(); err != nil {
		return nil, err
	}
	for i := range all {
		if err := st.plans.frozen(ctx, conn, &all[i]); err != nil {
			return nil, err
		}
	}
	return all, nil
}
