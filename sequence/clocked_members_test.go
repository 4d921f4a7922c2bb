package sequence_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"seqproxy/sequence"
	"seqproxy/sequence/define"
	"seqproxy/sequence/kind"
	"seqproxy/test/mysqltest"
)

// snowTakers have processes take keys of "photos" all the time. Those of each rise.
type snowTakers struct {
	k    kind.Kind
	l    keyLedger
	wg   sync.WaitGroup
	stop atomic.Bool

	mu      sync.Mutex
	longest time.Duration // longest time of a take
}

// wantWorkers waits until processes have workers of two members.
func wantWorkers(t testing.TB, all []*sequence.Sequences) {
	t.Helper()
	for _, s := range all {
		eventually(t, "a process has workers of two members", func() bool {
			c := sequence.Inside(s).Cache("photos")
			return c.Exists() && c.Workers() == 2
		})
	}
}

// looksOften makes ticks be reserved twice a second, if need be.
func looksOften(o *sequence.Options) {
	sequence.ChangeTiming(o, func(t *sequence.Timing) { t.ClockLook = 500 * time.Millisecond })
}

// begin makes one more process take keys.
func (x *snowTakers) begin(t testing.TB, who string, s *sequence.Sequences) {
	x.wg.Go(func() {
		last := uint64(0)
		for i := uint64(0); !x.stop.Load(); i++ {
			begin := time.Now()
			key, err := s.Take(context.Background(), []byte("photos"), i%7+1)
			if errors.Is(err, sequence.ErrClosed) {
				return
			}
			took := time.Since(begin)
			if err != nil || key <= last {
				t.Errorf("%s: behind %d comes %d, %v", who, last, key, err)
				return
			}
			last = key
			x.l.note(t, key, i%7+1)
			x.mu.Lock()
			x.longest = max(x.longest, took)
			x.mu.Unlock()
			time.Sleep(time.Millisecond)
		}
	})
}

// goOn waits for keys, and returns how long one of them took.
func (x *snowTakers) goOn(t testing.TB, when string) time.Duration {
	t.Helper()
	x.mu.Lock()
	x.longest = 0
	x.mu.Unlock()
	before := x.l.count()
	eventually(t, "keys are given "+when, func() bool { return x.l.count() > before+1500 })
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.longest
}

// Each worker has its home at one of several members, and a process whose home is away gets another
// worker before its ticks end. A process may be killed, and come back.
func TestSeveralMembersGiveASnowflakeOnce(t *testing.T) {
	for _, members := range []int{2, 3} {
		if members > 2 && testing.Short() {
			continue
		}
		t.Run(fmt.Sprint(members), func(t *testing.T) {
			f := newFleet(t, members)
			x := &snowTakers{k: snow(t)}
			open := func() *sequence.Sequences { return f.open(t, looksOften, patience(20*time.Second)) }
			a := open()
			mustCreate(t, a, sequence.CreateOptions{Name: "photos", Kind: x.k, Cover: 4})
			defer x.wg.Wait()
			defer x.stop.Store(true)
			all := []*sequence.Sequences{a, open(), open(), open()}
			for i, s := range all {
				x.begin(t, fmt.Sprint("proxy ", i), s)
			}
			x.goOn(t, "at first")
			for i := range members {
				if i > 0 && testing.Short() {
					break
				}
				wantWorkers(t, all)
				f[i].kill(t)
				// Longer than the reserved ticks.
				for begin := time.Now(); time.Since(begin) < 16*time.Second; {
					if took := x.goOn(t, "without a member"); took > 12*time.Second {
						t.Errorf("without member %d a key took %v", i, took)
					}
				}
				// This process begins now.
				late := f.open(t, looksOften, patience(4*time.Second))
				if members > 2 {
					within(t, time.Minute, "one that begins has keys", func() bool {
						key, err := late.Take(t.Context(), []byte("photos"), 1)
						if err == nil {
							x.l.note(t, key, 1)
							wantNow(t, x.k, key)
						}
						return err == nil
					})
				} else if key, err := late.Take(t.Context(), []byte("photos"), 1); err == nil {
					x.l.note(t, key, 1) // of a worker that is free again
				} else if !strings.Contains(err.Error(), "is away") {
					// No other member can record a ceiling of a new worker.
					t.Errorf("of two members one is away: got %v, want no error", err)
				}
				if err := late.Close(t.Context()); err != nil {
					t.Log(err)
				}
				f[i].restart(t)
				x.goOn(t, "with it again")
			}
			x.stop.Store(true)
			x.wg.Wait()
			x.homes(t, f)
		})
	}
}

