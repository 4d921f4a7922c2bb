package kind

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// Layout is the parts of a key of SNOWFLAKE, from the highest bits to the lowest: the ticks since
// Epoch, the worker, and how many keys that worker gave before in the same tick.
type Layout struct {
	Epoch       time.Time // in whole milliseconds, from 1970 on
	Tick        time.Duration
	TimeBits    uint64
	WorkerBits  uint64
	CounterBits uint64
}

// DefaultLayout returns the layout of SNOWFLAKE without options.
func DefaultLayout() Layout {
	return Layout{Epoch: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC), Tick: time.Millisecond, TimeBits: 41, WorkerBits: 10, CounterBits: 12}
}

// Bounds of a layout.
const (
	minTimeBits    = 20
	maxTimeBits    = 57 // as segment.MostTickBits
	maxWorkerBits  = 16
	maxCounterBits = 22
	maxTick        = time.Second // a caller that finds a tick full waits for the next one
)

// NewSnowflake returns SNOWFLAKE with a layout.
func NewSnowflake(l Layout, jsonSafe bool) (Kind, error) {
	most, why := uint64(keyBits), ""
	if jsonSafe {
		most, why = jsonBits, " with JSON_SAFE, as TIME BITS 41 WORKER BITS 5 COUNTER BITS 7 do"
	}
	sum := l.TimeBits + l.WorkerBits + l.CounterBits
	switch epoch := l.Epoch.UnixMilli(); {
	case l.TimeBits < minTimeBits || l.TimeBits > maxTimeBits:
		return Kind{}, fmt.Errorf("TIME BITS %d: want %d to %d", l.TimeBits, minTimeBits, min(most, maxTimeBits))
	case l.WorkerBits < 1 || l.WorkerBits > maxWorkerBits:
		return Kind{}, fmt.Errorf("WORKER BITS %d: want 1 to %d", l.WorkerBits, maxWorkerBits)
	case l.CounterBits < 1 || l.CounterBits > maxCounterBits:
		return Kind{}, fmt.Errorf("COUNTER BITS %d: want 1 to %d", l.CounterBits, maxCounterBits)
	case sum > most:
		return Kind{}, fmt.Errorf("TIME BITS %d, WORKER BITS %d and COUNTER BITS %d add up to %d: want at most %d%s",
			l.TimeBits, l.WorkerBits, l.CounterBits, sum, most, why)
	case l.Tick < time.Millisecond || l.Tick > maxTick || l.Tick%time.Millisecond != 0:
		return Kind{}, fmt.Errorf("TICK '%v': want whole milliseconds, from '1ms' to '%v'", l.Tick, maxTick)
	case epoch < 0 || l.Epoch.Year() > 9999 || !l.Epoch.Equal(time.UnixMilli(epoch)):
		return Kind{}, fmt.Errorf("EPOCH '%s': want a time from 1970 on, in whole milliseconds", l.Epoch.UTC().Format(time.RFC3339Nano))
	}
	return Kind{
		name: Snowflake, jsonSafe: jsonSafe, epoch: l.Epoch.UnixMilli(), tick: l.Tick,
		bits: uint8(l.TimeBits), shard: uint8(l.WorkerBits), counter: uint8(l.CounterBits),
	}, nil
}

// NewTicks returns the kind of rows that count the ticks of one worker. Clients never get these
// numbers.
func NewTicks() Kind { return Kind{name: Ticks} }

// ParseEpoch reads the value of EPOCH: a date, or a time in RFC 3339, in UTC.
func ParseEpoch(text string) (time.Time, error) {
	upper := strings.ToUpper(text)
	for _, layout := range [...]string{time.DateOnly, time.RFC3339Nano} {
		if at, err := time.Parse(layout, upper); err == nil {
			return at.UTC(), nil
		}
	}
	return time.Time{}, fmt.Errorf("EPOCH '%.40s': want a date as '2026-01-01', or a time as '2010-11-04T01:42:54.657Z'", text)
}

