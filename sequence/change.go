package sequence

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"time"

	gomysql "github.com/go-mysql-org/go-mysql/mysql"
	"github.com/go-sql-driver/mysql"
)

// maxCache keeps one typing error from using up a sequence: 2^63 numbers are 9 million reservations of this size.
const maxCache = 1_000_000_000_000

// CreateOptions describes a new sequence.
type CreateOptions struct {
	Name        string
	IfNotExists bool   // an existing sequence is no error and stays as it is
	Start       uint64 // the first number; 0 means 1
	Cache       uint64 // CACHE n: at most n unused numbers in memory of a proxy, up to 10^12; 0 means adaptive
}

// Created says what Create did.
type Created struct {
	Existed bool   // IfNotExists was given and the sequence exists; nothing was changed
	First   uint64 // the first number that it will give
	Raised  bool   // First is above Start, because a dropped sequence of that name gave the numbers below
}

// Create makes a sequence. If one of that name was dropped before, it continues above the dropped one's last number, because
// other proxies may still hold numbers of it. Errors: ErrExists, ErrBadOption, ErrExhausted (the dropped one had reached the
// maximum), ErrUnfit, ErrClosed, ctx's cause, *UnavailableError.
func (s *Sequences) Create(ctx context.Context, o CreateOptions) (Created, error) {
	if o.Name == "" || len(o.Name) > maxNameBytes {
		return Created{}, badOption("sequence name of %d bytes, want 1 to %d", len(o.Name), maxNameBytes)
	}
	if o.Cache > maxCache {
		return Created{}, badOption("sequence %q: CACHE %d, want at most %d", o.Name, o.Cache, uint64(maxCache))
	}
	o.Start = max(o.Start, 1)
	if !s.begin() {
		return Created{}, ErrClosed
	}
	defer s.tasks.Done()
	r, stop := s.request(ctx)
	defer stop()
	made, err := s.server.create(r.ctx, o)
	if err != nil {
		return Created{}, r.failed(o.Name, err)
	}
	s.unknown.clear()
	return made, nil
}

