package ticket

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-sql-driver/mysql"
	"go.uber.org/zap"
	"golang.org/x/sync/singleflight"

	"seqproxy/internal/await"
	"seqproxy/internal/logfield"
	"seqproxy/sequence/cache"
	"seqproxy/sequence/define"
	"seqproxy/sequence/link"
	"seqproxy/sequence/stats"
	"seqproxy/sequence/store"
)

// ErrNotServed is a ticket that is left to the server: its table or statement is not of the kind
// that is served here.
var ErrNotServed = errors.New("this is no ticket that is served here")

// maxStubs bounds the stubs of a table that are remembered.
const maxStubs = 4096

// Counter gives the numbers of a table whose AUTO_INCREMENT column is a counter: Flickr's, with
// a row for each stub that REPLACE renews, or one that gets a row for each number. The counter
// stays the table's own, so whoever goes there directly never gets the same number. It is safe for
// concurrent use.
type Counter struct {
	table  Table
	all    *Options
	cache  *cache.Cache
	looks  singleflight.Group
	layout atomic.Pointer[Layout] // nil before the first look

	mu       sync.Mutex
	stubs    map[string]bool // guarded by mu; whose rows are there
	stub     []byte          // guarded by mu; one of them
	failed   error           // guarded by mu; of the last look
	failedAt time.Time       // guarded by mu
	warnedAt time.Time       // guarded by mu
	mark     uint64          // guarded by mu; the highest number reserved
}

// Ticket is a number of a Counter.
type Ticket struct {
	Number        uint64
	Replaced      bool // the stub's row was there
	Transactional bool // the table takes part in transactions
}

func newCounter(o *Options, database, name string) *Counter {
	t := &Counter{all: o, table: newTable(database, name, o.Server.At, o.Server.Config.Link.IOTimeout)}
	t.mark = o.State.TicketMark(t.table.Quoted)
	t.cache = cache.New(o.Common, reserver{t}, store.Row{Name: t.table.FullName()})
	return t
}

// Cache is what is in memory of it.
func (t *Counter) Cache() *cache.Cache { return t.cache }

// Flush gives up the numbers in memory, a gap since a counter does not go back, and what was seen
// of stubs: their rows may be gone.
func (t *Counter) Flush() {
	t.cache.Flush()
	t.mu.Lock()
	defer t.mu.Unlock()
	t.stubs = nil
}

// Replace does what `REPLACE INTO table (column) VALUES (stub)` does: it gives the table's next
// number to the caller alone. id is the name of the AUTO_INCREMENT column if the statement names
// it, else nil. All stubs share the counter.
//
// The first use of a stub goes to the table: afterwards its row is there, whatever the value
// becomes in the column. Errors are those of Take, and ErrNotServed.
func (t *Counter) Replace(ctx context.Context, id, column, stub []byte) (Ticket, error) {
	layout, err := t.look(ctx)
	if err != nil {
		return Ticket{}, err
	}
	if layout.Stub == "" || !named(id, layout.ID) || !named(column, layout.Stub) {
		return Ticket{}, ErrNotServed
	}
	ticket := Ticket{Replaced: true, Transactional: layout.Transactional()}
	if !t.hasStub(stub) {
		if ticket.Replaced, err = t.touch(ctx, layout, stub); err != nil {
			return Ticket{}, err
		}
	}
	ticket.Number, err = t.take(ctx)
	return ticket, err
}

// take gives a number. What is wrong with the table itself, its end too, is for the server to say.
func (t *Counter) take(ctx context.Context) (uint64, error) {
	number, _, err := t.cache.Take(ctx, 1, time.Time{})
	var unfit *link.UnfitError
	if errors.As(err, &unfit) && unfit.Table == t.table.Quoted || errors.Is(err, define.ErrExhausted) {
		err = ErrNotServed
	}
	return number, err
}

// Insert does what `INSERT INTO table (id) VALUES (NULL)` does in a table that gets a row for each
// number. id is nil if the statement does not name the column, which is then the only one. Errors
// are those of Take, and ErrNotServed.
func (t *Counter) Insert(ctx context.Context, id []byte) (Ticket, error) {
	layout, err := t.look(ctx)
	if err != nil {
		return Ticket{}, err
	}
	if layout.Stub != "" || !named(id, layout.ID) || id == nil && layout.Columns != 1 {
		return Ticket{}, ErrNotServed
	}
	number, err := t.take(ctx)
	return Ticket{Number: number, Transactional: layout.Transactional()}, err
}

