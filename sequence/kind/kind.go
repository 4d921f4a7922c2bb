package kind

import (
	"fmt"
	"math"
	"math/bits"
	"strconv"
	"strings"
	"time"
)

// Name says which function of the counter a key is.
type Name uint8

// The kinds.
const (
	Plain       Name = iota
	BitReversed      // the bits of the counter in reverse order
	Rotate           // its last digits in front
	ShardBits        // a shard above it
	Formatted        // written into a text, with parts of the date
	UUID             // no counter: a number of RFC 9562
	Snowflake        // the time, the worker, and a counter; see Layout
	Ticks            // no keys: the counter is the time of one worker
)

// Kind is a function from counters, which begin at 1, to keys. It is comparable: equal kinds give
// equal keys. The zero value is the plain kind, whose key is the counter. UUID has no counter.
type Kind struct {
	name     Name
	bits     uint8 // of a key, of BitReversed and ShardBits; of the time, of Snowflake
	shard    uint8 // bits of the shard, of ShardBits; of the worker, of Snowflake
	counter  uint8 // bits of the counter in a tick, of Snowflake
	digits   uint8 // of a key, of Rotate
	moved    uint8 // digits that go to the front, of Rotate
	jsonSafe bool
	version  uint8   // of UUID
	binary   bool    // UUID has 16 bytes
	format   *Format // of Formatted; one for each clause, so that equal kinds are equal

	epoch int64         // milliseconds since 1970, of Snowflake
	tick  time.Duration // of Snowflake

	skipFrom, skipTo uint64 // keys that are never given; 0: none
}

// Bounds of the options.
const (
	MaxShardBits = 15  // as in TiDB's AUTO_RANDOM(s)
	MaxDigits    = 18  // a BIGINT holds them, signed or not
	MaxClause    = 160 // characters of String

	// maxSkipped bounds how many counters in a row may have keys that are never given: a caller
	// skips them one by one.
	maxSkipped = 1000

	keyBits    = 63 // a BIGINT has these without its sign
	jsonBits   = 53 // a double has these
	jsonDigits = 15
)

// NewBitReversed returns BIT_REVERSED: the 63 bits below the sign in reverse order, or with
// jsonSafe the 53 of a double.
func NewBitReversed(jsonSafe bool) Kind {
	return Kind{name: BitReversed, bits: width(jsonSafe), jsonSafe: jsonSafe}
}

// NewRotate returns ROTATE moved DIGITS digits: the counter written with so many digits, the last
// moved ones in front of the others.
func NewRotate(moved, digits uint64, jsonSafe bool) (Kind, error) {
	most, why := uint64(MaxDigits), ""
	if jsonSafe {
		most, why = jsonDigits, " with JSON_SAFE"
	}
	switch {
	case digits < 2 || digits > most:
		return Kind{}, fmt.Errorf("DIGITS %d: want 2 to %d%s", digits, most, why)
	case moved < 1 || moved >= digits:
		return Kind{}, fmt.Errorf("ROTATE %d: want 1 to %d, as a key has %d digits", moved, digits-1, digits)
	}
	return Kind{name: Rotate, digits: uint8(digits), moved: uint8(moved), jsonSafe: jsonSafe}, nil
}

// NewShardBits returns SHARD BITS n: n bits of a shard below the sign, and the counter in the bits
// below.
func NewShardBits(n uint64, jsonSafe bool) (Kind, error) {
	if n < 1 || n > MaxShardBits {
		return Kind{}, fmt.Errorf("SHARD BITS %d: want 1 to %d", n, MaxShardBits)
	}
	return Kind{name: ShardBits, bits: width(jsonSafe), shard: uint8(n), jsonSafe: jsonSafe}, nil
}

func width(jsonSafe bool) uint8 {
	if jsonSafe {
		return jsonBits
	}
	return keyBits
}

// Skip returns k without a range of keys, for a table whose rows have them already: SKIP RANGE from
// TO to.
func (k Kind) Skip(from, to uint64) (Kind, error) {
	refused := func(format string, args ...any) (Kind, error) {
		return Kind{}, fmt.Errorf("SKIP RANGE %d TO %d: %s", from, to, fmt.Sprintf(format, args...))
	}
	switch {
	case k.name != BitReversed && k.name != Rotate:
		return refused("it goes with BIT_REVERSED and ROTATE; others begin above the keys that are there")
	case from < 1 || to < from || to > k.MaxKey():
		return refused("want keys of kind %v, which are from 1 to %d, the lower one first", k, k.MaxKey())
	case to-from >= k.MaxKey()/2:
		return refused("want less than half of all keys, which are %d", k.MaxKey())
	case k.name == Rotate && (to-from)/powers[k.digits-k.moved] >= maxSkipped:
		return refused("%d counters in a row would have no key, want at most %d: ROTATE fewer of the digits", (to-from)/powers[k.digits-k.moved], maxSkipped)
	}
	k.skipFrom, k.skipTo = from, to
	return k, nil
}

