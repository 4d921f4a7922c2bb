package sequence

import (
	"go.uber.org/zap"

	"seqproxy/internal/logfield"
)

// What becomes of numbers, on the level debug: with these lines and those of [Sequences.Account] there is no number of a row of which they do not tell
// whose it was, or why it is nobody's.

// traceReserved tells of numbers whose reservation is known to be stored.
func (v *server) traceReserved(name string, seg Segment, above uint64) {
	v.log.Debug("numbers reserved", logfield.Sequence(name), zap.Uint64("plan", seg.plan), zap.Uint64("above", above),
		zap.Uint64("first", seg.Next()), zap.Uint64("reserved_up_to", seg.Last()), zap.Uint64("reserved", seg.Remaining()))
}

// traceUnknown tells of n numbers whose reservation may be stored. They are used by nobody.
func (v *server) traceUnknown(name string, n, above uint64, why error) {
	v.log.Debug("numbers given up unseen", logfield.Sequence(name), zap.Uint64("above", above), zap.Uint64("outcome_unknown", n), logfield.Err(why))
}

// traceBack tells of numbers that were to be given back. Where err is not nil nobody knows whether they were; else they are not, because somebody has reserved
// since, or the sequence was changed.
func (v *server) traceBack(name string, seg Segment, done bool, err error) {
	first, last, n := zap.Uint64("first", seg.Next()), zap.Uint64("reserved_up_to", seg.Last()), zap.Uint64("held", seg.Remaining())
	if done {
		v.log.Debug("numbers given back", logfield.Sequence(name), first, last, n)
		return
	}
	v.log.Debug("numbers not given back", logfield.Sequence(name), first, last, n, logfield.Err(err))
}

// Account logs what became of the numbers of each sequence, on the level debug. After Close it is the whole: what was reserved is given, given back, not given back,
// passed over, or held.
func (s *Sequences) Account() {
	if !s.log.Core().Enabled(zap.DebugLevel) {
		return
	}
	for _, st := range s.BySequence() {
		var passed, unknown uint64
		for why, n := range st.Unused {
			switch Unused(why) {
			case UnusedUnknownCommit, UnusedRefused, UnusedRewind:
				unknown += n
			default:
				passed += n
			}
		}
		s.log.Debug("numbers of a sequence", logfield.Sequence(st.Name), zap.Uint64("reserved", st.Reserved), zap.Uint64("given", st.Given-st.Back),
			zap.Uint64("passed_over", passed), zap.Uint64("outcome_unknown", unknown), zap.Uint64("held", st.Held))
	}
}
