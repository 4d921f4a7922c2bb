package sequence

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	gomysql "github.com/go-mysql-org/go-mysql/mysql"

	"seqproxy/internal/planted"
)

// A group whose replication may lose what was committed gives a number only below a ceiling that was seen on a second machine. Beside
// the counter stand, for each sequence and each node that ever gave its numbers (the holder), `wanted` and `ceiling`: a proxy raises
// `wanted`, sees that on a majority of the nodes, and then raises `ceiling`. The holder of all sequences is the one with the highest
// term among the rows without a name. A node that becomes the primary is no holder, and gives nothing, until a proxy has adopted it
// (adoption.go): a new term, in which every sequence begins above all windows that any node has seen. An old primary that lives on
// without its replicas opens no window any more and ends at its ceiling, below.
//
// Of a cluster the holder is its present configuration, whichever node a proxy writes to. A crash
// of all nodes may lose what was committed there, too, and the configuration that is bootstrapped
// then is another holder. After each reservation the node says that it is in that configuration
// still, or the numbers are given to nobody.
//
// Every holder has rows of its own, so that changes of an old primary which arrive late touch no row of the new one. If they touch the
// counter, it is below the `floor` at which the holder began, and gives nothing.
// createGuard makes the table. In a row without a name, `ceiling` is 1 once the adoption is complete.
const createGuard = "CREATE TABLE IF NOT EXISTS %s (`name` %s NOT NULL, `holder` varchar(190) CHARACTER SET ascii NOT NULL, " +
	"`term` bigint unsigned NOT NULL, `wanted` bigint unsigned NOT NULL DEFAULT 0, `ceiling` bigint unsigned NOT NULL DEFAULT 0, " +
	"`floor` bigint unsigned NOT NULL DEFAULT 0, PRIMARY KEY (`name`, `holder`)) ENGINE=InnoDB"

const guardSuffix = "_guard"

// guard is how far the sequences of a group may go, by what its other nodes know: its rows, and
// what is remembered of those of the node in use.
type guard struct {
	*store
	adopting turn        // held during an adoption
	unseen   atomic.Bool // that the node still holds the sequences was not seen on others, for ORDER

	mu       sync.Mutex
	under    uint64              // guarded by mu; the node of the ceilings, as nodes.changes
	ceilings map[string]uint64   // guarded by mu; by the table's spelling. A ceiling only rises.
	opening  map[string]struct{} // guarded by mu; windows that are opened ahead of need
	failing  bool                // guarded by mu; the last window could not be opened, which was logged
}

// forget is for another holder.
func (g *guard) forget() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.ceilings = nil
}

// ofNode is what is remembered of the node in use: that of another one is forgotten. g.mu is held.
func (g *guard) ofNode() map[string]uint64 {
	if node := g.nodes.changes.Load(); g.under != node || g.ceilings == nil {
		g.under, g.ceilings = node, make(map[string]uint64)
	}
	return g.ceilings
}

func (g *guard) learn(name string, ceiling uint64) {
	g.mu.Lock()
	defer g.mu.Unlock()
	ceilings := g.ofNode()
	ceilings[name] = max(ceilings[name], ceiling)
}

func (g *guard) drop(name string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	delete(g.ceilings, name)
}

// ceiling is that of a sequence on the node in use.
func (g *guard) ceiling(name string) (uint64, bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	ceiling, ok := g.ofNode()[name]
	return ceiling, ok
}

// guarded reports whether numbers are given below a ceiling only: the server is a group.
func (g *guard) guarded() bool { return !planted.Fault(planted.CeilingReplica) && g.grouped() }

// replicates reports whether two nodes may each take themselves for the one that is written to: the
// server is a group, and no cluster, in which a majority agrees on each commit.
func (g *guard) replicates() bool {
	now := g.nodes.current.Load()
	return g.guarded() && (now == nil || now.cluster == "")
}

// guardRow is one row of the guard table.
type guardRow struct {
	name, holder                 string
	term, wanted, ceiling, floor uint64
}

// claims reports whether the row says who is the holder, rather than how far it may go.
func (r *guardRow) claims() bool { return r.name == "" }

// over reports whether the claim r counts more than another.
func (r *guardRow) over(other guardRow) bool {
	return r.term > other.term || r.term == other.term && r.holder > other.holder
}

// guardRows are rows of one node, or what several know together.
type guardRows []guardRow

// holder is the claim that counts; its term is 0 if there is none.
func (rows guardRows) holder() (top guardRow) {
	for _, r := range rows {
		if r.claims() && (top.term == 0 || r.over(top)) {
			top = r
		}
	}
	return top
}

// of is the holder's row of the one sequence that was read; false if there is none.
func (rows guardRows) of(holder string) (guardRow, bool) {
	for _, r := range rows {
		if !r.claims() && r.holder == holder {
			return r, true
		}
	}
	return guardRow{}, false
}

