package main

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync/atomic"

	"github.com/go-mysql-org/go-mysql/mysql"
)

// numberWorker asks for numbers of one counter with a statement that is always the same, and keeps them: whether
// they are distinct is checked when the clock has stopped.
type numberWorker struct {
	c       *client
	packet  []byte
	receive func(c *client) (uint64, error)
	numbers []uint64
}

func (w *numberWorker) do() (int, error) {
	if err := w.c.send(w.packet); err != nil {
		return 0, err
	}
	v, err := w.receive(w.c)
	w.numbers = append(w.numbers, v)
	return 1, err
}

func (w *numberWorker) close() error { return w.c.quit() }

// loadNumbers measures statements that give numbers of one counter. given holds all numbers that this counter gave
// in this run.
func loadNumbers(conns int, query string, given *numberSet, receive func(c *client) (uint64, error)) runFunc {
	return func(ctx context.Context, e environment) (figures, error) {
		workers, err := startWorkers(ctx, conns, func(ctx context.Context, _ int) (worker, error) {
			c, err := dialFor(ctx, e.target, e.timing)
			return &numberWorker{
				c:       c,
				packet:  command(mysql.COM_QUERY, query),
				receive: receive,
				// More than a fast target gives; growing later would cost the client time.
				numbers: make([]uint64, 0, int(200_000*(e.timing.warm+e.timing.measure).Seconds())/conns+1000),
			}, err
		})
		if err != nil {
			return nil, err
		}
		fig, err := loadTarget(ctx, e.target, e.timing, workers)
		if err == nil {
			err = given.addAll(numbersOf(workers))
		}
		return joinClose(fig, err, workers)
	}
}

func numbersOf(workers []worker) [][]uint64 {
	all := make([][]uint64, len(workers))
	for i, w := range workers {
		all[i] = w.(*numberWorker).numbers
	}
	return all
}

// numberFromRow takes the number out of a result of one row.
func numberFromRow(c *client) (uint64, error) {
	row, err := c.readRow()
	if err != nil {
		return 0, err
	}
	value, err := textValue(row)
	if err != nil {
		return 0, err
	}
	return parseUint(value)
}

// numberFromOK takes the number out of the OK packet of a statement that changed one row.
func numberFromOK(c *client) (uint64, error) {
	ok, err := c.readOK()
	if err == nil && ok.affected != 1 {
		err = fmt.Errorf("%d rows were changed, want 1", ok.affected)
	}
	return ok.insertID, err
}

// The statements of the INSERT workload; insertNextval and insertLiteral write the same rows.
const (
	insertNextval = "INSERT INTO photos (id, title) VALUES (NEXTVAL('photos'), '" + insertTitle + "')"
	insertHead    = "INSERT INTO photos (id, title) VALUES ("
	insertTail    = ", '" + insertTitle + "')"
	insertTitle   = "a photo of a cat on a keyboard"
)

// literalWorker inserts rows whose keys the client makes itself.
type literalWorker struct {
	c      *client
	last   *atomic.Uint64 // the last key, shared by all connections
	packet []byte
	done   *atomic.Int64 // rows that were acknowledged
}

func (w *literalWorker) do() (int, error) {
	w.packet = appendCommand(w.packet[:0], mysql.COM_QUERY, insertHead)
	w.packet = strconv.AppendUint(w.packet, w.last.Add(1), 10)
	w.packet = append(w.packet, insertTail...)
	w.packet[0] = byte(len(w.packet) - headerSize) // the statement is short
	if err := w.c.send(w.packet); err != nil {
		return 0, err
	}
	_, err := numberFromOK(w.c)
	w.done.Add(1)
	return 1, err
}

func (w *literalWorker) close() error { return w.c.quit() }

// loadLiteralInserts measures INSERT with a literal key.
func loadLiteralInserts(conns int) runFunc {
	return func(ctx context.Context, e environment) (figures, error) {
		var (
			last atomic.Uint64
			done atomic.Int64
		)
		return withEmptyPhotos(ctx, e, func() (figures, int64, error) {
			fig, err := loadWith(conns, func(ctx context.Context, t *target, tm timing, _ int) (worker, error) {
				c, err := dialFor(ctx, t, tm)
				return &literalWorker{c: c, last: &last, done: &done}, err
			})(ctx, e)
			return fig, done.Load(), err
		})
	}
}

// loadNextvalInserts measures INSERT with NEXTVAL; the numbers come back as the insert ids.
func loadNextvalInserts(conns int, given *numberSet) runFunc {
	return func(ctx context.Context, e environment) (figures, error) {
		return withEmptyPhotos(ctx, e, func() (figures, int64, error) {
			var done atomic.Int64
			fig, err := loadNumbers(conns, insertNextval, given, func(c *client) (uint64, error) {
				done.Add(1)
				return numberFromOK(c)
			})(ctx, e)
			return fig, done.Load(), err
		})
	}
}

// withEmptyPhotos empties the table, runs a load that says how many rows it inserted, and counts them.
func withEmptyPhotos(ctx context.Context, e environment, load func() (figures, int64, error)) (figures, error) {
	if _, err := e.fleet.admin.ExecContext(ctx, "TRUNCATE TABLE bench.photos"); err != nil {
		return nil, fmt.Errorf("empty the table: %w", err)
	}
	fig, inserted, err := load()
	if err != nil {
		return nil, err
	}
	var stored int64
	if err := e.fleet.admin.QueryRowContext(ctx, "SELECT COUNT(*) FROM bench.photos").Scan(&stored); err != nil {
		return nil, errors.Join(errors.New("count the rows"), err)
	}
	if stored != inserted {
		return nil, fmt.Errorf("the table holds %d rows, but %d were acknowledged", stored, inserted)
	}
	return fig, nil
}
