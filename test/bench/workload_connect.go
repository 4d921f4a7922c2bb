package main

import "context"

// connectWorker connects, logs in, runs SELECT 1, quits and closes the connection.
type connectWorker struct {
	// The measurement's context: an operation opens its connection itself, with no other way to
	// hand it one.
	ctx    context.Context
	target *target
}

func newConnect(ctx context.Context, t *target, _ timing, _ int) (worker, error) {
	return connectWorker{ctx, t}, nil
}

func (w connectWorker) do() (int, error) {
	c, err := dial(w.ctx, w.target.addr, benchAccount, 1<<10)
	if err != nil {
		return 0, err
	}
	if err := c.selectOne(); err != nil {
		_ = c.close() // the first error is the one to tell
		return 0, err
	}
	return 1, c.quit()
}

func (connectWorker) close() error { return nil }
