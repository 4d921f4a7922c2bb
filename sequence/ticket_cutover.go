package sequence

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-sql-driver/mysql"
	"go.uber.org/zap"
	"golang.org/x/sync/singleflight"

	"seqproxy/internal/logfield"
)

// cutOverDistance is how far a table's counter is raised at a cut-over, at most: more than any table gives in its life, and little of
// 64 bits. A smaller column is parted in halves.
const cutOverDistance = 1 << 40

// watchEvery is how often a table that was cut over is looked at.
const watchEvery = 10 * time.Second

// watchedFrom is what the times of these looks are counted from, whatever the clock does. So the first is due at once.
var watchedFrom = time.Now().Add(-watchEvery)

// CutOver gives the numbers of a ticket table out of a sequence: the table's counter is raised far ahead, once, and the sequence gives
// the numbers between. So applications that still go to the table get numbers that the sequence never gives, far above, and the log
// says that they do. It is safe for concurrent use.
type CutOver struct {
	table    *TicketTable
	sequence string
	perStub  bool
	cuts     singleflight.Group
	done     atomic.Pointer[Definition] // of the sequence; nil before this proxy has seen it
	watched  atomic.Int64               // when the table was last looked at, in nanoseconds since watchedFrom; 0: never
	highest  atomic.Uint64              // number seen in it

	mu      sync.Mutex
	ofStubs map[string]bool // guarded by mu; sequences of stubs that are known to be of the cut-over
}

// CutOver returns the table of that name on the sequence server, whose numbers come from a sequence after a cut-over, which is
// made when the first number is asked for. With perStub each stub has a sequence of its own, named <sequence>:<stub>; else all
// share the one. It does no I/O.
func (s *Sequences) CutOver(database, name, sequence string, perStub bool) *CutOver {
	return &CutOver{table: s.TicketTable(database, name), sequence: sequence, perStub: perStub}
}

// comment marks the sequence of a table that was cut over: another of that name may give the table's numbers again.
func (c *CutOver) comment() string { return "cut over from " + c.table.full }

// Replace is that of TicketTable.
func (c *CutOver) Replace(ctx context.Context, id, column, stub []byte) (Ticket, error) {
	layout, err := c.table.look(ctx)
	if err != nil {
		return Ticket{}, err
	}
	if layout.stub == "" || !named(id, layout.id) || !named(column, layout.stub) {
		return Ticket{}, ErrNoTicket
	}
	def, err := c.ready(ctx, string(stub))
	if err != nil {
		return Ticket{}, err
	}
	ticket := Ticket{Replaced: true, Transactional: layout.transactional}
	if !c.table.hasStub(stub) {
		if ticket.Replaced, err = c.enter(ctx, layout, string(stub)); err != nil {
			return Ticket{}, err
		}
	}
	name := c.sequence
	if c.perStub {
		name += ":" + string(stub)
	}
	ticket.Number, err = c.take(ctx, name, def)
	return ticket, err
}

// Insert is that of TicketTable.
func (c *CutOver) Insert(ctx context.Context, id []byte) (Ticket, error) {
	layout, err := c.table.look(ctx)
	if err != nil {
		return Ticket{}, err
	}
	if layout.stub != "" || !named(id, layout.id) || id == nil && layout.columns != 1 {
		return Ticket{}, ErrNoTicket
	}
	def, err := c.ready(ctx, "")
	if err != nil {
		return Ticket{}, err
	}
	number, err := c.take(ctx, c.sequence, def)
	return Ticket{Number: number, Transactional: layout.transactional}, err
}

// take gives a number of a sequence.
func (c *CutOver) take(ctx context.Context, name string, def *Definition) (uint64, error) {
	c.watch()
	if name != c.sequence {
		if err := c.ofStub(ctx, name, def); err != nil {
			return 0, err
		}
	}
	return c.table.s.Advance(ctx, []byte(name), def.Increment)
}

