package kind

import (
	"math"
	"strconv"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// anyKind draws one of all kinds and options.
func anyKind(t *rapid.T) Kind {
	jsonSafe := rapid.Bool().Draw(t, "json safe")
	var k Kind
	var err error
	switch rapid.SampledFrom([]Name{Plain, BitReversed, Rotate, ShardBits, Snowflake}).Draw(t, "kind") {
	case BitReversed:
		k = NewBitReversed(jsonSafe)
	case Rotate:
		most := uint64(MaxDigits)
		if jsonSafe {
			most = jsonDigits
		}
		digits := rapid.Uint64Range(2, most).Draw(t, "digits")
		k, err = NewRotate(rapid.Uint64Range(1, digits-1).Draw(t, "moved"), digits, jsonSafe)
	case ShardBits:
		k, err = NewShardBits(rapid.Uint64Range(1, MaxShardBits).Draw(t, "bits"), jsonSafe)
	case Snowflake:
		k, err = NewSnowflake(anyLayout(t, uint64(width(jsonSafe))), jsonSafe)
	}
	if err != nil {
		t.Fatal(err)
	}
	if k.Steady() || rapid.Bool().Draw(t, "all keys") {
		return k
	}
	from := rapid.Uint64Range(1, k.MaxKey()/2+1).Draw(t, "skipped from")
	most := max(k.MaxKey()/2, 1) - 1
	if k.name == Rotate {
		most = min(most, (maxSkipped-1)*powers[k.digits-k.moved])
	}
	if k, err = k.Skip(from, from+rapid.Uint64Range(0, most).Draw(t, "skipped")); err != nil {
		t.Fatal(err)
	}
	return k
}

// anyLayout draws one of SNOWFLAKE.
func anyLayout(t *rapid.T, bits uint64) Layout {
	l := Layout{
		Epoch: time.UnixMilli(rapid.OneOf(rapid.Int64Range(0, 4e12), rapid.Map(rapid.Int64Range(0, 40_000), func(day int64) int64 { return day * 86_400_000 })).Draw(t, "epoch")),
		Tick:  time.Duration(rapid.IntRange(1, 1000).Draw(t, "tick")) * time.Millisecond,
	}
	l.WorkerBits = rapid.Uint64Range(1, 10).Draw(t, "worker bits")
	l.CounterBits = rapid.Uint64Range(1, 20).Draw(t, "counter bits")
	l.TimeBits = rapid.Uint64Range(minTimeBits, min(bits-l.WorkerBits-l.CounterBits, maxTimeBits)).Draw(t, "time bits")
	return l
}

func TestEachKeyGivesItsCounterBack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		k := anyKind(t)
		n := rapid.Uint64Range(1, k.MaxCounter()).Draw(t, "counter")
		shard := rapid.Uint64().Draw(t, "shard")
		key := k.Key(n, shard)
		switch {
		case key == 0:
			t.Fatalf("%v: the key of %d is 0, which is none", k, n)
		case key > k.MaxKey():
			t.Fatalf("%v: the key %d of %d is above %d", k, key, n, k.MaxKey())
		case k.JSONSafe() && key > 1<<53-1:
			t.Fatalf("%v: the key %d of %d is not safe in JSON", k, key, n)
		case !k.IsPlain() && key > math.MaxInt64:
			t.Fatalf("%v: a signed column cannot hold the key %d of %d", k, key, n)
		}
		back, of, ok := k.Counter(key)
		if k.Skips(key) && !ok {
			return // nobody gets it
		}
		if !ok || back != n {
			t.Fatalf("%v: the key %d of %d gives the counter %d back (%v)", k, key, n, back, ok)
		}
		if k.Key(back, of) != key {
			t.Fatalf("%v: the counter %d of shard %d has the key %d, want %d", k, back, of, k.Key(back, of), key)
		}
	})
}

// Each key maps back to its counter, so no two counters share one. Here that is counted, and the
// reverse: all keys of ROTATE are used.
func TestASmallRotateUsesEachKeyOnce(t *testing.T) {
	for _, moved := range []uint64{1, 2, 3} {
		k, err := NewRotate(moved, 4, false)
		if err != nil {
			t.Fatal(err)
		}
		seen := make(map[uint64]bool)
		for n := uint64(1); n <= k.MaxCounter(); n++ {
			seen[k.Key(n, 0)] = true
		}
		if len(seen) != 9999 || seen[0] {
			t.Errorf("ROTATE %d DIGITS 4 has %d keys of 9999 counters", moved, len(seen))
		}
	}
}

