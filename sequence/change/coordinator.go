package change

import (
	"cmp"
	"context"
	"errors"
	"slices"

	"go.uber.org/zap"

	"seqproxy/internal/logfield"
)

// Config is what a coordinator knows of the proxy that it works for.
type Config struct {
	Log        *zap.Logger
	Host       string   // who makes the change, for people
	InUse      []Member // the servers in use, by their addresses; at least one
	Interleave string   // of a plan by which one server becomes several
	Block      uint64
	// how far above its last number a member may go at most before another records more
	Ahead     uint64
	NoWriters bool // no application counts in the tables
	Tables    Tables
	Random    func() uint32 // tells the ballots of two coordinators apart
}

// Tables are the quoted names of tables, for error texts.
type Tables struct {
	First, Member, Plan string
	All                 []string
}

// Coordinator makes one change, or looks which plan is in force. It is for one goroutine, and
// one use.
type Coordinator struct {
	servers Reach
	config  Config
	ctx     context.Context // of the command, or beyond
	beyond  context.Context // see New

	asked Change
	plan  Plan   // that the change leads to; the one in force where there is no change
	base  uint64 // number of the plan in force that it was drafted from
	// members were asked to accept the plan: it may be decided
	accepting bool

	unasked Member // that is taken out and cannot be reached; empty: none

	met map[string]*Met // by address, as they were last asked
}

// New returns a coordinator for a command that ends with ctx. What was begun it ends within beyond,
// which goes on for some time then. Close it.
func New(ctx, beyond context.Context, servers Reach, config Config) *Coordinator {
	return &Coordinator{servers: servers, config: config, ctx: ctx, beyond: beyond, met: make(map[string]*Met)}
}

// Close closes its connections.
func (c *Coordinator) Close() {
	for _, m := range c.met {
		if m.Store != nil {
			_ = m.Close() // nothing is lost with them
		}
	}
	clear(c.met)
}

// Plan is the plan that was made, or that is in force.
func (c *Coordinator) Plan() Plan { return c.plan }

// Change makes a new plan and puts it in force. The same change that was begun before, by a
// coordinator that may have died, is ended first: then it is made already, or undone and made
// anew. Whatever fails before the change is decided is undone as far as members can be reached.
//
// Errors: *Error, define.ErrBadOption, those of a Store, ctx's cause.
func (c *Coordinator) Change(asked Change) error {
	c.asked = asked
	command := c.ctx
	now, open, err := c.Current()
	if err == nil && open != nil && open.makes(asked) {
		if made, err := c.End(open); made || err != nil {
			return err
		}
		c.ctx = command
		c.Close() // one that was away may be reached by now
		now, open, err = c.Current()
	}
	switch {
	case err != nil:
		return err
	case open != nil:
		return InProgress(open)
	}
	ask := slices.Concat(now.Members, now.Previous)
	if asked.Add != "" { // it may have seen changes that came to nothing, and have been set up anew after it was removed
		ask = slices.Insert(ask, 0, Member{Address: asked.Add})
	}
	met := c.reports(ask)
	if err := errors.Join(Reconcile(c.ctx, met, &now, nil, nil)...); err != nil {
		return err
	}
	if now.makes(asked) && slices.ContainsFunc(met, func(m Met) bool { return m.behind(&now) }) { // by a coordinator that died when it was decided
		c.plan = now
		return nil
	}
	if err := c.draft(&now); err != nil {
		return err
	}
	c.config.Log.Info("change of sequence servers begun", zap.String("change", c.plan.UUID), zap.Uint64("plan", c.plan.Number),
		zap.String("from", Addresses(c.plan.Previous)), zap.String("to", Addresses(c.plan.Members)), zap.String("interleave", c.plan.Interleave))
	if err := c.decide(); err != nil {
		// What nobody was asked to accept nobody finishes, whoever has taken it over.
		if c.accepting && errors.Is(err, ErrTakenOver) {
			return err
		}
		return c.undo(err)
	}
	return c.begin()
}

