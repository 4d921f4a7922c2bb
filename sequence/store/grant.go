package store

import "seqproxy/sequence/segment"

// Grant is a reserved segment and what the table said about its sequence.
type Grant struct {
	Segment segment.Segment
	Max     uint64       // the highest number that the id column holds
	Exact   uint64       // the typed CACHE n, or 0 for adaptive
	Rule    segment.Rule // which numbers may follow
	Cycle   bool         // the sequence begins again at its end

	Order   bool   // the sequence is an ORDER sequence
	Shared  bool   // other sequence servers give numbers of it, too
	Version uint64 // of the options that say all this
}
