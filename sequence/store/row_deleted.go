package store

import (
	"context"
	"fmt"
	"strings"

	"seqproxy/sequence/link"
)

// RowDeleted returns the finding about a deleted row. top is the highest number that is certainly
// reserved on any member. Other proxies may hold higher numbers of this member, up to its ceiling;
// lower ones than the start of its plan belong to earlier plans.
func (st *Store) RowDeleted(ctx context.Context, on link.Querier, name string, top uint64) (finding, err error) {
	var reached uint64
	// A locking read, since the row may have been raised since the transaction began.
	err = on.QueryRowContext(ctx, "SELECT GREATEST(IFNULL(MAX(l.`granted`), 0), IFNULL((SELECT MAX(f.`floor`) FROM "+st.Table.PlanStart+" AS f WHERE f.`name` = ?), 0), "+
		"IFNULL((SELECT MAX(p.`floor`) FROM "+st.Table.Plan+" AS p), 0)) FROM "+st.Table.Limit+" AS l WHERE l.`name` = ?"+shared, name, name).Scan(&reached)
	if err != nil {
		return nil, fmt.Errorf("the row of sequence %q was deleted on %s; read how far it went from table %s: %w", name, st.Name(), st.Table.Limit, err)
	}
	rest, _ := st.Share().Rest(max(top, reached))
	return &link.UnfitError{
		Server: st.Name(), Table: st.Table.Sequence,
		Finding: fmt.Sprintf("the row of sequence %q was deleted there, and nobody knows which numbers it gave", name),
		Remedy: fmt.Sprintf("INSERT INTO %s (`name`, `id`) VALUES ('%s', %d) on %s, above which no proxy has got numbers there, or a higher number if keys above it are in use; "+
			"after FLUSH SEQUENCES on every proxy a lower one will do that is above all keys", st.Table.Sequence, strings.ReplaceAll(name, "'", "''"), rest, st.Name()),
	}, nil
}
