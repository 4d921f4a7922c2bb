package sequence_test

import (
	"errors"
	"testing"
	"time"

	"seqproxy/sequence"
	"seqproxy/sequence/define"
	"seqproxy/sequence/kind"
	"seqproxy/sequence/snowflake"
)

// dayBehind has the clock of a process be a day behind, and believed.
func dayBehind(o *sequence.Options) {
	const day = 24 * time.Hour
	sequence.SetWall(o, func() time.Time { return time.Now().Add(-day) })
	sequence.ChangeTiming(o, func(t *sequence.Timing) { t.ClockOff = 2 * day })
}

// wantWorker takes a key of the present time, and wants it to be of a worker.
func wantWorker(t testing.TB, k kind.Kind, l *keyLedger, s *sequence.Sequences, want uint64) {
	t.Helper()
	key := l.take(t, s, "photos", 1)
	wantNow(t, k, key)
	if _, worker, _ := k.Decompose(key); worker != want {
		t.Errorf("the key %d is of worker %d, want %d", key, worker, want)
	}
}

// ticks returns until when ticks of a worker are reserved, as a node has it.
func (e *estate) ticks(t testing.TB, k kind.Kind, node int, worker uint64) time.Time {
	t.Helper()
	var id uint64
	if err := e.pools[node].QueryRow("SELECT id FROM sequence WHERE name = ?", define.CounterName(define.WorkerName("photos", worker))).Scan(&id); err != nil {
		t.Fatal(err)
	}
	return k.TimeOf(id)
}

// alone returns how many ticks of a worker node 1 may give from where it began in term 2, and wants
// to.
func (e *estate) alone(t testing.TB, worker uint64) (wanted, granted uint64) {
	t.Helper()
	err := e.pools[1].QueryRow("SELECT wanted - floor, granted - floor FROM sequence_limit WHERE term = 2 AND name = ?",
		define.CounterName(define.WorkerName("photos", worker))).Scan(&wanted, &granted)
	if err != nil {
		t.Fatal(err)
	}
	return wanted, granted
}

// wantTicks waits until ticks of a worker are reserved for so long.
func (e *estate) wantTicks(t testing.TB, k kind.Kind, worker uint64, ahead time.Duration) {
	t.Helper()
	eventually(t, "ticks are reserved", func() bool { return time.Until(e.ticks(t, k, 0, worker)) > ahead })
}

// wantFree wants a worker to be in use for a while, which is what remains of most at most.
func wantFree(t testing.TB, s *sequence.Sequences, least, most time.Duration) {
	t.Helper()
	var worker *snowflake.WorkerError
	if key, err := s.Take(t.Context(), []byte("photos"), 1); !errors.As(err, &worker) || worker.Free < least || worker.Free > most {
		t.Errorf("its worker is in use: got %d, %v, want that it is free after %v to %v", key, err, least, most)
	}
}

// A worker that was idle for a day is claimed, and then there is a fail-over. It is free when the
// ticks have passed that were reserved. Who takes over does not use the sequence.
func TestAFailOverPassesOverNoWorkerThatWasIdle(t *testing.T) {
	e := startEstate(t, 2, "users")
	k, l := snow(t), new(keyLedger)
	const cover = 20
	before := e.join(t, "before", &given{}, workerID(3), looksOften, dayBehind)
	mustCreate(t, before.Sequences, sequence.CreateOptions{Name: "photos", Kind: k, Cover: cover})
	l.take(t, before.Sequences, "photos", 10)
	closeNow(t, before.Sequences)

	a := e.join(t, "a", &given{}, workerID(3), looksOften)
	wantWorker(t, k, l, a.Sequences, 3)
	e.wantTicks(t, k, 3, cover*time.Second)
	e.CatchUp(t, 1, 0)
	a.cut(1)
	if err := e.Nodes[0].Kill(); err != nil {
		t.Fatal(err)
	}
	e.Promote(t, 1)
	mustTake(t, e.join(t, "stranger", &given{}).Sequences, "users", 1)
	if alone, granted := e.alone(t, 3); alone != 8*cover*1000 || granted != alone {
		t.Errorf("the new primary wants to give %d ticks alone, and may give %d", alone, granted)
	}
	wantFree(t, e.join(t, "b", &given{}, workerID(3), looksOften).Sequences, 1, (2*cover+1)*time.Second)
}

