package sequence

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"go.uber.org/zap"

	"seqproxy/internal/logfield"
	"seqproxy/sequence/floor"
	"seqproxy/sequence/link"
	"seqproxy/sequence/member"
	"seqproxy/sequence/stats"
)

// Account is what connections to a sequence server are opened with; see package link.
type Account = link.Account

// AccountChange are other accounts for the sequence servers, which are not in use yet.
type AccountChange struct {
	s    *Sequences
	next map[*link.Login]*Account // of those that differ
}

// ChangeAccounts prepares other accounts, one for each of the Servers of the options, in their
// order. It does no I/O. Members of the plan that are none of these are reached with that of the
// first, as ever. One change at a time may be made and applied.
func (s *Sequences) ChangeAccounts(accounts []Account) *AccountChange {
	c := &AccountChange{s: s, next: make(map[*link.Login]*Account)}
	for i := range s.opts.Servers[:min(len(s.opts.Servers), len(accounts))] {
		l := s.opts.Servers[i].loginInUse()
		if next := accounts[i]; *l.Account() != next {
			c.next[l] = &next
		}
	}
	return c
}

// Try connects to all servers that are to have another account, as for a reservation, and to all
// nodes of groups. The error says which of them do not take it, or what it lacks there. One that
// cannot be reached is passed over if another one takes its own: it could not be used before,
// either.
func (c *AccountChange) Try(ctx context.Context) error {
	if len(c.next) == 0 {
		return nil
	}
	known, err := c.s.members.All(ctx)
	if err != nil {
		return err
	}
	var trials []*server
	for _, v := range known {
		next := c.next[v.Config.Link.Login]
		if next == nil {
			continue
		}
		o, counters := v.Config, &stats.Counters{Scores: stats.NewScores()}
		o.Link.Login, o.Link.Log, o.Link.Retries = link.NewLogin(*next), zap.NewNop(), &counters.Retries
		trial, failed := serverWith(o, c.s.timing, &c.s.tuning, counters, floor.NewMarks())
		if failed != nil {
			err = errors.Join(err, failed)
			continue
		}
		trial.Place.Store(v.Place.Load())
		trials = append(trials, trial)
	}
	defer func() {
		for _, trial := range trials {
			_ = trial.Close()
		}
	}()
	if err != nil {
		return err
	}
	failed := make([]error, len(trials))
	member.Each(ctx, trials, func(ctx context.Context, i int, v *server) error {
		failed[i] = v.Try(ctx, v.MayReserve)
		return nil
	})
	taken := slices.ContainsFunc(failed, func(err error) bool { return err == nil })
	for i, why := range failed {
		if why == nil {
			continue
		}
		why = fmt.Errorf("sequence server %s cannot be used: %w", trials[i].Name(), why)
		if taken && link.IsUnreached(why) {
			c.s.log.Warn("account not tried", zap.String("server", trials[i].Name()), logfield.Err(why))
			continue
		}
		err = errors.Join(err, why)
	}
	return err
}

// Apply has connections opened with the new accounts from now on. Idle ones are closed, those in
// use when their user is done with them.
func (c *AccountChange) Apply() {
	if len(c.next) == 0 {
		return
	}
	for l, next := range c.next {
		l.Use(next)
	}
	// This waits, without a bound, while another view of the plan is made.
	known, _ := c.s.members.All(context.Background())
	for _, v := range known {
		if c.next[v.Config.Link.Login] != nil {
			v.Renew()
			c.s.follower.Hurry(v) // the old account may have kept it from serving
		}
	}
}
