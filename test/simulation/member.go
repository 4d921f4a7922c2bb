package simulation

import (
	"errors"
	"maps"
	"slices"

	"seqproxy/sequence/change"
	"seqproxy/sequence/segment"
)

// End is the highest number of a column. A row at the end gives nothing.
const End = 1<<64 - 1

// Member is the contents of one server's tables.
type Member struct {
	Address string
	change.Membership
	Rows    map[string]uint64 // the last number given, by name
	Options map[string]Options
	Proxies map[string]bool   // registered proxies, by name
	Floors  map[string]uint64 // highest numbers of dropped sequences
	Plans   map[uint64]*change.Plan
	Starts  map[Start]*Begin
	Others  map[uint64]uint64 // floor of the names that a plan did not know, by plan
	Limits  map[LimitOf]*Limit

	off    bool
	starts int    // how often it was started: older connections are gone
	locked *Actor // whose transaction has locked its rows
}

// Options are a sequence's options, without its row.
type Options struct {
	Version uint64 // of the last change
	Order   bool
	Home    string // for an ORDER sequence, the id of the member that gives its numbers
	Epoch   uint64 // since RESTART ... FORCE
}

// LimitOf names the limit of a member, by id, for a name.
type LimitOf struct{ Giver, Name string }

// Limit is how far a member may go.
type Limit struct {
	Term            uint64 // number of the plan
	Wanted, Granted uint64 // as recorded by this member; Granted is the limit that the member itself keeps to
}

// Start names the start of a name in a plan.
type Start struct {
	Plan uint64
	Name string
}

// Begin is where a plan begins with a name.
type Begin struct {
	Floor, Ceiling uint64
	Saved          *uint64 // the row before it was frozen
}

// NewMember returns an empty server.
func NewMember(address string) *Member {
	return &Member{
		Address: address, Membership: change.Membership{ID: "id-" + address}, Rows: make(map[string]uint64), Options: make(map[string]Options), Proxies: make(map[string]bool), Floors: make(map[string]uint64),
		Plans: make(map[uint64]*change.Plan), Starts: make(map[Start]*Begin),
		Others: make(map[uint64]uint64), Limits: make(map[LimitOf]*Limit),
	}
}

var (
	errFrozen    = errors.New("the set of sequence servers is being changed")
	errPlan      = errors.New("it obeys another plan")
	errAtCeiling = errors.New("the numbers would go above the ceiling")
	errNoRow     = errors.New("no such sequence")
	errRange     = errors.New("BIGINT UNSIGNED value is out of range")
	errResidue   = errors.New("the row does not stand at a number of the member's")
	errLocked    = errors.New("Lock wait timeout exceeded")
	errNotHome   = errors.New("another member gives its numbers")
)

func (m *Member) report() change.Report {
	t := change.Report{Membership: m.Membership}
	for _, number := range slices.Sorted(maps.Keys(m.Plans)) {
		t.Plans = append(t.Plans, *m.Plans[number])
	}
	return t
}

func (m *Member) begin(plan uint64, name string) *Begin {
	b := m.Starts[Start{plan, name}]
	if b == nil {
		b = new(Begin)
		m.Starts[Start{plan, name}] = b
	}
	return b
}

func (m *Member) promise(p *change.Plan, base uint64, faults *Faults) (was string, err error) {
	now := m.Plans[p.Number]
	switch {
	case now == nil || now.UUID != p.UUID:
		if other := p.Meets(m.report().Plans, base); other != nil && !faults.WritesUnaware {
			return "", change.InProgress(other)
		}
		if base == p.Number {
			return "", nil
		}
		made := *p
		m.Plans[p.Number] = &made
		return "", nil
	case now.Ballot > p.Ballot:
		return "", change.ErrTakenOver
	}
	now.Ballot, now.Coordinator = p.Ballot, p.Coordinator
	return now.State, nil
}

