package torture

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"syscall"
	"testing"
	"time"

	"seqproxy/internal/mysqltest"
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
	return taking("reserved", true, time.Time{}, first, last, above, n)
}

// changesOf are those of a row that goes from one of these to the next.
func changesOf(s split, ids ...uint64) (all []change) {
	for i, id := range ids[1:] {
		all = append(all, change{split: s, before: ids[i], after: id})
	}
	return all
}

func TestAGapThatNothingExplainsIsFound(t *testing.T) {
	one := split{count: 1}
	steps := split{count: 2, position: 1}
	unseen := taking("unseen", false, time.Time{}, 0, 0, 0, 4)
	set := func(to uint64) move { return setting("set", false, time.Time{}, to) }
	back := func(first, last uint64) move {
		return move{what: "back", sure: true, fits: func(c *change) bool { return c.before == last && c.after < first }}
	}
	for _, c := range []struct {
		name    string
		changes []change
		moves   []move
		unknown int // changes that nothing explains
		unmade  int // moves that must have been and were not
	}{
		{"nothing happened", nil, nil, 0, 0},
		{"the row moved by itself", changesOf(one, 7, 8), nil, 1, 0},
		{"one after the other", changesOf(one, 0, 3, 9), []move{reservedMove(4, 9, 0, 6), reservedMove(1, 3, 0, 3)}, 0, 0},
		{"a number between them", changesOf(one, 0, 3, 4, 10), []move{reservedMove(5, 10, 0, 6), reservedMove(1, 3, 0, 3)}, 1, 0},
		{"one that nobody made", changesOf(one, 0, 3), []move{reservedMove(4, 9, 0, 6), reservedMove(1, 3, 0, 3)}, 0, 1},
		{"the same numbers twice", changesOf(one, 0, 3), []move{reservedMove(1, 3, 0, 3), reservedMove(1, 3, 0, 3)}, 0, 1},
		{"more than was logged", changesOf(one, 0, 4), []move{reservedMove(1, 3, 0, 3)}, 1, 1},
		{"an unknown outcome between them", changesOf(one, 0, 3, 7, 13), []move{reservedMove(8, 13, 0, 6), reservedMove(1, 3, 0, 3), unseen}, 0, 0},
		{"an unknown outcome that was none", changesOf(one, 0, 3), []move{reservedMove(1, 3, 0, 3), unseen}, 0, 0},
		{"a smaller gap than the unknown outcome", changesOf(one, 0, 3, 6), []move{reservedMove(1, 3, 0, 3), unseen}, 1, 0},
		{"two gaps and one unknown outcome", changesOf(one, 0, 4, 8), []move{unseen}, 1, 0},
		{"a reservation that looks like the unknown outcome", changesOf(one, 0, 4), []move{unseen, reservedMove(1, 4, 0, 4)}, 0, 0},
		{"given back", changesOf(one, 0, 3, 1), []move{reservedMove(1, 3, 0, 3), back(2, 3)}, 0, 0},
		{"given back as it said, and the row stays", changesOf(one, 0, 3), []move{reservedMove(1, 3, 0, 3), back(2, 3)}, 0, 1},
		{"lower without a word", changesOf(one, 0, 3, 1), []move{reservedMove(1, 3, 0, 3)}, 1, 0},
		{"raised for a reason", changesOf(one, 0, 70, 73), []move{set(70), reservedMove(71, 73, 0, 3)}, 0, 0},
		{"raised further than that", changesOf(one, 0, 71), []move{set(70)}, 1, 0},
		{"frozen and where it was", changesOf(one, 3, frozen, 3), []move{set(frozen), set(3)}, 0, 0},

		{"blocks of others are no gap", changesOf(second, 0, 20, 46), []move{reservedMove(11, 20, 0, 10), reservedMove(41, 46, 0, 6)}, 0, 0},
		{"nor what is below another server's numbers", changesOf(second, 0, 12, 46), []move{reservedMove(11, 12, 0, 2), reservedMove(44, 46, 43, 3)}, 0, 0},
		{"but what is above those", changesOf(second, 0, 12, 46), []move{reservedMove(11, 12, 0, 2), reservedMove(44, 46, 42, 3)}, 1, 1},
		{"nor a rest of a block that is too short", changesOf(second, 0, 15, 46), []move{reservedMove(11, 15, 0, 5), reservedMove(41, 46, 0, 6)}, 0, 0},
		{"but one that is long enough", changesOf(second, 0, 14, 46), []move{reservedMove(11, 14, 0, 4), reservedMove(41, 46, 0, 6)}, 1, 1},
		{"a block of its own that was left out", changesOf(second, 0, 20, 76), []move{reservedMove(11, 20, 0, 10), reservedMove(71, 76, 0, 6)}, 1, 1},
		{"numbers of another server", changesOf(second, 0, 20, 26), []move{reservedMove(11, 20, 0, 10), reservedMove(21, 26, 0, 6)}, 1, 1},

		{"steps", changesOf(steps, 2, 8, 12), []move{reservedMove(4, 8, 0, 3), reservedMove(10, 12, 0, 2)}, 0, 0},
		{"a step that was left out", changesOf(steps, 2, 8, 14), []move{reservedMove(4, 8, 0, 3), reservedMove(12, 14, 0, 2)}, 1, 1},
	} {
		unexplained, unmade := explain(c.changes, c.moves)
		if len(unexplained) != c.unknown || len(unmade) != c.unmade {
			t.Errorf("%s: %d changes are not explained and %d moves not made, want %d and %d", c.name, len(unexplained), len(unmade), c.unknown, c.unmade)
		}
	}
}

