package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strconv"
	"strings"

	gomysql "github.com/go-mysql-org/go-mysql/mysql"

	"seqproxy/sequence/define"
	"seqproxy/sequence/link"
	"seqproxy/sequence/segment"
)

// Find reads the row that name means. The error is ErrUnknown without a row, and OutcomeOldPlan if
// the server obeys another plan.
func (st *Store) Find(ctx context.Context, name string) (Row, error) {
	found, err := st.Look(ctx, name)
	if err == nil && found.Plan != found.Share.Plan {
		return Row{}, OutcomeOldPlan
	}
	return found, err
}

// Look is Find under any plan.
func (st *Store) Look(ctx context.Context, name string) (Row, error) {
	return st.lookBy(ctx, func(conn *sql.Conn) (Row, error) { return st.ReadRow(ctx, conn, name) })
}

// LookEither is Look for a sequence of any kind. Only the name of its row means the counter of a
// period or a worker, so that a plain sequence may be called like one.
func (st *Store) LookEither(ctx context.Context, name string) (Row, error) {
	counter := define.CounterName(name)
	text, args := st.Table.either(st.Registry.ListedID()), []any{counter, name, counter}
	hidden := define.IsHidden(counter)
	if hidden {
		text, args = st.Table.one(st.Registry.ListedID()), []any{name}
	}
	return st.lookBy(ctx, func(conn *sql.Conn) (Row, error) {
		found, err := st.readBy(ctx, conn, text, name, args...)
		var unknown *define.NameError
		switch {
		case err == nil:
			err = st.fitsKind(&found)
		case errors.As(err, &unknown) && unknown.Deleted == 0 && !hidden:
			unknown.Deleted = st.deleted(ctx, conn, counter)
		}
		return found, err
	})
}

func (st *Store) lookBy(ctx context.Context, read func(conn *sql.Conn) (Row, error)) (Row, error) {
	conn, err := st.Conn(ctx)
	if err != nil {
		return Row{}, err
	}
	defer func() { _ = conn.Close() }()
	found, err := read(conn)
	if err != nil {
		return Row{}, err
	}
	// A row made again under another spelling must not escape the mark of the old one.
	for _, other := range st.Marks.Like(found.Name) {
		if same, err := st.ReadRow(ctx, conn, other); err == nil && same.Name == found.Name {
			st.Marks.Carry(other, found.Name)
		} else if err != nil && !errors.Is(err, define.ErrUnknown) {
			return Row{}, err
		}
	}
	return found, nil
}

// deleted returns the mark of a sequence without a row. It is 0 if the sequence was dropped, which
// leaves a tombstone.
func (st *Store) deleted(ctx context.Context, conn *sql.Conn, name string) uint64 {
	mark := st.Marks.Of(name)
	if mark == 0 {
		return mark
	}
	e := NoEntry()
	err := conn.QueryRowContext(ctx, "SELECT "+EntryOf+" FROM "+st.Table.Options+" AS o WHERE o.`name` = ?", name).Scan(e.Fields()...)
	if err == nil && e.Dropped() || err != nil && !errors.Is(err, sql.ErrNoRows) {
		return 0
	}
	return mark
}

// ReadRow is Find on a connection.
func (st *Store) ReadRow(ctx context.Context, conn *sql.Conn, name string) (Row, error) {
	return st.readBy(ctx, conn, st.Table.one(st.Registry.ListedID()), name, name)
}

// readBy reads the row of a name with a statement and its arguments.
func (st *Store) readBy(ctx context.Context, conn *sql.Conn, text, name string, args ...any) (Row, error) {
	found, err := st.scanRow(conn.QueryRowContext(ctx, text, args...))
	if link.HasCode(err, gomysql.ER_CANT_AGGREGATE_2COLLATIONS) {
		if err := st.comparable(ctx, conn); err != nil {
			return Row{}, err
		}
	}
	if errors.Is(err, sql.ErrNoRows) || link.IsNoSuchText(err) {
		return Row{}, &define.NameError{Name: define.ShownName(name), Err: define.ErrUnknown, Deleted: st.deleted(ctx, conn, name)}
	}
	if err == nil {
		err = st.Plans.frozen(ctx, conn, &found)
	}
	if err == nil {
		st.learn(&found)
	}
	return found, err
}

// learn remembers the rule, the epoch and the place of a row.
func (st *Store) learn(r *Row) {
	st.Rules.Set(r.Name, r.Rule())
	st.ordered.set(r)
	st.Marks.Learn(r.Name, r.Epoch)
}

// LearnAs is learn for a row that was made again under another spelling than that of the cache.
func (st *Store) LearnAs(name string, r *Row) {
	if name != r.Name {
		renamed := *r
		renamed.Name = name
		st.learn(&renamed)
	}
}

// comparable makes sure that the names of both tables can be compared, after a statement failed to
// compare some text.
func (st *Store) comparable(ctx context.Context, conn *sql.Conn) error {
	_, err := conn.ExecContext(ctx, "SELECT 1 FROM "+st.Table.Sequence+" AS s JOIN "+st.Table.Options+" AS o ON o.`name` = s.`name` LIMIT 0")
	if !link.HasCode(err, gomysql.ER_CANT_AGGREGATE_2COLLATIONS) {
		return err
	}
	if err := st.CheckAgain(ctx, conn); err != nil {
		// the column was changed, perhaps since this connection was made
		return err
	}
	return st.Unfit(st.Table.Options, fmt.Sprintf("its column `name` compares otherwise than the one of %s: %v", st.Table.Sequence, err),
		"ALTER TABLE "+st.Table.Options+" MODIFY `name` "+st.Seen.Load().NameType+" NOT NULL")
}

