package torture

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"syscall"
	"time"

	"seqproxy/internal/network"
)

// calmly has fresh proxies give keys for a time in which servers are killed and cut off, but no proxy dies with numbers in memory. Then they end in order, and say what became of all that they
// had. It returns what the clients saw.
func (w *world) calmly(ctx context.Context, all []*kind, limit time.Duration, before *clients, rng *rand.Rand) (ops []op, wrong []string, err error) {
	for _, p := range w.proxies {
		if err := p.start(ctx); err != nil {
			return nil, nil, err
		}
	}
	clients := startClients(w, all, rng, w.opts.Pause, before)
	n := newNemesis(w)
	n.rage(ctx, []fault{
		{name: "kill -9 of a sequence server", weight: 1, run: killSequenceServer},
		{name: "connections are cut", weight: 2, run: cutLink},
		{name: "answers are swallowed", weight: 2, run: weatherFault(steady(network.Swallow), 500*time.Millisecond)},
		{name: "answers break off", weight: 1, run: weatherFault(cutShort, 500*time.Millisecond)},
	}, limit, rng)
	probes, unhealed := w.healed(ctx, clients)
	wrong = append(n.wrong, unhealed...)
	ops = append(clients.end(), probes...)
	for _, p := range w.proxies {
		if err := p.end(syscall.SIGTERM, endsWithin); err != nil {
			return ops, append(wrong, err.Error()), nil
		}
	}
	return ops, wrong, nil
}

// accounts are what became of all numbers that rows have passed, together.
type accounts struct {
	changes                        int // of rows
	reserved, unseen, back, others int // of them: by whom it is known, by whom it is not, lower, and set
	processes                      int
	killed                         int
}

// checkGaps looks for gaps that nothing explains, in the whole run: each change of a row is one that a process, a client or a fault says to have made, or may have; and each number that a client
// has is one that its proxy had reserved. What processes that ended in order say of their numbers has to add up.
func (w *world) checkGaps(ctx context.Context, ops []op, names []string) (sum accounts, wrong []string, err error) {
	journals, wrong, err := w.journals(ctx)
	if err != nil {
		return sum, nil, err
	}
	ledgers, err := w.ledgers()
	if err != nil {
		return sum, nil, err
	}
	sum.processes = len(ledgers)
	for _, l := range ledgers {
		sum.killed += 1 - asNumber(l.stopped)
	}
	ops = slices.Concat(ops, w.quiet.all())
	b := books{world: w, ledgers: ledgers, sum: &sum}
	for _, j := range journals {
		b.by = append(b.by, sortBySequence(j.changes))
	}
	rows, err := w.rows(ctx)
	if err != nil {
		return sum, nil, err
	}
	for i, m := range w.members {
		if len(w.members) == len(w.nodes) { // no group, whose nodes each have their own rows
			if err := whole(journals[i].changes, rows[i]); err != nil {
				return sum, nil, fmt.Errorf("%s: what it wrote down is not whole: %w", m.name, err)
			}
		}
	}
	for _, name := range names {
		wrong = append(wrong, few(b.settle(name, ops))...)
	}
	if w.plain() && slices.Contains(names, plainSequences[0]) {
		wrong = append(wrong, few(b.settleTickets(journals[0].tickets, ops))...)
	}
	return sum, wrong, nil
}

// whole makes sure that changes follow each other, and lead to where the rows stand.
func whole(changes []change, rows map[string]uint64) error {
	at := make(map[string]uint64)
	for i := range changes {
		c := &changes[i]
		if was, known := at[c.sequence]; known == c.made || was != c.before {
			return fmt.Errorf("sequence %s stood at %d, and changed at %v", c.sequence, was, c)
		}
		if at[c.sequence] = c.after; c.deleted {
			delete(at, c.sequence)
		}
	}
	for name, id := range rows {
		if last, known := at[name]; !known || last != id {
			return fmt.Errorf("sequence %s stands at %d, and was last at %d", name, id, last)
		}
	}
	return nil
}

func sortBySequence(all []change) map[string][]change {
	by := make(map[string][]change)
	for _, c := range all {
		by[c.sequence] = append(by[c.sequence], c)
	}
	return by
}

// books are all that is known of numbers.
type books struct {
	world   *world
	by      []map[string][]change // of each member, by sequence
	ledgers []ledger
	sum     *accounts
}

