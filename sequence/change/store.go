package change

import (
	"context"
	"errors"
	"fmt"
	"slices"
)

// Servers is the way to the sequence servers, and what is around a change.
type Servers interface {
	// Reach connects to the servers at some addresses, all at the same time, with connections
	// of the change's own. In place of one that cannot be reached it returns why.
	Reach(ctx context.Context, addresses []string) ([]Store, []error)
	// Fill tells all proxies that rows are going to be frozen, and waits a little for them to
	// fill their caches.
	Fill(ctx context.Context, members []Store)
	// Outlive returns a context that goes on for some time although ctx ends.
	Outlive(ctx context.Context) (context.Context, context.CancelFunc)
	// Did is called after each step on a server. An error ends the coordinator there, as
	// if its process had been killed: nothing is undone. Only tests return one.
	Did(step, address string) error
}

// Store is one server's tables. Each method is one transaction or one statement, as if no other
// ran at the same time, and may fail with its outcome unknown: then the same is done again, or
// the change is undone. It is safe for use by several coordinators.
type Store interface {
	Reader
	Stepper
	Settler
	// Close closes the connections.
	Close() error
}

// Reader reads what a server knows.
type Reader interface {
	Report(ctx context.Context) (Report, error)
	// Look reads what matters before a change. A server gets its id the first time.
	Look(ctx context.Context) (Look, error)
	// Knowledge reads what a member that is brought to a plan takes over from this one.
	Knowledge(ctx context.Context, p *Plan) (Knowledge, error)
}

// Stepper does the steps of a change until it is decided. But for the first each does nothing
// unless the server has promised this ballot, and no later one: then it returns ErrTakenOver.
type Stepper interface {
	// Promise has the server obey no lower ballot than this, and returns the state of the change
	// there. It writes a plan down that the server does not know: the state is "" then. Errors:
	// ErrTakenOver if it has promised a higher ballot, *OtherPlanError if it knows another plan
	// above base, or of that number.
	Promise(ctx context.Context, p *Plan, base, ballot uint64) (was string, err error)
	// Freeze has all rows stand at the end of their column, and saves where they stood. It returns
	// what the server gave at most of each name, and the ceilings that it has recorded for a member
	// that is missing, unless the id of that is empty.
	Freeze(ctx context.Context, p *Plan, ballot uint64, missing string) (Given, error)
	// Accept writes down where the plan begins, and who may hold numbers then, and has the server
	// accept it. It never takes that back.
	Accept(ctx context.Context, p *Plan, ballot uint64, all Floors, holders Holders) error
}

// Settler brings a server to what was decided. Whoever does that comes to the same, so that no
// ballot is needed.
type Settler interface {
	// Obey has the server obey a plan that is decided. Its rows begin above the floors, and above
	// what it gave itself. From then on it has a ceiling of each member recorded. brought is false if
	// it obeyed already.
	Obey(ctx context.Context, p *Plan, floors Floors, known []Knowledge) (brought bool, err error)
	// LetGo has the server go on as before a change that is never decided, and never accept it. A
	// server that does not know the change, or has ended it, stays as it is.
	LetGo(ctx context.Context, p *Plan) error
}

// Knowledge is what a store tells another that is brought to a plan.
type Knowledge struct {
	Floors   Floors
	Complete bool // it has all floors of the plan
	More     any  // definitions and proxies: only stores look into it
}

// OtherPlanError: a server knows another plan than the one that it is asked of.
type OtherPlanError struct{ Plan Plan }

func (e *OtherPlanError) Error() string {
	return fmt.Sprintf("it knows another plan, %d, of change %s", e.Plan.Number, e.Plan.UUID)
}

// Look is what a server knows before a change.
type Look struct {
	Report
	Sequences []Sequence
}

// Sequence is what a change looks at of a definition.
type Sequence struct {
	Name      string
	End       uint64 // its last number
	Increment uint64 // 1 and more
	Cycle     bool
	Clock     bool   // its keys have the time
	Order     bool   // all its numbers come from one server, its home
	Home      string // id of that; empty: the first one
}

// Floors is where a plan begins.
type Floors struct {
	Named  []Floor
	Others uint64 // of the names that no server knew: no member gives this number, nor one below
}

// Floor is how far the numbers of a name may have gone.
type Floor struct {
	Name  string
	Floor uint64 // no member gives this number, nor one below
	// Ceiling is how far each member may go before another has recorded more; 0: not at all.
	Ceiling uint64
}