// homes checks that each worker's ticks were reserved at one member.
func (x *snowTakers) homes(t testing.TB, f fleet) {
	t.Helper()
	now := x.k.TickAt(time.Now().UnixNano())
	for worker := range uint64(256) {
		name := define.CounterName(define.WorkerName("photos", worker))
		for i, p := range f {
			var id uint64
			if err := p.db.QueryRow("SELECT IFNULL(MAX(id), 0) FROM sequence WHERE name = ?", name).Scan(&id); err != nil {
				t.Fatal(err)
			}
			if int(worker)%len(f) != i && id > now {
				t.Errorf("worker %d has ticks up to %d at member %d", worker, id, i)
			}
			if id >= 1<<57 {
				t.Errorf("row %s stands at %d", name, id)
			}
		}
	}
}

// Members are restored from a backup while a process has ticks ahead. It reserves none for long,
// and raises the rows all the same: otherwise another process would take its workers for free ones.
func TestARestoredMemberTakesNoTicksBackFromWhoHasThem(t *testing.T) {
	f := newFleet(t, 2)
	k, l := kindOf(t, "SNOWFLAKE EPOCH '2020-01-01' TICK '1s' TIME BITS 33 WORKER BITS 1 COUNTER BITS 12"), new(keyLedger)
	a := f.open(t, patience(20*time.Second))
	mustCreate(t, a, sequence.CreateOptions{Name: "photos", Kind: k, Cover: 600})
	l.take(t, a, "photos", 1)
	wantWorkers(t, []*sequence.Sequences{a})
	ticks := func(worker int) (id uint64) { // each worker's are of one member
		return f[worker].id(t, define.CounterName(define.WorkerName("photos", uint64(worker))))
	}
	before := []uint64{ticks(0), ticks(1)}
	for i, p := range f {
		p.exec(t, "UPDATE sequence SET id = ? WHERE name = ?", k.TickAt(time.Now().UnixNano())-10, define.CounterName(define.WorkerName("photos", uint64(i))))
	}
	for i := range f {
		eventually(t, "the row is raised", func() bool { return ticks(i) >= before[i] })
	}
	b := f.open(t, patience(2*time.Second))
	if key, err := b.Take(t.Context(), []byte("photos"), 1); err == nil {
		t.Errorf("both workers are in use, and another process got %d", key)
	}
	l.take(t, a, "photos", 1)
}

// Ticks are not divided in steps, in which applications count themselves.
func TestMembersInStepsHaveNoSnowflake(t *testing.T) {
	f := newFleet(t, 2)
	_, err := f.open(t, inSteps, patience(time.Minute)).Create(context.Background(), sequence.CreateOptions{Name: "k", Kind: snow(t)})
	if !errors.Is(err, sequence.ErrSeveral) || !strings.Contains(fmt.Sprint(err), "SNOWFLAKE") {
		t.Errorf("with two servers: got %v, want ErrSeveral about SNOWFLAKE", err)
	}
}

// A member is lost and removed. Who begins afterwards has keys of the present time, as long as the
// epoch is near. A new day counts from 1.
func TestALostMemberTakesNoTimeAlong(t *testing.T) {
	yesterday := time.Now().UTC().Add(-24 * time.Hour).Format(time.DateOnly)
	k := kindOf(t, "SNOWFLAKE EPOCH '"+yesterday+"' TICK '1ms' TIME BITS 43 WORKER BITS 8 COUNTER BITS 12")
	e, l, days := newPlanEstate(t, 3, map[string]uint64{"users": 0}), new(keyLedger), new(textLedger)
	clock := almanacAt(time.Now())
	admin := e.open(t, patience(20*time.Second))
	ceilingsAhead(admin, 1<<36)
	mustCreate(t, admin, sequence.CreateOptions{Name: "photos", Kind: k, Cover: 4})
	mustCreate(t, admin, sequence.CreateOptions{Name: "po", Kind: kindOf(t, daily)})
	e.change(t, admin, sequence.PlanChange{Add: e.addr(1)})
	e.change(t, admin, sequence.PlanChange{Add: e.addr(2)})
	wantNow(t, k, l.take(t, admin, "photos", 1))
	days.take(t, admin, "po")
	mustCreate(t, admin, sequence.CreateOptions{Name: "dropped", Kind: k, Cover: 4})
	l.take(t, admin, "dropped", 1)
	if _, err := admin.Drop(t.Context(), []byte("dropped"), false); err != nil {
		t.Fatal(err)
	}
	e.links[2].Cut()
	e.change(t, admin, sequence.PlanChange{Remove: e.addr(2), Force: true})
	late := e.open(t, patience(20*time.Second), func(o *sequence.Options) {
		sequence.SetWall(o, clock.now)
		sequence.ChangeTiming(o, func(t *sequence.Timing) { t.ClockOff = 48 * time.Hour })
	})
	wantNow(t, k, l.take(t, late, "photos", 1))
	if number := mustTake(t, late, "users", 1); number <= 1<<36 {
		t.Errorf("a counter goes on with %d, want more than the ceiling of the lost member", number)
	}
	mustCreate(t, late, sequence.CreateOptions{Name: "dropped", Kind: k, Cover: 4})
	wantNow(t, k, l.take(t, late, "dropped", 1))
	days.take(t, late, "po")
	clock.set(time.Now().Add(24 * time.Hour))
	if key := days.take(t, late, "po"); !strings.Contains(key, "-0000") { // in a block of one of the members
		t.Errorf("the first key of a new day is %s", key)
	}
}

