package sequence_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	gomysql "github.com/go-mysql-org/go-mysql/mysql"

	"seqproxy/sequence"
	"seqproxy/sequence/link"
	"seqproxy/sequence/stats"
	"seqproxy/test/mysqltest"
)

// fleet is several sequence servers.
type fleet []place

func newFleet(t testing.TB, n int) fleet {
	t.Helper()
	f := make(fleet, n)
	var wg sync.WaitGroup
	for i := range f {
		server := mysqltest.Start(t)
		// With all tables: a busy server needs longer for them than a caller waits for a number.
		// Each calls its database the same: one that is not configured is reached like the first.
		wg.Go(func() {
			server.Exec(t, "CREATE DATABASE numbers")
			f[i] = place{server: server, schema: "numbers", db: server.DB(t, "numbers")}.withAll(t, nil)
		})
	}
	wg.Wait()
	return f
}

func (f fleet) open(t testing.TB, change ...func(*sequence.Options)) *sequence.Sequences {
	t.Helper()
	o := sequence.Options{Tuning: sequence.Tuning{NoDirectWriters: true}}
	for _, p := range f {
		o.Servers = append(o.Servers, p.options().Servers...)
	}
	s := openWith(t, o, change...)
	if how, _ := sequence.Inside(s).Interleave(); len(f) > 1 && how == sequence.InterleaveBlock {
		f.divide(t, s)
	}
	return s
}

// divide makes new servers divide the numbers in blocks, as SEQPROXY ADD SEQUENCE SERVER does step
// by step.
func (f fleet) divide(t testing.TB, s *sequence.Sequences) {
	t.Helper()
	for _, p := range f {
		for _, what := range []string{"sequence_member WHERE plan > 0", "sequence"} {
			var n int
			err := p.db.QueryRow("SELECT COUNT(*) FROM " + what).Scan(&n)
			if n > 0 || err != nil && !link.HasCode(err, gomysql.ER_NO_SUCH_TABLE) {
				return // it has a plan or numbers, or is away, so the others have a plan
			}
		}
	}
	ctx := context.Background()
	_, block := sequence.Inside(s).Interleave()
	plan := &sequence.Plan{Number: 1, UUID: "11111111-1111-1111-1111-111111111111", State: sequence.PlanInForce, Interleave: sequence.InterleaveBlock, Block: block}
	for _, v := range sequence.Inside(s).Servers() {
		id, err := v.Plans.MemberID(ctx, v.Pool())
		if err != nil {
			t.Fatal(err)
		}
		plan.Members = append(plan.Members, sequence.Member{ID: id, Address: v.Address()})
	}
	for i, v := range sequence.Inside(s).Servers() {
		if err := errors.Join(v.Plans.Save(ctx, v.Pool(), plan), v.Plans.SaveMembership(ctx, v.Pool(), plan.Of(plan.Members[i].ID))); err != nil {
			t.Fatal(err)
		}
	}
}

// ids returns the rows of a sequence on all members.
func (f fleet) ids(t testing.TB, name string) (all []uint64) {
	t.Helper()
	for _, p := range f {
		all = append(all, p.id(t, name))
	}
	return all
}

func blocks(n uint64) func(*sequence.Options) { return func(o *sequence.Options) { o.Block = n } }
func inSteps(o *sequence.Options)             { o.Interleave = sequence.InterleaveStep }

func createOn(t testing.TB, s *sequence.Sequences, name string) sequence.Created {
	t.Helper()
	return mustCreate(t, s, sequence.CreateOptions{Name: name})
}

