package main

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"seqproxy/internal/await"
)

// metric is the name of a figure, also in the JSON file.
type metric string

// The figures. CPU time is user and system time of the target's process.
const (
	opsPerSecond    metric = "ops_per_s"
	cpuPerOp        metric = "cpu_us_per_op"
	p50             metric = "p50_us"
	p99             metric = "p99_us"
	residentMB      metric = "rss_mb"
	mbPerSecond     metric = "mb_per_s"
	cpuPerMB        metric = "cpu_ms_per_mb"
	peakMB          metric = "peak_rss_mb"
	growthMB        metric = "rss_growth_mb"
	kbPerSession    metric = "rss_kb_per_session"
	filesPerSession metric = "files_per_session"
	openedPerSecond metric = "opened_per_s"
)

// figures are the result of one measurement of one target.
type figures map[metric]float64

// worker sends operations over its own connections. One goroutine uses it.
type worker interface {
	// do runs operations, checks every answer and returns their number. It must not allocate more
	// than the operation itself needs.
	do() (int, error)
	close() error
}

// timing is how long one measurement lasts.
type timing struct {
	warm, measure time.Duration
}

// The phases of a load.
const (
	warming int32 = iota
	measuring
	stopping
)

// loadTarget runs one worker per goroutine against a target, and measures from the end of the
// warm-up to the end. An operation counts if it begins and ends within that time. The first error
// of a worker ends the measurement.
func loadTarget(ctx context.Context, t *target, tm timing, workers []worker) (figures, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	type tally struct {
		ops  int
		hist histogram
	}
	var (
		phase   atomic.Int32
		some    atomic.Bool // an operation was counted
		tallies = make([]tally, len(workers))
		wg      sync.WaitGroup
	)
	// The garbage of the preparations must not be collected during the measurement; see main.go.
	runtime.GC()
	for i, w := range workers {
		tally := &tallies[i]
		wg.Go(func() {
			before, began := phase.Load(), time.Now()
			for before != stopping {
				n, err := w.do()
				if err != nil {
					cancel(fmt.Errorf("connection %d: %w", i, err))
					return
				}
				after, ended := phase.Load(), time.Now()
				if before == measuring && after == measuring {
					tally.ops += n
					tally.hist.add(ended.Sub(began))
					if !some.Load() {
						some.Store(true)
					}
				}
				before, began = after, ended
			}
		})
	}
	defer wg.Wait() // runs before cancel
	defer phase.Store(stopping)

	if !await.Pause(ctx, tm.warm) {
		return nil, context.Cause(ctx)
	}
	cpuBefore, err := cpuTime(t.pid)
	if err != nil {
		return nil, err
	}
	began := time.Now()
	phase.Store(measuring)
	// If the disk stalls for a moment, measure longer instead of giving no figure.
	for !some.Load() || time.Since(began) < tm.measure {
		if time.Since(began) > tm.measure+ioTimeout {
			return nil, fmt.Errorf("no operation ended within %v", tm.measure+ioTimeout)
		}
		if !await.Pause(ctx, max(tm.measure-time.Since(began), 10*time.Millisecond)) {
			return nil, context.Cause(ctx)
		}
	}
	phase.Store(stopping)
	elapsed := time.Since(began)
	cpuAfter, err := cpuTime(t.pid)
	if err != nil {
		return nil, err
	}
	resident, err := residentBytes(t.pid)
	if err != nil {
		return nil, err
	}
	wg.Wait()
	if err := context.Cause(ctx); err != nil {
		return nil, err
	}

	ops, hist := 0, new(histogram)
	for i := range tallies {
		ops += tallies[i].ops
		hist.merge(&tallies[i].hist)
	}
	return figures{
		opsPerSecond: float64(ops) / elapsed.Seconds(),
		cpuPerOp:     microseconds(cpuAfter-cpuBefore) / float64(ops),
		p50:          microseconds(hist.quantile(0.50)),
		p99:          microseconds(hist.quantile(0.99)),
		residentMB:   megabytes(resident),
	}, nil
}

// startWorkers starts n workers, some at a time, so that the target's accept queue does not matter.
// It returns all of them, or an error and none.
func startWorkers(ctx context.Context, n int, start func(ctx context.Context, i int) (worker, error)) ([]worker, error) {
	workers := make([]worker, n)
	var g errgroup.Group
	g.SetLimit(16)
	for i := range n {
		g.Go(func() error {
			w, err := start(ctx, i)
			if err != nil {
				return fmt.Errorf("connection %d: %w", i, err)
			}
			workers[i] = w
			return nil
		})
	}
	if err := g.Wait(); err != nil {
		return nil, errors.Join(err, closeWorkers(workers))
	}
	return workers, nil
}

// closeWorkers closes all workers that were started.
func closeWorkers(workers []worker) error {
	var first error
	for _, w := range workers {
		if w == nil {
			continue
		}
		if err := w.close(); err != nil && first == nil {
			first = err // the others say the same
		}
	}
	return first
}

func microseconds(d time.Duration) float64 { return float64(d) / float64(time.Microsecond) }

func megabytes(n int64) float64 { return float64(n) / 1e6 }
