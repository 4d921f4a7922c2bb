package torture

import (
	"math/rand/v2"
	"slices"
	"strings"
	"syscall"
	"testing"
)

// Server 1 of 3 has the blocks 11-20, 41-50, 71-80 ...
var second = split{count: 3, position: 1, block: 10}

func TestAReservationLiesWhereTheDocumentationSays(t *testing.T) {
	for _, c := range []struct {
		name         string
		split        split
		id, above, n uint64
		first, last  uint64
	}{
		{"one server", split{count: 1}, 5, 0, 3, 6, 8},
		{"the first block", second, 0, 0, 3, 11, 13},
		{"behind what was given", second, 13, 0, 3, 14, 16},
		{"to the end of a block", second, 13, 0, 7, 14, 20},
		{"not over its end", second, 13, 0, 8, 41, 48},
		{"at its end", second, 20, 0, 1, 41, 41},
		{"above what another server gave", second, 13, 35, 2, 41, 42},
		{"above that, in a block", second, 13, 44, 2, 45, 46},
		{"several blocks", second, 13, 0, 25, 41, 110},
		{"steps", split{count: 3, position: 1}, 2, 0, 3, 5, 11},
		{"steps above what another server gave", split{count: 3, position: 1}, 2, 9, 1, 11, 11},
		{"steps of the last one", split{count: 3, position: 2}, 3, 0, 2, 6, 9},
	} {
		if first, last := c.split.take(c.id, c.above, c.n); first != c.first || last != c.last {
			t.Errorf("%s: got %d-%d, want %d-%d", c.name, first, last, c.first, c.last)
		}
	}
}

func reservedMove(first, last, above, n uint64) move {
	return move{what: "reserved", first: first, last: last, above: above, n: n}
}

func TestAGapThatNothingExplainsIsFound(t *testing.T) {
	one := split{count: 1}
	unseen := move{what: "unseen", unsure: true, n: 4}
	back := func(first, last uint64) move { return move{what: "back", back: true, first: first, last: last} }
	for _, c := range []struct {
		name     string
		split    split
		from, to uint64
		moves    []move
		ok       bool
	}{
		{"nothing happened", one, 7, 7, nil, true},
		{"the row moved by itself", one, 7, 8, nil, false},
		{"one after the other", one, 0, 9, []move{reservedMove(4, 9, 0, 6), reservedMove(1, 3, 0, 3)}, true},
		{"a number between them", one, 0, 10, []move{reservedMove(5, 10, 0, 6), reservedMove(1, 3, 0, 3)}, false},
		{"a number behind them", one, 0, 10, []move{reservedMove(4, 9, 0, 6), reservedMove(1, 3, 0, 3)}, false},
		{"one that nobody made", one, 0, 3, []move{reservedMove(4, 9, 0, 6), reservedMove(1, 3, 0, 3)}, false},
		{"the same numbers twice", one, 0, 3, []move{reservedMove(1, 3, 0, 3), reservedMove(1, 3, 0, 3)}, false},
		{"an unknown outcome between them", one, 0, 13, []move{reservedMove(8, 13, 0, 6), reservedMove(1, 3, 0, 3), unseen}, true},
		{"an unknown outcome that was none", one, 0, 9, []move{reservedMove(4, 9, 0, 6), reservedMove(1, 3, 0, 3), unseen}, true},
		{"a smaller gap than the unknown outcome", one, 0, 12, []move{reservedMove(7, 12, 0, 6), reservedMove(1, 3, 0, 3), unseen}, false},
		{"given back", one, 0, 1, []move{reservedMove(1, 3, 0, 3), back(2, 3)}, true},
		{"given back and reserved again", one, 0, 5, []move{reservedMove(1, 3, 0, 3), back(2, 3), reservedMove(2, 5, 0, 4)}, true},
		{"reserved again though not given back", one, 0, 5, []move{reservedMove(1, 3, 0, 3), reservedMove(2, 5, 0, 4)}, false},
		{"nobody knows whether it was given back", one, 0, 5, []move{reservedMove(1, 3, 0, 3), {what: "back", back: true, unsure: true, first: 2, last: 3}, reservedMove(2, 5, 0, 4)}, true},

		{"blocks of others are no gap", second, 0, 46, []move{reservedMove(11, 20, 0, 10), reservedMove(41, 46, 0, 6)}, true},
		{"nor what is below another server's numbers", second, 0, 46, []move{reservedMove(11, 12, 0, 2), reservedMove(44, 46, 43, 3)}, true},
		{"but what is above those", second, 0, 46, []move{reservedMove(11, 12, 0, 2), reservedMove(44, 46, 42, 3)}, false},
		{"nor a rest of a block that is too short", second, 0, 46, []move{reservedMove(11, 15, 0, 5), reservedMove(41, 46, 0, 6)}, true},
		{"but one that is long enough", second, 0, 46, []move{reservedMove(11, 14, 0, 4), reservedMove(41, 46, 0, 6)}, false},
		{"a block of its own that was left out", second, 0, 76, []move{reservedMove(11, 20, 0, 10), reservedMove(71, 76, 0, 6)}, false},
		{"numbers of another server", second, 0, 26, []move{reservedMove(11, 20, 0, 10), reservedMove(21, 26, 0, 6)}, false},
		{"an application that moved the row", second, 0, 19, []move{reservedMove(11, 12, 0, 2)}, false},

		{"steps", split{count: 2, position: 1}, 2, 12, []move{reservedMove(4, 8, 0, 3), reservedMove(10, 12, 0, 2)}, true},
		{"a step that was left out", split{count: 2, position: 1}, 2, 14, []move{reservedMove(4, 8, 0, 3), reservedMove(12, 14, 0, 2)}, false},
		{"steps given back", split{count: 2, position: 1}, 2, 4, []move{reservedMove(4, 8, 0, 3), back(6, 8)}, true},
	} {
		if err := retrace(c.split, c.from, c.to, slices.Clone(c.moves)); (err == nil) != c.ok {
			t.Errorf("%s: got %v", c.name, err)
		}
	}
}

