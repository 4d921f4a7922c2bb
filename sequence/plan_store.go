package sequence

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	gomysql "github.com/go-mysql-org/go-mysql/mysql"
	"go.uber.org/zap"

	"seqproxy/internal/logfield"
	"seqproxy/internal/planted"
	"seqproxy/sequence/change"
	"seqproxy/sequence/limit"
)

// planStore is one server's tables as a change of members sees them: a [change.Store].
type planStore struct{ v *store }

// Close implements [change.Store].
func (s planStore) Close() error { return s.v.close() }

// Identify implements [change.Reader].
func (s planStore) Identify(ctx context.Context) (string, error) {
	return s.v.memberID(ctx, s.v.pool())
}

// Report implements [change.Reader].
func (s planStore) Report(ctx context.Context) (change.Report, error) {
	return s.v.report(ctx, s.v.pool())
}

// report is what this server knows of plans.
func (v *store) report(ctx context.Context, on querier) (t change.Report, err error) {
	if t.Membership, _, err = v.membership(ctx, on); err == nil {
		t.Plans, err = v.plans(ctx, on)
	}
	return t, err
}

// Sequences implements [change.Reader].
func (s planStore) Sequences(ctx context.Context) ([]change.Sequence, error) {
	return s.v.sequencesOf(ctx, s.v.pool())
}

// sequencesOf lists what a change looks at of definitions.
func (v *store) sequencesOf(ctx context.Context, on querier) (found []change.Sequence, err error) {
	all, err := v.definitions(ctx, on)
	if err != nil {
		return nil, err
	}
	for i := range all {
		if d := &all[i]; d.live {
			found = append(found, change.Sequence{Name: d.name, Increment: d.def.Increment, Cycle: d.def.Cycle, Order: d.def.Order, Home: d.home})
		}
	}
	return found, nil
}

// handover is what a member that is brought to a plan takes over from another.
type handover struct {
	definitions []defined
	proxies     []Proxy
	limits      []limit.Limit // of all members, as it has recorded them under the plan
}

// Knowledge implements [change.Reader]. Definitions count from those that were members so far.
// What one knows of proxies that left by an older plan does not count: the others have taken
// that over, and it was not told since who has gone.
func (s planStore) Knowledge(ctx context.Context, p *Plan) (change.Knowledge, error) {
	var h handover
	is, _, err := s.v.membership(ctx, s.v.pool())
	if err != nil {
		return nil, err
	}
	if change.HasMember(p.Previous, is.ID) || is.Plan == p.Number {
		if h.definitions, err = s.v.definitions(ctx, s.v.pool()); err != nil {
			return nil, err
		}
	}
	if is.Plan == p.Number {
		limits, err := s.v.limits(ctx, s.v.pool(), p.Number)
		if err != nil {
			return nil, err
		}
		for _, l := range limits {
			if change.HasMember(p.Members, l.Giver) {
				h.limits = append(h.limits, limit.Limit{Name: l.Name, Giver: l.Giver, Wanted: l.Wanted})
			}
		}
	}
	if is.Plan >= p.Number || !is.LeftBefore(p) {
		h.proxies, err = s.v.proxies(ctx)
	}
	return h, err
}

// Floors implements [change.Reader].
func (s planStore) Floors(ctx context.Context, number uint64) (all change.Floors, complete bool, err error) {
	v := s.v
	rows, err := v.pool().QueryContext(ctx, "SELECT p.`floor`, f.`name`, IFNULL(f.`floor`, 0), IFNULL(f.`ceiling`, 0) FROM "+v.table.plan+" AS p LEFT JOIN "+v.table.start+
		" AS f ON f.`plan` = p.`number` WHERE p.`number` = ?", number)
	if err != nil {
		return all, false, fmt.Errorf("read the floors of plan %d from %s: %w", number, v.name(), err)
	}
	defer func() { _ = rows.Close() }()
	for rows.Next() {
		var others sql.Null[uint64]
		var name sql.NullString
		var f change.Floor
		if err := rows.Scan(&others, &name, &f.Floor, &f.Ceiling); err != nil {
			return all, false, fmt.Errorf("read the floors of plan %d from %s: %w", number, v.name(), err)
		}
		all.Others, complete = others.V, others.Valid
		if f.Name = name.String; name.Valid {
			all.Named = append(all.Named, f)
		}
	}
	return all, complete, rows.Err()
}

// Propose implements [change.Stepper].
func (s planStore) Propose(ctx context.Context, p *Plan, base, ballot uint64) (other *Plan, err error) {
	err = s.v.transact(ctx, func(tx *sql.Tx) error {
		// a conflict is that with another coordinator: whose plan is there then decides
		var err error
		other, err = s.v.insertPlan(ctx, tx, p, base, ballot)
		return err
	})
	return other, err
}

