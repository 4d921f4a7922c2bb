package sequence

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strings"

	"go.uber.org/zap"

	"seqproxy/internal/logfield"
	"seqproxy/internal/planted"
	"seqproxy/sequence/change"
	"seqproxy/sequence/define"
	"seqproxy/sequence/link"
	"seqproxy/sequence/store"
)

// planStore is one server's tables as a change of members sees them: a [change.Store].
type planStore struct{ *store.Store }

// Close implements [change.Store].
func (s planStore) Close() error { return s.Store.Close() }

// Report implements [change.Reader].
func (s planStore) Report(ctx context.Context) (change.Report, error) {
	return s.Plans.Report(ctx, s.Pool())
}

// Look implements [change.Reader].
func (s planStore) Look(ctx context.Context) (is change.Look, err error) {
	if _, err = s.Plans.MemberID(ctx, s.Pool()); err != nil {
		return is, err
	}
	if is.Report, err = s.Report(ctx); err == nil {
		is.Sequences, err = s.sequences(ctx, s.Pool())
	}
	return is, err
}

// sequences lists what a change looks at of definitions.
func (s planStore) sequences(ctx context.Context, on link.Querier) (found []change.Sequence, err error) {
	all, err := s.Options.All(ctx, on)
	if err != nil {
		return nil, err
	}
	for i := range all {
		if d := &all[i]; d.Live {
			found = append(found, change.Sequence{
				Name: d.Name, End: d.Def.Limit(s.Seen.Load().Max), Increment: d.Def.Increment, Cycle: d.Def.Cycle, Clock: d.Def.Kind.HasClock(), Order: d.Def.Order, Home: d.Home,
			})
		}
	}
	return found, nil
}

// handover is what a member that is brought to a plan takes over from another, besides floors.
type handover struct {
	definitions []store.Defined
	proxies     []Proxy
}

// Knowledge implements [change.Reader]. Definitions count from those that were members so far, and
// proxies from those that accepted, who have all.
func (s planStore) Knowledge(ctx context.Context, p *Plan) (known change.Knowledge, err error) {
	var h handover
	if known.Floors, known.Complete, err = s.floors(ctx, p); err != nil {
		return known, err
	}
	is, _, err := s.Plans.Membership(ctx, s.Pool())
	if err != nil {
		return known, err
	}
	if change.HasMember(p.Previous, is.ID) || is.Plan == p.Number {
		if h.definitions, err = s.definitions(ctx, p, &is); err != nil {
			return known, err
		}
	}
	if known.Complete || is.Plan == p.Number {
		h.proxies, err = s.Proxies.List(ctx)
	}
	known.More = h
	return known, err
}

// definitions are those that a server tells of. Until it obeys a plan it tells of no row but those
// that were frozen: somebody may have made one by hand since, and what that gives is not known yet.
// One that leaves tells of none.
func (s planStore) definitions(ctx context.Context, p *Plan, is *Membership) ([]store.Defined, error) {
	if is.Plan > p.Number || is.Plan == p.Number && is.Count > 0 {
		return s.Options.All(ctx, s.Pool())
	}
	frozen := make(map[string]bool)
	err := selectNumbers(ctx, s.Pool(), func(name string, _ uint64) { frozen[name] = true }, "SELECT s.`name`, f.`saved` FROM "+s.Table.Sequence+" AS s JOIN "+s.Table.PlanStart+
		" AS f ON f.`name` = s.`name` AND f.`plan` = ? AND f.`saved` IS NOT NULL JOIN "+s.Table.Member+" AS m ON m.`one` = 1 AND m.`plan` < f.`plan`", p.Number)
	if err != nil {
		return nil, fmt.Errorf("read which rows of %s were frozen for plan %d: %w", s.Name(), p.Number, err)
	}
	all, err := s.Options.All(ctx, s.Pool())
	return slices.DeleteFunc(all, func(d store.Defined) bool { return d.Live && !frozen[d.Name] }), err
}

