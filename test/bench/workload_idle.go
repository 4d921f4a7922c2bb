package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"seqproxy/internal/await"
)

// settleTime is the pause before a target's memory is read.
const settleTime = time.Second

// idleSessions measures the memory of n sessions that have run one SELECT 1 each, in a fresh
// process.
func idleSessions(n int) runFunc {
	return func(ctx context.Context, e environment) (figures, error) {
		if !await.Pause(ctx, settleTime) {
			return nil, context.Cause(ctx)
		}
		filesBefore, err := openFiles(e.target.pid)
		if err != nil {
			return nil, err
		}
		before, err := residentBytes(e.target.pid)
		if err != nil {
			return nil, err
		}
		began := time.Now()
		workers, err := startWorkers(ctx, n, func(ctx context.Context, _ int) (worker, error) {
			c, err := dial(ctx, e.target.addr, benchAccount, 1<<10)
			if err != nil {
				return nil, err
			}
			if err := c.selectOne(); err != nil {
				return nil, errors.Join(err, c.close())
			}
			return selectOneWorker{c}, nil
		})
		if err != nil {
			return nil, err
		}
		opened := time.Since(began)
		fig, err := measureIdle(ctx, e.target, n, before, filesBefore)
		if err == nil {
			fig[openedPerSecond] = float64(n) / opened.Seconds()
			err = stillAlive(workers)
		}
		return joinClose(fig, err, workers)
	}
}

func measureIdle(ctx context.Context, t *target, n int, before int64, filesBefore int) (figures, error) {
	if !await.Pause(ctx, settleTime) {
		return nil, context.Cause(ctx)
	}
	after, err := residentBytes(t.pid)
	if err != nil {
		return nil, err
	}
	filesAfter, err := openFiles(t.pid)
	if err != nil {
		return nil, err
	}
	return figures{
		kbPerSession:    float64(after-before) / 1024 / float64(n),
		filesPerSession: float64(filesAfter-filesBefore) / float64(n),
		residentMB:      megabytes(after),
	}, nil
}

// stillAlive uses every session again: a dropped session would need no memory.
func stillAlive(workers []worker) error {
	for i, w := range workers {
		c := w.(selectOneWorker).c
		if err := c.extend(ioTimeout); err != nil {
			return err
		}
		if err := c.selectOne(); err != nil {
			return fmt.Errorf("session %d after it was idle: %w", i, err)
		}
	}
	return nil
}
