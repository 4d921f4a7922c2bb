package store

import (
	"context"
	"fmt"

	gomysql "github.com/go-mysql-org/go-mysql/mysql"

	"seqproxy/internal/planted"
	"seqproxy/sequence/link"
)

// CheckLoneNode refuses a server without other nodes that has holders of a group in its tables. Its
// counters may stand below what another one gave, and nothing would raise them. Or it is the
// holder, or was when it was last seen: numbers that are taken of it alone go above all that the
// next holder knows of.
func (s *Schema) CheckLoneNode(ctx context.Context, c link.Raw) error {
	if s.Grouped() || planted.Fault(planted.CeilingReplica) {
		return nil
	}
	rows, err := c.Query(ctx, "SELECT `holder`, `complete` FROM "+s.Table.Holder+" ORDER BY `term` DESC, `holder` DESC")
	switch {
	case link.HasCode(err, gomysql.ER_NO_SUCH_TABLE, gomysql.ER_BAD_FIELD_ERROR, gomysql.ER_TABLEACCESS_DENIED_ERROR, gomysql.ER_COLUMNACCESS_DENIED_ERROR):
		return nil // a node of a group must read such rows, and its own
	case isBroken(err):
		return s.Unfit(s.Table.Holder, fmt.Sprintf("it cannot be read: %v", err),
			"restore it from a backup; or, if the server was never one of a group, or all rows were raised above what is in use (docs: Backup and restore), DROP TABLE "+s.Table.Holder+", and "+schemaWayOut)
	case err != nil:
		return fmt.Errorf("read table %s: %w", s.Table.Holder, err)
	case len(rows) == 0:
		return nil
	}
	holder, complete := rows[0][0], rows[0][1] == "1"
	identity, err := c.Holder(ctx)
	switch {
	case err != nil:
		return err
	case holder == identity && !complete && len(rows) == 1:
		return nil // it served alone before, and no group gave any
	case holder == identity && complete:
		return s.Unfit(s.Table.Holder, fmt.Sprintf("%q holds the sequences of a group: numbers that are taken of it alone come again after a fail-over", identity),
			"list the group's servers under nodes; or, if it is left alone for good, DELETE FROM "+s.Table.Holder)
	case holder == identity:
		holder = "another"
	}
	return s.Unfit(s.Table.Holder, fmt.Sprintf("it belongs to a group, whose numbers %q gave last; it is %q, which may lack them and would give them again", holder, identity),
		"list the group's servers under nodes until the log says that its sequences are held here; or raise all rows above what is in use (docs: Backup and restore), and then DELETE FROM "+s.Table.Holder)
}

// isBroken reports whether a table exists whose data in the storage engine does not.
func isBroken(err error) bool {
	const noSuchTableInEngine = 1932
	return link.HasCode(err, noSuchTableInEngine, gomysql.ER_TABLESPACE_MISSING, gomysql.ER_TABLESPACE_DISCARDED)
}
