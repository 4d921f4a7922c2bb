package sequence

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	gomysql "github.com/go-mysql-org/go-mysql/mysql"
)

// change is the options of a sequence, and its row unless that is gone.
type change struct {
	option string // the name as the options have it
	gone   bool
	row
}

// hearing is what a server tells of changes.
type hearing struct {
	version uint64 // of the last one
	plan    uint64 // that the server obeys
	changed []change
}

// changes returns the version of the last change, and the options of all sequences that changed after seen, or of all.
func (v *server) changes(ctx context.Context, seen uint64, all bool) (heard hearing, err error) {
	conn, err := v.conn(ctx)
	if err != nil {
		return heard, err
	}
	defer func() { _ = conn.Close() }()
	has, err := v.lookForOptions(ctx, conn)
	if err != nil || !has.versioned() {
		return heard, err
	}
	err = conn.QueryRowContext(ctx, "SELECT `version`, `saved` FROM "+v.table.options+" WHERE `name` = ''").Scan(&heard.version, &heard.plan)
	switch {
	case hasCode(err, gomysql.ER_NO_SUCH_TABLE, gomysql.ER_BAD_FIELD_ERROR):
		v.optionsSeen.Store(uint64(shapeNone))
		return heard, nil
	case errors.Is(err, sql.ErrNoRows):
	case err != nil:
		return heard, fmt.Errorf("read the version of %s: %w", v.table.options, err)
	}
	switch {
	case all, heard.version < seen: // or the table was made again
		seen = 0
	case heard.version == seen:
		return heard, nil
	}
	heard.changed, err = v.changedSince(ctx, conn, has, seen)
	return heard, err
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
