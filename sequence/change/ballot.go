package change

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// How one of several coordinators decides, once for all. Each member that stays has to accept the
// change, and never takes that back. Once all have accepted, the change is decided. One that has
// promised never to accept decides against it. A member changes nothing under a ballot below the
// highest that it has promised. A coordinator that takes over first raises the ballot on every
// member, and so finds out what can no longer be decided. It makes no member accept: it finishes
// the change, or aborts it.

// newBallot is above seen and nobody else's.
func (c *Coordinator) newBallot(seen uint64) uint64 {
	return (seen>>32+1)<<32 | uint64(c.config.Random())
}

// takeOver makes this the coordinator of a change that another began, or whose outcome it does not
// know. From then on the other one changes nothing. decided reports whether the change is decided.
// If not, a member that stays has not accepted it, and never will.
func (c *Coordinator) takeOver() (decided bool, err error) {
	highest := uint64(0)
	for _, m := range c.reports(c.plan.everyone()) {
		if known := Find(m.Plans, c.plan.UUID); known != nil {
			highest = max(highest, known.Ballot)
		}
	}
	c.plan.Ballot, c.base = c.newBallot(highest), c.plan.Number
	accepted, never, forgot := 0, false, ""
	for _, m := range c.plan.everyone() {
		at := c.at(m.Address)
		if at.Err != nil {
			continue
		}
		was, err := at.Promise(c.ctx, &c.plan, c.base)
		switch {
		case errors.Is(err, ErrTakenOver):
			return false, fmt.Errorf("take over the change on %s: %w", m.Address, err)
		case err != nil: // what is promised there, if anything is, nobody hears of
			at.Err = fmt.Errorf("take over the change: %w", err)
			continue
		case was == InForce:
			decided = true
		}
		switch {
		case !c.plan.stays(m.ID):
		case was == Accepted || was == InForce:
			accepted++
		case was != "":
			never = true // also if the change was not yet proposed to some others
		default:
			// It has forgotten the change, and may have accepted it. Or the change was not yet proposed
			// there. Then a member before it in the order is proposed, which says never, or is away.
			forgot = m.Address
		}
	}
	names, why := c.awayOf(c.plan.everyone())
	switch {
	case decided || accepted == len(c.plan.staying()):
		return true, nil
	case never || forgot != "" && len(names) == 0:
		return false, nil // nobody obeys it
	}
	finding := fmt.Sprintf("change %s may be decided, which %s can tell, and it cannot be reached", c.plan.UUID, strings.Join(names, ", "))
	if forgot != "" {
		finding += "; " + forgot + " has forgotten the change, as after a restore from a backup"
	}
	return false, &Error{Finding: finding, Remedy: "bring it back, or restore it from any backup, and say " + c.plan.statement() + " again", Err: why}
}

// abort lets the members go on as before a change that is never decided: no member was asked to
// accept it, or takeOver found one that stays and never will. Each member that goes on records
// that, so that nobody later takes the change for decided.
func (c *Coordinator) abort() error {
	c.ctx = c.beyond
	done := c.settle(&Plan{}, &c.plan)
	if slices.ContainsFunc(done, func(m Met) bool { return c.plan.stays(m.ID) }) {
		return nil // what is away goes on when a proxy meets it
	}
	_, why := c.awayOf(c.plan.everyone())
	return c.unended("is neither done nor undone", why)
}
