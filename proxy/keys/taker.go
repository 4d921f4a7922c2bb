package keys

import (
	"bytes"
	"context"
	"errors"
	"slices"

	"github.com/go-mysql-org/go-mysql/mysql"

	"seqproxy/protocol"
	"seqproxy/proxy/plan"
	"seqproxy/proxy/stats"
	"seqproxy/sequence"
	"seqproxy/statement"
)

// Sequences gives numbers. *sequence.Sequences implements it.
type Sequences interface {
	// TakeRun returns n consecutive numbers, and perhaps a notice about their sequence.
	TakeRun(ctx context.Context, name []byte, n uint64) (sequence.Taken, error)
	// Consecutive returns an error if a client cannot count on from a number of a sequence, because
	// of the kind of its keys.
	Consecutive(ctx context.Context, name []byte) error
	// Step returns how far apart the numbers of a sequence are.
	Step(ctx context.Context, name []byte) (uint64, error)
	// AvoidHere takes numbers that a client chose out of memory, and reports whether that is enough.
	AvoidHere(ctx context.Context, name []byte, numbers []uint64) (enough bool, err error)
	// Avoid announces that a client will use numbers of its own choice.
	Avoid(ctx context.Context, name []byte, numbers []uint64) error
}

// Names finds sequences by their names. *sequence.Sequences implements it.
type Names interface {
	// Stored returns the name of a sequence as the table spells it, if there is one.
	Stored(ctx context.Context, name []byte) (stored string, exists bool, err error)
	// Same reports whether two names are spellings of one sequence.
	Same(ctx context.Context, a, b []byte) (bool, error)
	// Identify returns the identity of a sequence, in whichever spelling.
	Identify(ctx context.Context, name []byte) (sequence.Identity, error)
	// FormOf returns the form of a sequence's keys.
	FormOf(ctx context.Context, name []byte) (sequence.Form, error)
}

// Session is what a Taker needs of its session.
type Session interface {
	// Setval sets the next number of a sequence.
	Setval(name []byte, set *statement.SetvalArgs) (Number, error)
	// RefuseSetval returns the error for a user who may not do that.
	RefuseSetval(a *plan.Slot) error
	// MayInsert returns the server's error if the user may not give a key to rows of its table.
	MayInsert(k *plan.FilledKey) error
}

// Taker takes numbers for a session. Only the session's goroutine uses it, except for
// Patience.Interrupt.
type Taker struct {
	Patience Patience
	// Pending is the text of the warning for Notice to give; "": none.
	Pending string

	sequences Sequences
	names     Names
	session   Session
	// firstAlone says that the insert id of several filled rows is the first one's key, and says
	// nothing of the others.
	firstAlone bool
	rights     *Rights  // the user's rights; nil: all
	admin      bool     // the user may set sequences
	lasts      lasts    // the last number of each sequence
	name       []byte   // scratch: name of a sequence
	values     []Number // scratch: values of slots
}

// For makes t the taker of a session. Its waits end with ctx, and tally counts them.
func (t *Taker) For(ctx context.Context, s Session, tally *stats.Tally) {
	t.Patience.Context, t.Patience.tally, t.session = ctx, tally, s
}

// From sets the source of numbers from now on. names has the names of the same sequences.
// firstAlone says that the keys of filled rows need not be a step apart.
func (t *Taker) From(sequences Sequences, names Names, firstAlone bool) {
	t.sequences, t.names, t.firstAlone = sequences, names, firstAlone
}

// As sets the user's rights from now on.
func (t *Taker) As(rights *Rights, admin bool) { t.rights, t.admin = rights, admin }

// Forget drops the values of LASTVAL(), as the reset of a session does.
func (t *Taker) Forget() { t.lasts = nil }

// maxKept bounds the values that are in the same memory each time.
const maxKept = 16

// none returns n values, of which none is set, in the memory of the last ones.
func (t *Taker) none(n int) []Number {
	if n > maxKept {
		return make([]Number, n)
	}
	t.values = slices.Grow(t.values[:0], n)[:n]
	clear(t.values)
	return t.values
}