// fenced returns the plan on the member if the ballot of p may still write.
func (m *Member) fenced(p *change.Plan, faults *Faults) (*change.Plan, error) {
	now := m.Plans[p.Number]
	if now == nil || now.UUID != p.UUID || now.Ballot != p.Ballot && !faults.NoBallot {
		return nil, change.ErrTakenOver
	}
	return now, nil
}

// restore gives rows the values back that were saved.
func (m *Member) restore() {
	for at, b := range m.Starts {
		if b.Saved == nil {
			continue
		}
		if id, ok := m.Rows[at.Name]; ok && id == End {
			m.Rows[at.Name] = *b.Saved
		}
		b.Saved = nil
	}
}

// save freezes the rows, which have what they held before.
func (m *Member) save(plan uint64) {
	for name, id := range m.Rows {
		m.begin(plan, name).Saved = &id
		m.Rows[name] = End
	}
}

func (m *Member) freeze(p *change.Plan, missing string, faults *Faults) (given change.Given, err error) {
	now, err := m.fenced(p, faults)
	if err != nil {
		return given, err
	}
	if now.State != change.Proposed {
		return given, change.ErrTakenOver
	}
	m.restore()
	m.save(p.Number)
	now.State = change.Frozen
	given = m.gave(p, missing)
	given.Sequences = m.sequences()
	return given, nil
}

// sequences lists the sequences that a coordinator looks at.
func (m *Member) sequences() (all []change.Sequence) {
	for name := range m.Rows {
		all = append(all, change.Sequence{Name: name, End: End})
	}
	return all
}

// gave returns what a frozen member gave.
func (m *Member) gave(p *change.Plan, missing string) (given change.Given) {
	given.End = End
	for at, b := range m.Starts {
		if at.Plan == p.Number && b.Saved != nil {
			given.Names = append(given.Names, change.Gave{Name: at.Name, UpTo: *b.Saved, Row: true})
		}
	}
	for of, l := range m.Limits {
		saved := m.Starts[Start{p.Number, of.Name}]
		switch {
		case l.Term != m.Plan:
		case of.Giver == m.ID && m.Count > 1 && l.Granted > 0 && (saved == nil || saved.Saved == nil):
			given.Names = append(given.Names, change.Gave{Name: of.Name, UpTo: l.Granted, Missing: true})
		case of.Giver == missing:
			given.Names = append(given.Names, change.Gave{Name: of.Name, UpTo: l.Wanted})
		}
	}
	for name, floor := range m.Floors {
		given.Names = append(given.Names, change.Gave{Name: name, UpTo: floor})
	}
	if !p.FollowsRemovalOf(&m.Membership) {
		given.Proxies = maps.Clone(m.Proxies)
	}
	return given
}

func (m *Member) writeFloors(plan uint64, all change.Floors) {
	m.Others[plan] = max(m.Others[plan], all.Others)
	for _, f := range all.Named {
		b := m.begin(plan, f.Name)
		b.Floor, b.Ceiling = max(b.Floor, f.Floor), max(b.Ceiling, f.Ceiling)
	}
}

func (m *Member) accept(p *change.Plan, all change.Floors, holders change.Holders, faults *Faults) error {
	now, err := m.fenced(p, faults)
	if err != nil {
		return err
	}
	if now.State != change.Frozen {
		return change.ErrTakenOver
	}
	m.writeFloors(p.Number, all)
	for _, theirs := range holders.Proxies {
		proxies, _ := theirs.(map[string]bool)
		maps.Copy(m.Proxies, proxies)
	}
	if holders.Unasked != "" {
		m.Proxies["unknown ones of "+holders.Unasked] = true
	}
	now.State = change.Accepted
	return nil
}

func (m *Member) letGo(p *change.Plan, abandoned bool) {
	if now := m.Plans[p.Number]; now == nil || now.UUID != p.UUID || !now.Open() || abandoned && now.State != change.Proposed {
		return
	}
	if m.Plan < p.Number && !p.FollowsRemovalOf(&m.Membership) {
		m.restore()
		maps.DeleteFunc(m.Starts, func(at Start, _ *Begin) bool { return at.Plan == p.Number })
		delete(m.Others, p.Number)
	}
	m.Plans[p.Number].State = change.Aborted
}