// insertPlan writes a plan that a member does not know yet, under a ballot. It reports another
// plan above base that the member has.
func (v *store) insertPlan(ctx context.Context, tx *sql.Tx, p *Plan, base, ballot uint64) (other *Plan, err error) {
	members, err := json.Marshal(p.Members)
	if err != nil {
		return nil, err
	}
	previous, err := json.Marshal(p.Previous)
	if err != nil {
		return nil, err
	}
	// A plan that this one does not know of may have been made since it was drafted, and even have
	// ended.
	const unknown = " WHERE `number` > ? AND `number` <= ? AND `uuid` <> ? AND `state` <> '" + change.Aborted + "'"
	result, err := tx.ExecContext(ctx, "INSERT INTO "+v.table.plan+" (`number`, `uuid`, `state`, `coordinator`, `begun`, `changed`, `interleave`, `block`, `members`, `previous`, "+
		"`ballot`) SELECT ?, ?, ?, ?, UTC_TIMESTAMP(6), UTC_TIMESTAMP(6), ?, ?, ?, ?, ? FROM DUAL WHERE NOT EXISTS (SELECT 1 FROM "+
		v.table.plan+unknown+")", p.Number, p.UUID, change.Proposed, p.Coordinator, p.Interleave, p.Block, string(members), string(previous), ballot,
		base, uint64(math.MaxUint64), p.UUID)
	if err == nil {
		if n, err := result.RowsAffected(); err != nil || n == 1 {
			return nil, err
		}
	} else if !hasCode(err, gomysql.ER_DUP_ENTRY) {
		return nil, err
	}
	known, err := scanPlan(tx.QueryRowContext(ctx, "SELECT "+planFields+" FROM "+v.table.plan+unknown+" ORDER BY `number` DESC LIMIT 1", base, uint64(math.MaxUint64), p.UUID))
	if errors.Is(err, sql.ErrNoRows) {
		known, _, err = v.plan(ctx, tx, p.Number) // an aborted one has the number
	}
	if err != nil || known.UUID != p.UUID {
		return &known, err
	}
	return nil, nil
}

// promised reads what a member has promised of a plan, and locks it. It is false if the member
// does not know the plan. ErrTakenOver: the change was ended, and another was made.
func (v *store) promised(ctx context.Context, tx *sql.Tx, p *Plan) (was change.Promise, ok bool, err error) {
	var uuid string
	err = tx.QueryRowContext(ctx, "SELECT `uuid`, `state`, `ballot` FROM "+v.table.plan+" WHERE `number` = ? FOR UPDATE", p.Number).Scan(&uuid, &was.State, &was.Ballot)
	switch {
	case errors.Is(err, sql.ErrNoRows):
		return change.Promise{}, false, nil
	case err != nil:
		return change.Promise{}, false, fmt.Errorf("read plan %d of table %s: %w", p.Number, v.table.plan, err)
	case uuid != p.UUID:
		return change.Promise{}, false, errOtherPlan
	}
	return was, true, nil
}

// errOtherPlan: a member knows another plan under the number, so that this one was never decided,
// and never will be.
var errOtherPlan = errors.New("it knows another plan of that number")

// Promise implements [change.Stepper].
func (s planStore) Promise(ctx context.Context, p *Plan, base, ballot uint64) (was change.Promise, known bool, err error) {
	v := s.v
	err = v.transact(ctx, func(tx *sql.Tx) error {
		if was, known, err = v.promised(ctx, tx, p); err != nil {
			return err
		}
		if !known {
			other, err := v.insertPlan(ctx, tx, p, base, ballot)
			if err == nil && other != nil {
				err = errOtherPlan
			}
			return err
		}
		if was.Ballot >= ballot {
			return change.ErrTakenOver
		}
		_, err = tx.ExecContext(ctx, "UPDATE "+v.table.plan+" SET `ballot` = ?, `coordinator` = ?, `changed` = UTC_TIMESTAMP(6) WHERE `number` = ?",
			ballot, p.Coordinator, p.Number)
		return err
	})
	return was, known, err
}

// fenced runs a step in one transaction where the plan is in one of some states, unless another
// coordinator has taken over.
func (v *store) fenced(ctx context.Context, p *Plan, ballot uint64, step func(tx *sql.Tx, state string) error) error {
	return v.transact(ctx, func(tx *sql.Tx) error {
		was, ok, err := v.promised(ctx, tx, p)
		switch {
		case errors.Is(err, errOtherPlan):
			return change.ErrTakenOver
		case err != nil:
			return err
		case !ok || was.Ballot != ballot && !planted.Fault(planted.Ballot):
			return change.ErrTakenOver
		}
		return step(tx, was.State)
	})
}

