package store

import (
	"context"
	"database/sql"
	"fmt"
	"slices"
	"strings"

	gomysql "github.com/go-mysql-org/go-mysql/mysql"

	"seqproxy/sequence/change"
	"seqproxy/sequence/limit"
	"seqproxy/sequence/link"
)

// createLimit makes the table that says how far a giver may go with a sequence.
const createLimit = "CREATE TABLE IF NOT EXISTS %s (`name` %s NOT NULL, `giver` varchar(190) CHARACTER SET ascii NOT NULL, " +
	"`term` bigint unsigned NOT NULL, `wanted` bigint unsigned NOT NULL DEFAULT 0, `granted` bigint unsigned NOT NULL DEFAULT 0, " +
	"`floor` bigint unsigned NOT NULL DEFAULT 0, PRIMARY KEY (`name`, `giver`)) ENGINE=InnoDB"

// CreateHolder makes the table of the present holder of a group, and of those before it.
const CreateHolder = "CREATE TABLE IF NOT EXISTS %s (`holder` varchar(190) CHARACTER SET ascii NOT NULL, `term` bigint unsigned NOT NULL, " +
	"`complete` tinyint unsigned NOT NULL DEFAULT 0, `mark` bigint unsigned NOT NULL DEFAULT 0, PRIMARY KEY (`holder`)) ENGINE=InnoDB"

const (
	limitSuffix  = "_limit"
	holderSuffix = "_holder"
)

// LimitTable is the tables of limits and of holders.
type LimitTable struct{ *Schema }

// Read reads what a node has recorded. It is one statement, since a later holder and an older limit
// do not fit together. Without the tables the record is empty.
func (t LimitTable) Read(ctx context.Context, on link.Querier, of limit.Scope) (limit.Record, error) {
	text := "SELECT NULL, `holder`, `term`, `complete`, `mark`, 0 FROM " + t.Table.Holder
	var args []any
	if of.All || of.Name != "" {
		text += " UNION ALL SELECT `name`, `giver`, `term`, `wanted`, `granted`, `floor` FROM " + t.Table.Limit
	}
	if of.Name != "" {
		text, args = text+" WHERE `name` = ?", []any{of.Name}
	}
	return t.scan(ctx, on, text, args...)
}

// Lock reads what a node has recorded, and locks it until tx ends.
func (t LimitTable) Lock(ctx context.Context, tx *sql.Tx) (limit.Record, error) {
	record, err := t.scan(ctx, tx, "SELECT NULL, `holder`, `term`, `complete`, `mark`, 0 FROM "+t.Table.Holder+" FOR UPDATE")
	if err != nil {
		return record, err
	}
	limits, err := t.scan(ctx, tx, "SELECT `name`, `giver`, `term`, `wanted`, `granted`, `floor` FROM "+t.Table.Limit+" FOR UPDATE")
	record.Limits = limits.Limits
	return record, err
}