// floors reads where a plan begins. complete is false where the server does not have all.
func (s planStore) floors(ctx context.Context, p *Plan) (all change.Floors, complete bool, err error) {
	rows, err := s.Pool().QueryContext(ctx, "SELECT p.`floor`, f.`name`, IFNULL(f.`floor`, 0), IFNULL(f.`ceiling`, 0) FROM "+s.Table.Plan+" AS p LEFT JOIN "+s.Table.PlanStart+
		" AS f ON f.`plan` = p.`number` WHERE p.`number` = ? AND p.`uuid` = ?", p.Number, p.UUID)
	if err != nil {
		return all, false, fmt.Errorf("read the floors of plan %d from %s: %w", p.Number, s.Name(), err)
	}
	defer func() { _ = rows.Close() }()
	for rows.Next() {
		var others sql.Null[uint64]
		var name sql.NullString
		var f change.Floor
		if err := rows.Scan(&others, &name, &f.Floor, &f.Ceiling); err != nil {
			return all, false, fmt.Errorf("read the floors of plan %d from %s: %w", p.Number, s.Name(), err)
		}
		all.Others, complete = others.V, others.Valid
		if f.Name = name.String; name.Valid {
			all.Named = append(all.Named, f)
		}
	}
	return all, complete, rows.Err()
}

// Promise implements [change.Stepper].
func (s planStore) Promise(ctx context.Context, p *Plan, base, ballot uint64) (was string, err error) {
	err = s.Transact(ctx, func(tx *sql.Tx) error {
		now, all, err := s.lockPlan(ctx, tx, p)
		if err != nil {
			return err
		}
		if was = now.State; was == "" {
			if other := p.Meets(all, base); other != nil {
				return &change.OtherPlanError{Plan: *other}
			}
			proposed := *p
			proposed.State, proposed.Ballot = change.Proposed, ballot
			return s.Plans.Insert(ctx, tx, &proposed)
		}
		if now.Ballot > ballot {
			return change.ErrTakenOver
		}
		_, err = tx.ExecContext(ctx, "UPDATE "+s.Table.Plan+" SET `ballot` = ?, `coordinator` = ?, `changed` = UTC_TIMESTAMP(6) WHERE `number` = ?",
			ballot, p.Coordinator, p.Number)
		return err
	})
	return was, err
}

// lockPlan reads all that a member knows of plans, and locks it. now is what it knows of a change, in
// which there is nothing if it does not know that.
func (s planStore) lockPlan(ctx context.Context, tx *sql.Tx, p *Plan) (now Plan, all []Plan, err error) {
	all, err = s.Plans.Lock(ctx, tx)
	if known := change.Find(all, p.UUID); known != nil {
		now = *known
	}
	return now, all, err
}

// step runs a step of a change in one transaction, on a member where the change is in a state,
// unless another coordinator has taken over.
func (s planStore) step(ctx context.Context, p *Plan, ballot uint64, from string, step func(tx *sql.Tx) error) error {
	return s.Transact(ctx, func(tx *sql.Tx) error {
		now, _, err := s.lockPlan(ctx, tx, p)
		if err != nil {
			return err
		}
		if now.State != from || now.Ballot != ballot && !planted.Fault(planted.Ballot) {
			return change.ErrTakenOver
		}
		return step(tx)
	})
}

// setState writes the state of a plan on a member within a step.
func (s planStore) setState(ctx context.Context, tx *sql.Tx, number uint64, state string) error {
	_, err := tx.ExecContext(ctx, "UPDATE "+s.Table.Plan+" SET `state` = ?, `changed` = UTC_TIMESTAMP(6) WHERE `number` = ?", state, number)
	if err != nil {
		return fmt.Errorf("write the state %q of plan %d to %s: %w", state, number, s.Name(), err)
	}
	return nil
}

// Freeze implements [change.Stepper]. The end of the column stops everybody, on whatever snapshot
// he reads: a number added to it is error 1690, for applications that count in the table as for
// proxies that know of no plan. From then on all is as it is read here: what the rows held, how far
// a name without a row may have gone, the tombstones of what was dropped, and the ceilings that
// this one has recorded for a member that is missing.
func (s planStore) Freeze(ctx context.Context, p *Plan, ballot uint64, missing string) (given change.Given, err error) {
	err = s.step(ctx, p, ballot, change.Proposed, func(tx *sql.Tx) error {
		// First, so that nobody is waited for who waits for this.
		if err := s.lockRows(ctx, tx); err != nil {
			return err
		}
		// What a member that left was frozen at is none of what it gave.
		if err := s.restoreRows(ctx, tx, "<> ?", p.Number); err != nil {
			return err
		}
		if err := s.saveRows(ctx, tx, p.Number); err != nil {
			return err
		}
		if given, err = s.gave(ctx, tx, p, missing); err != nil {
			return err
		}
		return s.setState(ctx, tx, p.Number, change.Frozen)
	})
	return given, err
}

