package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/go-mysql-org/go-mysql/mysql"
)

// numberWorker asks for numbers of one counter with the same statement and keeps them. The check
// for duplicates comes after the measurement.
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

// request prepares a connection and returns the packet that it sends again and again.
type request func(c *client) (packet []byte, err error)

func text(query string) request {
	return func(*client) ([]byte, error) { return command(mysql.COM_QUERY, query), nil }
}

// loadNumbers measures statements that return numbers of one counter. given has all numbers of this
// counter in this run.
func loadNumbers(conns int, statement request, given *numberSet, receive func(c *client) (uint64, error)) runFunc {
	return func(ctx context.Context, e environment) (figures, error) {
		workers, err := startWorkers(ctx, conns, func(ctx context.Context, _ int) (worker, error) {
			c, err := dialFor(ctx, e.target, e.timing)
			if err != nil {
				return nil, err
			}
			packet, err := statement(c)
			if err != nil {
				return nil, errors.Join(err, c.close())
			}
			return &numberWorker{
				c:       c,
				packet:  packet,
				receive: receive,
				// More than a fast target gives; growing later would cost the client time.
				numbers: make([]uint64, 0, int(200_000*(e.timing.warm+e.timing.measure).Seconds())/conns+1000),
			}, nil
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

// numberFromRow reads the number from a result of one row.
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

// numberFromOK reads the number from the OK packet of a statement that changed one row.
func numberFromOK(c *client) (uint64, error) {
	ok, err := c.readOK()
	if err == nil && ok.affected != 1 {
		err = fmt.Errorf("%d rows were changed, want 1", ok.affected)
	}
	return ok.insertID, err
}
