package store

import (
	"context"
	"database/sql"
	"fmt"
	"slices"
	"strings"
)

// Changed is a sequence whose options changed: the options, and its row unless that is gone.
type Changed struct {
	Option string // the name as the options table spells it
	Gone   bool
	Unread bool // its kind or its id cannot be read: who takes from it gets the error
	Row
}

// Moment is the state of all options after one change.
type Moment struct {
	Version uint64 // of the change
	// tells this change from another of the same version, as after a fail-over that lost it
	stamp uint64
}

// Changes is the answer of a server that was asked for changes.
type Changes struct {
	Moment         // the last change
	Back    bool   // changes that were seen are lost; Options are all that there are
	Plan    uint64 // the plan that the server obeys
	Changed []Changed

	// Names of caches that the server spells otherwise now, and their new spelling. Such a sequence
	// was dropped and made again.
	Respelled map[string]string
}

// ChangesSince returns the last change and the options of all sequences that changed after seen, or
// of all sequences.
func (st *Store) ChangesSince(ctx context.Context, seen Moment, all bool) (changes Changes, err error) {
	conn, err := st.Conn(ctx)
	if err != nil {
		return changes, err
	}
	defer func() { _ = conn.Close() }()
	changes.Moment, changes.Plan, err = st.Options.LastChange(ctx, conn)
	switch {
	case err != nil:
		return changes, err
	case !all && changes.Moment == seen:
		return changes, nil
	}
	since := seen.Version
	changes.Back = !all && changes.Version <= seen.Version // or the table was made again
	if all || changes.Back {
		since = 0
	}
	changes.Changed, err = st.changedSince(ctx, conn, since)
	return changes, err
}

// LastChange reads the last change and the plan that the server obeys.
func (t OptionTable) LastChange(ctx context.Context, conn *sql.Conn) (last Moment, plan uint64, err error) {
	err = conn.QueryRowContext(ctx, "SELECT IFNULL(MAX(c.`version`), 0), IFNULL(MAX(c.`stamp`), 0), "+t.Table.obeyed()+" FROM "+t.Table.Version+
		" AS c WHERE c.`one` = 1").Scan(&last.Version, &last.stamp, &plan)
	if err != nil {
		return last, plan, fmt.Errorf("read table %s: %w", t.Table.Version, err)
	}
	return last, plan, nil
}

// changedSince reads the options whose version is since or higher.
func (st *Store) changedSince(ctx context.Context, conn *sql.Conn, since uint64) ([]Changed, error) {
	rows, err := conn.QueryContext(ctx, "SELECT o.`name`, s.`name`, CAST(s.`id` AS CHAR), "+EntryOf+" FROM "+st.Table.Options+" AS o LEFT JOIN "+
		st.Table.Sequence+" AS s ON s.`name` = o.`name` WHERE o.`version` >= ?", since)
	if err != nil {
		return nil, fmt.Errorf("read changes of %s: %w", st.Table.Options, err)
	}
	defer func() { _ = rows.Close() }()
	var all []Changed
	for rows.Next() {
		var c Changed
		var name, id sql.NullString
		err := rows.Scan(append([]any{&c.Option, &name, &id}, c.Fields()...)...)
		if c.Unread = isUnread(err); err != nil && !c.Unread {
			return nil, fmt.Errorf("read changes of %s: %w", st.Table.Options, err)
		}
		if c.Gone = !name.Valid; !c.Gone {
			c.Name = name.String
			if c.ID, err = st.ParseID(c.Name, id); err != nil {
				c.Unread = true
			}
		}
		st.Complete(&c.Row)
		all = append(all, c)
	}
	return all, rows.Err()
}

// Names in one statement. Proxies that see changes late are waited for, so round trips count.
const (
	namesAtOnce     = 10_000
	spellingsAtOnce = 200 // names without a row under their own spelling
)

// Respelled returns those of names that the server takes for a sequence of another spelling, with
// that spelling.
func (st *Store) Respelled(ctx context.Context, names []string) (map[string]string, error) {
	others := make(map[string]string)
	for some := range slices.Chunk(names, namesAtOnce) {
		there, err := SelectNames(ctx, st.Pool(), "SELECT `name` FROM "+st.Table.Sequence+" WHERE `name` IN (?"+strings.Repeat(", ?", len(some)-1)+")", asArgs(some)...)
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

// spellingsOf adds to others the names whose row is spelled otherwise.
func (st *Store) spellingsOf(ctx context.Context, names []string, others map[string]string) error {
	parts := make([]string, len(names))
	for i := range names {
		parts[i] = fmt.Sprintf("SELECT %d, `name` FROM %s WHERE `name` = ?", i, st.Table.Sequence)
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
		if is != names[i] { // else the row was made a moment ago
			others[names[i]] = is
		}
	}
	return rows.Err()
}

// without returns the names that are not in others.
func without(names, others []string) []string {
	found := make(map[string]bool, len(others))
	for _, name := range others {
		found[name] = true
	}
	return slices.DeleteFunc(slices.Clone(names), func(name string) bool { return found[name] })
}
