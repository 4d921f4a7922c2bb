package sequence

import (
	"context"
	"database/sql"
	"fmt"
	"slices"
	"strings"
)

// changedOptions is the options of a sequence, and its row unless that is gone.
type changedOptions struct {
	option string // the name as the options have it
	gone   bool
	row
}

// moment is the state of all options, as of one change.
type moment struct {
	version uint64 // of the change
	// of the change, as another one may have its version after a fail-over that lost it
	stamp uint64
}

// hearing is what a server tells of changes.
type hearing struct {
	moment         // of the last one
	back    bool   // changes that were seen are lost: these are all that there are
	plan    uint64 // that the server obeys
	changed []changedOptions

	// The names of caches that are the server's no more, as it spells that sequence otherwise by
	// now: it was dropped and made again. The values are the new names.
	respelled map[string]string
}

// changes returns the version of the last change, and the options of all sequences that changed
// after seen, or of all.
func (st *store) changes(ctx context.Context, seen moment, all bool) (heard hearing, err error) {
	conn, err := st.Conn(ctx)
	if err != nil {
		return heard, err
	}
	defer func() { _ = conn.Close() }()
	heard.moment, heard.plan, err = st.options.lastChange(ctx, conn)
	switch {
	case err != nil:
		return heard, err
	case !all && heard.moment == seen:
		return heard, nil
	}
	since := seen.version
	heard.back = !all && heard.version <= seen.version // or the table was made again
	if all || heard.back {
		since = 0
	}
	heard.changed, err = st.changedSince(ctx, conn, since)
	return heard, err
}

// lastChange reads which change was the last, and the plan that the server obeys.
func (t optionTable) lastChange(ctx context.Context, conn *sql.Conn) (last moment, plan uint64, err error) {
	err = conn.QueryRowContext(ctx, "SELECT IFNULL(MAX(c.`version`), 0), IFNULL(MAX(c.`stamp`), 0), "+t.table.obeyed()+" FROM "+t.table.version+
		" AS c WHERE c.`one` = 1").Scan(&last.version, &last.stamp, &plan)
	if err != nil {
		return last, plan, fmt.Errorf("read table %s: %w", t.table.version, err)
	}
	return last, plan, nil
}

// changedSince reads the options with versions of at least since.
func (st *store) changedSince(ctx context.Context, conn *sql.Conn, since uint64) ([]changedOptions, error) {
	rows, err := conn.QueryContext(ctx, "SELECT o.`name`, s.`name`, CAST(s.`id` AS CHAR), "+entryOf+" FROM "+st.table.options+" AS o LEFT JOIN "+
		st.table.full+" AS s ON s.`name` = o.`name` WHERE o.`version` >= ?", since)
	if err != nil {
		return nil, fmt.Errorf("read changes of %s: %w", st.table.options, err)
	}
	defer func() { _ = rows.Close() }()
	var all []changedOptions
	for rows.Next() {
		var c changedOptions
		var name, id sql.NullString
		if err := rows.Scan(append([]any{&c.option, &name, &id}, c.fields()...)...); err != nil {
			return nil, fmt.Errorf("read changes of %s: %w", st.table.options, err)
		}
		if c.gone = !name.Valid; !c.gone {
			c.name = name.String
			if c.id, err = st.parseID(c.name, id); err != nil {
				continue // whoever takes of it is told
			}
		}
		st.complete(&c.row)
		all = append(all, c)
	}
	return all, rows.Err()
}

// How many names are asked about in one statement: each round trip counts, as proxies that do not
// hear of changes in time are waited for.
const (
	namesAtOnce     = 10_000
	spellingsAtOnce = 200 // which have no row under their own name
)

// respelled are those of names that the server takes for a sequence which is spelled otherwise
// there, with that spelling.
func (st *store) respelled(ctx context.Context, names []string) (map[string]string, error) {
	others := make(map[string]string)
	for some := range slices.Chunk(names, namesAtOnce) {
		there, err := selectNames(ctx, st.Pool(), "SELECT `name` FROM "+st.table.full+" WHERE `name` IN (?"+strings.Repeat(", ?", len(some)-1)+")", asArgs(some)...)
		if err != nil {
			return nil, fmt.Errorf("look how sequences are spelled: %w", err)
		}
		for lost := range slices.Chunk(without(some, there), spellingsAtOnce) {
			if err := st.spellingsOf(ctx, lost, others); err != nil {
				return nil, fmt.Errorf("look how sequences are spelled: %w", err)
			}
		}
	}
	return others, nil
}

// spellingsOf adds how the server spells names that have rows, to others.
func (st *store) spellingsOf(ctx context.Context, names []string, others map[string]string) error {
	parts := make([]string, len(names))
	for i := range names {
		parts[i] = fmt.Sprintf("SELECT %d, `name` FROM %s WHERE `name` = ?", i, st.table.full)
	}
	rows, err := st.Pool().QueryContext(ctx, strings.Join(parts, " UNION ALL "), asArgs(names)...)
	if err != nil {
		return err
	}
	defer func() { _ = rows.Close() }()
	for rows.Next() {
		var i int
		var is string
		if err := rows.Scan(&i, &is); err != nil {
			return err
		}
		if is != names[i] { // else it was made a moment ago
			others[names[i]] = is
		}
	}
	return rows.Err()
}

// without returns those of names that are not in others.
func without(names, others []string) []string {
	known := make(map[string]bool, len(others))
	for _, name := range others {
		known[name] = true
	}
	return slices.DeleteFunc(slices.Clone(names), func(name string) bool { return known[name] })
}

func asArgs(names []string) []any {
	args := make([]any, len(names))
	for i, name := range names {
		args[i] = name
	}
	return args
}