// ParseTick reads the value of TICK.
func ParseTick(text string) (time.Duration, error) {
	tick, err := time.ParseDuration(strings.ToLower(text))
	if err != nil {
		return 0, fmt.Errorf("TICK '%.40s': want whole milliseconds, from '1ms' to '%v'", text, maxTick)
	}
	return tick, nil
}

// Layout returns the layout of SNOWFLAKE.
func (k Kind) Layout() Layout {
	return Layout{
		Epoch: time.UnixMilli(k.epoch).UTC(), Tick: k.tick,
		TimeBits: uint64(k.bits), WorkerBits: uint64(k.shard), CounterBits: uint64(k.counter),
	}
}

// TickAt returns the tick of a moment in nanoseconds since 1970; 0, in which no key is given,
// before Epoch. It may be above MaxCounter.
func (k Kind) TickAt(moment int64) uint64 {
	since := moment - k.epoch*int64(time.Millisecond)
	if since < 0 {
		return 0
	}
	return uint64(since / int64(k.tick))
}

// TimeOf returns when a tick begins.
func (k Kind) TimeOf(tick uint64) time.Time {
	ms := uint64(k.tick / time.Millisecond)
	if tick > (1<<62)/ms {
		tick = (1 << 62) / ms // far beyond any time that is printed
	}
	return time.UnixMilli(k.epoch + int64(tick*ms)).UTC()
}

// Compose returns the n-th key of SNOWFLAKE, from 0, of a worker in a tick.
func (k Kind) Compose(tick, worker, n uint64) uint64 {
	return tick<<(k.shard+k.counter) | worker<<k.counter | n
}

// Decompose returns the parts of a key of SNOWFLAKE.
func (k Kind) Decompose(key uint64) (tick, worker, n uint64) {
	return key >> (k.shard + k.counter), key >> k.counter & (1<<k.shard - 1), key & (1<<k.counter - 1)
}

// clause returns the clause of SNOWFLAKE with all options.
func (k Kind) clause() string {
	l := k.Layout()
	epoch := l.Epoch.Format(time.DateOnly)
	if l.Epoch.Truncate(24*time.Hour) != l.Epoch {
		epoch = l.Epoch.Format(time.RFC3339Nano)
	}
	return fmt.Sprintf("SNOWFLAKE EPOCH '%s' TICK '%v' TIME BITS %d WORKER BITS %d COUNTER BITS %d", epoch, l.Tick, l.TimeBits, l.WorkerBits, l.CounterBits)
}

// parseSnowflake reads the words after SNOWFLAKE.
func parseSnowflake(words []string, jsonSafe bool) (Kind, error) {
	l := DefaultLayout()
	var err error
	for len(words) > 0 && err == nil {
		option, size := words[0], 2
		bits := map[string]*uint64{"TIME": &l.TimeBits, "WORKER": &l.WorkerBits, "COUNTER": &l.CounterBits}[option]
		if bits != nil {
			size = 3
		}
		switch {
		case len(words) < size, bits != nil && words[1] != "BITS":
			return Kind{}, fmt.Errorf("SNOWFLAKE %s: want EPOCH '2026-01-01', TICK '1ms', TIME BITS n, WORKER BITS n and COUNTER BITS n behind it", strings.Join(words, " "))
		case bits != nil:
			if *bits, err = strconv.ParseUint(words[2], 10, 64); err != nil {
				return Kind{}, fmt.Errorf("%s BITS %s: want a number of bits", option, words[2])
			}
		case option == "EPOCH":
			l.Epoch, err = ParseEpoch(strings.Trim(words[1], "'"))
		case option == "TICK":
			l.Tick, err = ParseTick(strings.Trim(words[1], "'"))
		default:
			return Kind{}, fmt.Errorf("SNOWFLAKE has no option %s: want EPOCH, TICK, TIME BITS, WORKER BITS or COUNTER BITS", option)
		}
		words = words[size:]
	}
	if err != nil {
		return Kind{}, err
	}
	return NewSnowflake(l, jsonSafe)
}
