package change

import (
	"errors"
	"slices"

	"go.uber.org/zap"
)

// Store returns a server, or why it cannot be reached. Once away, it stays so for this change: a
// member that comes back in the middle is brought to the plan later.
func (c *Coordinator) Store(address string) (Store, error) {
	c.reach(address)
	return c.met[address].Store, c.met[address].Err
}

// reach connects to servers, all at the same time.
func (c *Coordinator) reach(addresses ...string) {
	news := slices.DeleteFunc(slices.Compact(slices.Sorted(slices.Values(addresses))), func(address string) bool { return c.met[address] != nil })
	if len(news) == 0 {
		return
	}
	stores, errs := c.servers.Reach(c.ctx, news)
	for i, address := range news {
		if c.met[address] = (&Met{Store: stores[i], Err: errs[i]}); errs[i] != nil {
			c.met[address].Store = nil
		}
	}
}

// each calls f for those of some members that can be reached, until it fails.
func (c *Coordinator) each(members []Member, f func(m Member, s Store) error) error {
	for _, m := range members {
		s, err := c.Store(m.Address)
		if err != nil {
			continue
		}
		if err := f(m, s); err != nil {
			return err
		}
	}
	return nil
}

// awayOf names the members among some that cannot be reached.
func (c *Coordinator) awayOf(members []Member) (names []string, err error) {
	for _, m := range members {
		if _, why := c.Store(m.Address); why != nil {
			names = append(names, m.Address)
			err = errors.Join(err, why)
		}
	}
	return names, err
}

// did tells of a step.
func (c *Coordinator) did(step string, m Member) {
	c.config.Log.Info("step of a change of sequence servers", zap.String("change", c.plan.UUID), zap.String("state", step), zap.String("server", m.Address))
}

// outlive has what follows go on although the command may end.
func (c *Coordinator) outlive() (end func()) {
	was := c.ctx
	ctx, stop := c.servers.Outlive(was)
	c.ctx = ctx
	return func() { stop(); c.ctx = was }
}

// Current reads the plan in force, and the change that is open if there is one, from all servers
// that are known here, and those that these know. The error is that none of them can be reached.
func (c *Coordinator) Current() (now Plan, open *Plan, err error) {
	var all []Met
	var asked, ask []Member
	for _, address := range c.config.InUse {
		ask = append(ask, Member{Address: address})
	}
	for len(ask) > 0 {
		all, asked = append(all, c.reports(ask)...), append(asked, ask...)
		now, open = Latest(all)
		ask = nil
		known := slices.Concat(now.Members, now.Previous)
		if open != nil {
			known = slices.Concat(known, open.Members, open.Previous)
		}
		for _, m := range known {
			if !HasAddress(slices.Concat(asked, ask), m.Address) {
				ask = append(ask, m)
			}
		}
	}
	if len(all) == 0 {
		_, why := c.awayOf(asked)
		return now, nil, &Error{Finding: "no sequence server can be reached", Err: why}
	}
	c.plan = now
	return now, open, nil
}

// Said is what a server said when it was last asked, or why it is away.
func (c *Coordinator) Said(address string) (Report, error) {
	c.reach(address)
	return c.met[address].Report, c.met[address].Err
}

// reports asks members which plans they know, each once. One that does not answer is away.
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
		if at.Report, at.Err = at.Store.Report(c.ctx); at.Err == nil {
			at.Member = m
			all = append(all, *at)
		}
	}
	return all
}
