package admin

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strconv"
	"time"

	"github.com/go-mysql-org/go-mysql/mysql"

	"seqproxy/protocol"
	"seqproxy/proxy"
	"seqproxy/sequence"
	"seqproxy/sequence/kind"
	"seqproxy/statement/ddl"
)

// kindLength is the length of the column in the table of options.
const kindLength = kind.MaxClause

// kindOf returns the kind of keys that a CREATE SEQUENCE asks for.
func kindOf(name string, asked *ddl.Sequence) (k kind.Kind, err error) {
	jsonSafe := asked.JSONSafe == ddl.Yes
	switch asked.Kind.Word {
	case "":
		if asked.Kind.SkipTo.Given {
			return k, wrongKind(name, "SKIP RANGE goes with BIT_REVERSED and ROTATE; others begin above the keys that are there")
		}
		return k, nil
	case "BIT_REVERSED":
		k = kind.NewBitReversed(jsonSafe)
	case "ROTATE":
		k, err = kind.NewRotate(asked.Kind.N.Value, asked.Kind.Digits.Value, jsonSafe)
	case "SHARD BITS":
		k, err = kind.NewShardBits(asked.Kind.N.Value, jsonSafe)
	case "FORMAT":
		k, err = formattedOf(&asked.Kind)
	case "UUID":
		version := uint64(7)
		if asked.Kind.N.Given {
			version = asked.Kind.N.Value
		}
		k, err = kind.NewUUID(version, asked.Kind.Binary)
	case "SNOWFLAKE":
		k, err = snowflakeOf(&asked.Kind, jsonSafe)
	default:
		return k, notSupported(asked.Kind.Word)
	}
	switch {
	case err != nil:
	case k.IsText() && asked.TypeMax != 0:
		err = errors.New("AS goes with keys that are numbers, and these are texts: leave it out")
	case !k.Counts():
		err = uncounted(asked)
	}
	if err == nil && asked.Kind.SkipTo.Given {
		k, err = k.Skip(asked.Kind.SkipFrom.Value, asked.Kind.SkipTo.Value)
	}
	if err != nil {
		return k, wrongKind(name, "%v", err)
	}
	if asked.TypeMax != 0 && k.MaxKey() > asked.TypeMax {
		return k, wrongKind(name, "its keys go up to %d, and the type behind AS holds up to %d", k.MaxKey(), asked.TypeMax)
	}
	return k, nil
}

// uncounted refuses a counter's options, for a kind without a counter. Those that SHOW CREATE
// SEQUENCE prints are let pass.
func uncounted(asked *ddl.Sequence) error {
	for _, o := range [...]struct {
		name string
		n    ddl.Number
	}{{"START", asked.Start}, {"MINVALUE", asked.Min}, {"MAXVALUE", asked.Max}, {"CACHE", asked.Cache}, {"OUTAGE_COVER", asked.Cover}} {
		if o.n.Given && (o.n.Value != 1 || o.name != "START" && o.name != "MINVALUE") {
			return fmt.Errorf("%s %d says something of a counter, and UUIDs are of none: leave it out", o.name, o.n.Value)
		}
	}
	return nil
}

// formattedOf returns the kind that FORMAT and its options ask for.
func formattedOf(asked *ddl.Kind) (k kind.Kind, err error) {
	o := kind.FormatOptions{TimeZone: string(asked.Zone), Widen: asked.Widen}
	if asked.Reset != "" {
		if o.Reset, err = kind.ParseReset(asked.Reset); err != nil {
			return k, err
		}
	}
	return kind.NewFormatted(string(asked.Format), o)
}