// A process has ticks of a worker whose member is lost. The worker is not free before they have
// passed.
func TestTheWorkerOfALostMemberIsNotFreeAtOnce(t *testing.T) {
	const cover = 4
	e := newPlanEstate(t, 3, map[string]uint64{"users": 0})
	k, l := snow(t), new(keyLedger)
	admin := e.open(t, patience(20*time.Second))
	e.change(t, admin, sequence.PlanChange{Add: e.addr(1)})
	e.change(t, admin, sequence.PlanChange{Add: e.addr(2)})
	mustCreate(t, admin, sequence.CreateOptions{Name: "photos", Kind: k, Cover: cover})
	a := e.open(t, workerID(2), looksOften, patience(20*time.Second))
	wantWorker(t, k, l, a, 2)
	e.links[2].Cut()
	e.change(t, admin, sequence.PlanChange{Remove: e.addr(2), Force: true})
	wantFree(t, e.open(t, workerID(2), looksOften, patience(20*time.Second)), time.Second, 34*cover*time.Second)
	wantWorker(t, k, l, a, 2)
}

// Members are added and removed, also one that is away, and with which a proxy goes on unseen.
func TestASnowflakeIsGivenOnceWhileMembersChange(t *testing.T) {
	if testing.Short() {
		t.Skip("waits for the ends of ticks")
	}
	e := newPlanEstate(t, 3, map[string]uint64{"users": 0})
	there := e.otherSide(t)
	patient := patience(20 * time.Second)
	x := &snowTakers{k: snow(t)}
	admin := e.open(t, looksOften, patient)
	mustCreate(t, admin, sequence.CreateOptions{Name: "photos", Kind: x.k, Cover: 4})
	defer x.wg.Wait()
	defer x.stop.Store(true)
	for i := range 3 {
		x.begin(t, fmt.Sprint("proxy ", i), e.open(t, looksOften, patient))
	}
	x.goOn(t, "at first")
	for _, change := range []sequence.PlanChange{{Add: e.addr(1)}, {Add: e.addr(2)}, {Remove: e.addr(0)}, {Add: e.addr(0)}} {
		e.change(t, admin, change)
		x.goOn(t, "after a change")
		time.Sleep(2 * time.Second) // a few reservations
	}

	apart := there.open(t, looksOften)
	x.l.take(t, apart, "photos", 10)
	apart.Tune(sequence.Tuning{CreateTable: true, AllocateTimeout: 2 * time.Second, NoDirectWriters: true})
	e.links[2].Cut()
	there.links[0].Cut()
	there.links[1].Cut()
	now := e.change(t, admin, sequence.PlanChange{Remove: e.addr(2), Force: true})
	if len(now.Members) != 2 {
		t.Fatalf("got %+v", now)
	}
	// Its own ticks, and those up to the ceilings.
	given := 0
	for begin := time.Now(); time.Since(begin) < 15*time.Second; time.Sleep(10 * time.Millisecond) {
		if key, err := apart.Take(t.Context(), []byte("photos"), 3); err == nil {
			x.l.note(t, key, 3)
			given++
		}
	}
	if given < 100 {
		t.Errorf("who was cut off has got %d keys", given)
	}
	x.goOn(t, "without the one that was removed")
	for _, l := range []*mysqltest.Link{e.links[2], there.links[0], there.links[1]} {
		l.Mend()
	}
	eventually(t, "who was cut off goes on", func() bool {
		key, err := apart.Take(t.Context(), []byte("photos"), 1)
		if err == nil {
			x.l.note(t, key, 1)
		}
		return err == nil && sequence.Inside(apart).Plan().Number == now.Number
	})
	e.change(t, admin, sequence.PlanChange{Remove: e.addr(1)})
	x.goOn(t, "with one server")
	wantNow(t, x.k, x.l.take(t, e.open(t, looksOften, patient), "photos", 1))
}

