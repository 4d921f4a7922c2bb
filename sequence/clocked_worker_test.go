package sequence_test

import (
	"context"
	"errors"
	"os"
	"testing"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"seqproxy/sequence"
	"seqproxy/sequence/define"
	"seqproxy/sequence/snowflake"
)

func workerID(n uint64) func(*sequence.Options) { return func(o *sequence.Options) { o.WorkerID = &n } }

// A proxy that stops leaves its worker to the next one, while others run, with a state directory or
// without. No row seems to have gone back.
func TestACleanStopLeavesTheWorker(t *testing.T) {
	p := newPlace(t)
	ctx, k, l := context.Background(), snow(t), new(keyLedger)
	any := p.open(t)
	mustCreate(t, any, sequence.CreateOptions{Name: "photos", Kind: k})
	wantWorker := func(s *sequence.Sequences, want uint64) {
		t.Helper()
		for range 20 {
			key := l.take(t, s, "photos", 500)
			wantNow(t, k, key)
			if _, worker, _ := k.Decompose(key); worker != want {
				t.Fatalf("the key %d is of worker %d, want %d", key, worker, want)
			}
		}
	}
	l.take(t, any, "photos", 1)
	dir := t.TempDir()
	for round := range 6 {
		options := []func(*sequence.Options){workerID(200)}
		if round > 1 {
			options = append(options, stateIn(dir))
		}
		s := p.open(t, options...)
		wantWorker(s, 200)
		l.take(t, any, "photos", 100)
		if round%2 == 1 { // otherwise perhaps while ticks are reserved
			eventually(t, "ticks are reserved", func() bool {
				return p.id(t, define.CounterName(define.WorkerName("photos", 200))) > k.TickAt(time.Now().Add(14*time.Minute).UnixNano())
			})
		}
		if err := s.Close(ctx); err != nil {
			t.Fatal(err)
		}
		if reserved := p.id(t, define.CounterName(define.WorkerName("photos", 200))); reserved > k.TickAt(time.Now().UnixNano()) {
			t.Errorf("after a clean stop ticks are reserved up to %v", k.TimeOf(reserved))
		}
		if n := rewinds(s); n != 0 {
			t.Errorf("%d rows have gone back", n)
		}
	}
	wantWorker(p.open(t, workerID(200), stateIn(dir)), 200)
	time.Sleep(2 * sequence.UsualTiming().Follow) // others look at the rows
	if n := rewinds(any); n != 0 {
		t.Errorf("to others %d rows have gone back", n)
	}
}

// Two proxies have one worker_id: the second one gives no key, and names the first.
func TestTwoProxiesOfOneWorkerID(t *testing.T) {
	p := newPlace(t)
	ctx, k, l := context.Background(), snow(t), new(keyLedger)
	first, second := p.open(t, workerID(5)), p.open(t, workerID(5))
	mustCreate(t, first, sequence.CreateOptions{Name: "photos", Kind: k})
	l.take(t, first, "photos", 10)
	host, err := os.Hostname()
	if err != nil {
		t.Fatal(err)
	}
	var worker *snowflake.WorkerError
	for range 3 {
		_, err := second.Take(ctx, []byte("photos"), 1)
		if !errors.As(err, &worker) || worker.Free < 20*time.Minute {
			t.Fatalf("the second one: got %v, want that the worker is free in 20 minutes or more", err)
		}
		wantText(t, err, "worker 5, which is the worker_id of this proxy, is in use for", " by "+host+", process ", ", worker 5: give each proxy another worker_id")
		l.take(t, first, "photos", 10)
	}
	if _, err := p.open(t, workerID(256)).Take(ctx, []byte("photos"), 1); !errors.As(err, &worker) {
		t.Errorf("a worker_id that the sequence has not: %v", err)
	} else {
		wantText(t, err, `sequence "photos" has workers 0 to 255, and the worker_id of this proxy is 256`, "WORKER BITS")
	}
	if err := first.Close(ctx); err != nil {
		t.Fatal(err)
	}
	wantNow(t, k, l.take(t, second, "photos", 10))
}

// Somebody deletes the rows of workers, whose names he does not know. A process has ticks of one.
func TestAWorkerWhoseRowWasDeletedIsNotBegunAgain(t *testing.T) {
	p := newPlace(t)
	k, l := kindOf(t, "SNOWFLAKE EPOCH '2020-01-01' TICK '1s' TIME BITS 33 WORKER BITS 1 COUNTER BITS 12"), new(keyLedger)
	a := p.open(t, patience(20*time.Second))
	mustCreate(t, a, sequence.CreateOptions{Name: "photos", Kind: k, Cover: 600})
	l.take(t, a, "photos", 1)
	p.exec(t, "DELETE FROM sequence WHERE name LIKE 'photos#w%'")
	all := []*sequence.Sequences{a, p.open(t, patience(2*time.Second)), p.open(t, patience(2*time.Second))}
	for range 5 {
		for i, s := range all { // two workers for three
			if key, err := s.Take(t.Context(), []byte("photos"), 1); err == nil {
				l.note(t, key, 1)
			} else if i == 0 {
				t.Errorf("the one that has ticks: %v", err)
			}
		}
		if t.Failed() {
			return
		}
	}
}

// The tables are restored from before a worker's row was made. The process that has only this
// worker, and remembers what it reserved, goes on above that.
func TestAWorkerOfAProcessThatRemembersBeginsAgainAfterARestore(t *testing.T) {
	p := newPlace(t)
	k, l, dir := snow(t), new(keyLedger), t.TempDir()
	s := p.open(t, workerID(5), stateIn(dir))
	mustCreate(t, s, sequence.CreateOptions{Name: "photos", Kind: k})
	l.take(t, s, "photos", 10)
	closeNow(t, s)
	for _, table := range []string{"sequence", "sequence_options"} {
		p.exec(t, "DELETE FROM "+table+" WHERE name LIKE 'photos#w%'")
	}
	wantNow(t, k, l.take(t, p.open(t, workerID(5), stateIn(dir)), "photos", 10))
}

// The row of a worker stands at its end, though the time does not. The proxy that has the worker
// goes on with another one, and no reservation fails.
func TestAWorkerWhoseTicksHaveRunOutIsLeftForAnother(t *testing.T) {
	p := newPlace(t)
	core, logs := observer.New(zap.WarnLevel)
	k, l := snow(t), new(keyLedger)
	s := p.open(t, looksOften, func(o *sequence.Options) { o.Logger = zap.New(core) })
	mustCreate(t, s, sequence.CreateOptions{Name: "photos", Kind: k, Cover: 4})
	workers := map[uint64]bool{}
	take := func() {
		key := l.take(t, s, "photos", 1)
		wantNow(t, k, key)
		_, worker, _ := k.Decompose(key)
		workers[worker] = true
	}
	take()
	p.exec(t, "UPDATE sequence SET id = ? WHERE name LIKE 'photos#w%'", k.MaxCounter())
	eventually(t, "it has another worker", func() bool { take(); return len(workers) > 1 })
	if failed := logs.FilterMessage("reserving numbers fails").All(); len(failed) > 0 {
		t.Errorf("it logs %v", failed[0].ContextMap())
	}
}