// Gave is what a frozen server gave at most of a name.
type Gave struct {
	Name string
	UpTo uint64
	Row  bool // it is of a row
	// there is no row, though numbers were given: it counts if another server has one
	Missing bool
	// the numbers are a time, of which nobody has many: no ceiling is ahead of them
	Ticks bool
}

// Given is what a frozen server gave.
type Given struct {
	Names     []Gave
	Sequences []Sequence
	End       uint64 // the highest number that its column holds
	Proxies   any    // that are registered there: only stores look into it
}

// Holders are the proxies that may hold numbers when the members are frozen.
type Holders struct {
	Proxies []any // of each of them
	// Unasked is the address of a member that is taken out and could not be asked, or "": nobody
	// knows who was registered with it alone.
	Unasked string
}

// Met is a server, and its report, in which there is nothing if it did not answer.
type Met struct {
	Store
	Report
	Member Member // as the plan has it, for who goes by that
	Err    error  // why it did not answer
}

// Reconcile brings those of some servers to the plan in force, or decided, that are behind it, and
// has those go on that a change left which came to nothing, by their own reports, or as its
// coordinator says of void, which may be nil. It does what it can. brought tells that one of them
// was behind, failed what could not be done, by position. did is called after each step, and ends
// all with an error; it may be nil.
func Reconcile(ctx context.Context, met []Met, now, void *Plan, did func(step string, m *Met) error) (brought bool, failed []error) {
	if did == nil {
		did = func(string, *Met) error { return nil }
	}
	failed = make([]error, len(met))
	var known []Knowledge
	var unknown error
	// First those that stay: what is made there by hand until they obey the others hear of.
	for _, stays := range []bool{true, false} {
		for i := range met {
			m := &met[i]
			if !m.behind(now) || now.stays(m.ID) != stays {
				continue
			}
			if known == nil {
				known, unknown = knowledge(ctx, met, now)
			}
			caught, why := obey(ctx, m, now, known, unknown)
			if brought, failed[i] = brought || caught, why; why != nil {
				continue
			}
			if failed[i] = did(InForce, m); failed[i] != nil {
				return brought, failed
			}
		}
		if brought {
			known = nil
		}
	}
	for i := range met {
		m := &met[i]
		for j := range m.Plans {
			p := &m.Plans[j]
			isVoid := void != nil && p.UUID == void.UUID
			isLeft := p.State == Proposed && !p.follows(now) // another plan was made since
			if !p.Open() || p.UUID == now.UUID || !isVoid && !isLeft && !p.Vetoed(met) {
				continue
			}
			if why := m.LetGo(ctx, p); why != nil {
				failed[i] = errors.Join(failed[i], why)
			} else if failed[i] = did(Aborted, m); failed[i] != nil {
				return brought, failed
			}
		}
	}
	return brought, failed
}

// behind reports whether a server has yet to obey the plan in force, or to leave by it. Servers
// join the first plan by themselves.
func (m *Met) behind(now *Plan) bool {
	return m.Plan < now.Number && (m.Plan > 0 || len(now.Previous) > 0) && (HasMember(now.Members, m.ID) || HasMember(now.Previous, m.ID))
}

// knowledge reads what servers know that one takes over which is brought to a plan. Those that do
// not answer are passed over: what one knows others know, too.
func knowledge(ctx context.Context, met []Met, p *Plan) (all []Knowledge, failed error) {
	for _, m := range met {
		var known Knowledge
		err := m.Err
		if err == nil {
			known, err = m.Knowledge(ctx, p)
		}
		if err == nil {
			all = append(all, known)
		}
		failed = errors.Join(failed, err)
	}
	return all, failed
}

// obey brings a server that is behind to a plan, by what others know. unknown is why some did not
// tell.
func obey(ctx context.Context, m *Met, p *Plan, known []Knowledge, unknown error) (brought bool, err error) {
	has := slices.IndexFunc(known, func(k Knowledge) bool { return k.Complete })
	switch {
	case has >= 0:
		return m.Obey(ctx, p, known[has].Floors, known)
	case len(p.Previous) == 0: // the first plan has none
		return m.Obey(ctx, p, Floors{}, known)
	}
	return false, errors.Join(fmt.Errorf("no member that has the floors of plan %d can be reached", p.Number), unknown)
}