// WithoutSkip returns k without skipped keys.
func (k Kind) WithoutSkip() Kind {
	k.skipFrom, k.skipTo = 0, 0
	return k
}

// Skips reports whether a key is never given.
func (k Kind) Skips(key uint64) bool { return k.skipTo != 0 && key >= k.skipFrom && key <= k.skipTo }

// Name returns which function k is.
func (k Kind) Name() Name { return k.name }

// IsPlain reports whether keys are the counters.
func (k Kind) IsPlain() bool { return k.name == Plain }

// IsText reports whether keys are texts or bytes, made by Text, rather than numbers.
func (k Kind) IsText() bool { return k.name == UUID || k.name == Formatted && !k.format.number }

// IsBinary reports whether keys are bytes.
func (k Kind) IsBinary() bool { return k.binary }

// Counts reports whether keys are made of counters.
func (k Kind) Counts() bool { return k.name != UUID }

// Dated reports whether the key of a counter depends on the time.
func (k Kind) Dated() bool { return k.name == Formatted }

// JSONSafe reports whether a double holds all keys, of another kind than the plain one.
func (k Kind) JSONSafe() bool { return k.jsonSafe }

// Steady reports whether keys that are taken together are one apart.
func (k Kind) Steady() bool { return k.Rises() || k.name == Snowflake || k.name == Ticks }

// Rises reports whether keys of one shard rise with their counter.
func (k Kind) Rises() bool { return k.name == Plain || k.name == ShardBits }

// HasClock reports whether keys contain the time, rather than the counter of the sequence's row.
func (k Kind) HasClock() bool { return k.name == Snowflake }

// MaxCounter returns the highest counter that has a key; with SNOWFLAKE the last tick.
func (k Kind) MaxCounter() uint64 {
	switch k.name {
	case BitReversed:
		return 1<<k.bits - 1
	case Rotate:
		return powers[k.digits] - 1
	case ShardBits:
		return 1<<(k.bits-k.shard) - 1
	case Formatted:
		return k.format.MaxCounter()
	case Snowflake:
		return 1<<k.bits - 1
	}
	return math.MaxUint64
}

// LastOwn returns the highest counter that a key in a column may have and be one of a sequence's
// own, where the sequence stands at last. A key that it never gave may look like one with any
// counter. The sequence would soon run out above such a counter. Once it is beyond half of its
// counters any key may be its own.
func (k Kind) LastOwn(last uint64) uint64 {
	half := k.MaxCounter() / 2
	switch {
	case k.IsPlain() || k.HasClock():
		return math.MaxUint64
	case last > half:
		return k.MaxCounter()
	}
	return half
}

// MaxKey returns the highest key, for kinds whose keys are numbers.
func (k Kind) MaxKey() uint64 {
	switch k.name {
	case ShardBits:
		return 1<<k.bits - 1
	case Formatted:
		return powers[k.format.Length()] - 1
	case Snowflake:
		return 1<<(k.bits+k.shard+k.counter) - 1
	}
	return k.MaxCounter()
}

// Key returns the key of a counter up to MaxCounter. Only SHARD BITS uses the shard, of which it
// takes the lowest bits. With SNOWFLAKE it is the first key of a tick, and the shard is the worker.
func (k Kind) Key(counter, shard uint64) uint64 {
	switch k.name {
	case BitReversed:
		return bits.Reverse64(counter) >> (64 - k.bits)
	case Rotate:
		tail := powers[k.moved]
		return counter%tail*powers[k.digits-k.moved] + counter/tail
	case ShardBits:
		low := k.bits - k.shard
		return shard&(1<<k.shard-1)<<low | counter
	case Snowflake:
		return k.Compose(counter, shard&(1<<k.shard-1), 0)
	}
	return counter
}

// Counter returns the counter and the shard of a key; see Key. ok is false for other numbers.
func (k Kind) Counter(key uint64) (counter, shard uint64, ok bool) {
	if k.IsText() || key > k.MaxKey() || k.Skips(key) {
		return 0, 0, false
	}
	switch counter = key; k.name {
	case Formatted:
		counter, _, ok = k.format.Counter(fmt.Sprintf("%0*d", k.format.Length(), key))
		return counter, 0, ok
	case BitReversed:
		counter = bits.Reverse64(key) >> (64 - k.bits)
	case Rotate:
		front := powers[k.digits-k.moved]
		counter = key%front*powers[k.moved] + key/front
	case ShardBits:
		low := k.bits - k.shard
		counter, shard = key&(1<<low-1), key>>low
	case Snowflake:
		counter, shard, _ = k.Decompose(key)
	}
	return counter, shard, counter != 0
}

