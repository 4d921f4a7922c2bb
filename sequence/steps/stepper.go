package steps

import (
	"context"
	"database/sql"
	"fmt"
	"slices"
	"strings"

	"seqproxy/sequence/change"
	"seqproxy/sequence/define"
	"seqproxy/sequence/store"
)

// Promise implements [change.Store].
func (s Store) Promise(ctx context.Context, p *change.Plan, base uint64) (was string, err error) {
	err = s.Transact(ctx, func(tx *sql.Tx) error {
		now, all, err := s.lockPlan(ctx, tx, p)
		if err != nil {
			return err
		}
		if was = now.State; was == "" {
			if other := p.Meets(all, base); other != nil {
				return change.InProgress(other)
			}
			if base == p.Number {
				return nil // see change.Store
			}
			return s.Plans.Insert(ctx, tx, p)
		}
		if now.Ballot > p.Ballot {
			return change.ErrTakenOver
		}
		_, err = tx.ExecContext(ctx, "UPDATE "+s.Table.Plan+" SET `ballot` = ?, `coordinator` = ?, `changed` = UTC_TIMESTAMP(6) WHERE `number` = ?",
			p.Ballot, p.Coordinator, p.Number)
		return err
	})
	return was, err
}

// Freeze implements [change.Store]. The end of the column stops everybody, on whatever snapshot
// he reads: a number added to it is error 1690, for applications that count in the table as for
// proxies that know of no plan. From then on all is as it is read here: what the rows held, how far
// a name without a row may have gone, the tombstones of what was dropped, and the ceilings that
// this one has recorded for a member that is missing.
func (s Store) Freeze(ctx context.Context, p *change.Plan, missing string) (given change.Given, err error) {
	err = s.step(ctx, p, change.Proposed, func(tx *sql.Tx) error {
		// First, so that nobody is waited for who waits for this. What a member that left was frozen at
		// is none of what it gave.
		if err := s.restoreRows(ctx, tx); err != nil {
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
func (s Store) gave(ctx context.Context, tx *sql.Tx, p *change.Plan, missing string) (given change.Given, err error) {
	was, err := s.Plans.Membership(ctx, tx, "")
	if err != nil {
		return given, err
	}
	all, err := s.Options.All(ctx, tx)
	if err != nil {
		return given, err
	}
	given.Sequences = s.sequences(all)
	clocks := make(map[string]bool) // their rows say up to which tick a column had keys
	for i := range all {
		clocks[all[i].Name] = all[i].Def.Kind.HasClock()
	}
	given.End = s.Seen.Load().Max
	add := func(like change.Gave, text string, args ...any) {
		if err == nil {
			err = s.EachRow(ctx, tx, func(name string, upTo uint64) {
				like.Name, like.UpTo, like.Ticks = name, upTo, define.IsWorker(name) || clocks[name]
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
	if err == nil && !p.FollowsRemovalOf(&was) { // else the others took them over, and it does not hear who goes
		given.Proxies, err = s.Proxies.ListOn(ctx, tx, "")
	}
	return given, err
}

// Accept implements [change.Store].
func (s Store) Accept(ctx context.Context, p *change.Plan, all change.Floors, holders change.Holders) error {
	return s.step(ctx, p, change.Frozen, func(tx *sql.Tx) error {
		if err := s.writeFloors(ctx, tx, p.Number, all); err != nil {
			return err
		}
		if err := s.enterProxies(ctx, tx, p, holders); err != nil {
			return err
		}
		return s.setState(ctx, tx, p.Number, change.Accepted)
	})
}

// writeFloors writes to a member where a plan begins. What is higher stays.
func (s Store) writeFloors(ctx context.Context, tx *sql.Tx, plan uint64, all change.Floors) error {
	if _, err := tx.ExecContext(ctx, "UPDATE "+s.Table.Plan+" SET `floor` = GREATEST(IFNULL(`floor`, 0), ?) WHERE `number` = ?", all.Others, plan); err != nil {
		return fmt.Errorf("write the floor of plan %d to %s: %w", plan, s.Name(), err)
	}
	for some := range slices.Chunk(all.Named, store.FloorBatch) {
		args := make([]any, 0, 4*len(some))
		for _, f := range some {
			args = append(args, plan, f.Name, f.Floor, f.Ceiling)
		}
		_, err := tx.ExecContext(ctx, "INSERT INTO "+s.Table.PlanStart+" (`plan`, `name`, `floor`, `ceiling`) VALUES (?, ?, ?, ?)"+
			strings.Repeat(", (?, ?, ?, ?)", len(some)-1)+
			" ON DUPLICATE KEY UPDATE `floor` = GREATEST(`floor`, VALUES(`floor`)), `ceiling` = GREATEST(`ceiling`, VALUES(`ceiling`))", args...)
		if err != nil {
			return fmt.Errorf("write the floors of plan %d to %s: %w", plan, s.Name(), err)
		}
	}
	return nil
}
