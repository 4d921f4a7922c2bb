package sequence

import (
	"time"

	"seqproxy/internal/await"
	"seqproxy/sequence/cache"
	"seqproxy/sequence/define"
	"seqproxy/sequence/members"
)

// shared is what the sequences of a process share. It is not changed once there is a sequence.
type shared struct {
	caches  *cache.Common
	from    cache.Reserver
	members *members.Members
	clock   *machineClock
	timing  *timing
	worker  *uint64 // see [Options.WorkerID]
	ticks   clockedOwner
	periods periodsOwner
}

// whyNot is the cause of a wait that ended by itself.
func (a *shared) whyNot() error {
	if err := a.members.Now().LastFailure(); err != nil {
		return err
	}
	return await.ErrPatience
}

// unavailable is the error for who gets no number of the sequence with a row.
func (a *shared) unavailable(row string, waited time.Duration, cause error) error {
	return &UnavailableError{Sequence: define.ShownName(row), Server: a.members.NameFor(row), Waited: waited, Err: cause}
}
