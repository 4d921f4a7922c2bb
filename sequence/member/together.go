package member

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"go.uber.org/zap"

	"seqproxy/internal/logfield"
	"seqproxy/sequence/define"
	"seqproxy/sequence/limit"
	"seqproxy/sequence/store"
)

// This file asks all members together.

// NamesOf names members in errors.
func NamesOf(members []*Server) string {
	names := make([]string, len(members))
	for i, v := range members {
		names[i] = v.Name()
	}
	return strings.Join(names, ", ")
}

// LastFailure returns why there is no connection to any of them, or nil.
func (a *Among) LastFailure() error {
	var all []error
	for _, v := range a.Members {
		err := v.LastFailure()
		if err == nil {
			return nil
		}
		all = append(all, err)
	}
	if len(all) == 1 {
		return all[0]
	}
	return errors.Join(all...)
}

// NotAsked returns, for each member that is not among the asked ones, why it is not.
func (a *Among) NotAsked(asked []*Server) (why []error) {
	for _, v := range a.Members {
		if slices.Contains(asked, v) {
			continue
		}
		if err := v.Unusable(); err != nil { // it may have been taken in meanwhile
			why = append(why, fmt.Errorf("%s: %w", v.Name(), err))
		}
	}
	return why
}

// OnLive calls f for the members that are not left out. It has to succeed for one at least, and for
// each that answers.
func (a *Among) OnLive(ctx context.Context, f func(ctx context.Context, v *Server) error) error {
	live := a.Live()
	errs := make([]error, len(live))
	failed := Each(ctx, live, func(ctx context.Context, i int, v *Server) error {
		errs[i] = f(ctx, v)
		return errs[i]
	})
	if len(failed) == len(live) {
		return errors.Join(failed...)
	}
	return a.passOver(ctx, live, errs)
}

// passOver leaves out the members that failed and cannot be reached. It returns the error of one
// that answers, which would continue to give numbers. One that lacks a row gives none of it.
func (a *Among) passOver(ctx context.Context, live []*Server, errs []error) error {
	return errors.Join(Each(ctx, live, func(within context.Context, i int, v *Server) error {
		if errs[i] == nil || errors.Is(errs[i], define.ErrUnknown) {
			return nil
		}
		switch err := v.StillObeys(within, a.Number); {
		case err == nil || errors.Is(err, store.OutcomeOldPlan) || errors.Is(err, store.OutcomeFrozen) || ctx.Err() != nil:
			return cmp.Or(err, errs[i])
		default:
			v.LeaveOut(errs[i])
			return nil
		}
	})...)
}

// Proxies lists the registered proxies, in the order in which they came, of the members that can be
// asked. Each is registered with every member that it knows.
func (a *Among) Proxies(ctx context.Context) (all []store.Proxy, err error) {
	live := a.Live()
	lists, failed := proxiesOf(ctx, live)
	if len(failed) == len(live) {
		return nil, errors.Join(failed...)
	}
	return store.MergeProxies(lists), nil
}

// Holders lists all that may have cached numbers. One may be registered with a single member, so
// all have to answer, also those that are left out.
func (a *Among) Holders(ctx context.Context) ([]store.Proxy, error) {
	lists, failed := proxiesOf(ctx, a.Members)
	if len(failed) > 0 {
		return nil, errors.Join(failed...)
	}
	return store.MergeProxies(lists), nil
}

// proxiesOf reads the lists of some members.
func proxiesOf(ctx context.Context, members []*Server) (lists [][]store.Proxy, failed []error) {
	lists = make([][]store.Proxy, len(members))
	failed = Each(ctx, members, func(ctx context.Context, i int, v *Server) (err error) {
		lists[i], err = v.Proxies.List(ctx)
		return err
	})
	return lists, failed
}

// Enlisted reports whether all proxies have had the time to register on the node in use, which is
// tenure. The caller asks repeatedly with the same seen. Only a group has several nodes, and a
// group is the only member.
func (a *Among) Enlisted(seen *Tenure, tenure time.Duration) bool {
	v := a.Members[0]
	return !v.Ceilings.InForce() || v.servingFor(seen) >= tenure
}

// A member that was restored from an old backup may have lost ceilings of the others, and be the
// only one that can be asked when another one is removed. Each knows its own. So a process has it
// record them again when it first meets the members, when one is back that was away, as a restored
// one was, and when one of its rows has gone back.

// recordBatch bounds the ceilings in one transaction. The next round does the rest if the time
// ends.
const recordBatch = 100

// RecordAgain makes each member that can be reached record the ceilings of the others, as they are
// there.
func (a *Among) RecordAgain(ctx context.Context) error {
	live, plan := a.Live(), a.Number
	known := make([][]limit.Limit, len(live))
	failed := Each(ctx, live, func(ctx context.Context, i int, v *Server) (err error) {
		known[i], err = v.Limits.Of(ctx, v.Pool(), plan)
		return err
	})
	if len(failed) > 0 {
		return errors.Join(failed...)
	}
	return errors.Join(Each(ctx, live, func(ctx context.Context, i int, v *Server) error {
		type of struct{ name, giver string }
		has := make(map[of]uint64, len(known[i]))
		for _, l := range known[i] {
			has[of{l.Name, l.Giver}] = l.Wanted
		}
		var lacks []limit.Limit
		for j, o := range live {
			for _, l := range known[j] {
				if j != i && l.Giver == o.Share().ID && l.Granted > has[of{l.Name, l.Giver}] {
					lacks = append(lacks, limit.Limit{Name: l.Name, Giver: l.Giver, Wanted: l.Granted})
				}
			}
		}
		if len(lacks) == 0 {
			return nil
		}
		// In the order in which others lock them too.
		slices.SortFunc(lacks, func(x, y limit.Limit) int {
			return cmp.Or(strings.Compare(x.Name, y.Name), strings.Compare(x.Giver, y.Giver))
		})
		for some := range slices.Chunk(lacks, recordBatch) {
			if err := v.Record(ctx, plan, some...); err != nil {
				return fmt.Errorf("record the ceilings of others again: %w", err)
			}
		}
		v.Log.Warn("ceilings recorded again", logfield.Sequence(define.ShownName(lacks[0].Name)), zap.Int("ceilings", len(lacks)), zap.Uint64("plan", plan))
		return nil
	})...)
}