// setState writes the state of a plan on a member within a step.
func (v *store) setState(ctx context.Context, tx *sql.Tx, number uint64, state string) error {
	_, err := tx.ExecContext(ctx, "UPDATE "+v.table.plan+" SET `state` = ?, `changed` = UTC_TIMESTAMP(6) WHERE `number` = ?", state, number)
	if err != nil {
		return fmt.Errorf("write the state %q of plan %d to %s: %w", state, number, v.name(), err)
	}
	return nil
}

// Freeze implements [change.Stepper]. The end of the column stops everybody, on whatever snapshot
// he reads: a number added to it is error 1690, for applications that count in the table as for
// proxies that know of no plan.
func (s planStore) Freeze(ctx context.Context, p *Plan, ballot uint64) error {
	v := s.v
	return v.fenced(ctx, p, ballot, func(tx *sql.Tx, state string) error {
		if state != change.Proposed {
			return change.ErrTakenOver
		}
		// First, so that nobody is waited for who waits for this.
		if _, err := v.lockRows(ctx, tx); err != nil {
			return err
		}
		if len(p.Members) > 1 {
			all, err := v.sequencesOf(ctx, tx)
			if err == nil {
				err = p.RefuseSingles(all) // made since the change was begun
			}
			if err != nil {
				return err
			}
		}
		// What a member that left was frozen at is none of what it gave.
		if err := v.restoreRows(ctx, tx, "<> ?", p.Number); err != nil {
			return err
		}
		if err := v.saveRows(ctx, tx, p.Number); err != nil {
			return err
		}
		return v.setState(ctx, tx, p.Number, change.Frozen)
	})
}

// Gave implements [change.Stepper]: what the rows held, how far a name without a row may have gone,
// the tombstones of what was dropped, and the ceilings that this one has recorded for a member that
// is missing.
func (s planStore) Gave(ctx context.Context, p *Plan, ballot uint64, missing string) (given change.Given, err error) {
	v := s.v
	err = v.fenced(ctx, p, ballot, func(tx *sql.Tx, state string) error {
		given = change.Given{}
		if state != change.Frozen {
			return change.ErrTakenOver
		}
		if err := v.freezeLate(ctx, tx, p); err != nil {
			return err
		}
		was, _, err := v.membership(ctx, tx)
		if err != nil {
			return err
		}
		ends, err := v.ends(ctx, tx)
		if err != nil {
			return err
		}
		given.End = v.seen.Load().max
		add := func(like change.Gave, text string, args ...any) {
			if err == nil {
				err = v.eachName(ctx, tx, func(name string, upTo uint64) {
					like.Name, like.UpTo, like.End = name, upTo, ends[change.Folded(name)]
					given.Names = append(given.Names, like)
				}, text, args...)
			}
		}
		add(change.Gave{Row: true}, "SELECT `name`, `saved` FROM "+v.table.start+" WHERE `plan` = ? AND `saved` IS NOT NULL", p.Number)
		if was.Count > 1 { // somebody may have deleted a row, whose numbers proxies hold
			add(change.Gave{Missing: true}, "SELECT l.`name`, l.`granted` FROM "+v.table.limit+" AS l LEFT JOIN "+v.table.start+
				" AS s ON s.`plan` = ? AND s.`name` = l.`name` AND s.`saved` IS NOT NULL WHERE l.`giver` = ? AND l.`term` = ? AND l.`granted` > 0 AND s.`name` IS NULL", p.Number, was.ID, was.Plan)
		}
		add(change.Gave{}, "SELECT `name`, `floor` FROM "+v.table.options+" WHERE `floor` > 0")
		if missing != "" {
			add(change.Gave{}, "SELECT `name`, `wanted` FROM "+v.table.limit+" WHERE `giver` = ? AND `term` = ?", missing, was.Plan)
		}
		return err
	})
	return given, err
}

// eachName calls f with each name that is read, and the number beside it.
func (v *store) eachName(ctx context.Context, on querier, f func(name string, n uint64), text string, args ...any) error {
	rows, err := on.QueryContext(ctx, text, args...)
	if err != nil {
		return err
	}
	defer func() { _ = rows.Close() }()
	for rows.Next() {
		var name string
		var n uint64
		if err := rows.Scan(&name, &n); err != nil {
			return err
		}
		f(name, n)
	}
	return rows.Err()
}

