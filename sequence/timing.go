package sequence

import (
	"errors"
	"fmt"
	"reflect"
	"time"

	"seqproxy/sequence/group"
	"seqproxy/sequence/link"
)

// timing is every clock of a process: how often it asks, for how long it waits, and after which
// silence it believes what. It is never changed once something runs. Rules about rates and sizes
// are beside what they are about (sizes.go, exhaustion.go and ordered_gather.go of package cache).
type timing struct {
	// What others change is asked for each follow. Where a server does not answer that grows to
	// followRarely. One question, with the heartbeat, takes round at most.
	follow, followRarely, round time.Duration

	// A proxy says each beat that it lives. After stale without that nobody waits for it.
	beat, stale time.Duration
	// tenure is for how long the primary of a group must be known before everybody is believed to
	// be registered there: a fail-over may lose that a proxy is, if it was so in the last moment,
	// and until it has given a sign of life to the new primary nobody there knows that it has
	// numbers. One that does not reach it by then is not known of.
	tenure time.Duration

	// A change of members takes change at most, the waits for members that do not answer included,
	// and again so long once it is decided, or to leave nothing frozen after it failed or the
	// caller went away.
	change time.Duration

	// ALTER ... ORDER and RESTART ... FORCE wait so long for other proxies, which are asked each
	// confirmPoll. A caller's context may be shorter. To take ORDER back takes takeBack at most.
	confirm, confirmPoll, takeBack time.Duration

	link.Timing    // of connections and of nodes
	group.Patience // with the other nodes of a group

	// A reservation that failed is tried again after firstBackoff, doubling up to lastBackoff, or
	// up to frozenBackoff while the members are changed.
	firstBackoff, lastBackoff, frozenBackoff time.Duration
	// A member gets shortestTry at least before the next one is asked.
	shortestTry time.Duration
	// leastPatience is how long a caller waits who has waited for other things before, and so long
	// that nothing remains of the allocate timeout: what comes at once shall not fail because of
	// that.
	leastPatience time.Duration
	// editSilence is after which silence a server ends a change of definitions, and with it what that
	// has locked: its proxy stands still, or is gone with its machine. In whole seconds.
	editSilence time.Duration
	// alarmRest is the least time from one look at those who wait to the next.
	alarmRest time.Duration
	// alarm is for how long it is not said again that the row of a sequence went back.
	alarm time.Duration
	// peer bounds the questions to other members beside a reservation on one.
	peer time.Duration

	// unknown is for how long a name that was not found is not asked for again.
	unknown time.Duration
	// lack is for how long a member is not asked for a row that it lacks.
	lack time.Duration
	// idle is for how long no number must have been taken of a sequence that is filled up.
	idle time.Duration
	// A look at a ticket table that failed answers for the next ones for ticketAgain. That a table
	// is not served is said each warnAgain.
	ticketAgain, warnAgain time.Duration
	// The clock of a machine is believed up to clockOff from that of the sequence server. The first
	// tick of a worker is waited for if it is no more than clockBehind ahead. A step of the clock is
	// looked for each clockLook, and ticks are reserved so often at most. That takes clockRenewal.
	clockOff, clockBehind, clockLook, clockRenewal time.Duration
	// What the clock was found to be answers for clockAgain, if it is wrong: each caller would ask.
	clockAgain time.Duration
	// The counter of the next period of a FORMAT with RESET is made periodAhead before that begins,
	// and up to periodSpread later, so that not all proxies come at once. That of the last period is
	// forgotten when the period is over since periodPast. After a failure it is tried again each
	// periodAgain.
	periodAhead, periodSpread, periodPast, periodAgain time.Duration
	// importAgain is the first pause before a table is locked again that somebody else had locked.
	importAgain time.Duration
}