// The other node of a pair stays away after a fail-over, for longer than ticks were reserved.
func TestAFailOverOfAPairLeavesTheWorkers(t *testing.T) {
	e := startEstate(t, 2)
	k, l := snow(t), new(keyLedger)
	looks := func(o *sequence.Options) {
		sequence.ChangeTiming(o, func(t *sequence.Timing) { t.ClockLook = 4 * time.Second }) // which is the least cover
	}
	any, one := e.join(t, "any", &given{}, looks), e.join(t, "one", &given{}, looks, workerID(200))
	mustCreate(t, any.Sequences, sequence.CreateOptions{Name: "photos", Kind: k, Cover: 1})
	_, worker, _ := k.Decompose(l.take(t, any.Sequences, "photos", 1))
	wantWorker(t, k, l, one.Sequences, 200)
	// Not soon again, as those last for eight seconds; so none is reserved while the links are cut.
	eventually(t, "ticks are reserved", func() bool {
		return min(any.BySequence()[0].CachedFor, one.BySequence()[0].CachedFor) > 5*time.Second
	})
	any.cut(0)
	one.cut(0)
	e.CatchUp(t, 1, 0)
	if err := e.Nodes[0].Kill(); err != nil {
		t.Fatal(err)
	}
	e.Promote(t, 1)
	reserved := e.ticks(t, k, 1, worker) // before the fail-over
	for end := reserved.Add(2 * time.Second); time.Now().Before(end); time.Sleep(50 * time.Millisecond) {
		wantWorker(t, k, l, any.Sequences, worker)
		wantWorker(t, k, l, one.Sequences, 200)
	}
}

// One of two members has recorded how far the other one may go with a worker that was idle for a
// day: for 16 times the cover at least. That one is away, and is removed. The worker is free after
// 34 times the cover at most.
func TestHowLongAWorkerOfARemovedMemberIsPassedOver(t *testing.T) {
	const cover = 4
	e := newPlanEstate(t, 2, map[string]uint64{"users": 0})
	k, l := snow(t), new(keyLedger)
	admin := e.open(t, patience(20*time.Second))
	e.change(t, admin, sequence.PlanChange{Add: e.addr(1)})
	before := e.open(t, workerID(3), looksOften, dayBehind, patience(20*time.Second))
	mustCreate(t, before, sequence.CreateOptions{Name: "photos", Kind: k, Cover: cover})
	l.take(t, before, "photos", 10)
	closeNow(t, before)

	a := e.open(t, workerID(3), looksOften, patience(20*time.Second))
	wantWorker(t, k, l, a, 3)
	e.links[1].Cut()
	e.change(t, admin, sequence.PlanChange{Remove: e.addr(1), Force: true})
	wantFree(t, e.open(t, workerID(3), looksOften, patience(20*time.Second)), 16*cover*time.Second, 34*cover*time.Second)
}

// A primary is patched: its replica is promoted, and soon it is again. The second fail-over passes
// over what the first new primary might have given alone: for 8 times the cover at most.
func TestASwitchOverAndBackTakesAnotherWorker(t *testing.T) {
	if testing.Short() {
		t.Skip("waits for the ends of ticks")
	}
	e := startEstate(t, 2)
	k, l := snow(t), new(keyLedger)
	const cover = 2
	looks := func(o *sequence.Options) {
		sequence.ChangeTiming(o, func(t *sequence.Timing) { t.ClockLook = cover * time.Second })
	}
	any, one := e.join(t, "any", &given{}, looks), e.join(t, "one", &given{}, looks, workerID(200))
	mustCreate(t, any.Sequences, sequence.CreateOptions{Name: "photos", Kind: k, Cover: cover})
	for primary := range 2 {
		for _, m := range []*member{any, one} {
			l.take(t, m.Sequences, "photos", 1)
			eventually(t, "ticks are reserved on this primary", func() bool {
				var term int
				err := e.pools[primary].QueryRow("SELECT MAX(term) FROM sequence_holder").Scan(&term)
				return err == nil && term == primary+1 && m.BySequence()[0].CachedFor > 3*time.Second
			})
		}
		e.CatchUp(t, 1-primary, primary)
		e.Nodes[primary].Exec(t, "SET GLOBAL read_only = 1")
		e.Promote(t, 1-primary)
		e.Follow(t, primary, 1-primary)
	}
	for end := time.Now().Add(3 * cover * time.Second); time.Now().Before(end); time.Sleep(50 * time.Millisecond) {
		wantNow(t, k, l.take(t, any.Sequences, "photos", 1))
	}
	wantFree(t, one.Sequences, 1, 8*cover*time.Second)
}