// namesOf reads names.
func (v *store) namesOf(ctx context.Context, on querier, text string, args ...any) (names []string, err error) {
	rows, err := on.QueryContext(ctx, text, args...)
	if err != nil {
		return nil, err
	}
	defer func() { _ = rows.Close() }()
	for rows.Next() {
		var name string
		if err := rows.Scan(&name); err != nil {
			return nil, err
		}
		names = append(names, name)
	}
	return names, rows.Err()
}

// ends reads where the sequences end that a member knows, by folded name.
func (v *store) ends(ctx context.Context, on querier) (map[string]uint64, error) {
	all, err := v.definitions(ctx, on)
	if err != nil {
		return nil, err
	}
	ends := make(map[string]uint64, len(all))
	for i := range all {
		name, end := change.Folded(all[i].name), all[i].def.Limit(v.seen.Load().max)
		if known, ok := ends[name]; !ok || end < known {
			ends[name] = end
		}
	}
	return ends, nil
}

// SetFloors implements [change.Stepper].
func (s planStore) SetFloors(ctx context.Context, p *Plan, ballot uint64, all change.Floors) error {
	return s.v.fenced(ctx, p, ballot, func(tx *sql.Tx, state string) error {
		if state != change.Frozen {
			return change.ErrTakenOver
		}
		return s.v.writeFloors(ctx, tx, p.Number, all)
	})
}

// floorBatch bounds the rows in one statement.
const floorBatch = 500

// writeFloors writes to a member where a plan begins. What is higher stays.
func (v *store) writeFloors(ctx context.Context, tx *sql.Tx, plan uint64, all change.Floors) error {
	if _, err := tx.ExecContext(ctx, "UPDATE "+v.table.plan+" SET `floor` = GREATEST(IFNULL(`floor`, 0), ?) WHERE `number` = ?", all.Others, plan); err != nil {
		return fmt.Errorf("write the floor of plan %d to %s: %w", plan, v.name(), err)
	}
	for some := range slices.Chunk(all.Named, floorBatch) {
		var text strings.Builder
		text.WriteString("INSERT INTO " + v.table.start + " (`plan`, `name`, `floor`, `ceiling`) VALUES ")
		args := make([]any, 0, 4*len(some))
		for i, f := range some {
			if i > 0 {
				text.WriteString(", ")
			}
			text.WriteString("(?, ?, ?, ?)")
			args = append(args, plan, f.Name, f.Floor, f.Ceiling)
		}
		text.WriteString(" ON DUPLICATE KEY UPDATE `floor` = GREATEST(`floor`, VALUES(`floor`)), `ceiling` = GREATEST(`ceiling`, VALUES(`ceiling`))")
		if _, err := tx.ExecContext(ctx, text.String(), args...); err != nil {
			return fmt.Errorf("write the floors of plan %d to %s: %w", plan, v.name(), err)
		}
	}
	return nil
}

// Accept implements [change.Stepper].
func (s planStore) Accept(ctx context.Context, p *Plan, ballot uint64) error {
	return s.v.fenced(ctx, p, ballot, func(tx *sql.Tx, state string) error {
		if state != change.Frozen {
			return change.ErrTakenOver
		}
		return s.v.setState(ctx, tx, p.Number, change.Accepted)
	})
}

// Thaw implements [change.Stepper].
func (s planStore) Thaw(ctx context.Context, p *Plan, ballot uint64) error {
	err := s.v.fenced(ctx, p, ballot, func(tx *sql.Tx, state string) error {
		switch state {
		case change.Aborted:
			return nil
		case change.Overtaken:
			return change.ErrTakenOver
		case change.InForce:
			return fmt.Errorf("plan %d is in force there", p.Number) // never: it was not decided
		}
		return s.v.thaw(ctx, tx, p)
	})
	if err == nil {
		s.v.announce(ctx)
	}
	return err
}

// Withdraw implements [change.Stepper].
func (s planStore) Withdraw(ctx context.Context, p *Plan, ballot uint64) error {
	return s.v.transact(ctx, func(tx *sql.Tx) error {
		_, err := tx.ExecContext(ctx, "DELETE FROM "+s.v.table.plan+" WHERE `number` = ? AND `uuid` = ? AND `state` = ? AND `ballot` = ?",
			p.Number, p.UUID, change.Proposed, ballot)
		return err
	})
}

