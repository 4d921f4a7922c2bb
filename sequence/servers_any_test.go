package sequence_test

import (
	"slices"
	"testing"
	"time"

	"seqproxy/sequence"
)

// Reservations go to all servers one after another. A dead one is asked ever more rarely, and the
// others take its reservations.
func TestReservationsAreSpreadAndADeadServerIsAskedMoreRarely(t *testing.T) {
	f := newFleet(t, 3)
	s := f.open(t, inSteps, steadySize(10), patience(30*time.Second))
	createOn(t, s, "photos")
	h := newGivenEver()
	reserved := sequence.Inside(s).HasReserved
	// One after another, unless one is slow for a while on a busy machine.
	spread := func(what string, over ...int) {
		t.Helper()
		before := reserved()
		eventually(t, what, func() bool {
			takeAll(t, s, h, "photos", 60)
			now := reserved()
			return !slices.ContainsFunc(over, func(i int) bool { return now[i] < before[i]+10 })
		})
	}
	spread("each server has many reservations", 0, 1, 2)

	f[1].kill(t)
	dead := sequence.Inside(s).Members()[1]
	eventually(t, "it is left out, and not asked for a while", func() bool {
		takeAll(t, s, h, "photos", 1)
		sequence.Inside(s).StopFollowing()
		defer sequence.Inside(s).FollowAgain()
		return dead.Away() && time.Until(dead.AskedAt()) > 3*sequence.Inside(s).Timing().Follow
	})
	before := reserved()[1]
	spread("each of the others has many reservations", 0, 2)
	if after := reserved()[1]; after != before {
		t.Errorf("the dead one has %d reservations, after %d", after, before)
	}
	f[1].restart(t)
	eventually(t, "it serves again", func() bool {
		takeAll(t, s, h, "photos", 10)
		return reserved()[1] > before
	})
}
