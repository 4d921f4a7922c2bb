package sequence_test

import (
	"context"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"seqproxy/sequence"
	"seqproxy/sequence/link"
	"seqproxy/sequence/segment"
	"seqproxy/sequence/store"
)

// The server counts as the rule does, up to the ends of 63 and 64 bits.
func TestServerCountsByTheRule(t *testing.T) {
	p := newPlace(t).withTable(t, map[string]uint64{"photos": 0})
	s := p.open(t)
	conn, err := sequence.Inside(s).First().Conn(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	text := sequence.Inside(s).First().Table.ReserveByRule(false)
	ends := []uint64{0, 1, 1 << 32, 1 << 53, 1 << 62, 1<<63 - 1, 1 << 63, math.MaxUint64}
	near := func() uint64 {
		n := ends[rand.IntN(len(ends))]
		if d := rand.Uint64N(30); rand.IntN(2) == 0 {
			return n - min(n, d)
		} else {
			return n + min(math.MaxUint64-n, d)
		}
	}
	for range 400 {
		r := segment.Rule{Step: []uint64{1, 2, 7, 10, near(), near()}[rand.IntN(6)], Anchor: max(near(), 1), Max: max(near(), 1)}
		r.Step = max(r.Step, 1)
		id, n := near(), 1+rand.Uint64N(5)
		p.exec(t, "UPDATE sequence SET id = ?", id)
		want := id
		if r.Remaining(id, r.Max) >= n {
			first, _ := r.Next(id, r.Max)
			seg := segment.Stepped(first, r.Step, n)
			want = seg.Last()
		}
		reported := id
		if bound, ok := r.Room(n, r.Max); ok {
			result, err := conn.ExecContext(context.Background(), text, r.Arguments("photos", n, bound)...)
			if err != nil {
				t.Fatalf("%+v: %d numbers after %d: %v", r, n, id, err)
			}
			if affected, _ := result.RowsAffected(); affected == 1 {
				last, _ := result.LastInsertId()
				reported = uint64(last)
			}
		}
		if got := p.id(t, "photos"); got != want || reported != want {
			t.Fatalf("%+v: %d numbers after %d: the row is at %d and the server says %d, want %d", r, n, id, got, reported, want)
		}
	}
}

// The server counts as share does, up to the ends of 63 and 64 bits.
func TestServerCountsInBlocks(t *testing.T) {
	p := newPlace(t).withTable(t, map[string]uint64{"photos": 0})
	conn, err := sequence.Inside(p.open(t)).First().Conn(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	random := rand.New(rand.NewPCG(7, 7))
	ends := []uint64{0, 0, 1000, 1 << 32, 1 << 53, 1 << 62, 1<<63 - 1, 1 << 63, math.MaxUint64}
	near := func(width uint64) uint64 {
		n, d := ends[random.IntN(len(ends))], random.Uint64N(width)
		if random.IntN(2) == 0 {
			return n - min(n, d)
		}
		return n + min(math.MaxUint64-n, d)
	}
	beyond := 0
	for range 1500 {
		h := segment.Share{Count: 2 + random.Uint64N(5), Interleave: sequence.InterleaveBlock, Block: []uint64{1, 2, 7, 100, 10_000, 1 << 31}[random.IntN(6)]}
		h.Position = random.Uint64N(h.Count)
		if random.IntN(3) == 0 {
			h.Block *= 5
			h = h.By(segment.Rule{Step: 5, Anchor: 1 + random.Uint64N(5)})
		}
		id, floor := near(3*h.Block), near(3*h.Block)
		n := 1 + random.Uint64N(3*h.Run())
		want, ok := h.End(id, floor, n)
		p.exec(t, "UPDATE sequence SET id = ?", id)
		g := "GREATEST(CAST(`id` AS UNSIGNED), CAST(? AS UNSIGNED))"
		text := h.ReserveBlocks(g, n)
		args := make([]any, strings.Count(text, "?"))
		for i := range args {
			args[i] = floor
		}
		_, err := conn.ExecContext(t.Context(), "UPDATE "+store.NewTable(p.schema, "sequence").Sequence+" SET id = "+text, args...)
		if !ok {
			if beyond++; !link.IsOutOfRange(err) {
				t.Fatalf("%+v: %d numbers above %d and %d: got %v, want that they are out of range", h, n, id, floor, err)
			}
			continue
		}
		if err != nil {
			t.Fatalf("%+v: %d numbers above %d and %d: %v", h, n, id, floor, err)
		}
		if got := p.id(t, "photos"); got != want {
			t.Fatalf("%+v: %d numbers above %d and %d: the server counts to %d, want %d", h, n, id, floor, got, want)
		}
	}
	if beyond < 20 {
		t.Errorf("only %d reservations were beyond 64 bits", beyond)
	}
}
