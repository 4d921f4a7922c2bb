package sequence

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// counted is what an application gets that adds to a row itself.
func counted(ctx context.Context, conn *sql.Conn, step uint64) (uint64, error) {
	result, err := conn.ExecContext(ctx, "UPDATE sequence SET id = LAST_INSERT_ID(id + ?) WHERE name = 'photos'", step)
	if err != nil {
		return 0, err
	}
	id, err := result.LastInsertId()
	return uint64(id), err
}

// Applications count in the rows themselves while the set of servers changes: one after the other, in a transaction that is open when the freeze comes, and on a snapshot from before it. What
// they got before is given by nobody again, and from the freeze on they get nothing.
func TestApplicationsThatCountWhileTheRowsAreFrozen(t *testing.T) {
	e, h := newPlanEstate(t, 3, map[string]uint64{"photos": 100}), newGivenEver()
	s := e.open(t, steadySize(5), patience(30*time.Second), func(o *Options) { o.DirectWriters = DirectWritersAuto })
	e.change(t, s, PlanChange{Add: e.addr(1), WritersStopped: true})
	e.change(t, s, PlanChange{Interleave: InterleaveStep, WritersStep: 2})
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
			} else if !isConflict(err) {
				end = err
			}
		}
	})
	var gotOpen uint64
	waited := false
	s.planHook = func(step, address string) error {
		switch {
		case step == planFrozen && address == e.addr(0): // the other one comes next
			if _, err := open.ExecContext(ctx, "BEGIN"); err != nil {
				t.Error(err)
			}
			var err error
			if gotOpen, err = counted(ctx, open, 2); err != nil {
				t.Error(err)
			}
			applications.Go(func() {
				// information_schema.INNODB_TRX is not read anew where somebody asks more often than ten times a second.
				for deadline := time.Now().Add(8 * time.Second); !waited && time.Now().Before(deadline); time.Sleep(150 * time.Millisecond) {
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
		case step == planFrozen && address == e.addr(1):
			if n, err := counted(ctx, before, 2); !hasCode(err, 1690) && !hasCode(err, 1020) { // the second where a snapshot is all that may be changed
				t.Errorf("on a snapshot from before the freeze: got %d, %v, want error 1690", n, err)
			}
			if _, err := before.ExecContext(ctx, "ROLLBACK"); err != nil {
				t.Error(err)
			}
			e.wantFrozen(t, 0, "photos")
			e.wantFrozen(t, 1, "photos")
		}
		return nil
	}
	now := e.change(t, s, PlanChange{Add: e.addr(2), WritersStep: 3})
	s.planHook = nil
	over.Store(true)
	applications.Wait()
	if !hasCode(end, 1690) || len(gotBusy) == 0 {
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

// Applications count on all members of a plan that was made for them, also on one whose table seqproxy has made: a wrong step there is refused, and each change wants the operator's
// word, also when the server is gone that was there before seqproxy.
func TestApplicationsThatCountAreRememberedWithThePlan(t *testing.T) {
	e, h := newPlanEstate(t, 3, map[string]uint64{"photos": 100}), newGivenEver()
	auto := func(o *Options) { o.DirectWriters = DirectWritersAuto }
	s := e.open(t, steadySize(5), patience(30*time.Second), auto, inSteps)
	e.change(t, s, PlanChange{Add: e.addr(1), WritersStep: 2})
	takeAll(t, s, h, "photos", 50)
	settled(t, s, "photos")
	e.places[1].exec(t, "UPDATE sequence SET id = id + 1 WHERE name = 'photos'")
	var err error
	eventually(t, "the wrong step is found", func() bool {
		var n uint64
		if n, err = s.Take(t.Context(), []byte("photos"), 1); err == nil {
			h.add(t, "photos", n)
		}
		return errors.Is(err, ErrUnfit)
	})
	wantText(t, err, e.addr(1), "see that everybody adds 2")
	e.places[1].exec(t, "UPDATE sequence SET id = id + 1 WHERE name = 'photos'")
	eventually(t, "the right one is not", func() bool {
		_, err := s.Take(t.Context(), []byte("photos"), 1)
		return err == nil
	})

	// Another proxy finishes it.
	died := e.open(t, auto)
	died.planHook = func(step, address string) error {
		if step == planDecided {
			return &hookError{step, address}
		}
		return nil
	}
	if _, err := died.ChangePlan(t.Context(), PlanChange{Add: e.addr(2), WritersStep: 3}); err == nil {
		t.Fatal("the coordinator did not die")
	}
	if _, err := s.ResumePlan(t.Context()); err != nil {
		t.Fatal(err)
	}
	e.change(t, s, PlanChange{Remove: e.addr(0), WritersStep: 2})
	refused := func(change PlanChange) {
		t.Helper()
		_, err := s.ChangePlan(t.Context(), change)
		wantText(t, err, "may count in the table", "as was said when the plan in force was made", "WITH DIRECT WRITERS STOPPED")
	}
	refused(PlanChange{Add: e.addr(0)})
	refused(PlanChange{Remove: e.addr(2)})
	e.change(t, s, PlanChange{Remove: e.addr(2), WritersStep: 1})
	refused(PlanChange{Add: e.addr(2)})
	e.change(t, s, PlanChange{Add: e.addr(2), WritersStopped: true})
	e.everyoneGives(t, h, e.change(t, s, PlanChange{Remove: e.addr(2)}), "photos")
}

// Proxies that have not heard of the first plan yet take care of applications only where they know of these.
func TestTheFirstPlanWithApplicationsThatCountWantsProxiesToKnowOfThem(t *testing.T) {
	e := newPlanEstate(t, 2, map[string]uint64{"photos": 0})
	e.places[0].exec(t, "ALTER TABLE sequence COMMENT='"+madeHere+"'")
	s := e.open(t, inSteps, func(o *Options) { o.DirectWriters = DirectWritersAuto })
	_, err := s.ChangePlan(t.Context(), PlanChange{Add: e.addr(1), WritersStep: 2})
	wantText(t, err, "no application counts there", `direct_writers = "yes"`)
	s.Tune(Tuning{DirectWriters: DirectWritersYes})
	e.change(t, s, PlanChange{Add: e.addr(1), WritersStep: 2})
}

// What a first change left that was undone, and its tables if somebody drops them, stops no numbers where applications may count.
func TestNumbersGoOnAfterAFirstChangeThatWasUndone(t *testing.T) {
	e := newPlanEstate(t, 2, map[string]uint64{"photos": 0})
	auto := func(o *Options) { o.DirectWriters = DirectWritersAuto }
	s, other := e.open(t, auto, steadySize(1)), e.open(t, auto, steadySize(1))
	h := newGivenEver()
	takes := func() {
		t.Helper()
		for _, proxy := range []*Sequences{s, other, s, other} {
			h.add(t, "photos", mustTake(t, proxy, "photos", 1))
		}
	}
	takes()
	s.planHook = func(step, _ string) error {
		if step == planFrozen {
			return errors.New("the coordinator gives up")
		}
		return nil
	}
	if _, err := s.ChangePlan(t.Context(), PlanChange{Add: e.addr(1), WritersStopped: true}); err == nil {
		t.Fatal("the change succeeded")
	}
	s.planHook = nil
	if _, err := s.AbortPlan(t.Context()); err != nil && !errors.As(err, new(*PlanError)) { // there may be none any more
		t.Fatal(err)
	}
	takes()
	e.places[0].exec(t, "DROP TABLE sequence_member")
	takes()
}

// The first change may end between making the table and writing to it, for want of a right or of a coordinator that lives on.
func TestNumbersGoOnWhereAnEmptyTableIsLeftOfAFirstChange(t *testing.T) {
	p := newPlace(t).withTable(t, map[string]uint64{"photos": 0})
	s := p.open(t, steadySize(1), func(o *Options) { o.DirectWriters = DirectWritersAuto })
	mustTake(t, s, "photos", 1)
	p.exec(t, fmt.Sprintf(createMember, "sequence_member"))
	for range 3 {
		mustTake(t, s, "photos", 1)
	}
	p.exec(t, "DROP TABLE sequence_member")
	for range 3 {
		mustTake(t, s, "photos", 1)
	}
}

// Who takes numbers of an ORDER sequence waits for each statement, and information_schema is slow. Without the right to make the table it is asked all the same.
func TestNumbersOfAnORDERSequenceDoNotWaitForInformationSchema(t *testing.T) {
	p := newPlace(t).withTable(t, map[string]uint64{"photos": 0, "users": 0})
	auto := func(o *Options) { o.DirectWriters = DirectWritersAuto }
	asks := func(s *Sequences, name string) bool {
		t.Helper()
		mustTake(t, s, name, 1)
		v := s.servers.first()
		take, err := v.taking(name, 1, v.rules.of(name), v.share(), limit{})
		if err != nil {
			t.Fatal(err)
		}
		return strings.Contains(take.text, "information_schema")
	}
	mustAlter(t, p.open(t), "photos", Alteration{Comment: ref("the tables of options and proxies are there")})
	exists := func() (there bool) {
		t.Helper()
		if err := p.db.QueryRow("SELECT COUNT(*) FROM information_schema.TABLES WHERE TABLE_SCHEMA = ? AND TABLE_NAME = 'sequence_member'", p.schema).Scan(&there); err != nil {
			t.Fatal(err)
		}
		return there
	}

	s := p.open(t, func(o *Options) { o.DirectWriters = DirectWritersNo })
	mustAlter(t, s, "photos", Alteration{Order: ref(true)})
	if asks(s, "photos") || exists() {
		t.Errorf("where nobody else counts the table is made: %v", exists())
	}
	bound := p.open(t, auto, p.user(t, "SELECT, INSERT, UPDATE, DELETE"))
	mustAlter(t, bound, "photos", Alteration{Order: ref(true)})
	if !asks(bound, "photos") || exists() {
		t.Errorf("without the right to make it the table is there: %v", exists())
	}
	other := p.open(t, auto, p.user(t, "SELECT, INSERT, UPDATE, DELETE"))
	mustTake(t, other, "photos", 1)

	s = p.open(t, auto)
	mustCreate(t, s, CreateOptions{Name: "orders", Order: true})
	for name, s := range map[string]*Sequences{"who made it": s, "who has been here": bound, "who comes now": other} {
		if asks(s, "orders") {
			t.Errorf("%s asks information_schema", name)
		}
	}
	p.exec(t, "DROP TABLE sequence_member")
	if _, err := s.Take(t.Context(), []byte("orders"), 1); err != nil {
		t.Error(err)
	}
	if !asks(s, "orders") {
		t.Error("without the table information_schema is not asked")
	}
}
