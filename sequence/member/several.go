package member

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"seqproxy/internal/await"
	"seqproxy/sequence/define"
	"seqproxy/sequence/floor"
	"seqproxy/sequence/link"
	"seqproxy/sequence/store"
)

// Agreement makes the members agree on the plan in force and on the definition of a sequence.
type Agreement interface {
	// FindAll reads the row of a name, merged from some members. It calls SettleAt with their home
	// of an ORDER sequence.
	FindAll(ctx context.Context, among *Among, name string) (store.Row, error)
	// StaysInForce reports whether the plan of that number is still in force, after a member obeyed
	// another one.
	StaysInForce(ctx context.Context, plan uint64) bool
	// BeginAgain restarts a sequence with CYCLE that has come to its end at its minimum, and
	// returns how many numbers remain then.
	BeginAgain(ctx context.Context, v *Server, name string, need uint64) (remaining uint64, err error)
}

// Several reserves on one of the members in use: on the only one, on the home of an ORDER sequence,
// and else on the first that can. It is safe for concurrent use.
type Several struct {
	agreement Agreement
	marks     *floor.Marks
	lackFor   time.Duration // for how long a member is not asked for a row that it lacks

	mu    sync.Mutex
	last  map[string]int    // guarded by mu; the last position that was asked, by sequence
	homes map[string]string // guarded by mu; the id of the home of each ORDER sequence
	lacks map[lack]lacked   // guarded by mu; rows that members lack
}

// NewSeveral makes Several. marks are those of all members.
func NewSeveral(agreement Agreement, marks *floor.Marks, lackFor time.Duration) *Several {
	return &Several{
		agreement: agreement, marks: marks, lackFor: lackFor, last: make(map[string]int), homes: make(map[string]string), lacks: make(map[lack]lacked),
	}
}

// BlockError: a run of numbers is longer than a block. It is a define.ErrSeveral.
type BlockError struct {
	Name        string
	Need, Block uint64
}

func (e *BlockError) Error() string {
	return fmt.Sprintf("sequence %q: %d consecutive numbers do not fit in a block of %d: take fewer rows in one statement, or larger blocks, "+
		"for which all sequence servers but one are removed and added again with another sequence.block", e.Name, e.Need, e.Block)
}

// Unwrap returns define.ErrSeveral.
func (e *BlockError) Unwrap() error { return define.ErrSeveral }

// order returns the positions in the order in which they are asked for n numbers. First is the
// member of the last begun block while they fit in there, or else the one after the last one asked.
func (s *Several) order(among *Among, name string, n uint64) []int {
	count := len(among.Members)
	floor := s.marks.Of(name)
	s.mu.Lock()
	last, ok := s.last[name]
	s.mu.Unlock()
	next := (last + 1) % count
	if !ok {
		next = rand.IntN(count)
	}
	if h := among.ShareOf(name); h.InBlocks() && floor%h.Block != 0 && h.Width(n) <= h.Block-floor%h.Block {
		next = int(floor / h.Block % uint64(count))
	}
	live, away := make([]int, 0, count), []int(nil)
	for i := range count {
		if position := (next + i) % count; among.Members[position].Away() {
			away = append(away, position)
		} else {
			live = append(live, position)
		}
	}
	return append(live, away...)
}

// AskedLast records the position that gave numbers of a sequence.
func (s *Several) AskedLast(name string, position int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.last[name] = position
}

// SettleAt records the home of an ORDER sequence: the member that gives all its numbers.
func (s *Several) SettleAt(r *store.Row) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !r.Def.Order {
		delete(s.homes, r.Name)
		return
	}
	s.homes[r.Name] = r.Home
}

// HomeOf returns the id of the home of an ORDER sequence. ok is false if it is not one, as far as
// this process knows.
func (s *Several) HomeOf(name string) (id string, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	id, ok = s.homes[name]
	return id, ok
}

// Home returns the member that gives the numbers of an ORDER sequence, nil if it is not one. A home
// that is not in the plan, or that was never chosen since one server was alone, is replaced by the
// first: for every process, as all reserve under the plan in force. All ticks of a worker come from
// one member too.
func (s *Several) Home(among *Among, name string) *Server {
	if worker, ok := define.WorkerIn(name); ok {
		return among.Members[worker%uint64(len(among.Members))]
	}
	home, ordered := s.HomeOf(name)
	if !ordered {
		return nil
	}
	return among.Members[max(0, slices.IndexFunc(among.Members, func(v *Server) bool { return v.Share().ID == home }))]
}

// maxHomes bounds how many members are tried for one reservation of an ORDER sequence when each
// names another home.
const maxHomes = 3