// ofStub makes sure that the sequence of a stub is one of the cut-over. It is made where it is missing, between the same bounds.
func (c *CutOver) ofStub(ctx context.Context, name string, def *Definition) error {
	c.mu.Lock()
	known := c.ofStubs[name]
	c.mu.Unlock()
	s := c.table.s
	if known {
		exists, err := s.Known(ctx, []byte(name))
		if exists || err != nil {
			return err
		}
	}
	_, err := s.Create(ctx, CreateOptions{
		Name: name, IfNotExists: true, Increment: def.Increment, Start: def.Start, Max: def.Max, Comment: def.Comment,
	})
	if err != nil {
		return err
	}
	stored, _, err := s.Describe(ctx, []byte(name))
	if err != nil {
		return err
	}
	if stored.Comment != c.comment() {
		return c.table.unfit(fmt.Sprintf("the sequence %s was not made by its cut-over, and may give its numbers again", name), "drop that sequence, or name another for the cut-over")
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ofStubs == nil || len(c.ofStubs) >= maxStubs {
		c.ofStubs = make(map[string]bool)
	}
	c.ofStubs[name] = true
	return nil
}

// ready returns the definition of the sequence, after the cut-over. stub is one that the table may have.
func (c *CutOver) ready(ctx context.Context, stub string) (*Definition, error) {
	if def := c.done.Load(); def != nil {
		return def, nil
	}
	if err := c.table.recentFailure(); err != nil {
		return nil, err
	}
	answer := c.cuts.DoChan("", func() (any, error) {
		def, err := c.cut(stub)
		c.table.mu.Lock()
		defer c.table.mu.Unlock()
		if !errors.Is(err, ErrNoTicket) {
			c.table.failed, c.table.failedAt = err, time.Now()
		}
		return def, err
	})
	return await[*Definition](ctx, answer)
}

// cut makes the cut-over, or finds that it was made, for all callers that wait at the same time.
func (c *CutOver) cut(stub string) (*Definition, error) {
	t := c.table
	if !t.s.begin() {
		return nil, ErrClosed
	}
	defer t.s.tasks.Done()
	t.s.cutting.Lock() // each holds a connection and needs another
	defer t.s.cutting.Unlock()
	r, stop := t.s.request(t.s.ctx)
	defer stop()
	var def Definition
	err := t.locked(r.ctx, func(l *lockedTable, step uint64) (err error) {
		l.stub = stub
		def, err = c.cutLocked(r.ctx, l, step)
		return err
	})
	if err != nil {
		var unfit *UnfitError
		if errors.As(err, &unfit) {
			return nil, err // to send it on could repeat what the sequence has given
		}
		if said := new(mysql.MySQLError); errors.As(err, &said) && !isConflict(err) {
			return nil, ErrNoTicket // of this stub, which the server will say itself
		}
		return nil, r.failed(c.sequence, err)
	}
	c.highest.Store(def.Max + def.Increment)
	c.done.Store(&def)
	return &def, nil
}

// cutLocked is cut while the table is locked, so that nobody takes a number of it and no other proxy cuts it over.
func (c *CutOver) cutLocked(ctx context.Context, l *lockedTable, step uint64) (Definition, error) {
	t := c.table
	def, _, err := t.s.Describe(ctx, []byte(c.sequence))
	switch {
	case err == nil && def.Comment != c.comment():
		return def, t.unfit(fmt.Sprintf("the sequence %s was not made by its cut-over, and may give its numbers again", c.sequence), "name a sequence that is not there yet")
	case err == nil:
		return def, c.keepAhead(ctx, l, &def)
	case !errors.Is(err, ErrUnknown):
		return def, err
	}
	first, err := l.next(ctx)
	if err != nil {
		return def, err
	}
	distance := min(cutOverDistance, (l.max-min(l.max, first))/2) / step * step
	if distance < 1000*step {
		return def, t.unfit(fmt.Sprintf("its counter is at %d of %d, which leaves too few numbers for a cut-over", first, l.max), "MODIFY the column to BIGINT UNSIGNED")
	}
	// The table's own numbers end with first, and go on behind this one.
	ahead := first + distance
	if _, err := l.moveTo(ctx, ahead); err != nil {
		return def, err
	}
	if err := l.forget(ctx, first); err != nil {
		return def, err
	}
	if _, err := t.s.Create(ctx, CreateOptions{
		Name: c.sequence, Increment: step, Start: first + step, Max: ahead - step, Comment: c.comment(),
	}); err != nil {
		return def, err
	}
	t.s.log.Info("ticket table cut over", zap.String("table", t.full), logfield.Sequence(c.sequence),
		zap.Uint64("first", first+step), zap.Uint64("above", ahead))
	def, _, err = t.s.Describe(ctx, []byte(c.sequence))
	return def, err
}

// keepAhead raises a counter that somebody has lowered since the cut-over.
func (c *CutOver) keepAhead(ctx context.Context, l *lockedTable, def *Definition) error {
	highest, err := c.highestRow(ctx, l.conn, l.ticketLayout)
	if err != nil || highest > def.Max {
		return err
	}
	c.table.s.log.Warn("ticket rows gone after the cut-over", zap.String("table", c.table.full),
		zap.Uint64("above", def.Max))
	_, err = l.moveTo(ctx, def.Max+def.Increment)
	return err
}

// highestRow is the highest number that stands in the table, or 0.
func (c *CutOver) highestRow(ctx context.Context, conn *sql.Conn, layout *ticketLayout) (highest uint64, err error) {
	err = conn.QueryRowContext(ctx, "SELECT IFNULL(MAX("+quote(layout.id)+"), 0) FROM "+c.table.full).Scan(&highest)
	return highest, err
}

// enter makes sure that a stub has a row, below all others so that the counter does not move, and reports whether it had one.
func (c *CutOver) enter(ctx context.Context, layout *ticketLayout, stub string) (had bool, err error) {
	t := c.table
	err = t.onServer(ctx, c.sequence, func(r request, conn *sql.Conn) error {
		var rows int
		var lowest uint64
		err := conn.QueryRowContext(r.ctx, "SELECT IFNULL(SUM("+quote(layout.stub)+" = ?), 0), IFNULL(MIN("+quote(layout.id)+"), 0) FROM "+t.full, stub).Scan(&rows, &lowest)
		if err == nil && rows == 0 && lowest > 1 {
			_, err = conn.ExecContext(r.ctx, "INSERT INTO "+t.full+" ("+quote(layout.id)+", "+quote(layout.stub)+") VALUES (?, ?)",
				strconv.FormatUint(lowest-1, 10), stub)
		}
		if err != nil {
			return t.leave(r, err)
		}
		had = rows > 0
		return nil
	})
	if err != nil {
		return false, err
	}
	t.addStub([]byte(stub))
	return had, nil
}

// watch looks at the table now and then, and warns if somebody takes numbers of it.
func (c *CutOver) watch() {
	now, last := int64(time.Since(watchedFrom)), c.watched.Load()
	if now-last < int64(watchEvery) || !c.watched.CompareAndSwap(last, now) || !c.table.s.begin() {
		return
	}
	go func() {
		defer c.table.s.tasks.Done()
		r, stop := c.table.s.request(c.table.s.ctx)
		defer stop()
		conn, err := c.table.s.servers.tickets.conn(r.ctx)
		if err != nil {
			return // whoever needs a number is told
		}
		defer func() { _ = conn.Close() }()
		highest, err := c.highestRow(r.ctx, conn, c.table.layout.Load())
		if err == nil && highest <= c.done.Load().Max {
			c.raise(r.ctx)
		}
		if before := c.highest.Load(); err == nil && highest > before && c.highest.CompareAndSwap(before, highest) {
			c.table.s.log.Warn("ticket table used after the cut-over", zap.String("table", c.table.full),
				zap.Uint64("now", highest), zap.Uint64("was", before))
		}
	}()
}

// raise makes sure that the counter is ahead, after the rows that had raised it are gone.
func (c *CutOver) raise(ctx context.Context) {
	t := c.table
	t.s.cutting.Lock()
	defer t.s.cutting.Unlock()
	if err := t.locked(ctx, func(l *lockedTable, _ uint64) error { return c.keepAhead(ctx, l, c.done.Load()) }); err != nil {
		t.s.log.Error("ticket counter not raised", zap.String("table", t.full), logfield.Err(err))
	}
}
