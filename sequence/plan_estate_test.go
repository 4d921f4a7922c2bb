package sequence_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"seqproxy/sequence"
	"seqproxy/sequence/link"
	"seqproxy/test/mysqltest"
)

// errKilled ends a coordinator before a step as a killed process ends: nothing is undone.
var errKilled = errors.New("killed by the test")

// changeUntil makes a change whose coordinator a step may end: then the error is errKilled.
func changeUntil(ctx context.Context, s *sequence.Sequences, asked sequence.PlanChange) (p sequence.Plan, err error) {
	err = errKilled
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		p, err = s.ChangePlan(ctx, asked)
	}()
	<-ended
	return p, err
}

// planEstate is several sequence servers: schemas of one server, each behind a link that can be
// cut.
type planEstate struct {
	places []place
	links  []*mysqltest.Link
	names  map[string]string // what servers are called that are reached over other links; see otherSide
}

// newPlanEstate makes n of them. The first has a table with rows as withTable makes it, and the
// others are empty.
func newPlanEstate(t testing.TB, n int, rows map[string]uint64) *planEstate {
	t.Helper()
	e := &planEstate{}
	for i := range n {
		p := newPlace(t)
		e.places = append(e.places, p)
		e.links = append(e.links, mysqltest.NewLink(t, p.server.Addr()))
		if i == 0 {
			p.withTable(t, rows)
		}
	}
	return e
}

func (e *planEstate) addr(i int) string { return e.links[i].Addr() }

func (e *planEstate) options(i int) sequence.ServerOptions {
	return sequence.ServerOptions{Addr: e.addr(i), User: "root", Database: e.places[i].schema}
}

// open makes a proxy that is configured with the first server, and reaches the others.
func (e *planEstate) open(t testing.TB, change ...func(*sequence.Options)) *sequence.Sequences {
	t.Helper()
	o := sequence.Options{Servers: []sequence.ServerOptions{e.options(0)}, Tuning: sequence.Tuning{CreateTable: true, AllocateTimeout: usualPatience, NoDirectWriters: true}, Block: 10}
	quick(&o)
	for _, f := range change {
		f(&o)
	}
	sequence.LogSteps(&o)
	s, err := sequence.New(o)
	if err != nil {
		t.Fatal(err)
	}
	for i := range e.links {
		if i > 0 && len(o.Servers) == 1 {
			more := e.options(i)
			if err := sequence.Inside(s).Add(more); err != nil {
				t.Fatal(err)
			}
		}
	}
	sequence.Inside(s).Call(e.names)
	t.Cleanup(func() {
		ctx, stop := context.WithTimeout(context.Background(), 5*time.Second)
		defer stop()
		_ = s.Close(ctx)
		checkSums(t, s)
	})
	return s
}

// change makes a change that must succeed.
func (e *planEstate) change(t testing.TB, s *sequence.Sequences, c sequence.PlanChange) sequence.Plan {
	t.Helper()
	p, err := s.ChangePlan(context.Background(), c)
	if err != nil {
		t.Fatalf("change %+v: %v", c, err)
	}
	return p
}

// reserve takes n numbers of name on a server under the plan that the server obeys, in one
// statement like a proxy.
func (e *planEstate) reserve(t testing.TB, i int, name string, n uint64) (got []uint64, err error) {
	t.Helper()
	ctx := context.Background()
	conn, err := e.places[i].db.Conn(ctx)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	h := e.member(t, i)
	set := fmt.Sprintf("`id` + %d", n)
	switch {
	case h.InBlocks():
		set = h.ReserveBlocks("`id`", n)
	case h.InSteps():
		set = fmt.Sprintf("`id` + %d", n*h.Count)
	}
	result, err := conn.ExecContext(ctx, "UPDATE sequence SET id = LAST_INSERT_ID("+set+") WHERE name = ?", name)
	if err != nil {
		return nil, err
	}
	if affected, _ := result.RowsAffected(); affected != 1 {
		return nil, fmt.Errorf("%d rows", affected)
	}
	var last uint64
	if err := conn.QueryRowContext(ctx, "SELECT LAST_INSERT_ID()").Scan(&last); err != nil {
		return nil, err
	}
	for k := range n {
		if h.InSteps() {
			got = append(got, last-k*h.Count)
		} else {
			got = append(got, last-k)
		}
	}
	return got, nil
}

func (e *planEstate) member(t testing.TB, i int) (m sequence.Membership) {
	t.Helper()
	err := e.places[i].db.QueryRow("SELECT id, plan, position, count, interleave, block FROM sequence_member").Scan(&m.ID, &m.Plan, &m.Position, &m.Count, &m.Interleave, &m.Block)
	if err != nil && !errors.Is(err, sql.ErrNoRows) && !strings.Contains(err.Error(), "1146") {
		t.Fatal(err)
	}
	return m
}

// givenEver is every number that anybody gave.
type givenEver struct {
	all  map[string]map[uint64]bool
	high map[string]uint64
}

func newGivenEver() *givenEver {
	return &givenEver{all: make(map[string]map[uint64]bool), high: make(map[string]uint64)}
}

func (h *givenEver) add(t testing.TB, name string, numbers ...uint64) {
	t.Helper()
	if h.all[name] == nil {
		h.all[name] = make(map[uint64]bool)
	}
	for _, n := range numbers {
		if h.all[name][n] {
			t.Fatalf("%s: %d was given twice", name, n)
		}
		h.all[name][n] = true
		h.high[name] = max(h.high[name], n)
	}
}

// everyoneGives has every member give a few numbers, across the borders of blocks of 10. Servers
// that are no members must give none.
func (e *planEstate) everyoneGives(t testing.TB, h *givenEver, p sequence.Plan, names ...string) {
	t.Helper()
	for i := range e.places {
		member := slices.ContainsFunc(p.Members, func(m sequence.Member) bool { return m.Address == e.addr(i) })
		if p.Number == 0 {
			member = i == 0
		}
		for _, name := range names {
			for _, n := range []uint64{1, 3, 8, 5} {
				got, err := e.reserve(t, i, name, n)
				if member && err != nil {
					t.Fatalf("server %d: %v", i, err)
				}
				if !member && err == nil {
					t.Fatalf("server %d is no member of %+v and gives %d", i, p, got)
				}
				h.add(t, name, got...)
			}
		}
	}
}

// wantFrozen checks that nobody can take a number of a server, and that an application that counts
// in the table itself gets error 1690.
func (e *planEstate) wantFrozen(t testing.TB, i int, name string) {
	t.Helper()
	_, err := e.places[i].db.Exec("UPDATE sequence SET id = LAST_INSERT_ID(id + 1) WHERE name = ?", name)
	if !link.HasCode(err, 1690) {
		t.Errorf("server %d, UPDATE ... id + 1 while it is frozen: got %v, want error 1690", i, err)
	}
}
