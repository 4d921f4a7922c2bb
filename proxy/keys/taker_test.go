package keys

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"seqproxy/protocol"
	"seqproxy/proxy/plan"
	"seqproxy/proxy/stats"
	"seqproxy/sequence"
	"seqproxy/statement"
)

// counters are sequences without a server. Names are equal in any letter case.
type counters struct {
	last, step map[string]uint64
	avoided    []uint64
	taken      []string
	notice     string
	setTo      uint64
	spent      uint64   // a client's number above it moves the counter
	asked      []string // tables of MayInsert
	looked     int      // names that were looked up
}

func (c *counters) TakeRun(_ context.Context, name []byte, n uint64) (sequence.Taken, error) {
	key := strings.ToLower(string(name))
	c.taken = append(c.taken, fmt.Sprintf("%s %d", key, n))
	if key == "empty" {
		return sequence.Taken{}, &sequence.NameError{Name: key, Err: sequence.ErrExhausted}
	}
	if key == "texts" && n == 1 {
		c.last[key]++
		return sequence.Taken{Text: fmt.Sprintf("T-%d", c.last[key])}, nil
	}
	if (key == "spread" || key == "texts") && n > 1 {
		return sequence.Taken{}, &sequence.KindError{Sequence: key}
	}
	if key == "ticks" && n > 2 {
		return sequence.Taken{}, tickError{}
	}
	step := max(c.step[key], 1)
	t := sequence.Taken{First: c.last[key] + step, Step: step, Notice: c.notice}
	c.last[key] += n * step
	return t, nil
}

func (c *counters) FormOf(_ context.Context, name []byte) (sequence.Form, error) {
	if string(name) == "texts" {
		return sequence.Texts, nil
	}
	return sequence.Numbers, nil
}

func (c *counters) Stored(_ context.Context, name []byte) (string, bool, error) {
	c.looked++
	return strings.ToLower(string(name)), true, nil
}

func (c *counters) Same(_ context.Context, a, b []byte) (bool, error) {
	c.looked += 2
	return strings.EqualFold(string(a), string(b)), nil
}

func (c *counters) Identify(context.Context, []byte) (sequence.Identity, error) {
	return sequence.Identity{}, nil
}

func (c *counters) Step(_ context.Context, name []byte) (uint64, error) {
	if string(name) == "spread" || string(name) == "texts" {
		return 0, &sequence.KindError{Sequence: "spread"}
	}
	return max(c.step[string(name)], 1), nil
}

func (c *counters) Consecutive(_ context.Context, name []byte) error {
	if string(name) == "spread" {
		return &sequence.KindError{Sequence: "spread"}
	}
	return nil
}

func (c *counters) AvoidHere(_ context.Context, _ []byte, numbers []uint64) (bool, error) {
	return slices.Max(numbers) <= c.spent, nil
}

func (c *counters) Avoid(_ context.Context, _ []byte, numbers []uint64) error {
	c.avoided = append(c.avoided, numbers...)
	return nil
}

func (c *counters) Setval(_ []byte, set *statement.SetvalArgs) (Number, error) {
	c.setTo = set.Value
	return Number{Value: set.Value}, nil
}

func (c *counters) RefuseSetval(*plan.Slot) error { return errors.New("not an admin") }

var errDenied = errors.New("INSERT command denied")

func (c *counters) MayInsert(k *plan.FilledKey) error {
	c.asked = append(c.asked, string(k.Table))
	if string(k.Table) == "secret" {
		return errDenied
	}
	return nil
}

func newTaker(t *testing.T) (*Taker, *counters) {
	c := &counters{last: make(map[string]uint64), step: make(map[string]uint64)}
	taker := new(Taker)
	taker.For(t.Context(), c, new(stats.Tally))
	taker.From(c, c, false)
	return taker, c
}

func nextval(name string, count uint64) plan.Slot {
	return plan.Slot{When: plan.Once, Func: statement.Nextval, Sequence: []byte(name), Count: count}
}

