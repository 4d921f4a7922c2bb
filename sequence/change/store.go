package change

import (
	"context"
	"errors"
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
	// Did is told of a step that was done on a server. An error ends the coordinator there, as
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
	// Identify returns the server's id, which it gets the first time.
	Identify(ctx context.Context) (string, error)
	Report(ctx context.Context) (Report, error)
	// Sequences lists the sequences, at least those that several servers cannot count, and those
	// that have a home.
	Sequences(ctx context.Context) ([]Sequence, error)
	// Knowledge reads what a member that is brought to a plan takes over from this one.
	Knowledge(ctx context.Context, p *Plan) (Knowledge, error)
	// Floors reads the floors of a plan; complete is false where the server does not have all.
	Floors(ctx context.Context, number uint64) (all Floors, complete bool, err error)
}

// Stepper does the steps of a change. But for the first two each does nothing unless the server
// has promised this ballot, and no later one: then it returns ErrTakenOver.
type Stepper interface {
	// Propose writes a plan down that the server does not know yet, under a ballot, unless it
	// knows another one above base: it returns that.
	Propose(ctx context.Context, p *Plan, base, ballot uint64) (other *Plan, err error)
	// Promise has the server obey no lower ballot than this, and returns how far the change was
	// there. known is false if it had not heard of it: it has by then. ErrTakenOver: it had
	// promised a higher one.
	Promise(ctx context.Context, p *Plan, base, ballot uint64) (was Promise, known bool, err error)
	// Freeze has all rows stand at the end of their column, and saves what they held.
	Freeze(ctx context.Context, p *Plan, ballot uint64) error
	// Gave reads what the frozen server gave at most of each name, and the ceilings that it has
	// recorded for a member that is missing, unless the id of that is empty.
	Gave(ctx context.Context, p *Plan, ballot uint64, missing string) (Given, error)
	// SetFloors writes down where the plan begins.
	SetFloors(ctx context.Context, p *Plan, ballot uint64, all Floors) error
	// Accept has the server accept the plan. It never takes that back.
	Accept(ctx context.Context, p *Plan, ballot uint64) error
	// Thaw has the server go on as before, and never accept the plan.
	Thaw(ctx context.Context, p *Plan, ballot uint64) error
	// Withdraw takes back a proposal.
	Withdraw(ctx context.Context, p *Plan, ballot uint64) error
}

// Settler brings a server to what was decided. Whoever does that comes to the same.
type Settler interface {
	// Obey has the server with an id obey a plan that is decided. Its rows begin above the floors,
	// and above what it gave itself. From then on it has a ceiling of each member recorded. brought
	// is false if it obeyed already.
	Obey(ctx context.Context, p *Plan, id string, floors Floors, known []Knowledge) (brought bool, err error)
	// LetGo has the server go on as before a change that came to nothing, of which it was not told.
	LetGo(ctx context.Context, p *Plan) error
}

// Knowledge is what a store tells another of definitions and proxies. Only stores look into it.
type Knowledge any

// Promise is what a server has promised of a change.
type Promise struct {
	State  string
	Ballot uint64
}

// Sequence is what a change looks at of a definition.
type Sequence struct {
	Name      string
	Increment uint64 // 1 and more
	Cycle     bool
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
	End  uint64 // last number of the sequence, as the server knows it; 0: it does not
	Row  bool   // it is of a row
	// there is no row, though numbers were given: it counts if another server has one
	Missing bool
}

// Given is what a frozen server gave.
type Given struct {
	Names []Gave
	End   uint64 // the highest number that its column holds
}

// CatchUp brings a member that is behind to the plan in force. from is a member that obeys it.
func CatchUp(ctx context.Context, behind, from Store, p *Plan) (brought bool, err error) {
	floors, _, err := from.Floors(ctx, p.Number) // the first plan of a new table has none
	if err != nil {
		return false, err
	}
	known, err := from.Knowledge(ctx, p)
	if err != nil {
		return false, err
	}
	id, err := behind.Identify(ctx)
	if err != nil {
		return false, err
	}
	return behind.Obey(ctx, p, id, floors, []Knowledge{known})
}

// LetGo has those of some servers go on as before that a change left frozen which came to
// nothing, as they themselves tell. It does what it can, and returns what failed, by position.
func LetGo(ctx context.Context, stores []Store, all []Report) []error {
	failed := make([]error, len(all))
	for i := range all {
		for j := range all[i].Plans {
			if p := &all[i].Plans[j]; p.Open() && p.Vetoed(all) {
				failed[i] = errors.Join(failed[i], stores[i].LetGo(ctx, p))
			}
		}
	}
	return failed
}