// Obey implements [change.Settler].
func (s planStore) Obey(ctx context.Context, p *Plan, id string, floors change.Floors, known []change.Knowledge) (brought bool, err error) {
	v := s.v
	var theirs handover
	var lists [][]Proxy
	for _, k := range known {
		h := k.(handover)
		theirs.definitions, lists = append(theirs.definitions, h.definitions...), append(lists, h.proxies)
		theirs.limits = append(theirs.limits, h.limits...)
	}
	theirs.definitions, theirs.proxies = newest(theirs.definitions), mergeProxies(lists)
	var was Membership
	err = v.transact(ctx, func(tx *sql.Tx) (err error) {
		state, err := v.lockState(ctx, tx, p)
		if err != nil {
			return err
		}
		if was, err = v.lockMembership(ctx, tx); err != nil || was.Plan >= p.Number {
			brought = false
			return err
		}
		now := *p
		now.State = change.InForce
		if state == "" {
			if err := v.savePlan(ctx, tx, &now); err != nil {
				return err
			}
		}
		goes := id
		if state != change.Frozen && state != change.Accepted {
			// it was away, or has forgotten. Perhaps nobody has recorded how far it may go
			goes = ""
			if err := v.writeFloors(ctx, tx, p.Number, floors); err != nil {
				return err
			}
		}
		if brought, err = v.bring(ctx, tx, p, id, theirs); err != nil || !brought {
			return err
		}
		if change.HasMember(p.Members, id) {
			if err := v.writeStartLimits(ctx, tx, p, goes); err != nil {
				return err
			}
			if err := v.writeLimits(ctx, tx, p.Number, theirs.limits); err != nil {
				return err
			}
		}
		_, err = tx.ExecContext(ctx, "UPDATE "+v.table.plan+" SET `state` = ? WHERE `number` < ? AND `state` IN ("+openStates+")", change.Overtaken, p.Number)
		if err != nil {
			return fmt.Errorf("end older changes: %w", err)
		}
		// Not the whole row: a coordinator may be at work there, and goes by what was promised.
		return v.setState(ctx, tx, p.Number, change.InForce)
	})
	if err != nil {
		return false, fmt.Errorf("bring sequence server %s to plan %d: %w", v.name(), p.Number, err)
	}
	if brought {
		v.log.Info("plan obeyed", zap.Uint64("plan", p.Number), zap.Uint64("plan_before", was.Plan))
		v.announce(ctx)
	}
	return brought, nil
}

// openStates are those of a change that has yet to be ended, as SQL has them.
const openStates = "'" + change.Proposed + "', '" + change.Frozen + "', '" + change.Accepted + "'"

// lockState reads how far a change is on a member, and locks that; "" if the member does not know
// it.
func (v *store) lockState(ctx context.Context, tx *sql.Tx, p *Plan) (state string, err error) {
	err = tx.QueryRowContext(ctx, "SELECT `state` FROM "+v.table.plan+" WHERE `number` = ? AND `uuid` = ? FOR UPDATE", p.Number, p.UUID).Scan(&state)
	if err != nil && !errors.Is(err, sql.ErrNoRows) {
		return "", fmt.Errorf("read plan %d of table %s: %w", p.Number, v.table.plan, err)
	}
	return state, nil
}

// LetGo implements [change.Settler].
func (s planStore) LetGo(ctx context.Context, p *Plan) error {
	v := s.v
	err := v.transact(ctx, func(tx *sql.Tx) error {
		state, err := v.lockState(ctx, tx, p)
		now := Plan{State: state}
		if err != nil || state == "" || !now.Open() {
			return err
		}
		return v.thaw(ctx, tx, p)
	})
	if err != nil {
		return fmt.Errorf("let %s go on after change %s, which was aborted: %w", v.name(), p.UUID, err)
	}
	v.log.Warn("change of sequence servers aborted", zap.String("change", p.UUID), zap.Uint64("plan", p.Number))
	v.announce(ctx)
	return nil
}

// announce lets all proxies look again within a second. Whatever fails, they notice by themselves
// later.
func (v *store) announce(ctx context.Context) {
	if err := v.moveVersion(ctx, v.pool()); err != nil {
		v.log.Debug("change of plans not announced", logfield.Err(err))
	}
}

// defaultFloor is the floor of the names that the others of a plan do not have.
func (v *store) defaultFloor(ctx context.Context, tx *sql.Tx, plan uint64) (floor uint64, err error) {
	var known sql.Null[uint64]
	err = tx.QueryRowContext(ctx, "SELECT `floor` FROM "+v.table.plan+" WHERE `number` = ?", plan).Scan(&known)
	switch {
	case err != nil:
		return 0, fmt.Errorf("read the floor of plan %d on %s: %w", plan, v.name(), err)
	case !known.Valid:
		return 0, fmt.Errorf("%s does not have the floors of plan %d", v.name(), plan)
	}
	return known.V, nil
}
