package sequence

import (
	"errors"

	"seqproxy/sequence/cache"
	"seqproxy/sequence/snowflake"
	"seqproxy/sequence/stats"
)

// endOf is what is counted of a wait for numbers.
func endOf(err error) stats.End {
	switch {
	case errors.As(err, new(*snowflake.ClockError)):
		return stats.ByClock
	case unserved(err):
		return stats.Unserved
	}
	return stats.Served
}

// unserved says whether a wait ended without a number, and not by its caller or because there is no
// such sequence.
func unserved(err error) bool {
	for _, known := range []any{
		new(*snowflake.ClockError), new(*snowflake.WorkersError), new(*snowflake.WorkerError), new(*snowflake.FullError),
	} {
		if errors.As(err, known) {
			return true
		}
	}
	return cache.Unserved(err)
}