// Notice returns the warning that a sequence of numbers taken nears its end, once, or nil.
func (t *Taker) Notice() *protocol.ServerError {
	if t.Pending == "" {
		return nil
	}
	w := &protocol.ServerError{Code: mysql.ER_UNKNOWN_ERROR, State: protocol.StateWarning, Message: t.Pending}
	t.Pending = ""
	return w
}

// Number is the value of a slot.
type Number struct {
	Value uint64
	Last  uint64 // last number that a NEXTVAL takes
	Step  uint64 // of a block, in which the server counts from Value up to Last; else 0
	Null  bool
	// Text is the key if keys are texts, or bytes if Binary is set, else "".
	Text   string
	Binary bool
}

// takeSeveral is Take for one NEXTVAL('s', n).
func (t *Taker) takeSeveral(a *plan.Slot) (values []Number, err error) {
	if err := t.mayCount(a); err != nil {
		return nil, err
	}
	first, step, err := t.Run(a.Sequence, a.Count)
	if err != nil {
		return nil, err
	}
	values = t.none(1)
	values[0].Value, values[0].Last = first, first+(a.Count-1)*step
	return values, nil
}

// next takes one key.
func (t *Taker) next(name []byte) (Number, error) {
	got, err := t.run(name, 1)
	if err != nil {
		return Number{}, err
	}
	return Number{Value: got.First, Last: got.First, Text: got.Text, Binary: got.Binary}, nil
}

// mayCount refuses NEXTVAL('s', n) if the client cannot count on from the value.
func (t *Taker) mayCount(a *plan.Slot) error {
	if a.Count == 1 {
		return nil
	}
	return t.Patience.Over(t.sequences.Consecutive(&t.Patience, a.Sequence))
}

// Take returns the values of asks, in order. The numbers of one sequence are consecutive, in
// whichever spelling. The caller has checked the user's rights. The result is valid until the next
// Take.
func (t *Taker) Take(asks []plan.Slot) (values []Number, err error) {
	if len(asks) == 1 && asks[0].Func == statement.Nextval && asks[0].Takes() { // the usual case
		if asks[0].Count != 1 {
			return t.takeSeveral(&asks[0])
		}
		values = t.none(1)
		values[0], err = t.next(asks[0].Sequence)
		return values, err
	}
	last := false
	for i := range asks {
		if !asks[i].Takes() {
			continue
		}
		if asks[i].Func == statement.Setval {
			return t.takeInOrder(asks)
		}
		last = last || asks[i].Func == statement.Lastval
	}
	if !last {
		return t.takeNext(asks)
	}
	before, err := t.lastBefore(asks)
	if err != nil {
		return nil, err
	}
	if values, err = t.takeNext(asks); err != nil {
		return nil, err
	}
	return values, t.fillLast(asks, values, before)
}

// calls are the NEXTVALs of one sequence in a text.
type calls struct {
	name  []byte
	total uint64 // numbers that they take together
	asked bool   // the numbers have been asked for
	// the next number, of those a step apart; a step of 0: they are taken one by one
	next, step uint64
}

// takeNext takes the numbers for NEXTVALs.
func (t *Taker) takeNext(asks []plan.Slot) (values []Number, err error) {
	of := make([]int, len(asks)) // by slot, an index of all; a few need no memory
	all, err := t.bySequence(asks, of, make([]calls, 0, 4))
	if err != nil {
		return nil, err
	}
	values = t.none(len(asks))
	for i := range asks {
		if !isNextval(&asks[i]) {
			continue
		}
		if values[i], err = t.takeOf(&all[of[i]], asks[i].Count); err != nil {
			return nil, err
		}
	}
	return values, nil
}

// isNextval reports whether a slot takes numbers of NEXTVAL.
func isNextval(a *plan.Slot) bool { return a.Takes() && a.Func == statement.Nextval }

