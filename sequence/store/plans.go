package store

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"time"

	gomysql "github.com/go-mysql-org/go-mysql/mysql"

	"seqproxy/sequence/change"
	"seqproxy/sequence/define"
	"seqproxy/sequence/link"
)

// The tables of the plan beside the first one.
const (
	createMember = "CREATE TABLE IF NOT EXISTS %s (`one` tinyint NOT NULL DEFAULT 1, `id` char(36) CHARACTER SET ascii NOT NULL, " +
		"`plan` bigint unsigned NOT NULL DEFAULT 0, `position` int NOT NULL DEFAULT 0, `count` int NOT NULL DEFAULT 0, " +
		"`interleave` varchar(8) CHARACTER SET ascii NOT NULL DEFAULT '', `block` bigint unsigned NOT NULL DEFAULT 0, PRIMARY KEY (`one`)) ENGINE=InnoDB"
	createPlan = "CREATE TABLE IF NOT EXISTS %s (`number` bigint unsigned NOT NULL, `uuid` char(36) CHARACTER SET ascii NOT NULL, " +
		"`state` varchar(16) CHARACTER SET ascii NOT NULL, `coordinator` varchar(255) CHARACTER SET utf8mb4 NOT NULL, " +
		"`begun` datetime(6) NOT NULL, `changed` datetime(6) NOT NULL, `interleave` varchar(8) CHARACTER SET ascii NOT NULL, " +
		"`block` bigint unsigned NOT NULL, `members` text CHARACTER SET utf8mb4 NOT NULL, `previous` text CHARACTER SET utf8mb4 NOT NULL, " +
		"`ballot` bigint unsigned NOT NULL DEFAULT 0, " + // see change.Plan
		// of the names that no member knew; NULL: this one has no floors of the plan
		"`floor` bigint unsigned DEFAULT NULL, " +
		"PRIMARY KEY (`number`)) ENGINE=InnoDB"
	createPlanStart = "CREATE TABLE IF NOT EXISTS %s (`plan` bigint unsigned NOT NULL, `name` %s NOT NULL, `floor` bigint unsigned NOT NULL DEFAULT 0, " +
		// how far each member may go once the plan is in force, before more is recorded; 0: not at
		// all
		"`ceiling` bigint unsigned NOT NULL DEFAULT 0, " +
		// where the row stood when it was frozen for the plan; NULL: it is not
		"`saved` bigint unsigned DEFAULT NULL, " +
		"PRIMARY KEY (`plan`, `name`)) ENGINE=InnoDB"
)

// Suffixes of their names.
const (
	memberSuffix    = "_member"
	planSuffix      = "_plan"
	PlanStartSuffix = "_plan_start"
)

// PlanTable is the tables of what a server is, and of the plans that it knows.
type PlanTable struct{ *Schema }

// ForUpdate locks what a transaction reads and is about to write. The transaction sees what is
// there now, also if it has read before. The lock lasts until its end.
const ForUpdate = " FOR UPDATE"

// Membership reads what this server says of itself: nothing if the table is not there. locking may
// be ForUpdate.
func (t PlanTable) Membership(ctx context.Context, on link.Querier, locking string) (m change.Membership, err error) {
	err = on.QueryRowContext(ctx, "SELECT `id`, `plan`, `position`, `count`, `interleave`, `block` FROM "+t.Table.Member+" WHERE `one` = 1"+locking).
		Scan(&m.ID, &m.Plan, &m.Position, &m.Count, &m.Interleave, &m.Block)
	switch {
	case link.HasCode(err, gomysql.ER_NO_SUCH_TABLE), errors.Is(err, sql.ErrNoRows):
		return change.Membership{}, nil
	case err != nil:
		return change.Membership{}, fmt.Errorf("read table %s: %w", t.Table.Member, err)
	}
	return m, nil
}

// SaveMembership writes what this server is in a plan, in a transaction. The id of a server that
// has one stays. Every reservation reads this row. Only changes of members write it.
func (t PlanTable) SaveMembership(ctx context.Context, on link.Querier, m change.Membership) error {
	_, err := on.ExecContext(ctx, "INSERT INTO "+t.Table.Member+" (`one`, `id`, `plan`, `position`, `count`, `interleave`, `block`) VALUES (1, ?, ?, ?, ?, ?, ?) "+
		"ON DUPLICATE KEY UPDATE `plan` = VALUES(`plan`), `position` = VALUES(`position`), `count` = VALUES(`count`), "+
		"`interleave` = VALUES(`interleave`), `block` = VALUES(`block`)", m.ID, m.Plan, m.Position, m.Count, m.Interleave, m.Block)
	if err != nil {
		return fmt.Errorf("write table %s: %w", t.Table.Member, err)
	}
	return nil
}

