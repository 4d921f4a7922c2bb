package change

import (
	"slices"
	"strings"
	"time"

	"seqproxy/sequence/segment"
)

// MaxMembers is the most that a plan has: its arithmetic stays within 64 bits.
const MaxMembers = 64

// States of a plan on one member.
const (
	Proposed = "proposed"
	Frozen   = "frozen"
	Accepted = "accepted"
	// InForce: the change has ended here, and the member obeys the plan, or has left by it.
	InForce = "in force"
	// Aborted: this member never accepts the plan, and goes on as before.
	Aborted = "aborted"
)

// Plan says which sequence servers there are and how they divide the numbers. Plans are
// numbered from 1; without one there is one server, which counts plainly.
type Plan struct {
	Number      uint64
	UUID        string
	State       string // on the member that says so
	Coordinator string // who makes the change
	Begun       time.Time
	Interleave  string   // segment.InBlocks or segment.InSteps
	Block       uint64   // numbers in a block; 0 with segment.InSteps
	Members     []Member // by position
	Previous    []Member // of the plan before, by position
	// Ballot is the highest that the member has promised, and of a coordinator the one under which it
	// writes. Who writes under a lower one changes nothing there any more.
	Ballot uint64
	// Away are the addresses of servers that could not be told that it is in force, for who made it.
	Away []string
}

// Member is a sequence server of a plan.
type Member struct {
	ID      string `json:"id"` // uuid, for life
	Address string `json:"address"`
}

// Membership is what a member says of itself: the plan that it obeys, and which numbers are its own
// by that. Plan is 0 if it obeys none. Count is 0 if it has left.
type Membership = segment.Share

// Report is what one server knows of plans.
type Report struct {
	Membership
	Plans []Plan // by number
}

// Change says how the set of sequence servers is to change: by one that is added, or one that
// is removed. Addresses have their port.
type Change struct {
	Add    string // "10.0.0.5:3306"
	Remove string
	// Force removes a member that cannot be reached. The operator must have switched it off: where
	// applications count in the table, numbers that it gives from now on would be given again, and
	// of two the other may be told the same of this one.
	Force bool
	// Above is a number above all that it can have given, where applications count in the table.
	// Elsewhere it is 0, as others have recorded its ceilings.
	Above uint64
	// WritersStopped is the operator's word that no application counts in the tables until the
	// change has ended.
	WritersStopped bool
}

// Of is what the server with an id is by the plan: it has left if it is no member.
func (p *Plan) Of(id string) Membership {
	i := slices.IndexFunc(p.Members, func(m Member) bool { return m.ID == id })
	if i < 0 {
		return Membership{ID: id, Plan: p.Number}
	}
	return Membership{ID: id, Plan: p.Number, Position: uint64(i), Count: uint64(len(p.Members)), Interleave: p.Interleave, Block: p.Block}
}

// Open reports whether a change in that state has yet to be ended on the member that says so.
func (p *Plan) Open() bool {
	return p.State == Proposed || p.State == Frozen || p.State == Accepted
}

// adds reports whether the change adds a member. If not, it removes one.
func (p *Plan) adds() bool { return len(p.Members) > len(p.Previous) }

// staying are the members that have to accept the change: those so far, but for one that is
// removed.
func (p *Plan) staying() []Member {
	if p.adds() {
		return p.Previous
	}
	return p.Members
}

// others are those that are not members both before the change and after it: one, but for the first
// plan.
func (p *Plan) others() []Member {
	all := slices.Concat(p.Previous, p.Members)
	return slices.DeleteFunc(all, func(m Member) bool { return HasAddress(p.staying(), m.Address) })
}

// everyone are the members of the plan and of the one before, first those that stay.
func (p *Plan) everyone() []Member { return slices.Concat(p.staying(), p.others()) }

// stays reports whether a member is one before the change and after it.
func (p *Plan) stays(id string) bool { return HasMember(p.staying(), id) }