func TestSeveralServersNeverGiveANumberTwiceWhileOneIsKilled(t *testing.T) {
	for _, c := range []struct {
		name   string
		change func(*sequence.Options)
		count  int
		step   uint64
	}{
		{"blocks", blocks(50), 3, 1},
		{"blocks, INCREMENT BY 5", blocks(250), 3, 5},
		{"steps", inSteps, 2, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := newFleet(t, c.count)
			var book ledger
			var wg sync.WaitGroup
			var stop atomic.Bool
			var refused, after atomic.Int64
			var restarted atomic.Bool
			for proxy := range 3 {
				s := f.open(t, c.change, steadySize(20))
				if proxy == 0 {
					made, err := s.Create(t.Context(), sequence.CreateOptions{Name: "photos", Increment: c.step})
					if err != nil || made.First > uint64(c.count)+1 {
						t.Errorf("the first number is %d, %v", made.First, err)
					}
				}
				for client := range 3 {
					wg.Go(func() {
						who, last := fmt.Sprintf("proxy %d client %d", proxy, client), uint64(0)
						for !stop.Load() {
							n := 1 + rand.Uint64N(7)
							took, err := s.TakeRun(context.Background(), []byte("photos"), n)
							first, step := took.First, took.Step
							if err != nil {
								refused.Add(1)
								t.Errorf("%s: %v", who, err)
								return
							}
							if first <= last {
								t.Errorf("%s: got %d after %d, want rising numbers", who, first, last)
							}
							for i := range n {
								book.add(t, who, first+i*step, 1)
							}
							last = first + (n-1)*step
							if restarted.Load() {
								after.Add(1)
							}
							time.Sleep(time.Millisecond)
						}
					})
				}
			}
			eventually(t, "numbers are given", func() bool { return book.count() > 500 })
			for i := range 2 {
				f[i].kill(t)
				given := book.count()
				eventually(t, "the others serve", func() bool { return book.count() > given+1500 })
				f[i].restart(t)
				eventually(t, "it serves again", func() bool {
					now := f[i].id(t, "photos")
					time.Sleep(20 * time.Millisecond)
					return f[i].id(t, "photos") > now
				})
			}
			restarted.Store(true)
			eventually(t, "numbers are given after all of it", func() bool { return after.Load() > 500 })
			eventually(t, "the servers are close to each other", func() bool {
				// One may be left out for a moment once more.
				ids := f.ids(t, "photos")
				return slices.Max(ids)-slices.Min(ids) <= 20*50*uint64(c.count)*c.step
			})
			stop.Store(true)
			wg.Wait()
			t.Logf("%d numbers, rows at %d", book.count(), f.ids(t, "photos"))
		})
	}
}

func TestAProcessTakesNumbersOnlyAboveAllThatItEverGot(t *testing.T) {
	f := newFleet(t, 3)
	s := f.open(t, blocks(10), steadySize(10))
	createOn(t, s, "photos")
	last := uint64(0)
	for i := range 40 {
		if i == 20 {
			// As if other proxies had used only this one.
			f[1].exec(t, "UPDATE sequence SET id = id + 1000")
		}
		for _, n := range []uint64{3, 4, 3} {
			if first := mustTake(t, s, "photos", n); first <= last {
				t.Fatalf("got %d after %d", first, last)
			} else {
				last = first + n - 1
			}
		}
		settled(t, s, "photos")
	}
	if got := rewinds(s); got != 0 {
		t.Errorf("%d reservations began below what it had", got)
	}
	if last > 1450 {
		t.Errorf("400 numbers end at %d", last)
	}
	eventually(t, "all rows are near the last number", func() bool {
		// One may be left out for a moment.
		last = mustTake(t, s, "photos", 3) + 2
		return slices.Min(f.ids(t, "photos"))+60 >= last
	})
	if _, err := s.Take(t.Context(), []byte("photos"), 11); !errors.Is(err, sequence.ErrSeveral) {
		t.Errorf("a run that is longer than a block: got %v", err)
	} else {
		wantText(t, err, "do not fit in a block of 10", "sequence.block")
	}
	mustTake(t, s, "photos", 10)
}