// MustObey makes sure that the server obeys a plan, and goes on to until the transaction ends.
func (t PlanTable) MustObey(ctx context.Context, tx *sql.Tx, plan uint64) error {
	var now uint64
	err := tx.QueryRowContext(ctx, "SELECT `plan` FROM "+t.Table.Member+" WHERE `one` = 1"+shared).Scan(&now)
	if err != nil && !errors.Is(err, sql.ErrNoRows) {
		return fmt.Errorf("read table %s: %w", t.Table.Member, err)
	}
	if now != plan {
		return OutcomeOldPlan
	}
	return nil
}

// MemberID returns the id of this server, which it gets the first time that it is asked for. The
// tables of the plan must be there.
func (t PlanTable) MemberID(ctx context.Context, on link.Querier) (id string, err error) {
	if _, err = on.ExecContext(ctx, "INSERT IGNORE INTO "+t.Table.Member+" (`one`, `id`) VALUES (1, UUID())"); err == nil {
		err = on.QueryRowContext(ctx, "SELECT `id` FROM "+t.Table.Member+" WHERE `one` = 1").Scan(&id)
	}
	if err != nil {
		return "", fmt.Errorf("identify this server in table %s: %w", t.Table.Member, err)
	}
	return id, nil
}

// All reads all plans that this server knows, in the order of their numbers. Without the table
// there are none. locking may be ForUpdate.
func (t PlanTable) All(ctx context.Context, on link.Querier, locking string) ([]change.Plan, error) {
	rows, err := on.QueryContext(ctx, "SELECT `number`, `uuid`, `state`, `coordinator`, TIMESTAMPDIFF(MICROSECOND, '1970-01-01', `begun`), "+
		"`interleave`, `block`, `members`, `previous`, `ballot` FROM "+t.Table.Plan+" ORDER BY `number`"+locking)
	if link.HasCode(err, gomysql.ER_NO_SUCH_TABLE) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read table %s: %w", t.Table.Plan, err)
	}
	defer func() { _ = rows.Close() }()
	var all []change.Plan
	for rows.Next() {
		var p change.Plan
		var begun int64
		var members, previous []byte
		err := rows.Scan(&p.Number, &p.UUID, &p.State, &p.Coordinator, &begun, &p.Interleave, &p.Block, &members, &previous, &p.Ballot)
		if err == nil {
			err = errors.Join(json.Unmarshal(members, &p.Members), json.Unmarshal(previous, &p.Previous))
		}
		if err != nil {
			return nil, fmt.Errorf("read table %s: %w", t.Table.Plan, err)
		}
		p.Begun = time.UnixMicro(begun).UTC()
		all = append(all, p)
	}
	return all, rows.Err()
}

// Insert writes a plan. It fails if this server has one of that number.
func (t PlanTable) Insert(ctx context.Context, on link.Querier, p *change.Plan) error {
	return t.write(ctx, on, "INSERT", p)
}

// Save writes a plan, whatever this server had under its number.
func (t PlanTable) Save(ctx context.Context, on link.Querier, p *change.Plan) error {
	return t.write(ctx, on, "REPLACE", p)
}

// write writes a plan. Begun is when this server hears of it.
func (t PlanTable) write(ctx context.Context, on link.Querier, verb string, p *change.Plan) error {
	members, err := json.Marshal(p.Members)
	if err != nil {
		return err
	}
	previous, err := json.Marshal(p.Previous)
	if err != nil {
		return err
	}
	_, err = on.ExecContext(ctx, verb+" INTO "+t.Table.Plan+" (`number`, `uuid`, `state`, `coordinator`, `begun`, `changed`, `interleave`, `block`, `members`, `previous`, `ballot`) "+
		"VALUES (?, ?, ?, ?, UTC_TIMESTAMP(6), UTC_TIMESTAMP(6), ?, ?, ?, ?, ?)", p.Number, p.UUID, p.State, p.Coordinator, p.Interleave, p.Block, string(members), string(previous), p.Ballot)
	if err != nil {
		return fmt.Errorf("write plan %d to table %s: %w", p.Number, t.Table.Plan, err)
	}
	return nil
}