// The one member that would give the numbers of a new sequence is away. That sequence has not run
// out: neither the ticks of a worker, nor a sequence that ends within a block.
func TestASequenceHasNotRunOutWhereWhoGivesItIsAway(t *testing.T) {
	e := newPlanEstate(t, 3, map[string]uint64{"users": 0})
	s := e.open(t)
	e.change(t, s, sequence.PlanChange{Add: e.addr(1)})
	e.change(t, s, sequence.PlanChange{Add: e.addr(2)})
	all := []sequence.CreateOptions{
		{Name: define.WorkerName("photos", 3), Kind: kind.NewTicks(), Max: 1 << 41, Start: 1000, IfNotExists: true},
		{Name: "few", Max: 5},
	}
	if err := sequence.Inside(s).ReadPlan(t.Context()); err != nil {
		t.Fatal(err)
	}
	e.links[0].Cut()
	for _, o := range all {
		if _, err := s.Create(t.Context(), o); err == nil || errors.Is(err, sequence.ErrExhausted) {
			t.Errorf("%s: got %v, want that a member is not reached", o.Name, err)
		} else {
			wantText(t, err, "sequence server "+e.addr(0)+" is not reached")
		}
	}
	e.links[0].Mend()
	for _, o := range all {
		eventually(t, "the member is back, and "+o.Name+" is made", func() bool {
			made, err := s.Create(t.Context(), o)
			return err == nil && made.First == max(o.Start, 1)
		})
	}
}

// A ceiling of ticks is to be raised ahead, and meanwhile another member comes to give the ticks of
// that worker. A ceiling at their end would be a floor there, if the first member were lost.
func TestNoCeilingOfTicksIsRaisedWhereTheyAreNotGivenAnyMore(t *testing.T) {
	const worker = 2 // the first of two members gives its ticks, and the last of three
	e, ctx := newPlanEstate(t, 3, map[string]uint64{"users": 0}), t.Context()
	admin, k, row := e.open(t, patience(20*time.Second)), snow(t), define.CounterName(define.WorkerName("photos", worker))
	e.change(t, admin, sequence.PlanChange{Add: e.addr(1)})
	mustCreate(t, admin, sequence.CreateOptions{Name: "photos", Kind: k, Cover: 4})
	before := e.open(t, workerID(worker), patience(20*time.Second))
	wantWorker(t, k, new(keyLedger), before, worker)
	closeNow(t, before)
	late := sequence.Inside(e.open(t, patience(20*time.Second)))
	if err := late.ReadPlan(ctx); err != nil {
		t.Fatal(err)
	}
	late.StopFollowing()
	defer late.FollowAgain()
	home := late.Members()[0]
	ceiling, err := home.RecordedCeiling(ctx, row, late.Plan().Number)
	if err != nil {
		t.Fatal(err)
	}
	n := ceiling - e.places[0].id(t, row)
	if _, err := home.ReserveAsMember(ctx, row, n, n); err != nil {
		t.Fatal(err)
	}
	now := e.change(t, admin, sequence.PlanChange{Add: e.addr(2)})
	if err := late.ReadPlan(ctx); err != nil {
		t.Fatal(err)
	}
	home.GoAhead(ctx)
	for i, p := range e.places {
		var ceiling uint64
		err := p.db.QueryRow("SELECT IFNULL(MAX(wanted), 0) FROM sequence_limit WHERE name = ? AND term = ?", row, now.Number).Scan(&ceiling)
		if far := k.TickAt(time.Now().Add(time.Hour).UnixNano()); err != nil || ceiling > far {
			t.Errorf("member %d has recorded a ceiling of %d, %v; want %d at most", i, ceiling, err, far)
		}
	}
}
