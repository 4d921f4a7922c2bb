package torture

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"syscall"
	"time"

	"seqproxy/internal/await"
)

// adminFaults are what people do to the sequences while keys are taken, at the worst moment.
func adminFaults() []fault {
	return []fault{
		{name: "RESTART ... FORCE while a proxy is stopped", weight: 1, takes: 2 * time.Second, where: (*world).plain, run: forceWithStopped},
		{name: "RESTART ... FORCE whose proxy is killed", weight: 1, takes: 3 * time.Second, alone: true, where: (*world).fastRestart, run: forceKilled},
		{name: "RESTART ... FORCE", weight: 1, takes: 2 * time.Second, alone: true, where: (*world).fastRestart, run: force},
		{name: "RESTART ... FORCE in a group whose proxy is killed", weight: 1, takes: 18 * time.Second, alone: true, where: (*world).slowRestart, run: forceKilled},
		{name: "RESTART ... FORCE in a group", weight: 1, takes: 17 * time.Second, alone: true, where: (*world).slowRestart, run: force},
		{name: "an old copy of a row is restored", weight: 2, where: (*world).plain, run: restoreRow},
		{name: "an old copy of a row is restored while its proxy is dead", weight: 2, takes: 2 * time.Second, where: (*world).plain, run: restoreRowUnseen},
		{name: "the sequence table is restored from a backup", weight: 1, takes: 6 * time.Second, alone: true, where: (*world).plain, run: restoreTable},
		{name: "ALTER SEQUENCE ... CACHE", weight: 1, run: alterCache},
		{name: "a sequence server is removed and added again", weight: 1, takes: 6 * time.Second, alone: true, where: (*world).several, run: changeMembers},
		{name: "a dead sequence server is taken out", weight: 1, takes: 8 * time.Second, alone: true, where: (*world).several, run: removeDead},
		{name: "a change of sequence servers whose proxy is killed", weight: 2, takes: 5 * time.Second, alone: true, where: (*world).several, run: killCoordinator},
		{name: "a sequence server is killed while their set is changed", weight: 2, takes: 7 * time.Second, alone: true, where: (*world).several, run: killMember},
		{name: "FLUSH SEQUENCES", weight: 1, run: flush},
	}
}

// restartWithin bounds the time until a sequence begins again: in a group, a proxy that has only
// just found its primary waits ten seconds.
const restartWithin = 2 * healWithin

const restartText = "ALTER SEQUENCE " + restarted + " RESTART WITH 1 FORCE"

// force makes a sequence begin again, while no other proxy runs.
func force(ctx context.Context, n *nemesis, rng *rand.Rand) error {
	heal, err := n.hurt("RESTART beside no other proxy", n.everywhere()...)
	if err != nil {
		return err
	}
	defer heal()
	p := n.someProxy(rng)
	ctx = context.WithoutCancel(ctx)
	return n.withoutOthers(ctx, p, func() error { return n.restart(ctx, p, n.world.clock.now()) })
}

// withoutOthers ends all proxies but one, in order, while f runs.
func (n *nemesis) withoutOthers(ctx context.Context, p *proxy, f func() error) (err error) {
	for _, other := range n.world.proxies {
		if other == p {
			continue
		}
		if err := errors.Join(other.crashed(), other.end(syscall.SIGTERM, endsWithin)); err != nil {
			return err
		}
		defer func() { err = errors.Join(err, other.start(ctx)) }()
	}
	return f()
}

// restart tries until the sequence has begun again. since is when the first attempt began. It
// removes the entries of killed proxies.
func (n *nemesis) restart(ctx context.Context, p *proxy, since time.Duration) error {
	err := eventually(ctx, restartWithin, func() error { return n.world.admin(ctx, p, restartText) })
	n.world.trouble.epoch(epochChange{begin: since, end: n.world.clock.now(), done: err == nil})
	return err
}

// forceKilled kills the proxy that makes a sequence begin again, somewhere in between. The new
// process removes its entry.
func forceKilled(ctx context.Context, n *nemesis, rng *rand.Rand) error {
	heal, err := n.hurt("RESTART whose proxy is killed", n.everywhere()...)
	if err != nil {
		return err
	}
	defer heal()
	p := n.someProxy(rng)
	ctx = context.WithoutCancel(ctx)
	return n.withoutOthers(ctx, p, func() error {
		since := n.world.clock.now()
		done := make(chan error, 1)
		go func() { done <- n.world.admin(ctx, p, restartText) }()
		await.Pause(ctx, between(rng, 0, 50*time.Millisecond))
		err := p.end(syscall.SIGKILL, 5*time.Second)
		<-done // any outcome
		if err == nil {
			err = p.start(ctx)
		}
		if err != nil {
			return err
		}
		return n.restart(ctx, p, since)
	})
}

