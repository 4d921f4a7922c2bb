package sequence_test

import (
	"cmp"
	"context"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	"seqproxy/sequence"
	"seqproxy/sequence/define"
	"seqproxy/test/mysqltest"
)

// The benchmarks take from memory: enough numbers are reserved first, so that the server does not
// matter.
func benchmarkSequences(b *testing.B) *sequence.Sequences {
	p := newPlace(b).withTable(b, map[string]uint64{"photos": 0})
	s := p.open(b, cacheSize(1<<40))
	mustTake(b, s, "photos", 1)
	settled(b, s, "photos")
	b.ReportAllocs()
	return s
}

func BenchmarkTake(b *testing.B) {
	s := benchmarkSequences(b)
	ctx, name := context.Background(), []byte("photos")
	for b.Loop() {
		if _, err := s.Take(ctx, name, 1); err != nil {
			b.Fatal(err)
		}
	}
}

// kindsToMeasure are the kinds whose keys are measured against plain ones.
var kindsToMeasure = []string{
	"", "BIT_REVERSED", "ROTATE 1 DIGITS 18", "SHARD BITS 5", "SNOWFLAKE EPOCH '2020-01-01' TIME BITS 40 WORKER BITS 2 COUNTER BITS 20",
	"FORMAT 'PO-{yyyyMMdd}-{n:15}'", "FORMAT '{n:19}'", "UUID", "UUID BINARY",
}

// Each kind, from memory, by one caller and by several at once (-cpu 1,2).
func BenchmarkTakeOfEachKind(b *testing.B) {
	p := newPlace(b)
	s := p.open(b)
	for i, clause := range kindsToMeasure {
		name := []byte(fmt.Sprintf("k%d", i))
		create := sequence.CreateOptions{Name: string(name), Kind: kindOf(b, clause), Cache: define.MaxCache, IfNotExists: true}
		if create.Kind.HasClock() {
			create.Cache = 0
		}
		if _, err := s.Create(context.Background(), create); err != nil {
			b.Fatal(err)
		}
		b.Run(cmp.Or(clause, "plain"), func(b *testing.B) {
			b.ReportAllocs()
			b.RunParallel(func(pb *testing.PB) {
				for pb.Next() {
					if _, err := s.TakeRun(context.Background(), name, 1); err != nil {
						b.Error(err)
						return
					}
				}
			})
		})
	}
}

func BenchmarkTakeParallel(b *testing.B) {
	s := benchmarkSequences(b)
	ctx, name := context.Background(), []byte("photos")
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			if _, err := s.Take(ctx, name, 1); err != nil {
				b.Error(err)
				return
			}
		}
	})
}

// BenchmarkTakeAlias takes by a spelling that differs from the table's.
func BenchmarkTakeAlias(b *testing.B) {
	s := benchmarkSequences(b)
	mustTake(b, s, "PHOTOS", 1)
	ctx, name := context.Background(), []byte("PHOTOS")
	for b.Loop() {
		if _, err := s.Take(ctx, name, 1); err != nil {
			b.Fatal(err)
		}
	}
}

// One caller of an ORDER sequence, for which the server is asked for each number.
func BenchmarkOrderedTake(b *testing.B) {
	p := newPlace(b).withTable(b, nil)
	s := p.open(b)
	mustCreate(b, s, sequence.CreateOptions{Name: "photos", Order: true})
	mustTake(b, s, "photos", 1)
	b.ReportAllocs()
	for b.Loop() {
		mustTake(b, s, "photos", 1)
	}
}

// Many callers share the UPDATEs: per_update is how many.
func BenchmarkOrderedTakeOf64Callers(b *testing.B) {
	p := newPlace(b).withTable(b, nil)
	s := p.open(b)
	mustCreate(b, s, sequence.CreateOptions{Name: "photos", Order: true})
	mustTake(b, s, "photos", 1)
	before, reserved := s.Stats(), reservations(s, sequence.ReservedOK)
	b.SetParallelism(64 / runtime.GOMAXPROCS(0))
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			mustTake(b, s, "photos", 1)
		}
	})
	after := s.Stats()
	b.ReportMetric(float64(after.Given-before.Given)/float64(reservations(s, sequence.ReservedOK)-reserved), "per_update")
}

// BenchmarkTakeFarAway takes 20,000 numbers a second from a server that is 50 ms away, in segments
// that last a second. It reports how long the calls took (the histogram), and how many found an
// empty cache.
func BenchmarkTakeFarAway(b *testing.B) {
	const rate, batch = 20_000, 20
	p := newPlace(b).withTable(b, map[string]uint64{"photos": 0})
	link := mysqltest.NewLink(b, p.server.Addr())
	link.Delay(25 * time.Millisecond) // in each direction
	s := p.open(b, func(o *sequence.Options) { o.Servers[0].Addr, o.OutageCover = link.Addr(), time.Second })
	mustTake(b, s, "photos", 1)
	settled(b, s, "photos")
	c := sequence.Inside(s).Cache("photos")
	c.Pace(rate)
	for s.Stats().Cached < rate {
		mustTake(b, s, "photos", 1)
		time.Sleep(time.Millisecond)
	}
	ctx, name := context.Background(), []byte("photos")
	limits := []time.Duration{time.Microsecond, 10 * time.Microsecond, 100 * time.Microsecond, time.Millisecond, 10 * time.Millisecond, time.Hour}
	counts := make([]int, len(limits))
	var longest time.Duration
	before, reserved, begin := s.Stats(), reservations(s, sequence.ReservedOK), time.Now()
	for n := 0; b.Loop(); n++ {
		if n%batch == 0 {
			time.Sleep(time.Until(begin.Add(time.Duration(n) * time.Second / rate)))
		}
		asked := time.Now()
		if _, err := s.Take(ctx, name, 1); err != nil {
			b.Fatal(err)
		}
		took := time.Since(asked)
		longest = max(longest, took)
		for i, limit := range limits {
			if took < limit {
				counts[i]++
				break
			}
		}
	}
	after := s.Stats()
	b.ReportMetric(float64(after.Waits-before.Waits), "waits")
	b.ReportMetric(float64(reservations(s, sequence.ReservedOK)-reserved), "reservations")
	b.ReportMetric(float64(longest.Microseconds()), "longest-us")
	var text strings.Builder
	for i, limit := range limits {
		fmt.Fprintf(&text, "  < %v: %d", limit, counts[i])
	}
	b.Log(text.String())
}
