package kill

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/go-mysql-org/go-mysql/mysql"
	"go.uber.org/zap"

	"seqproxy/backend"
	"seqproxy/internal/logfield"
	"seqproxy/protocol"
)

// Killer makes servers end statements and connections of sessions. It uses connections of its own,
// since a server reads nothing on a busy one. It is safe for concurrent use. Close waits for its
// goroutines.
type Killer struct {
	shards *backend.Shards
	log    *zap.Logger

	mu     sync.Mutex
	queues []*serverQueue // guarded by mu; one for each server with orders so far
	closed bool           // guarded by mu; refuses further orders
	wg     sync.WaitGroup
	stop   chan struct{} // closed when waiting orders must be dropped
}

// serverQueue is the orders for one server. One worker sends them one after the other: MariaDB
// needs 20 us to end one of many threads that SLEEP, and two seconds for each of two at the same
// time.
type serverQueue struct {
	place   backend.Place
	urgent  []*order // a client waits for these; guarded by Killer.mu
	waiting []*order // guarded by Killer.mu
	working bool     // it has a worker; guarded by Killer.mu
	failing bool     // guarded by Killer.mu: the failure was logged
}

// order is a command about one connection of a server.
type order struct {
	place     backend.Place
	creds     backend.Credentials
	cmd       protocol.Command
	arg       string
	tries     int
	done      chan error // has room for the outcome; nil: nothing waits for it
	abandoned bool       // guarded by Killer.mu; its caller has given up
}

// Bounds of the work of a Killer.
const (
	timeout   = 5 * time.Second        // for a login, and for a KILL
	patience  = 10 * time.Second       // for a client's KILL, with the wait in its queue
	maxOrders = 1 << 14                // waiting for one server
	tries     = 6                      // while the server has no room for another login
	retry     = 100 * time.Millisecond // before the second; doubles
)

var (
	errFull   = errors.New("too many connections wait to be ended")
	errClosed = errors.New("proxy is shutting down")
	// ErrLogin says that an order did not reach the server.
	ErrLogin = errors.New("no connection to say KILL on")
)

// New returns a Killer. It does no I/O. The caller must call Close.
func New(shards *backend.Shards, log *zap.Logger) *Killer {
	return &Killer{shards: shards, log: log, stop: make(chan struct{})}
}

// Abandon ends a connection and its statement after its client left in the middle of an answer. The
// proxy's end may be closed already: the server notices that only when it writes. Abandon does not
// wait.
func (k *Killer) Abandon(place backend.Place, creds backend.Credentials) {
	k.put(&order{place: place, creds: creds, cmd: protocol.ComQuery, arg: "KILL " + strconv.FormatUint(uint64(place.ID()), 10)})
}

// Run sends a command to the server of place and waits for the answer. The error is a
// *protocol.ServerError if the server refused the command, and ErrLogin if it did not get it.
func (k *Killer) Run(ctx context.Context, place backend.Place, creds backend.Credentials, cmd protocol.Command, arg string) error {
	o := &order{place: place, creds: creds, cmd: cmd, arg: arg, done: make(chan error, 1)}
	k.put(o)
	timer := time.NewTimer(patience)
	defer timer.Stop()
	select {
	case err := <-o.done:
		return err
	case <-ctx.Done():
		k.withdraw(o)
		return ctx.Err()
	case <-timer.C:
		k.withdraw(o)
		return context.DeadlineExceeded
	}
}

// withdraw takes an order back that is not on its way yet: later it would end another statement.
func (k *Killer) withdraw(o *order) {
	k.mu.Lock()
	defer k.mu.Unlock()
	o.abandoned = true // the worker may be at its login already
	queue := k.queueLocked(o.place)
	queue.urgent = slices.DeleteFunc(queue.urgent, func(other *order) bool { return other == o })
}

func (k *Killer) isAbandoned(o *order) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return o.abandoned
}

// put adds an order to the queue of its server.
func (k *Killer) put(o *order) {
	k.mu.Lock()
	defer k.mu.Unlock()
	queue := k.queueLocked(o.place)
	switch {
	case k.closed:
		o.ended(errClosed)
		return
	case o.done != nil:
		queue.urgent = append(queue.urgent, o) // bounded by the sessions that wait
	case len(queue.waiting) < maxOrders:
		queue.waiting = append(queue.waiting, o)
	default:
		k.failedLocked(queue, errFull)
		return
	}
	if !queue.working {
		queue.working = true
		k.wg.Go(func() { k.work(queue) })
	}
}

