package cache

import (
	"time"

	"go.uber.org/zap"

	"seqproxy/internal/logfield"
	"seqproxy/sequence/define"
)

// Trouble is a failure to reserve numbers of a sequence. Its owner synchronises.
type Trouble struct {
	Err   error // why they were last refused; nil after a success
	since time.Time
	pause time.Duration // before the next attempt; grows until a success
}

// GoesOn records a failure while some numbers remain, and returns the pause after it.
func (t *Trouble) GoesOn(log *zap.Logger, sequence string, remaining uint64, err error, timing *Timing) (pause time.Duration) {
	if t.Err == nil {
		t.since = time.Now()
		log.Warn("reserving numbers fails", logfield.Sequence(define.ShownName(sequence)), zap.Uint64("left", remaining), logfield.Err(err))
	}
	t.Err = err
	pause = max(t.pause, timing.FirstBackoff)
	t.pause = min(2*pause, timing.LastBackoff)
	return pause
}

// Over records a success.
func (t *Trouble) Over(log *zap.Logger, sequence string) {
	t.pause = 0
	if t.Err != nil {
		log.Info("reserving numbers works again", logfield.Sequence(define.ShownName(sequence)), logfield.Duration(time.Since(t.since)))
		t.Err = nil
	}
}