func TestTheNumbersOfOneSequenceAreConsecutive(t *testing.T) {
	taker, c := newTaker(t)
	slots := []plan.Slot{nextval("a", 1), {}, nextval("B", 2), nextval("A", 3), nextval("a", 1), {When: plan.Never, Func: statement.Nextval, Sequence: []byte("a"), Count: 1}}
	values, err := taker.Take(slots)
	if err != nil {
		t.Fatal(err)
	}
	want := []Number{{Value: 1, Last: 1}, {}, {Value: 1, Last: 2}, {Value: 2, Last: 4}, {Value: 5, Last: 5}, {}}
	if !slices.Equal(values, want) || !slices.Equal(c.taken, []string{"a 5", "b 2"}) {
		t.Errorf("got %+v, taken %q, want %+v", values, c.taken, want)
	}
}

// A text may have 100,000 calls. Comparing each with each would take minutes, which nobody can end.
func TestEachCallIsLookedUpOnce(t *testing.T) {
	taker, c := newTaker(t)
	var slots []plan.Slot
	for i := range 1000 {
		name := fmt.Sprint("s", i%100)
		if i/100%2 == 0 {
			name = strings.ToUpper(name)
		}
		slots = append(slots, nextval(name, 2), nextval(name, 1))
	}
	values, err := taker.Take(slots)
	if err != nil || len(c.taken) != 100 || c.taken[0] != "s0 30" {
		t.Fatalf("%d takes, %v, want 100 of 30 numbers", len(c.taken), err)
	}
	for i := range 1000 {
		if n := uint64(i/100*3 + 1); values[2*i].Value != n || values[2*i].Last != n+1 || values[2*i+1].Value != n+2 {
			t.Fatalf("calls %d and the one behind it: got %+v, want numbers from %d", 2*i, values[2*i:2*i+2], n)
		}
	}
	if c.looked > len(slots) {
		t.Errorf("%d look-ups for %d calls", c.looked, len(slots))
	}
}

func TestLastvalSeesTheNumbersInFrontOfIt(t *testing.T) {
	taker, _ := newTaker(t)
	last := plan.Slot{When: plan.Once, Func: statement.Lastval, Sequence: []byte("a")}
	values, err := taker.Take([]plan.Slot{last})
	if err != nil || !values[0].Null {
		t.Errorf("before the first number: got %+v, %v", values, err)
	}
	values, err = taker.Take([]plan.Slot{last, nextval("a", 2), last})
	if err != nil || !values[0].Null || values[2].Value != 2 {
		t.Errorf("beside numbers: got %+v, %v", values, err)
	}
	if values, err = taker.Take([]plan.Slot{last}); err != nil || values[0].Value != 2 {
		t.Errorf("behind numbers: got %+v, %v", values, err)
	}
	if _, err = taker.Take([]plan.Slot{nextval("empty", 1)}); !errors.Is(err, sequence.ErrExhausted) {
		t.Errorf("got %v", err)
	}
	if values, err = taker.Take([]plan.Slot{last}); err != nil || !values[0].Null {
		// All calls use one sequence here.
		t.Errorf("after it ran out: got %+v, %v", values, err)
	}
}

func TestSetvalIsDoneInTheOrderOfTheText(t *testing.T) {
	taker, c := newTaker(t)
	set := plan.Slot{When: plan.Once, Func: statement.Setval, Sequence: []byte("a"), Set: &statement.SetvalArgs{Value: 7}}
	values, err := taker.Take([]plan.Slot{nextval("a", 1), set, nextval("a", 1)})
	if err != nil || c.setTo != 7 || values[0].Value != 1 || values[1].Value != 7 || values[2].Value != 2 {
		t.Errorf("got %+v, %v, set to %d", values, err, c.setTo)
	}
}

