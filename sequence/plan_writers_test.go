package sequence

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
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

// What an account may read of the servers' tables does not decide whether it gets numbers, as long as there is no plan.
func TestNumbersGoOnWhereTheTableOfAPlanMayNotBeRead(t *testing.T) {
	p := newPlace(t).withTable(t, map[string]uint64{"photos": 0})
	auto := func(o *Options) { o.DirectWriters = DirectWritersAuto }
	full := p.open(t, auto, steadySize(1))
	mustAlter(t, full, "photos", Alteration{Comment: ref("the tables of options and proxies are there")})
	mustTake(t, full, "photos", 1)

	// As docs/security.md has it: rights on tables, and CREATE on the schema, which shows all tables in information_schema.
	as := p.user(t, "CREATE")
	var o Options
	o.Servers = make([]ServerOptions, 1)
	as(&o)
	grant := func(what, table string) {
		t.Helper()
		p.exec(t, fmt.Sprintf("GRANT %s ON `%s`.%s TO '%s'@'%%'", what, p.schema, table, o.Servers[0].User))
	}
	grant("SELECT, UPDATE, INSERT", "sequence")
	grant("SELECT, UPDATE, INSERT", "sequence_options")
	grant("SELECT, INSERT, UPDATE, DELETE", "sequence_proxy")
	few := p.open(t, auto, steadySize(1), as)
	given := make(map[uint64]bool)
	takes := func(when string) {
		t.Helper()
		for range 3 {
			for who, s := range map[string]*Sequences{"few rights": few, "all rights": full} {
				n, err := s.Take(t.Context(), []byte("photos"), 1)
				if err != nil {
					t.Fatalf("%s, %s: %v", when, who, err)
				}
				if given[n] {
					t.Errorf("%s, %s: %d comes twice", when, who, n)
				}
				given[n] = true
			}
		}
		for _, s := range []*Sequences{few, full} {
			settled(t, s, "photos")
			if n := s.Stats().Errors; n != 0 {
				t.Errorf("%s: %d errors", when, n)
			}
		}
	}
	again := func() { // as a minute later
		for _, s := range []*Sequences{few, full} {
			u := &s.servers.first().unheard
			u.mu.Lock()
			u.refused = u.refused.Add(-askAgainAfter)
			u.mu.Unlock()
		}
	}
	takes("with a table that one of them may not read")
	again()
	takes("a minute later")
	grant("SELECT", "sequence_member")
	again()
	takes("when it may read it")
	if u := &few.servers.first().unheard; !u.there {
		t.Error("it does not ask the table that it may read by now")
	}
	p.exec(t, fmt.Sprintf("REVOKE SELECT ON `%s`.sequence_member FROM '%s'@'%%'", p.schema, o.Servers[0].User))
	takes("when it may not any more")

	// Where the numbers end a statement changes no row, too.
	again()
	mustCreate(t, full, CreateOptions{Name: "few", Max: 3})
	for range 3 {
		mustTake(t, few, "few", 1)
	}
	if _, err := few.Take(t.Context(), []byte("few"), 1); !errors.Is(err, ErrExhausted) {
		t.Errorf("behind the last number: got %v, want ErrExhausted", err)
	}
}
