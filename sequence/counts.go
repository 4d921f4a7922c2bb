package sequence

import "seqproxy/sequence/stats"

// What is counted; see package stats.
type (
	// Unused says why numbers are given to nobody by this process.
	Unused = stats.Unused
	// Result is how one attempt to reserve numbers ended.
	Result = stats.Result
)

// Some of the reasons and results.
const (
	UnusedReturned      = stats.UnusedReturned
	UnusedUnknownCommit = stats.UnusedUnknownCommit
	ReservedOK          = stats.ReservedOK
)

// Others is that of package stats.
const Others = stats.Others