func TestWhatAServerWroteDownHasToBeWhole(t *testing.T) {
	made := change{sequence: "a", made: true, after: 3}
	for _, c := range []struct {
		name    string
		changes []change
		rows    map[string]uint64
		want    string
	}{
		{"all is there", []change{made, {sequence: "a", before: 3, after: 5}}, map[string]uint64{"a": 5}, ""},
		{"made, deleted and made", []change{made, {sequence: "a", before: 3, deleted: true}, made}, map[string]uint64{"a": 3}, ""},
		{"a hole", []change{made, {sequence: "a", before: 4, after: 5}}, map[string]uint64{"a": 5}, "stood at 3, and changed"},
		{"no beginning", []change{{sequence: "a", before: 0, after: 5}}, map[string]uint64{"a": 5}, "changed at"},
		{"no end", []change{made}, map[string]uint64{"a": 5}, "stands at 5, and was last at 3"},
	} {
		err := whole(c.changes, c.rows)
		if text := fmt.Sprint(err); c.want == "" && err != nil || c.want != "" && !strings.Contains(text, c.want) {
			t.Errorf("%s: got %v, want %q", c.name, err, c.want)
		}
	}
}

func TestWhatAProxySaysHasToBeWhatClientsReceived(t *testing.T) {
	reserved := entry{Event: entryReserved, First: 1, Last: 10, Reserved: 10}
	back := entry{Event: entryBack, First: 9, Last: 10, Held: 2}
	again := entry{Event: entryReserved, First: 11, Last: 20, Reserved: 10}
	vain := entry{Event: entryVain, First: 11, Last: 20, Held: 10}
	says := func(given, skipped, held uint64) entry {
		return entry{Event: entrySum, Reserved: 10, Given: given, Skipped: skipped, Held: held}
	}
	for _, c := range []struct {
		name    string
		entries []entry
		got     receipts
		want    string
	}{
		{"all is said", []entry{reserved, back, says(3, 4, 1)}, receipts{numbers: []uint64{1, 2, 3}}, ""},
		{"an answer that did not arrive", []entry{reserved, says(4, 6, 0)}, receipts{numbers: []uint64{1, 2, 3}, unsure: 1}, ""},
		{"in vain", []entry{reserved, again, vain, says(3, 6, 1)}, receipts{numbers: []uint64{1, 2, 3}}, ""},
		{"in vain, and given back", []entry{reserved, again, vain, {Event: entryBack, First: 11, Last: 20, Held: 10}, says(3, 6, 1)}, receipts{numbers: []uint64{1, 2, 3}}, ""},
		{"a number that is nowhere", []entry{reserved, back, says(3, 3, 1)}, receipts{numbers: []uint64{1, 2, 3}}, "that makes 9"},
		{"given to nobody", []entry{reserved, back, says(4, 3, 1)}, receipts{numbers: []uint64{1, 2, 3}}, "it gave 4 numbers"},
		{"received and not given", []entry{reserved, back, says(2, 5, 1)}, receipts{numbers: []uint64{1, 2, 3}}, "it gave 2 numbers"},
		{"received and given back", []entry{reserved, back, says(3, 4, 1)}, receipts{numbers: []uint64{1, 2, 9}}, "clients received 9"},
		{"received and never reserved", []entry{reserved, back, says(3, 4, 1)}, receipts{numbers: []uint64{1, 2, 11}}, "clients received 11"},
		{"received twice", []entry{reserved, back, says(3, 4, 1)}, receipts{numbers: []uint64{1, 2, 2}}, "clients received 2"},
		{"reserved and not counted", []entry{reserved, again, back, says(3, 4, 1)}, receipts{numbers: []uint64{1, 2, 3}}, "says 10"},
		{"nothing said", []entry{reserved}, receipts{}, "says nothing"},
	} {
		l := ledger{stopped: true}
		for _, e := range c.entries {
			e.Sequence = "photos"
			l.entries = append(l.entries, e)
		}
		splitOf := func(string, uint64) (split, bool) { return split{count: 1}, true }
		found := l.balance("photos", splitOf, c.got)
		if text := strings.Join(found, "\n"); c.want == "" && text != "" || !strings.Contains(text, c.want) {
			t.Errorf("%s: got %q, want %q", c.name, text, c.want)
		}
		l.stopped = false // killed: it could not say all
		found = l.balance("photos", splitOf, c.got)
		if text := strings.Join(found, "\n"); strings.Contains(c.want, "clients received") != (text != "") {
			t.Errorf("%s, killed: got %q", c.name, text)
		}
	}
}