// bySequence adds to all the sequences of NEXTVALs, each once in whichever spelling, and sets of to
// which of them each slot belongs to. A text may have very many calls, so the time that it takes
// must not grow faster than they do.
func (t *Taker) bySequence(asks []plan.Slot, of []int, all []calls) ([]calls, error) {
	index := make(map[string]int) // by the table's spelling
	at, before := 0, []byte(nil)
	for i := range asks {
		a := &asks[i]
		if !isNextval(a) {
			continue
		}
		if err := t.mayCount(a); err != nil {
			return nil, err
		}
		if len(all) == 0 {
			all = append(all, calls{name: a.Sequence})
		} else if !bytes.Equal(a.Sequence, before) {
			// Most texts have one name, and never come here.
			if len(index) == 0 {
				first, err := t.spelling(before)
				if err != nil {
					return nil, err
				}
				index[first] = 0
			}
			stored, err := t.spelling(a.Sequence)
			if err != nil {
				return nil, err
			}
			known := false
			if at, known = index[stored]; !known {
				at = len(all)
				index[stored] = at
				all = append(all, calls{name: a.Sequence})
			}
		}
		before, of[i] = a.Sequence, at
		all[at].total += a.Count
	}
	return all, nil
}

// spelling returns how the table spells a sequence, or the name itself if there is none.
func (t *Taker) spelling(name []byte) (string, error) {
	stored, exists, err := t.names.Stored(&t.Patience, name)
	if err = t.Patience.Over(err); err == nil && !exists {
		stored = string(name)
	}
	return stored, err
}

// takeOf takes the numbers of one of the calls.
func (t *Taker) takeOf(c *calls, count uint64) (n Number, err error) {
	if c.total > 1 && !c.asked {
		c.asked = true
		c.next, c.step, err = t.Run(c.name, c.total)
		if err != nil { // what looks for a kind of error takes memory
			if !errors.As(err, new(*sequence.KindError)) && !errors.As(err, new(fits)) {
				return n, err
			}
			c.step = 0 // such a sequence gives its keys only one by one
		}
	}
	if c.step == 0 {
		return t.next(c.name)
	}
	n = Number{Value: c.next, Last: c.next + (count-1)*c.step}
	c.next += count * c.step
	return n, nil
}

// fits is the error of a sequence that has too few consecutive keys, but any number of single ones.
type fits interface{ Fits() uint64 }

// takeInOrder is Take for a text with SETVAL, which changes the values of later calls.
func (t *Taker) takeInOrder(asks []plan.Slot) (values []Number, err error) {
	values = t.none(len(asks))
	for i := range asks {
		if !asks[i].Takes() {
			continue
		}
		switch asks[i].Func {
		case statement.Nextval:
			switch err = t.mayCount(&asks[i]); {
			case err != nil:
			case asks[i].Count == 1:
				values[i], err = t.next(asks[i].Sequence)
			default:
				values[i].Value, err = t.first(asks[i].Sequence, asks[i].Count)
			}
		case statement.Lastval:
			values[i], err = t.lastOf(asks[i].Sequence)
		default:
			values[i], err = t.session.Setval(asks[i].Sequence, asks[i].Set)
		}
		if err != nil {
			return nil, err
		}
	}
	return values, nil
}

// first takes n numbers of a sequence, in its steps, and returns the first of them.
func (t *Taker) first(name []byte, n uint64) (first uint64, err error) {
	first, _, err = t.Run(name, n)
	return first, err
}

// Run takes n numbers of a sequence, in its steps. The last of them becomes LASTVAL(). As with
// MariaDB, that is NULL after the sequence ran out. Run refuses texts.
func (t *Taker) Run(name []byte, n uint64) (first, step uint64, err error) {
	got, err := t.run(name, n)
	if err == nil && got.Text != "" {
		err = protocol.NotSupported("a key of sequence %s, whose keys are texts, is not supported where a number is wanted: write NEXTVAL for the value itself, "+
			"and have a column filled by OWNED BY", name)
	}
	return got.First, got.Step, err
}