// Drop removes a sequence and reports whether there was one. Its last number is kept as a tombstone, above which a later Create
// of the name continues. Numbers in memory here are not given any more; other proxies go on with theirs until they reserve
// again. Errors: ErrUnknown (not if ifExists), ErrUnfit, ErrClosed, ctx's cause, *UnavailableError.
func (s *Sequences) Drop(ctx context.Context, name []byte, ifExists bool) (bool, error) {
	if !s.begin() {
		return false, ErrClosed
	}
	defer s.tasks.Done()
	r, stop := s.request(ctx)
	defer stop()
	stored, err := s.server.drop(r.ctx, string(name))
	if errors.Is(err, ErrUnknown) && ifExists {
		err = nil
	}
	if err != nil {
		return false, r.failed(string(name), err)
	}
	if stored == "" {
		return false, nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if c := s.caches[stored]; c != nil {
		c.shut(&NameError{Name: stored, Err: ErrUnknown})
		s.removeLocked(c)
	}
	return true, nil
}

// request is something that only the server can answer.
type request struct {
	s     *Sequences
	ctx   context.Context // ends with the caller's, after the allocate timeout, and when Close gives up waiting
	begin time.Time
}

// request begins a request. The caller calls stop at its end.
func (s *Sequences) request(ctx context.Context) (r request, stop func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	unhook := context.AfterFunc(s.ctx, func() { cancel(context.Cause(s.ctx)) })
	ctx, stopTimer := context.WithTimeoutCause(ctx, s.opts.AllocateTimeout, errPatience)
	return request{s: s, ctx: ctx, begin: time.Now()}, func() {
		stopTimer()
		unhook()
		cancel(nil)
	}
}

// failed turns the error of a request into what the caller is promised.
func (r request) failed(name string, err error) error {
	s := r.s
	for _, known := range []error{ErrUnknown, ErrExists, ErrExhausted, ErrUnfit, ErrClosed, ErrBadOption} {
		if errors.Is(err, known) {
			return err
		}
	}
	s.counters.errors.Add(1)
	if cause := context.Cause(r.ctx); cause != nil {
		if !errors.Is(cause, errPatience) {
			return cause
		}
		if said := new(mysql.MySQLError); !errors.As(err, &said) {
			err = s.whyNot() // the end of the wait itself says nothing
		}
	}
	return &UnavailableError{Sequence: name, Server: s.serverName(), Waited: time.Since(r.begin), Err: err}
}

// create inserts the row and its options in one transaction.
func (v *server) create(ctx context.Context, o CreateOptions) (Created, error) {
	if found, err := v.find(ctx, o.Name); err == nil {
		if o.IfNotExists {
			return Created{Existed: true, First: found.id + 1}, nil
		}
		return Created{}, &NameError{Name: found.name, Err: ErrExists}
	} else if !errors.Is(err, ErrUnknown) {
		return Created{}, err
	}
	if highest := v.seen.Load().max; o.Start > highest {
		return Created{}, badOption("sequence %q: START WITH %d is above the maximum %d of the id column", o.Name, o.Start, highest)
	}
	if o.Cache > 0 {
		if err := v.needOptions(ctx); err != nil {
			return Created{}, err
		}
	}
	var made Created
	err := v.transact(ctx, func(tx *sql.Tx) error {
		made = Created{First: o.Start}
		// The row comes first, and keeps every other CREATE and DROP of the name out until the commit: a tombstone that is
		// looked for before may be written, in a table that did not even exist, between the look and the insert.
		if _, err := tx.ExecContext(ctx, "INSERT INTO "+v.table.full+" (`name`, `id`) VALUES (?, ?)", o.Name, o.Start-1); err != nil {
			return err
		}
		floor := v.marks.of(o.Name)
		withOptions, err := v.lookForOptions(ctx, tx)
		if err != nil {
			return err
		}
		if withOptions {
			tomb, err := v.enterOptions(ctx, tx, o)
			if err != nil {
				return err
			}
			floor = max(floor, tomb)
		}
		switch {
		case floor >= v.seen.Load().max:
			return &NameError{Name: o.Name, Err: ErrExhausted}
		case floor < o.Start:
			return nil
		}
		made.First, made.Raised = floor+1, true
		if _, err := tx.ExecContext(ctx, "UPDATE "+v.table.full+" SET `id` = ? WHERE `name` = ?", floor, o.Name); err != nil {
			return fmt.Errorf("raise the row above its tombstone: %w", err)
		}
		return nil
	})
	switch {
	case hasCode(err, gomysql.ER_DUP_ENTRY):
		// Made by somebody else between the look and the insert.
		if o.IfNotExists {
			return Created{Existed: true}, nil
		}
		return Created{}, &NameError{Name: o.Name, Err: ErrExists}
	case hasCode(err, gomysql.ER_DATA_TOO_LONG, gomysql.ER_TRUNCATED_WRONG_VALUE_FOR_FIELD) || isNoSuchText(err):
		return Created{}, badOption("sequence name %q does not fit the column `name`: %v", o.Name, err)
	case err != nil:
		return Created{}, fmt.Errorf("create sequence %q: %w", o.Name, err)
	}
	return made, nil
}

// enterOptions writes the options of a new sequence and returns its tombstone, 0 if there is none. To write first locks the row
// alone, where to look for one that is missing would lock the names around it.
func (v *server) enterOptions(ctx context.Context, tx *sql.Tx, o CreateOptions) (tomb uint64, err error) {
	if _, err := tx.ExecContext(ctx, "INSERT INTO "+v.table.options+" (`name`, `cache`) VALUES (?, ?) "+
		"ON DUPLICATE KEY UPDATE `cache` = VALUES(`cache`)", o.Name, o.Cache); err != nil {
		return 0, fmt.Errorf("write options: %w", err)
	}
	if err := tx.QueryRowContext(ctx, "SELECT `floor` FROM "+v.table.options+" WHERE `name` = ? FOR UPDATE", o.Name).Scan(&tomb); err != nil {
		return 0, fmt.Errorf("read tombstone: %w", err)
	}
	return tomb, nil
}

// drop deletes the row and leaves its tombstone, in one transaction. It returns the name as it was stored.
func (v *server) drop(ctx context.Context, name string) (stored string, err error) {
	found, err := v.find(ctx, name)
	if err != nil {
		return "", err
	}
	if err := v.needOptions(ctx); err != nil {
		return "", err
	}
	err = v.transact(ctx, func(tx *sql.Tx) error {
		// The lock keeps reservations out until the tombstone holds the very last number.
		locked, err := v.scanRow(tx.QueryRowContext(ctx, v.table.rows(false)+" WHERE s.`name` = ? FOR UPDATE", name))
		if errors.Is(err, sql.ErrNoRows) {
			return &NameError{Name: name, Err: ErrUnknown}
		}
		if err != nil {
			return fmt.Errorf("lock the row: %w", err)
		}
		floor := max(locked.id, v.marks.of(found.name))
		if _, err := tx.ExecContext(ctx, "INSERT INTO "+v.table.options+" (`name`, `floor`) VALUES (?, ?) "+
			"ON DUPLICATE KEY UPDATE `cache` = 0, `floor` = GREATEST(`floor`, VALUES(`floor`))", locked.name, floor); err != nil {
			return fmt.Errorf("write tombstone: %w", err)
		}
		if _, err := tx.ExecContext(ctx, "DELETE FROM "+v.table.full+" WHERE `name` = ?", name); err != nil {
			return fmt.Errorf("delete the row: %w", err)
		}
		return nil
	})
	if err != nil {
		return "", fmt.Errorf("drop sequence %q: %w", name, err)
	}
	return found.name, nil
}

// needOptions creates the options table. It is DDL, which commits, so it comes before a transaction.
func (v *server) needOptions(ctx context.Context) error {
	if v.hasOptions.Load() {
		return nil
	}
	text := fmt.Sprintf(createOptions, v.table.options, v.seen.Load().nameType)
	if _, err := v.pool().ExecContext(ctx, text); err != nil {
		return fmt.Errorf("create table %s: %w", v.table.options, err)
	}
	v.hasOptions.Store(true)
	return nil
}

// transact runs f in a transaction, again if it conflicts with another or its connection turns out to be of no use.
func (v *server) transact(ctx context.Context, f func(tx *sql.Tx) error) error {
	var conflict error
	for attempt := 1; ; attempt++ {
		err := v.transactOnce(ctx, f)
		if conflict != nil && ctx.Err() != nil && err != nil {
			return conflict // what it waited for says more than that the wait ended
		}
		// ErrBadConn: nothing was done. The checks of the next connection say why, such as that the server is read only now.
		if !isConflict(err) && !errors.Is(err, driver.ErrBadConn) || attempt == maxAttempts {
			return err
		}
		conflict = err
		v.counters.retries.Add(1)
		if !pause(ctx, jitter(firstConflict<<attempt)) {
			return conflict
		}
	}
}

func (v *server) transactOnce(ctx context.Context, f func(tx *sql.Tx) error) error {
	conn, err := v.conn(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close() }()
	tx, err := conn.BeginTx(ctx, nil)
	if err != nil {
		return fmt.Errorf("begin: %w", err)
	}
	if err := f(tx); err != nil {
		return errors.Join(err, tx.Rollback())
	}
	if err := tx.Commit(); err != nil {
		return fmt.Errorf("commit, whose outcome is unknown: %w", err)
	}
	return nil
}
