package torture

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"syscall"
	"time"
)

// checkAccounts looks for gaps that nothing explains. Fresh proxies give keys for a time in which sequence servers are killed and cut off, but no
// proxy dies with numbers in memory, and nobody changes the plan. Then they end in order, and what they logged of their numbers is compared with the way
// that the rows have made on each server (retrace), and with what clients received (balance). It returns what the clients saw.
//
// A proxy that is killed takes with it what it would have logged last; a change of the plan sets all rows above all others; a sequence that begins again has its numbers twice. So
// the time of the faults before is not looked at for gaps, and a ticket table that counts by AUTO_INCREMENT has no row that could be.
func (w *world) checkAccounts(ctx context.Context, all []*kind, limit time.Duration, before *clients, rng *rand.Rand) (ops []op, sum entry, wrong []string, err error) {
	var some []*kind
	for _, k := range all {
		if k.sequence != "tickets64" {
			some = append(some, k)
		}
	}
	for _, p := range w.proxies {
		if err := p.start(ctx); err != nil {
			return nil, sum, nil, err
		}
	}
	books, err := w.open(ctx)
	if err != nil {
		return nil, sum, nil, err
	}
	clients := startClients(w, some, rng, w.opts.Pause, before)
	n := newNemesis(w)
	n.rage(ctx, []fault{
		{name: "kill -9 of a sequence server", weight: 1, run: killSequenceServer},
		{name: "connections are cut", weight: 2, run: cutLink},
		{name: "answers are swallowed", weight: 2, run: weatherFault(swallow, 500*time.Millisecond)},
	}, limit, rng)
	probes, unhealed := w.healed(ctx, clients)
	wrong = append(n.wrong, unhealed...)
	ops = append(clients.end(), probes...)
	for _, p := range w.proxies {
		if err := p.end(syscall.SIGTERM, endsWithin); err != nil {
			return ops, sum, append(wrong, err.Error()), nil
		}
	}
	sum, gaps, err := w.settle(ctx, books, ops)
	return ops, sum, append(wrong, gaps...), err
}

// books are what has to be known before numbers are given.
type books struct {
	splits []split             // of each member
	rows   []map[string]uint64 // the same
}

// open reads how the numbers are divided, and where the rows stand.
func (w *world) open(ctx context.Context) (b books, err error) {
	err = eventually(ctx, healWithin, func() (err error) {
		b.splits, err = w.splits(ctx)
		return err
	})
	if err != nil {
		return b, err
	}
	b.rows, err = w.rows(ctx)
	return b, err
}

// splits are which numbers are those of each member, as the plan in force has it.
func (w *world) splits(ctx context.Context) ([]split, error) {
	if w.unplanned() {
		return []split{{count: 1}}, nil
	}
	db, err := open(w.proxies[0].addr, "", true)
	if err != nil {
		return nil, err
	}
	defer db.Close() //nolint:errcheck // only read
	rows, err := db.QueryContext(ctx, "SHOW SEQPROXY SEQUENCE SERVERS")
	if err != nil {
		return nil, err
	}
	defer rows.Close() //nolint:errcheck // Err tells
	columns, err := rows.Columns()
	if err != nil {
		return nil, err
	}
	all := make([]split, len(w.members))
	found := 0
	for rows.Next() {
		values := make([]any, len(columns))
		for i := range values {
			values[i] = new(any)
		}
		if err := rows.Scan(values...); err != nil {
			return nil, err
		}
		line := make(map[string]string)
		for i, name := range columns {
			switch value := (*values[i].(*any)).(type) {
			case []byte:
				line[name] = string(value)
			default:
				line[name] = fmt.Sprint(value)
			}
		}
		s := split{count: uint64(len(w.members))}
		if _, err := fmt.Sscan(line["position"], &s.position); err != nil {
			continue // no member
		}
		if line["interleave"] != "step" {
			if _, err := fmt.Sscanf(line["interleave"], "block %d", &s.block); err != nil {
				return nil, fmt.Errorf("%v: %w", line, err)
			}
		}
		for i, m := range w.members {
			if w.links[linkPart(0, m)].addr() == line["server"] {
				all[i], found = s, found+1
			}
		}
	}
	if found != len(w.members) && rows.Err() == nil {
		return nil, fmt.Errorf("of %d sequence servers %d are members of the plan", len(w.members), found)
	}
	return all, rows.Err()
}

