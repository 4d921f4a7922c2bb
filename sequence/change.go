package sequence

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	gomysql "github.com/go-mysql-org/go-mysql/mysql"
)

// CreateOptions describes a new sequence.
type CreateOptions struct {
	Name        string
	IfNotExists bool   // an existing sequence is no error and stays as it is
	Start       uint64 // the first number; 0 means 1
	Cache       uint64 // CACHE n: at most n unused numbers in memory of a proxy; 0 means adaptive
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
	o.Start = max(o.Start, 1)
	if !s.begin() {
		return Created{}, ErrClosed
	}
	defer s.tasks.Done()
	made, err := s.server.create(ctx, o)
	if err != nil {
		return Created{}, s.asked(ctx, o.Name, err)
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
	stored, err := s.server.drop(ctx, string(name))
	if errors.Is(err, ErrUnknown) && ifExists {
		err = nil
	}
	if err != nil {
		return false, s.asked(ctx, string(name), err)
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

// asked turns the error of a request into what the caller is promised.
func (s *Sequences) asked(ctx context.Context, name string, err error) error {
	for _, known := range []error{ErrUnknown, ErrExists, ErrExhausted, ErrUnfit, ErrClosed, ErrBadOption} {
		if errors.Is(err, known) {
			return err
		}
	}
	s.counters.errors.Add(1)
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return &UnavailableError{Sequence: name, Server: s.serverName(), Err: err}
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
	err := v.transact(ctx, func(tx *sql.Tx, withOptions bool) error {
		made = Created{First: o.Start}
		floor := v.marks.of(o.Name)
		if withOptions {
			var tomb uint64
			err := tx.QueryRowContext(ctx, "SELECT `floor` FROM "+v.table.options+" WHERE `name` = ? FOR UPDATE", o.Name).Scan(&tomb)
			if err != nil && !errors.Is(err, sql.ErrNoRows) {
				return fmt.Errorf("read tombstone: %w", err)
			}
			floor = max(floor, tomb)
		}
		if floor == v.seen.Load().max {
			return &NameError{Name: o.Name, Err: ErrExhausted}
		}
		if floor >= o.Start {
			made.First, made.Raised = floor+1, true
		}
		if _, err := tx.ExecContext(ctx, "INSERT INTO "+v.table.full+" (`name`, `id`) VALUES (?, ?)", o.Name, made.First-1); err != nil {
			return err
		}
		if !withOptions {
			return nil
		}
		_, err := tx.ExecContext(ctx, "INSERT INTO "+v.table.options+" (`name`, `cache`) VALUES (?, ?) ON DUPLICATE KEY UPDATE `cache` = VALUES(`cache`)",
			o.Name, o.Cache)
		return err
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

// drop deletes the row and leaves its tombstone, in one transaction. It returns the name as it was stored.
func (v *server) drop(ctx context.Context, name string) (stored string, err error) {
	found, err := v.find(ctx, name)
	if err != nil {
		return "", err
	}
	if err := v.needOptions(ctx); err != nil {
		return "", err
	}
	err = v.transact(ctx, func(tx *sql.Tx, _ bool) error {
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

// transact runs f in a transaction, again if it conflicts with another.
func (v *server) transact(ctx context.Context, f func(tx *sql.Tx, withOptions bool) error) error {
	for attempt := 1; ; attempt++ {
		err := v.transactOnce(ctx, f)
		if !isConflict(err) || attempt == maxAttempts {
			return err
		}
		v.counters.retries.Add(1)
		if !pause(ctx, jitter(firstConflict<<attempt)) {
			return context.Cause(ctx)
		}
	}
}

func (v *server) transactOnce(ctx context.Context, f func(tx *sql.Tx, withOptions bool) error) error {
	conn, err := v.conn(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close() }()
	with, err := v.lookForOptions(ctx, conn)
	if err != nil {
		return err
	}
	tx, err := conn.BeginTx(ctx, nil)
	if err != nil {
		return fmt.Errorf("begin: %w", err)
	}
	if err := f(tx, with); err != nil {
		return errors.Join(err, tx.Rollback())
	}
	if err := tx.Commit(); err != nil {
		return fmt.Errorf("commit, whose outcome is unknown: %w", err)
	}
	return nil
}
