package sequence

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"seqproxy/internal/logfield"
)

// The set of sequence servers is changed by a plan, in steps that each are one transaction on a member. All members must be there, but for one that is
// removed; those that stay are asked to accept.
//
//	proposed   the plan is written down on all of them: there is no other change
//	frozen     every row stands at the end of its column, so that nobody reserves; what it held is saved
//	floors     the highest that any of them gave of each name is written down on all
//	accepted   a member that stays has accepted; once all have, the change is decided
//	in force   the rows of a member are set to its first position above the floors, and the member obeys the plan
//
// Before it is decided a change can be aborted, once one of those that stay has promised to accept it no more. Only then the rows get back what was saved.
// A coordinator that is killed leaves what another one ends, where the same is said again.

// States of a plan on one member, besides [PlanInForce].
const (
	planProposed = "proposed"
	planFrozen   = "frozen"
	planAccepted = "accepted"
	planAborted  = "aborted" // this member never accepts it, and goes on as before
	// planOvertaken: this member obeys a newer plan, and was not told what became of this change. Others can tell.
	planOvertaken = "overtaken"
)

// open reports whether a change in that state has yet to be ended on the member that says so.
func (p *Plan) open() bool {
	return p.State == planProposed || p.State == planFrozen || p.State == planAccepted
}

// openStates are those, as SQL has them.
const openStates = "'" + planProposed + "', '" + planFrozen + "', '" + planAccepted + "'"

// PlanChange says how the set of sequence servers is to change: by one that is added, or one that is removed.
type PlanChange struct {
	Add    string // "10.0.0.5:3306"
	Remove string
	// Force removes a member that cannot be reached although nobody knows how far it may go, or two are left. The operator must have switched it off:
	// numbers that it gives from now on would be given again. All sequences then go on above Above, if that is not 0.
	Force bool
	Above uint64
	// WritersStopped is the operator's word that no application counts in the tables until the change has ended.
	WritersStopped bool
}

// PlanError says why the set of sequence servers was not changed, or was left in the middle of a change, and what to do.
type PlanError struct {
	Finding string
	Remedy  string
	Err     error // the cause, or nil

	unreached bool // no sequence server could be asked
}

func (e *PlanError) Error() string {
	text := e.Finding
	if e.Err != nil {
		text += ": " + e.Err.Error()
	}
	if e.Remedy != "" {
		text += "; " + e.Remedy
	}
	return text
}

// Unwrap returns the cause.
func (e *PlanError) Unwrap() error { return e.Err }

// errTakenOver is why a coordinator goes no further: it wrote nothing in that step.
var errTakenOver error = &PlanError{
	Finding: "another proxy has taken over the change", Remedy: "look at SHOW SEQPROXY SEQUENCE SERVERS for what became of it; while it is in progress still, say the same again",
}

// inProgress is the error for a second change.
func inProgress(p *Plan) error {
	if p.State == PlanInForce {
		return &PlanError{Finding: fmt.Sprintf("change %s from %s was made in the same moment", p.UUID, p.Coordinator), Remedy: "look at SHOW SEQPROXY SEQUENCE SERVERS"}
	}
	return &PlanError{
		Finding: fmt.Sprintf("change %s from %s in progress, since %s UTC: it is %s", p.UUID, p.Coordinator, p.Begun.Format(time.DateTime), p.State),
		Remedy:  "wait for it; if its proxy died, end it on any other one by " + p.statement(),
	}
}

// statement is what an operator says to make the change that leads to p, and to end it.
func (p *Plan) statement() string {
	for _, m := range p.Members {
		if !hasMember(p.Previous, m.ID) {
			return "SEQPROXY ADD SEQUENCE SERVER '" + m.Address + "'"
		}
	}
	for _, m := range p.Previous {
		if !hasMember(p.Members, m.ID) {
			return "SEQPROXY REMOVE SEQUENCE SERVER '" + m.Address + "'"
		}
	}
	return "the statement that began it"
}

func hasMember(members []Member, id string) bool {
	return slices.ContainsFunc(members, func(m Member) bool { return m.ID == id })
}

