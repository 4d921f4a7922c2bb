package sequence

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"seqproxy/internal/await"
	"seqproxy/sequence/define"
	"seqproxy/sequence/link"
	"seqproxy/sequence/member"
	"seqproxy/sequence/segment"
	"seqproxy/sequence/store"
)

// This file is how several members serve what any of them can.

// notAsked says of each member that is not among those that are asked why it is not.
func (w *view) notAsked(asked []*server) (why []error) {
	for _, v := range w.members {
		if slices.Contains(asked, v) {
			continue
		}
		if err := v.Unusable(); err != nil { // it may have been taken in meanwhile
			why = append(why, fmt.Errorf("%s: %w", v.Name(), err))
		}
	}
	return why
}

// Stride is how far apart the numbers of one sequence server are: how many servers there are, if
// they take turns with InterleaveStep, else 1. Before the servers were asked for the plan it is
// what the configuration says. It does no I/O.
func (s *Sequences) Stride() uint64 {
	w := s.servers.view.Load()
	switch {
	case len(w.members) < 2:
		return 1
	case w.settled && w.plan.Interleave == InterleaveStep, !w.settled && s.opts.Interleave == InterleaveStep:
		return uint64(len(w.members))
	}
	return 1
}

// Divided says whether several sequence servers divide the numbers, and by how many one may move a
// row of theirs without us: a multiple of turns, if that is more than 1. With NoDirectWriters
// nobody may, as a member that is away is then taken out by what reservations said of it. Unless
// the servers are known to divide the numbers in blocks it asks them, as their set may have been
// changed a moment ago, or before this process began. While it is changed, or none can be asked, it
// waits. Errors: ErrUnfit, ErrClosed, ctx's cause, *UnavailableError.
func (s *Sequences) Divided(ctx context.Context) (several bool, turns uint64, err error) {
	if !s.begin() {
		return false, 0, ErrClosed
	}
	defer s.tasks.Done()
	w := s.servers.view.Load()
	if !w.settled || !w.several() || w.plan.Interleave == InterleaveStep {
		r, stop := s.request(ctx)
		defer stop()
		for backoff := s.timing.firstBackoff; ; backoff = min(2*backoff, s.timing.follow/4) {
			now, failed := s.servers.hearPlan(r.ctx)
			if w = now; failed == nil || err == nil || r.ctx.Err() == nil {
				// an attempt that was cut off says less than the one before
				err = failed
			}
			if errors.Is(failed, store.OutcomeFrozen) || errors.Is(failed, store.OutcomeOldPlan) {
				s.startFollowing() // who leaves out a server that obeys another plan
			}
			if err == nil || errors.Is(err, ErrUnfit) || errors.Is(err, ErrClosed) || !await.Pause(r.ctx, await.Jitter(backoff)) {
				break
			}
		}
		if err != nil {
			return false, 0, r.failed("", err)
		}
	}
	if !w.several() {
		return false, 1, nil
	}
	s.startFollowing() // so that it is heard when they are not any more
	if w.plan.Interleave == InterleaveStep && !s.servers.tuning.Load().NoDirectWriters {
		return true, uint64(len(w.members)), nil
	}
	return true, 1, nil
}

// hearPlan returns the members in use, once all of them that answer have said that their plan is
// still in force: one may have been away when the next one began.
func (a *servers) hearPlan(ctx context.Context) (w *view, err error) {
	err = a.under(ctx, func(now *view) error {
		w = now
		live := now.live()
		failed := member.Each(ctx, live, func(ctx context.Context, _ int, v *server) error { return v.StillObeys(ctx, now.plan.Number) })
		otherwise := func(err error) bool {
			return errors.Is(err, store.OutcomeOldPlan) || errors.Is(err, store.OutcomeFrozen)
		}
		if len(failed) == len(live) || ctx.Err() != nil || slices.ContainsFunc(failed, otherwise) {
			return errors.Join(failed...)
		}
		return nil
	})
	return w, err
}

// order returns the positions in the order in which they are asked for n numbers: while they fit in
// the block that was begun last, its member comes first, and else the one whose turn it is.
func (a *servers) order(w *view, name string, n uint64) []int {
	count := len(w.members)
	floor := a.marks.Of(name)
	a.mu.Lock()
	turn, ok := a.lastUsed[name]
	a.mu.Unlock()
	next := (turn + 1) % count
	if !ok {
		next = rand.IntN(count)
	}
	if b := w.plan.Block; w.plan.Interleave == InterleaveBlock && floor%b != 0 && w.shareOf(name).Width(n) <= b-floor%b {
		next = int(floor / b % uint64(count))
	}
	positions := make([]int, count)
	for i := range positions {
		positions[i] = (next + i) % count
	}
	slices.SortStableFunc(positions, func(x, y int) int {
		return cmp.Compare(asNumber(w.members[x].Away()), asNumber(w.members[y].Away()))
	})
	return positions
}

func asNumber(b bool) int {
	if b {
		return 1
	}
	return 0
}

// shareOf is the first member's share of a sequence: with those of the others it has all but the
// place in common.
func (w *view) shareOf(name string) segment.Share {
	v := w.members[0]
	return v.ShareOf(name, v.Rules.Of(name))
}