// settle compares what is known of one sequence.
func (b *books) settle(name string, ops []op) (wrong []string) {
	w := b.world
	blame := func(format string, args ...any) {
		wrong = append(wrong, fmt.Sprintf("GAP: sequence %s: ", name)+fmt.Sprintf(format, args...))
	}
	moves := make([][]move, len(w.members))
	for i := range ops {
		o := &ops[i]
		if o.kind.sequence == name && o.proxy < 0 && o.n > 0 { // an application's own UPDATE
			moves[o.member] = append(moves[o.member], taking(o.String()+": took", o.first > 0, w.clock.start.Add(o.end), o.first, o.first, 0, 1))
		}
	}
	for _, m := range w.quiet.moves() {
		if m.sequence == name {
			moves[0] = append(moves[0], m.move)
		}
	}
	for i := range b.ledgers {
		l := &b.ledgers[i]
		for server, some := range l.moves(name) {
			at := w.memberAt(server)
			if at < 0 {
				blame("proxy %d reserved on %s, which is no sequence server", l.proxy, server)
				continue
			}
			moves[at] = append(moves[at], some...)
		}
	}
	splits := make([]map[uint64]split, len(w.members)) // by where the row stood behind a reservation
	for i, m := range w.members {
		changes := b.by[i][name]
		if len(changes) == 0 {
			blame("%s: nothing is known of its row", m.name)
		}
		splits[i] = make(map[uint64]split)
		for _, c := range changes {
			if c.after > c.before {
				splits[i][c.after] = c.split
			}
		}
		unexplained, unmade := explain(changes, moves[i])
		for _, c := range unexplained {
			blame("%s: nothing explains that its row changed at %v\n%s", m.name, c, b.around(i, c, moves[i]))
		}
		for _, m := range unmade {
			blame("%s: its row never changed so: %s", w.members[i].name, m.what)
		}
		b.count(changes, moves[i])
	}
	return append(wrong, b.balances(name, b.receipts(name, ops), func(server string, last uint64) (split, bool) {
		at := w.memberAt(server)
		if at < 0 {
			return split{}, false
		}
		s, ok := splits[at][last]
		return s, ok
	})...)
}

// process is one of a proxy.
type process struct{ proxy, life int }

// receipts are what clients had of a sequence.
func (b *books) receipts(sequence string, ops []op) map[process]*receipts {
	got := make(map[process]*receipts)
	for i := range ops {
		o := &ops[i]
		if o.kind.sequence != sequence || o.proxy < 0 || o.n == 0 {
			continue
		}
		r := got[process{o.proxy, o.life}]
		if r == nil {
			r = &receipts{}
			got[process{o.proxy, o.life}] = r
		}
		if o.first == 0 {
			r.unsure += o.n
			continue
		}
		for n := o.first; n <= o.last(); n++ {
			r.numbers = append(r.numbers, n)
		}
	}
	return got
}

// balances has each process balance.
func (b *books) balances(sequence string, got map[process]*receipts, splitOf func(string, uint64) (split, bool)) (wrong []string) {
	for i := range b.ledgers {
		l := &b.ledgers[i]
		r := got[process{l.proxy, l.life}]
		if r == nil {
			r = &receipts{}
		}
		for _, text := range l.balance(sequence, splitOf, *r) {
			wrong = append(wrong, fmt.Sprintf("GAP: sequence %s: proxy %d, process %d: %s", sequence, l.proxy, l.life, text))
		}
	}
	return wrong
}

// count sums up what explains the changes of a row.
func (b *books) count(changes []change, moves []move) {
	for i := range moves {
		m := &moves[i]
		if m.taken == 0 {
			continue
		}
		b.sum.changes++
		switch c := &changes[m.taken-1]; {
		case c.after < c.before:
			b.sum.back++
		case m.sure:
			b.sum.reserved++
		case m.to == 0:
			b.sum.unseen++
		default:
			b.sum.others++
		}
	}
}

// around is what happened about the time of a change.
func (b *books) around(member int, c *change, moves []move) string {
	const near = 3 * time.Second
	changes := b.by[member][c.sequence]
	at := 0
	for &changes[at] != c {
		at++
	}
	about := b.world.about(at, moves)
	from, to := about.from.Add(-near), about.to.Add(near)
	var lines []string
	for i := range moves {
		if m := &moves[i]; m.at.After(from) && m.at.Before(to) && m.taken == 0 {
			lines = append(lines, fmt.Sprintf("    %s  %s", m.at.Format("15:04:05.000"), m.what))
		}
	}
	lines = few(lines)
	for _, other := range changes[max(0, at-2):min(len(changes), at+3)] {
		lines = append(lines, "    "+other.String())
	}
	for _, f := range b.world.trouble.around(from, to) {
		lines = append(lines, "    "+f)
	}
	return strings.Join(lines, "\n")
}

// about is when a change of a row was made, by the moves that made the ones before and behind it: the clock of its server may jump.
func (w *world) about(at int, moves []move) when {
	around := when{w.clock.start, time.Now()}
	before, behind := -1, -1
	for i := range moves {
		switch m := &moves[i]; {
		case m.taken == 0:
		case m.taken <= at && m.taken > before:
			before, around.from = m.taken, m.at
		case m.taken > at+1 && (behind < 0 || m.taken < behind):
			behind, around.to = m.taken, m.at
		}
	}
	return around
}

// memberAt is the sequence server that somebody calls so, -1 if there is none. The plan has one address for all proxies; a group is called by those of all nodes.
func (w *world) memberAt(address string) int {
	address, _, _ = strings.Cut(address, ",")
	for i, m := range w.members {
		nodes := []*server{m}
		if len(w.members) < len(w.nodes) {
			nodes = w.nodes
		}
		for _, s := range nodes {
			for _, p := range w.proxies {
				if w.links[linkPart(p.number, s)].Addr() == address {
					return i
				}
			}
		}
	}
	return -1
}
