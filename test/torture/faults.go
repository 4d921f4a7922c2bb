package torture

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"seqproxy/internal/await"
	"seqproxy/internal/mysqld"
	"seqproxy/test/network"
)

// faults are all that can happen. New ones go here.
func faults() []fault {
	return append([]fault{
		{name: "kill -9 of a proxy", weight: 4, run: killProxy},
		{name: "stop of a proxy in order", weight: 1, run: stopProxy},
		{name: "SIGSTOP of a proxy", weight: 2, run: freezeProxy},
		{name: "SIGSTOP of a proxy for longer than it has ticks", weight: 1, takes: 30 * time.Second, run: freezeProxyForLong},
		{name: "full disk of a proxy's state", weight: 2, takes: 3 * time.Second, where: (*world).smallDisks, run: fillDisk},
		{name: "kill -9 of the sequence server", weight: 3, where: (*world).noGalera, run: killSequenceServer},
		{name: "kill -9 of a Galera node", weight: 3, takes: 8 * time.Second, where: (*world).galera, run: killSequenceServer},
		{name: "a Galera node leaves in order and comes back", weight: 1, takes: 3 * time.Second, where: (*world).galera, run: leaveCluster},
		{name: "SIGSTOP of a Galera node", weight: 2, takes: 9 * time.Second, where: (*world).galera, run: freezeServer},
		{name: "kill -9 of all Galera nodes and a proxy without its state", weight: 1, takes: 25 * time.Second, alone: true, where: (*world).galera, run: killCluster},
		{name: "kill -9 of a shard", weight: 2, run: killShard},
		{name: "SIGSTOP of the sequence server", weight: 1, where: (*world).noGalera, run: freezeServer},
		{name: "connections are cut", weight: 3, run: cutLink},
		{name: "nothing passes, half-open", weight: 2, run: weatherFault(steady(network.Silent), 6*time.Second)},
		{name: "answers are swallowed", weight: 3, run: weatherFault(steady(network.Swallow), 2*time.Second)},
		{name: "answers break off", weight: 2, run: weatherFault(cutShort, 2*time.Second)},
		{name: "slow network", weight: 1, run: weatherFault(slow, 2*time.Second)},
		{name: "narrow network", weight: 1, run: weatherFault(narrow, 2*time.Second)},
		{name: "packets in pieces", weight: 1, run: weatherFault(sliced, 2*time.Second)},
		{name: "connections are refused", weight: 1, run: weatherFault(steady(network.Refuse), 3*time.Second)},
		{name: clockJumps, weight: 3, takes: 5 * time.Second, background: true, where: (*world).clocksJump, run: jumpClock},
		{name: proxyClockJumps, weight: 3, takes: 8 * time.Second, background: true, where: (*world).proxyClocksJump, run: jumpProxyClock},
		{name: "the clocks of a proxy and of the sequence servers are set back together", weight: 1, takes: 25 * time.Second, background: true, where: (*world).allClocksJump, run: setClocksBack},
	}, append(groupFaults(), adminFaults()...)...)
}

func (n *nemesis) someProxy(rng *rand.Rand) *proxy {
	return n.world.proxies[rng.IntN(len(n.world.proxies))]
}

// someSequenceServer returns any sequence server, or any node of the cluster.
func (n *nemesis) someSequenceServer(rng *rand.Rand) *server {
	return n.world.nodes[rng.IntN(len(n.world.nodes))]
}

func killProxy(ctx context.Context, n *nemesis, rng *rand.Rand) error {
	p := n.someProxy(rng)
	heal, err := n.hurt("kill -9", proxyPart(p.number))
	if err != nil {
		return err
	}
	defer heal()
	if err := p.crashed(); err != nil {
		return err
	}
	if err := p.end(syscall.SIGKILL, 5*time.Second); err != nil {
		return err
	}
	await.Pause(ctx, between(rng, 0, time.Second))
	return p.start(context.WithoutCancel(ctx))
}

// endsWithin is how long a proxy may take to stop in order: sessions, unused numbers, and a busy
// machine.
const endsWithin = 15 * time.Second

