package torture

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"syscall"
	"time"

	"seqproxy/internal/child"
)

// account is what a proxy says of itself when it ends in order.
type account struct {
	Message  string `json:"event"`
	Reserved uint64 `json:"reserved"`
	Given    uint64 `json:"given"`
	Returned uint64 `json:"given_back"`
	Skipped  uint64 `json:"passed_over"`
	Lost     uint64 `json:"outcome_unknown"`
}

// checkAccounts looks for gaps that nothing explains. Fresh proxies give keys for a time in which the sequence server is killed and cut off, but no
// proxy dies with numbers in memory. Then they end in order, and what they say they did with their numbers is compared with how far the rows have moved,
// and with what clients received. It returns what the clients saw.
func (w *world) checkAccounts(ctx context.Context, all []*kind, limit time.Duration, before *clients, rng *rand.Rand) (ops []op, wrong []string, err error) {
	var some []*kind
	for _, k := range all {
		if k.sequence != "tickets64" { // its counter is no row
			some = append(some, k)
		}
	}
	for _, p := range w.proxies {
		if err := p.start(ctx); err != nil {
			return nil, nil, err
		}
	}
	rows, err := w.rows(ctx)
	if err != nil {
		return nil, nil, err
	}
	clients := startClients(w, some, rng, w.opts.Pause, before)
	n := newNemesis(w)
	n.rage(ctx, []fault{
		{name: "kill -9 of the sequence server", weight: 1, run: killSequenceServer},
		{name: "connections are cut", weight: 2, run: cutLink},
		{name: "answers are swallowed", weight: 2, run: weatherFault(swallow, 500*time.Millisecond)},
	}, limit, rng)
	wrong = n.wrong
	probes, unhealed := w.healed(ctx, clients)
	wrong = append(wrong, unhealed...)
	ops = append(clients.end(), probes...)
	var sum account
	for _, p := range w.proxies {
		if err := p.end(syscall.SIGTERM, endsWithin); err != nil {
			return ops, append(wrong, err.Error()), nil
		}
		run, _ := p.current()
		said, err := accountOf(run.Log)
		if err != nil {
			return ops, wrong, fmt.Errorf("proxy %d: %w", p.number, err)
		}
		sum.Reserved += said.Reserved
		sum.Given += said.Given
		sum.Returned += said.Returned
		sum.Skipped += said.Skipped
		sum.Lost += said.Lost
	}
	after, err := w.rows(ctx)
	if err != nil {
		return ops, wrong, err
	}
	var moved, received, unsure, direct, directUnsure uint64
	for name, id := range after {
		moved += id - rows[name]
	}
	for i := range ops {
		switch o := &ops[i]; {
		case o.proxy < 0 && o.first != 0:
			direct += o.n
		case o.proxy < 0:
			directUnsure += o.n
		case o.first != 0:
			received += o.n
		default:
			unsure += o.n
		}
	}
	text := fmt.Sprintf("the rows moved by %d, clients received %d through proxies (and asked for %d in vain) and %d directly (%d); the proxies say: %+v",
		moved, received, unsure, direct, directUnsure, sum)
	if low := sum.Reserved - sum.Returned + direct; moved < low || moved > low+sum.Lost+directUnsure {
		wrong = append(wrong, "GAP: the rows moved otherwise than by what the proxies reserved: "+text)
	}
	if sum.Given < received || sum.Given > received+unsure {
		wrong = append(wrong, "GAP: the proxies gave other numbers than clients received: "+text)
	}
	if sum.Reserved < sum.Given+sum.Returned+sum.Skipped {
		wrong = append(wrong, "GAP: the proxies gave more than they reserved: "+text)
	}
	return ops, wrong, nil
}

// accountOf reads the last line of a proxy's log.
func accountOf(path string) (found account, err error) {
	f, err := os.Open(path)
	if err != nil {
		return found, err
	}
	defer f.Close() //nolint:errcheck // only read
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		if !strings.Contains(lines.Text(), `"stopped"`) {
			continue
		}
		if err := json.Unmarshal(lines.Bytes(), &found); err != nil {
			return found, fmt.Errorf("%s: %w", lines.Text(), err)
		}
		return found, nil
	}
	return found, fmt.Errorf("its log does not say that it stopped%s", child.Tail(path))
}
