package sequence

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
	"seqproxy/sequence/ticket"
)

// ErrNoTicket is a ticket that is left to the server: its table or statement is not of the kind
// that is served here.
var ErrNoTicket = errors.New("this is no ticket that is served here")

// maxStubs bounds the stubs of a table that are remembered.
const maxStubs = 4096

// TicketTable gives the numbers of a table whose AUTO_INCREMENT column is a counter: Flickr's, with
// a row for each stub that REPLACE renews, or one that gets a row for each number. The counter
// stays the table's own, so whoever goes there directly never gets the same number. It is safe for
// concurrent use.
type TicketTable struct {
	table  ticket.Table
	s      *Sequences
	cache  *cache.Cache
	looks  singleflight.Group
	layout atomic.Pointer[ticket.Layout] // nil before the first look

	mu       sync.Mutex
	stubs    map[string]bool // guarded by mu; whose rows are there
	stub     []byte          // guarded by mu; one of them
	failed   error           // guarded by mu; of the last look
	failedAt time.Time       // guarded by mu
	warnedAt time.Time       // guarded by mu
	mark     uint64          // guarded by mu; the highest number reserved
}

// Ticket is a number of a TicketTable.
type Ticket struct {
	Number        uint64
	Replaced      bool // the stub's row was there
	Transactional bool // the table takes part in transactions
}

// TicketTable returns the table of that name on the sequence server, for as long as s lives. It
// does no I/O.
func (s *Sequences) TicketTable(database, name string) *TicketTable {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, t := range s.ticketTables {
		if t.table.Database == database && t.table.Name == name {
			return t
		}
	}
	v := s.servers.Tickets
	t := &TicketTable{s: s, table: ticket.NewTable(database, name, v.At, v.Config.Link.IOTimeout)}
	t.mark = s.state.TicketMark(t.table.Quoted)
	t.cache = cache.New(&s.common, ticketReserver{t}, store.Row{Name: t.table.FullName()})
	if s.closed {
		t.cache.Shut(ErrClosed)
	}
	s.ticketTables = append(s.ticketTables, t)
	return t
}

// ticketTableNamed returns the table that was asked for before under schema.table, or under its
// name alone if it is in the schema of the sequence table; nil if there is none.
func (s *Sequences) ticketTableNamed(name string) *TicketTable {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, t := range s.ticketTables {
		if name == t.table.FullName() || name == t.table.Name && t.table.Database == s.opts.Servers[0].Database {
			return t
		}
	}
	return nil
}