func stopProxy(ctx context.Context, n *nemesis, rng *rand.Rand) error {
	p := n.someProxy(rng)
	heal, err := n.hurt("stop in order", proxyPart(p.number))
	if err != nil {
		return err
	}
	defer heal()
	if err := p.crashed(); err != nil {
		return err
	}
	if err := p.end(syscall.SIGTERM, endsWithin); err != nil {
		return err
	}
	return p.start(context.WithoutCancel(ctx))
}

func freezeProxy(ctx context.Context, n *nemesis, rng *rand.Rand) error {
	return n.freeze(ctx, rng, 200*time.Millisecond, 3*time.Second)
}

// freezeProxyForLong stops a process until all times that it has reserved are over, 20 seconds for
// a short outage_cover, and others may have its worker of SNOWFLAKE.
func freezeProxyForLong(ctx context.Context, n *nemesis, rng *rand.Rand) error {
	return n.freeze(ctx, rng, 21*time.Second, 26*time.Second)
}

func (n *nemesis) freeze(ctx context.Context, rng *rand.Rand, shortest, longest time.Duration) error {
	p := n.someProxy(rng)
	heal, err := n.hurt("SIGSTOP", proxyPart(p.number))
	if err != nil {
		return err
	}
	defer heal()
	if err := p.signal(syscall.SIGSTOP); err != nil {
		return err
	}
	still := between(rng, shortest, longest)
	change := n.world.trouble.begin("SIGSTOP", changePart)
	await.Pause(ctx, min(still, changeSilence))
	n.world.trouble.over(change)
	await.Pause(ctx, still-changeSilence)
	return p.signal(syscall.SIGCONT)
}

func killSequenceServer(ctx context.Context, n *nemesis, rng *rand.Rand) error {
	return n.killServer(ctx, n.someSequenceServer(rng), rng)
}

func killShard(ctx context.Context, n *nemesis, rng *rand.Rand) error {
	return n.killServer(ctx, n.world.shards[rng.IntN(len(n.world.shards))], rng)
}

func (n *nemesis) killServer(ctx context.Context, s *server, rng *rand.Rand) error {
	heal, err := n.hurtServer(ctx, "kill -9", s)
	if err != nil {
		return err
	}
	defer heal()
	if err := s.Kill(); err != nil {
		return err
	}
	await.Pause(ctx, between(rng, 0, 2*time.Second))
	return s.restart(context.WithoutCancel(ctx))
}

// backWithin is how long a node may take to get from its cluster what it has missed, and the
// cluster to be whole.
const backWithin = 2 * time.Minute

// Restart is that of [mysqld.Server]. A server whose clock jumps while it starts may wait for ever,
// so a start that takes too long is tried once more.
func (s *server) Restart(ctx context.Context) error {
	err := s.Server.Restart(ctx)
	if errors.Is(err, context.DeadlineExceeded) {
		err = s.Server.Restart(ctx)
	}
	return err
}

// restart starts a server again, after an orderly stop if it runs. A node ends by itself if the
// cluster does not admit it within half a minute, or if the node ends that it copies from: an
// operator would then start it anew.
func (s *server) restart(ctx context.Context) (err error) {
	for range 3 {
		if err = s.Restart(ctx); err == nil {
			err = s.back(ctx)
		}
		if err == nil || !s.galera {
			return err
		}
	}
	return err
}

// leaveCluster stops a node in order, and starts it again.
func leaveCluster(ctx context.Context, n *nemesis, rng *rand.Rand) error {
	s := n.someSequenceServer(rng)
	heal, err := n.hurtServer(ctx, "stop in order", s)
	if err != nil {
		return err
	}
	defer heal()
	return s.restart(context.WithoutCancel(ctx))
}