// On real servers, with processes that are killed and a change of servers: what is there without a planted gap is explained, and one number more in a row is found.
func TestAGapThatWasPlantedOnAServerIsFound(t *testing.T) {
	s, end := newScenario(t.Context(), t, "block2", mysqltest.Program(t))
	defer end()
	w := s.w
	s.must(w.create(t.Context(), nil))
	rng := rand.New(rand.NewPCG(0, 0))
	for _, c := range []struct{ plant, want string }{
		{"", ""},
		{"UPDATE seqproxy.sequence SET id = id + 1 WHERE name = 'photos'", "GAP: sequence photos: sequence1: nothing explains that its row changed"},
	} {
		for range 4 {
			s.take(0, 7)
			s.take(1, 7)
		}
		s.crash(0)
		s.must(changeMembers(t.Context(), s.n, rng))
		if c.plant != "" {
			_, err := w.members[1].db.Exec(c.plant)
			s.must(err)
		}
		s.take(0, 20)
		s.take(1, 20)
		for _, p := range w.proxies {
			s.must(p.end(syscall.SIGTERM, endsWithin))
		}
		sum, found, err := w.checkGaps(t.Context(), s.ops, []string{"photos"})
		s.must(err)
		if text := strings.Join(found, "\n"); c.want == "" && text != "" || !strings.Contains(text, c.want) {
			t.Errorf("%q: got %q, want %q", c.plant, text, c.want)
		}
		if sum.reserved == 0 || sum.killed == 0 || sum.others == 0 {
			t.Errorf("%q: %+v: want reservations, killed processes and rows that were set", c.plant, sum)
		}
		for _, p := range w.proxies {
			s.must(p.start(t.Context()))
		}
	}
}

func TestAGapInTheTicketTableIsFound(t *testing.T) {
	c := clock{time.Now()}
	at := func(seconds int) time.Time { return c.start.Add(time.Duration(seconds) * time.Second) }
	reserved := entry{Event: entryReserved, Sequence: ticketName, First: 1, Last: 10, Reserved: 10, Time: at(1)}
	asked := entry{Event: entryAsked, Sequence: ticketName, Wanted: 5, Above: 10, Time: at(2)}
	direct := op{kind: &kind{name: "direct", sequence: ticketTable}, proxy: -1, first: 16, n: 1, begin: 3 * time.Second, end: 3 * time.Second}
	late := entry{Event: entryReserved, Sequence: ticketName, First: 17, Last: 20, Reserved: 4, Time: at(60)}
	later := entry{Event: entryReserved, Sequence: ticketName, First: 24, Last: 24, Reserved: 1, Time: at(63)}
	rest := entry{Event: entryReserved, Sequence: ticketName, First: 12, Last: 15, Reserved: 4, Time: at(3)}
	for _, c := range []struct {
		name    string
		entries []entry
		crash   bool
		written []uint64
		want    string
	}{
		{"all is known", []entry{reserved}, false, []uint64{1, 10}, ""},
		{"a killed process had asked for more", []entry{reserved, asked}, false, []uint64{10, 15, 16}, ""},
		{"more than it had asked for", []entry{reserved, asked}, false, []uint64{10, 17}, "1 numbers from 17 to 17"},
		{"not in the order in which they were written", []entry{reserved, asked}, false, []uint64{17, 10}, "1 numbers from 17 to 17"},
		{"nobody had asked", []entry{reserved}, false, []uint64{10, 16}, "5 numbers from 11 to 15"},
		{"of unwritten numbers nobody has to tell", []entry{reserved}, false, []uint64{10}, ""},
		{"somebody had asked long before", []entry{reserved, rest, late, later, asked}, true, []uint64{16, 24}, "3 numbers from 21 to 23"},
		{"what a crash of the server has undone", []entry{reserved, rest}, true, []uint64{10, 16}, ""},
		{"and more", []entry{reserved}, true, []uint64{10, 16}, "5 numbers from 11 to 15"},
		{"without a crash", []entry{reserved, rest}, false, []uint64{10, 16}, "1 numbers from 11 to 11"},
		{"reserved twice", []entry{reserved, reserved}, false, nil, "reserved 1, which was somebody's"},
	} {
		w := &world{clock: clock{at(0)}, trouble: &trouble{clock: clock{at(0)}}, sequence: &server{name: "sequence0"}}
		if c.crash {
			w.trouble.note(window{fault: "kill -9", parts: []part{w.sequence.part()}, begin: 2 * time.Second, end: 3 * time.Second})
		}
		b := &books{world: w, ledgers: []ledger{{entries: c.entries}}}
		found := b.settleTickets(c.written, []op{direct})
		if text := strings.Join(found, "\n"); c.want == "" && text != "" || !strings.Contains(text, c.want) {
			t.Errorf("%s: got %q, want %q", c.name, text, c.want)
		}
	}
}
