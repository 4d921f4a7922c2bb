package admin

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/go-mysql-org/go-mysql/mysql"

	"seqproxy/backend"
	"seqproxy/protocol"
	"seqproxy/proxy"
	"seqproxy/sequence"
	"seqproxy/sequence/kind"
	"seqproxy/statement"
)

// owned is the state of the column that owns a sequence, over all shards.
type owned struct {
	floor uint64 // the greatest key on any shard
	limit uint64 // the smallest limit of the column on any shard
	where string // where the greatest key is, for messages

	skipped uint64 // keys of another kind, never given, end here; 0: none
}

// readOwned reads the column that will own a sequence, on all shards. end is the sequence's end. A
// key beyond it does not belong to the sequence, and hides no key below it.
func readOwned(ctx context.Context, by proxy.Caller, c sequence.Column, k kind.Kind, end uint64) (owned, error) {
	o, err := readUpTo(ctx, by, c, k, math.MaxUint64)
	if last := o.ends(k); last != 0 {
		end = min(end, last)
	}
	if err == nil && o.floor > end {
		return readUpTo(ctx, by, c, k, end)
	}
	return o, err
}

// readUpTo is readOwned of the keys up to end. A shard that cannot answer is an error, since it may
// have the greatest key.
func readUpTo(ctx context.Context, by proxy.Caller, c sequence.Column, k kind.Kind, end uint64) (owned, error) {
	o := owned{limit: math.MaxUint64}
	found := highest(ctx, by, c, k, end)
	if len(found) == 0 {
		return o, protocol.Errorf(mysql.ER_BAD_FIELD_ERROR, "42S22", "Unknown column '%s': no shard has it, or the user may not see it", c)
	}
	for _, h := range found {
		if h.Err != nil {
			return o, fmt.Errorf("the greatest %s is not known, so the sequence is left as it was: %s", c, problemOf(h))
		}
		if k.IsText() {
			if err := k.Fits(h.Type); err != nil {
				return o, wrongColumn(c, "shard %s, table %s: %v", h.Shard, h.Table, err)
			}
			continue
		}
		if h.Limit == 0 {
			return o, wrongKind(c.String(), "shard %s, table %s: this column is of the type %s, which is no integer", h.Shard, h.Table, h.Type)
		}
		if h.Value > o.floor {
			o.floor, o.where = h.Value, fmt.Sprintf("shard %s has %s %d in %s", h.Shard, keysUpTo(k), h.Value, h.Table)
		}
		if k.IsPlain() && end == math.MaxUint64 && h.Given > o.floor {
			o.floor, o.where = h.Given, fmt.Sprintf("shard %s gave keys up to %d in %s, by AUTO_INCREMENT", h.Shard, h.Given, h.Table)
		}
		o.limit = min(o.limit, h.Limit)
	}
	if !k.IsPlain() && !k.IsText() && o.limit < k.MaxKey() {
		return o, wrongColumn(c, "it holds numbers up to %d, and keys of kind %v go up to %d: make it wider", o.limit, k, k.MaxKey())
	}
	return o, o.early(c, k)
}

// atEnd refuses a key that is the last number of a sequence, up to end: the sequence would give
// none above it.
func (o *owned) atEnd(c sequence.Column, k kind.Kind, end uint64) error {
	if last := o.ends(k); last != 0 {
		end = min(end, last)
	}
	if o.floor < end {
		return nil
	}
	return wrongColumn(c, "%s, the last number of the sequence: DELETE that row, or add MAXVALUE %d", o.where, end-1)
}

// highest reads the greatest key, or counter, up to end on each shard. For keys that are not
// compared, such as texts, it reads only the column's type.
func highest(ctx context.Context, by proxy.Caller, c sequence.Column, k kind.Kind, end uint64) []backend.Highest {
	of := backend.Expression(k.CounterSQL)
	if end != math.MaxUint64 {
		of = func(column string) (number, condition string) {
			if number, condition = k.CounterSQL(column); number == "" {
				return column, fmt.Sprintf("%s <= %d", column, end)
			}
			return number, fmt.Sprintf("%s AND (%s) <= %d", condition, number, end)
		}
	}
	if k.IsText() || k.Resets() {
		of = nil
	}
	return by.Highest(ctx, c.Schema, c.Table, c.Column, of)
}

// endsBelow reports whether a sequence that has numbers left, and goes on above key, has none then.
// One odd row, such as a sentinel, would end it for good.
func endsBelow(d *sequence.Definition, at *sequence.State, key uint64) bool {
	return at.After != 0 && !d.Cycle && key >= at.Limit-(at.Limit-at.After)%max(d.Increment, 1)
}

