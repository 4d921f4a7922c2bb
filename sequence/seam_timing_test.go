package sequence

import (
	"time"

	"seqproxy/sequence/group"
	"seqproxy/sequence/link"
)

// Timing are the clocks of a process that tests read or change.
type Timing struct {
	link.Timing
	group.Patience

	Follow, FollowRarely, Round time.Duration
	Beat, Stale, Tenure         time.Duration
	Lack                        time.Duration
	LastBackoff, LeastPatience  time.Duration
	EditSilence, Unknown, Idle  time.Duration
	ClockLook, ClockAgain       time.Duration
	ClockOff                    time.Duration
}

func timingOf(t *timing) Timing {
	return Timing{
		Timing: t.Timing, Follow: t.follow, FollowRarely: t.followRarely, Round: t.round, Beat: t.beat, Stale: t.stale, Tenure: t.tenure,
		Lack: t.lack, Patience: t.Patience, LastBackoff: t.lastBackoff, LeastPatience: t.leastPatience,
		EditSilence: t.editSilence, Unknown: t.unknown, Idle: t.idle, ClockLook: t.clockLook, ClockAgain: t.clockAgain,
		ClockOff: t.clockOff,
	}
}

// changeTiming writes what f changes, and nothing else: the others may be in use.
func changeTiming(t *timing, f func(*Timing)) {
	was := timingOf(t)
	now := was
	f(&now)
	if now.Timing != was.Timing {
		t.Timing = now.Timing
	}
	if now.Patience != was.Patience {
		t.Patience = now.Patience
	}
	for _, d := range []struct {
		field    *time.Duration
		was, now time.Duration
	}{
		{&t.follow, was.Follow, now.Follow},
		{&t.followRarely, was.FollowRarely, now.FollowRarely},
		{&t.round, was.Round, now.Round},
		{&t.beat, was.Beat, now.Beat},
		{&t.stale, was.Stale, now.Stale},
		{&t.tenure, was.Tenure, now.Tenure},
		{&t.lack, was.Lack, now.Lack},
		{&t.lastBackoff, was.LastBackoff, now.LastBackoff},
		{&t.leastPatience, was.LeastPatience, now.LeastPatience},
		{&t.editSilence, was.EditSilence, now.EditSilence},
		{&t.unknown, was.Unknown, now.Unknown},
		{&t.idle, was.Idle, now.Idle},
		{&t.clockLook, was.ClockLook, now.ClockLook},
		{&t.clockAgain, was.ClockAgain, now.ClockAgain},
		{&t.clockOff, was.ClockOff, now.ClockOff},
	} {
		if d.now != d.was {
			*d.field = d.now
		}
	}
}

// UsualTiming is that of a process which is no test's.
func UsualTiming() Timing {
	t := standardTiming()
	return timingOf(&t)
}

// ChangeTiming changes that of a process to come.
func ChangeTiming(o *Options, f func(*Timing)) {
	t := standardTiming()
	if o.timing != nil {
		t = *o.timing
	}
	changeTiming(&t, f)
	o.timing = &t
}

// SetUsualTiming undoes ChangeTiming.
func SetUsualTiming(o *Options) { o.timing = nil }

// Timing is that of this process.
func (in Inner) Timing() Timing { return timingOf(in.s.timing) }

// ChangeTiming changes it while nothing that it concerns is under way.
func (in Inner) ChangeTiming(f func(*Timing)) { changeTiming(in.s.timing, f) }
