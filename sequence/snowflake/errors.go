package snowflake

import (
	"errors"
	"fmt"
	"time"
)

// ErrAway: the sequence server that gives the ticks of the worker is away. Other servers may give
// those of other workers.
var ErrAway = errors.New("the sequence server that gives the ticks of the worker is away")

// ClockError: no key is given, since there are none for the time of this machine's clock.
type ClockError struct {
	Sequence string
	// Behind is how long there will be no keys, since later ticks were used: the clock was ahead
	// before.
	Behind time.Duration
	// Off is how far the clock is ahead of the sequence server's, negative if behind; 0 if another
	// reason applies. Most bounds it.
	Off, Most time.Duration
}

func (e *ClockError) Error() string {
	if e.Off != 0 {
		ahead := "ahead of"
		if e.Off < 0 {
			ahead = "behind"
		}
		return fmt.Sprintf("sequence %q: the clock of this machine is %v %s that of the sequence server, want at most %v: set the one that is wrong",
			e.Sequence, rounded(e.Off.Abs()), ahead, e.Most)
	}
	return fmt.Sprintf("sequence %q: the clock is %v behind the time of keys that are in use already: there are keys again after that time; "+
		"if the clock is right now and was ahead before, restart this proxy, with another worker_id if it has one",
		e.Sequence, rounded(e.Behind))
}

// WorkersError: all worker ids are in use.
type WorkersError struct {
	Sequence string
	Workers  uint64
	Away     uint64        // workers that are unavailable since a sequence server is away
	Free     time.Duration // until the first of them is free; 0: unknown
}

func (e *WorkersError) Error() string {
	free := ""
	if e.Free > 0 {
		free = fmt.Sprintf(", the first of them for %v still", rounded(e.Free))
	}
	used := fmt.Sprintf("all %d workers are in use", e.Workers)
	if e.Away > 0 {
		used = fmt.Sprintf("%d of %d workers cannot be had as a sequence server is away, and the others are in use", e.Away, e.Workers)
	}
	return fmt.Sprintf("sequence %q: %s%s: proxies keep theirs for twice the OUTAGE_COVER after they end, which ALTER SEQUENCE shortens; "+
		"for more WORKER BITS create another sequence", e.Sequence, used, free)
}

// WorkerError: the only worker that this process may take is unavailable.
type WorkerError struct {
	Sequence        string
	Worker, Workers uint64        // Workers is how many there are, from 0 on
	Away            bool          // its sequence server is away
	Free            time.Duration // until its ticks have passed; 0: unknown
	Holders         string        // other live processes that take the same worker
}

func (e *WorkerError) Error() string {
	switch {
	case e.Worker >= e.Workers:
		return fmt.Sprintf("sequence %q has workers 0 to %d, and the worker_id of this proxy is %d: configure one of those, or use a sequence with more WORKER BITS",
			e.Sequence, e.Workers-1, e.Worker)
	case e.Away:
		return fmt.Sprintf("sequence %q: the sequence server that gives the ticks of worker %d, which is the worker_id of this proxy, is away", e.Sequence, e.Worker)
	}
	free := ""
	if e.Free > 0 {
		free = fmt.Sprintf(" for %v still", rounded(e.Free))
	}
	if e.Holders != "" {
		return fmt.Sprintf("sequence %q: worker %d, which is the worker_id of this proxy, is in use%s by %s: give each proxy another worker_id", e.Sequence, e.Worker, free, e.Holders)
	}
	return fmt.Sprintf("sequence %q: worker %d, which is the worker_id of this proxy, is in use%s, by a proxy without worker_id or one that was killed, or a fail-over passed over its ticks: "+
		"wait, or configure another worker_id; a proxy that is killed keeps its worker for twice the OUTAGE_COVER, which ALTER SEQUENCE shortens", e.Sequence, e.Worker, free)
}

// RunError: more consecutive keys were wanted than a tick has.
type RunError struct {
	Sequence     string
	Wanted, Most uint64
}

func (e *RunError) Error() string {
	return fmt.Sprintf("%d consecutive keys of sequence %q are not supported, as a tick has %d: use fewer rows in one statement", e.Wanted, e.Sequence, e.Most)
}

// FullError: more keys are wanted than the ticks have.
type FullError struct {
	Sequence string
	Keys     uint64 // of a tick
	Tick     time.Duration
}

func (e *FullError) Error() string {
	return fmt.Sprintf("sequence %q gives a proxy %d keys in each %v, and more are asked for: ask again later, or use a sequence with more COUNTER BITS or a shorter TICK",
		e.Sequence, e.Keys, e.Tick)
}

// EndError: the bits of the time do not hold the present time.
type EndError struct{ Sequence string }

func (e *EndError) Error() string {
	return fmt.Sprintf("sequence %q has run out of time bits", e.Sequence)
}

// WaitError: a caller's time ended while it waited for ticks.
type WaitError struct {
	Cause error // of its context
	Err   error // why there are no ticks; nil: unknown
}

func (e *WaitError) Error() string {
	if e.Err != nil {
		return e.Err.Error()
	}
	return e.Cause.Error()
}

// refused reports whether waiting is useless after this error of a renewal.
func refused(err error) bool {
	switch err := err.(type) {
	case *ClockError, *EndError:
		return true
	case *WorkersError:
		return err.Away == 0
	case *WorkerError:
		return !err.Away
	}
	return false
}

// rounded rounds a duration for people.
func rounded(d time.Duration) time.Duration {
	if d > 10*time.Second {
		return d.Round(time.Second)
	}
	return d.Round(time.Millisecond)
}
