package sequence

import (
	"context"
	"database/sql"
	"fmt"
	"sync"
	"sync/atomic"

	gomysql "github.com/go-mysql-org/go-mysql/mysql"

	"seqproxy/internal/planted"
	"seqproxy/sequence/limit"
)

// A group whose replication may lose what was committed gives a number only below a ceiling that
// was seen on a second machine. For each sequence, and each node that ever gave its numbers, there
// are `wanted` and `granted`: a proxy raises `wanted`, sees that on a majority of the nodes, and
// then raises `granted`. The holder of all sequences is the one with the highest term. A node that
// becomes the primary is no holder, and gives nothing, until a proxy has adopted it
// (limit/adopt.go): a new term, in which every sequence begins above all windows that any node has
// seen. An old primary that lives on without its replicas opens no window any more and ends at its
// ceiling, below. Package limit decides all that.
//
// Of a cluster the holder is its present configuration, whichever node a proxy writes to. A crash
// of all nodes may lose what was committed there, too, and the configuration that is bootstrapped
// then is another holder. After each reservation the node says that it is in that configuration
// still, or the numbers are given to nobody.
//
// Every holder has rows of its own, so that changes of an old primary which arrive late touch no
// row of the new one. If they touch the counter, it is below the `floor` at which the holder
// began, and gives nothing. Where they bring what this holder did not know of when it began, it
// has to begin again.

// createLimit makes the table of how far a giver may go with a sequence.
const createLimit = "CREATE TABLE IF NOT EXISTS %s (`name` %s NOT NULL, `giver` varchar(190) CHARACTER SET ascii NOT NULL, " +
	"`term` bigint unsigned NOT NULL, `wanted` bigint unsigned NOT NULL DEFAULT 0, `granted` bigint unsigned NOT NULL DEFAULT 0, " +
	"`floor` bigint unsigned NOT NULL DEFAULT 0, PRIMARY KEY (`name`, `giver`)) ENGINE=InnoDB"

// createHolder makes the table of who gives, and gave, the numbers of a group.
const createHolder = "CREATE TABLE IF NOT EXISTS %s (`holder` varchar(190) CHARACTER SET ascii NOT NULL, `term` bigint unsigned NOT NULL, " +
	"`complete` tinyint unsigned NOT NULL DEFAULT 0, `mark` bigint unsigned NOT NULL DEFAULT 0, PRIMARY KEY (`holder`)) ENGINE=InnoDB"

const (
	limitSuffix  = "_limit"
	holderSuffix = "_holder"
)

// ceilings are how far the sequences of a group may go, by what its other nodes know: its rows, and
// what is remembered of those of the node in use.
type ceilings struct {
	*store
	adopting lock // held during an adoption
	// that the node still holds the sequences was not seen on others, for ORDER
	unseen atomic.Bool

	mu      sync.Mutex
	under   uint64              // guarded by mu; the node of the ceilings, as nodes.changes
	by      map[string]uint64   // guarded by mu; by the table's spelling. A ceiling only rises.
	opening map[string]struct{} // guarded by mu; windows that are opened ahead of need
	// guarded by mu; the last window could not be opened, which was logged
	failing bool
}

// forget is for another holder.
func (g *ceilings) forget() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.by = nil
}

// ofNode is what is remembered of the node in use: that of another one is forgotten. g.mu is held.
func (g *ceilings) ofNode() map[string]uint64 {
	if node := g.nodes.changes.Load(); g.under != node || g.by == nil {
		g.under, g.by = node, make(map[string]uint64)
	}
	return g.by
}

func (g *ceilings) learn(name string, ceiling uint64) {
	g.mu.Lock()
	defer g.mu.Unlock()
	by := g.ofNode()
	by[name] = max(by[name], ceiling)
}

func (g *ceilings) drop(name string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	delete(g.by, name)
}

