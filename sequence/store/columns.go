package store

import (
	"context"
	"fmt"
	"strings"

	"go.uber.org/zap"

	"seqproxy/sequence/define"
	"seqproxy/sequence/link"
)

// Layout is what the checks found out about the table of the sequences.
type Layout struct {
	Max      uint64 // the highest number of the id column
	idType   string // type of the id column
	NameType string // type, charset and collation of the name column, as CREATE TABLE takes them
}

// checkColumns checks the columns and the key of the first table, and the columns of the others.
func (s *Schema) checkColumns(ctx context.Context, c link.Raw) (*Layout, error) {
	found, findings, err := s.Columns(ctx, c)
	if err == nil && len(findings) > 0 {
		err = findings[0]
	}
	if err != nil {
		return nil, err
	}
	if found.Max != 1<<64-1 && s.Seen.Load() == nil {
		s.Log.Warn("id column ends early", zap.String("table", s.Table.Sequence),
			zap.String("type", found.idType), zap.Uint64("maximum", found.Max))
	}
	return found, nil
}

// Columns reads the columns and the key of the first table, and returns all that is wrong with
// them.
func (s *Schema) Columns(ctx context.Context, c link.Raw) (found *Layout, findings []error, err error) {
	where := fmt.Sprintf("TABLE_SCHEMA = %s AND TABLE_NAME = %s", link.Literal(s.Config.Database), link.Literal(s.Config.Table))
	rows, err := c.Query(ctx, "SELECT TABLE_NAME, LOWER(COLUMN_NAME), COLUMN_TYPE, IFNULL(CHARACTER_SET_NAME, ''), IFNULL(COLLATION_NAME, '') "+
		"FROM information_schema.COLUMNS WHERE "+s.InTables())
	if err != nil {
		return nil, nil, fmt.Errorf("read columns of %s: %w", s.Table.Sequence, err)
	}
	columns := make(map[string][]string, len(rows))
	for _, r := range rows {
		if strings.EqualFold(r[0], s.Config.Table) {
			columns[r[1]] = r[2:]
		}
	}
	id, name := columns["id"], columns["name"]
	if id == nil || name == nil {
		return nil, []error{s.Unfit(s.Table.Sequence, "it has no columns `name` and `id`", "name a table like: "+fmt.Sprintf(CreateTable, s.Table.Sequence))}, nil
	}
	findings = s.lacking(rows)
	found = &Layout{NameType: name[0], idType: id[0]}
	if name[1] != "" {
		found.NameType += " CHARACTER SET " + name[1] + " COLLATE " + name[2]
	}
	var ok bool
	if found.Max, ok = define.ColumnMax(id[0]); !ok {
		findings = append(findings, s.Unfit(s.Table.Sequence, "its column `id` is "+id[0]+", which does not count in whole numbers",
			"ALTER TABLE "+s.Table.Sequence+" MODIFY `id` BIGINT UNSIGNED NOT NULL DEFAULT 0"))
	}
	keys, err := c.Query(ctx, "SELECT INDEX_NAME FROM information_schema.STATISTICS WHERE "+where+
		" GROUP BY INDEX_NAME HAVING COUNT(*) = 1 AND MAX(NON_UNIQUE) = 0 AND MAX(LOWER(COLUMN_NAME)) = 'name' AND MAX(IFNULL(SUB_PART, 0)) = 0")
	if err != nil {
		return nil, nil, fmt.Errorf("read keys of %s: %w", s.Table.Sequence, err)
	}
	if len(keys) == 0 {
		findings = append(findings, s.Unfit(s.Table.Sequence, "no unique key is on `name` alone, so two rows could count for one sequence",
			"ALTER TABLE "+s.Table.Sequence+" ADD PRIMARY KEY (`name`)"))
	}
	return found, findings, nil
}