// ChangePlan changes the set of sequence servers, and returns the plan that is in force then. Meanwhile callers are served
// from memory; whoever needs a reservation waits. It takes a second or two. Said again it ends a change that was left, as when its proxy was killed, and
// makes it unless it is made by that.
//
// Errors: *PlanError, ErrBadOption, ErrUnfit, ErrClosed, ctx's cause, or those of a server. Whatever fails before the change is decided is undone as far as
// members can be reached.
func (s *Sequences) ChangePlan(ctx context.Context, change PlanChange) (Plan, error) {
	return s.planned(ctx, func(r *planRun) error { return r.change(change) })
}

// planned runs f with what a coordinator needs.
func (s *Sequences) planned(ctx context.Context, f func(*planRun) error) (Plan, error) {
	if !s.planning.TryLock() {
		return s.asCoordinator(ctx, (*planRun).refuseSecond)
	}
	defer s.planning.Unlock()
	return s.asCoordinator(ctx, f)
}

// refuseSecond is the error for a second change in this process: as on any other proxy, once the first is written down.
func (r *planRun) refuseSecond() error {
	if _, open, err := r.current(); err == nil && open != nil {
		return inProgress(open)
	}
	return &PlanError{Finding: "this proxy is changing the set of sequence servers already", Remedy: "wait for it: SHOW SEQPROXY SEQUENCE SERVERS tells how far it is"}
}

// asCoordinator is planned for who only looks.
func (s *Sequences) asCoordinator(ctx context.Context, f func(*planRun) error) (Plan, error) {
	if !s.begin() {
		return Plan{}, ErrClosed
	}
	defer s.tasks.Done()
	within, stop := s.requestWithin(ctx, s.timing.change)
	defer stop()
	r := &planRun{s: s, ctx: within.ctx, opened: make(map[string]*server), away: make(map[string]error)}
	defer r.close()
	err := f(r)
	if err == nil {
		return r.plan, nil
	}
	return Plan{}, err
}

// planRun is one coordinator at work.
type planRun struct {
	s      *Sequences
	ctx    context.Context
	asked  PlanChange
	plan   Plan   // that the change leads to; the one in force where there is no change
	base   uint64 // number of the plan in force that it was drafted from
	ballot uint64 // under which this coordinator writes

	byBound bool // a member is taken out that cannot be reached, and has not gone above its bounds

	opened map[string]*server // by address
	away   map[string]error   // servers that cannot be reached, and why
}

func (r *planRun) close() {
	for _, v := range r.opened {
		if err := v.close(); err != nil {
			v.log.Debug("connections of a change of plans not closed", logfield.Err(err))
		}
	}
}

// server returns a server with connections of the change's own, or why it cannot be reached. Once away, it stays so for this run: a member that comes
// back in the middle is brought to the plan later.
func (r *planRun) server(address string) (*server, error) {
	if err := r.away[address]; err != nil {
		return nil, err
	}
	if v := r.opened[address]; v != nil {
		return v, nil
	}
	r.reach(address)
	if err := r.away[address]; err != nil {
		return nil, err
	}
	return r.opened[address], nil
}

// serverOptions is the way to a server: as it is configured, or like the first one that is.
func (s *Sequences) serverOptions(address string) (ServerOptions, error) {
	for _, o := range s.opts.Servers {
		if slices.ContainsFunc(o.nodes(), func(n Node) bool { return n.Addr == address }) || o.Addr == address {
			return o, nil
		}
	}
	o := s.opts.Servers[0]
	o.Network, o.Addr, o.Nodes = "tcp", address, nil
	return o, o.setDefaults()
}

// staying are the members that have to accept the change: those so far, but for one that is removed.
func (r *planRun) staying() (all []Member) {
	for _, m := range r.plan.Previous {
		if hasMember(r.plan.Members, m.ID) {
			all = append(all, m)
		}
	}
	return all
}

// everyone are the members of the plan and of the one before, first those that stay.
func (r *planRun) everyone() []Member {
	all := r.staying()
	for _, more := range [][]Member{r.plan.Previous, r.plan.Members} {
		for _, m := range more {
			if !hasMember(all, m.ID) {
				all = append(all, m)
			}
		}
	}
	return all
}

// awayOf names the members among some that cannot be reached.
func (r *planRun) awayOf(members []Member) (names []string, err error) {
	for _, m := range members {
		if _, why := r.server(m.Address); why != nil {
			names = append(names, m.Address)
			err = errors.Join(err, why)
		}
	}
	return names, err
}

// addresses of members, for people.
func addresses(members []Member) string {
	all := make([]string, len(members))
	for i, m := range members {
		all[i] = m.Address
	}
	return strings.Join(all, ", ")
}