// forceWithStopped makes a sequence begin again while a proxy with cached numbers of it is stopped.
// The error must name that proxy, and the sequence go on where it was.
func forceWithStopped(ctx context.Context, n *nemesis, rng *rand.Rand) error {
	if len(n.world.proxies) < 2 {
		return nil
	}
	order := rng.Perm(len(n.world.proxies))
	a, b := n.world.proxies[order[0]], n.world.proxies[order[1]]
	heal, err := n.hurt("SIGSTOP", proxyPart(a.number))
	if err != nil {
		return err
	}
	defer heal()
	release, err := n.claim(proxyPart(b.number), n.world.sequence.part(), linkPart(a.number, n.world.sequence), linkPart(b.number, n.world.sequence))
	if err != nil {
		return err
	}
	defer release()
	ctx = context.WithoutCancel(ctx)
	for _, p := range []*proxy{a, b} {
		if err := eventually(ctx, healWithin, func() error { _, err := n.takeOne(ctx, p, restarted); return err }); err != nil {
			return err
		}
	}
	if err := a.signal(syscall.SIGSTOP); err != nil {
		return err
	}
	name := fmt.Sprintf("process %d", a.pid())
	again := false
	err = eventually(ctx, healWithin, func() error {
		since := n.world.clock.now()
		err := n.world.admin(ctx, b, restartText)
		n.world.trouble.epoch(epochChange{begin: since, end: n.world.clock.now(), done: err == nil, undone: err != nil})
		if again = err == nil; !again && !strings.Contains(err.Error(), name) && !n.clockJumped(since) {
			return fmt.Errorf("the refusal does not name %s: %w", name, err) // the server may stand still
		}
		return nil
	})
	if again {
		err = fmt.Errorf("the sequence was restarted although %s held numbers of it", name)
	}
	return errors.Join(err, a.signal(syscall.SIGCONT))
}

// restoreRow sets a row back, as a restored backup does. The one proxy that gives its numbers has
// to notice.
func restoreRow(ctx context.Context, n *nemesis, _ *rand.Rand) error {
	release, err := n.claim(proxyPart(0), n.world.sequence.part(), linkPart(0, n.world.sequence))
	if err != nil {
		return err
	}
	defer release()
	return n.setBack(context.WithoutCancel(ctx), func(set func() error) error { return set() })
}

// restoreRowUnseen is restoreRow while no process knows where the row was: only the state file
// does.
func restoreRowUnseen(ctx context.Context, n *nemesis, rng *rand.Rand) error {
	release, err := n.claim(n.world.sequence.part(), linkPart(0, n.world.sequence))
	if err != nil {
		return err
	}
	defer release()
	heal, err := n.hurt("kill -9", proxyPart(0))
	if err != nil {
		return err
	}
	defer heal()
	return n.setBack(context.WithoutCancel(ctx), func(set func() error) error {
		p := n.world.proxies[0]
		if err := p.crashed(); err != nil {
			return err
		}
		if err := p.end(syscall.SIGKILL, 5*time.Second); err != nil {
			return err
		}
		err := set()
		await.Pause(ctx, between(rng, 0, 500*time.Millisecond))
		return errors.Join(err, p.start(context.WithoutCancel(ctx)))
	})
}

// restoreTable restores all rows as they were some seconds ago, as docs/operations.md says: no
// proxy runs meanwhile, and the rows are raised above all keys. Those of the workers of SNOWFLAKE
// are not, because their ticks have passed.
func restoreTable(ctx context.Context, n *nemesis, rng *rand.Rand) (err error) {
	heal, err := n.hurt("a restored table", n.everywhere()...)
	if err != nil {
		return err
	}
	defer heal()
	ctx = context.WithoutCancel(ctx)
	db := n.world.sequence.db
	if _, err := db.ExecContext(ctx, "CREATE TABLE seqproxy.backup AS SELECT * FROM seqproxy.sequence"); err != nil {
		return err
	}
	await.Pause(ctx, between(rng, time.Second, 3*time.Second))
	for _, p := range n.world.proxies {
		signal := []syscall.Signal{syscall.SIGKILL, syscall.SIGTERM}[rng.IntN(2)]
		if err := errors.Join(p.crashed(), p.end(signal, endsWithin)); err != nil {
			return err
		}
	}
	for _, text := range []string{
		// Applications go on counting in rows without a kind, and no row may be lower than the keys
		// of its sequence.
		"UPDATE seqproxy.sequence JOIN seqproxy.backup USING (name) SET sequence.id = backup.id WHERE name LIKE '" + snow + "#w%'",
		"DELETE FROM seqproxy.sequence_options WHERE name LIKE '" + snow + "#w%' AND name NOT IN (SELECT name FROM seqproxy.backup)",
		"DELETE FROM seqproxy.sequence WHERE name LIKE '" + snow + "#w%' AND name NOT IN (SELECT name FROM seqproxy.backup)",
		"DELETE FROM seqproxy.sequence_proxy",
		"DROP TABLE seqproxy.backup",
	} {
		if _, err := db.ExecContext(ctx, text); err != nil {
			return fmt.Errorf("%s: %w", text, err)
		}
	}
	for _, p := range n.world.proxies {
		err = errors.Join(err, p.start(ctx))
	}
	return err
}