// snowflakeOf returns the kind that the options of SNOWFLAKE ask for.
func snowflakeOf(asked *ddl.Kind, jsonSafe bool) (k kind.Kind, err error) {
	l := kind.DefaultLayout()
	if asked.Epoch != nil {
		if l.Epoch, err = kind.ParseEpoch(string(asked.Epoch)); err != nil {
			return k, err
		}
	}
	if asked.Tick != nil {
		if l.Tick, err = kind.ParseTick(string(asked.Tick)); err != nil {
			return k, err
		}
	}
	for _, bits := range [...]struct {
		given ddl.Number
		to    *uint64
	}{{asked.TimeBits, &l.TimeBits}, {asked.WorkerBits, &l.WorkerBits}, {asked.CounterBits, &l.CounterBits}} {
		if bits.given.Given {
			*bits.to = bits.given.Value
		}
	}
	if k, err = kind.NewSnowflake(l, jsonSafe); err != nil {
		return k, err
	}
	switch now := time.Now(); {
	case !l.Epoch.Before(now.Add(-l.Tick)):
		return k, fmt.Errorf("EPOCH '%s': want a time that has passed", asked.Epoch)
	case k.TickAt(now.UnixNano()) >= k.MaxCounter():
		return k, fmt.Errorf("TIME BITS %d: those of ticks of %v since %s ended at %s: want more bits, longer ticks or a later EPOCH",
			l.TimeBits, l.Tick, l.Epoch.Format(time.DateOnly), k.TimeOf(k.MaxCounter()).Format(time.DateOnly))
	}
	return k, nil
}

// wrongKind is the error for an impossible kind of keys.
func wrongKind(name, format string, args ...any) error {
	return protocol.Errorf(mysql.ER_WRONG_ARGUMENTS, "HY000", "seqproxy: sequence '%s': %s", name, fmt.Sprintf(format, args...))
}

// wrongColumn is the error for a column that cannot store keys of a kind.
func wrongColumn(c sequence.Column, format string, args ...any) error {
	return protocol.Errorf(mysql.ER_WRONG_ARGUMENTS, "HY000", "seqproxy: column '%s': %s", c, fmt.Sprintf(format, args...))
}

// ends returns the highest number of a sequence whose keys the column stores. That is not the last
// one that it can store: a client may use that as a sentinel, which would end the sequence. It
// returns 0 if only keys are stored and all keys of the kind fit.
func (o *owned) ends(k kind.Kind) uint64 {
	if !k.IsPlain() {
		return 0
	}
	return o.limit - 1
}

// foreign reports whether a column has keys that a sequence, which stands at last, never gave.
func (o *owned) foreign(k kind.Kind, last uint64) bool { return o.floor > k.LastOwn(last) }

// allOwn refuses a column with foreign keys, for a sequence that exists already.
func (o *owned) allOwn(c sequence.Column, k kind.Kind, last uint64) error {
	if !o.foreign(k, last) {
		return nil
	}
	return wrongColumn(c, "it has keys that are not of kind %v: %s, and at %d the sequence ends: DELETE the row if it is an odd one, or "+
		"CREATE a SEQUENCE of another name OWNED BY the column, which passes over them", k, o.where, k.MaxCounter())
}

// mostAhead is how far ahead the clock of a machine may be that gave keys with the time in them.
const mostAhead = time.Hour

// early refuses keys of SNOWFLAKE that are of a time to come: the sequence would wait for it.
func (o *owned) early(c sequence.Column, k kind.Kind) error {
	if !k.HasClock() || k.TimeOf(o.floor).Before(time.Now().Add(mostAhead)) {
		return nil
	}
	return wrongColumn(c, "%s, which would be of %s, and there would be no key before: CREATE a SEQUENCE with the EPOCH that those keys have, or DELETE the row if it is an odd one",
		o.where, k.TimeOf(o.floor).Format(kind.TimeLayout))
}

// uncompared returns a warning about keys that are in a column already, or "" for a kind whose keys
// are compared with its counter. Servers show the first 128 bytes of it.
func uncompared(c sequence.Column, k kind.Kind) string {
	period := ""
	switch {
	case k.Resets():
		period = " in this period"
	case !k.IsText() || !k.Counts():
		return ""
	}
	return fmt.Sprintf("the keys in %s are not compared: if there are some, say RESTART WITH n, with n above their counters%s", c, period)
}

