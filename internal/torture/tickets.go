package torture

import (
	"fmt"
	"slices"
	"time"
)

// ticketName is how proxies call the ticket table.
const ticketName = schemaOfSequences + "." + ticketTable

// doubt is why numbers of the ticket table may be nobody's: at most n, about a time.
type doubt struct {
	what string
	at   time.Time
	n    uint64
}

// doubtful is how far from its doubt a gap may lie in time: what is asked for when a server does not answer is done when it does.
const doubtful = 20 * time.Second

// settleTickets is settle for the ticket table, whose counter is no row. Each of its numbers was reserved by a process that logged it, or given to a client of the server itself, or to a
// row that a process made; and each that it wrote, too. What is left is bounded: by what was asked for about that time without an answer, and by one number for each
// statement that a crash of the server may have undone, since AUTO_INCREMENT does not go back. The time of a number is told by who has the ones beside it, not by the server, whose clock may jump.
func (b *books) settleTickets(written []uint64, ops []op) (wrong []string) {
	w := b.world
	blame := func(format string, args ...any) {
		wrong = append(wrong, "GAP: "+ticketName+": "+fmt.Sprintf(format, args...))
	}
	known := make(map[uint64]when)
	var doubts []doubt
	for i := range ops {
		switch o := &ops[i]; {
		case o.kind.sequence != ticketTable || o.proxy >= 0 || o.n == 0:
		case o.first > 0:
			known[o.first] = when{w.clock.start.Add(o.begin), w.clock.start.Add(o.end)}
		default:
			doubts = append(doubts, doubt{o.String(), w.clock.start.Add(o.end), 1})
		}
	}
	for i := range b.ledgers {
		l := &b.ledgers[i]
		var asked *entry
		for _, e := range l.of(ticketName) {
			switch e.Event {
			case entryAsked:
				asked = &e
			case entryReserved:
				at := when{e.Time, e.Time}
				if asked != nil {
					at.from = asked.Time
				}
				asked = nil
				for n := e.First; n <= e.Last; n++ {
					if _, twice := known[n]; twice {
						blame("proxy %d, process %d reserved %d, which was somebody's", l.proxy, l.life, n)
					}
					known[n] = at
				}
			case entryUnseen:
				asked = nil
				doubts = append(doubts, doubt{fmt.Sprintf("proxy %d, process %d may have reserved", l.proxy, l.life), e.Time, e.Unknown})
			case entryStub: // beside a reservation, which goes on
				doubts = append(doubts, doubt{fmt.Sprintf("proxy %d, process %d may have given a stub's row", l.proxy, l.life), e.Time, e.Unknown})
			case entrySet:
				known[e.At] = when{e.Time, e.Time}
			}
		}
		if asked != nil && !l.stopped {
			doubts = append(doubts, doubt{fmt.Sprintf("proxy %d, process %d asked last for", l.proxy, l.life), asked.Time, asked.Wanted})
		}
	}
	for _, at := range w.trouble.begun(w.sequence.part()) {
		doubts = append(doubts, doubt{"a crash of the server", at, uint64(len(w.proxies)) + 1}) // each proxy reserves one at a time; one client is there directly
	}
	wrong = append(wrong, b.balances(ticketName, b.receipts(ticketTable, ops), func(string, uint64) (split, bool) { return split{count: 1}, true })...)
	if len(written) == 0 {
		return wrong
	}
	slices.SortStableFunc(doubts, func(a, b doubt) int { return a.at.Compare(b.at) }) // the first to be over are used first
	before := when{from: w.clock.start}
	for n, last := uint64(1), slices.Max(written); n <= last; n++ {
		if at, ok := known[n]; ok {
			before = at
			continue
		}
		first, behind := n, when{to: time.Now()}
		for ; n < last; n++ {
			if _, ok := known[n+1]; ok {
				break
			}
		}
		if at, ok := known[n+1]; ok {
			behind = at
		}
		if !cover(doubts, n-first+1, before.from, behind.to) {
			blame("%d numbers from %d to %d are nobody's, after %s and before %s", n-first+1, first, n, before.from.Format("15:04:05"), behind.to.Format("15:04:05"))
		}
	}
	return wrong
}

// when is a time that is known in part: not before from, and not after to.
type when struct{ from, to time.Time }

// cover takes doubts that explain n numbers between two times, and reports whether there are enough. Each counts once.
func cover(doubts []doubt, n uint64, from, to time.Time) bool {
	for i := range doubts {
		d := &doubts[i]
		if d.n == 0 || d.at.Before(from.Add(-doubtful)) || d.at.After(to.Add(doubtful)) {
			continue
		}
		took := min(d.n, n)
		n -= took
		d.n -= took
	}
	return n == 0
}
