package torture

import (
	"context"
	"fmt"
)

// checkRows compares the shards' tables with the answers to clients: a committed row has the key of
// its answer, no key is on both shards, and every row was sent by a client. It returns rows without
// an answer as requests that brought their keys: those count like any other.
func checkRows(ctx context.Context, w *world, ops []op) (unanswered []op, wrong []string, err error) {
	for _, table := range []string{"photos", "users"} {
		sent := make(map[string]*op) // by tag
		for i := range ops {
			if o := &ops[i]; o.tag != "" && o.shard >= 0 && o.kind.sequence == table {
				sent[o.tag] = o
			}
		}
		seen := make(map[uint64]string) // tag by id
		var found []string
		for _, s := range w.shards {
			stored, err := s.stored(ctx, table)
			if err != nil {
				return nil, wrong, err
			}
			for id, tag := range stored {
				if other, ok := seen[id]; ok {
					found = append(found, fmt.Sprintf("DUPLICATE: key %d of %s is on both shards, in the rows %s and %s", id, table, tag, other))
				}
				seen[id] = tag
				switch o := sent[tag]; {
				case o == nil:
					found = append(found, fmt.Sprintf("ROW: nobody sent row %s with the key %d of %s", tag, id, table))
				case o.first == 0:
					one := *o
					one.first, one.n = id, 1
					unanswered = append(unanswered, one)
				}
			}
		}
		for tag, o := range sent {
			if !o.kept {
				continue
			}
			for id := o.first; id <= o.last(); id++ {
				if o.kind.name != "INSERT, rolled back" && seen[id] != tag {
					found = append(found, fmt.Sprintf("ROW: the row with the key %d of %s is not there\n    %s", id, table, o))
				}
			}
		}
		wrong = append(wrong, few(found)...)
	}
	return unanswered, wrong, nil
}

// stored reads a table.
func (s *server) stored(ctx context.Context, table string) (map[uint64]string, error) {
	rows, err := s.db.QueryContext(ctx, "SELECT id, tag FROM "+s.schema+"."+table)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", s.name, err)
	}
	defer rows.Close() //nolint:errcheck // Err tells
	all := make(map[uint64]string)
	for rows.Next() {
		var id uint64
		var tag string
		if err := rows.Scan(&id, &tag); err != nil {
			return nil, err
		}
		all[id] = tag
	}
	return all, rows.Err()
}
