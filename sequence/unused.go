package sequence

// Unused says why numbers that were reserved here are given to nobody: a gap.
type Unused uint8

// The reasons.
const (
	// UnusedRestart: the sequence began again (RESTART, a lost entry in the list of proxies), or another one of its name was made.
	UnusedRestart Unused = iota
	// UnusedAlter: they do not conform to changed options, or to another plan of the sequence servers.
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

	unusedReasons
)

var unusedNames = [unusedReasons]string{
	"restart", "alter", "drop", "flush", "run", "cache", "chosen", "caller_gone", "unknown_commit", "rewind", "refused",
}

// String is the reason in a word, as metrics have it.
func (u Unused) String() string { return unusedNames[u] }

// UnusedReasons are all of them.
func UnusedReasons() []Unused {
	all := make([]Unused, unusedReasons)
	for i := range all {
		all[i] = Unused(i)
	}
	return all
}

// gaps counts numbers by why they are not used.
type gaps [unusedReasons]uint64

func (g *gaps) add(o *gaps) {
	for i, n := range o {
		g[i] += n
	}
}

func (g gaps) sum() (n uint64) {
	for _, of := range g {
		n += of
	}
	return n
}