// readGuard reads the rows of one sequence and all claims, or everything. Where there is no table there are no rows.
func (st *store) readGuard(ctx context.Context, on querier, where string, args ...any) (all guardRows, err error) {
	rows, err := on.QueryContext(ctx, "SELECT `name`, `holder`, `term`, `wanted`, `ceiling`, `floor` FROM "+st.table.guard+where, args...)
	if hasCode(err, gomysql.ER_NO_SUCH_TABLE, gomysql.ER_BAD_DB_ERROR) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read table %s: %w", st.table.guard, err)
	}
	defer func() { _ = rows.Close() }()
	for rows.Next() {
		var r guardRow
		if err := rows.Scan(&r.name, &r.holder, &r.term, &r.wanted, &r.ceiling, &r.floor); err != nil {
			return nil, fmt.Errorf("read table %s: %w", st.table.guard, err)
		}
		all = append(all, r)
	}
	return all, rows.Err()
}

const ofSequence = " WHERE `name` IN ('', ?)"

// admitted looks at the rows of a sequence, whose counter stands at position. It returns the row
// that says how far the node may go, without a term if it has to be made yet, or outcomeNotHolder.
func admitted(rows guardRows, identity string, position uint64) (guardRow, error) {
	top := rows.holder()
	if top.term == 0 || top.holder != identity || top.ceiling == 0 {
		return guardRow{}, outcomeNotHolder
	}
	row, ok := rows.of(identity)
	if ok && (row.term != top.term || position < row.floor) {
		return guardRow{}, outcomeNotHolder
	}
	return row, nil
}

// limit is how far the numbers of a sequence may go at present.
type limit struct {
	guarded bool // false: as far as the sequence goes
	ceiling uint64
	bounded bool // there are other members, which know how far this one goes at most
	bound   uint64
}

// limit returns that of a sequence.
func (g *guard) limit(ctx context.Context, conn *sql.Conn, name string) (limit, error) {
	if !g.guarded() {
		return limit{}, nil
	}
	if ceiling, ok := g.ceiling(name); ok {
		return limit{guarded: true, ceiling: ceiling}, nil
	}
	now := g.nodes.current.Load()
	if now == nil {
		return limit{}, errUnchosen
	}
	stored, err := g.readRow(ctx, conn, name)
	if err != nil {
		return limit{}, err
	}
	rows, err := g.readGuard(ctx, conn, ofSequence, name)
	if err != nil {
		return limit{}, err
	}
	row, err := admitted(rows, now.holder, stored.position())
	if err != nil {
		return limit{}, err
	}
	if row.ceiling == 0 {
		return limit{}, outcomeAtCeiling
	}
	g.learn(name, row.ceiling)
	return limit{guarded: true, ceiling: row.ceiling}, nil
}

// guardCondition is what a reservation that goes up to a ceiling adds to its WHERE (arguments name, ceiling); id is the row's there. The server itself
// evaluates who it is: whatever the proxy believes, a node that is not the holder changes no row.
func (st *store) guardCondition(now *choice, id string) string {
	return " AND EXISTS (SELECT 1 FROM " + st.table.guard + " AS g WHERE g.`name` = ? AND g.`holder` = " + now.holderSQL() + " AND g.`ceiling` >= ? " +
		"AND g.`floor` <= CAST(" + id + " AS UNSIGNED) AND NOT EXISTS (SELECT 1 FROM " + st.table.guard + " AS h WHERE h.`name` = '' " +
		"AND (h.`term` > g.`term` OR h.`term` = g.`term` AND h.`holder` > g.`holder`)))"
}

// refused explains why the condition kept a reservation from changing the row: outcomeNotHolder or
// outcomeAtCeiling.
func (st *store) refused(ctx context.Context, conn *sql.Conn, name string, stored *row) attempt {
	now := st.nodes.current.Load()
	if now == nil {
		return st.failedWith(errUnchosen)
	}
	rows, err := st.readGuard(ctx, conn, ofSequence, name)
	if err != nil {
		return st.failedWith(err)
	}
	row, err := admitted(rows, now.holder, stored.position())
	if err == nil {
		err = outcomeAtCeiling
	}
	did := st.failedWith(err)
	did.asked, did.ceiling = true, row.ceiling
	return did
}

var (
	errNotShown   = errors.New("it does not show what was written on the primary: replication is behind, stopped, or from another server")
	errSameServer = errors.New("it is one server with another of the addresses, or has its server_id or server_uuid")
	errStranger   = errors.New("it does not show what was written on the primary, and can be written to itself: make it a replica of the primary, and read only")
	errNotKept    = errors.New("innodb_flush_log_at_trx_commit is 0 there: its crash would lose what it shows")
	errUnflushed  = errors.New("it does not flush at commit: its crash would lose what it shows")
	errElsewhere  = errors.New("it is in another configuration of the cluster")
	errNotAsked   = errors.New("it was not asked to the end")
)

// lowered has the holder's floor follow a counter that goes down on purpose.
func (st *store) lowered(ctx context.Context, tx *sql.Tx, name string, id uint64) error {
	now := st.nodes.current.Load()
	if !st.grouped() || now == nil {
		return nil
	}
	_, err := tx.ExecContext(ctx, "UPDATE "+st.table.guard+" SET `floor` = LEAST(`floor`, CAST(? AS UNSIGNED)) WHERE `name` = ? AND `holder` = "+now.holderSQL(), id, name)
	if err != nil && !hasCode(err, gomysql.ER_NO_SUCH_TABLE) {
		return fmt.Errorf("write table %s: %w", st.table.guard, err)
	}
	return nil
}
