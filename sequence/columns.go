package sequence

import (
	"context"
	"fmt"
	"strings"

	"go.uber.org/zap"

	"seqproxy/sequence/define"
	"seqproxy/sequence/link"
)

// layout is what the checks found out about the table.
type layout struct {
	max      uint64 // the highest number of the id column
	idType   string // type of the id column
	nameType string // type, charset and collation of the name column, as CREATE TABLE takes them
}

// checkColumns looks at the two columns and at the key, and at the columns of the tables beside.
func (s *schema) checkColumns(ctx context.Context, c link.Raw) (*layout, error) {
	found, findings, err := s.columns(ctx, c)
	if err == nil && len(findings) > 0 {
		err = findings[0]
	}
	if err != nil {
		return nil, err
	}
	if found.max != 1<<64-1 && s.seen.Load() == nil {
		s.log.Warn("id column ends early", zap.String("table", s.table.full),
			zap.String("type", found.idType), zap.Uint64("maximum", found.max))
	}
	return found, nil
}

// columns reads the columns and the key, and returns all that is wrong with them.
func (s *schema) columns(ctx context.Context, c link.Raw) (found *layout, findings []error, err error) {
	where := fmt.Sprintf("TABLE_SCHEMA = %s AND TABLE_NAME = %s", link.Literal(s.opts.Database), link.Literal(s.opts.Table))
	rows, err := c.Query(ctx, "SELECT TABLE_NAME, LOWER(COLUMN_NAME), COLUMN_TYPE, IFNULL(CHARACTER_SET_NAME, ''), IFNULL(COLLATION_NAME, '') "+
		"FROM information_schema.COLUMNS WHERE "+s.inTables())
	if err != nil {
		return nil, nil, fmt.Errorf("read columns of %s: %w", s.table.full, err)
	}
	columns := make(map[string][]string, len(rows))
	for _, r := range rows {
		if strings.EqualFold(r[0], s.opts.Table) {
			columns[r[1]] = r[2:]
		}
	}
	id, name := columns["id"], columns["name"]
	if id == nil || name == nil {
		return nil, []error{s.Unfit(s.table.full, "it has no columns `name` and `id`", "name a table like: "+fmt.Sprintf(createTable, s.table.full))}, nil
	}
	findings = s.lacking(rows)
	found = &layout{nameType: name[0], idType: id[0]}
	if name[1] != "" {
		found.nameType += " CHARACTER SET " + name[1] + " COLLATE " + name[2]
	}
	var ok bool
	if found.max, ok = define.ColumnMax(id[0]); !ok {
		findings = append(findings, s.Unfit(s.table.full, "its column `id` is "+id[0]+", which does not count in whole numbers",
			"ALTER TABLE "+s.table.full+" MODIFY `id` BIGINT UNSIGNED NOT NULL DEFAULT 0"))
	}
	keys, err := c.Query(ctx, "SELECT INDEX_NAME FROM information_schema.STATISTICS WHERE "+where+
		" GROUP BY INDEX_NAME HAVING COUNT(*) = 1 AND MAX(NON_UNIQUE) = 0 AND MAX(LOWER(COLUMN_NAME)) = 'name' AND MAX(IFNULL(SUB_PART, 0)) = 0")
	if err != nil {
		return nil, nil, fmt.Errorf("read keys of %s: %w", s.table.full, err)
	}
	if len(keys) == 0 {
		findings = append(findings, s.Unfit(s.table.full, "no unique key is on `name` alone, so two rows could count for one sequence",
			"ALTER TABLE "+s.table.full+" ADD PRIMARY KEY (`name`)"))
	}
	return found, findings, nil
}