func (k *Killer) queueLocked(place backend.Place) *serverQueue {
	for _, l := range k.queues {
		if l.place.SameServer(place) {
			return l
		}
	}
	l := &serverQueue{place: place}
	k.queues = append(k.queues, l)
	return l
}

// next returns the next order for the worker of a queue, or nil if the worker must end.
func (k *Killer) next(server *serverQueue) *order {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, queue := range []*[]*order{&server.urgent, &server.waiting} {
		if q := *queue; len(q) > 0 {
			o := q[0]
			q[0] = nil
			*queue = q[1:]
			return o
		}
	}
	server.urgent, server.waiting = nil, nil
	server.working = false
	return nil
}

// work carries out orders until none waits. Consecutive orders of one user share a connection.
func (k *Killer) work(server *serverQueue) {
	var c *backend.Conn
	var as backend.Credentials
	for {
		o := k.next(server)
		if c != nil && (o == nil || o.creds != as) {
			c.Quit()
			c = nil
		}
		if o == nil {
			return
		}
		var err error
		if c == nil {
			c, err = k.dial(o)
			as = o.creds
		}
		if err == nil {
			if err = k.kill(c, o); err != nil && !IsServerError(err) {
				c.Drop()
				_ = c.Close()
				c = nil
			}
		}
		k.finish(server, o, err)
	}
}

func (k *Killer) dial(o *order) (*backend.Conn, error) {
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	for {
		c, err := k.shards.Routes().DialSecond(ctx, o.place, o.creds)
		if err == nil {
			return c, nil
		}
		// The sessions to kill may take up the missing room.
		if o.tries++; !noRoom(err) || o.tries >= tries || !k.pause(ctx, retry<<(o.tries-1)) {
			return nil, errors.Join(ErrLogin, err)
		}
	}
}

func (k *Killer) pause(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
	case <-k.stop:
	}
	return false
}

func (k *Killer) kill(c *backend.Conn, o *order) error {
	if k.isAbandoned(o) {
		return nil
	}
	if err := c.SetDeadline(time.Now().Add(timeout)); err != nil {
		return err
	}
	return c.Command(o.cmd, o.arg)
}

// finish reports the outcome of an order to its caller, or to the log.
func (k *Killer) finish(server *serverQueue, o *order, err error) {
	if o.done != nil {
		o.ended(err)
		return
	}
	var refused *protocol.ServerError
	if errors.As(err, &refused) && refused.Code == mysql.ER_NO_SUCH_THREAD {
		err = nil // the statement has ended by itself
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if err != nil {
		k.failedLocked(server, err)
	} else if server.failing {
		server.failing = false
		k.log.Info("statements of lost clients ended again", server.fields()...)
	}
}

// failedLocked logs, once, that statements go on without their clients.
func (k *Killer) failedLocked(server *serverQueue, err error) {
	if server.failing {
		return
	}
	server.failing = true
	k.log.Warn("statement of a lost client goes on", append(server.fields(), logfield.Err(err))...)
}

func (l *serverQueue) fields() []zap.Field {
	return []zap.Field{logfield.Shard(l.place.Shard().Name()), logfield.Node(l.place.Node())}
}

func (o *order) ended(err error) {
	if o.done != nil {
		o.done <- err
	}
}

// Close refuses further orders, lets waiting ones run until ctx is done, and waits for the workers,
// at most timeout longer.
func (k *Killer) Close(ctx context.Context) {
	k.mu.Lock()
	k.closed = true
	k.mu.Unlock()
	ended := make(chan struct{})
	go func() {
		k.wg.Wait()
		close(ended)
	}()
	select {
	case <-ended:
		return
	case <-ctx.Done():
	}
	close(k.stop)
	k.mu.Lock()
	for _, queue := range k.queues {
		for _, o := range queue.urgent {
			o.ended(errClosed)
		}
		queue.urgent, queue.waiting = nil, nil
	}
	k.mu.Unlock()
	<-ended
}

func IsServerError(err error) bool {
	var refused *protocol.ServerError
	return errors.As(err, &refused)
}

// noRoom reports whether a login failed because the server has too many.
func noRoom(err error) bool {
	var refused *protocol.ServerError
	if !errors.As(err, &refused) {
		return false
	}
	switch refused.Code {
	case mysql.ER_CON_COUNT_ERROR, mysql.ER_TOO_MANY_USER_CONNECTIONS, mysql.ER_USER_LIMIT_REACHED:
		return true
	}
	return false
}