func TestKeysAreAsFarApartAsDriversThink(t *testing.T) {
	b := &plan.Binding{Table: "t", Column: "id", Sequence: "a"}
	for _, c := range []struct {
		apart, step uint64
		count       int
		want, taken uint64
		refused     bool
	}{
		{apart: 1, step: 1, count: 1, want: 1, taken: 1},
		{apart: 1, step: 1, count: 3, want: 1, taken: 3},
		{apart: 1, step: 10, count: 3, want: 1, taken: 21},
		{apart: 5, step: 10, count: 2, want: 5, taken: 3},
		{apart: 3, step: 10, count: 2, refused: true},
	} {
		taker, seqs := newTaker(t)
		seqs.step["a"] = c.apart
		k := plan.FilledKey{Binding: b, Filled: make([]plan.FilledRow, c.count), Step: c.step}
		err := taker.key(&k)
		var refused *protocol.ServerError
		if got := seqs.last["a"] / c.apart; k.First != c.want || got != c.taken || errors.As(err, &refused) != c.refused {
			t.Errorf("%d rows %d apart of steps of %d: got %d, %d taken, %v; want %d, %d, refused %v", c.count, c.step, c.apart, k.First, got, err, c.want, c.taken, c.refused)
		}
	}
	for _, c := range []struct {
		table string
		asks  bool
		moves bool
	}{
		{table: "", moves: true}, // an execution
		{table: "t", asks: true, moves: true},
		{table: "secret", asks: true},
	} {
		taker, seqs := newTaker(t)
		seqs.spent = 3
		for _, n := range []uint64{3, 5} {
			err := taker.Avoid(&plan.FilledKey{Binding: b, Explicit: []uint64{n, 2}, Table: []byte(c.table)})
			if denied := n == 5 && !c.moves; errors.Is(err, errDenied) != denied || err != nil && !denied {
				t.Errorf("table %q, %d: got %v", c.table, n, err)
			}
		}
		if moved := slices.Contains(seqs.avoided, 5); moved != c.moves || len(seqs.asked) == 1 != c.asks {
			t.Errorf("table %q: moved %v, asked for %q; want moved %v, asked %v", c.table, moved, seqs.asked, c.moves, c.asks)
		}
	}
}

func TestRowsWhoseKeysAreNotAStepApartGetThemWhereTheInsertIDTellsOneAlone(t *testing.T) {
	for _, sequence := range []string{"spread", "threes"} {
		k := plan.FilledKey{Binding: &plan.Binding{Table: "t", Column: "id", Sequence: sequence}, Filled: make([]plan.FilledRow, 3), Step: 1}
		taker, seqs := newTaker(t)
		seqs.step["threes"] = 3
		if err := taker.key(&k); err == nil || !strings.Contains(err.Error(), `multi_row = "first"`) {
			t.Errorf("%s: got %v", sequence, err)
		}
		taker.From(seqs, seqs, true)
		step := max(seqs.step[sequence], 1)
		if err := taker.key(&k); err != nil || k.Number(0) != step || k.Number(1) != 2*step || k.Number(2) != 3*step || len(seqs.taken) != 3 {
			t.Errorf("%s: got %+v, taken %q, %v", sequence, k, seqs.taken, err)
		}
	}
}

// A statement that a server refused because its columns had changed is sent again with other keys.
func TestAStatementThatIsSentAgainHasNoKeyOfBefore(t *testing.T) {
	taker, seqs := newTaker(t)
	taker.firstAlone = true
	k := plan.FilledKey{Binding: &plan.Binding{Sequence: "spread"}, Filled: make([]plan.FilledRow, 3), Step: 1}
	seqs.step = map[string]uint64{"spread": 7}
	for _, want := range [][]uint64{{7, 14, 21}, {28, 35, 42}} {
		if err := taker.key(&k); err != nil {
			t.Fatal(err)
		}
		if got := []uint64{k.Number(0), k.Number(1), k.Number(2)}; !slices.Equal(got, want) {
			t.Errorf("got %d, want %d", got, want)
		}
	}
}