func TestWhatIsNoKeyHasNoCounter(t *testing.T) {
	rotated, _ := NewRotate(1, 4, false)
	sharded, _ := NewShardBits(5, false)
	for _, c := range []struct {
		k   Kind
		key uint64
	}{
		{Kind{}, 0},
		{NewBitReversed(false), 0},
		{NewBitReversed(false), 1 << 63},
		{NewBitReversed(true), 1 << 53},
		{rotated, 0},
		{rotated, 10000},
		{sharded, 0},
		{sharded, 3 << 58}, // a shard alone
		{sharded, 1 << 63},
	} {
		if n, _, ok := c.k.Counter(c.key); ok {
			t.Errorf("%v: %d is the key of %d", c.k, c.key, n)
		}
	}
}

// The rows of one statement share a shard, and drivers count on from the first.
func TestASteadyKindCountsOn(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		k := anyKind(t)
		n := rapid.Uint64Range(1, k.MaxCounter()-1).Draw(t, "counter")
		shard := rapid.Uint64().Draw(t, "shard")
		if k.Rises() && k.Key(n+1, shard) != k.Key(n, shard)+1 {
			t.Fatalf("%v: behind %d comes %d", k, k.Key(n, shard), k.Key(n+1, shard))
		}
	})
}

// ROTATE does what the text with the digits does.
func TestRotateMovesDigits(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		digits := rapid.IntRange(2, MaxDigits).Draw(t, "digits")
		moved := rapid.IntRange(1, digits-1).Draw(t, "moved")
		k, err := NewRotate(uint64(moved), uint64(digits), false)
		if err != nil {
			t.Fatal(err)
		}
		n := rapid.Uint64Range(1, k.MaxCounter()).Draw(t, "counter")
		text := strconv.FormatUint(n, 10)
		text = strings.Repeat("0", digits-len(text)) + text
		want := text[digits-moved:] + text[:digits-moved]
		got := strconv.FormatUint(k.Key(n, 0), 10)
		got = strings.Repeat("0", digits-len(got)) + got
		if got != want {
			t.Fatalf("%v: %s becomes %s, want %s", k, text, got, want)
		}
	})
}

// The article "Running a sequence service efficiently on TiDB" keeps the first digit, and moves the
// last one behind it: that is ROTATE 1 of the 17 digits behind the first.
func TestRotateGivesTheKeysOfTheArticle(t *testing.T) {
	k, err := NewRotate(1, 17, false)
	if err != nil {
		t.Fatal(err)
	}
	const first = 5 * 100_000_000_000_000_000
	for _, c := range []struct{ from, to uint64 }{
		{561632371724517376, 566163237172451737},
		{561632371728711680, 506163237172871168},
		{561632371728711681, 516163237172871168},
		{561632371728711682, 526163237172871168},
		{561632371732905984, 546163237173290598},
		{561632371732905985, 556163237173290598},
		{561632371732905986, 566163237173290598},
		{561632371732905987, 576163237173290598},
		{561632371732905988, 586163237173290598},
		{561632371737100288, 586163237173710028},
	} {
		if got := first + k.Key(c.from-first, 0); got != c.to {
			t.Errorf("%d becomes %d, want %d", c.from, got, c.to)
		}
		if got, _, _ := k.Counter(c.to - first); first+got != c.from {
			t.Errorf("%d comes from %d, want %d", c.to, first+got, c.from)
		}
	}
}

func TestKeysOfEachKind(t *testing.T) {
	rotated, _ := NewRotate(2, 6, false)
	sharded, _ := NewShardBits(5, false)
	safe, _ := NewShardBits(5, true)
	for _, c := range []struct {
		k          Kind
		n, shard   uint64
		key        uint64
		maxCounter uint64
	}{
		{Kind{}, 7, 3, 7, math.MaxUint64},
		{NewBitReversed(false), 1, 0, 1 << 62, 1<<63 - 1},
		{NewBitReversed(false), 2, 0, 1 << 61, 1<<63 - 1},
		{NewBitReversed(false), 3, 0, 3 << 61, 1<<63 - 1},
		{NewBitReversed(true), 1, 0, 1 << 52, 1<<53 - 1},
		{rotated, 1, 0, 10000, 999999},
		{rotated, 123456, 0, 561234, 999999},
		{sharded, 1, 3, 3<<58 + 1, 1<<58 - 1},
		{sharded, 1, 35, 3<<58 + 1, 1<<58 - 1},
		{safe, 9, 31, 31<<48 + 9, 1<<48 - 1},
	} {
		if got := c.k.Key(c.n, c.shard); got != c.key {
			t.Errorf("%v: the key of %d is %d, want %d", c.k, c.n, got, c.key)
		}
		if got := c.k.MaxCounter(); got != c.maxCounter {
			t.Errorf("%v: counters go up to %d, want %d", c.k, got, c.maxCounter)
		}
	}
}

