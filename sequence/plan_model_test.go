package sequence_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"

	"seqproxy/sequence"
	"seqproxy/sequence/change"
	"seqproxy/sequence/limit"
	"seqproxy/sequence/store"
	"seqproxy/test/simulation"
)

// The simulated members of test/simulation do without SQL what the program does with it. This file
// runs the same steps on both, and compares the answers, and what both contain afterwards.

// modelled is one member twice: on a server, and simulated.
type modelled struct {
	place place
	real  realMember
	model simulation.Store
	plans []*sequence.Plan
}

func newModelled(t *testing.T, rows map[string]uint64) *modelled {
	t.Helper()
	e := newPlanEstate(t, 1, rows)
	s := e.open(t)
	if _, err := s.List(t.Context()); err != nil { // the tables are made
		t.Fatal(err)
	}
	server := e.server(t, s, 0)
	m := &modelled{place: e.places[0], real: realMember{server.PlanStore(), server.Store}}
	is, _, err := m.real.Look(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	w := simulation.NewWorld(1, 1, sequence.InterleaveBlock)
	w.Members[0].ID = is.ID
	for name, n := range rows {
		w.Members[0].Rows[name] = n
	}
	m.model = simulation.Store{Actor: w.Client("model"), Member: w.Members[0]}
	me, other, third := sequence.Member{ID: is.ID, Address: "me"}, sequence.Member{ID: "other", Address: "other"}, sequence.Member{ID: "third", Address: "third"}
	for i, p := range []struct {
		number            uint64
		members, previous []sequence.Member
	}{
		{2, []sequence.Member{me, other}, []sequence.Member{me}},
		{2, []sequence.Member{me, third}, []sequence.Member{me}},
		{3, []sequence.Member{me}, []sequence.Member{me, other}},
		{3, []sequence.Member{me, other, third}, []sequence.Member{me, other}},
		{4, []sequence.Member{other}, []sequence.Member{me, other}},
		{4, []sequence.Member{other, me}, []sequence.Member{other}},
		{5, []sequence.Member{me, third}, []sequence.Member{me, other, third}},
	} {
		m.plans = append(m.plans, &sequence.Plan{
			Number: p.number, UUID: fmt.Sprint("uuid", i), State: change.Proposed, Coordinator: "test", Interleave: sequence.InterleaveBlock, Block: 10, Members: p.members, Previous: p.previous,
		})
	}
	return m
}

// modelStore is what proxies write to members, besides a change.
type modelStore interface {
	change.Store
	Record(ctx context.Context, plan uint64, giver, name string, wanted, granted uint64) error
}

// realMember is one on a server.
type realMember struct {
	change.Store
	tables *store.Store
}

// Record has a member record how far another one may go, or with granted itself.
func (s realMember) Record(ctx context.Context, plan uint64, giver, name string, wanted, granted uint64) error {
	return s.tables.Record(ctx, plan, limit.Limit{Name: name, Giver: giver, Wanted: wanted, Granted: granted})
}

// deed is one step on a member with its outcome, for comparison.
type deed struct {
	what string
	do   func(s modelStore) string
}

// outcomeOf returns the part of an error that both have to agree on.
func outcomeOf(err error) string {
	switch {
	case err == nil:
		return "done"
	case errors.Is(err, change.ErrTakenOver):
		return "taken over"
	}
	return "failed"
}

// anyDeed does a random step.
func (m *modelled) anyDeed(ctx context.Context, rng *rand.Rand) deed {
	p := m.plans[rng.IntN(len(m.plans))]
	ballot := uint64(rng.IntN(3) + 1)
	base := uint64(rng.IntN(4))
	kind := rng.IntN(12)
	if plans := m.model.Member.Plans; len(plans) > 0 && rng.IntN(4) > 0 { // mostly one that has an effect
		numbers := slices.Sorted(maps.Keys(plans))
		now := plans[numbers[rng.IntN(len(numbers))]]
		at := slices.IndexFunc(m.plans, func(p *sequence.Plan) bool { return p.UUID == now.UUID })
		p, ballot = m.plans[at], now.Ballot
		fitting := map[string][]int{change.Proposed: {2, 3, 4, 8}, change.Frozen: {6, 7, 8, 9, 11}, change.Accepted: {8, 9, 10, 11}, change.Aborted: {0, 8, 10}, change.InForce: {0, 8, 9}}[now.State]
		if rng.IntN(3) > 0 {
			kind = fitting[rng.IntN(len(fitting))]
		}
	}
	asked := *p
	asked.Ballot, p = ballot, &asked
	what := fmt.Sprintf(" plan %d %s, base %d, ballot %d", p.Number, p.UUID, base, ballot)
	floors := change.Floors{
		Named:  []change.Floor{{Name: "photos", Floor: uint64(rng.IntN(400)), Ceiling: 600}, {Name: "albums", Floor: 3, Ceiling: 40}},
		Others: uint64(rng.IntN(40)),
	}
	holders := change.Holders{Unasked: []string{"", "third:3306"}[rng.IntN(2)]}
	step := func(name string, f func(s change.Store) error) deed {
		return deed{name + what, func(s modelStore) string { return outcomeOf(f(s)) }}
	}
	switch kind {
	case 0, 1, 2:
		return deed{"promise" + what, func(s modelStore) string {
			was, err := s.Promise(ctx, p, base)
			if other := new(change.Error); errors.As(err, &other) && !errors.Is(err, change.ErrTakenOver) {
				return "other " + strings.Fields(other.Finding)[1] // the uuid
			}
			if err != nil {
				return outcomeOf(err)
			}
			return was
		}}
	case 3, 4, 5:
		missing := []string{"", "other", "third"}[rng.IntN(3)]
		return deed{"freeze" + what, func(s modelStore) string {
			given, err := s.Freeze(ctx, p, missing)
			slices.SortFunc(given.Names, func(a, b change.Gave) int { return strings.Compare(fmt.Sprint(a), fmt.Sprint(b)) })
			return fmt.Sprintf("%+v %s", given.Names, outcomeOf(err))
		}}
	case 6, 7:
		return step("accept", func(s change.Store) error { return s.Accept(ctx, p, floors, holders) })
	case 8:
		abandoned := rng.IntN(2) == 0
		return deed{fmt.Sprintf("let go, left %v%s", abandoned, what), func(s modelStore) string { return outcomeOf(s.LetGo(ctx, p, abandoned)) }}
	case 9:
		name, ceiling, plan := []string{"photos", "none"}[rng.IntN(2)], uint64(1+rng.IntN(2000)), m.model.Member.Plan
		giver, granted := "other", uint64(0)
		if rng.IntN(2) == 0 {
			giver, granted = m.model.Member.ID, ceiling
		}
		if rng.IntN(3) == 0 {
			plan = uint64(rng.IntN(6))
		}
		return deed{fmt.Sprintf("record %s of %s up to %d under plan %d", name, giver, ceiling, plan), func(s modelStore) string {
			return outcomeOf(s.Record(ctx, plan, giver, name, ceiling, granted))
		}}
	}
	return deed{"obey" + what, func(s modelStore) string {
		return outcomeOf(s.Obey(ctx, p, floors, nil))
	}}
}

// each calls f with each row of a question.
func (m *modelled) each(t *testing.T, text string, f func(scan func(...any) error) error) {
	t.Helper()
	rows, err := m.place.db.Query(text)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = rows.Close() }()
	for rows.Next() {
		if err := f(rows.Scan); err != nil {
			t.Fatal(err)
		}
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
}

// contents returns what the server contains, in the simulation's form.
func (m *modelled) contents(t *testing.T) *simulation.Member {
	t.Helper()
	ctx := t.Context()
	got := simulation.NewMember(m.model.Member.Address)
	report, err := m.real.Report(ctx)
	if err != nil {
		t.Fatal(err)
	}
	got.Membership = report.Membership
	for i := range report.Plans {
		got.Plans[report.Plans[i].Number] = &report.Plans[i]
	}
	if got.Rows, err = readNumbers(ctx, m.place.db, "sequence"); err != nil {
		t.Fatal(err)
	}
	m.each(t, "SELECT plan, name, floor, ceiling, saved FROM sequence_plan_start", func(scan func(...any) error) error {
		var at simulation.Start
		b := new(simulation.Begin)
		err := scan(&at.Plan, &at.Name, &b.Floor, &b.Ceiling, &b.Saved)
		got.Starts[at] = b
		return err
	})
	m.each(t, "SELECT name, giver, term, wanted, granted FROM sequence_limit", func(scan func(...any) error) error {
		var of simulation.LimitOf
		l := new(simulation.Limit)
		err := scan(&of.Name, &of.Giver, &l.Term, &l.Wanted, &l.Granted)
		got.Limits[of] = l
		return err
	})
	m.each(t, "SELECT host FROM sequence_proxy", func(scan func(...any) error) error {
		var host string
		err := scan(&host)
		got.Proxies[strings.Replace(strings.Split(host, " knew")[0], "those that only", "unknown ones of", 1)] = true
		return err
	})
	m.each(t, "SELECT number, floor FROM sequence_plan WHERE floor IS NOT NULL", func(scan func(...any) error) error {
		var number, floor uint64
		err := scan(&number, &floor)
		got.Others[number] = floor
		return err
	})
	return got
}

// text shows what a member contains, for comparison.
func text(m *simulation.Member) string {
	var all []string
	for name, id := range m.Rows {
		all = append(all, fmt.Sprintf("row %s %d", name, id))
	}
	for _, p := range m.Plans {
		all = append(all, fmt.Sprintf("plan %d %s %s ballot %d", p.Number, p.UUID, p.State, p.Ballot))
	}
	for at, b := range m.Starts {
		saved := "-"
		if b.Saved != nil {
			saved = fmt.Sprint(*b.Saved)
		}
		all = append(all, fmt.Sprintf("start %d %q floor %d ceiling %d saved %s", at.Plan, at.Name, b.Floor, b.Ceiling, saved))
	}
	for of, l := range m.Limits {
		all = append(all, fmt.Sprintf("limit %+v %+v", of, *l))
	}
	for number, floor := range m.Others {
		all = append(all, fmt.Sprintf("plan %d floor %d", number, floor))
	}
	for proxy := range m.Proxies {
		all = append(all, "proxy "+proxy)
	}
	slices.Sort(all)
	is := m.Membership
	if is.Count == 0 { // it has left, or was never a member
		is.Interleave, is.Block = "", 0
	}
	return fmt.Sprintf("%+v\n%s", is, strings.Join(all, "\n"))
}

// Random steps give the same answers on a server and simulated, and the same contents afterwards.
func TestASimulatedMemberDoesWhatAServerDoes(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	for seed := range uint64(20) {
		rng := rand.New(rand.NewPCG(seed, 3))
		m := newModelled(t, map[string]uint64{"photos": 100, "albums": 7})
		var done []string
		outcomes := make(map[string]int)
		for range 60 {
			d := m.anyDeed(ctx, rng)
			got, want := d.do(m.real), d.do(m.model)
			done = append(done, d.what+": "+got)
			outcomes[got]++
			if got != want {
				t.Fatalf("seed %d: the server says %q, the model %q, of\n%s", seed, got, want, strings.Join(done, "\n"))
			}
			if got, want := text(m.contents(t)), text(m.model.Member); got != want {
				t.Fatalf("seed %d: the server holds\n%s\n\nthe model\n%s\n\nafter\n%s", seed, got, want, strings.Join(done, "\n"))
			}
		}
		if outcomes["done"] < 5 {
			t.Errorf("seed %d: %v", seed, outcomes)
		}
	}
}

// Two steps at the same time have the contents of one order or the other, as the simulation has it:
// whatever the server locks, and whichever snapshot it reads.
func TestStepsAtTheSameTimeAreAsOneAfterTheOther(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	for seed := range uint64(6) {
		rng := rand.New(rand.NewPCG(seed, 5))
		m := newModelled(t, map[string]uint64{"photos": 100, "albums": 7})
		both := 0
		for range 40 {
			first, second := m.anyDeed(ctx, rng), m.anyDeed(ctx, rng)
			var got [2]string
			var wg sync.WaitGroup
			for i, d := range []deed{first, second} {
				wg.Go(func() { got[i] = d.do(m.real) })
			}
			wg.Wait()
			one, other := m.model.Copy(), m.model.Copy()
			var want, turned [2]string
			want[0], want[1] = first.do(one), second.do(one)
			turned[1], turned[0] = second.do(other), first.do(other)
			stored := text(m.contents(t))
			switch {
			case got == want && stored == text(one.Member):
				m.model = one
			case got == turned && stored == text(other.Member):
				m.model = other
				both++
			default:
				t.Fatalf("seed %d: %s and %s at the same time say %q and leave\n%s\n\none after the other %q and\n%s\n\nturned %q and\n%s",
					seed, first.what, second.what, got, stored, want, text(one.Member), turned, text(other.Member))
			}
		}
		t.Logf("seed %d: the second went first %d times", seed, both)
	}
}
