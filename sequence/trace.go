package sequence

import (
	"context"
	"database/sql"
	"fmt"

	"go.uber.org/zap"

	"seqproxy/internal/logfield"
)

// What becomes of numbers, on the level debug: with these lines and those of [Sequences.Account] there is no number of a row of which they do not tell
// whose it was, or why it is nobody's.

// traceAsked tells of n numbers that are about to be asked for. Where nothing else is told of them and this was the last that the process told of the sequence, nobody knows
// whether they were reserved.
func (v *server) traceAsked(name string, n, above uint64) {
	if v.log.Core().Enabled(zap.DebugLevel) {
		v.log.Debug("numbers asked for", logfield.Sequence(name), zap.Uint64("above", above), zap.Uint64("wanted", n))
	}
}

// traceSet tells that a row is about to be set other than by a reservation, and why. At 0 it may be deleted.
func (v *server) traceSet(name string, was, at uint64, why string) {
	if v.log.Core().Enabled(zap.DebugLevel) {
		v.log.Debug("row to be set", logfield.Sequence(name), zap.Uint64("was", was), zap.Uint64("at", at), zap.String("why", why))
	}
}

// traceRaise is traceSet for a row that may stand higher already, where it is not known.
func (v *server) traceRaise(name string, at uint64, why string) {
	if v.log.Core().Enabled(zap.DebugLevel) {
		v.log.Debug("row to be set", logfield.Sequence(name), zap.Uint64("at", at), zap.String("why", why))
	}
}

// Why a row is set, as the log has it.
const (
	setAdopted = "another node of the group holds the sequences"
	setBack    = "numbers are given back"
	setBegun   = "a plan of the sequence servers begins"
	setBrought = "the sequence servers are brought in line"
	setCreated = "CREATE SEQUENCE"
	setCycle   = "the end was reached, and CYCLE"
	setDropped = "DROP SEQUENCE"
	setHalted  = "frozen for a change of the sequence servers"
	setRaised  = "numbers up to there are in use"
	setRestart = "RESTART"
	setStub    = "a stub gets its row"
	setThawed  = "frozen no more"
	setValueOf = "SETVAL"
)

// traceRows is traceSet for all rows that set changes, in a transaction that has locked them.
func (v *server) traceRows(ctx context.Context, tx *sql.Tx, why string, set func() error) error {
	if !v.log.Core().Enabled(zap.DebugLevel) {
		return set()
	}
	before, err := v.ids(ctx, tx)
	if err != nil {
		return err
	}
	if err := set(); err != nil {
		return err
	}
	after, err := v.ids(ctx, tx)
	if err != nil {
		return err
	}
	for name, at := range after {
		if was, known := before[name]; !known || was != at {
			v.traceSet(name, was, at, why)
		}
	}
	for name, was := range before {
		if _, known := after[name]; !known {
			v.traceSet(name, was, 0, setDropped)
		}
	}
	return nil
}

// ids are where all rows stand.
func (v *server) ids(ctx context.Context, tx *sql.Tx) (map[string]uint64, error) {
	rows, err := tx.QueryContext(ctx, "SELECT `name`, CAST(`id` AS UNSIGNED) FROM "+v.table.full)
	if err != nil {
		return nil, fmt.Errorf("read table %s: %w", v.table.full, err)
	}
	defer func() { _ = rows.Close() }()
	all := make(map[string]uint64)
	for rows.Next() {
		var name string
		var id uint64
		if err := rows.Scan(&name, &id); err != nil {
			return nil, fmt.Errorf("read table %s: %w", v.table.full, err)
		}
		all[name] = id
	}
	return all, rows.Err()
}

// traceReserved tells of numbers whose reservation is known to be stored.
func (v *server) traceReserved(name string, seg Segment, above uint64) {
	v.log.Debug("numbers reserved", logfield.Sequence(name), zap.Uint64("plan", seg.plan), zap.Uint64("above", above),
		zap.Uint64("first", seg.Next()), zap.Uint64("reserved_up_to", seg.Last()), zap.Uint64("reserved", seg.Remaining()))
}

// traceUnknown tells of n numbers whose reservation may be stored. They are used by nobody.
func (v *server) traceUnknown(name string, n, above uint64, why error) {
	v.log.Debug("numbers given up unseen", logfield.Sequence(name), zap.Uint64("above", above), zap.Uint64("outcome_unknown", n), logfield.Err(why))
}

// traceUnknownStub is traceUnknown for the number of a stub's row, which is taken beside a reservation.
func (v *server) traceUnknownStub(name string, why error) {
	v.log.Debug("numbers of a stub given up unseen", logfield.Sequence(name), zap.Uint64("outcome_unknown", 1), logfield.Err(why))
}

// traceVain tells of numbers that were reserved, and come to no cache.
func (v *server) traceVain(name string, seg Segment, why Unused) {
	v.log.Debug("numbers reserved in vain", logfield.Sequence(name), zap.Uint64("first", seg.Next()), zap.Uint64("reserved_up_to", seg.Last()),
		zap.Uint64("held", seg.Remaining()), zap.Stringer("why", why))
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
// passed over, or held. What never was in memory, since its reservation is not known to be stored or was in vain, is counted apart.
func (s *Sequences) Account() {
	if !s.log.Core().Enabled(zap.DebugLevel) {
		return
	}
	unknown := make(map[string]uint64)
	for _, one := range s.scores.all() {
		unknown[one.name] = one.lostSum()
	}
	for _, st := range s.BySequence() {
		passed := gaps(st.Unused).sum() - unknown[st.Name]
		s.log.Debug("numbers of a sequence", logfield.Sequence(st.Name), zap.Uint64("reserved", st.Reserved), zap.Uint64("given", st.Given-st.Back),
			zap.Uint64("passed_over", passed), zap.Uint64("outcome_unknown", unknown[st.Name]), zap.Uint64("held", st.Held))
	}
}
