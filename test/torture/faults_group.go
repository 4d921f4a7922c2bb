package torture

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"

	"seqproxy/internal/await"
	"seqproxy/test/network"
)

// groupFaults are what happens to a primary and its replicas.
func groupFaults() []fault {
	return []fault{
		{name: "the primary is killed, and a replica takes over", weight: 2, takes: 5 * time.Second, where: (*world).grouped, run: failOver},
		{name: "the primary is cut off and lives on, and a replica takes over", weight: 3, takes: 8 * time.Second, where: (*world).grouped, run: splitBrain},
		{name: "a replica takes over in order", weight: 1, takes: 4 * time.Second, where: (*world).grouped, run: switchOver},
		{name: "kill -9 of all nodes and a proxy without its state", weight: 1, takes: 15 * time.Second, alone: true, where: (*world).grouped, run: killGroup},
		{name: "replicas lag", weight: 2, takes: 3 * time.Second, where: (*world).grouped, run: lag},
	}
}

// takeGroup claims the whole group for one fault, once it is well.
func (n *nemesis) takeGroup(ctx context.Context, name string, more ...part) (heal func(), err error) {
	g := n.world.group
	if heal, err = n.hurt(name, append(g.parts(), more...)...); err != nil {
		return nil, err
	}
	if err := g.whole(ctx); err != nil {
		heal()
		return nil, err
	}
	return heal, nil
}

// next returns a replica that is to become the primary.
func (g *group) next(rng *rand.Rand) *server {
	all := g.replicas()
	return all[rng.IntN(len(all))]
}

// fallBehind makes replicas miss what happens from now on: they do not receive it, or do not apply
// what they received.
func (g *group) fallBehind(ctx context.Context, rng *rand.Rand, replicas ...*server) error {
	for _, s := range replicas {
		thread := []string{" IO_THREAD", " SQL_THREAD", ""}[rng.IntN(3)]
		if err := s.exec(ctx, "STOP "+g.replica()+thread); err != nil {
			return err
		}
	}
	return nil
}

// failOver kills the primary, mostly after a time in which replicas received nothing, and makes a
// replica the new one.
func failOver(ctx context.Context, n *nemesis, rng *rand.Rand) error {
	heal, err := n.takeGroup(ctx, "fail-over")
	if err != nil {
		return err
	}
	defer heal()
	g := n.world.group
	free := context.WithoutCancel(ctx)
	old, next := g.primary, g.next(rng)
	var deaf []*server
	for _, s := range g.replicas() {
		if rng.IntN(2) == 0 || s == next && rng.IntN(3) > 0 {
			deaf = append(deaf, s)
		}
	}
	if err := g.fallBehind(free, rng, deaf...); err != nil {
		return err
	}
	await.Pause(ctx, between(rng, 0, 1500*time.Millisecond))
	if err := old.Kill(); err != nil {
		return err
	}
	await.Pause(ctx, between(rng, 0, time.Second))
	position, err := g.promote(free, next)
	if err != nil {
		return err
	}
	await.Pause(ctx, between(rng, 0, 500*time.Millisecond))
	if err := g.followAll(free, position, old); err != nil {
		return err
	}
	if rng.IntN(2) == 0 { // it comes back before any client has asked for a number, with its rows
		if err := old.Restart(free); err != nil {
			return err
		}
	}
	return g.settle(free)
}

// followAll makes replicas follow the new primary, which stood at position, and notes those that
// have come further.
func (g *group) followAll(ctx context.Context, position string, but *server) (err error) {
	for _, s := range g.replicas() {
		if s == but {
			g.strayed[s] = true
			continue
		}
		if g.strayed[s], err = g.beyond(ctx, s, position); err != nil {
			return err
		}
		if err := g.follow(ctx, s, g.primary, position); err != nil {
			return err
		}
	}
	return nil
}

// settle waits until the new primary gives numbers, and then sets up anew the nodes that have what
// it lacks.
func (g *group) settle(ctx context.Context) error {
	if err := g.claimed(ctx); err != nil {
		return err
	}
	for _, s := range g.replicas() {
		if !g.strayed[s] {
			continue
		}
		if !s.Running() {
			if err := s.Restart(ctx); err != nil {
				return err
			}
		}
		had, err := s.rows(ctx)
		if err != nil {
			return err
		}
		for name, id := range had {
			if id > g.stood[name] {
				g.losses++
				break
			}
		}
		if err := g.rebuild(ctx, s); err != nil {
			return err
		}
		delete(g.strayed, s)
	}
	return g.whole(ctx)
}