// named says whether a column that a statement may name is the one of that name.
func named(column []byte, name string) bool {
	return column == nil || bytes.EqualFold(column, []byte(name))
}

// look returns the layout of the table, and looks at it the first time.
func (t *Counter) look(ctx context.Context) (*Layout, error) {
	if layout := t.layout.Load(); layout != nil {
		return layout, nil
	}
	if err := t.recentFailure(); err != nil {
		return nil, err
	}
	answer := t.looks.DoChan("", func() (any, error) {
		layout, err := t.lookOnce()
		t.mu.Lock()
		defer t.mu.Unlock()
		t.failed, t.failedAt = err, time.Now()
		return layout, err
	})
	select {
	case r := <-answer:
		if r.Err != nil {
			return nil, r.Err
		}
		return r.Val.(*Layout), nil
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

func (t *Counter) recentFailure() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if time.Since(t.failedAt) < t.all.Timing.Again {
		return t.failed
	}
	return nil
}

// lookOnce asks for all callers that wait at the same time, so it listens to none of their
// contexts.
func (t *Counter) lookOnce() (layout *Layout, err error) {
	err = t.all.Owner.Request(context.Background(), t.cache.Name, func(ctx context.Context) error {
		layout, err = t.inspect(ctx)
		return t.leave(err)
	})
	return layout, err
}

// leave turns the error of a request: what is wrong with the table itself is told to the operator,
// once a minute, and the statement is left to the server.
func (t *Counter) leave(err error) error {
	var unfit *link.UnfitError
	if errors.As(err, &unfit) && unfit.Table == t.table.Quoted {
		t.mu.Lock()
		due := time.Since(t.warnedAt) >= t.all.Timing.WarnAgain
		if due {
			t.warnedAt = time.Now()
		}
		t.mu.Unlock()
		if due {
			t.all.Common.Log.Warn("ticket table not served", zap.String("table", t.table.Quoted), logfield.Err(err))
		}
		return ErrNotServed
	}
	if said := new(mysql.MySQLError); errors.As(err, &said) {
		return ErrNotServed // the server will tell the client itself
	}
	return err
}

func (t *Counter) hasStub(stub []byte) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.stubs[string(stub)]
}

// touch makes sure that a stub has a row, and reports whether it had one. It costs a number: the
// one that the row gets. A conflict with applications that go to the table themselves is no reason
// to leave the statement to the server: its number would be above those in memory, which come next.
func (t *Counter) touch(ctx context.Context, layout *Layout, stub []byte) (had bool, err error) {
	err = t.all.Owner.Request(ctx, t.cache.Name, func(ctx context.Context) error {
		conn, err := t.all.Server.Conn(ctx)
		if err != nil {
			return err
		}
		defer func() { _ = conn.Close() }()
		had, err = t.touchOn(ctx, conn, layout, stub)
		return t.leave(err)
	})
	if err != nil {
		return false, err
	}
	t.addStub(stub)
	return had, nil
}

func (t *Counter) touchOn(ctx context.Context, conn *sql.Conn, layout *Layout, stub []byte) (had bool, err error) {
	text := "REPLACE INTO " + t.table.Quoted + " (" + define.Quote(layout.Stub) + ") VALUES (?)"
	for attempt := 1; ; attempt++ {
		result, err := conn.ExecContext(ctx, text, string(stub))
		if err != nil && (link.IsUnknownOutcome(err) || link.IsConflict(err)) {
			// a counter does not go back where the statement is undone
			t.all.Common.Counters.Lose(t.cache.Name, stats.UnusedUnknownCommit, 1)
		}
		if link.IsConflict(err) && attempt < link.MaxAttempts && await.Pause(ctx, await.Jitter(t.all.Timing.Conflict<<attempt)) {
			t.all.Common.Counters.Retries.Add(1)
			continue
		}
		if err != nil {
			return false, err
		}
		rows, err := result.RowsAffected()
		return rows > 1, err
	}
}

func (t *Counter) addStub(stub []byte) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.stubs == nil || len(t.stubs) >= maxStubs {
		t.stubs = make(map[string]bool)
	}
	t.stubs[string(stub)] = true
	t.stub = bytes.Clone(stub)
}
