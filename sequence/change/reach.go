package change

import (
	"errors"
	"fmt"
	"slices"

	"go.uber.org/zap"
)

// at returns a server. Once away, it stays so for this change: a member that comes back in the
// middle is brought to the plan later.
func (c *Coordinator) at(address string) *Met {
	c.reach(address)
	return c.met[address]
}

// reach connects to servers, all at the same time.
func (c *Coordinator) reach(addresses ...string) {
	news := slices.DeleteFunc(slices.Compact(slices.Sorted(slices.Values(addresses))), func(address string) bool { return c.met[address] != nil })
	for i, m := range c.servers(c.ctx, news) {
		c.met[news[i]] = &m
	}
}

// step takes a step of the change on some members, one after the other, until it fails. None may be
// away but the one that is removed unasked.
func (c *Coordinator) step(state string, members []Member, take func(s Store) error) error {
	for _, m := range members {
		at := c.at(m.Address)
		if at.Err != nil && m.Address == c.unasked.Address {
			continue
		}
		err := at.Err
		if err == nil {
			err = take(at.Store)
		}
		if err != nil {
			return fmt.Errorf("have plan %d %s on %s: %w", c.plan.Number, state, m.Address, err)
		}
		c.did(state, m)
	}
	return nil
}

// awayOf names the members among some that cannot be reached.
func (c *Coordinator) awayOf(members []Member) (names []string, err error) {
	for _, m := range members {
		if at := c.at(m.Address); at.Err != nil {
			names = append(names, m.Address)
			err = errors.Join(err, at.Err)
		}
	}
	return names, err
}

// did tells of a step.
func (c *Coordinator) did(step string, m Member) {
	c.config.Log.Info("step of a change of sequence servers", zap.String("change", c.plan.UUID), zap.String("state", step), zap.String("server", m.Address))
}

// Current reads the plan in force, and the change that is open if there is one, from all servers
// that are known here, and those that these know. Without a plan its members are those in use, by
// their addresses. The error is that no server can be reached.
func (c *Coordinator) Current() (now Plan, open *Plan, err error) {
	var all []Met
	var asked []Member
	for ask := c.config.InUse; len(ask) > 0; {
		all, asked = append(all, c.reports(ask)...), append(asked, ask...)
		now, open = Latest(all)
		ask = slices.Concat(now.Members, now.Previous)
		if open != nil {
			ask = slices.Concat(ask, open.Members, open.Previous)
		}
		ask = slices.DeleteFunc(ask, func(m Member) bool { return HasAddress(asked, m.Address) })
		for i := range ask {
			ask[i].ID = "" // whichever server is there now
		}
	}
	if now.Number == 0 {
		now.Members = slices.Clone(c.config.InUse)
	}
	if len(all) == 0 {
		_, why := c.awayOf(c.config.InUse)
		return now, nil, &Error{Finding: "no sequence server can be reached", Err: why}
	}
	c.plan = now
	return now, open, nil
}

// Said is what a server said when it was last asked, or why it is away.
func (c *Coordinator) Said(address string) (Report, error) {
	at := c.at(address)
	return at.Report, at.Err
}

// reports asks members which plans they know, each once. One that does not answer is away. So is
// one in whose place there is another server now, set up there since: that knows nothing of what
// the member has accepted and given.
func (c *Coordinator) reports(members []Member) (all []Met) {
	var addresses []string
	for _, m := range members {
		addresses = append(addresses, m.Address)
	}
	c.reach(addresses...)
	for i, m := range members {
		at := c.met[m.Address]
		if at.Err != nil || slices.Contains(addresses[:i], m.Address) {
			continue
		}
		if at.Report, at.Err = at.Store.Report(c.ctx); at.Err == nil && m.ID != "" && m.ID != at.ID {
			at.Err = fmt.Errorf("at %s there is another sequence server than the plan's: %q, not %s", m.Address, at.ID, m.ID)
		}
		if at.Err == nil {
			at.Member = m
			all = append(all, *at)
		}
	}
	return all
}
