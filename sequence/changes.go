package sequence

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strings"

	gomysql "github.com/go-mysql-org/go-mysql/mysql"
)

// change is the options of a sequence, and its row unless that is gone.
type change struct {
	option string // the name as the options have it
	gone   bool
	row
}

// moment is the state of all options, as of one change.
type moment struct {
	version uint64 // of the change
	stamp   uint64 // of the change, as another one may have its version after a fail-over that lost it
}

// hearing is what a server tells of changes.
type hearing struct {
	moment         // of the last one
	back    bool   // changes that were seen are lost: these are all that there are
	plan    uint64 // that the server obeys
	changed []change
}

// changes returns the version of the last change, and the options of all sequences that changed after seen, or of all.
func (v *server) changes(ctx context.Context, seen moment, all bool) (heard hearing, err error) {
	conn, err := v.conn(ctx)
	if err != nil {
		return heard, err
	}
	defer func() { _ = conn.Close() }()
	has, err := v.lookForOptions(ctx, conn)
	if err != nil || !has.versioned() {
		return heard, err
	}
	heard.moment, heard.plan, err = v.lastChange(ctx, conn)
	switch {
	case hasCode(err, gomysql.ER_NO_SUCH_TABLE, gomysql.ER_BAD_FIELD_ERROR):
		v.optionsSeen.Store(uint64(shapeNone))
		return heard, nil
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
	heard.changed, err = v.changedSince(ctx, conn, has, since)
	return heard, err
}

// lastChange reads which change was the last, and the plan that the server obeys.
func (v *server) lastChange(ctx context.Context, conn *sql.Conn) (last moment, plan uint64, err error) {
	err = conn.QueryRowContext(ctx, "SELECT `version`, `epoch`, `saved` FROM "+v.table.options+" WHERE `name` = ''").Scan(&last.version, &last.stamp, &plan)
	if err != nil && !errors.Is(err, sql.ErrNoRows) {
		return last, plan, fmt.Errorf("read the version of %s: %w", v.table.options, err)
	}
	return last, plan, nil
}

// changedSince reads the options with versions of at least since.
func (v *server) changedSince(ctx context.Context, conn *sql.Conn, has shape, since uint64) ([]change, error) {
	rows, err := conn.QueryContext(ctx, "SELECT o.`name`, s.`name`, CAST(s.`id` AS CHAR), "+selectEntry(has)+" FROM "+v.table.options+" AS o LEFT JOIN "+
		v.table.full+" AS s ON s.`name` = o.`name` WHERE o.`version` >= ? AND o.`name` <> ''", since)
	if err != nil {
		return nil, fmt.Errorf("read changes of %s: %w", v.table.options, err)
	}
	defer func() { _ = rows.Close() }()
	var all []change
	for rows.Next() {
		var c change
		var name, id sql.NullString
		if err := rows.Scan(append([]any{&c.option, &name, &id}, c.fields()...)...); err != nil {
			return nil, fmt.Errorf("read changes of %s: %w", v.table.options, err)
		}
		if c.gone = !name.Valid; !c.gone {
			c.name = name.String
			if c.id, err = v.parseID(c.name, id); err != nil {
				continue // whoever takes of it is told
			}
		}
		v.complete(&c.row)
		all = append(all, c)
	}
	return all, rows.Err()
}

// namesAtOnce is how many names are asked about in one statement.
const namesAtOnce = 500

// respelled are those of names that the server takes for a sequence which is spelled otherwise there, with that spelling.
func (v *server) respelled(ctx context.Context, names []string) (map[string]string, error) {
	var others map[string]string
	for some := range slices.Chunk(names, namesAtOnce) {
		args := make([]any, len(some))
		for i, name := range some {
			args[i] = name
		}
		there, err := v.namesOf(ctx, v.pool(), "SELECT `name` FROM "+v.table.full+" WHERE `name` IN (?"+strings.Repeat(", ?", len(some)-1)+")", args...)
		if err != nil {
			return nil, fmt.Errorf("look how sequences are spelled: %w", err)
		}
		for _, name := range some {
			if slices.Contains(there, name) {
				continue
			}
			is, err := v.namesOf(ctx, v.pool(), "SELECT `name` FROM "+v.table.full+" WHERE `name` = ?", name)
			if err != nil {
				return nil, fmt.Errorf("look how sequence %q is spelled: %w", name, err)
			}
			if len(is) != 1 || is[0] == name { // it is gone, which others find out
				continue
			}
			if others == nil {
				others = make(map[string]string)
			}
			others[name] = is[0]
		}
	}
	return others, nil
}