func TestAKindIsReadAsItIsWritten(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		k := anyKind(t)
		got, err := Parse(k.String())
		if err != nil || got != k {
			t.Fatalf("%q is read as %v, %v", k.String(), got, err)
		}
		if got, err = Parse("  " + strings.ToLower(strings.ReplaceAll(k.String(), " ", "  "))); err != nil || got != k {
			t.Fatalf("%q in small letters is read as %v, %v", k.String(), got, err)
		}
	})
}

func TestBadOptionsAreNamed(t *testing.T) {
	for clause, want := range map[string]string{
		"SHARD BITS 0":                                     "SHARD BITS 0: want 1 to 15",
		"SHARD BITS 16":                                    "SHARD BITS 16: want 1 to 15",
		"ROTATE 1 DIGITS 1":                                "DIGITS 1: want 2 to 18",
		"ROTATE 1 DIGITS 19":                               "DIGITS 19: want 2 to 18",
		"ROTATE 1 DIGITS 16 JSON_SAFE":                     "DIGITS 16: want 2 to 15 with JSON_SAFE",
		"ROTATE 0 DIGITS 6":                                "ROTATE 0: want 1 to 5, as a key has 6 digits",
		"ROTATE 6 DIGITS 6":                                "ROTATE 6: want 1 to 5, as a key has 6 digits",
		"ROTATE x DIGITS 6":                                "ROTATE 0: want 1 to 5, as a key has 6 digits",
		"JSON_SAFE":                                        "is no kind of key",
		"SNOWFLAKE 5":                                      "SNOWFLAKE 5: want EPOCH",
		"SNOWFLAKE TIME 41":                                "SNOWFLAKE TIME 41: want",
		"SNOWFLAKE SPEED 41":                               "SNOWFLAKE has no option SPEED",
		"SNOWFLAKE TIME BITS 42":                           "TIME BITS 42, WORKER BITS 10 and COUNTER BITS 12 add up to 64: want at most 63",
		"SNOWFLAKE TIME BITS 19":                           "TIME BITS 19: want 20 to 57",
		"SNOWFLAKE TIME BITS x":                            "TIME BITS X: want a number of bits",
		"SNOWFLAKE WORKER BITS 0":                          "WORKER BITS 0: want 1 to 16",
		"SNOWFLAKE COUNTER BITS 23":                        "COUNTER BITS 23: want 1 to 22",
		"SNOWFLAKE JSON_SAFE":                              "add up to 63: want at most 53 with JSON_SAFE",
		"SNOWFLAKE TICK '2s'":                              "TICK '2s': want whole milliseconds, from '1ms' to '1s'",
		"SNOWFLAKE TICK 'often'":                           "TICK 'OFTEN': want",
		"SNOWFLAKE TICK '1500us'":                          "TICK '1.5ms': want",
		"SNOWFLAKE EPOCH '1969-12-31'":                     "EPOCH '1969-12-31T00:00:00Z': want a time from 1970 on",
		"SNOWFLAKE EPOCH 'never'":                          "EPOCH 'NEVER': want a date",
		"TICKS JSON_SAFE":                                  "is no kind of key",
		"BIT_REVERSED 3":                                   "is no kind of key",
		"BIT_REVERSED SKIP RANGE 0 TO 9":                   "SKIP RANGE 0 TO 9: want keys of kind BIT_REVERSED, which are from 1 to 9223372036854775807",
		"BIT_REVERSED SKIP RANGE 9 TO 8":                   "the lower one first",
		"BIT_REVERSED SKIP RANGE 1 TO 5000000000000000000": "less than half of all keys",
		"BIT_REVERSED SKIP RANGE x TO 9":                   "SKIP RANGE 0 TO 9",
		"ROTATE 1 DIGITS 3 SKIP RANGE 1 TO 1000":           "from 1 to 999",
		"ROTATE 9 DIGITS 12 SKIP RANGE 1 TO 1000001 ":      "1000 counters in a row",
		"SHARD BITS 5 SKIP RANGE 1 TO 9":                   "it goes with BIT_REVERSED and ROTATE",
		"SKIP RANGE 1 TO 9":                                "is no kind of key",
	} {
		if k, err := Parse(clause); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, %v, want %q", clause, k, err, want)
		}
	}
}