func TestAProxyWithAnOldViewGetsNoNumbers(t *testing.T) {
	f := newFleet(t, 2)
	lone := f[:1].open(t, steadySize(10))
	createOn(t, lone, "photos")
	mustTake(t, lone, "photos", 10)
	settled(t, lone, "photos")
	sequence.Inside(lone).Cache("photos").Void(stats.UnusedRestart)
	both := f.open(t, blocks(10), steadySize(10))
	_, err := both.Take(t.Context(), []byte("photos"), 1)
	if !errors.Is(err, sequence.ErrUnfit) {
		t.Fatalf("a first plan over a server that has rows: got %v", err)
	}
	wantText(t, err, "photos", "SEQPROXY ADD SEQUENCE SERVER", f[0].server.Addr())

	f[0].exec(t, "DELETE FROM sequence") // as if its numbers had never existed
	f[0].exec(t, "DELETE FROM sequence_options")
	f.divide(t, both)
	createOn(t, both, "photos")
	top := uint64(0)
	for range 30 {
		top = mustTake(t, both, "photos", 1)
	}
	// It believes that there is one server, which counts plainly.
	sequence.Inside(lone).ForgetPlan()
	var book ledger
	for range 100 {
		book.add(t, "one", mustTake(t, lone, "photos", 1), 1)
		book.add(t, "the other", mustTake(t, both, "photos", 1), 1)
	}
	if !sequence.Inside(lone).Several() || len(sequence.Inside(lone).Members()) != 2 {
		t.Errorf("it has not learnt of the plan: %+v", sequence.Inside(lone).Plan())
	}
	if next := mustTake(t, lone, "photos", 1); next < top {
		t.Logf("%d after %d", next, top)
	}
}

func TestASequenceIsTheSameOnAllServers(t *testing.T) {
	f := newFleet(t, 3)
	a, b := f.open(t, blocks(100), steadySize(10)), f.open(t, blocks(100), steadySize(10))
	createOn(t, a, "photos")
	mustTake(t, b, "photos", 1)
	ctx := t.Context()
	text := "of people"
	if _, err := a.Alter(ctx, []byte("photos"), sequence.Alteration{Comment: &text}); err != nil {
		t.Fatal(err)
	}
	versions := func() string {
		var all []string
		for _, p := range f {
			var v string
			if err := p.db.QueryRow("SELECT CONCAT(version, comment) FROM sequence_options WHERE name = 'photos'").Scan(&v); err != nil {
				t.Fatal(err)
			}
			all = append(all, v)
		}
		return strings.Join(slices.Compact(all), " ")
	}
	if got := versions(); !strings.HasSuffix(got, text) || strings.Count(got, text) != 1 {
		t.Errorf("got versions and comments %s, want one", got)
	}
	if _, ok, err := a.SetValue(ctx, []byte("photos"), 5000, true); !ok || err != nil {
		t.Fatalf("SETVAL: %v %v", ok, err)
	}
	for _, s := range []*sequence.Sequences{a, b} {
		eventually(t, "SETVAL holds", func() bool { return mustTake(t, s, "photos", 1) > 5000 })
	}
	if raised, err := a.Raise(ctx, []byte("photos"), 9000); !raised || err != nil {
		t.Fatalf("Raise: %v %v", raised, err)
	}
	if got := mustTake(t, a, "photos", 1); got <= 9000 {
		t.Errorf("after Raise got %d", got)
	}
	if err := a.Avoid(ctx, []byte("photos"), []uint64{20_000}); err != nil {
		t.Fatal(err)
	}
	for _, id := range f.ids(t, "photos") {
		if id < 20_000 {
			t.Errorf("after Avoid: rows at %d, want all above 20000", f.ids(t, "photos"))
		}
	}
	yes, two, seven := true, uint64(2), uint64(7)
	for _, c := range []sequence.Alteration{{Cycle: &yes}, {Increment: &seven}, {Restart: &two, Force: true}} {
		if _, err := a.Alter(ctx, []byte("photos"), c); !errors.Is(err, sequence.ErrSeveral) {
			t.Errorf("%+v: got %v, want that it needs a single server", c, err)
		}
	}
	restart := uint64(50_000)
	if done, err := a.Alter(ctx, []byte("photos"), sequence.Alteration{Restart: &restart}); err != nil || done.Next == 0 {
		t.Errorf("RESTART: %+v %v", done, err)
	}
	if got := mustTake(t, a, "photos", 1); got < 50_000 || got > 50_400 {
		t.Errorf("after RESTART WITH 50000 got %d", got)
	}

	// A row that a member lacks, because it was away, is made there.
	f[2].kill(t)
	// A slow one may be left out for a moment, too.
	eventually(t, "the sequence is made on the other two", func() bool {
		_, err := b.Create(ctx, sequence.CreateOptions{Name: "albums", IfNotExists: true})
		return err == nil
	})
	eventually(t, "DROP says which server is away", func() bool {
		_, err := b.Drop(ctx, []byte("photos"), false)
		if err == nil {
			t.Fatal("DROP without one of the servers succeeded")
		}
		return strings.Contains(err.Error(), f[2].server.Addr()) && strings.Contains(err.Error(), "SEQPROXY REMOVE SEQUENCE SERVER")
	})
	f[2].restart(t)
	eventually(t, "the row is made there", func() bool {
		if _, err := a.Take(ctx, []byte("albums"), 30); err != nil {
			return false
		}
		var id uint64
		return f[2].db.QueryRow("SELECT id FROM sequence WHERE name = 'albums'").Scan(&id) == nil
	})
	for _, one := range a.ServerStats() {
		if n := one.Durations[stats.ReservedNoRow].Count(); n != 0 { // an alarm counts them
			t.Errorf("%s: a row that was to be made was missed %d times", one.Server, n)
		}
	}

	// A proxy that died between two commits of DROP left it on some.
	top := slices.Max(f.ids(t, "photos"))
	f[0].exec(t, "UPDATE sequence_options SET version = version + 10, floor = ?, anchor = 0 WHERE name = 'photos'", f[0].id(t, "photos"))
	f[0].exec(t, "DELETE FROM sequence WHERE name = 'photos'")
	c := f.open(t)
	if _, err := c.Take(ctx, []byte("photos"), 1); !errors.Is(err, sequence.ErrUnknown) {
		t.Errorf("half dropped: got %v", err)
	}
	if made := createOn(t, c, "photos"); made.First <= top || !made.Raised {
		t.Errorf("made again: %+v, want it above %d", made, top)
	}
	if dropped, err := c.Drop(ctx, []byte("photos"), false); dropped == nil || err != nil {
		t.Errorf("DROP: %v %v", dropped, err)
	}
	eventually(t, "others hear of it", func() bool {
		_, err := b.Take(ctx, []byte("photos"), 1)
		return errors.Is(err, sequence.ErrUnknown)
	})

	// A row deleted by hand is not made again: what it gave is unknown.
	f[1].exec(t, "DELETE FROM sequence WHERE name = 'albums'")
	for range 20 {
		mustTake(t, a, "albums", 50)
	}
	_, err := f.open(t).Raise(ctx, []byte("albums"), 10)
	wantText(t, err, f[1].server.Addr(), "deleted", "INSERT INTO")
}