func TestWhatAProxySaysHasToBeWhatClientsReceived(t *testing.T) {
	reserved := entry{Event: "numbers reserved", First: 1, Last: 10, Reserved: 10}
	back := entry{Event: "numbers given back", First: 9, Last: 10, Held: 2}
	kept := entry{Event: "numbers not given back", First: 9, Last: 10, Held: 2}
	says := func(given, skipped, held uint64) entry {
		return entry{Event: "numbers of a sequence", Reserved: 10, Given: given, Skipped: skipped, Held: held}
	}
	for _, c := range []struct {
		name    string
		entries []entry
		got     receipts
		want    string
	}{
		{"all is said", []entry{reserved, back, says(3, 4, 1)}, receipts{numbers: []uint64{1, 2, 3}}, ""},
		{"an answer that did not arrive", []entry{reserved, kept, says(4, 4, 0)}, receipts{numbers: []uint64{1, 2, 3}, unsure: 1}, ""},
		{"a number that is nowhere", []entry{reserved, back, says(3, 3, 1)}, receipts{numbers: []uint64{1, 2, 3}}, "that makes 9"},
		{"given to nobody", []entry{reserved, back, says(4, 3, 1)}, receipts{numbers: []uint64{1, 2, 3}}, "it gave 4 numbers"},
		{"received and not given", []entry{reserved, back, says(2, 5, 1)}, receipts{numbers: []uint64{1, 2, 3}}, "it gave 2 numbers"},
		{"received and given back", []entry{reserved, back, says(3, 4, 1)}, receipts{numbers: []uint64{1, 2, 9}}, "clients received 9"},
		{"received and never reserved", []entry{reserved, back, says(3, 4, 1)}, receipts{numbers: []uint64{1, 2, 11}}, "clients received 11"},
		{"reserved twice", []entry{reserved, reserved, back, {Event: "numbers of a sequence", Reserved: 20, Given: 3, Skipped: 14, Held: 1}}, receipts{numbers: []uint64{1, 2, 3}}, "has 8 different ones"},
		{"reserved and not counted", []entry{reserved, reserved, back, says(3, 4, 1)}, receipts{numbers: []uint64{1, 2, 3}}, "says 10"},
		{"nothing said", []entry{reserved}, receipts{}, "says nothing"},
	} {
		_, found := balance(c.entries, []split{{count: 1}}, c.got)
		if text := strings.Join(found, "\n"); c.want == "" && text != "" || !strings.Contains(text, c.want) {
			t.Errorf("%s: got %q, want %q", c.name, text, c.want)
		}
	}
}

// On real servers: what is there without a planted gap is explained, and one number more in a row is found.
func TestAGapThatWasPlantedOnAServerIsFound(t *testing.T) {
	o := Options{Proxies: 2, Estate: "block2", Seqproxy: build(t, ""), Server: serverBinary(t), cache: "5/0s", keysOnly: true}
	w, err := newWorld(t.Context(), o, t.TempDir(), rand.New(rand.NewPCG(0, 0)))
	defer func() {
		if err := w.close(); err != nil {
			t.Error(err)
		}
	}()
	if err != nil {
		t.Fatal(err)
	}
	s := &scenario{t: t, w: w, n: newNemesis(w)}
	s.must(w.create(t.Context(), nil))
	for _, c := range []struct{ plant, want string }{
		{"", ""},
		{"UPDATE seqproxy.sequence SET id = id + 1 WHERE name = 'photos'", "GAP: sequence photos: sequence1: "},
	} {
		books, err := w.open(t.Context())
		s.must(err)
		s.ops = nil
		for range 4 {
			s.take(0, 7)
			s.take(1, 7)
		}
		if c.plant != "" {
			_, err := w.members[1].db.Exec(c.plant)
			s.must(err)
		}
		s.take(0, 20)
		s.take(1, 20)
		for _, p := range w.proxies {
			s.must(p.end(syscall.SIGTERM, endsWithin))
		}
		_, found, err := w.settle(t.Context(), books, s.ops)
		s.must(err)
		if text := strings.Join(found, "\n"); c.want == "" && text != "" || !strings.Contains(text, c.want) {
			t.Errorf("%q: got %q, want %q", c.plant, text, c.want)
		}
		for _, p := range w.proxies {
			s.must(p.start(t.Context()))
		}
	}
}
