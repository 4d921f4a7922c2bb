package stats

import "sync/atomic"

// Unused says why this process gives no client a number that was reserved here, or may have been.
type Unused uint8

// The reasons.
const (
	// UnusedRestart: the sequence began again (RESTART, a lost entry in the list of proxies), or
	// another one of its name was made.
	UnusedRestart Unused = iota
	// UnusedAlter: they do not conform to changed options, or to another plan of the sequence
	// servers.
	UnusedAlter
	// UnusedDrop: the sequence was dropped.
	UnusedDrop
	// UnusedFlush: FLUSH SEQUENCES or Close discarded them, and they could not be returned to the
	// table.
	UnusedFlush
	// UnusedRun: too few in a row for a caller that wanted several.
	UnusedRun
	// UnusedCache: more than CACHE n allows.
	UnusedCache
	// UnusedChosen: a client has used a number of its own in their place.
	UnusedChosen
	// UnusedCallerGone: the caller that waited for numbers of an ORDER sequence had gone.
	UnusedCallerGone
	// UnusedUnknownCommit: whether their reservation was committed is unknown. It may be no gap.
	UnusedUnknownCommit
	// UnusedRewind: the row had gone back, and they may have been given before.
	UnusedRewind
	// UnusedRefused: the reservation was committed, but could not be verified, or kept in the state
	// file.
	UnusedRefused
	// UnusedReturned: they were returned to the row, from which they are reserved again. It is no
	// gap.
	UnusedReturned

	// UnusedReasons is the number of reasons.
	UnusedReasons
)

var unusedNames = [UnusedReasons]string{
	"restart", "alter", "drop", "flush", "run", "cache", "chosen", "caller_gone", "unknown_commit", "rewind", "refused", "returned",
}

// String returns the reason in a word, as metrics have it.
func (u Unused) String() string { return unusedNames[u] }

// ReturnedOr returns UnusedReturned for numbers that were returned to the row, and otherwise why.
func ReturnedOr(why Unused, done bool) Unused {
	if done {
		return UnusedReturned
	}
	return why
}

// UnusedCounts are numbers by the reason why they are unused.
type UnusedCounts [UnusedReasons]uint64

// Sum returns their total.
func (u *UnusedCounts) Sum() (n uint64) {
	for _, of := range u {
		n += of
	}
	return n
}

// Add adds the counts of o.
func (u *UnusedCounts) Add(o *UnusedCounts) {
	for i, n := range o {
		u[i] += n
	}
}

// Lost counts numbers that were reserved, or may have been, and that no cache has seen. It is safe
// for concurrent use.
type Lost [UnusedReasons]atomic.Uint64

// Read returns the counts.
func (l *Lost) Read() (counts UnusedCounts) {
	for i := range l {
		counts[i] = l[i].Load()
	}
	return counts
}
