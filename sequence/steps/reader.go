package steps

import (
	"context"
	"database/sql"
	"fmt"
	"slices"

	"seqproxy/sequence/change"
	"seqproxy/sequence/store"
)

// Report implements [change.Store].
func (s Store) Report(ctx context.Context) (said change.Report, err error) {
	conn, err := s.Conn(ctx)
	if err != nil {
		return said, err
	}
	defer func() { _ = conn.Close() }() // returns it; the pool closes a broken one
	if said.Membership, err = s.Plans.Membership(ctx, conn, ""); err == nil {
		said.Plans, err = s.Plans.All(ctx, conn, "")
	}
	return said, err
}

// Look implements [change.Store].
func (s Store) Look(ctx context.Context) (said change.Report, all []change.Sequence, err error) {
	if _, err = s.Plans.MemberID(ctx, s.Pool()); err == nil {
		said, err = s.Report(ctx)
	}
	if err != nil {
		return said, nil, err
	}
	defined, err := s.Options.All(ctx, s.Pool())
	return said, s.sequences(defined), err
}

// sequences lists what a change looks at of definitions.
func (s Store) sequences(all []store.Defined) (live []change.Sequence) {
	for i := range all {
		if d := &all[i]; d.Live {
			live = append(live, change.Sequence{
				Name: d.Name, End: d.Def.Limit(s.Seen.Load().Max), Increment: d.Def.Increment, Cycle: d.Def.Cycle, Clock: d.Def.Kind.HasClock(),
			})
		}
	}
	return live
}

// handover is what a member that is brought to a plan takes over from another, besides floors.
type handover struct {
	definitions []store.Defined
	proxies     []store.Proxy
}

// Knowledge implements [change.Store]. Definitions count from those that were members so far, and
// proxies from those that accepted, who have all.
func (s Store) Knowledge(ctx context.Context, p *change.Plan) (has change.Knowledge, err error) {
	var h handover
	if has.Floors, has.Complete, err = s.floors(ctx, p); err != nil {
		return has, err
	}
	is, err := s.Plans.Membership(ctx, s.Pool(), "")
	if err != nil {
		return has, err
	}
	if change.HasMember(p.Previous, is.ID) || is.Plan == p.Number {
		if h.definitions, err = s.definitions(ctx, p, &is); err != nil {
			return has, err
		}
	}
	if has.Complete || is.Plan == p.Number {
		h.proxies, err = s.Proxies.List(ctx)
	}
	has.More = h
	return has, err
}

// definitions are those that a server tells of. Until it obeys a plan it tells of no row but those
// that were frozen: somebody may have made one by hand since, and what that gives is not known yet.
// One that leaves tells of none.
func (s Store) definitions(ctx context.Context, p *change.Plan, is *change.Membership) ([]store.Defined, error) {
	if is.Plan > p.Number || is.Plan == p.Number && is.Count > 0 {
		return s.Options.All(ctx, s.Pool())
	}
	frozen := make(map[string]bool)
	err := s.EachRow(ctx, s.Pool(), func(name string, _ uint64) { frozen[name] = true }, "SELECT s.`name`, f.`saved` FROM "+s.Table.Sequence+" AS s JOIN "+s.Table.PlanStart+
		" AS f ON f.`name` = s.`name` AND f.`plan` = ? AND f.`saved` IS NOT NULL JOIN "+s.Table.Member+" AS m ON m.`one` = 1 AND m.`plan` < f.`plan`", p.Number)
	if err != nil {
		return nil, fmt.Errorf("read which rows of %s were frozen for plan %d: %w", s.Name(), p.Number, err)
	}
	all, err := s.Options.All(ctx, s.Pool())
	return slices.DeleteFunc(all, func(d store.Defined) bool { return d.Live && !frozen[d.Name] }), err
}

// floors reads where a plan begins. complete is false where the server does not have all.
func (s Store) floors(ctx context.Context, p *change.Plan) (all change.Floors, complete bool, err error) {
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