// gave reads what a member gave, whose rows are frozen.
func (s planStore) gave(ctx context.Context, tx *sql.Tx, p *Plan, missing string) (given change.Given, err error) {
	was, _, err := s.Plans.Membership(ctx, tx)
	if err != nil {
		return given, err
	}
	if given.Sequences, err = s.sequences(ctx, tx); err != nil {
		return given, err
	}
	given.End = s.Seen.Load().Max
	add := func(like change.Gave, text string, args ...any) {
		if err == nil {
			err = selectNumbers(ctx, tx, func(name string, upTo uint64) {
				like.Name, like.UpTo, like.Ticks = name, upTo, define.IsWorker(name)
				given.Names = append(given.Names, like)
			}, text, args...)
		}
	}
	add(change.Gave{Row: true}, "SELECT `name`, `saved` FROM "+s.Table.PlanStart+" WHERE `plan` = ? AND `saved` IS NOT NULL", p.Number)
	if was.Count > 1 { // somebody may have deleted a row, whose numbers proxies hold
		add(change.Gave{Missing: true}, "SELECT l.`name`, l.`granted` FROM "+s.Table.Limit+" AS l LEFT JOIN "+s.Table.PlanStart+
			" AS s ON s.`plan` = ? AND s.`name` = l.`name` AND s.`saved` IS NOT NULL WHERE l.`giver` = ? AND l.`term` = ? AND l.`granted` > 0 AND s.`name` IS NULL", p.Number, was.ID, was.Plan)
	}
	add(change.Gave{}, "SELECT `name`, `floor` FROM "+s.Table.Options+" WHERE `floor` > 0")
	if missing != "" {
		add(change.Gave{}, "SELECT `name`, `wanted` FROM "+s.Table.Limit+" WHERE `giver` = ? AND `term` = ?", missing, was.Plan)
	}
	if err == nil && !was.RemovedBefore(p) { // else the others took them over, and it does not hear who goes
		given.Proxies, err = s.Proxies.ListOn(ctx, tx, "")
	}
	return given, err
}

// selectNumbers calls f with each name that is read, and the number beside it.
func selectNumbers(ctx context.Context, on link.Querier, f func(name string, n uint64), text string, args ...any) error {
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

// writeFloors writes to a member where a plan begins. What is higher stays.
func (s planStore) writeFloors(ctx context.Context, tx *sql.Tx, plan uint64, all change.Floors) error {
	if _, err := tx.ExecContext(ctx, "UPDATE "+s.Table.Plan+" SET `floor` = GREATEST(IFNULL(`floor`, 0), ?) WHERE `number` = ?", all.Others, plan); err != nil {
		return fmt.Errorf("write the floor of plan %d to %s: %w", plan, s.Name(), err)
	}
	for some := range slices.Chunk(all.Named, store.FloorBatch) {
		var text strings.Builder
		text.WriteString("INSERT INTO " + s.Table.PlanStart + " (`plan`, `name`, `floor`, `ceiling`) VALUES ")
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
			return fmt.Errorf("write the floors of plan %d to %s: %w", plan, s.Name(), err)
		}
	}
	return nil
}

// Accept implements [change.Stepper].
func (s planStore) Accept(ctx context.Context, p *Plan, ballot uint64, all change.Floors, holders change.Holders) error {
	return s.step(ctx, p, ballot, change.Frozen, func(tx *sql.Tx) error {
		if err := s.writeFloors(ctx, tx, p.Number, all); err != nil {
			return err
		}
		if err := s.enterProxies(ctx, tx, p, holders); err != nil {
			return err
		}
		return s.setState(ctx, tx, p.Number, change.Accepted)
	})
}

