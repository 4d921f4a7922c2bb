package sequence

import (
	"context"
	"errors"
	"slices"

	"seqproxy/internal/await"
	"seqproxy/sequence/change"
)

// SequenceServer is what [Sequences.SequenceServers] tells of one.
type SequenceServer struct {
	Address  string
	ID       string // uuid; empty where it has none, or cannot be reached and is in no plan
	Position int    // in the plan in force; -1: not a member
	Plan     uint64 // number of the plan that it obeys; 0: none
	// State is "in force", "away", "behind" (it obeys an older plan), "left", or where a change is
	// in progress that server's state in it: "proposed", "frozen", "accepted".
	State string
	Err   error // why it is away
	// Warning names the nodes of a cluster that do not flush at commit, as they were last asked;
	// empty: none.
	Warning string
	// Interleave and Block are those of the plan in force; empty without one.
	Interleave string
	Block      uint64
	// Change is the plan whose change is in progress, or nil.
	Change *Plan
}

// SequenceServers lists the sequence servers of the plan in force, and those of a change that is in
// progress. Errors are those of List, but for a *PlanError where none of them can be reached: with
// it come those that are known here, each with its Err.
func (s *Sequences) SequenceServers(ctx context.Context) (all []SequenceServer, err error) {
	_, err = s.asCoordinator(ctx, func(c *change.Coordinator) error {
		now, open, err := c.Current()
		if err != nil {
			if cause := context.Cause(ctx); cause != nil && !errors.Is(cause, await.ErrPatience) {
				return cause
			}
			if known := &s.members.Now().Plan; known.Number > 0 {
				now = *known
			}
		}
		members := now.Members
		if open != nil {
			isMember := func(m Member) bool { return change.HasAddress(now.Members, m.Address) }
			members = slices.Concat(members, slices.DeleteFunc(slices.Clone(open.Members), isMember))
		}
		for i, m := range members {
			l := SequenceServer{Address: m.Address, ID: m.ID, Position: -1, Interleave: now.Interleave, Block: now.Block, Change: open}
			if i < len(now.Members) {
				l.Position = i
			}
			s.serverState(c, &l, &now, open)
			all = append(all, l)
		}
		return err
	})
	return all, err
}

// serverState enters what a server has said.
func (s *Sequences) serverState(c *change.Coordinator, l *SequenceServer, now, open *Plan) {
	if v := s.members.First(); v.Config.Link.Name == l.Address { // of several none is a cluster
		l.Warning = v.FlushWarning()
	}
	t, err := c.Said(l.Address)
	if err != nil {
		l.State, l.Err = "away", err
		return
	}
	l.Plan = t.Plan
	if t.ID != "" {
		l.ID = t.ID
	}
	switch {
	case t.Plan > 0 && t.Count == 0:
		l.State = "left"
	case t.Plan < now.Number && l.Position >= 0:
		l.State = "behind"
	case l.Position >= 0:
		l.State = PlanInForce
	}
	if open != nil {
		for _, p := range t.Plans {
			if p.UUID == open.UUID && p.Open() {
				l.State = p.State
			}
		}
	}
}
