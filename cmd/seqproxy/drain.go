package main

import (
	"context"
	"time"

	"go.uber.org/zap"

	"seqproxy/internal/logfield"
)

// ending is the wish to stop. It can only become more urgent.
type ending struct {
	asked context.Context // done: stop the proxy
	leave context.Context // done: end sessions between their transactions
	now   context.Context // done: wait for nothing

	ask, dismiss, cut context.CancelFunc
}

func newEnding() *ending {
	e := &ending{}
	e.asked, e.ask = context.WithCancel(context.Background())
	e.leave, e.dismiss = context.WithCancel(context.Background())
	e.now, e.cut = context.WithCancel(context.Background())
	return e
}

// orderly asks for a stop that waits for statements and transactions.
func (e *ending) orderly() {
	e.dismiss()
	e.ask()
}

// hurry asks for a stop that waits for nothing.
func (e *ending) hurry() {
	e.cut()
	e.orderly()
}

// drain stops the server as docs/operations.md says: first it is no longer ready, then it accepts
// no clients, then its sessions end.
func (r *running) drain() {
	waits := r.ending.leave.Err() == nil
	if !waits {
		r.notifyStopping(r.Config().Drain.Grace.D() + r.Config().Drain.Timeout.D() + 2*giveBackTimeout)
	}
	r.server.Announce()
	if grace := r.Config().Drain.Grace.D(); grace > 0 {
		r.log.Info("not ready any more", zap.Duration("limit_ms", grace))
		timer := time.NewTimer(grace)
		select {
		case <-timer.C:
		case <-r.ending.now.Done():
			timer.Stop()
		case <-r.served: // no client can come any more
			timer.Stop()
		}
	}
	timeout := r.Config().Drain.Timeout.D()
	r.server.StopAccepting()
	if r.ending.leave.Err() == nil {
		r.log.Info("waiting for all clients to leave", zap.Int("sessions", r.server.Sessions()))
		_ = r.server.Wait(r.ending.leave) // the error only says that the wait ended
	}
	if waits { // the service manager counts the time of a stop from now on
		r.notifyStopping(timeout + 2*giveBackTimeout)
	}
	r.log.Info("stopping", zap.Int("sessions", r.server.Sessions()), zap.Duration("limit_ms", timeout+giveBackTimeout))
	shut, cancel := context.WithTimeout(r.ending.now, timeout)
	defer cancel()
	if err := r.server.Shutdown(shut); err != nil {
		r.log.Warn("shutdown", logfield.Err(err))
	}
}
