package main

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"strconv"
	"sync/atomic"

	"github.com/go-mysql-org/go-mysql/mysql"
)

// The statements of the INSERT workloads, which write the same rows.
const (
	insertNextval = "INSERT INTO photos (id, title) VALUES (NEXTVAL('photos'), "
	insertFilled  = "INSERT INTO filled (title) VALUES ("
	insertLiteral = "INSERT INTO photos (id, title) VALUES ("
	insertTitle   = "a photo of a cat on a keyboard"
)

// literalWorker inserts rows with keys that the client makes.
type literalWorker struct {
	c      *client
	last   *atomic.Uint64 // the last key, shared by all connections
	packet []byte
	keyAt  int           // offset of the key in an execution; 0 for a text
	done   *atomic.Int64 // rows that were acknowledged
}

func (w *literalWorker) do() (int, error) {
	key := w.last.Add(1)
	if w.keyAt > 0 {
		binary.LittleEndian.PutUint64(w.packet[w.keyAt:], key)
	} else {
		w.packet = appendCommand(w.packet[:0], mysql.COM_QUERY, insertLiteral)
		w.packet = strconv.AppendUint(w.packet, key, 10)
		w.packet = append(w.packet, ", '"+insertTitle+"')"...)
		w.packet[0] = byte(len(w.packet) - headerSize) // the statement is short
	}
	if err := w.c.send(w.packet); err != nil {
		return 0, err
	}
	_, err := numberFromOK(w.c)
	w.done.Add(1)
	return 1, err
}

func (w *literalWorker) close() error { return w.c.quit() }

// loadLiteralInserts measures INSERT with the client's keys, as text or prepared.
func loadLiteralInserts(conns int, prepared bool) runFunc {
	return func(ctx context.Context, e environment) (figures, error) {
		var (
			last atomic.Uint64
			done atomic.Int64
		)
		return withEmpty(ctx, e, "photos", func() (figures, int64, error) {
			fig, err := loadWith(conns, func(ctx context.Context, t *target, tm timing, _ int) (worker, error) {
				c, err := dialFor(ctx, t, tm)
				if err != nil {
					return nil, err
				}
				w := &literalWorker{c: c, last: &last, done: &done}
				if prepared {
					id, err := c.prepare(insertLiteral+"?, ?)", 2, 0)
					if err != nil {
						return nil, errors.Join(fmt.Errorf("prepare: %w", err), c.close())
					}
					w.packet, w.keyAt = executeInsert(id, true)
				}
				return w, nil
			})(ctx, e)
			return fig, done.Load(), err
		})
	}
}

// loadNumberedInserts measures INSERT into a table with keys from the proxy. The keys come back as
// insert ids. statement ends before the title.
func loadNumberedInserts(conns int, table, statement string, prepared bool, given *numberSet) runFunc {
	send := text(statement + "'" + insertTitle + "')")
	if prepared {
		send = func(c *client) ([]byte, error) {
			id, err := c.prepare(statement+"?)", 1, 0)
			if err != nil {
				return nil, fmt.Errorf("prepare: %w", err)
			}
			packet, _ := executeInsert(id, false)
			return packet, nil
		}
	}
	return func(ctx context.Context, e environment) (figures, error) {
		return withEmpty(ctx, e, table, func() (figures, int64, error) {
			var done atomic.Int64
			fig, err := loadNumbers(conns, send, given, func(c *client) (uint64, error) {
				done.Add(1)
				return numberFromOK(c)
			})(ctx, e)
			return fig, done.Load(), err
		})
	}
}

// withEmpty empties a table, runs a load that reports its inserted rows, and counts them.
func withEmpty(ctx context.Context, e environment, table string, load func() (figures, int64, error)) (figures, error) {
	if _, err := e.fleet.admin.ExecContext(ctx, "TRUNCATE TABLE bench."+table); err != nil {
		return nil, fmt.Errorf("empty the table: %w", err)
	}
	fig, inserted, err := load()
	if err != nil {
		return nil, err
	}
	var stored int64
	if err := e.fleet.admin.QueryRowContext(ctx, "SELECT COUNT(*) FROM bench."+table).Scan(&stored); err != nil {
		return nil, errors.Join(errors.New("count the rows"), err)
	}
	if stored != inserted {
		return nil, fmt.Errorf("the table holds %d rows, but %d were acknowledged", stored, inserted)
	}
	return fig, nil
}
