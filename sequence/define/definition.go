package define

import (
	"fmt"
	"time"

	"seqproxy/sequence/kind"
)

// Definition is what CREATE and ALTER SEQUENCE say about a sequence.
type Definition struct {
	Name string // as the table spells it, without the suffix of a counter
	// Says which keys are made of the numbers, which are counters. It never changes.
	Kind      kind.Kind
	Increment uint64 // the distance between numbers, at least 1
	Min       uint64 // CYCLE restarts here; at least 1
	// No number is above it; 0: the end of the id column, or 2^53-1 if JSONSafe.
	Max   uint64
	Start uint64 // the first number, and that of RESTART without one
	// Unused numbers in the memory of a proxy, at most, up to 10^12; 1 is NOCACHE; 0 is adaptive.
	Cache    uint64
	Cycle    bool   // restarts at Min after Max: numbers repeat
	Comment  string // at most 2048 characters
	OwnedBy  Column // the column that the numbers are keys of, if any
	OwnerMax uint64 // the highest number that OwnedBy holds; 0: unknown
	// Numbers rise in the order of time over all proxies, and none is cached. Cache stays for the
	// time after NOORDER.
	Order bool
	// Programs keep the numbers in floating point, as JavaScript does: they end at 2^53-1.
	JSONSafe bool
	// How many seconds the cached numbers should last, up to a week, if Cache is adaptive; 0: as
	// configured.
	Cover uint64
}

// Column names a column.
type Column struct{ Schema, Table, Column string }

// IsZero reports whether c names no column.
func (c Column) IsZero() bool { return c == Column{} }

// String is "schema.table.column", or "table.column" without a schema.
func (c Column) String() string {
	switch {
	case c.IsZero():
		return ""
	case c.Schema == "":
		return c.Table + "." + c.Column
	}
	return c.Schema + "." + c.Table + "." + c.Column
}

// Quoted is c as a statement names it.
func (c Column) Quoted() string {
	name := Quote(c.Table) + "." + Quote(c.Column)
	if c.Schema != "" {
		name = Quote(c.Schema) + "." + name
	}
	return name
}

// maxJSON is the highest number that a double holds together with all below it,
// Number.MAX_SAFE_INTEGER.
const maxJSON = 1<<53 - 1

// Bounds of the texts of a definition, in characters.
const (
	maxComment = 2048
	MaxCache   = 1_000_000_000_000 // keeps one typing error from using up a sequence
	maxCover   = 7 * 24 * 3600
)

// Filled returns d with defaults in place of zeros.
func (d Definition) Filled() Definition {
	d.Increment, d.Min = max(d.Increment, 1), max(d.Min, 1)
	if d.Start == 0 {
		d.Start = d.Min
	}
	return d
}

// Limit returns the highest number that d allows in an id column that holds up to columnMax.
func (d *Definition) Limit(columnMax uint64) uint64 {
	highest := columnMax
	if d.Max != 0 {
		highest = min(highest, d.Max)
	}
	if d.OwnerMax != 0 {
		highest = min(highest, d.OwnerMax)
	}
	if d.JSONSafe {
		highest = min(highest, maxJSON)
	}
	return min(highest, d.Kind.MaxCounter())
}

