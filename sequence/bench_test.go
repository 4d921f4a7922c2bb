package sequence

import (
	"context"
	"testing"
)

// The benchmarks take from memory: enough numbers are reserved first, so that the server is out of the picture.
func benchmarkSequences(b *testing.B) *Sequences {
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
