package sequence_test

import (
	"context"
	"database/sql"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"seqproxy/sequence"
	"seqproxy/sequence/change"
	"seqproxy/sequence/link"
)

// counted returns what an application gets that adds to a row itself.
func counted(ctx context.Context, conn *sql.Conn, step uint64) (uint64, error) {
	result, err := conn.ExecContext(ctx, "UPDATE sequence SET id = LAST_INSERT_ID(id + ?) WHERE name = 'photos'", step)
	if err != nil {
		return 0, err
	}
	id, err := result.LastInsertId()
	return uint64(id), err
}

// Applications count in the rows themselves while the set of servers changes: one after the other,
// in a transaction that is open at the freeze, and on a snapshot from before it. Nobody gives again
// what they got before, and from the freeze on they get nothing.
func TestApplicationsThatCountWhileTheRowsAreFrozen(t *testing.T) {
	e, h := newPlanEstate(t, 3, map[string]uint64{"photos": 100}), newGivenEver()
	s := e.open(t, steadySize(5), patience(30*time.Second), withDirectWriters, inSteps)
	e.change(t, s, sequence.PlanChange{Add: e.addr(1), WritersStopped: true})
	takeAll(t, s, h, "photos", 20)
	settled(t, s, "photos")

	ctx := t.Context()
	busy, open, before := e.places[0].naiveConn(t), e.places[1].naiveConn(t), e.places[0].naiveConn(t)
	for _, text := range []string{"SET SESSION TRANSACTION ISOLATION LEVEL REPEATABLE READ", "START TRANSACTION WITH CONSISTENT SNAPSHOT"} {
		if _, err := before.ExecContext(ctx, text); err != nil {
			t.Fatal(err)
		}
	}
	var applications sync.WaitGroup
	var gotBusy []uint64
	var end error
	var over atomic.Bool
	applications.Go(func() {
		for end == nil && !over.Load() {
			n, err := counted(ctx, busy, 2)
			if err == nil {
				gotBusy = append(gotBusy, n)
			} else if !link.IsConflict(err) {
				end = err
			}
		}
	})
	var gotOpen uint64
	waited := false
	sequence.Inside(s).OnPlanStep(func(step, address string) error {
		switch {
		case step == change.Frozen && address == e.addr(0): // the other one comes next
			if _, err := open.ExecContext(ctx, "BEGIN"); err != nil {
				t.Error(err)
			}
			var err error
			if gotOpen, err = counted(ctx, open, 2); err != nil {
				t.Error(err)
			}
			applications.Go(func() {
				// The server does not renew information_schema.INNODB_TRX for who asks more often
				// than ten times a second.
				for deadline := time.Now().Add(25 * time.Second); !waited && time.Now().Before(deadline); time.Sleep(150 * time.Millisecond) {
					const waiting = "SELECT COUNT(*) > 0 FROM information_schema.INNODB_TRX WHERE trx_state = 'LOCK WAIT' AND trx_query LIKE ?"
					if err := e.places[1].db.QueryRow(waiting, "%"+e.places[1].schema+"%FOR UPDATE%").Scan(&waited); err != nil {
						t.Error(err)
						break
					}
				}
				if _, err := open.ExecContext(ctx, "COMMIT"); err != nil {
					t.Error(err)
				}
			})
		case step == change.Frozen && address == e.addr(1):
			if n, err := counted(ctx, before, 2); !link.HasCode(err, 1690) && !link.HasCode(err, 1020) {
				// the second where only a snapshot may be changed
				t.Errorf("on a snapshot from before the freeze: got %d, %v, want error 1690", n, err)
			}
			if _, err := before.ExecContext(ctx, "ROLLBACK"); err != nil {
				t.Error(err)
			}
			e.wantFrozen(t, 0, "photos")
			e.wantFrozen(t, 1, "photos")
		}
		return nil
	})
	now := e.change(t, s, sequence.PlanChange{Add: e.addr(2), WritersStopped: true})
	sequence.Inside(s).OnPlanStep(nil)
	over.Store(true)
	applications.Wait()
	if !link.HasCode(end, 1690) || len(gotBusy) == 0 {
		t.Errorf("the application that counts all the time got %d numbers, and then %v, want error 1690", len(gotBusy), end)
	}
	if !waited {
		t.Error("the freeze did not wait for the transaction that was open")
	}
	h.add(t, "photos", gotBusy...)
	h.add(t, "photos", gotOpen)
	e.everyoneGives(t, h, now, "photos") // as an application does that counts by three from now on
	takeAll(t, s, h, "photos", 100)
}

// Each reservation checks the step of an application, on each member.
func TestAnApplicationThatCountsByTheWrongStepIsFound(t *testing.T) {
	e, h := newPlanEstate(t, 2, map[string]uint64{"photos": 100}), newGivenEver()
	s := e.open(t, steadySize(5), patience(30*time.Second), withDirectWriters, inSteps)
	e.change(t, s, sequence.PlanChange{Add: e.addr(1), WritersStopped: true})
	for i, p := range e.places {
		takeAll(t, s, h, "photos", 50)
		settled(t, s, "photos")
		p.exec(t, "UPDATE sequence SET id = id + 1 WHERE name = 'photos'")
		var err error
		eventually(t, "the wrong step is found", func() bool {
			var n uint64
			if n, err = s.Take(t.Context(), []byte("photos"), 1); err == nil {
				h.add(t, "photos", n)
			}
			return errors.Is(err, sequence.ErrUnfit)
		})
		wantText(t, err, e.addr(i), "see that everybody adds 2")
		p.exec(t, "UPDATE sequence SET id = id + 1 WHERE name = 'photos'")
		eventually(t, "the right one is not", func() bool {
			_, err := s.Take(t.Context(), []byte("photos"), 1)
			return err == nil
		})
	}
}

// The remains of a first change that was undone stop no numbers where applications may count.
func TestNumbersGoOnAfterAFirstChangeThatWasUndone(t *testing.T) {
	e := newPlanEstate(t, 2, map[string]uint64{"photos": 0})
	s, other := e.open(t, withDirectWriters, steadySize(1)), e.open(t, withDirectWriters, steadySize(1))
	h := newGivenEver()
	takes := func() {
		t.Helper()
		for _, proxy := range []*sequence.Sequences{s, other, s, other} {
			h.add(t, "photos", mustTake(t, proxy, "photos", 1))
		}
	}
	takes()
	sequence.Inside(s).OnPlanStep(func(step, _ string) error {
		if step == change.Frozen {
			return errKilled
		}
		return nil
	})
	if _, err := changeUntil(t.Context(), s, sequence.PlanChange{Add: e.addr(1), WritersStopped: true}); err == nil {
		t.Fatal("the change succeeded")
	}
	sequence.Inside(s).OnPlanStep(nil)
	if _, err := e.endLeft(t.Context(), s); err != nil && !errors.As(err, new(*sequence.PlanError)) {
		// there may be none any more
		t.Fatal(err)
	}
	takes()
}
