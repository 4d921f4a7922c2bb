package sequence

import (
	"context"
	"math"
	"math/rand/v2"
	"strings"
	"testing"
)

// numbersAbove lists the first n numbers of a member above id, one by one.
func numbersAbove(h share, id uint64, n int) (all []uint64) {
	for x := id + 1; len(all) < n; x++ {
		if h.gives(x) {
			all = append(all, x)
		}
	}
	return all
}

// gives says whether x is a number of a sequence that the member gives.
func (h share) gives(x uint64) bool {
	step := max(h.counts.step, 1)
	return h.owns(x) && x%step == h.counts.anchor%step
}

func TestBlocksAreDividedAsCountingOneByOneDoes(t *testing.T) {
	random := rand.New(rand.NewPCG(5, 1))
	for range 3000 {
		h := share{plan: 3, count: 2 + random.Uint64N(4), interleave: InterleaveBlock, block: 1 + random.Uint64N(12)}
		h.position = random.Uint64N(h.count)
		if random.IntN(2) == 0 {
			step := 2 + random.Uint64N(4)
			h.block *= step
			h = h.by(rule{step: step, anchor: 1 + random.Uint64N(step)})
		}
		id, floor, n := random.Uint64N(200), random.Uint64N(200), 1+random.Uint64N(40)
		from := max(id, floor)
		last, ok := h.end(id, floor, n)
		if !ok {
			t.Fatalf("%+v: no end of %d numbers above %d", h, n, from)
		}
		s := h.segment(last, n)
		if step := max(h.counts.step, 1); s.Last() > last || s.Last()+step <= last || s.Remaining() != h.whole(n) || s.Remaining() < n || s.Next() <= from {
			t.Fatalf("%+v: %d numbers above %d end at %d; got %+v", h, n, from, last, s)
		}
		all := numbersAbove(h, s.Next()-1, int(s.Remaining()))
		if all[len(all)-1] != s.Last() {
			t.Fatalf("%+v: %d numbers above %d: got the last %d, want %v", h, n, from, last, all)
		}
		// What is skipped is the rest of a block that is too short, or that of another begun block.
		if skipped := h.left(from, s.Next()-1); skipped > min(n, h.run()) && n <= h.run() || skipped >= h.run()+1 || h.counts.step == 0 && skipped >= min(n, h.block) {
			t.Fatalf("%+v: %d numbers above %d begin at %d: %d are skipped", h, n, from, s.Next(), skipped)
		}
		want := uint64(0)
		for x := from + 1; x <= last; x++ {
			if h.gives(x) {
				want++
			}
		}
		// A step that is cut in two may have its number in either part.
		if got := h.left(from, last); got != want && (h.counts.step == 0 || got+1 != want) {
			t.Fatalf("%+v: left(%d, %d) = %d, want %d", h, from, last, got, want)
		}
		highest := random.Uint64N(400)
		room, ok := h.room(floor, n, highest)
		for x := uint64(0); x < 420; x++ {
			end, _ := h.end(x, floor, n)
			if fits := end <= highest; fits != (ok && x <= room) {
				t.Fatalf("%+v: room(%d, %d, %d) = %d, %v; but at id %d they end at %d", h, floor, n, highest, room, ok, x, end)
			}
		}
		checkSegment(t, random, s, all)
	}
}

