package store

import (
	"context"
	"fmt"

	gomysql "github.com/go-mysql-org/go-mysql/mysql"

	"seqproxy/internal/planted"
	"seqproxy/sequence/link"
)

// CheckLoneNode refuses a server without other nodes that was one of a group and was never taken
// over there since it became the primary: its counters may stand below what the holder gave, and as
// it is alone now nobody would raise them above the windows. A former holder does not know that
// another was taken over while it was away, so that one is not seen.
func (s *Schema) CheckLoneNode(ctx context.Context, c link.Raw) error {
	if s.Grouped() || planted.Fault(planted.CeilingReplica) {
		return nil
	}
	rows, err := c.Query(ctx, "SELECT `holder`, `complete` FROM "+s.Table.Holder+" ORDER BY `term` DESC, `holder` DESC")
	switch {
	case link.HasCode(err, gomysql.ER_NO_SUCH_TABLE, gomysql.ER_BAD_FIELD_ERROR, gomysql.ER_TABLEACCESS_DENIED_ERROR, gomysql.ER_COLUMNACCESS_DENIED_ERROR):
		return nil // in a group it would need to read that, and its own one
	case isBroken(err):
		return s.Unfit(s.Table.Holder, fmt.Sprintf("it cannot be read: %v", err),
			"restore it from a backup; or, if the server was never one of a group, or all rows were raised above what is in use (docs: Backup and restore), DROP TABLE "+s.Table.Holder)
	case err != nil:
		return fmt.Errorf("read table %s: %w", s.Table.Holder, err)
	case len(rows) == 0:
		return nil
	}
	holder, complete, first := rows[0][0], rows[0][1] == "1", len(rows) == 1
	identity, err := c.Holder(ctx)
	if err != nil {
		return err
	}
	switch {
	case holder == identity && (complete || first):
		// before the first takeover it served alone, too
		return nil
	case holder == identity:
		holder = "another"
	}
	return s.Unfit(s.Table.Holder, fmt.Sprintf("it belongs to a group, whose numbers %q gave last; it is %q, which may lack them and would give them again", holder, identity),
		"list the group's servers under nodes until the log says that its sequences are held here; or raise all rows above what is in use (docs: Backup and restore), and then DELETE FROM "+s.Table.Holder)
}

// isBroken reports whether a table is there, but not what belongs to it in the storage engine.
func isBroken(err error) bool {
	const noSuchTableInEngine = 1932
	return link.HasCode(err, noSuchTableInEngine, gomysql.ER_TABLESPACE_MISSING, gomysql.ER_TABLESPACE_DISCARDED)
}
