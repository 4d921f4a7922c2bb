package torture

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-sql-driver/mysql"

	"seqproxy/internal/await"
)

const (
	// clientPatience is after how long a client takes the other side for dead. Nothing may take
	// that long unless it is delayed on purpose.
	clientPatience = 20 * time.Second
	// connLife is how many requests a connection serves, on average.
	connLife = 400
)

// clients take keys, each on one connection at a time, until they are stopped.
type clients struct {
	world *world
	group sync.WaitGroup
	stop  context.CancelFunc
	conns atomic.Int64
	pause time.Duration // between two requests of one client

	all []*writer
}

// writer is one client. Its history is its own until all have stopped.
type writer struct {
	number int
	kind   *kind
	rng    *rand.Rand
	ops    []op
	good   atomic.Int64 // when the last request succeeded, by the clock of the run
}

// startClients starts the writers of the kinds. Their numbers go on from earlier writers.
func startClients(w *world, all []*kind, rng *rand.Rand, pause time.Duration, before *clients) *clients {
	ctx, stop := context.WithCancel(context.Background())
	c := &clients{world: w, stop: stop, pause: pause}
	first := 0
	if before != nil {
		first = before.all[len(before.all)-1].number + 1
		c.conns.Store(before.conns.Load())
	}
	for _, k := range all {
		for range k.writers {
			c.all = append(c.all, &writer{number: first + len(c.all), kind: k, rng: rand.New(rand.NewPCG(rng.Uint64(), rng.Uint64()))})
		}
	}
	for _, one := range c.all {
		c.group.Go(func() { c.write(ctx, one) })
	}
	return c
}

// end stops the clients, waits for them and returns what they saw.
func (c *clients) end() []op {
	c.stop()
	c.group.Wait()
	var all []op
	for _, w := range c.all {
		all = append(all, w.ops...)
	}
	return all
}

// idle names the clients that have had no success since then.
func (c *clients) idle(since time.Duration) (names []string) {
	for _, w := range c.all {
		if time.Duration(w.good.Load()) < since || w.good.Load() == 0 {
			names = append(names, fmt.Sprintf("client %d (%s)", w.number, w.kind.name))
		}
	}
	return names
}

// write is the life of a client: connect, take keys, connect again.
func (c *clients) write(ctx context.Context, w *writer) {
	for ctx.Err() == nil {
		c.session(ctx, w)
		await.Pause(ctx, c.pause+time.Duration(w.rng.Int64N(int64(20*time.Millisecond))))
	}
}

// session is the life of a connection.
func (c *clients) session(ctx context.Context, w *writer) {
	at := op{kind: w.kind, client: w.number, proxy: -1, shard: w.kind.shard, n: w.kind.n, conn: int(c.conns.Add(1))}
	if w.kind.stepped {
		at.member = w.rng.IntN(len(c.world.members))
	}
	addr, schema := c.world.members[at.member].Addr(), ""
	var p *proxy
	if !w.kind.direct {
		at.proxy = w.kind.proxy
		if at.proxy < 0 {
			at.proxy = w.rng.IntN(len(c.world.proxies))
		}
		p = c.world.proxies[at.proxy]
		addr = p.addr
		_, at.life = p.current()
	}
	if at.shard >= 0 {
		schema = c.world.shards[at.shard].schema
	}
	db, err := open(addr, schema, !w.kind.prepared)
	if err != nil {
		panic(err) // the configuration is made here
	}
	defer db.Close() //nolint:errcheck // of a client's side
	// Not cancelled with ctx: a request that has begun is waited for, so that its outcome is known.
	free := context.WithoutCancel(ctx)
	at.begin = c.world.clock.now()
	conn, err := db.Conn(free)
	if err != nil {
		at.end, at.err, at.n = c.world.clock.now(), fmt.Errorf("connect: %w", err), 0
		w.ops = append(w.ops, at)
		return
	}
	defer conn.Close() //nolint:errcheck // of a client's side
	if p != nil {
		if _, life := p.current(); life != at.life {
			return // it cannot be told which process took the connection
		}
	}
	for range 1 + w.rng.IntN(2*connLife) {
		if ctx.Err() != nil || !c.request(free, w, conn, at) {
			return
		}
		await.Pause(ctx, c.pause/2+time.Duration(w.rng.Int64N(int64(c.pause)+1)))
	}
}

// request takes keys once and reports whether the connection can be used further.
func (c *clients) request(ctx context.Context, w *writer, conn *sql.Conn, at op) bool {
	if w.kind.stepped {
		c.world.stepping.RLock()
		defer c.world.stepping.RUnlock()
	}
	at.tag = fmt.Sprintf("%d-%d", w.number, len(w.ops))
	at.begin = c.world.clock.now()
	got, err := w.kind.take(ctx, conn, at.tag)
	at.end, at.first, at.text, at.dated, at.kept, at.err = c.world.clock.now(), counterOf(w.kind.sequence, got.first), got.text, got.dated, got.kept, err
	w.ops = append(w.ops, at)
	if err == nil {
		w.good.Store(int64(at.end))
		return true
	}
	var said *mysql.MySQLError
	return errors.As(err, &said) && !lost(err)
}

// lost reports whether a connection ended without a word.
func lost(err error) bool {
	return errors.Is(err, mysql.ErrInvalidConn) || errors.Is(err, sql.ErrConnDone) || isNetwork(err)
}
