package change

import "context"

// Reach connects to the servers at some addresses, all at the same time, with connections of the
// change's own. Of each it returns the store, or why it cannot be reached.
type Reach func(ctx context.Context, addresses []string) []Met

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
	// Look reads what matters before a change, also of definitions. A server gets its id the first
	// time.
	Look(ctx context.Context) (Report, []Sequence, error)
	// Knowledge reads what a member that is brought to a plan takes over from this one.
	Knowledge(ctx context.Context, p *Plan) (Knowledge, error)
}

// Stepper does the steps of a change until it is decided. But for the first each does nothing
// unless the server has promised the ballot of p, and no later one: then it returns ErrTakenOver.
type Stepper interface {
	// Promise has the server obey no lower ballot than that of p, and returns the state of the change
	// there. It is "" on a server that does not know the change. That writes the plan down if base is
	// the plan that it was drafted from. For who takes over, base is the plan's own number, and
	// nothing is written: a server that has forgotten that it accepted would pass for one that never
	// did. Errors: ErrTakenOver if it has promised a higher ballot, InProgress if it knows another
	// plan above base, or of that number.
	Promise(ctx context.Context, p *Plan, base uint64) (was string, err error)
	// Freeze has all rows stand at the end of their column, and saves where they stood. It returns
	// what the server gave at most of each name, and the ceilings that it has recorded for a member
	// that is missing, unless the id of that is empty.
	Freeze(ctx context.Context, p *Plan, missing string) (Given, error)
	// Accept writes down where the plan begins, and who may hold numbers then, and has the server
	// accept it. It never takes that back.
	Accept(ctx context.Context, p *Plan, all Floors, holders Holders) error
}

// Settler brings a server to what was decided. Whoever does that comes to the same, so that no
// ballot is needed.
type Settler interface {
	// Obey has the server obey a plan that is decided. Its rows begin above the floors, and above
	// what it gave itself. From then on it has a ceiling of each member recorded. One that obeys it
	// already stays as it is.
	Obey(ctx context.Context, p *Plan, floors Floors, all []Knowledge) error
	// LetGo has the server go on as before a change that is never decided, and never accept it. A
	// server that does not know the change, or has ended it, stays as it is. So does one that is past
	// proposed where the change was found so and seems abandoned: its coordinator may be at work.
	LetGo(ctx context.Context, p *Plan, abandoned bool) error
}

// Knowledge is what a store tells another that is brought to a plan.
type Knowledge struct {
	Floors   Floors
	Complete bool // it has all floors of the plan
	More     any  // definitions and proxies: only stores look into it
}

// Sequence is what a change looks at of a definition.
type Sequence struct {
	Name      string
	End       uint64 // its last number
	Increment uint64 // 1 and more
	Cycle     bool
	Clock     bool // its keys have the time
}

// Floors is where a plan begins.
type Floors struct {
	Named []Floor
	// Others is of the names that no server knew: no member gives this number, nor one below. Rows of
	// kinds of keys are none of these, as no application counts in them.
	Others uint64
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