// killCluster kills all nodes of the cluster within a second, and a proxy whose state is lost. One
// of the nodes may not have flushed for a while. The cluster begins again with the node that has
// come furthest.
func killCluster(ctx context.Context, n *nemesis, rng *rand.Rand) (err error) {
	w, p := n.world, n.someProxy(rng)
	heal, err := n.hurt("kill -9 of all nodes", n.everywhere()...)
	if err != nil {
		return err
	}
	defer heal()
	limited, stop := context.WithTimeout(ctx, 2*time.Second)
	defer stop()
	if mysqld.AwaitCluster(limited, w.sequence.cluster) != nil {
		return errBusy
	}
	if err := p.crashed(); err != nil {
		return err
	}
	if flush := rng.IntN(3); flush != 1 {
		if err := n.someSequenceServer(rng).flushes(ctx, flush); err != nil {
			return err
		}
	}
	if err := n.killAll(ctx, p, rng); err != nil {
		return err
	}
	ctx = context.WithoutCancel(ctx)
	bounded, done := context.WithTimeout(ctx, backWithin)
	defer done()
	if err := mysqld.BootstrapCluster(bounded, w.sequence.cluster); err != nil {
		return fmt.Errorf("%w: %w", errApart, err)
	}
	return p.start(ctx)
}

// flushes sets how a node flushes at commit, until it starts again.
func (s *server) flushes(ctx context.Context, how int) error {
	return s.exec(ctx, fmt.Sprintf("SET GLOBAL innodb_flush_log_at_trx_commit = %d", how))
}

// killAll kills all nodes within a second, after a while, and a proxy, whose state is lost.
func (n *nemesis) killAll(ctx context.Context, p *proxy, rng *rand.Rand) error {
	await.Pause(ctx, between(rng, 500*time.Millisecond, 2*time.Second))
	kills := []func() error{func() error { return p.end(syscall.SIGKILL, 5*time.Second) }}
	for _, s := range n.world.nodes {
		kills = append(kills, s.Kill)
	}
	rng.Shuffle(len(kills), func(i, j int) { kills[i], kills[j] = kills[j], kills[i] })
	for _, kill := range kills {
		if err := kill(); err != nil {
			return err
		}
		await.Pause(ctx, between(rng, 0, 250*time.Millisecond))
	}
	files, err := filepath.Glob(filepath.Join(p.state, "*"))
	if err != nil {
		return err
	}
	for _, file := range files {
		if err := os.RemoveAll(file); err != nil {
			return err
		}
	}
	return nil
}

func freezeServer(ctx context.Context, n *nemesis, rng *rand.Rand) error {
	s := n.someSequenceServer(rng)
	heal, err := n.hurtServer(ctx, "SIGSTOP", s)
	if err != nil {
		return err
	}
	defer heal()
	if err := s.signal(syscall.SIGSTOP); err != nil {
		return err
	}
	longest := 6 * time.Second
	if s.galera {
		longest = 9 * time.Second // the others expel it after 5, and it has to come back
	}
	await.Pause(ctx, between(rng, 200*time.Millisecond, longest))
	if err := s.signal(syscall.SIGCONT); err != nil {
		return err
	}
	ctx = context.WithoutCancel(ctx)
	if err := s.back(ctx); err != nil {
		return s.restart(ctx)
	}
	return nil
}

// someLink is a link to the sequence server in two cases of three, because keys come from there.
func (n *nemesis) someLink(rng *rand.Rand) (*network.Link, part) {
	s := n.someSequenceServer(rng)
	if rng.IntN(3) == 0 {
		s = n.world.shards[rng.IntN(len(n.world.shards))]
	}
	name := linkPart(n.someProxy(rng).number, s)
	return n.world.links[name], name
}

func cutLink(_ context.Context, n *nemesis, rng *rand.Rand) error {
	l, name := n.someLink(rng)
	heal, err := n.hurt("cut", name)
	if err != nil {
		return err
	}
	defer heal()
	l.Cut()
	return nil
}