// sized rounds the size of a segment that is measured by use, so that little of a block is skipped.
func (a *servers) sized(r segment.Rule, n uint64) uint64 {
	if w := a.view.Load(); w.several() {
		return w.members[0].Share().By(r).Sized(n)
	}
	return n
}

// settleAt takes note of the home of an ORDER sequence: the member that gives all its numbers.
func (a *servers) settleAt(r *store.Row) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if !r.Def.Order {
		delete(a.homes, r.Name)
		return
	}
	a.homes[r.Name] = r.Home
}

// home is the member that gives the numbers of an ORDER sequence, nil if it is none. One that is in
// the plan no more, and one that was not chosen since there was one server alone, is replaced by
// the first: for everybody, as all who reserve do so under the plan in force.
// All ticks of a worker are of one member, too.
func (a *servers) home(w *view, name string) *server {
	if worker, ok := define.WorkerIn(name); ok {
		return w.members[worker%uint64(len(w.members))]
	}
	a.mu.Lock()
	home, ordered := a.homes[name]
	a.mu.Unlock()
	if !ordered {
		return nil
	}
	return w.members[max(0, slices.IndexFunc(w.plan.Members, func(m Member) bool { return m.ID == home }))]
}

// nameFor is how errors call what gives the numbers of a sequence.
func (a *servers) nameFor(name string) string {
	if home := a.home(a.view.Load(), name); home != nil {
		return home.Name()
	}
	return a.name()
}

// maxHomes bounds how many members one reservation of an ORDER sequence is made with, each of which
// says that another one is its home.
const maxHomes = 3

// askForHome takes note of what the members say now of a sequence's home, and has them agree on
// that.
func (a *servers) askForHome(ctx context.Context, w *view, name string) error {
	found, err := a.findAll(ctx, w, name)
	if err != nil {
		return err
	}
	// its row may have been made again under another spelling than the one that numbers are
	// reserved by
	found.Name = name
	a.settleAt(&found)
	return nil
}

// reserveAny reserves with the only member, with the home of an ORDER sequence, and else with the
// first member that can.
func (a *servers) reserveAny(ctx context.Context, w *view, name string, want, need uint64) (g grant, err error) {
	if !w.several() { // there is nobody to turn to if it takes long
		return a.reserveOn(ctx, w.members[0], name, want, need)
	}
	if h := w.shareOf(name); h.InBlocks() && need > h.Run() {
		return grant{}, &blockError{name: name, need: need, block: h.Run()}
	}
	for range maxHomes {
		if home := a.home(w, name); home != nil {
			g, err = a.reserveWith(ctx, w, home, name, want, need, home.HomeTime())
		} else {
			g, err = a.reserveWithAny(ctx, w, name, want, need)
		}
		if !errors.Is(err, store.OutcomeNotHome) {
			return g, err
		}
		if err := a.askForHome(ctx, w, name); err != nil {
			return grant{}, err
		}
	}
	return grant{}, err
}

// reserveWithAny reserves with the first member that can.
func (a *servers) reserveWithAny(ctx context.Context, w *view, name string, want, need uint64) (grant, error) {
	var exhausted, failed error
	for _, position := range a.order(w, name, want) {
		v := w.members[position]
		if err := a.lacking(v, name); err != nil {
			failed = err
			continue
		}
		if v.Away() && (failed != nil || exhausted != nil) && a.anyLive(w) {
			if failed == nil { // it may have numbers left
				failed = fmt.Errorf("%s: %w", v.Name(), cmp.Or(v.Unusable(), member.ErrExcluded))
			}
			continue
		}
		g, err := a.reserveWith(ctx, w, v, name, want, need, v.TryTime())
		if err == nil {
			a.mu.Lock()
			a.lastUsed[name] = position
			a.mu.Unlock()
			return g, nil
		}
		switch {
		case errors.Is(err, ErrExhausted):
			exhausted = err
			continue
		case errors.Is(err, store.OutcomeOldPlan):
			if v.Share().Plan != w.plan.Number || a.reread(ctx, w) != nil || a.view.Load() != w {
				return grant{}, store.OutcomeOldPlan
			}
			failed = err // it obeys another plan than the one in force, and gives nothing
			v.LeaveOut(err)
			continue
		case errors.Is(err, ErrUnknown), errors.Is(err, ErrSeveral), errors.Is(err, define.ErrBadOption), errors.Is(err, ErrClosed),
			errors.Is(err, store.OutcomeNotHome), isUnfitRow(err), ctx.Err() != nil:
			return grant{}, err
		}
		if !errors.Is(failed, store.OutcomeUnwitnessed) { // which says more than that the others are away
			failed = err
		}
		if !errors.Is(err, errLacks) && !errors.Is(err, store.OutcomeUnwitnessed) && !errors.Is(err, store.OutcomeFrozen) && !link.IsConflict(err) && !link.IsMomentary(err) {
			v.LeaveOut(err)
		}
	}
	if failed == nil {
		failed = exhausted
	}
	return grant{}, failed
}