// killGroup kills all nodes within a second, and a proxy whose state is lost. Of three, a replica
// may not have flushed for a while. Any of them is the primary then, with its own rows.
func killGroup(ctx context.Context, n *nemesis, rng *rand.Rand) error {
	g, p := n.world.group, n.someProxy(rng)
	heal, err := n.hurt("kill -9 of all nodes", n.everywhere()...)
	if err != nil {
		return err
	}
	defer heal()
	if err := errors.Join(g.whole(ctx), p.crashed()); err != nil {
		return err
	}
	free := context.WithoutCancel(ctx)
	old, next, forgets := g.primary, n.someSequenceServer(rng), g.next(rng)
	flush := rng.IntN(3)
	if len(n.world.nodes) < 3 {
		flush = 1 // otherwise no node records how far the primary may go
	}
	if err := forgets.flushes(free, flush); err != nil {
		return err
	}
	if next != old && rng.IntN(2) == 0 {
		if err := g.fallBehind(free, rng, next); err != nil {
			return err
		}
	}
	if err := n.killAll(free, p, rng); err != nil {
		return err
	}
	if err := next.Restart(free); err != nil {
		return err
	}
	position, err := g.promote(free, next)
	if err != nil {
		return err
	}
	for _, s := range g.replicas() {
		if err := s.Restart(free); err != nil {
			return err
		}
	}
	if next != old {
		if err := g.followAll(free, position, old); err != nil {
			return err
		}
	}
	if flush != 1 && forgets != next {
		g.strayed[forgets] = true // it may have lost what its position includes
	}
	if err := p.start(free); err != nil {
		return err
	}
	return g.settle(free)
}

// splitBrain cuts the primary off from its replicas, and the proxies from one side or the other,
// and makes a replica the new primary. For a while both accept writes.
func splitBrain(ctx context.Context, n *nemesis, rng *rand.Rand) error {
	w, g := n.world, n.world.group
	var ways []part
	for _, p := range w.proxies {
		for _, s := range w.nodes {
			ways = append(ways, linkPart(p.number, s))
		}
	}
	heal, err := n.takeGroup(ctx, "split brain", ways...)
	if err != nil {
		return err
	}
	defer heal()
	free := context.WithoutCancel(ctx)
	old, next := g.primary, g.next(rng)
	oldSide := map[*server]bool{old: true} // of the network
	deaf := []*server{next}
	for _, s := range g.replicas() {
		switch {
		case s == next:
		case rng.IntN(3) == 0:
			// It goes on as a replica of the old one until it is made to follow the new one.
			oldSide[s] = true
		default:
			deaf = append(deaf, s)
		}
	}
	if err := g.fallBehind(free, rng, deaf...); err != nil {
		return err
	}
	var cut []*network.Link
	mend := func() {
		for _, l := range cut {
			l.Cut()
			l.Set(network.Fair)
		}
	}
	defer mend()
	for _, p := range w.proxies {
		onOldSide := rng.IntN(2) == 0 // on that side
		refused := rng.IntN(2) == 0   // otherwise packets are dropped, without an error
		for _, s := range w.nodes {
			if oldSide[s] != onOldSide {
				l := w.links[linkPart(p.number, s)]
				if refused {
					l.CutOff()
				} else if l.Set(network.Silent); rng.IntN(2) == 0 {
					l.Cut()
				}
				cut = append(cut, l)
			}
		}
	}
	await.Pause(ctx, between(rng, 0, time.Second))
	position, err := g.promote(free, next)
	if err != nil {
		return err
	}
	if len(oldSide) > 1 {
		// Most of the nodes are still with the old one, and the new one may give nothing.
		await.Pause(ctx, between(rng, 0, time.Second))
	}
	if err := g.followAll(free, position, old); err != nil {
		return err
	}
	await.Pause(ctx, between(rng, 500*time.Millisecond, 4*time.Second))
	switch rng.IntN(3) {
	case 0: // both are visible to all, until a proxy notices
		mend()
		await.Pause(ctx, between(rng, 0, time.Second))
		err = g.writable(free, old, false)
	case 1:
		err = g.writable(free, old, false)
		mend()
	default:
		err = old.Kill()
		mend()
	}
	if err != nil {
		return err
	}
	return g.settle(free)
}

// switchOver makes a replica the primary without losing anything, as for maintenance.
func switchOver(ctx context.Context, n *nemesis, rng *rand.Rand) error {
	heal, err := n.takeGroup(ctx, "switch-over")
	if err != nil {
		return err
	}
	defer heal()
	g := n.world.group
	free := context.WithoutCancel(ctx)
	old, next := g.primary, g.next(rng)
	if err := g.writable(free, old, false); err != nil {
		return err
	}
	if err := g.whole(free); err != nil {
		return err
	}
	position, err := g.promote(free, next)
	if err != nil {
		return err
	}
	if err := g.followAll(free, position, nil); err != nil {
		return err
	}
	return g.settle(free)
}

// lag makes replicas fall behind for a while.
func lag(ctx context.Context, n *nemesis, rng *rand.Rand) error {
	g := n.world.group
	release, err := n.claim(groupPart)
	if err != nil {
		return err
	}
	defer release()
	var some []*server
	var parts []part
	for _, s := range g.replicas() {
		if len(some) == 0 || rng.IntN(2) == 0 {
			some, parts = append(some, s), append(parts, s.part())
		}
	}
	heal, err := n.hurt("replicas lag", parts...)
	if err != nil {
		return err
	}
	defer heal()
	if err := g.fallBehind(ctx, rng, some...); err != nil {
		return err
	}
	await.Pause(ctx, between(rng, 200*time.Millisecond, 4*time.Second))
	free := context.WithoutCancel(ctx)
	for _, s := range some {
		if err := s.exec(free, "START "+g.replica()); err != nil {
			return err
		}
	}
	return nil
}