// askForHome asks the members for a sequence's home, records it, and makes them agree on it.
func (s *Several) askForHome(ctx context.Context, among *Among, name string) error {
	found, err := s.agreement.FindAll(ctx, among, name)
	if err != nil {
		return err
	}
	// its row may have been made again under another spelling than the one that numbers are
	// reserved by
	found.Name = name
	s.SettleAt(&found)
	return nil
}

// Reserve reserves numbers, as [Server.Reserve] does.
func (s *Several) Reserve(ctx context.Context, among *Among, name string, want, need uint64) (g store.Grant, d Due, err error) {
	if !among.Several() { // no other member can serve if it takes long
		return s.reserveAlone(ctx, among, name, want, need)
	}
	if h := among.ShareOf(name); h.InBlocks() && need > h.Run() {
		return store.Grant{}, Due{}, &BlockError{Name: name, Need: need, Block: h.Run()}
	}
	for range maxHomes {
		if home := s.Home(among, name); home != nil {
			g, d, err = s.ReserveWith(ctx, among, home, name, want, need, home.homeTime())
		} else {
			g, d, err = s.reserveWithAny(ctx, among, name, want, need)
		}
		if !errors.Is(err, store.OutcomeNotHome) {
			return g, d, err
		}
		if err := s.askForHome(ctx, among, name); err != nil {
			return store.Grant{}, Due{}, err
		}
	}
	return store.Grant{}, Due{}, err
}

// reserveAlone reserves with the only server. Only there CYCLE is possible: of several no row goes
// down.
func (s *Several) reserveAlone(ctx context.Context, among *Among, name string, want, need uint64) (store.Grant, Due, error) {
	v := among.Members[0]
	g, d, err := v.Reserve(ctx, among, name, want, need)
	if !errors.Is(err, errCycles) {
		return g, d, err
	}
	remaining, err := s.agreement.BeginAgain(ctx, v, name, need)
	switch {
	case err != nil:
		return store.Grant{}, Due{}, store.WithGrants(err, v.Config.Database)
	case remaining < need:
		return store.Grant{}, Due{}, &define.NameError{Name: define.ShownName(name), Err: define.ErrExhausted}
	}
	return v.Reserve(ctx, among, name, fitting(remaining, want, need), need)
}

// reserveWithAny reserves with the first member that can.
func (s *Several) reserveWithAny(ctx context.Context, among *Among, name string, want, need uint64) (store.Grant, Due, error) {
	var exhausted, failed error
	for _, position := range s.order(among, name, want) {
		v := among.Members[position]
		if err := s.Lacks(v, name); err != nil {
			failed = err
			continue
		}
		if v.Away() && (failed != nil || exhausted != nil) && among.AnyLive() {
			if failed == nil { // it may have numbers left
				failed = fmt.Errorf("%s: %w", v.Name(), cmp.Or(v.Unusable(), ErrExcluded))
			}
			continue
		}
		g, d, err := s.ReserveWith(ctx, among, v, name, want, need, v.TryTime())
		if err == nil {
			s.AskedLast(name, position)
			return g, d, nil
		}
		switch {
		case errors.Is(err, define.ErrExhausted):
			exhausted = err
			continue
		case errors.Is(err, store.OutcomeOldPlan):
			if v.Share().Plan != among.Number || !s.agreement.StaysInForce(ctx, among.Number) {
				return store.Grant{}, Due{}, store.OutcomeOldPlan
			}
			failed = err // it obeys another plan than the one in force, and gives nothing
			v.LeaveOut(err)
			continue
		case errors.Is(err, define.ErrUnknown), errors.Is(err, define.ErrSeveral), errors.Is(err, define.ErrBadOption), errors.Is(err, link.ErrClosed),
			errors.Is(err, store.OutcomeNotHome), IsUnfitRow(err), ctx.Err() != nil:
			return store.Grant{}, Due{}, err
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
	return store.Grant{}, Due{}, failed
}

// IsUnfitRow reports whether an error is about the row of one sequence alone.
func IsUnfitRow(err error) bool {
	var unfit *link.UnfitError
	return errors.As(err, &unfit) && unfit.OfSequence
}

// ReserveWith reserves with one member within a time limit. A row that it lacks is made.
func (s *Several) ReserveWith(ctx context.Context, among *Among, v *Server, name string, want, need uint64, within time.Duration) (store.Grant, Due, error) {
	try := func() (store.Grant, Due, error) {
		ctx, stop := context.WithTimeoutCause(ctx, within, await.ErrPatience)
		defer stop()
		return v.Reserve(ctx, among, name, want, need)
	}
	g, d, err := try()
	if !errors.Is(err, define.ErrUnknown) {
		return g, d, err
	}
	found, err := s.agreement.FindAll(ctx, among, name)
	if err != nil {
		return store.Grant{}, Due{}, err
	}
	if g, d, err = try(); !errors.Is(err, define.ErrUnknown) {
		return g, d, err
	}
	return store.Grant{}, Due{}, s.missing(ctx, v, name, &found)
}