// makes reports whether p is the plan that a change leads to.
func (p *Plan) makes(change Change) bool {
	if p.adds() {
		return HasAddress(p.others(), change.Add)
	}
	return HasAddress(p.others(), change.Remove)
}

// follows reports whether p was made from now.
func (p *Plan) follows(now *Plan) bool {
	same := func(m, o Member) bool { return m.ID == o.ID }
	return now.Number == 0 || p.Number > now.Number && slices.EqualFunc(p.Previous, now.Members, same)
}

// Vetoed reports whether a change was aborted by a member that stays, so that it is never
// decided. all is what servers know.
func (p *Plan) Vetoed(all []Met) bool {
	return slices.ContainsFunc(all, func(t Met) bool {
		known := Find(t.Plans, p.UUID)
		return known != nil && known.State == Aborted && p.stays(t.ID)
	})
}

// statement is what an operator says to make the change that leads to p, and to end it.
func (p *Plan) statement() string {
	verb := "REMOVE"
	if p.adds() {
		verb = "ADD"
	}
	return "SEQPROXY " + verb + " SEQUENCE SERVER '" + Addresses(p.others()) + "'"
}

// FollowsRemovalOf reports whether a server was a member of an older plan and was removed before p,
// even if it was away and has not seen that.
func (p *Plan) FollowsRemovalOf(m *Membership) bool {
	return m.Plan > 0 && !HasMember(p.Previous, m.ID)
}

// Find returns a change by its uuid; nil if it is not among some.
func Find(all []Plan, uuid string) *Plan {
	i := slices.IndexFunc(all, func(p Plan) bool { return p.UUID == uuid })
	if i < 0 {
		return nil
	}
	return &all[i]
}

// Meets returns the plan beside which p must not be written on a server that knows some: one above
// base, which who drafted p may not know of, even if it has ended, or an aborted one that has the
// number; nil if there is none.
func (p *Plan) Meets(all []Plan, base uint64) (other *Plan) {
	for i := range slices.Backward(all) { // by number
		if o := &all[i]; o.UUID != p.UUID && (o.Number > base && o.State != Aborted || o.Number == p.Number) {
			return o
		}
	}
	return nil
}

// ObeysAnother reports whether a member of a plan in force obeys another one of its number. First
// plans can be two, where proxies have made them at one moment of servers that are not all the
// same.
func (t *Report) ObeysAnother(p *Plan) bool {
	return t.Plan == p.Number && HasMember(p.Members, t.ID) && slices.ContainsFunc(t.Plans, func(known Plan) bool {
		return known.Number == p.Number && known.State == InForce && known.UUID != p.UUID
	})
}

// HasMember reports whether a member is among some, by its id.
func HasMember(members []Member, id string) bool {
	return slices.ContainsFunc(members, func(m Member) bool { return m.ID == id })
}

// HasAddress is HasMember by the address.
func HasAddress(members []Member, address string) bool {
	return slices.ContainsFunc(members, func(m Member) bool { return m.Address == address })
}

// Addresses of members, for people.
func Addresses(members []Member) string {
	all := make([]string, len(members))
	for i, m := range members {
		all[i] = m.Address
	}
	return strings.Join(all, ", ")
}

// Latest is the plan in force, and the change that is open, by the reports of servers. The
// number of the first is 0 where there is none; the second is nil then.
func Latest(all []Met) (now Plan, open *Plan) {
	for _, t := range all {
		for _, p := range t.Plans {
			if p.State == InForce && p.Number > now.Number {
				now = p
			}
		}
	}
	most := 0
	for _, t := range all {
		for i := range t.Plans {
			p := &t.Plans[i]
			if !p.Open() || p.UUID == now.UUID || !p.follows(&now) || p.Vetoed(all) {
				continue // or it is left on a member that was away
			}
			knows := 0
			for _, o := range all {
				if Find(o.Plans, p.UUID) != nil {
					knows++
				}
			}
			if open == nil || p.Number > open.Number || p.Number == open.Number && knows > most {
				open, most = p, knows
			}
		}
	}
	return now, open
}