// FloorOf is the number that no member may give of a name under a plan, nor any below: that of
// the name, or of all that were not known when the plan was made. It is 0 if the plan says nothing
// of it.
func (t PlanTable) FloorOf(ctx context.Context, on link.Querier, plan uint64, name string) (floor uint64, err error) {
	others := "p.`floor`"
	if define.IsCounter(name) {
		others = "0" // see [change.Floors]
	}
	err = on.QueryRowContext(ctx, "SELECT COALESCE((SELECT f.`floor` FROM "+t.Table.PlanStart+" AS f WHERE f.`plan` = p.`number` AND f.`name` = ?), "+others+", 0) FROM "+
		t.Table.Plan+" AS p WHERE p.`number` = ?", name, plan).Scan(&floor)
	switch {
	case link.HasCode(err, gomysql.ER_NO_SUCH_TABLE), errors.Is(err, sql.ErrNoRows), link.IsNoSuchText(err):
		return 0, nil
	case err != nil:
		return 0, fmt.Errorf("read table %s: %w", t.Table.PlanStart, err)
	}
	return floor, nil
}

// frozen looks at a row whose id is the highest of its column: it may be exhausted, or
// frozen by a change of plans. Then it is a row frozen where it stood.
func (t PlanTable) frozen(ctx context.Context, on link.Querier, r *Row) error {
	if r.Frozen || r.ID < t.Seen.Load().Max {
		return nil
	}
	var saved sql.NullString
	var id string
	err := on.QueryRowContext(ctx, "SELECT CAST(s.`id` AS CHAR), (SELECT f.`saved` FROM "+t.Table.PlanStart+" AS f WHERE f.`name` = s.`name` AND f.`saved` IS NOT NULL ORDER BY f.`plan` DESC LIMIT 1) FROM "+
		t.Table.Sequence+" AS s WHERE s.`name` = ?", r.Name).Scan(&id, &saved)
	switch {
	case link.HasCode(err, gomysql.ER_NO_SUCH_TABLE), errors.Is(err, sql.ErrNoRows):
		return nil
	case err != nil:
		return fmt.Errorf("read what the row of %q held when it was frozen: %w", r.Name, err)
	case !saved.Valid:
		if id == strconv.FormatUint(r.ID, 10) {
			return nil
		}
		saved.String = id // the change has ended since it was read
	}
	r.before, err = strconv.ParseUint(saved.String, 10, 64)
	r.Frozen = err == nil
	return err
}

// shared keeps what was read as it is until the transaction ends.
const shared = " LOCK IN SHARE MODE"

// RefuseWhileChanging keeps definitions as they are from the freeze to the start of a plan, within
// the transaction that would change them, after it has locked its row: a row that was made
// meanwhile would be in no floor, and the tombstone of one that was dropped at the end of the
// column.
func (t PlanTable) RefuseWhileChanging(ctx context.Context, tx *sql.Tx) error {
	return t.RefuseChange(ctx, tx, "", shared)
}

// RefuseAccepted is RefuseWhileChanging for changes to a plan above a number that are accepted.
func (t PlanTable) RefuseAccepted(ctx context.Context, on link.Querier, above uint64) error {
	return t.RefuseChange(ctx, on, "`number` > "+strconv.FormatUint(above, 10)+" AND `state` = '"+change.Accepted+"' AND ", "")
}

// RefuseChange is RefuseWhileChanging for the changes that a condition before an AND is true of.
// locking may be shared.
func (t PlanTable) RefuseChange(ctx context.Context, on link.Querier, condition, locking string) error {
	var uuid string
	err := on.QueryRowContext(ctx, "SELECT `uuid` FROM "+t.Table.Plan+" WHERE "+condition+"`state` IN ('"+
		change.Frozen+"', '"+change.Accepted+"') LIMIT 1"+locking).Scan(&uuid)
	switch {
	case link.HasCode(err, gomysql.ER_NO_SUCH_TABLE), errors.Is(err, sql.ErrNoRows):
		return nil
	case err != nil:
		return fmt.Errorf("look whether the set of sequence servers is being changed: %w", err)
	}
	return OutcomeFrozen
}
