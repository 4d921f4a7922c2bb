package sequence_test

import (
	"context"
	"fmt"
	"reflect"
	"testing"
	"time"

	"seqproxy/sequence"
	"seqproxy/sequence/link"
)

func TestAPlanIsReadAsItWasWritten(t *testing.T) {
	p := newPlace(t).withTable(t, nil)
	ctx := t.Context()
	v := sequence.Inside(p.open(t)).First()
	conn, err := v.Conn(ctx)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	if m, err := v.Plans.Membership(ctx, conn, ""); m != (sequence.Membership{}) || err != nil {
		t.Errorf("without a row: got a membership %v, %v", m, err)
	}
	if all, err := v.Plans.All(ctx, conn, ""); len(all) != 0 || err != nil {
		t.Errorf("without a row: got plans %v, %v", all, err)
	}
	if floor, err := v.Plans.FloorOf(ctx, conn, 1, "photos"); floor != 0 || err != nil {
		t.Errorf("without a row: got floor %d, %v", floor, err)
	}
	id, err := v.Plans.MemberID(ctx, conn)
	if again, err2 := v.Plans.MemberID(ctx, conn); err != nil || err2 != nil || len(id) != 36 || again != id {
		t.Fatalf("got ids %q and %q, %v %v; want one uuid", id, again, err, err2)
	}
	want := sequence.Membership{ID: id, Plan: 7, Position: 1, Count: 3, Interleave: sequence.InterleaveBlock, Block: 10_000}
	if err := v.Plans.SaveMembership(ctx, conn, want); err != nil {
		t.Fatal(err)
	}
	if got, err := v.Plans.Membership(ctx, conn, ""); got != want || err != nil {
		t.Errorf("got membership %+v %v, want %+v", got, err, want)
	}
	plan := sequence.Plan{
		Number: 7, UUID: id, State: sequence.PlanInForce, Coordinator: "web1, process 12", Interleave: sequence.InterleaveBlock, Block: 10_000,
		Members:  []sequence.Member{{ID: id, Address: "10.0.0.1:3306"}, {ID: "b", Address: "10.0.0.2:3306"}},
		Previous: []sequence.Member{{ID: id, Address: "10.0.0.1:3306"}},
	}
	for _, state := range []string{"begun", sequence.PlanInForce} {
		plan.State = state
		if err := v.Plans.Save(ctx, conn, &plan); err != nil {
			t.Fatal(err)
		}
	}
	all, err := v.Plans.All(ctx, conn, "")
	if err == nil && len(all) == 1 { // it was saved on this machine, a moment ago
		plan.Begun = all[0].Begun
	}
	if ago := time.Since(plan.Begun); err != nil || ago < -time.Hour || ago > time.Hour || !reflect.DeepEqual(all, []sequence.Plan{plan}) {
		t.Errorf("got plans %+v, %v; want %+v, begun now", all, err, plan)
	}
	if err := savePlanFloor(ctx, v, conn, 7, "photos", 1<<64-2); err != nil {
		t.Fatal(err)
	}
	if floor, err := v.Plans.FloorOf(ctx, conn, 7, "photos"); floor != 1<<64-2 || err != nil {
		t.Errorf("got floor %d, %v", floor, err)
	}
	p.exec(t, "UPDATE sequence_plan SET floor = 12")
	if floor, err := v.Plans.FloorOf(ctx, conn, 7, "albums"); floor != 12 || err != nil {
		t.Errorf("of a name that the plan did not know: got floor %d, %v, want 12", floor, err)
	}
	p.exec(t, "UPDATE sequence_plan SET members = '[{\"id\":\"a\"'")
	if _, err := v.Plans.All(ctx, conn, ""); err == nil {
		t.Error("a plan whose members end in the middle was read")
	}
}

// savePlanFloor writes a floor of a plan.
func savePlanFloor(ctx context.Context, v sequence.Server, on link.Querier, plan uint64, name string, floor uint64) error {
	_, err := on.ExecContext(ctx, "REPLACE INTO "+v.Table.PlanStart+" (`plan`, `name`, `floor`) VALUES (?, ?, ?)", plan, name, floor)
	if err != nil {
		return fmt.Errorf("write table %s: %w", v.Table.PlanStart, err)
	}
	return nil
}