// compared reads the keys to compare a sequence with. For a key at its end or beyond, it also reads
// the greatest one below.
func compared(ctx context.Context, by proxy.Caller, d *sequence.Definition, at *sequence.State) []backend.Highest {
	end := at.Limit
	if endsBelow(d, at, end) {
		end -= (end-at.After)%max(d.Increment, 1) + 1
	}
	end = min(end, d.Kind.LastOwn(at.Last)) // sayHighest takes others for foreign
	all := highest(ctx, by, d.OwnedBy, d.Kind, math.MaxUint64)
	var beyond []backend.Highest
	for _, h := range all {
		if h.Value > end {
			beyond = append(beyond, h)
		}
	}
	if beyond == nil {
		return all
	}
	return append(beyond, highest(ctx, by, d.OwnedBy, d.Kind, end)...)
}

// keysUpTo names the greatest number in a message: the counters of keys, for a kind of keys.
func keysUpTo(k kind.Kind) string {
	if k.IsPlain() {
		return "keys up to"
	}
	return "keys whose counters go up to"
}

func problemOf(h backend.Highest) string {
	if h.Table == "" {
		return h.Err.Error()
	}
	return fmt.Sprintf("shard %s, table %s: %v", h.Shard, h.Table, h.Err)
}

// checkColumns are the columns of CHECK TABLE.
var checkColumns = []protocol.Column{
	text("Table", 128, mysql.MYSQL_TYPE_VAR_STRING, 0),
	text("Op", 10, mysql.MYSQL_TYPE_VAR_STRING, 0),
	text("Msg_type", 10, mysql.MYSQL_TYPE_VAR_STRING, 0),
	text("Msg_text", 384*1024, mysql.MYSQL_TYPE_MEDIUM_BLOB, 0),
}

// checked is the answer to CHECK and REPAIR, with rows like those of CHECK TABLE.
type checked struct {
	t        *protocol.Table
	name, op string
	failed   bool
}

func (c *checked) say(kind, format string, args ...any) {
	c.failed = c.failed || kind == "Error"
	c.t.Rows = append(c.t.Rows, []any{c.name, c.op, kind, fmt.Sprintf(format, args...)})
}

// check compares sequences with the columns that own them, on every shard. A REPAIR raises the
// sequences that are behind.
func (s *Sequences) check(ctx context.Context, st *statement.Statement, by proxy.Caller) (*protocol.Table, error) {
	t, repair := &protocol.Table{Columns: checkColumns}, st.Kind == statement.RepairSequence
	for _, name := range st.Sequence.Names {
		c := &checked{t: t, name: string(name), op: "check"}
		if repair {
			c.op = "repair"
		}
		err := s.checkOne(ctx, c, name, by, repair)
		if repair {
			by.Audit(describeOne(st, name), err)
		}
		if err != nil {
			return nil, err
		}
	}
	return t, nil
}

func (s *Sequences) checkOne(ctx context.Context, c *checked, name []byte, by proxy.Caller, repair bool) error {
	d, before, err := s.sequences.Describe(ctx, name)
	if errors.Is(err, sequence.ErrUnknown) {
		c.say("Error", "Unknown SEQUENCE: '%s'", name)
		c.say("status", "Operation failed")
		return nil
	}
	if err != nil {
		return err
	}
	c.name = d.Name
	if d.OwnedBy.IsZero() {
		c.say("note", "no column owns the sequence: ALTER SEQUENCE %s OWNED BY table.column names one", quoteName(d.Name))
		c.say("status", "OK")
		return nil
	}
	if d.Kind.HasClock() {
		c.say("note", "its keys have the time when they were given, and no counter that could be behind those of the column")
		c.say("status", "OK")
		return nil
	}
	found := compared(ctx, by, &d, &before)
	// Read the counter only now, after the keys: numbers given in between are below it.
	_, state, err := s.sequences.Describe(ctx, name)
	if err != nil {
		return err
	}
	if len(found) == 0 {
		c.say("Error", "no shard has a column %s, or the user may not see it", d.OwnedBy)
	}
	var floor uint64
	for i, h := range found {
		again := slices.ContainsFunc(found[:i], func(o backend.Highest) bool { return o.Shard == h.Shard && o.Table == h.Table })
		if most := narrower(&h, &d, &state); most != 0 && !again {
			c.say("Error", "shard %s, table %s: the column is of the type %s, and keys go up to %d: make it wider", h.Shard, h.Table, h.Type, most)
		}
		floor = max(floor, c.sayHighest(&h, &d, &state, repair))
		if !again {
			floor = max(floor, c.sayGiven(&h, &d, &state, repair))
		}
	}
	if repair && floor > 0 && !d.Cycle {
		// This runs even if the counter is above the keys. A proxy may have numbers in memory that
		// were used elsewhere, and drops them now.
		raised, err := s.sequences.Raise(ctx, name, floor)
		if err != nil {
			return err
		}
		if raised {
			c.say("info", "raised from %d to %d", state.Last, floor)
		}
	}
	switch {
	case !c.failed:
		c.say("status", "OK")
	case repair:
		c.say("status", "Operation failed")
	default:
		c.say("error", "Corrupt")
	}
	return nil
}