func (a *servers) anyLive(w *view) bool {
	return slices.ContainsFunc(w.members, func(v *server) bool { return !v.Away() })
}

// reserveWith reserves with one member, which has so long for that. A row that it lacks is made.
func (a *servers) reserveWith(ctx context.Context, w *view, v *server, name string, want, need uint64, within time.Duration) (grant, error) {
	try := func() (grant, error) {
		ctx, stop := context.WithTimeoutCause(ctx, within, await.ErrPatience)
		defer stop()
		return a.reserveOn(ctx, v, name, want, need)
	}
	g, err := try()
	if !errors.Is(err, ErrUnknown) {
		return g, err
	}
	found, err := a.findAll(ctx, w, name)
	if err != nil {
		return grant{}, err
	}
	if g, err = try(); !errors.Is(err, ErrUnknown) {
		return g, err
	}
	return grant{}, a.missing(ctx, v, name, &found)
}

// seen is what one member says of a name.
type seen struct {
	store.Row
	err error
}

// findAll asks all members that can be reached, makes them agree, and returns the row as it is for
// all of them: its id is the highest. A row of the only member agrees with itself, also one that
// was made by hand, and counts at the end of its column, where no other member goes on.
func (a *servers) findAll(ctx context.Context, w *view, name string) (store.Row, error) {
	live := w.live()
	all := make([]seen, len(live))
	failed := slices.DeleteFunc(member.Each(ctx, live, func(ctx context.Context, i int, v *server) error {
		all[i].Row, all[i].err = v.LookEither(ctx, name)
		return all[i].err
	}), func(err error) bool { return errors.Is(err, ErrUnknown) })
	var merged *store.Row
	var unknown []error
	agree := true
	for i := range all {
		r := &all[i].Row
		switch err := all[i].err; {
		case errors.Is(err, ErrUnknown):
			unknown = append(unknown, err)
		case err != nil:
			if !errors.Is(err, ErrUnfit) && ctx.Err() == nil && len(live) > 1 {
				live[i].LeaveOut(err)
			}
		case w.several() && !r.Frozen && r.ID >= live[i].Seen.Load().Max:
			failed = append(failed, fmt.Errorf("%s: %w", live[i].Name(), &NameError{Name: define.ShownName(name), Err: ErrExhausted}))
		case r.Plan != r.Share.Plan && (!w.several() || r.Share.InSteps() && !r.Frozen && !r.Share.Has(r.ID)):
			return store.Row{}, store.OutcomeOldPlan // whose numbers these are is not known before the plan is
		case r.Share.InSteps() && !r.Frozen && !r.Share.Has(r.ID):
			return store.Row{}, live[i].WrongResidue(ctx, w.members, r.Name, r.ID, r.Share)
		case merged == nil:
			merged = r
			agree = r.Version != 0 || !w.several()
		default:
			agree = agree && r.Version == merged.Version
			merged = mergeRows(merged, r)
		}
	}
	switch {
	case merged == nil && len(unknown) == 0:
		return store.Row{}, errors.Join(failed...)
	case merged == nil && len(unknown) < len(w.members)-majority(len(w.members))+1:
		return store.Row{}, fmt.Errorf("too few sequence servers can be reached to tell whether there is sequence %q: %w", name, errors.Join(append(failed, w.notAsked(live)...)...))
	case merged == nil:
		return store.Row{}, unknown[0]
	case !agree || len(unknown) > 0:
		found, err := w.reconcile(ctx, merged.Name)
		if err != nil {
			return store.Row{}, err
		}
		merged = &found
	}
	a.settleAt(merged)
	return *merged, nil
}

// majority is how many members a new sequence needs.
func majority(members int) int { return members/2 + 1 }

// mergeRows is the newer of two definitions, with the higher id and the lower maximum.
func mergeRows(x, y *store.Row) *store.Row {
	if y.Version > x.Version {
		x, y = y, x
	}
	merged := *x
	if y.Position() > merged.Position() {
		merged.ID, merged.Frozen = y.Position(), false
	}
	merged.Max = min(merged.Max, y.Max)
	return &merged
}

// mergeLists lists each row once.
func mergeLists(lists [][]store.Row) (all []store.Row) {
	byName := make(map[string]int)
	for _, list := range lists {
		for i := range list {
			r := &list[i]
			if at, known := byName[r.Name]; known {
				all[at] = *mergeRows(&all[at], r)
				continue
			}
			byName[r.Name] = len(all)
			all = append(all, *r)
		}
	}
	return all
}

// mergeProxies lists each once. It obeys what it told any member.
func mergeProxies(lists [][]Proxy) (all []Proxy) {
	byID := make(map[string]int)
	for _, list := range lists {
		for _, p := range list {
			i, ok := byID[p.ID]
			switch {
			case !ok:
				byID[p.ID] = len(all)
				all = append(all, p)
			default:
				p.Version = max(p.Version, all[i].Version)
				if p.Silent > all[i].Silent {
					p.Silent = all[i].Silent
				}
				all[i] = p
			}
		}
	}
	slices.SortStableFunc(all, func(x, y Proxy) int { return x.Since.Compare(y.Since) })
	return all
}
