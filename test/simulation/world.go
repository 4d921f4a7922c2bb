package simulation

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"math/rand/v2"
	"slices"
	"strings"

	"go.uber.org/zap"

	"seqproxy/sequence/change"
	"seqproxy/sequence/segment"
)

// Faults leave out checks, so that a test must find it.
type Faults struct {
	NoBallot          bool // a member lets an older coordinator write
	RecordsForAnyPlan bool // a member records how far another may go, whatever plan that one obeys
	ThawsBeforeVote   bool // a coordinator aborts a change without asking whether it is decided
	ForgetsMissing    bool // a coordinator treats a missing member as one that gave nothing
	WritesUnaware     bool // a member writes a plan although it has one that the coordinator does not know

	AnyHome           bool // a member gives numbers of an ORDER sequence whatever its home is
	HomeUnasked       bool // the home of an ORDER sequence does not ask the others whether it still is
	AsksThoseThere    bool // it does not ask those that its proxy has left out
	KeepsOptions      bool // a member that is brought to a plan learns neither options nor proxies
	ForgetsHolders    bool // a member that accepts a change does not learn which proxies are registered with the others
	SetsSome          bool // SETVAL succeeds although a member is out of reach
	SetsFrozen        bool // SETVAL goes on while rows are frozen
	RestartsUnchecked bool // RESTART ... FORCE does not look for other proxies
	KeepsEpoch        bool // a proxy gives numbers that it reserved before its own RESTART ... FORCE
}

// World is a number of members, and all numbers given.
type World struct {
	Members    []*Member
	Faults     Faults
	Interleave string // of plans
	// Writers allows applications to count in the rows themselves, unless the operator says that
	// there are none.
	Writers bool
	// Random makes the random choices. Without it a group asks its nodes in their order.
	Random *rand.Rand
	// Seen is called after each step, with its name.
	Seen func(step string)

	given map[number]giver
	Twice []string // numbers given twice, or against a promise, with the givers
	steps []step

	promised map[string]promised // by name
	proxies  []*Proxy
}

// promised is what a client was promised of a sequence.
type promised struct {
	order    bool   // the sequence has ORDER
	answered uint64 // the highest number that a client got
	passed   uint64 // SETVAL moved it above this
	epoch    uint64 // of the last RESTART ... FORCE
}

type number struct {
	name string
	n    uint64
}

type giver struct {
	proxy, member string
	plan, epoch   uint64
}

func (g giver) String() string {
	return fmt.Sprintf("%s from %s under plan %d", g.proxy, g.member, g.plan)
}

// step is one step of the schedule.
type step struct {
	actor, what, member string
	err                 error
	wrote               fmt.Stringer // what was applied from another node, if anything
}

// Steps lists the steps, in order.
func (w *World) Steps() string {
	var text strings.Builder
	for _, s := range w.steps {
		fmt.Fprintf(&text, "%s: %s on %s: %v", s.actor, s.what, s.member, s.err)
		if s.wrote != nil {
			fmt.Fprintf(&text, " (%v)", s.wrote)
		}
		text.WriteString("\n")
	}
	return text.String()
}

// NewWorld has n servers, of which the first some are members of plan 1, with a row of each name.
// With one member there is no plan.
func NewWorld(n, members int, interleave string, names ...string) *World {
	w := &World{
		Interleave: interleave, given: make(map[number]giver), Random: rand.New(rand.NewPCG(1, 2)), promised: make(map[string]promised),
	}
	for i := range n {
		w.Members = append(w.Members, NewMember(fmt.Sprintf("10.0.0.%d:3306", i+1)))
	}
	p := change.Plan{Number: 1, UUID: "first", State: change.InForce, Interleave: interleave}
	if interleave == segment.InBlocks {
		p.Block = Block
	}
	for _, m := range w.Members[:members] {
		p.Members = append(p.Members, change.Member{ID: m.ID, Address: m.Address})
	}
	for _, m := range w.Members[:members] {
		for _, name := range names {
			m.Rows[name] = 0
		}
		if members > 1 {
			copied := p
			m.Plans[1] = &copied
			m.Others[1] = 0
			m.Membership = p.Of(m.ID)
		}
	}
	return w
}

// give notes a number that leaves.
func (w *World) give(name string, n uint64, by giver) {
	if by.epoch < w.promised[name].epoch {
		w.broken("%s %d by %s, which was reserved before RESTART ... FORCE", name, n, by)
	}
	key := number{name, n}
	if before, ok := w.given[key]; ok {
		w.Twice = append(w.Twice, fmt.Sprintf("%s %d by %s and %s", name, n, before, by))
	}
	w.given[key] = by
}

// broken notes a promise that was not kept.
func (w *World) broken(format string, args ...any) {
	w.Twice = append(w.Twice, fmt.Sprintf(format, args...))
}

// Off stops a member, until On starts it again.
func (w *World) Off(at int) { w.Members[at].off = true }

// On starts a member again.
func (w *World) On(at int) {
	if m := w.Members[at]; m.off {
		m.off = false
		m.starts++
	}
}

// Ordered gives a sequence the option ORDER from here on, with a member as its home. Members divide
// the numbers in blocks.
func (w *World) Ordered(name string, home int) {
	top := uint64(0)
	for _, m := range w.Members {
		top = max(top, m.Rows[name])
	}
	for _, m := range w.Members {
		if _, ok := m.Rows[name]; ok {
			m.Rows[name], m.Options[name] = top, Options{Version: 1, Order: true, Home: w.Members[home].ID}
		}
	}
	w.promise(name, func(p *promised) { p.order = true })
}