// knowledge is what a member brings to another besides floors: the positions of its rows, by name.
// Options come from members of the old plan.
type knowledge struct {
	rows    map[string]uint64
	options map[string]Options
	proxies map[string]bool
}

func (m *Member) knowledge(p *change.Plan) (all change.Knowledge) {
	if now := m.Plans[p.Number]; now != nil && now.UUID == p.UUID {
		all.Floors.Others, all.Complete = m.Others[p.Number]
	}
	for at, b := range m.Starts {
		if at.Plan == p.Number {
			all.Floors.Named = append(all.Floors.Named, change.Floor{Name: at.Name, Floor: b.Floor, Ceiling: b.Ceiling})
		}
	}
	brings := knowledge{rows: make(map[string]uint64)}
	if change.HasMember(p.Previous, m.ID) || m.Plan == p.Number {
		brings.options = maps.Clone(m.Options)
	}
	if all.Complete || m.Plan == p.Number {
		brings.proxies = maps.Clone(m.Proxies)
	}
	for name, id := range m.Rows {
		b := m.Starts[Start{p.Number, name}]
		if m.Plan < p.Number && (b == nil || b.Saved == nil) || m.Plan == p.Number && m.Count == 0 {
			delete(brings.options, name) // how far it went is unknown
			continue
		}
		if id == End {
			id = 0 // the row is frozen
		}
		brings.rows[name] = id
	}
	all.More = brings
	return all
}

func (m *Member) obey(p *change.Plan, floors change.Floors, from []change.Knowledge) {
	state := ""
	if now := m.Plans[p.Number]; now != nil && now.UUID == p.UUID {
		state = now.State
	}
	if m.Plan >= p.Number {
		return
	}
	frozen := state == change.Frozen || state == change.Accepted
	if state == "" { // a plan that was never decided may have had the number
		delete(m.Others, p.Number)
	}
	if state != change.Accepted { // otherwise the member has them
		m.writeFloors(p.Number, floors)
	}
	m.restore()
	m.follow(p, frozen, from)
	maps.DeleteFunc(m.Plans, func(number uint64, of *change.Plan) bool {
		forgets := number < p.Number && of.State != change.Aborted
		if forgets {
			delete(m.Others, number)
		}
		return forgets
	})
	if state != "" {
		m.Plans[p.Number].State = change.InForce
		return
	}
	now := *p
	now.State = change.InForce
	m.Plans[p.Number] = &now
}

// follow makes the member obey a plan.
func (m *Member) follow(p *change.Plan, frozen bool, from []change.Knowledge) {
	at := slices.IndexFunc(p.Members, func(o change.Member) bool { return o.ID == m.ID })
	if at < 0 {
		m.save(p.Number)
		m.Membership = p.Of(m.ID)
		return
	}
	if p.FollowsRemovalOf(&m.Membership) {
		clear(m.Proxies)
	}
	for _, k := range from {
		theirs := k.More.(knowledge)
		for name, id := range theirs.rows {
			if _, ok := m.Rows[name]; !ok {
				m.Rows[name] = id
			}
		}
		for name, o := range theirs.options {
			if o.Version > m.Options[name].Version {
				m.Options[name] = o
			}
		}
		maps.Copy(m.Proxies, theirs.proxies)
	}
	owns := owner(p, at)
	other := m.Others[p.Number]
	for name, id := range m.Rows {
		b := m.begin(p.Number, name)
		b.Floor = max(b.Floor, other, id)
		m.Rows[name] = b.Floor
		if p.Interleave == segment.InSteps { // a row always stands at one of the member's own numbers
			for b.Floor > 0 && !owns(m.Rows[name]) {
				m.Rows[name]++
			}
		}
	}
	for start, b := range m.Starts {
		if start.Plan != p.Number {
			continue
		}
		for _, giver := range p.Members {
			granted := uint64(0)
			if frozen && giver.ID == m.ID { // otherwise no other member may have recorded it
				granted = b.Ceiling
			}
			if b.Ceiling > 0 {
				m.limit(LimitOf{giver.ID, start.Name}, p.Number, b.Ceiling, granted)
			}
		}
	}
	m.Membership = p.Of(m.ID)
}