// End ends a change that another began: it finishes one that is decided, which made tells, and
// undoes any other. All who do that come to the same.
func (c *Coordinator) End(open *Plan) (made bool, err error) {
	c.plan = *open
	c.plan.Coordinator = c.config.Host
	decided, err := c.takeOver()
	if err != nil {
		return false, err
	}
	c.config.Log.Warn("change of sequence servers taken over", zap.String("change", open.UUID), zap.String("from", open.Coordinator), zap.Uint64("plan", open.Number),
		zap.Bool("decided", decided))
	if decided {
		return true, c.begin()
	}
	return false, c.abort()
}

// decide takes the steps that lead to the decision, each on all members before the next. In the
// same order for all coordinators: so of several at once exactly one gets its plan proposed.
func (c *Coordinator) decide() error {
	c.plan.Ballot = c.newBallot(0)
	everyone := c.plan.everyone()
	err := c.step(Proposed, everyone, func(s Store) error {
		_, err := s.Promise(c.ctx, &c.plan, c.base)
		return err
	})
	if err != nil {
		return err
	}
	missing := ""
	if c.plan.hasCeilings(&c.config) {
		missing = c.unasked.ID
	}
	var all []Given
	holders := Holders{Unasked: c.unasked.Address}
	err = c.step(Frozen, everyone, func(s Store) error {
		given, err := s.Freeze(c.ctx, &c.plan, missing)
		all, holders.Proxies = append(all, given), append(holders.Proxies, given.Proxies)
		return err
	})
	// From now on no sequence is made or altered. Some were since the change was begun.
	for i := range all {
		err = cmp.Or(err, c.plan.refuseSingles(all[i].Sequences))
	}
	if err != nil {
		return err
	}
	// Once all that stay have accepted, the change is decided. Each has the floors and the proxies by
	// then, and who finishes the change gets them from one of these.
	floors := floorsOf(all, c.asked.Above, c.config.Ahead)
	c.accepting = true
	return c.step(Accepted, c.plan.staying(), func(s Store) error { return s.Accept(c.ctx, &c.plan, floors, holders) })
}

// begin starts the plan, which is decided, on all members that can be reached. One that is away
// obeys it when it is met again, as long as another one knows it.
func (c *Coordinator) begin() error {
	c.ctx = c.beyond
	done := c.settle(&c.plan, nil)
	away, why := c.awayOf(c.plan.everyone())
	if len(done) == 0 {
		return c.unended("is decided, but was not finished", why)
	}
	c.plan.State, c.plan.Away = InForce, away
	c.config.Log.Info("change of sequence servers done", zap.String("change", c.plan.UUID), zap.Uint64("plan", c.plan.Number),
		zap.String("servers", Addresses(c.plan.Members)), zap.Strings("away", away), logfield.Err(why))
	return nil
}

// settle brings the members that can be reached to what became of the change, and returns those
// with which that went well.
func (c *Coordinator) settle(now, void *Plan) (done []Met) {
	met := c.reports(c.plan.everyone())
	failed := Reconcile(c.ctx, met, now, void, func(step string, m *Met) { c.did(step, m.Member) })
	for i, why := range failed {
		if why == nil {
			done = append(done, met[i])
			continue
		}
		c.met[met[i].Member.Address].Err = why
	}
	return done
}

// undo ends a change that failed before it was known to be decided, and returns why it failed, but
// if it is found to be decided.
func (c *Coordinator) undo(why error) error {
	c.ctx = c.beyond
	if !c.accepting {
		return errors.Join(why, c.abort())
	}
	made, err := c.End(&c.plan)
	if made && err == nil {
		return nil
	}
	return errors.Join(why, err)
}

// unended is the error of a change that was left in the middle.
func (c *Coordinator) unended(how string, why error) error {
	return &Error{Finding: "change " + c.plan.UUID + " " + how, Remedy: "say " + c.plan.statement() + " again", Err: why}
}