// A take passes over few counters, wherever the range is.
func TestFewCountersInARowAreSkipped(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		k := anyKind(t)
		n := rapid.Uint64Range(1, k.MaxCounter()).Draw(t, "counter")
		if k.skipTo != 0 && rapid.Bool().Draw(t, "at the range") {
			// the counters about one of its keys
			key := rapid.Uint64Range(k.skipFrom, k.skipTo).Draw(t, "key")
			all := k
			all.skipTo = 0
			n, _, _ = all.Counter(key)
			n = max(n-min(n, 5), 1)
		}
		for passed := 0; n <= k.MaxCounter() && k.Skips(k.Key(n, 0)); passed++ {
			if passed > maxSkipped+2 {
				t.Fatalf("%v: the keys of %d counters up to %d are not given", k, passed, n)
			}
			n++
		}
	})
}

func BenchmarkKey(b *testing.B) {
	rotated, _ := NewRotate(1, 18, false)
	sharded, _ := NewShardBits(5, false)
	for name, k := range map[string]Kind{"plain": {}, "reversed": NewBitReversed(false), "rotated": rotated, "sharded": sharded} {
		b.Run(name, func(b *testing.B) {
			sum := uint64(0)
			for n := uint64(1); b.Loop(); n++ {
				sum += k.Key(n, n)
			}
			_ = sum
		})
	}
}

func FuzzParse(f *testing.F) {
	f.Add("BIT_REVERSED JSON_SAFE")
	f.Add("ROTATE 1 DIGITS 18")
	f.Add("shard bits 5")
	f.Add("snowflake epoch '2010-11-04t01:42:54.657z' tick '10ms' time bits 39 worker bits 16 counter bits 8")
	f.Fuzz(func(t *testing.T, clause string) {
		k, err := Parse(clause)
		if err != nil {
			return
		}
		if again, err := Parse(k.String()); err != nil || again != k {
			t.Fatalf("%q is %v, which is read as %v, %v", clause, k, again, err)
		}
		if k.IsText() || k.Dated() || k.name == Ticks {
			return // TestEachKeyOfAFormatIsReadBack
		}
		if n, _, ok := k.Counter(k.Key(1, 0)); !ok || n != 1 {
			t.Fatalf("%q: the first key is of %d, %v", clause, n, ok)
		}
	})
}

// The keys of SNOWFLAKE are what the documents of others say, and rise with time, worker and
// counter.
func TestSnowflakesAreComposed(t *testing.T) {
	// https://en.wikipedia.org/wiki/Snowflake_ID: a post of 28 June 2022
	twitter, err := Parse("SNOWFLAKE EPOCH '2010-11-04T01:42:54.657Z'")
	if err != nil {
		t.Fatal(err)
	}
	tick, worker, n := twitter.Decompose(1541815603606036480)
	if at := twitter.TimeOf(tick); at.Format(time.RFC3339Nano) != "2022-06-28T16:07:40.105Z" || worker != 0x17a || n != 0 {
		t.Errorf("it is of %v, %d, %d", at, worker, n)
	}
	rapid.Check(t, func(t *rapid.T) {
		k, err := NewSnowflake(anyLayout(t, keyBits), false)
		if err != nil {
			t.Fatal(err)
		}
		l := k.Layout()
		draw := func(name string) (key, tick, worker, n uint64) {
			tick = rapid.Uint64Range(1, k.MaxCounter()).Draw(t, name+" tick")
			worker = rapid.Uint64Range(0, 1<<l.WorkerBits-1).Draw(t, name+" worker")
			n = rapid.Uint64Range(0, 1<<l.CounterBits-1).Draw(t, name+" counter")
			return k.Compose(tick, worker, n), tick, worker, n
		}
		key, tick, worker, n := draw("a")
		if gotTick, gotWorker, gotN := k.Decompose(key); gotTick != tick || gotWorker != worker || gotN != n || key > k.MaxKey() {
			t.Fatalf("%v: %d is of %d, %d, %d, want %d, %d, %d", k, key, gotTick, gotWorker, gotN, tick, worker, n)
		}
		if other, later, _, _ := draw("b"); later > tick && other <= key {
			t.Fatalf("%v: %d of tick %d comes behind %d of tick %d", k, other, later, key, tick)
		}
		if at := rapid.Int64Range(0, 8e18).Draw(t, "moment"); at >= l.Epoch.UnixNano() {
			begin := k.TimeOf(k.TickAt(at)).UnixNano()
			if at < begin || at-begin >= int64(l.Tick) {
				t.Fatalf("%v: the tick of %d begins at %d", k, at, begin)
			}
		} else if k.TickAt(at) != 0 {
			t.Fatalf("%v: %d is in tick %d, before the epoch", k, at, k.TickAt(at))
		}
	})
}
