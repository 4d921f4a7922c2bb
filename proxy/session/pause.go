package session

import (
	"time"

	"seqproxy/backend"
	"seqproxy/protocol"
	"seqproxy/proxy/login"
)

// enter has the command being handled wait while a shard is paused, unless the session has
// a transaction open or has begun the command there before. What came before the command
// may be sent and answered meanwhile.
func (a *attachment) enter(shard *backend.Shard) error {
	if engaged := a.engaged.Load(); !engaged.Has(shard) {
		a.engaged.Store(engaged.With(shard))
	}
	if shard.Paused() != nil && !a.entered.Has(shard) {
		if err := a.above.settle(); err != nil { // it may begin a transaction, or end one
			return err
		}
		if !a.state.InTransaction() {
			if err := a.awaitResume(shard); err != nil {
				return err
			}
			a.waited = true
		}
	}
	a.entered = a.entered.With(shard)
	return nil
}

// enterBoth is enter for a command that needs two shards at the same time.
func (a *attachment) enterBoth(one, other *backend.Shard) error {
	for {
		if err := a.enter(one); err != nil {
			return err
		}
		if err := a.enter(other); err != nil || a.engaged.Load().Has(one) {
			// or it has waited, and the first may be paused now
			return err
		}
	}
}

// awaitResume waits until a shard is not paused any more. It ends with the session, by
// KILL QUERY, by a shutdown, and after Options.PauseTimeout.
func (a *attachment) awaitResume(shard *backend.Shard) (err error) {
	if err := a.client.flush(); err != nil { // the answers of our own to what came before
		return err
	}
	a.login.Leave() // others need not wait for it
	a.shared.PausedSessions.Add(1)
	defer a.shared.PausedSessions.Add(-1)
	timer := time.NewTimer(a.set.PauseTimeout)
	defer timer.Stop()
	spent := a.patience.Spent()
	defer func() {
		err = a.patience.Over(err)
		a.patience.Restore(spent) // it was no sequence server that the command waited for
		a.unreached = err != nil
	}()
	for {
		p := shard.Paused()
		if p == nil {
			return a.prolongLogin()
		}
		a.engaged.Store(nil)
		a.entered = nil
		select {
		case <-p.Resumed():
		case <-a.patience.Done():
			return a.patience.Err()
		case <-a.shared.Stopping:
			return login.ErrShutdown
		case <-timer.C:
			return protocol.Errorf(erShardLost, "HY000", "seqproxy: shard %s is paused since %s by SEQPROXY PAUSE, and was not resumed within %s",
				shard.Name(), p.Since().Format("2006-01-02 15:04:05 MST"), a.set.PauseTimeout)
		}
		a.engaged.Store(a.entered.With(shard)) // before it is looked at again
	}
}

// disengage takes note that what the session does now needs no server. Nothing is in flight.
func (a *attachment) disengage() {
	if !a.state.InTransaction() {
		a.engaged.Store(nil)
	}
}

// narrow takes note, of a session that waits for a command, that it can be in a transaction on the
// current shard alone.
func (a *attachment) narrow() {
	var one *backend.ShardSet
	if a.cur != nil {
		one = one.With(a.cur.Shard())
	}
	a.engaged.Store(one)
}
