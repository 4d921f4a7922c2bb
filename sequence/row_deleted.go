package sequence

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"seqproxy/internal/await"
	"seqproxy/internal/logfield"
	"seqproxy/sequence/link"
)

// This file is what becomes of a row that somebody has deleted, other than by DROP SEQUENCE, on one
// of several members. It is not made again unasked, as applications that count in the table
// themselves go by no ceiling.

// errLacks is what others may make up for.
var errLacks = errors.New("one of the sequence servers cannot serve it")

// lack is a row that a member lacks and cannot be given.
type lack struct {
	v    *server
	name string
}

// lacked is until when a member is not asked for a row, and why.
type lacked struct {
	until   time.Time
	finding error
}

// missing is the error of a reservation of name with a member that lacks the row, of which others
// have found. It is not asked again for a while.
func (a *servers) missing(ctx context.Context, v *server, name string, found *row) error {
	ctx, stop := context.WithTimeoutCause(ctx, v.tryTime(), await.ErrPatience)
	defer stop()
	finding, err := v.rowDeleted(ctx, v.Pool(), name, max(a.marks.Of(name), found.position(), found.past))
	if err != nil {
		return err
	}
	v.log.Warn("sequence row missing on a server", logfield.Sequence(name), logfield.Err(finding))
	a.mu.Lock()
	defer a.mu.Unlock()
	a.lacks[lack{v, name}] = lacked{time.Now().Add(a.timing.lack), finding}
	return fmt.Errorf("%w: %w", errLacks, finding)
}

// lacking says that v was found to lack the row a moment ago.
func (a *servers) lacking(v *server, name string) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	known, ok := a.lacks[lack{v, name}]
	if !ok || time.Now().After(known.until) {
		delete(a.lacks, lack{v, name})
		return nil
	}
	return fmt.Errorf("%w: %w", errLacks, known.finding)
}

// rowDeleted is the finding about such a row. top is the highest number that is known to be
// reserved on any member. Other proxies may hold higher ones of this member, up to its ceiling; and
// lower than where its plan began are those of plans before.
func (st *store) rowDeleted(ctx context.Context, on link.Querier, name string, top uint64) (finding, err error) {
	var reached uint64
	// Locking, as it may have been raised since the transaction began.
	err = on.QueryRowContext(ctx, "SELECT GREATEST(IFNULL(MAX(l.`granted`), 0), IFNULL((SELECT MAX(f.`floor`) FROM "+st.table.start+" AS f WHERE f.`name` = ?), 0), "+
		"IFNULL((SELECT MAX(p.`floor`) FROM "+st.table.plan+" AS p), 0)) FROM "+st.table.limit+" AS l WHERE l.`name` = ?"+shared, name, name).Scan(&reached)
	if err != nil {
		return nil, fmt.Errorf("the row of sequence %q was deleted on %s; read how far it went from table %s: %w", name, st.Name(), st.table.limit, err)
	}
	rest, _ := st.share().Rest(max(top, reached))
	return &UnfitError{
		Server: st.Name(), Table: st.table.full,
		Finding: fmt.Sprintf("the row of sequence %q was deleted there, and nobody knows which numbers it gave", name),
		Remedy: fmt.Sprintf("INSERT INTO %s (`name`, `id`) VALUES ('%s', %d) on %s, above which no proxy has got numbers there, or a higher number if keys above it are in use; "+
			"after FLUSH SEQUENCES on every proxy a lower one will do that is above all keys", st.table.full, strings.ReplaceAll(name, "'", "''"), rest, st.Name()),
	}, nil
}