// readNewlyOwned is readOwned for a new sequence of kind k. If the column has keys of another kind,
// the returned kind skips them, so that they do not come again.
func readNewlyOwned(ctx context.Context, by proxy.Caller, c sequence.Column, k kind.Kind, end uint64) (owned, kind.Kind, error) {
	o, err := readOwned(ctx, by, c, k, end)
	if err != nil || !o.foreign(k, 0) {
		return o, k, err
	}
	plain, err := readOwned(ctx, by, c, kind.Kind{}, math.MaxUint64)
	if err != nil {
		return o, k, err
	}
	if n := k.Name(); n != kind.BitReversed && n != kind.Rotate {
		return o, k, wrongColumn(c, "it has keys up to %d that are not of kind %v, and above them the sequence would end soon, at %d: want BIT_REVERSED or ROTATE, which pass over keys that are there",
			plain.floor, k, k.MaxKey())
	}
	skips, err := k.Skip(1, plain.floor)
	if err == nil {
		if o, err = readOwned(ctx, by, c, skips, end); err != nil {
			return o, k, err
		}
		if o.foreign(skips, 0) { // such keys are still being written
			err = fmt.Errorf("the counter of another key would be %d, and at %d the sequence ends", o.floor, k.MaxCounter())
		}
	}
	if err != nil {
		return o, k, wrongColumn(c, "it has keys up to %d that are not of kind %v: %v; if a sequence that was dropped has given them, write the SKIP RANGE that it had", plain.floor, k, err)
	}
	o.skipped, o.where = plain.floor, plain.where
	return o, skips, nil
}

// decodeColumns are the columns of SELECT SEQUENCE_DECODE.
var decodeColumns = []protocol.Column{
	number("counter", 0),
	number("shard", 0),
	text("time", 32, mysql.MYSQL_TYPE_VAR_STRING, 0),
	text("kind", kindLength, mysql.MYSQL_TYPE_VAR_STRING, 0),
	number("worker", 0),
	text("period", 8, mysql.MYSQL_TYPE_VAR_STRING, 0),
}

// decode answers with the parts of a sequence's key, or NULL if the number is none of its keys. The
// time is a UUID's, in UTC, or the parts of a date one after the other.
func (s *Sequences) decode(ctx context.Context, asked *ddl.Sequence, by proxy.Caller) (*protocol.Table, error) {
	name := asked.Names[0]
	d, err := s.seen(ctx, name, by)
	if err != nil {
		return nil, err
	}
	row := []any{nil, nil, nil, kindShown(d.Kind), nil, nil}
	if d.Kind.Resets() {
		key := string(asked.KeyText)
		if asked.KeyText == nil {
			key = strconv.FormatUint(asked.Key, 10)
		}
		if is, ok := d.Kind.PeriodOf(key); ok {
			row[5] = d.Kind.PeriodName(is)
		}
	}
	if d.Kind.IsText() {
		if counter, date, ok := d.Kind.Origin(string(asked.KeyText)); ok {
			if d.Kind.Counts() {
				row[0] = counter
			}
			if date != "" {
				row[2] = date
			}
		}
		return &protocol.Table{Columns: decodeColumns, Rows: [][]any{row}}, nil
	}
	if asked.KeyText != nil {
		var err error
		if asked.Key, err = strconv.ParseUint(string(asked.KeyText), 10, 64); err != nil {
			return &protocol.Table{Columns: decodeColumns, Rows: [][]any{row}}, nil
		}
	}
	counter, shard, ok := d.Kind.Counter(asked.Key)
	switch {
	case !ok:
	case d.Kind.HasClock():
		tick, worker, n := d.Kind.Decompose(asked.Key)
		row[0], row[2], row[4] = n, d.Kind.TimeOf(tick).Format(kind.TimeLayout), worker
	default:
		row[0] = counter
		if d.Kind.Name() == kind.ShardBits {
			row[1] = shard
		}
	}
	return &protocol.Table{Columns: decodeColumns, Rows: [][]any{row}}, nil
}