// scanRow reads what [Table.rows] selects.
func (st *Store) scanRow(from interface{ Scan(...any) error }) (r Row, err error) {
	var id sql.NullString
	if err := from.Scan(append([]any{&r.Name, &id, &r.registered, &r.Plan}, r.Fields()...)...); err != nil {
		return Row{}, st.withUnread(r.Name, err)
	}
	if r.ID, err = st.ParseID(r.Name, id); err != nil {
		return Row{}, err
	}
	st.Complete(&r)
	return r, nil
}

// Complete fills in what follows from the other fields.
func (st *Store) Complete(r *Row) {
	r.Share = st.Share()
	r.FillIn(st.Seen.Load().Max) // there is a connection, so there was a check
}

// FillIn fills in what follows from the definition, where columns hold numbers up to highest.
func (r *Row) FillIn(highest uint64) {
	r.Max = r.Def.Limit(highest)
	if r.Exact = r.Def.Cache; r.Def.Order {
		r.Exact = 1
	}
}

// Common returns the rule of the row's sequence as caches have it.
func (r *Row) Common() segment.Rule { return r.Share.Common(r.Rule()) }

// ParseID reads the id of a row.
func (st *Store) ParseID(name string, id sql.NullString) (uint64, error) {
	if !id.Valid {
		return 0, st.Unfit(st.Table.Sequence, fmt.Sprintf("sequence %q: its id is NULL", name),
			"UPDATE "+st.Table.Sequence+" SET `id` = the last number given")
	}
	n, err := strconv.ParseUint(id.String, 10, 64)
	if err != nil {
		return 0, st.Unfit(st.Table.Sequence, fmt.Sprintf("sequence %q: its id is %s, which is not the last number given", name, id.String),
			"UPDATE "+st.Table.Sequence+" SET `id` = 0 or the last number given")
	}
	return n, nil
}

// Stand is where a row stands, without its options: every proxy reads it all the time.
type Stand struct {
	Name  string // as stored
	ID    uint64 // the last number given, or the highest of the column if the row is frozen
	Plan  uint64 // the plan that the server obeyed at the read
	Epoch uint64
	Cycle bool
}

// StandsOf reads where the rows of these names stand, without rows whose id is none.
func (st *Store) StandsOf(ctx context.Context, names []string) ([]Stand, error) {
	conn, err := st.Conn(ctx)
	if err != nil {
		return nil, err
	}
	defer func() { _ = conn.Close() }()
	rows, err := conn.QueryContext(ctx, st.Table.stands()+" WHERE s.`name` IN (?"+strings.Repeat(", ?", len(names)-1)+")", asArgs(names)...)
	if err != nil {
		return nil, err
	}
	defer func() { _ = rows.Close() }()
	all := make([]Stand, 0, len(names))
	for rows.Next() {
		var is Stand
		var id sql.NullString
		if err := rows.Scan(&is.Name, &id, &is.Plan, &is.Epoch, &is.Cycle); err != nil {
			return nil, err
		}
		if is.ID, err = st.ParseID(is.Name, id); err == nil {
			all = append(all, is)
		}
	}
	return all, rows.Err()
}

// List reads all rows.
func (st *Store) List(ctx context.Context) ([]Row, error) {
	conn, err := st.Conn(ctx)
	if err != nil {
		return nil, err
	}
	defer func() { _ = conn.Close() }()
	rows, err := conn.QueryContext(ctx, st.Table.rows(st.Registry.ListedID()))
	if err != nil {
		if link.HasCode(err, gomysql.ER_CANT_AGGREGATE_2COLLATIONS) {
			err = errors.Join(st.comparable(ctx, conn), err)
		}
		return nil, err
	}
	defer func() { _ = rows.Close() }()
	var all []Row
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
		if err := st.Plans.frozen(ctx, conn, &all[i]); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// fitsKind refuses a row whose kind is unclear: its options were lost, or it was renamed by hand.
func (st *Store) fitsKind(found *Row) error {
	var finding string
	switch plain := found.Def.Kind.IsPlain(); {
	case define.IsCounter(found.Name) && plain:
		finding = fmt.Sprintf("the row %q counts for a sequence with a kind of keys, and table %s does not say which", found.Name, st.Table.Options)
	case !define.IsCounter(found.Name) && !plain:
		finding = fmt.Sprintf("the row %q has no name that ends in %s, and its sequence has keys of kind %v", found.Name, define.CounterSuffix, found.Def.Kind)
	default:
		return nil
	}
	return &link.UnfitError{Server: st.At(), Table: st.Table.Sequence, Finding: finding, Remedy: "restore both tables from the same backup", OfSequence: true}
}

// MergeRows is the newer of two definitions, with the higher id and the lower maximum.
func MergeRows(x, y *Row) *Row {
	if y.Version > x.Version {
		x, y = y, x
	}
	merged := *x
	if y.Position() > merged.Position() {
		merged.ID, merged.Frozen = y.Position(), false
	}
	merged.Max = min(merged.Max, y.Max)
	return &merged
}

// MergeLists lists each row once.
func MergeLists(lists [][]Row) (all []Row) {
	byName := make(map[string]int)
	for _, list := range lists {
		for i := range list {
			r := &list[i]
			if at, known := byName[r.Name]; known {
				all[at] = *MergeRows(&all[at], r)
				continue
			}
			byName[r.Name] = len(all)
			all = append(all, *r)
		}
	}
	return all
}
