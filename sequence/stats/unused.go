package stats

import "sync/atomic"

// Unused says why numbers that were reserved here, or may have been, are given to nobody by this
// process.
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
	// UnusedFlush: FLUSH SEQUENCES or Close gave them up, and they could not be given back.
	UnusedFlush
	// UnusedRun: too few in a row for somebody who wanted several.
	UnusedRun
	// UnusedCache: more than CACHE n allows.
	UnusedCache
	// UnusedChosen: somebody has used a number of his own in their place.
	UnusedChosen
	// UnusedCallerGone: whoever waited for numbers of an ORDER sequence had gone.
	UnusedCallerGone
	// UnusedUnknownCommit: nobody knows whether their reservation was committed. It may be no gap.
	UnusedUnknownCommit
	// UnusedRewind: the row had gone back, and they may have been given before.
	UnusedRewind
	// UnusedRefused: the reservation was committed, but could not be made sure of, or remembered.
	UnusedRefused
	// UnusedReturned: they were given back to the row, from which they are reserved again. It is no
	// gap.
	UnusedReturned

	// UnusedReasons is how many there are.
	UnusedReasons
)

var unusedNames = [UnusedReasons]string{
	"restart", "alter", "drop", "flush", "run", "cache", "chosen", "caller_gone", "unknown_commit", "rewind", "refused", "returned",
}

// String is the reason in a word, as metrics have it.
func (u Unused) String() string { return unusedNames[u] }

// ReturnedOr is UnusedReturned for numbers that were given back, and else why.
func ReturnedOr(why Unused, done bool) Unused {
	if done {
		return UnusedReturned
	}
	return why
}

// UnusedCounts are numbers by why they are not used.
type UnusedCounts [UnusedReasons]uint64

// Sum is how many they are together.
func (u *UnusedCounts) Sum() (n uint64) {
	for _, of := range u {
		n += of
	}
	return n
}

// Add counts what o has, too.
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
