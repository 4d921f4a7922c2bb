package proxy

import (
	"context"
	"errors"
	"strconv"
	"sync"
	"time"

	"github.com/go-mysql-org/go-mysql/mysql"
	"go.uber.org/zap"

	"seqproxy/backend"
	"seqproxy/internal/logfield"
	"seqproxy/protocol"
)

// killer has servers end statements and connections of sessions, over connections of
// its own: a server reads nothing on the one that is busy. It is safe for concurrent
// use; close waits for its goroutines.
type killer struct {
	shards *backend.Shards
	log    *zap.Logger

	mu     sync.Mutex
	lines  []*killLine // guarded by mu; a handful: one for each server that was needed
	closed bool        // guarded by mu: nothing is taken any more
	wg     sync.WaitGroup
	stop   chan struct{} // closed when what waits is to be dropped
}

// killLine is what waits for one server. One worker says it all, one after the other:
// MariaDB needs 20 us to end one of many threads that SLEEP, and two seconds for each if
// it is asked to end two at the same time.
type killLine struct {
	place   backend.Place
	urgent  []*killOrder // a client waits for the answer; guarded by killer.mu
	waiting []*killOrder // guarded by killer.mu
	working bool         // it has a worker; guarded by killer.mu
	failing bool         // guarded by killer.mu: that has been logged
}

// killOrder is a command about one connection of a server.
type killOrder struct {
	place backend.Place
	creds backend.Credentials
	cmd   protocol.Command
	arg   string
	tries int
	done  chan error // has room for the outcome; nil if nobody waits for it
}

// Bounds of the killer's work.
const (
	killTimeout  = 5 * time.Second        // for a login, and for a KILL
	killPatience = 10 * time.Second       // for a client's KILL with its turn
	maxKills     = 1 << 14                // that wait for one server
	killTries    = 6                      // while the server has no room for another login
	killRetry    = 100 * time.Millisecond // before the second; doubles
)

var (
	errKillsFull   = errors.New("too many connections wait to be ended")
	errKillsClosed = errors.New("proxy is shutting down")
	// errKillLogin is why an order was not given to the server at all.
	errKillLogin = errors.New("no connection to say KILL on")
)

func newKiller(shards *backend.Shards, log *zap.Logger) *killer {
	return &killer{shards: shards, log: log, stop: make(chan struct{})}
}

// abandon ends a connection whose client is gone in the middle of an answer, and with
// it the statement. The proxy's own end may be closed already: the server notices that
// only when it writes. It does not wait.
func (k *killer) abandon(place backend.Place, creds backend.Credentials) {
	k.put(&killOrder{place: place, creds: creds, cmd: protocol.ComQuery, arg: "KILL " + strconv.FormatUint(uint64(place.ID()), 10)})
}

// run gives a command to the server of place and waits for its answer. The error is a
// *protocol.ServerError if the server refused the command, errKillLogin if it was not
// given to it.
func (k *killer) run(ctx context.Context, place backend.Place, creds backend.Credentials, cmd protocol.Command, arg string) error {
	o := &killOrder{place: place, creds: creds, cmd: cmd, arg: arg, done: make(chan error, 1)}
	k.put(o)
	patience := time.NewTimer(killPatience)
	defer patience.Stop()
	select {
	case err := <-o.done:
		return err
	case <-ctx.Done():
		return ctx.Err()
	case <-patience.C:
		return context.DeadlineExceeded
	}
}

// put gives an order to the worker of its server.
func (k *killer) put(o *killOrder) {
	k.mu.Lock()
	defer k.mu.Unlock()
	line := k.lineLocked(o.place)
	switch {
	case k.closed:
		o.ended(errKillsClosed)
		return
	case o.done != nil:
		line.urgent = append(line.urgent, o) // bounded by the sessions that wait
	case len(line.waiting) < maxKills:
		line.waiting = append(line.waiting, o)
	default:
		k.failedLocked(line, errKillsFull)
		return
	}
	if !line.working {
		line.working = true
		k.wg.Go(func() { k.work(line) })
	}
}

func (k *killer) lineLocked(place backend.Place) *killLine {
	for _, l := range k.lines {
		if l.place.SameServer(place) {
			return l
		}
	}
	l := &killLine{place: place}
	k.lines = append(k.lines, l)
	return l
}

// next returns the next order for a line's worker, nil if that may end.
func (k *killer) next(line *killLine) *killOrder {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, queue := range []*[]*killOrder{&line.urgent, &line.waiting} {
		if q := *queue; len(q) > 0 {
			o := q[0]
			q[0] = nil
			*queue = q[1:]
			return o
		}
	}
	line.urgent, line.waiting = nil, nil
	line.working = false
	return nil
}

// work carries out orders until none waits. Those of one user that follow each other
// share a connection.
func (k *killer) work(line *killLine) {
	var c *backend.Conn
	var as backend.Credentials
	for {
		o := k.next(line)
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
			if err = k.kill(c, o); err != nil && !isServerError(err) {
				c.Drop()
				_ = c.Close()
				c = nil
			}
		}
		k.finish(line, o, err)
	}
}

func (k *killer) dial(o *killOrder) (*backend.Conn, error) {
	ctx, cancel := context.WithTimeout(context.Background(), killTimeout)
	defer cancel()
	for {
		c, err := k.shards.Routes().DialBeside(ctx, o.place, o.creds)
		if err == nil {
			return c, nil
		}
		// The room that is missing may be taken by those who are to be killed.
		if o.tries++; !noRoom(err) || o.tries >= killTries || !k.pause(ctx, killRetry<<(o.tries-1)) {
			return nil, errors.Join(errKillLogin, err)
		}
	}
}

func (k *killer) pause(ctx context.Context, d time.Duration) bool {
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

func (k *killer) kill(c *backend.Conn, o *killOrder) error {
	if err := c.SetDeadline(time.Now().Add(killTimeout)); err != nil {
		return err
	}
	return c.Command(o.cmd, o.arg)
}

// finish tells who waits for it of an order's outcome, or the log.
func (k *killer) finish(line *killLine, o *killOrder, err error) {
	if o.done != nil {
		o.ended(err)
		return
	}
	var refused *protocol.ServerError
	if errors.As(err, &refused) && refused.Code == mysql.ER_NO_SUCH_THREAD {
		err = nil // it has ended by itself
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if err != nil {
		k.failedLocked(line, err)
	} else if line.failing {
		line.failing = false
		k.log.Info("statements of lost clients ended again", line.fields()...)
	}
}

// failedLocked logs that statements go on without their clients: once.
func (k *killer) failedLocked(line *killLine, err error) {
	if line.failing {
		return
	}
	line.failing = true
	k.log.Warn("statement of a lost client goes on", append(line.fields(), logfield.Err(err))...)
}

func (l *killLine) fields() []zap.Field {
	return []zap.Field{logfield.Shard(l.place.Shard().Name()), logfield.Node(l.place.Node())}
}

func (o *killOrder) ended(err error) {
	if o.done != nil {
		o.done <- err
	}
}

// close takes no more orders, lets those that wait be carried out until ctx is done,
// and waits for the workers: killTimeout longer at most.
func (k *killer) close(ctx context.Context) {
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
	for _, line := range k.lines {
		for _, o := range line.urgent {
			o.ended(errKillsClosed)
		}
		line.urgent, line.waiting = nil, nil
	}
	k.mu.Unlock()
	<-ended
}

func isServerError(err error) bool {
	var refused *protocol.ServerError
	return errors.As(err, &refused)
}

// noRoom says whether a login failed because there are too many.
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