// Obey implements [change.Settler]. Each row is set to the member's first position above the
// floors, and above what it gave itself: saved where it was frozen for the plan, else as it stands.
func (s planStore) Obey(ctx context.Context, p *Plan, floors change.Floors, known []change.Knowledge) (brought bool, err error) {
	var theirs handover
	var lists [][]Proxy
	for _, k := range known {
		h := k.More.(handover)
		theirs.definitions, lists = append(theirs.definitions, h.definitions...), append(lists, h.proxies)
	}
	theirs.definitions, theirs.proxies = store.Newest(theirs.definitions), store.MergeProxies(lists)
	var was Membership
	err = s.Transact(ctx, func(tx *sql.Tx) error {
		now, _, err := s.lockPlan(ctx, tx, p)
		if err != nil {
			return err
		}
		state := now.State
		was, err = s.Plans.LockMembership(ctx, tx)
		if brought = err == nil && was.Plan < p.Number; !brought {
			return err
		}
		if state == "" {
			now = *p
			now.State, now.Ballot = change.InForce, 0
			if err := s.Plans.Save(ctx, tx, &now); err != nil {
				return err
			}
		}
		if state != change.Accepted { // else it has them
			if err := s.writeFloors(ctx, tx, p.Number, floors); err != nil {
				return err
			}
		}
		if err := s.lockRows(ctx, tx); err != nil {
			return err
		}
		// What another change left frozen is what the member gave.
		if err := s.restoreRows(ctx, tx, "<> ?", p.Number); err != nil {
			return err
		}
		is := p.Of(was.ID)
		if is.Count == 0 { // its rows stay frozen
			err = errors.Join(s.reportAbove(ctx, tx, p.Number), s.saveRows(ctx, tx, p.Number))
		} else {
			// One that was not frozen was away, or has forgotten. Perhaps nobody has recorded how
			// far it may go.
			err = s.beginRows(ctx, tx, p, &was, &is, state == change.Frozen || state == change.Accepted, &theirs)
		}
		if err != nil {
			return err
		}
		if err := s.Plans.SaveMembership(ctx, tx, is); err != nil {
			return err
		}
		_, err = tx.ExecContext(ctx, "UPDATE "+s.Table.Plan+" SET `state` = ? WHERE `number` < ? AND `state` IN ("+openStates+")", change.Overtaken, p.Number)
		if err != nil {
			return fmt.Errorf("end older changes: %w", err)
		}
		// Not the whole row: a coordinator may be at work there, and goes by what was promised.
		return s.setState(ctx, tx, p.Number, change.InForce)
	})
	if err != nil {
		return false, fmt.Errorf("bring sequence server %s to plan %d: %w", s.Name(), p.Number, err)
	}
	if brought {
		s.Log.Info("plan obeyed", zap.Uint64("plan", p.Number), zap.Uint64("plan_before", was.Plan))
		s.announce(ctx)
	}
	return brought, nil
}

// openStates are those of a change that has yet to be ended, as SQL has them.
const openStates = "'" + change.Proposed + "', '" + change.Frozen + "', '" + change.Accepted + "'"

// LetGo implements [change.Settler].
func (s planStore) LetGo(ctx context.Context, p *Plan, left bool) error {
	open := false
	err := s.Transact(ctx, func(tx *sql.Tx) error {
		now, _, err := s.lockPlan(ctx, tx, p)
		if open = err == nil && now.Open() && (!left || now.State == change.Proposed); !open {
			return err
		}
		return s.thaw(ctx, tx, p)
	})
	if err != nil {
		return fmt.Errorf("let %s go on after change %s, which was aborted: %w", s.Name(), p.UUID, err)
	}
	if open {
		s.Log.Warn("change of sequence servers aborted", zap.String("change", p.UUID), zap.Uint64("plan", p.Number))
		s.announce(ctx)
	}
	return nil
}

// announce lets all proxies look again within a second. Whatever fails, they notice by themselves
// later.
func (s planStore) announce(ctx context.Context) {
	if err := s.Options.MoveVersion(ctx, s.Pool()); err != nil {
		s.Log.Debug("change of plans not announced", logfield.Err(err))
	}
}