// Check refuses values that contradict each other or the id column, as MariaDB does with error
// 4085. Errors wrap ErrBadOption.
func (d *Definition) Check(columnMax uint64) error {
	if err := d.checkKind(); err != nil {
		return err
	}
	highest := d.Limit(columnMax)
	conflict := func(format string, args ...any) error {
		return fmt.Errorf("%w: sequence %q: %s", ErrConflict, d.Name, fmt.Sprintf(format, args...))
	}
	switch {
	case len(d.Comment) > 4*maxComment:
		return BadOption("sequence %q: its comment has more than %d characters", d.Name, maxComment)
	case d.Cache > MaxCache:
		return BadOption("sequence %q: CACHE %d, want at most %d", d.Name, d.Cache, uint64(MaxCache))
	case d.Cover > maxCover:
		return BadOption("sequence %q: OUTAGE_COVER %d, want at most %d seconds, which is a week", d.Name, d.Cover, uint64(maxCover))
	case d.Max > columnMax:
		return conflict("MAXVALUE %d is above the maximum %d of the id column", d.Max, columnMax)
	case d.JSONSafe && d.Max > maxJSON:
		return conflict("MAXVALUE %d is above %d, the end of what is safe in JSON", d.Max, uint64(maxJSON))
	case d.Min >= highest:
		return conflict("MINVALUE %d is not below the maximum %d", d.Min, highest)
	case d.Start < d.Min:
		return conflict("START WITH %d is below MINVALUE %d", d.Start, d.Min)
	case d.Start > highest:
		return conflict("START WITH %d is above the maximum %d", d.Start, highest)
	}
	return nil
}

// UsualCover is how long cached numbers should last where nothing else is said.
const UsualCover = 15 * time.Minute

// CoverOf returns how long the cached numbers of a sequence should last, if its definition says so;
// else 0.
func CoverOf(d *Definition) time.Duration { return time.Duration(d.Cover) * time.Second }

// OrderOfResets is the way out for ORDER with a counter that is reset.
const OrderOfResets = "the clocks of proxies do not end a period at one moment; NOCACHE, which it has by itself, takes each key when it is asked for"

// checkKind refuses options that contradict the kind.
func (d *Definition) checkKind() error {
	refused := func(what, wayOut string) error {
		return &KindError{Sequence: d.Name, Kind: d.Kind, Refused: what, WayOut: wayOut}
	}
	switch most := d.Kind.MaxCounter(); {
	case d.Kind.IsPlain():
		return nil
	case d.JSONSafe && (d.Kind.IsText() || d.Kind.Dated()):
		return refused("JSON_SAFE", "leave it out")
	case d.Order && d.Kind.Resets():
		return refused("ORDER", OrderOfResets)
	case d.Order && !d.Kind.Counts():
		return refused("ORDER", "its keys are of no counter; leave it out")
	case d.Kind.HasClock() && (d.Start != 1 || d.Min != 1 || d.Max != 0):
		return refused("START, MINVALUE or MAXVALUE", "its keys begin with the time; leave it out")
	case d.Kind.HasClock() && d.Cache != 0:
		return refused("CACHE or NOCACHE", "it reserves time, not keys: OUTAGE_COVER says how much; leave it out")
	case d.Kind.HasClock() && d.Order:
		return refused("ORDER", "its keys rise within a proxy, and as its clock does; leave it out")
	case d.JSONSafe != d.Kind.JSONSafe():
		return refused("another JSON_SAFE", "the keys would be others, so create another sequence")
	case d.Increment != 1:
		return refused(fmt.Sprintf("INCREMENT BY %d", d.Increment), "its keys are not an increment apart; leave it out")
	case d.Cycle:
		return refused("CYCLE", "it would give the same keys again; leave it out")
	case d.Max > most:
		return fmt.Errorf("%w: sequence %q: MAXVALUE %d is above %d, the last counter that has a key of kind %v", ErrConflict, d.Name, d.Max, most, d.Kind)
	case d.Start > most || d.Min > most:
		return fmt.Errorf("%w: sequence %q: START WITH %d or MINVALUE %d is above %d, the last counter that has a key of kind %v",
			ErrConflict, d.Name, d.Start, d.Min, most, d.Kind)
	}
	return nil
}

// Importable reports why an imported counter cannot continue in the sequence.
func (d *Definition) Importable() error {
	if d.Kind.IsPlain() {
		return nil
	}
	return &KindError{Sequence: d.Name, Kind: d.Kind, Refused: "a counter of elsewhere", WayOut: "its numbers are no keys of that kind; import it under another name"}
}