// run is Run for all kinds of keys.
func (t *Taker) run(name []byte, n uint64) (got sequence.Taken, err error) {
	got, err = t.sequences.TakeRun(&t.Patience, name, n)
	if got.Notice != "" {
		t.Pending = got.Notice
	}
	if err = t.Patience.Over(err); err != nil {
		if errors.Is(err, sequence.ErrExhausted) {
			t.lasts.forget(got.Of)
		}
		return got, err
	}
	if got.Text == "" {
		t.lasts.took(got.Of, got.First+(n-1)*got.Step)
	}
	return got, nil
}

// lastOf returns LASTVAL() of a sequence.
func (t *Taker) lastOf(name []byte) (Number, error) {
	form, err := t.names.FormOf(&t.Patience, name)
	if err = t.Patience.Over(err); err != nil {
		return Number{}, err
	}
	if form != sequence.Numbers {
		return Number{}, protocol.NotSupported("LASTVAL of sequence %s, whose keys are texts, is not supported: keep the key that NEXTVAL gave", name)
	}
	of, err := t.names.Identify(&t.Patience, name)
	if err = t.Patience.Over(err); err != nil {
		return Number{}, err
	}
	return t.lasts.get(of), nil
}

// lastBefore returns the values of the LASTVALs as if they came before the text.
func (t *Taker) lastBefore(asks []plan.Slot) ([]Number, error) {
	before := make([]Number, len(asks))
	for i := range asks {
		if !asks[i].Takes() || asks[i].Func != statement.Lastval {
			continue
		}
		var err error
		if before[i], err = t.lastOf(asks[i].Sequence); err != nil {
			return nil, err
		}
	}
	return before, nil
}

// fillLast sets the values of LASTVALs. Each sees the numbers before it in the text.
func (t *Taker) fillLast(asks []plan.Slot, values, before []Number) error {
	seen := make(map[sequence.Identity]uint64)
	for i := range asks {
		if !asks[i].Takes() {
			continue
		}
		of, err := t.names.Identify(&t.Patience, asks[i].Sequence)
		if err = t.Patience.Over(err); err != nil {
			return err
		}
		if asks[i].Func == statement.Nextval {
			seen[of] = values[i].Last
			continue
		}
		if values[i] = before[i]; seen[of] != 0 {
			values[i] = Number{Value: seen[of]}
		}
	}
	return nil
}

// All takes the numbers that a statement needs before it is sent. It returns the values of the
// slots, and sets n.InsertID. It puts the numbers of keys into n.Fill, and those of the first row
// into n.Rows. With a block it begins the block, which is then the value of each slot.
func (t *Taker) All(n *Numbers) (values []Number, err error) {
	if n.Block != nil {
		return t.counted(n)
	}
	if values, err = t.Take(n.Slots); err != nil {
		return nil, err
	}
	n.InsertID = 0
	for i := range n.Slots {
		if n.Slots[i].InsertID && values[i].Text == "" {
			n.InsertID = values[i].Value
			break
		}
	}
	if n.Rows != nil && n.Rows.Lead >= 0 {
		values = slices.Clone(values) // ahead takes others
		if values[n.Rows.Lead].Value, err = t.ahead(n.Rows); err != nil {
			return nil, err
		}
	}
	if n.Fill == nil {
		return values, nil
	}
	for i := range n.Fill.Keys {
		if err = t.key(&n.Fill.Keys[i]); err != nil {
			return nil, err
		}
	}
	return values, nil
}

// counted is All for a server that counts.
func (t *Taker) counted(n *Numbers) ([]Number, error) {
	if err := t.block(n.Block); err != nil {
		return nil, err
	}
	values := t.none(len(n.Slots))
	for i := range values {
		if n.Slots[i].When == plan.Counted {
			values[i] = n.Block.number()
		}
	}
	return values, nil
}

// MayTakeAll checks the user's rights for a statement that was planned earlier: rights may have
// changed since, and parameters may name the sequences. The first row that gets numbers checks the
// rights for rows.
func (t *Taker) MayTakeAll(n *Numbers) error {
	if err := t.MayTake(n.Slots); err != nil {
		return err
	}
	switch {
	case n.Block != nil:
		return t.MayUse(n.Block.Sequence)
	case n.Rows != nil && n.Rows.Lead >= 0:
		return t.MayTake(n.Rows.Slots)
	}
	return nil
}