func TestStepsOfTheWrongResidueAreRefused(t *testing.T) {
	f := newFleet(t, 2)
	f[0].exec(t, "INSERT INTO sequence VALUES ('photos', 1)")
	f[1].exec(t, "INSERT INTO sequence VALUES ('photos', 3)")
	s := f.open(t, inSteps, steadySize(10))
	_, err := s.Take(t.Context(), []byte("photos"), 1)
	if !errors.Is(err, sequence.ErrUnfit) {
		t.Fatalf("two servers of one residue: got %v", err)
	}
	remedy := err.Error()
	remedy = remedy[strings.Index(remedy, "UPDATE "):strings.LastIndex(remedy, " on ")]
	wantText(t, err, f[1].server.Addr(), "its id is 3 there, and 1 modulo 2 (those are the numbers of "+f[0].server.Addr()+", where it is 1)")
	f[1].exec(t, remedy)
	numbers := make(map[uint64]bool)
	for range 50 {
		took, err := s.TakeRun(t.Context(), []byte("photos"), 3)
		first, step := took.First, took.Step
		if err != nil || step != 2 {
			t.Fatalf("got step %d, %v", step, err)
		}
		numbers[first%2] = true
	}
	if len(numbers) != 2 {
		t.Errorf("got numbers of the residues %v, want both", numbers)
	}
	// An application that adds 2 goes on; one that adds 1 is detected.
	f[0].exec(t, "UPDATE sequence SET id = id + 2")
	mustTake(t, s, "photos", 30)
	f[0].exec(t, "UPDATE sequence SET id = id + 1")
	eventually(t, "it is found at a reservation", func() bool {
		_, err := s.Take(t.Context(), []byte("photos"), 30)
		if err != nil {
			wantText(t, err, f[0].server.Addr(), "0 modulo 2 (those are the numbers of "+f[1].server.Addr()+", where it is ")
		}
		return errors.Is(err, sequence.ErrUnfit)
	})
	if id, err := s.Advance(t.Context(), []byte("photos"), 1); !errors.Is(err, sequence.ErrStep) {
		t.Errorf("advance by 1: got %d, %v", id, err)
	}
}