// weatherFault changes a link for a limited time. Its connections then go on, or are cut.
func weatherFault(choose func(*rand.Rand) network.Weather, longest time.Duration) func(context.Context, *nemesis, *rand.Rand) error {
	return func(ctx context.Context, n *nemesis, rng *rand.Rand) error {
		l, name := n.someLink(rng)
		heal, err := n.hurt("bad network", name)
		if err != nil {
			return err
		}
		defer heal()
		change := n.world.trouble.begin("bad network", changePart)
		defer n.world.trouble.over(change)
		l.Set(choose(rng))
		await.Pause(ctx, between(rng, 200*time.Millisecond, longest))
		if rng.IntN(2) == 0 {
			l.Cut()
		}
		l.Set(network.Fair)
		return nil
	}
}

func steady(w network.Weather) func(*rand.Rand) network.Weather {
	return func(*rand.Rand) network.Weather { return w }
}

func slow(rng *rand.Rand) network.Weather {
	return network.Slow(between(rng, 5*time.Millisecond, 150*time.Millisecond))
}

// narrow makes an answer take from a few milliseconds to some hundreds.
func narrow(rng *rand.Rand) network.Weather { return network.Narrow(1 + rng.IntN(10)) }

// sliced cuts in packets' headers and in numbers, and delivers the pieces one by one.
func sliced(rng *rand.Rand) network.Weather {
	return network.Sliced(1+rng.IntN(20), between(rng, 0, time.Millisecond))
}

// cutShort ends connections in the greeting, in the login, or some answers later.
func cutShort(rng *rand.Rand) network.Weather { return network.CutShort(rng.IntN(400)) }

// everywhere are the parts that a statement which all proxies have to obey depends on.
func (n *nemesis) everywhere() (parts []part) {
	servers := []*server{n.world.sequence}
	switch {
	case n.world.galera():
		servers, parts = n.world.nodes, []part{clusterPart}
	case n.world.grouped():
		servers, parts = n.world.nodes, []part{groupPart}
	}
	for _, s := range servers {
		parts = append(parts, s.part())
	}
	for _, p := range n.world.proxies {
		parts = append(parts, proxyPart(p.number))
		for _, s := range servers {
			parts = append(parts, linkPart(p.number, s))
		}
	}
	return parts
}

// takeOne takes a number as a client does, and leaves it out of the history.
func (n *nemesis) takeOne(ctx context.Context, p *proxy, sequence string) (number uint64, err error) {
	o, err := n.probe(ctx, p, sequence)
	n.world.quiet.took(o)
	return o.first, err
}

// probe is a takeOne for the history.
func (n *nemesis) probe(ctx context.Context, p *proxy, sequence string) (op, error) {
	w := n.world
	_, life := p.current()
	o := op{kind: &kind{name: "probe", sequence: sequence, n: 1}, client: -1, conn: -int(w.probes.Add(1)), proxy: p.number, life: life, shard: -1, n: 1, begin: w.clock.now()}
	var got taken
	got, o.err = oneKey(ctx, p, sequence)
	o.first, o.text, o.dated, o.end = counterOf(sequence, got.first), got.text, got.dated, w.clock.now()
	return o, o.err
}

func oneKey(ctx context.Context, p *proxy, sequence string) (got taken, err error) {
	db, err := open(p.addr, "", false)
	if err != nil {
		return got, err
	}
	defer db.Close() //nolint:errcheck // the key is there
	if got, err = scan(db.QueryRowContext(ctx, "SELECT NEXTVAL('"+sequence+"')"), sequence); err != nil {
		err = fmt.Errorf("proxy %d: a key of %s: %w", p.number, sequence, err)
	}
	return got, err
}

// errLate is the cause of an error that was still there when its time was over. A busy machine may
// have needed longer.
var errLate = errors.New("not in time")

// eventually tries until there is no error, for a limited time. The last error is errLate, too.
func eventually(ctx context.Context, limit time.Duration, try func() error) error {
	until := time.Now().Add(limit)
	for {
		err := try()
		switch {
		case err == nil:
			return nil
		case time.Now().After(until):
			return fmt.Errorf("%w: within %v: %w", errLate, limit, err)
		case !await.Pause(ctx, 50*time.Millisecond):
			return err
		}
	}
}