// setBack sets the row of a sequence back when at decides, and checks that its proxy raises it.
func (n *nemesis) setBack(ctx context.Context, at func(set func() error) error) error {
	p, s := n.world.proxies[0], n.world.sequence
	// The process has given a number, so it knows where the row was.
	var given uint64
	err := eventually(ctx, healWithin, func() (err error) {
		given, err = n.takeOne(ctx, p, restored)
		return err
	})
	if err != nil {
		return err
	}
	err = at(func() error {
		_, err := s.db.ExecContext(ctx, "UPDATE seqproxy.sequence SET id = id DIV 2 WHERE name = ?", restored)
		return err
	})
	if err != nil {
		return err
	}
	return eventually(ctx, healWithin, func() error {
		if err := n.world.admin(ctx, p, "FLUSH SEQUENCES "+restored); err != nil {
			return err
		}
		if _, err := n.takeOne(ctx, p, restored); err != nil {
			return err
		}
		var id uint64
		if err := s.db.QueryRowContext(ctx, "SELECT id FROM seqproxy.sequence WHERE name = ?", restored).Scan(&id); err != nil {
			return err
		}
		if id < given {
			return fmt.Errorf("the row of %s stands at %d, though %d was given", restored, id, given)
		}
		return nil
	})
}

// alterCache changes a sequence while its numbers are taken everywhere.
func alterCache(ctx context.Context, n *nemesis, rng *rand.Rand) error {
	p := n.someProxy(rng)
	release, err := n.claim(append(n.world.sequenceParts(p.number), proxyPart(p.number))...)
	if err != nil {
		return err
	}
	defer release()
	text := fmt.Sprintf("ALTER SEQUENCE small CACHE %d", 1+rng.IntN(40))
	return eventually(ctx, healWithin, func() error { return n.world.admin(context.WithoutCancel(ctx), p, text) })
}

func flush(ctx context.Context, n *nemesis, rng *rand.Rand) error {
	p := n.someProxy(rng)
	release, err := n.claim(append(n.world.sequenceParts(p.number), proxyPart(p.number))...)
	if err != nil {
		return err
	}
	defer release()
	return eventually(ctx, healWithin, func() error { return n.world.admin(context.WithoutCancel(ctx), p, "FLUSH SEQUENCES") })
}

// changeMembers removes a sequence server from the plan and adds it again, while keys are taken.
func changeMembers(ctx context.Context, n *nemesis, rng *rand.Rand) error {
	release, err := n.claim(n.everywhere()...)
	if err != nil {
		return err
	}
	defer release()
	n.world.stepping.Lock()
	defer n.world.stepping.Unlock()
	ctx = context.WithoutCancel(ctx)
	s := n.world.members[1+rng.IntN(len(n.world.members)-1)]
	remove := n.world.estate.change(fmt.Sprintf("SEQPROXY REMOVE SEQUENCE SERVER '%s'", n.world.addressOf(s)))
	err = eventually(ctx, healWithin, func() error {
		err := n.world.admin(ctx, n.someProxy(rng), remove)
		if err != nil && strings.Contains(err.Error(), n.world.addressOf(s)+" is no member") {
			return nil // an attempt before has removed it, and its answer was lost
		}
		return err
	})
	if err != nil {
		return err
	}
	return eventually(ctx, healWithin, func() error { return n.world.addAgain(ctx, n.someProxy(rng), s) })
}

// addAgain makes a sequence server a member, whether or not it is one.
func (w *world) addAgain(ctx context.Context, p *proxy, s *server) error {
	err := w.admin(ctx, p, w.estate.change(fmt.Sprintf("SEQPROXY ADD SEQUENCE SERVER '%s'", w.addressOf(s))))
	if err != nil && strings.Contains(err.Error(), "is a member already") {
		return nil
	}
	return err
}