// checkSegment does what a segment does with its numbers, too.
func checkSegment(t *testing.T, random *rand.Rand, s Segment, all []uint64) {
	t.Helper()
	whole, numbers, apart := s, all, s.step
	for step := 0; len(all) > 0 && step < 30; step++ {
		if s.Next() != all[0] || s.Last() != all[len(all)-1] || s.Remaining() != uint64(len(all)) {
			t.Fatalf("%+v is not %v", s, all)
		}
		x := all[0] + random.Uint64N(all[len(all)-1]-all[0]+20) - min(all[0], 10)
		upTo, has := uint64(0), false
		for _, number := range all {
			if number <= x {
				upTo++
			}
			has = has || number == x
		}
		if s.upTo(x) != upTo || s.has(x) != has {
			t.Fatalf("%+v: upTo(%d) = %d, has = %v; want %d, %v", s, x, s.upTo(x), s.has(x), upTo, has)
		}
		if has {
			before, behind := s.around(x)
			if before.Remaining() != upTo-1 || behind.Remaining() != uint64(len(all))-upTo || behind.left > 0 && behind.Next() != all[upTo] {
				t.Fatalf("%+v around %d: %+v and %+v", s, x, before, behind)
			}
		}
		if cut := uint64(len(all)); cut > 1 {
			cut = 1 + random.Uint64N(cut-1)
			front, back := s, s
			front.Trim(cut)
			back.drop(cut)
			if joined := front; !joined.Join(back) || joined != s {
				t.Fatalf("%+v and %+v are not joined to %+v but to %+v", front, back, s, joined)
			}
		}
		n := 1 + random.Uint64N(8)
		first, ok := s.Take(n)
		fits := n <= uint64(len(all)) && all[n-1] == all[0]+(n-1)*apart
		if ok != fits || ok && first != all[0] {
			t.Fatalf("Take(%d) = %d, %v of %v", n, first, ok, all)
		}
		if !ok {
			skip := 0
			for skip < len(all) && (len(all)-skip < int(n) || all[skip+int(n)-1] != all[skip]+(n-1)*apart) {
				skip++
			}
			got, can := s.Skip(n)
			if can != (skip < len(all)) || can && got != uint64(skip) || !can && got != 0 {
				t.Fatalf("Skip(%d) = %d, %v of %v; want %d", n, got, can, all, skip)
			}
			if !can {
				return
			}
			all = all[skip:]
			continue
		}
		all = all[n:]
	}
	if s = whole; len(numbers) > 3 {
		s.drop(3)
		other, front := whole, whole
		other.plan++
		other.drop(3)
		front.Trim(3)
		if front.Join(other) {
			t.Fatal("segments of two plans were joined")
		}
	}
}

// The server counts as share does, up to the ends of 63 and 64 bits.
func TestServerCountsInBlocks(t *testing.T) {
	p := newPlace(t).withTable(t, map[string]uint64{"photos": 0})
	conn, err := p.open(t).servers.first().conn(context.Background())
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
		h := share{count: 2 + random.Uint64N(5), interleave: InterleaveBlock, block: []uint64{1, 2, 7, 100, 10_000, 1 << 31}[random.IntN(6)]}
		h.position = random.Uint64N(h.count)
		if random.IntN(3) == 0 {
			h.block *= 5
			h = h.by(rule{step: 5, anchor: 1 + random.Uint64N(5)})
		}
		id, floor := near(3*h.block), near(3*h.block)
		n := 1 + random.Uint64N(3*h.run())
		want, ok := h.end(id, floor, n)
		p.exec(t, "UPDATE sequence SET id = ?", id)
		g := "GREATEST(CAST(`id` AS UNSIGNED), CAST(? AS UNSIGNED))"
		text := h.reserveBlocks(g, n)
		args := make([]any, strings.Count(text, "?"))
		for i := range args {
			args[i] = floor
		}
		_, err := conn.ExecContext(t.Context(), "UPDATE "+newTable(p.schema, "sequence").full+" SET id = "+text, args...)
		if !ok {
			if beyond++; !isOutOfRange(err) {
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

func TestARowsRestIsOfItsResidue(t *testing.T) {
	for count := uint64(2); count < 6; count++ {
		for position := range count {
			h := share{count: count, position: position, interleave: InterleaveStep}
			for n := uint64(0); n < 40; n++ {
				want := max(n, position+1)
				for !h.owns(want) {
					want++
				}
				if got, ok := h.rest(n); !ok || got != want {
					t.Errorf("%d of %d: rest(%d) = %d, %v; want %d", position, count, n, got, ok, want)
				}
			}
			for n := uint64(math.MaxUint64); n > math.MaxUint64-10; n-- {
				if got, ok := h.rest(n); ok && (got < n || !h.owns(got)) {
					t.Errorf("%d of %d: rest(%d) = %d", position, count, n, got)
				}
			}
		}
	}
}
