package main

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"github.com/go-mysql-org/go-mysql/mysql"
)

// The table for point selects: rows 1 to pointRows. The value is pointPrefix and the key.
const (
	pointRows   = 10000
	pointPrefix = "the value of row "
)

// queryBuffer is the receive buffer for small answers.
const queryBuffer = 8 << 10

// dialFor opens a connection for a measurement of the given length.
func dialFor(ctx context.Context, t *target, tm timing) (*client, error) {
	c, err := dial(ctx, t.addr, benchAccount, queryBuffer)
	if err != nil {
		return nil, err
	}
	if err := c.extend(tm.warm + tm.measure + 2*ioTimeout); err != nil {
		return nil, errors.Join(err, c.close())
	}
	return c, nil
}

// loadWith makes the run of a contender whose connections are alike.
func loadWith(conns int, start func(ctx context.Context, t *target, tm timing, i int) (worker, error)) runFunc {
	return func(ctx context.Context, e environment) (figures, error) {
		workers, err := startWorkers(ctx, conns, func(ctx context.Context, i int) (worker, error) {
			return start(ctx, e.target, e.timing, i)
		})
		if err != nil {
			return nil, err
		}
		fig, err := loadTarget(ctx, e.target, e.timing, workers)
		return joinClose(fig, err, workers)
	}
}

// joinClose closes the workers. A broken connection has reported its error already.
func joinClose(fig figures, err error, workers []worker) (figures, error) {
	if cerr := closeWorkers(workers); err == nil && cerr != nil {
		return nil, cerr
	}
	return fig, err
}

// selectOneWorker runs SELECT 1.
type selectOneWorker struct{ c *client }

func newSelectOne(ctx context.Context, t *target, tm timing, _ int) (worker, error) {
	c, err := dialFor(ctx, t, tm)
	return selectOneWorker{c}, err
}

func (w selectOneWorker) do() (int, error) { return 1, w.c.selectOne() }
func (w selectOneWorker) close() error     { return w.c.quit() }

// keys are keys of the point table in an order that is the same for all targets (xorshift).
type keys uint64

func newKeys(i int) keys { return keys(i+1) * 0x9e3779b97f4a7c15 }

func (k *keys) next() int64 {
	x := uint64(*k)
	x ^= x << 13
	x ^= x >> 7
	x ^= x << 17
	*k = keys(x)
	return int64(x%pointRows) + 1
}

// pointTextWorker selects one row by its key, written into the statement.
type pointTextWorker struct {
	c      *client
	keys   keys
	packet []byte
	want   []byte
}

const pointQuery = "SELECT v FROM point WHERE id = "

func newPointText(ctx context.Context, t *target, tm timing, i int) (worker, error) {
	c, err := dialFor(ctx, t, tm)
	return &pointTextWorker{c: c, keys: newKeys(i)}, err
}

func (w *pointTextWorker) do() (int, error) {
	key := w.keys.next()
	w.packet = appendCommand(w.packet[:0], mysql.COM_QUERY, pointQuery)
	w.packet = strconv.AppendInt(w.packet, key, 10)
	w.packet[0] = byte(len(w.packet) - headerSize) // the statement is short
	if err := w.c.send(w.packet); err != nil {
		return 0, err
	}
	row, err := w.c.readRow()
	if err != nil {
		return 0, err
	}
	got, err := textValue(row)
	if err != nil {
		return 0, err
	}
	w.want, err = checkPoint(got, key, w.want)
	return 1, err
}

func (w *pointTextWorker) close() error { return w.c.quit() }

// checkPoint compares a value with the row of that key. scratch is reused and returned.
func checkPoint(got []byte, key int64, scratch []byte) ([]byte, error) {
	scratch = strconv.AppendInt(append(scratch[:0], pointPrefix...), key, 10)
	if string(got) != string(scratch) {
		return scratch, fmt.Errorf("row %d: got value %q, want %q", key, got, scratch)
	}
	return scratch, nil
}

// pointPreparedWorker selects one row by its key with a statement that was prepared once.
type pointPreparedWorker struct {
	c       *client
	keys    keys
	execute []byte
	want    []byte
}

func newPointPrepared(ctx context.Context, t *target, tm timing, i int) (worker, error) {
	c, err := dialFor(ctx, t, tm)
	if err != nil {
		return nil, err
	}
	id, err := c.prepare(pointQuery+"?", 1, 1)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("prepare: %w", err), c.close())
	}
	return &pointPreparedWorker{c: c, keys: newKeys(i), execute: executeInt64(id)}, nil
}

func (w *pointPreparedWorker) do() (int, error) {
	key := w.keys.next()
	setExecuteInt64(w.execute, key)
	if err := w.c.send(w.execute); err != nil {
		return 0, err
	}
	row, err := w.c.readRow()
	if err != nil {
		return 0, err
	}
	got, err := binaryValue(row)
	if err != nil {
		return 0, err
	}
	w.want, err = checkPoint(got, key, w.want)
	return 1, err
}

func (w *pointPreparedWorker) close() error { return w.c.quit() }

// pipelineDepth is the number of statements in one write.
const pipelineDepth = 16

// pipelineWorker sends several statements in one write before it reads. Each has another value, so
// answers in the wrong order are noticed.
type pipelineWorker struct {
	c       *client
	packets []byte
	want    []string
}

func newPipeline(ctx context.Context, t *target, tm timing, i int) (worker, error) {
	c, err := dialFor(ctx, t, tm)
	w := &pipelineWorker{c: c}
	for k := range pipelineDepth {
		value := strconv.Itoa(i*pipelineDepth + k)
		w.packets = appendCommand(w.packets, mysql.COM_QUERY, "SELECT "+value)
		w.want = append(w.want, value)
	}
	return w, err
}

func (w *pipelineWorker) do() (int, error) {
	if err := w.c.send(w.packets); err != nil {
		return 0, err
	}
	for k, want := range w.want {
		w.c.next = 1
		if err := w.c.expectText(want); err != nil {
			return k, fmt.Errorf("statement %d of %d in one write: %w", k+1, pipelineDepth, err)
		}
	}
	return pipelineDepth, nil
}

func (w *pipelineWorker) close() error { return w.c.quit() }