// standardTiming is that of every process but those of tests.
func standardTiming() timing {
	return timing{
		follow: 300 * time.Millisecond, followRarely: 5 * time.Second, round: 2 * time.Second,
		beat: 2 * time.Second, stale: 10 * time.Second, tenure: 10 * time.Second,
		change:  30 * time.Second,
		confirm: 15 * time.Second, confirmPoll: 50 * time.Millisecond, takeBack: 3 * time.Second,
		Patience: group.Patience{Shown: time.Second, FirstLook: time.Millisecond, LastLook: 50 * time.Millisecond},
		Timing: link.Timing{
			Late: 250 * time.Millisecond, Flush: 10 * time.Second, Answered: 2 * time.Second, Conflict: 5 * time.Millisecond,
			Silence: 90 * time.Second, ConnLife: time.Minute, LookLife: time.Minute, ConnIdle: 5 * time.Minute, Redial: 50 * time.Millisecond,
		},
		firstBackoff: 10 * time.Millisecond, lastBackoff: time.Second, frozenBackoff: 100 * time.Millisecond,
		shortestTry: 200 * time.Millisecond, leastPatience: 200 * time.Millisecond, editSilence: 10 * time.Second, alarmRest: 5 * time.Millisecond, alarm: time.Second, peer: time.Second,
		unknown: time.Second, lack: 10 * time.Second, idle: time.Minute,
		clockOff: time.Minute, clockBehind: time.Second, clockLook: 10 * time.Second, clockRenewal: 10 * time.Second, clockAgain: time.Second,
		periodAhead: time.Hour, periodSpread: 10 * time.Minute, periodPast: 3 * time.Minute, periodAgain: 10 * time.Second,
		ticketAgain: time.Second, warnAgain: time.Minute, importAgain: 100 * time.Millisecond,
	}
}

// check says which of the rules that safety or progress needs do not hold.
func (t *timing) check() error {
	var broken []error
	fields := reflect.ValueOf(t).Elem()
	for _, field := range reflect.VisibleFields(fields.Type()) {
		if field.Anonymous {
			continue
		}
		if d := time.Duration(fields.FieldByIndex(field.Index).Int()); d <= 0 {
			broken = append(broken, fmt.Errorf("timing: %s is %v, want more than 0", field.Name, d))
		}
	}
	for _, rule := range []struct {
		less, more time.Duration
		text       string
	}{
		{2*t.beat + t.follow + t.round, t.stale, "stale: a proxy that lives may lose one heartbeat, and the next one takes a question"},
		{t.followRarely + t.round, t.tenure, "tenure: by then every proxy has asked the new primary, also one that asks rarely as the old one was away"},
		{t.beat + t.follow + t.round, t.tenure, "tenure: by then every proxy has given the new primary a sign of life"},
		{t.tenure + t.follow, t.confirm, "confirm: who makes an ORDER sequence or restarts one after a fail-over waits for tenure"},
		{t.round, t.change, "change: a coordinator has the time to ask a member that does not answer"},
		{t.takeBack, t.change, "change: to go back is longer than one question that takes long"},
		{t.ConnLife, t.Silence, "silence: the server ends no connection that the pool would use"},
		{t.LookLife, t.Silence, "silence: the server ends no connection that looks at a node"},
		{time.Second - 1, t.Silence, "silence: it is told to the server in whole seconds"},
		{t.follow - 1, t.followRarely, "followRarely: it is the longest pause, and follow is the first"},
		{t.LastLook, t.Shown, "shown: replicas are looked at more than once"},
		{t.FirstLook - 1, t.LastLook, "lastLook: it is the longest pause, and firstLook is the first"},
		{t.firstBackoff - 1, t.frozenBackoff, "frozenBackoff: it is the longest pause, and firstBackoff is the first"},
		{t.frozenBackoff - 1, t.lastBackoff, "lastBackoff: the end of a change is short, and wanted sooner than that of an outage"},
		{3 * time.Second, t.editSilence, "editSilence: a change waits on one member for a lock on another, which takes two seconds at most"},
		{t.confirmPoll, t.confirm, "confirm: proxies are asked more than once"},
		{t.periodSpread, t.periodAhead, "periodAhead: the next counter is there before its period begins"},
	} {
		if rule.more <= rule.less {
			broken = append(broken, fmt.Errorf("timing: %s: got %v, want more than %v", rule.text, rule.more, rule.less))
		}
	}
	return errors.Join(broken...)
}