// scan runs a statement that selects limits, and holders as rows whose name is NULL.
func (t LimitTable) scan(ctx context.Context, on link.Querier, text string, args ...any) (all limit.Record, err error) {
	rows, err := on.QueryContext(ctx, text, args...)
	if link.HasCode(err, gomysql.ER_NO_SUCH_TABLE, gomysql.ER_BAD_DB_ERROR) {
		return limit.Record{}, nil
	}
	if err != nil {
		return limit.Record{}, fmt.Errorf("read table %s: %w", t.Table.Limit, err)
	}
	defer func() { _ = rows.Close() }()
	for rows.Next() {
		var name sql.NullString
		var l limit.Limit
		if err := rows.Scan(&name, &l.Giver, &l.Term, &l.Wanted, &l.Granted, &l.Floor); err != nil {
			return limit.Record{}, fmt.Errorf("read table %s: %w", t.Table.Limit, err)
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

// Admitted returns how far the node may go with a sequence whose counter stands at position. The
// limit has no term if there is no row yet. The error is OutcomeNotHolder.
func (t LimitTable) Admitted(record limit.Record, now *link.Choice, position uint64) (limit.Limit, error) {
	l, ok := record.Admits(now.Holder, position, t.Seen.Load().Max)
	if !ok {
		return limit.Limit{}, OutcomeNotHolder
	}
	return l, nil
}

// belowSQL returns what a reservation that goes up to a ceiling adds to its WHERE (arguments name,
// ceiling); id names the row's there. The server itself compares who it is: a node that is not the
// holder changes no row, whatever the proxy believes.
func (t LimitTable) belowSQL(now *link.Choice, id string) string {
	return " AND EXISTS (SELECT 1 FROM " + t.Table.Limit + " AS l JOIN " + t.Table.Holder + " AS h ON h.`holder` = l.`giver` AND h.`term` = l.`term` " +
		"WHERE l.`name` = ? AND l.`giver` = " + now.HolderSQL() + " AND l.`granted` >= ? AND l.`floor` <= CAST(" + id + " AS UNSIGNED) AND h.`complete` = 1 " +
		"AND NOT EXISTS (SELECT 1 FROM " + t.Table.Limit + " AS x WHERE x.`name` = l.`name` AND x.`giver` <> l.`giver` AND x.`wanted` > 0 AND x.`wanted` >= l.`floor`) " +
		"AND NOT EXISTS (SELECT 1 FROM " + t.Table.Holder + " AS o WHERE o.`term` > h.`term` OR o.`term` = h.`term` AND o.`holder` > h.`holder`))"
}

// Want records that this node wants to go up to id at least, in the transaction that moves a row
// of a group there. The node need not be the holder. Another node may become it, give numbers
// beyond, and apply this transaction late: what this node wanted shows it that.
func (t LimitTable) Want(ctx context.Context, tx *sql.Tx, name string, id uint64) error {
	if !t.Grouped() {
		return nil
	}
	now := t.Current()
	if now == nil {
		return link.ErrUnchosen
	}
	_, err := tx.ExecContext(ctx, "INSERT INTO "+t.Table.Limit+" (`name`, `giver`, `term`, `wanted`, `floor`) SELECT ?, "+now.HolderSQL()+", IFNULL(MAX(h.`term`), 0), ?, ? "+
		"FROM "+t.Table.Holder+" AS h WHERE h.`holder` = "+now.HolderSQL()+" AND h.`complete` = 1 "+
		"ON DUPLICATE KEY UPDATE `wanted` = GREATEST("+t.Table.Limit+".`wanted`, VALUES(`wanted`))", name, id, id)
	return WriteError(t.Table.Limit, err)
}

// Lower lowers the holder's floor with a counter that goes down on purpose.
func (t LimitTable) Lower(ctx context.Context, tx *sql.Tx, name string, id uint64) error {
	now := t.Current()
	if !t.Grouped() || now == nil {
		return nil
	}
	_, err := tx.ExecContext(ctx, "UPDATE "+t.Table.Limit+" SET `floor` = LEAST(`floor`, CAST(? AS UNSIGNED)) WHERE `name` = ? AND `giver` = "+now.HolderSQL(), id, name)
	if err == nil { // else what earlier holders wanted would look like a late write
		_, err = tx.ExecContext(ctx, "UPDATE "+t.Table.Limit+" SET `wanted` = LEAST(`wanted`, CAST(? AS UNSIGNED)) WHERE `name` = ? AND `giver` <> "+now.HolderSQL(), id-min(id, 1), name)
	}
	if err != nil && !link.HasCode(err, gomysql.ER_NO_SUCH_TABLE) {
		return fmt.Errorf("write table %s: %w", t.Table.Limit, err)
	}
	return nil
}

// Of returns the limits that this server has recorded under a plan.
func (t LimitTable) Of(ctx context.Context, on link.Querier, plan uint64) ([]limit.Limit, error) {
	record, err := t.scan(ctx, on, "SELECT `name`, `giver`, `term`, `wanted`, `granted`, `floor` FROM "+t.Table.Limit+" WHERE `term` = ?", plan)
	return record.Limits, err
}

// Write is [Store.Record] in a transaction that has locked the plan.
func (t LimitTable) Write(ctx context.Context, tx *sql.Tx, plan uint64, all []limit.Limit) error {
	for some := range slices.Chunk(all, FloorBatch) {
		args := make([]any, 0, 5*len(some))
		for _, l := range some {
			args = append(args, l.Name, l.Giver, plan, l.Wanted, l.Granted)
		}
		_, err := tx.ExecContext(ctx, "INSERT INTO "+t.Table.Limit+" (`name`, `giver`, `term`, `wanted`, `granted`) VALUES (?, ?, ?, ?, ?)"+
			strings.Repeat(", (?, ?, ?, ?, ?)", len(some)-1)+t.higher(), args...)
		if err != nil {
			return fmt.Errorf("write ceilings to table %s: %w", t.Table.Limit, err)
		}
	}
	return nil
}

// higher lets an INSERT keep the higher value, if it was written under the same plan. The term
// comes last, since the other columns look at its old value.
func (t LimitTable) higher() string {
	higher := func(column string) string {
		return fmt.Sprintf("`%[1]s` = IF(%[2]s.`term` = VALUES(`term`), GREATEST(%[2]s.`%[1]s`, VALUES(`%[1]s`)), VALUES(`%[1]s`)), ", column, t.Table.Limit)
	}
	return " ON DUPLICATE KEY UPDATE " + higher("wanted") + higher("granted") + "`term` = VALUES(`term`)"
}

// Begin writes down how far each member of a plan may go from where it begins. All of them have
// recorded that. With goes, the member id, which is this server, may go by it.
func (t LimitTable) Begin(ctx context.Context, tx *sql.Tx, p *change.Plan, id string, goes bool) error {
	var givers string
	args := []any{goes, id}
	for i, m := range p.Members {
		if i > 0 {
			givers += " UNION ALL "
		}
		givers += "SELECT ? AS `id`"
		args = append(args, m.ID)
	}
	_, err := tx.ExecContext(ctx, "INSERT INTO "+t.Table.Limit+" (`name`, `giver`, `term`, `wanted`, `granted`) "+
		"SELECT f.`name`, g.`id`, f.`plan`, f.`ceiling`, IF(? AND g.`id` = ?, f.`ceiling`, 0) FROM "+t.Table.PlanStart+" AS f JOIN ("+givers+") AS g WHERE f.`plan` = ? AND f.`ceiling` > 0"+
		t.higher(), append(args, p.Number)...)
	if err != nil {
		return fmt.Errorf("write the ceilings of plan %d to table %s: %w", p.Number, t.Table.Limit, err)
	}
	return nil
}