// sayGiven writes a row if AUTO_INCREMENT of a shard gave keys above the counter, whose rows are
// gone. It returns the last of them if a repair raises the counter above it, or 0.
func (c *checked) sayGiven(h *backend.Highest, d *sequence.Definition, state *sequence.State, repair bool) (floor uint64) {
	switch {
	case !d.Kind.IsPlain() || d.Cycle || h.Given <= state.Last || h.Given > state.Limit || endsBelow(d, state, h.Given):
		return 0
	case repair:
		c.say("note", "shard %s: AUTO_INCREMENT of %s gave keys up to %d, above the counter, which stood at %d", h.Shard, h.Table, h.Given, state.Last)
		return h.Given
	}
	c.say("warning", "shard %s: AUTO_INCREMENT of %s gave keys up to %d, above the counter, which stands at %d: those of deleted rows would be given again. "+
		"REPAIR SEQUENCE %s raises it", h.Shard, h.Table, h.Given, state.Last, quoteName(d.Name))
	return 0
}

// narrower returns the greatest key of a sequence if the column of a shard cannot store it, or 0.
func narrower(h *backend.Highest, d *sequence.Definition, at *sequence.State) uint64 {
	most := at.Limit
	switch {
	case h.Err != nil || d.Kind.IsText():
		return 0
	case !d.Kind.IsPlain():
		most = d.Kind.MaxKey()
	}
	if h.Limit >= most {
		return 0
	}
	return most
}

// sayHighest writes the row of a shard: how the greatest key of the column stands to the counter.
// It returns the key if a repair raises the counter above it, or 0.
func (c *checked) sayHighest(h *backend.Highest, d *sequence.Definition, state *sequence.State, repair bool) (floor uint64) {
	goesUp := "goes up to"
	if !d.Kind.IsPlain() {
		goesUp = "has keys whose counters go up to"
	}
	switch {
	case h.Err != nil:
		c.say("Error", "%s", problemOf(*h))
	case d.Kind.IsText():
		if err := d.Kind.Fits(h.Type); err != nil {
			c.say("Error", "shard %s, table %s: %v", h.Shard, h.Table, err)
			return 0
		}
		c.say("note", "shard %s: the keys in %s.%s are texts, which are not compared with the counter", h.Shard, h.Table, d.OwnedBy.Column)
	case d.Kind.Resets():
		c.say("note", "shard %s: the keys in %s.%s are not compared with the counter, which begins again", h.Shard, h.Table, d.OwnedBy.Column)
	case h.Value > d.Kind.LastOwn(state.Last):
		c.say("note", "shard %s: %s.%s has a key whose counter would be %d: the sequence hardly gave that key, and would end above it; if it gave the key, as before a restore, RESTART the sequence above it",
			h.Shard, h.Table, d.OwnedBy.Column, h.Value)
	case h.Value <= state.Limit && endsBelow(d, state, h.Value):
		c.say("Error", "shard %s: %s.%s %s %d, the last number of the sequence: DELETE that row, or ALTER SEQUENCE %s MAXVALUE %d",
			h.Shard, h.Table, d.OwnedBy.Column, goesUp, h.Value, quoteName(d.Name), h.Value-1)
	case h.Value > state.Limit:
		c.say("note", "shard %s: %s.%s %s %d, beyond the end of the sequence, %d", h.Shard, h.Table, d.OwnedBy.Column, goesUp, h.Value, state.Limit)
	case h.Value <= state.Last || d.Cycle:
		c.say("note", "shard %s: %s.%s %s %d", h.Shard, h.Table, d.OwnedBy.Column, goesUp, h.Value)
		return h.Value
	case repair:
		c.say("note", "shard %s: %s.%s %s %d, above the counter, which stood at %d", h.Shard, h.Table, d.OwnedBy.Column, goesUp, h.Value, state.Last)
		return h.Value
	default:
		c.say("Error", "shard %s: %s.%s %s %d, above the counter, which stands at %d: those keys would be given again. REPAIR SEQUENCE %s raises it",
			h.Shard, h.Table, d.OwnedBy.Column, goesUp, h.Value, state.Last, quoteName(d.Name))
	}
	return 0
}