func TestTheKeysOfSeveralRowsTakeNoMemory(t *testing.T) {
	taker, c := newTaker(t)
	c.taken = make([]string, 0, 1000)
	k := plan.FilledKey{Binding: &plan.Binding{Sequence: "a"}, Filled: make([]plan.FilledRow, 3), Step: 1}
	if err := taker.key(&k); err != nil {
		t.Fatal(err)
	}
	before := testing.AllocsPerRun(100, func() { c.taken = c.taken[:0]; _, _ = c.TakeRun(t.Context(), []byte("a"), 3) })
	after := testing.AllocsPerRun(100, func() { c.taken = c.taken[:0]; _ = taker.key(&k) })
	if after > before {
		t.Errorf("got %v allocations, the sequences alone make %v", after, before)
	}
}

func TestANoticeIsGivenOnce(t *testing.T) {
	taker, c := newTaker(t)
	c.notice = "75% are used"
	if _, err := taker.Take([]plan.Slot{nextval("a", 1)}); err != nil {
		t.Fatal(err)
	}
	if first, second := taker.Notice(), taker.Notice(); first == nil || first.Message != c.notice || second != nil {
		t.Errorf("got %v and %v", first, second)
	}
}

func TestOneNumberTakesNoMemory(t *testing.T) {
	taker, c := newTaker(t)
	c.taken = make([]string, 0, 1000)
	slots := []plan.Slot{nextval("a", 1)}
	if _, err := taker.Take(slots); err != nil {
		t.Fatal(err)
	}
	before := testing.AllocsPerRun(100, func() { c.taken = c.taken[:0]; _, _ = c.TakeRun(t.Context(), slots[0].Sequence, 1) })
	after := testing.AllocsPerRun(100, func() { c.taken = c.taken[:0]; _, _ = taker.Take(slots) })
	if after > before {
		t.Errorf("got %v allocations, the sequences alone make %v", after, before)
	}
}

// Keys that are not consecutive are taken one by one.
func TestKeysThatAreNotConsecutiveAreTakenOneByOne(t *testing.T) {
	taker, c := newTaker(t)
	values, err := taker.Take([]plan.Slot{nextval("spread", 1), nextval("a", 1), nextval("Spread", 1)})
	if err != nil {
		t.Fatal(err)
	}
	if values[0].Value != 1 || values[2].Value != 2 || values[2].Last != 2 {
		t.Errorf("got %v", values)
	}
	if want := []string{"spread 2", "spread 1", "a 1", "spread 1"}; !slices.Equal(c.taken, want) {
		t.Errorf("took %v, want %v", c.taken, want)
	}
	for _, slots := range [][]plan.Slot{{nextval("spread", 2)}, {nextval("a", 1), nextval("spread", 2)}} {
		if _, err := taker.Take(slots); !errors.As(err, new(*sequence.KindError)) {
			t.Errorf("several numbers at once: got %v", err)
		}
	}
}

// Texts are taken one by one, and refused where a number is required. tickError is the error of a
// sequence that gives at most two consecutive keys.
type tickError struct{}

func (tickError) Error() string { return "two at a time" }
func (tickError) Fits() uint64  { return 2 }

func TestWhoNeedsNoKeysInARowGetsMoreOfThem(t *testing.T) {
	taker, c := newTaker(t)
	slots := []plan.Slot{nextval("ticks", 1), nextval("ticks", 1), nextval("ticks", 1)}
	if values, err := taker.Take(slots); err != nil || values[0].Value != 1 || values[1].Value != 2 || values[2].Value != 3 {
		t.Errorf("NEXTVAL in each row gives %+v, %v", values, err)
	}
	k := plan.FilledKey{Binding: &plan.Binding{Table: "t", Column: "id", Sequence: "ticks"}, Step: 1, Filled: make([]plan.FilledRow, 3)}
	if _, err := taker.All(&Numbers{Fill: &plan.Filling{Keys: []plan.FilledKey{k}}}); !errors.Is(err, tickError{}) {
		t.Errorf("rows whose keys drivers compute from the first: got error %v", err)
	}
	taker.From(c, c, true)
	f := plan.Filling{Keys: []plan.FilledKey{k}}
	if _, err := taker.All(&Numbers{Fill: &f}); err != nil || f.Keys[0].First != 4 || f.Keys[0].Number(2) != 6 {
		t.Errorf("rows whose insert id is that of the first only: got %+v, %v", f.Keys[0], err)
	}
}