// aboveAll returns a number far above those of all sequence servers, by the rows of those that are
// not dead.
func (w *world) aboveAll(ctx context.Context, dead *server) (above uint64, err error) {
	for _, s := range w.members {
		if s == dead {
			continue
		}
		var highest uint64
		if err := s.db.QueryRowContext(ctx, "SELECT MAX(id) FROM seqproxy.sequence").Scan(&highest); err != nil {
			return 0, err
		}
		above = max(above, highest+1_000_000)
	}
	return above, nil
}

// addressOf returns how the plan names a member.
func (w *world) addressOf(s *server) string { return w.links[linkPart(0, s)].Addr() }

// removeDead removes a killed sequence server, while the others go on, and adds it again when it is
// back.
func removeDead(ctx context.Context, n *nemesis, rng *rand.Rand) error {
	s := n.world.members[1+rng.IntN(len(n.world.members)-1)]
	heal, err := n.hurt("a dead sequence server is taken out", append(n.everywhere(), s.part())...)
	if err != nil {
		return err
	}
	defer heal()
	n.world.stepping.Lock()
	defer n.world.stepping.Unlock()
	ctx = context.WithoutCancel(ctx)
	if err := s.Kill(); err != nil {
		return err
	}
	text := fmt.Sprintf("SEQPROXY REMOVE SEQUENCE SERVER '%s' FORCE", n.world.addressOf(s))
	if n.world.estate.stepped() {
		above, err := n.world.aboveAll(ctx, s) // applications could count there
		if err != nil {
			return errors.Join(err, s.Restart(ctx))
		}
		text += fmt.Sprintf(" ABOVE %d", above)
	}
	p := n.someProxy(rng)
	err = eventually(ctx, healWithin, func() error {
		return n.world.admin(ctx, p, n.world.estate.change(text))
	})
	if back := s.Restart(ctx); back != nil || err != nil {
		return errors.Join(err, back)
	}
	return eventually(ctx, healWithin, func() error { return n.world.addAgain(ctx, n.someProxy(rng), s) })
}

// killCoordinator kills the proxy that changes the set of sequence servers, somewhere in between.
// Another proxy finishes the change or undoes it.
func killCoordinator(ctx context.Context, n *nemesis, rng *rand.Rand) error {
	heal, err := n.hurt("a change of sequence servers whose proxy is killed", n.everywhere()...)
	if err != nil {
		return err
	}
	defer heal()
	a := n.someProxy(rng)
	return n.breakChange(ctx, rng, a, func(ctx context.Context) error {
		if err := a.end(syscall.SIGKILL, 5*time.Second); err != nil {
			return err
		}
		return a.start(ctx)
	})
}

// killMember kills one of the sequence servers, perhaps the one to be removed, somewhere in the
// change.
func killMember(ctx context.Context, n *nemesis, rng *rand.Rand) error {
	victim := n.world.members[rng.IntN(len(n.world.members))]
	heal, err := n.hurt("a sequence server is killed while their set is changed", append(n.everywhere(), victim.part())...)
	if err != nil {
		return err
	}
	defer heal()
	return n.breakChange(ctx, rng, n.someProxy(rng), func(ctx context.Context) error {
		err := victim.Kill()
		await.Pause(ctx, between(rng, 0, time.Second))
		return errors.Join(err, victim.Restart(ctx))
	})
}

// breakChange makes a proxy remove one of the sequence servers, lets something fail somewhere in
// between, and makes the set whole. The caller has hurt everything that this touches.
func (n *nemesis) breakChange(ctx context.Context, rng *rand.Rand, p *proxy, fail func(ctx context.Context) error) error {
	n.world.stepping.Lock()
	defer n.world.stepping.Unlock()
	ctx = context.WithoutCancel(ctx)
	s, done := n.world.members[1+rng.IntN(len(n.world.members)-1)], make(chan error, 1)
	go func() {
		done <- n.world.admin(ctx, p, n.world.estate.change(fmt.Sprintf("SEQPROXY REMOVE SEQUENCE SERVER '%s' FORCE", n.world.addressOf(s))))
	}()
	await.Pause(ctx, between(rng, 0, 600*time.Millisecond))
	err := fail(ctx)
	<-done // any outcome
	if err != nil {
		return err
	}
	return n.wholeAgain(ctx, rng, s)
}

// wholeAgain ends a change that removed a sequence server, or began to, and makes that server a
// member.
func (n *nemesis) wholeAgain(ctx context.Context, rng *rand.Rand, s *server) error {
	return eventually(ctx, healWithin, func() error {
		p := n.someProxy(rng)
		err := n.world.admin(ctx, p, n.world.estate.change(fmt.Sprintf("SEQPROXY REMOVE SEQUENCE SERVER '%s'", n.world.addressOf(s))))
		if err != nil && !strings.Contains(err.Error(), "is no member") {
			return err
		}
		return n.world.addAgain(ctx, p, s)
	})
}