// Of three servers one is up, and it was away when a sequence was made. The sequence must not be
// made a second time.
func TestANameThatTooFewServersCouldTellOfIsNotMadeAgain(t *testing.T) {
	f := newFleet(t, 3)
	first := f.open(t, blocks(10), steadySize(10), patience(30*time.Second))
	createOn(t, first, "photos")
	f[2].kill(t)
	eventually(t, "the sequence is made on the other two", func() bool {
		_, err := first.Create(t.Context(), sequence.CreateOptions{Name: "late", IfNotExists: true})
		return err == nil
	})
	last := uint64(0)
	for range 50 {
		last = mustTake(t, first, "late", 1)
	}
	f[0].kill(t)
	f[1].kill(t)
	f[2].restart(t)

	maker := f.open(t, blocks(10), steadySize(10), patience(2*time.Second), func(o *sequence.Options) { o.CreateUnknown = true })
	refusedWith(t, func() error {
		n, err := maker.Take(t.Context(), []byte("late"), 1)
		if !errors.As(err, new(*sequence.UnavailableError)) {
			t.Fatalf("got %d, %v, want an UnavailableError", n, err)
		}
		return err
	}, `sequence "late"`, "too few sequence servers can be reached", f[0].server.Addr()+": ", f[1].server.Addr()+": ")
	if exists, err := maker.Exists(t.Context(), []byte("late")); exists || err == nil {
		t.Errorf("asked whether it is known: got %v, %v, want an error", exists, err)
	}
	var rows int
	if err := f[2].db.QueryRow("SELECT COUNT(*) FROM sequence WHERE name = 'late'").Scan(&rows); err != nil || rows != 0 {
		t.Errorf("the one that is there has %d such rows, %v, want none", rows, err)
	}
	f[0].restart(t)
	f[1].restart(t)
	for _, s := range []*sequence.Sequences{maker, first} {
		eventually(t, "numbers go on", func() bool {
			n, err := s.Take(t.Context(), []byte("late"), 1)
			if err == nil && n <= last && s == maker {
				t.Fatalf("got %d after %d", n, last)
			}
			return err == nil
		})
	}
}

// Two of three servers have given all their numbers while the third is away: the sequence has not
// run out, because that one may have some.
func TestASequenceHasNotRunOutWhileAServerIsAway(t *testing.T) {
	f := newFleet(t, 3)
	s, h := f.open(t, blocks(10), steadySize(10), patience(20*time.Second)), newGivenEver()
	mustCreate(t, s, sequence.CreateOptions{Name: "photos", Max: 390}) // the last block is the third's
	h.add(t, "photos", mustTake(t, s, "photos", 1))
	f[2].kill(t)
	s.Tune(sequence.Tuning{CacheSize: 10, OutageCover: time.Nanosecond, AllocateTimeout: time.Second, CreateTable: true, NoDirectWriters: true})
	take := func() error {
		n, err := s.Take(t.Context(), []byte("photos"), 1)
		if err == nil {
			h.add(t, "photos", n)
		}
		return err
	}
	var err error
	given := false
	eventually(t, "two servers have given all that they had", func() bool {
		switch err = take(); {
		case err == nil:
			return false
		case given || errors.Is(err, sequence.ErrExhausted):
			return true
		}
		given = f[0].id(t, "photos") >= 370 && f[1].id(t, "photos") >= 380
		return false
	})
	if !errors.As(err, new(*sequence.UnavailableError)) {
		t.Errorf("after %d got %v, want an UnavailableError", h.high["photos"], err)
	}
}