// ceiling is that of a sequence on the node in use.
func (g *ceilings) ceiling(name string) (uint64, bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	ceiling, ok := g.ofNode()[name]
	return ceiling, ok
}

// inForce reports whether numbers are given below a ceiling only: the server is a group.
func (g *ceilings) inForce() bool { return !planted.Fault(planted.CeilingReplica) && g.grouped() }

// replicates reports whether two nodes may each take themselves for the one that is written to: the
// server is a group, and no cluster, in which a majority agrees on each commit.
func (g *ceilings) replicates() bool {
	now := g.nodes.current.Load()
	return g.inForce() && (now == nil || now.cluster == "")
}

// readRecord reads what a node has recorded, in one statement: a later holder and an older limit
// would not fit together. Where there are no tables there is nothing.
func (st *store) readRecord(ctx context.Context, on querier, of limit.Scope) (limit.Record, error) {
	text := "SELECT NULL, `holder`, `term`, `complete`, `mark`, 0 FROM " + st.table.holder
	var args []any
	if of.All || of.Name != "" {
		text += " UNION ALL SELECT `name`, `giver`, `term`, `wanted`, `granted`, `floor` FROM " + st.table.limit
	}
	if of.Name != "" {
		text, args = text+" WHERE `name` = ?", []any{of.Name}
	}
	return st.scanRecord(ctx, on, text, args...)
}

// lockRecord reads all that a node has recorded, and locks it until tx ends.
func (st *store) lockRecord(ctx context.Context, tx *sql.Tx) (limit.Record, error) {
	known, err := st.scanRecord(ctx, tx, "SELECT NULL, `holder`, `term`, `complete`, `mark`, 0 FROM "+st.table.holder+" FOR UPDATE")
	if err != nil {
		return known, err
	}
	limits, err := st.scanRecord(ctx, tx, "SELECT `name`, `giver`, `term`, `wanted`, `granted`, `floor` FROM "+st.table.limit+" FOR UPDATE")
	known.Limits = limits.Limits
	return known, err
}

// scanRecord runs a statement that selects holders, whose name is NULL, and limits.
func (st *store) scanRecord(ctx context.Context, on querier, text string, args ...any) (all limit.Record, err error) {
	rows, err := on.QueryContext(ctx, text, args...)
	if hasCode(err, gomysql.ER_NO_SUCH_TABLE, gomysql.ER_BAD_DB_ERROR) {
		return limit.Record{}, nil
	}
	if err != nil {
		return limit.Record{}, fmt.Errorf("read table %s: %w", st.table.limit, err)
	}
	defer func() { _ = rows.Close() }()
	for rows.Next() {
		var name sql.NullString
		var l limit.Limit
		if err := rows.Scan(&name, &l.Giver, &l.Term, &l.Wanted, &l.Granted, &l.Floor); err != nil {
			return limit.Record{}, fmt.Errorf("read table %s: %w", st.table.limit, err)
		}
		if !name.Valid {
			all.Holders = append(all.Holders, limit.Holder{ID: l.Giver, Term: l.Term, Complete: l.Wanted == 1, Mark: l.Granted})
			continue
		}
		l.Name = name.String
		all.Limits = append(all.Limits, l)
	}
	return all, rows.Err()
}

// admitted is how far the node may go with a sequence whose counter stands at position, without a
// term if there is no row of that yet. The error is outcomeNotHolder.
func (st *store) admitted(known limit.Record, now *choice, position uint64) (limit.Limit, error) {
	l, ok := known.Admits(now.holder, position, st.seen.Load().max)
	if !ok {
		return limit.Limit{}, outcomeNotHolder
	}
	return l, nil
}

// upTo is how far the numbers of a sequence may go at present.
type upTo struct {
	grouped bool // false: as far as the sequence goes
	ceiling uint64
	// witnessed: other members have recorded how far this one goes at most.
	witnessed bool
	recorded  uint64
}

