package agree

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"seqproxy/sequence/define"
)

// refuseSecond refuses to let a column own the sequence if its table has a column that owns another
// one: the two would give the same keys, or one of them none. No schema is every schema, and so
// overlaps each. A sequence whose row somebody deleted counts, too, as proxies may have numbers of
// it. Changes of definitions are locked, so no other column becomes the owner meanwhile.
func (g *Agreed) refuseSecond(ctx context.Context, c *define.Column) error {
	if c == nil || c.IsZero() {
		return nil
	}
	for i := range g.all {
		of := &g.all[i]
		var name string
		var is define.Column
		err := of.QueryRowContext(ctx, "SELECT `name`, `owner_schema`, `owner_table`, `owner_column` FROM "+of.v.Table.Options+
			" WHERE `name` <> ? AND LOWER(`owner_table`) = LOWER(?) AND (? = '' OR `owner_schema` = '' OR LOWER(`owner_schema`) = LOWER(?)) LIMIT 1",
			g.name, c.Table, c.Schema, c.Schema).Scan(&name, &is.Schema, &is.Table, &is.Column)
		switch {
		case errors.Is(err, sql.ErrNoRows):
			continue
		case err != nil:
			return fmt.Errorf("look for another owner on %s: %w", of.v.Name(), err)
		}
		name = define.ShownName(name)
		return define.BadOption("column %s owns sequence %q, and one column of a table can own one: say ALTER SEQUENCE %s OWNED BY NONE before, and let this one begin above the id of its row (START WITH n); "+
			"if its row was deleted, CREATE it again with OWNED BY NONE", is, name, define.Quote(name))
	}
	return nil
}