// IsOrdered reports whether one member gives the numbers of a sequence.
func (w *World) IsOrdered(name string) bool {
	return slices.ContainsFunc(w.Members, func(m *Member) bool { return m.Options[name].Order })
}

// promise notes a promise to a client.
func (w *World) promise(name string, f func(p *promised)) {
	p := w.promised[name]
	f(&p)
	w.promised[name] = p
}

// Actor does one step after the other, and stops before each until it is resumed.
type Actor struct {
	World *World
	Name  string
	// Cut are the positions of members that it cannot reach. It takes effect at the next
	// connection, and for each question.
	Cut map[int]bool
	// Lose is the number of the step, from 1, whose answer it does not get; Unsent prevents that
	// step, too.
	Lose   int
	Unsent bool

	Next   string // the step that it stops before
	At     int    // position of that step's member
	Asked  change.Change
	steps  int
	killed bool
	yield  func(struct{}) bool
	next   func() (struct{}, bool)
	stop   func()
	Err    error // result, once it has ended
	Ended  bool
}

// NewActor returns an actor that runs f, and has not begun.
func (w *World) NewActor(name string, f func(*Actor) error) *Actor {
	a := &Actor{World: w, Name: name, Cut: make(map[int]bool)}
	a.next, a.stop = iter.Pull(func(yield func(struct{}) bool) {
		a.yield = yield
		if !yield(struct{}{}) {
			a.killed = true
			return
		}
		a.Err = f(a)
	})
	a.next() // up to the stop before its first step
	return a
}

// Client returns an actor whose steps are done at once.
func (w *World) Client(name string) *Actor {
	return &Actor{World: w, Name: name, Cut: make(map[int]bool)}
}

// Resume makes it do one step, and reports whether there was one.
func (a *Actor) Resume() bool {
	if a.Ended {
		return false
	}
	if _, more := a.next(); !more {
		a.Ended = true
		return false
	}
	return true
}

// Run resumes it to its end.
func (a *Actor) Run() {
	for a.Resume() {
	}
}

// Kill ends it at its step.
func (a *Actor) Kill() {
	if !a.Ended {
		a.stop()
		a.Ended = true
	}
}

// Steps returns how many steps it has done.
func (a *Actor) Steps() int { return a.steps }

var (
	errKilled  = errors.New("killed")
	errAway    = errors.New("connection refused")
	errUnknown = errors.New("connection lost: whether it was done is not known")
)

// do runs one step on a member.
func (a *Actor) do(m *Member, what string, f func() error) error {
	return a.step(slices.Index(a.World.Members, m), m.Address, what, func() error {
		if m.off {
			return errAway
		}
		return f()
	})
}

// write is do for a step that needs the lock of the rows. It fails if another actor has it.
func (a *Actor) write(m *Member, what string, f func() error) error {
	return a.do(m, what, func() error {
		if by := m.locked; by != nil && by != a && !by.killed && !by.Ended {
			return errLocked
		}
		return f()
	})
}

// pause stops an actor before something that is no step on a machine.
func (a *Actor) pause(what string) error {
	a.Next, a.At = what, -1
	if a.killed || a.yield != nil && !a.yield(struct{}{}) {
		a.killed = true
		return errKilled
	}
	return nil
}

// step runs one step on the machine at a position.
func (a *Actor) step(at int, address, what string, f func() error) error {
	a.Next, a.At = what, at
	if a.killed || a.yield != nil && !a.yield(struct{}{}) {
		a.killed = true
		return errKilled
	}
	a.steps++
	w := a.World
	lost := a.steps == a.Lose
	if a.Cut[at] || lost && a.Unsent {
		return errAway
	}
	err := f()
	w.steps = append(w.steps, step{actor: a.Name, what: what, member: address, err: err})
	if w.Seen != nil {
		w.Seen(what)
	}
	if lost {
		return errUnknown
	}
	return err
}

// Change returns an actor that changes the set of members.
func (w *World) Change(name string, asked change.Change, cut ...int) *Actor {
	a := w.NewActor(name, func(a *Actor) error {
		config := change.Config{Log: zap.NewNop(), Host: name, Interleave: w.Interleave, Block: Block, Ahead: Ahead, NoWriters: !w.Writers, Random: w.Random.Uint32}
		for i, m := range w.Members {
			if m.Count > 0 || i == 0 {
				config.InUse = append(config.InUse, change.Member{Address: m.Address})
			}
		}
		return change.New(context.Background(), context.Background(), a.reach, config).Change(asked)
	})
	a.Asked = asked
	for _, i := range cut {
		a.Cut[i] = true
	}
	return a
}

// The configuration of coordinators and proxies.
const (
	Block = 4  // numbers in a block
	Ahead = 24 // how far the ceiling of a member is above its numbers, at most
)

// reach is a [change.Reach].
func (a *Actor) reach(_ context.Context, addresses []string) []change.Met {
	met := make([]change.Met, len(addresses))
	for i, address := range addresses {
		at := slices.IndexFunc(a.World.Members, func(m *Member) bool { return m.Address == address })
		if at < 0 || a.Cut[at] || a.World.Members[at].off {
			met[i].Err = errAway
			continue
		}
		met[i].Store = Store{a, a.World.Members[at]}
	}
	return met
}