// upTo returns that of a sequence.
func (g *ceilings) upTo(ctx context.Context, conn *sql.Conn, name string) (upTo, error) {
	if !g.inForce() {
		return upTo{}, nil
	}
	if ceiling, ok := g.ceiling(name); ok {
		return upTo{grouped: true, ceiling: ceiling}, nil
	}
	now := g.nodes.current.Load()
	if now == nil {
		return upTo{}, errUnchosen
	}
	stored, err := g.readRow(ctx, conn, name)
	if err != nil {
		return upTo{}, err
	}
	known, err := g.readRecord(ctx, conn, limit.Scope{Name: name})
	if err != nil {
		return upTo{}, err
	}
	l, err := g.admitted(known, now, stored.position())
	if err != nil {
		return upTo{}, err
	}
	if l.Granted == 0 {
		return upTo{}, outcomeAtCeiling
	}
	g.learn(name, l.Granted)
	return upTo{grouped: true, ceiling: l.Granted}, nil
}

// belowCeilingSQL is what a reservation that goes up to a ceiling adds to its WHERE (arguments
// name, ceiling); id is the row's there. The server itself evaluates who it is: whatever the proxy
// believes, a node that is not the holder changes no row.
func (st *store) belowCeilingSQL(now *choice, id string) string {
	return " AND EXISTS (SELECT 1 FROM " + st.table.limit + " AS l JOIN " + st.table.holder + " AS h ON h.`holder` = l.`giver` AND h.`term` = l.`term` " +
		"WHERE l.`name` = ? AND l.`giver` = " + now.holderSQL() + " AND l.`granted` >= ? AND l.`floor` <= CAST(" + id + " AS UNSIGNED) AND h.`complete` = 1 " +
		"AND NOT EXISTS (SELECT 1 FROM " + st.table.limit + " AS x WHERE x.`name` = l.`name` AND x.`giver` <> l.`giver` AND x.`wanted` > 0 AND x.`wanted` >= l.`floor`) " +
		"AND NOT EXISTS (SELECT 1 FROM " + st.table.holder + " AS o WHERE o.`term` > h.`term` OR o.`term` = h.`term` AND o.`holder` > h.`holder`))"
}

// refused explains why the condition kept a reservation from changing the row: outcomeNotHolder or
// outcomeAtCeiling.
func (st *store) refused(ctx context.Context, conn *sql.Conn, name string, stored *row) attempt {
	now := st.nodes.current.Load()
	if now == nil {
		return st.failedWith(errUnchosen)
	}
	known, err := st.readRecord(ctx, conn, limit.Scope{Name: name})
	if err != nil {
		return st.failedWith(err)
	}
	l, err := st.admitted(known, now, stored.position())
	if err == nil {
		err = outcomeAtCeiling
	}
	did := st.failedWith(err)
	did.asked, did.ceiling = true, l.Granted
	return did
}

// lowered has the holder's floor follow a counter that goes down on purpose.
func (st *store) lowered(ctx context.Context, tx *sql.Tx, name string, id uint64) error {
	now := st.nodes.current.Load()
	if !st.grouped() || now == nil {
		return nil
	}
	_, err := tx.ExecContext(ctx, "UPDATE "+st.table.limit+" SET `floor` = LEAST(`floor`, CAST(? AS UNSIGNED)) WHERE `name` = ? AND `giver` = "+now.holderSQL(), id, name)
	if err == nil { // else what holders before wanted would have come late
		_, err = tx.ExecContext(ctx, "UPDATE "+st.table.limit+" SET `wanted` = LEAST(`wanted`, CAST(? AS UNSIGNED)) WHERE `name` = ? AND `giver` <> "+now.holderSQL(), id-min(id, 1), name)
	}
	if err != nil && !hasCode(err, gomysql.ER_NO_SUCH_TABLE) {
		return fmt.Errorf("write table %s: %w", st.table.limit, err)
	}
	return nil
}