// flush gives up the numbers in memory, a gap since a counter does not go back, and what is known
// of stubs: their rows may be gone.
func (t *TicketTable) flush() {
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
// becomes in the column. Errors are those of Take, and ErrNoTicket.
func (t *TicketTable) Replace(ctx context.Context, id, column, stub []byte) (Ticket, error) {
	layout, err := t.look(ctx)
	if err != nil {
		return Ticket{}, err
	}
	if layout.Stub == "" || !named(id, layout.ID) || !named(column, layout.Stub) {
		return Ticket{}, ErrNoTicket
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
func (t *TicketTable) take(ctx context.Context) (uint64, error) {
	number, _, err := t.cache.Take(ctx, 1, time.Time{})
	var unfit *UnfitError
	if errors.As(err, &unfit) && unfit.Table == t.table.Quoted || errors.Is(err, ErrExhausted) {
		err = ErrNoTicket
	}
	return number, err
}

// Insert does what `INSERT INTO table (id) VALUES (NULL)` does in a table that gets a row for each
// number. id is nil if the statement does not name the column, which is then the only one. Errors
// are those of Take, and ErrNoTicket.
func (t *TicketTable) Insert(ctx context.Context, id []byte) (Ticket, error) {
	layout, err := t.look(ctx)
	if err != nil {
		return Ticket{}, err
	}
	if layout.Stub != "" || !named(id, layout.ID) || id == nil && layout.Columns != 1 {
		return Ticket{}, ErrNoTicket
	}
	number, err := t.take(ctx)
	return Ticket{Number: number, Transactional: layout.Transactional()}, err
}

// named says whether a column that a statement may name is the one of that name.
func named(column []byte, name string) bool {
	return column == nil || bytes.EqualFold(column, []byte(name))
}

// look returns the layout of the table, and looks at it the first time.
func (t *TicketTable) look(ctx context.Context) (*ticket.Layout, error) {
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
		return r.Val.(*ticket.Layout), nil
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

func (t *TicketTable) recentFailure() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if time.Since(t.failedAt) < t.s.timing.ticketAgain {
		return t.failed
	}
	return nil
}

// lookOnce asks for all callers that wait at the same time.
func (t *TicketTable) lookOnce() (*ticket.Layout, error) {
	if !t.s.begin() {
		return nil, ErrClosed
	}
	defer t.s.tasks.Done()
	r, stop := t.s.request(t.s.ctx)
	defer stop()
	layout, err := t.inspect(r.ctx)
	if err != nil {
		return nil, t.leave(r, err)
	}
	return layout, nil
}

// leave turns the error of a request: what is wrong with the table itself is told to the operator,
// once a minute, and the statement is left to the server.
func (t *TicketTable) leave(r request, err error) error {
	var unfit *UnfitError
	if errors.As(err, &unfit) && unfit.Table == t.table.Quoted {
		t.mu.Lock()
		due := time.Since(t.warnedAt) >= t.s.timing.warnAgain
		if due {
			t.warnedAt = time.Now()
		}
		t.mu.Unlock()
		if due {
			t.s.log.Warn("ticket table not served", zap.String("table", t.table.Quoted), logfield.Err(err))
		}
		return ErrNoTicket
	}
	if said := new(mysql.MySQLError); errors.As(err, &said) {
		return ErrNoTicket // the server will tell the client itself
	}
	return r.failed(t.cache.Name, err)
}

func (t *TicketTable) hasStub(stub []byte) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.stubs[string(stub)]
}

// touch makes sure that a stub has a row, and reports whether it had one. It costs a number: the
// one that the row gets. A conflict with applications that go to the table themselves is no reason
// to leave the statement to the server: its number would be above those in memory, which come next.
func (t *TicketTable) touch(ctx context.Context, layout *ticket.Layout, stub []byte) (had bool, err error) {
	err = t.onServer(ctx, func(r request, conn *sql.Conn) error {
		for attempt := 1; ; attempt++ {
			result, err := conn.ExecContext(r.ctx, "REPLACE INTO "+t.table.Quoted+" ("+define.Quote(layout.Stub)+") VALUES (?)", string(stub))
			if err != nil && (link.IsUnknownOutcome(err) || link.IsConflict(err)) {
				// a counter does not go back where the statement is undone
				t.s.counters.Lose(t.cache.Name, stats.UnusedUnknownCommit, 1)
			}
			if link.IsConflict(err) && attempt < link.MaxAttempts && await.Pause(r.ctx, await.Jitter(t.s.timing.Conflict<<attempt)) {
				t.s.counters.Retries.Add(1)
				continue
			}
			if err != nil {
				return t.leave(r, err)
			}
			rows, err := result.RowsAffected()
			had = rows > 1
			return err
		}
	})
	if err != nil {
		return false, err
	}
	t.addStub(stub)
	return had, nil
}

// onServer runs f on a connection to the sequence server, as a task that Close waits for.
func (t *TicketTable) onServer(ctx context.Context, f func(r request, conn *sql.Conn) error) error {
	if !t.s.begin() {
		return ErrClosed
	}
	defer t.s.tasks.Done()
	r, stop := t.s.request(ctx)
	defer stop()
	conn, err := t.s.servers.Tickets.Conn(r.ctx)
	if err != nil {
		return r.failed(t.cache.Name, err)
	}
	defer func() { _ = conn.Close() }()
	return f(r, conn)
}

func (t *TicketTable) addStub(stub []byte) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.stubs == nil || len(t.stubs) >= maxStubs {
		t.stubs = make(map[string]bool)
	}
	t.stubs[string(stub)] = true
	t.stub = bytes.Clone(stub)
}