// owner returns a function that reports whether a number belongs to the member at a position of a
// plan.
func owner(p *change.Plan, position int) func(n uint64) bool {
	count, at := uint64(len(p.Members)), uint64(position)
	switch {
	case count < 2:
		return func(n uint64) bool { return n > 0 }
	case p.Interleave == segment.InSteps:
		return func(n uint64) bool { return n%count == (at+1)%count }
	}
	return func(n uint64) bool { return n > 0 && (n-1)/p.Block%count == at }
}

// limit writes down how far a member may go. Limits of another plan no longer count.
func (m *Member) limit(of LimitOf, plan, wanted, granted uint64) {
	l := m.Limits[of]
	if l == nil || l.Term != plan {
		l = &Limit{Term: plan}
		m.Limits[of] = l
	}
	l.Wanted, l.Granted = max(l.Wanted, wanted), max(l.Granted, granted)
}

// changing reports whether the rows are frozen for a change.
func (m *Member) changing() bool {
	for _, p := range m.Plans {
		if p.State == change.Frozen || p.State == change.Accepted {
			return true
		}
	}
	return false
}

// record writes down how far a member may go with a name: another member, or with granted this one.
func (m *Member) record(plan uint64, of LimitOf, wanted, granted uint64, faults *Faults) error {
	if m.changing() && !faults.RecordsForAnyPlan {
		return errFrozen
	}
	if m.Plan != plan && !faults.RecordsForAnyPlan {
		return errPlan
	}
	m.limit(of, plan, wanted, granted)
	return nil
}

// reserve takes n numbers above a floor, for a proxy that believes in a plan. It returns
// errAtCeiling, with the number that it needs, where the member may not go so far.
func (m *Member) reserve(p *change.Plan, name string, floor, n uint64) (numbers []uint64, needs uint64, err error) {
	id, ok := m.Rows[name]
	switch {
	case !ok:
		return nil, 0, errNoRow
	case m.Plan != p.Number:
		return nil, 0, errPlan
	case id == End:
		return nil, 0, errFrozen
	}
	owns := owner(p, int(m.Position))
	if p.Interleave == segment.InSteps && len(p.Members) > 1 && id > 0 && !owns(id) {
		return nil, 0, errResidue
	}
	for x := max(id, floor) + 1; uint64(len(numbers)) < n; x++ {
		if owns(x) {
			numbers = append(numbers, x)
		}
	}
	last := numbers[n-1]
	if len(p.Members) > 1 {
		if l := m.Limits[LimitOf{m.ID, name}]; l == nil || l.Term != p.Number || l.Granted < last {
			return nil, last, errAtCeiling
		}
	}
	m.Rows[name] = last
	return numbers, 0, nil
}

// Add is an application that counts in the table itself: UPDATE ... SET id = LAST_INSERT_ID(id +
// n).
func (m *Member) Add(name string, n uint64) (number uint64, err error) {
	id, ok := m.Rows[name]
	switch {
	case !ok:
		return 0, errNoRow
	case id > End-n:
		return 0, errRange
	}
	m.Rows[name] = id + n
	return id + n, nil
}

// Copy returns a member with the same contents.
func (m *Member) Copy() *Member {
	c := NewMember(m.Address)
	c.Membership = m.Membership
	maps.Copy(c.Rows, m.Rows)
	maps.Copy(c.Options, m.Options)
	maps.Copy(c.Proxies, m.Proxies)
	maps.Copy(c.Floors, m.Floors)
	for number, p := range m.Plans {
		copied := *p
		c.Plans[number] = &copied
	}
	for at, b := range m.Starts {
		copied := *b
		c.Starts[at] = &copied
	}
	maps.Copy(c.Others, m.Others)
	for of, l := range m.Limits {
		copied := *l
		c.Limits[of] = &copied
	}
	return c
}