// settle compares the ledgers of proxies that have ended with the rows, and with what clients received since the books were opened. sum is what became of all numbers together.
func (w *world) settle(ctx context.Context, b books, ops []op) (sum entry, wrong []string, err error) {
	after, err := w.rows(ctx)
	if err != nil {
		return sum, nil, err
	}
	var ledgers []ledger
	for _, p := range w.proxies {
		run, life := p.current()
		l, err := readLedger(p.number, life, run.Log)
		if err != nil {
			return sum, nil, fmt.Errorf("proxy %d: %w", p.number, err)
		}
		for _, e := range l.entries {
			sum.add(&e)
		}
		ledgers = append(ledgers, l)
	}
	for _, name := range slices.Sorted(maps.Keys(after[0])) {
		wrong = append(wrong, few(w.settleOne(name, b, after, ledgers, ops))...)
	}
	return sum, wrong, nil
}

// settleOne is settle for one sequence.
func (w *world) settleOne(name string, b books, after []map[string]uint64, ledgers []ledger, ops []op) (wrong []string) {
	blame := func(format string, args ...any) {
		wrong = append(wrong, fmt.Sprintf("GAP: sequence %s: ", name)+fmt.Sprintf(format, args...))
	}
	got := make(map[int]*receipts) // by proxy; -1 is nobody's
	for i := -1; i < len(w.proxies); i++ {
		got[i] = &receipts{}
	}
	moves := make([][]move, len(w.members))
	for i := range ops {
		o := &ops[i]
		if o.kind.sequence != name {
			continue
		}
		r := got[o.proxy]
		switch {
		case o.first == 0:
			r.unsure += o.n
		default:
			for n := o.first; n <= o.last(); n++ {
				r.numbers = append(r.numbers, n)
			}
		}
		if o.proxy < 0 && o.n > 0 { // an application's own UPDATE
			moves[0] = append(moves[0], move{what: "directly", unsure: o.first == 0, first: o.first, last: o.first, n: 1})
		}
	}
	highest := uint64(0)
	for _, rows := range b.rows {
		highest = max(highest, rows[name])
	}
	for _, l := range ledgers { // a proxy may have read in a row what another one has reserved
		for _, e := range l.of(name) {
			highest = max(highest, e.Last)
		}
	}
	owner := make(map[uint64]int)
	for _, l := range ledgers {
		entries := l.of(name)
		kept, found := balance(entries, b.splits, *got[l.proxy])
		for _, text := range found {
			blame("proxy %d, process %d: %s", l.proxy, l.life, text)
		}
		for n := range kept {
			if other, ok := owner[n]; ok {
				blame("proxies %d and %d have both reserved %d", other, l.proxy, n)
			}
			owner[n] = l.proxy
		}
		for _, e := range entries {
			if e.Above > highest {
				blame("proxy %d reserved above %d, though nothing above %d is known to have been reserved", l.proxy, e.Above, highest)
			}
			if m, ok := e.move(l.proxy); ok {
				i := w.memberAt(l.proxy, e.Server)
				moves[i] = append(moves[i], m)
			}
		}
	}
	for i, m := range w.members {
		if err := retrace(b.splits[i], b.rows[i][name], after[i][name], moves[i]); err != nil {
			blame("%s: %v", m.name, err)
		}
	}
	return wrong
}

// move is what an entry says of a row.
func (e *entry) move(proxy int) (m move, ok bool) {
	m = move{what: fmt.Sprintf("proxy %d: %s", proxy, e.Event), first: e.First, last: e.Last, above: e.Above, n: e.Reserved}
	switch e.Event {
	case "numbers reserved":
	case "numbers given up unseen":
		m.unsure, m.n = true, e.Unknown
	case "numbers given back":
		m.back = true
	case "numbers not given back":
		m.back, m.unsure = true, true
		return m, e.Err != ""
	default:
		return m, false
	}
	return m, true
}

// add counts what an entry says.
func (e *entry) add(one *entry) {
	switch one.Event {
	case "numbers given back":
		e.Last += one.Held
	case "numbers not given back":
		e.Held += one.Held
	case "numbers of a sequence":
		e.Reserved += one.Reserved
		e.Given += one.Given
		e.Skipped += one.Skipped
		e.Unknown += one.Unknown
		e.Held += one.Held
	}
}

// memberAt is the sequence server that a proxy calls so.
func (w *world) memberAt(proxy int, address string) int {
	return max(0, slices.IndexFunc(w.members, func(s *server) bool { return w.links[linkPart(proxy, s)].addr() == address }))
}
