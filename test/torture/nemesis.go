package torture

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"seqproxy/internal/await"
)

// atOnce bounds the faults at one time, without those in the background.
const atOnce = 3

// fault is something bad that happens. It heals itself before it returns.
type fault struct {
	name   string
	weight int               // how often it is among all
	takes  time.Duration     // it does not begin so shortly before the end
	where  func(*world) bool // where it makes sense; nil: everywhere
	alone  bool              // it needs everything else to be well
	// background: other faults happen as if it did not.
	background bool
	// run makes it happen to a victim that it chooses, and returns errBusy if that suffers from
	// another fault. Any other error is wrong with the proxy.
	run func(ctx context.Context, n *nemesis, rng *rand.Rand) error
}

// errBusy: the chosen victim is not well.
var errBusy = errors.New("busy")

// nemesis makes faults happen.
type nemesis struct {
	world *world

	mu    sync.Mutex
	taken map[part]bool
	made  map[string]int // how often each fault happened
	busy  []fault        // those whose victims were not well, and which come again soon
	wrong []string       // findings of the faults
}

func newNemesis(w *world) *nemesis {
	return &nemesis{world: w, taken: make(map[part]bool), made: make(map[string]int)}
}

// rage makes faults happen for a time, at moments and to victims that rng chooses, and returns when
// all are healed. Each fault comes before any comes again. Where a busy machine needs longer it
// goes on until so many different ones were made, or all, for no more than three times as long.
func (n *nemesis) rage(ctx context.Context, all []fault, limit time.Duration, different int, rng *rand.Rand) {
	begun := time.Now()
	until, last := begun.Add(limit), begun.Add(3*limit)
	different = min(different, len(all))
	running := make(chan struct{}, atOnce) // also counts for faults that need to be alone: these fill it
	var group sync.WaitGroup
	defer group.Wait()
	var deck []fault
	for i := 0; ctx.Err() == nil && (time.Now().Before(until) || n.different() < different && time.Now().Before(last)); i++ {
		if len(deck) == 0 {
			for _, f := range all {
				for range f.weight {
					deck = append(deck, f)
				}
			}
			rng.Shuffle(len(deck), func(i, j int) { deck[i], deck[j] = deck[j], deck[i] })
			if i == 0 {
				deck = oneOfEach(deck)
			}
		}
		f := deck[0]
		deck = deck[1:]
		deck = slices.Insert(deck, min(len(deck), 3), n.again()...)
		one := rand.New(rand.NewPCG(rng.Uint64(), rng.Uint64()))
		pause := time.Duration(rng.Int64N(int64(700 * time.Millisecond)))
		end := until
		if n.timesMade(f) == 0 {
			end = last
		}
		if f.takes > 0 && time.Until(end) < f.takes {
			await.Pause(ctx, time.Millisecond)
			continue
		}
		places := 1
		switch {
		case f.alone:
			places = atOnce
		case f.background:
			places = 0
		}
		for range places {
			running <- struct{}{} // every fault ends
		}
		group.Go(func() {
			defer func() {
				for range places {
					<-running
				}
			}()
			switch err := n.once(ctx, f, one); {
			case errors.Is(err, errBusy):
				n.mu.Lock()
				n.busy = append(n.busy, f)
				n.mu.Unlock()
			case errors.Is(err, errLate):
				n.blame("%s: %s: %v", notHealed, f.name, err)
			case err != nil:
				n.blame("%s: %v", f.name, err)
			}
		})
		await.Pause(ctx, pause)
	}
}

// different returns how many different faults happened.
func (n *nemesis) different() int {
	n.mu.Lock()
	defer n.mu.Unlock()
	return len(n.made)
}

// timesMade returns how often a fault happened.
func (n *nemesis) timesMade(f fault) int {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.made[f.name]
}

// oneOfEach puts one of each fault before the others. Those in the background come first, as they
// hold up nobody, and then those that take long: otherwise a short run would never see them.
func oneOfEach(deck []fault) []fault {
	seen := make(map[string]bool)
	var first, others []fault
	for _, f := range deck {
		if seen[f.name] {
			others = append(others, f)
		} else {
			first = append(first, f)
		}
		seen[f.name] = true
	}
	rank := func(f fault) int {
		if f.background {
			return math.MinInt
		}
		return -int(f.takes)
	}
	slices.SortStableFunc(first, func(a, b fault) int { return cmp.Compare(rank(a), rank(b)) })
	return append(first, others...)
}

// again returns the faults that could not be made.
func (n *nemesis) again() []fault {
	n.mu.Lock()
	defer n.mu.Unlock()
	busy := n.busy
	n.busy = nil
	return busy
}

// once makes one fault happen. It waits a little for its victims to be well, and otherwise returns
// errBusy.
func (n *nemesis) once(ctx context.Context, f fault, rng *rand.Rand) error {
	for range 40 {
		err := f.run(ctx, n, rng)
		if !errors.Is(err, errBusy) {
			n.mu.Lock()
			n.made[f.name]++
			n.mu.Unlock()
			return err
		}
		if ctx.Err() != nil {
			return nil
		}
		await.Pause(ctx, 50*time.Millisecond)
	}
	return errBusy
}

// blame notes what is wrong with the proxy.
func (n *nemesis) blame(format string, args ...any) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.wrong = append(n.wrong, fmt.Sprintf(format, args...))
}

// claim takes parts for one fault alone, all or none.
func (n *nemesis) claim(parts ...part) (release func(), err error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, p := range parts {
		if n.taken[p] {
			return nil, errBusy
		}
	}
	for _, p := range parts {
		n.taken[p] = true
	}
	return func() {
		n.mu.Lock()
		defer n.mu.Unlock()
		for _, p := range parts {
			delete(n.taken, p)
		}
	}, nil
}

// hurt claims parts and notes when they suffer, until heal is called.
func (n *nemesis) hurt(name string, parts ...part) (heal func(), err error) {
	release, err := n.claim(parts...)
	if err != nil {
		return nil, err
	}
	w := n.world.trouble.begin(name, parts...)
	return func() {
		n.world.trouble.over(w)
		release()
	}, nil
}

// between returns a time from low to high.
func between(rng *rand.Rand, low, high time.Duration) time.Duration {
	return low + time.Duration(rng.Int64N(int64(high-low)+1))
}