// CounterSQL returns an SQL expression for the counter of the key in a column, and a condition for
// values that are no keys. Both are "" for the plain kind. Keys are numbers.
func (k Kind) CounterSQL(column string) (counter, condition string) {
	switch k.name {
	case Plain, Ticks:
		return "", ""
	case BitReversed:
		counter = fmt.Sprintf("CAST(CONV(REVERSE(LPAD(CONV(%s, 10, 2), %d, '0')), 2, 10) AS UNSIGNED)", column, k.bits)
	case Rotate:
		front := powers[k.digits-k.moved]
		counter = fmt.Sprintf("%s MOD %d * %d + %[1]s DIV %[2]d", column, front, powers[k.moved])
	case ShardBits:
		counter = fmt.Sprintf("%s & %d", column, k.MaxCounter())
	case Formatted:
		counter = fmt.Sprintf("%s DIV %d MOD %d", column, powers[k.format.behind()], powers[k.format.width])
	case Snowflake:
		counter = fmt.Sprintf("%s >> %d", column, k.shard+k.counter)
	}
	condition = fmt.Sprintf("%s BETWEEN 1 AND %d", column, k.MaxKey())
	if k.skipTo != 0 {
		condition += fmt.Sprintf(" AND %s NOT BETWEEN %d AND %d", column, k.skipFrom, k.skipTo)
	}
	return counter, condition
}

// powers of ten.
var powers = func() (p [maxWidth + 1]uint64) {
	p[0] = 1
	for i := 1; i < len(p); i++ {
		p[i] = 10 * p[i-1]
	}
	return p
}()

// String returns the clause of CREATE SEQUENCE, with JSON_SAFE if keys are; "" for the plain kind.
// Parse reads it.
func (k Kind) String() string {
	text := ""
	switch k.name {
	case Plain:
		return ""
	case BitReversed:
		text = "BIT_REVERSED"
	case Rotate:
		text = fmt.Sprintf("ROTATE %d DIGITS %d", k.moved, k.digits)
	case ShardBits:
		text = fmt.Sprintf("SHARD BITS %d", k.shard)
	case Formatted:
		return k.format.clause()
	case UUID:
		if text = fmt.Sprintf("UUID VERSION %d", k.version); k.binary {
			text += " BINARY"
		}
		return text
	case Snowflake:
		text = k.clause()
	case Ticks:
		text = "TICKS"
	}
	if k.skipTo != 0 {
		text += fmt.Sprintf(" SKIP RANGE %d TO %d", k.skipFrom, k.skipTo)
	}
	if k.jsonSafe {
		text += " JSON_SAFE"
	}
	return text
}

// Parse reads a clause as String writes it, in any case and with any blanks.
func Parse(clause string) (Kind, error) {
	words := strings.Fields(strings.ToUpper(clause))
	switch {
	case len(words) == 0:
		return Kind{}, nil
	case words[0] == "FORMAT":
		return parseFormatted(clause)
	}
	jsonSafe := words[len(words)-1] == "JSON_SAFE"
	if jsonSafe {
		words = words[:len(words)-1]
	}
	var skip []string // from, to
	if n := len(words) - 5; n > 0 && words[n] == "SKIP" && words[n+1] == "RANGE" && words[n+3] == "TO" {
		skip, words = []string{words[n+2], words[n+4]}, words[:n]
	}
	k, err := parseFunction(clause, words, jsonSafe)
	if err != nil || skip == nil {
		return k, err
	}
	from, _ := strconv.ParseUint(skip[0], 10, 64) // 0 is refused
	to, _ := strconv.ParseUint(skip[1], 10, 64)
	return k.Skip(from, to)
}

// parseFunction reads the words of a clause that name the function.
func parseFunction(clause string, words []string, jsonSafe bool) (Kind, error) {
	number := func(at int) uint64 {
		n, err := strconv.ParseUint(words[at], 10, 64)
		if err != nil {
			return 0 // no option allows that
		}
		return n
	}
	switch {
	case len(words) == 1 && words[0] == "BIT_REVERSED":
		return NewBitReversed(jsonSafe), nil
	case len(words) == 4 && words[0] == "ROTATE" && words[2] == "DIGITS":
		return NewRotate(number(1), number(3), jsonSafe)
	case len(words) == 3 && words[0] == "SHARD" && words[1] == "BITS":
		return NewShardBits(number(2), jsonSafe)
	case len(words) > 0 && words[0] == "UUID" && !jsonSafe:
		rest, binary := words[1:], false
		if n := len(rest); n > 0 && rest[n-1] == "BINARY" {
			rest, binary = rest[:n-1], true
		}
		switch {
		case len(rest) == 0:
			return NewUUID(7, binary)
		case len(rest) == 2 && rest[0] == "VERSION":
			words = rest
			return NewUUID(number(1), binary)
		}
	case len(words) > 0 && words[0] == "SNOWFLAKE":
		return parseSnowflake(words[1:], jsonSafe)
	case len(words) == 1 && words[0] == "TICKS" && !jsonSafe:
		return NewTicks(), nil
	}
	return Kind{}, fmt.Errorf("%q is no kind of key: want BIT_REVERSED, ROTATE d DIGITS w, SHARD BITS s or SNOWFLAKE, and behind it SKIP RANGE a TO b and JSON_SAFE or not; "+
		"or FORMAT '...' with its options, or UUID [VERSION 7 | 4] [BINARY]", clause)
}
