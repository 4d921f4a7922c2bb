package sequence

import (
	"context"
	"math/rand/v2"
	"sync"
	"time"

	"seqproxy/internal/await"
	"seqproxy/sequence/change"
	"seqproxy/sequence/floor"
	"seqproxy/sequence/members"
	"seqproxy/sequence/segment"
	"seqproxy/sequence/stats"
	"seqproxy/sequence/steps"
)

// What a change of the set of sequence servers is about; see package change.
type (
	Plan       = change.Plan
	Member     = change.Member
	Membership = change.Membership
	PlanChange = change.Change
	PlanError  = change.Error
)

// How members divide the numbers, and the state of a plan whose change has ended.
const (
	InterleaveBlock = segment.InBlocks
	InterleaveStep  = segment.InSteps
	PlanInForce     = change.InForce
)

// ChangePlan changes the set of sequence servers, and returns the plan that is in force then.
// Callers are served from memory meanwhile; one that needs a reservation waits, a second or two. A
// change that was left unfinished, as when its proxy was killed, ends when the same change is asked
// for again; that call then makes it unless it is made.
//
// Errors: *PlanError, ErrBadOption, ErrUnfit, ErrClosed, ctx's cause, or those of a server.
// Whatever fails before the change is decided is undone as far as members can be reached.
func (s *Sequences) ChangePlan(ctx context.Context, asked PlanChange) (Plan, error) {
	if asked.Add != "" {
		o, err := s.opts.serverAt(asked.Add)
		if err != nil {
			return Plan{}, err
		}
		asked.Add = o.Addr // with its port
	}
	return s.planned(ctx, func(c *change.Coordinator) error {
		if v := s.members.First(); v.Grouped() { // several are no groups
			return &members.GroupError{Name: v.Name()}
		}
		if now, _, err := c.Current(); err == nil && now.Number == 0 && len(now.Members) > 1 {
			return s.members.Undivided()
		}
		return c.Change(asked)
	})
}

// planned runs f with a coordinator and returns its plan. Only one may run at a time.
func (s *Sequences) planned(ctx context.Context, f func(*change.Coordinator) error) (Plan, error) {
	if !s.planning.TryLock() {
		return Plan{}, &PlanError{Finding: "this proxy is changing the set of sequence servers already", Remedy: "wait for it: SHOW SEQPROXY SEQUENCE SERVERS tells how far it is"}
	}
	defer s.planning.Unlock()
	p, err := s.asCoordinator(ctx, f)
	if err == nil {
		s.seeChanges(ctx)
	}
	return p, err
}

// asCoordinator is planned for callers that only look: several may run.
func (s *Sequences) asCoordinator(ctx context.Context, f func(*change.Coordinator) error) (Plan, error) {
	if !s.begin() {
		return Plan{}, ErrClosed
	}
	defer s.tasks.Done()
	within, stop := s.requestWithin(ctx, s.timing.change)
	defer stop()
	beyond, stopBeyond := s.requestWithin(context.WithoutCancel(ctx), 2*s.timing.change) // until Close does not wait any more
	defer stopBeyond()
	c := change.New(within.ctx, beyond.ctx, s.reach, s.changeConfig())
	defer c.Close()
	if err := f(c); err != nil {
		return Plan{}, err
	}
	return c.Plan(), nil
}

// changeConfig is what a coordinator knows of this proxy.
func (s *Sequences) changeConfig() change.Config {
	t := &s.members.First().Table
	config := change.Config{
		Log: s.log, Host: s.members.First().Registry.Host, Interleave: s.opts.Interleave, Block: s.opts.Block, Ahead: s.members.Ahead,
		NoWriters: s.tuning.Load().NoDirectWriters, Random: rand.Uint32,
		Tables: change.Tables{First: t.Sequence, Member: t.Member, Plan: t.Plan, All: t.All()},
	}
	for _, v := range s.members.Now().Members {
		config.InUse = append(config.InUse, Member{Address: v.Config.Link.Name})
	}
	return config
}

// reach is a [change.Reach].
func (s *Sequences) reach(ctx context.Context, addresses []string) []change.Met {
	met := make([]change.Met, len(addresses))
	var wg sync.WaitGroup
	for i, address := range addresses {
		wg.Go(func() {
			v, err := s.separateServer(address)
			if err != nil {
				met[i].Err = err
				return
			}
			met[i].Store = steps.On(v.Store)
			limited, stop := context.WithTimeoutCause(ctx, v.Config.Link.DialTimeout+time.Second, await.ErrPatience)
			defer stop()
			conn, err := v.Conn(limited)
			if err == nil {
				err = conn.Close()
			}
			met[i].Err = err
		})
	}
	wg.Wait()
	return met
}

// separateServer is a server with connections of its own, which the caller closes. It makes no
// table again that a member in use has.
func (s *Sequences) separateServer(address string) (*server, error) {
	o, err := s.opts.serverAt(address)
	if err != nil {
		return nil, err
	}
	v, err := s.newServer(o, &stats.Counters{Scores: stats.NewScores()}, floor.NewMarks())
	if err != nil {
		return nil, err
	}
	for _, known := range s.members.Now().Members {
		if known.Config.Link.Name == address {
			v.Seen.Store(known.Seen.Load())
		}
	}
	return v, nil
}