func TestTextsAreNoNumbers(t *testing.T) {
	taker, c := newTaker(t)
	for range 2 {
		values, err := taker.Take([]plan.Slot{nextval("texts", 1)})
		if want := fmt.Sprintf("T-%d", c.last["texts"]); err != nil || values[0] != (Number{Text: want}) {
			t.Errorf("got %+v, %v, want %s", values, err, want)
		}
	}
	values, err := taker.Take([]plan.Slot{nextval("texts", 1), nextval("a", 1), nextval("texts", 1)})
	if err != nil || values[0].Text != "T-3" || values[1] != (Number{Value: 1, Last: 1}) || values[2].Text != "T-4" {
		t.Errorf("got %+v, %v", values, err)
	}
	k := plan.FilledKey{Binding: &plan.Binding{Table: "t", Column: "id", Sequence: "texts", Texts: true}, Filled: make([]plan.FilledRow, 2)}
	if err := taker.key(&k); err != nil || !slices.Equal(k.Texts, []string{"T-5", "T-6"}) {
		t.Errorf("got %q, %v", k.Texts, err)
	}
	rows := &Rows{Rows: plan.Rows{Slots: []plan.Slot{nextval("texts", 1)}}}
	for what, take := range map[string]func() error{
		"a column that is bound": func() error {
			return taker.key(&plan.FilledKey{Binding: &plan.Binding{Table: "t", Column: "id", Sequence: "texts"}, Filled: make([]plan.FilledRow, 1)})
		},
		"a row":   func() error { _, err := rows.For(taker, true).Take(1); return err },
		"ahead":   func() error { _, err := taker.ahead(rows); return err },
		"LASTVAL": func() error { _, err := taker.lastOf([]byte("texts")); return err },
	} {
		var refused *protocol.ServerError
		if err := take(); !errors.As(err, &refused) || refused.Code != 1235 {
			t.Errorf("%s: got %v, want error 1235", what, err)
		}
	}
}

// LAST_INSERT_ID() is the first key of a statement that is a number.
func TestATextIsNoInsertID(t *testing.T) {
	call := func(of int) statement.FuncCall {
		return statement.FuncCall{Func: statement.Nextval, Statement: of, Place: statement.PlaceOnce}
	}
	calls := []statement.FuncCall{call(0), call(0), call(0), call(1), call(1)}
	subs := []statement.Substitution{
		{Replacement: statement.AsLastInsertID},
		{Replacement: statement.AsUnsigned},
		{Replacement: statement.AsUnsigned},
		{Replacement: statement.AsLastInsertID},
		{Replacement: statement.AsFurther},
	}
	values := []Number{{Text: "T-1"}, {Value: 2}, {Value: 3}, {Value: 4}, {Text: "T-5"}}
	Substitute(subs, calls, values, 0)
	want := []statement.Substitution{
		{Replacement: statement.AsText, Text: "T-1"},
		{Replacement: statement.AsLastInsertID, Value: 2},
		{Replacement: statement.AsUnsigned, Value: 3},
		{Replacement: statement.AsLastInsertID, Value: 4},
		{Replacement: statement.AsText, Text: "T-5"},
	}
	if !slices.Equal(subs, want) {
		t.Errorf("got %+v, want %+v", subs, want)
	}
	if err := Bind([]plan.Late{{Leader: 0, At: 1}}, subs); err == nil {
		t.Error("a key that is a text became LAST_INSERT_ID()")
	}
}
