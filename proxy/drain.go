package proxy

import (
	"context"
	"errors"
	"fmt"

	"seqproxy/proxy/kill"
	"seqproxy/proxy/session"
)

// A proxy stops in steps: Announce, StopAccepting, Wait for clients to leave by themselves, and
// Shutdown. The caller decides how long each lasts. The admin address is the last to end, so that
// people can watch.

// Announce makes Draining report that the server is about to stop. Clients are served as before.
func (s *Server) Announce() { s.announced.Store(true) }

// Draining reports whether the server is about to stop or stops: nobody new should be sent to it.
// It stays so.
func (s *Server) Draining() bool { return s.announced.Load() }

// StopAccepting refuses every further client but at the admin address. The sessions go on.
func (s *Server) StopAccepting() {
	s.Announce()
	s.shared.Mu.Lock()
	s.closed.Store(true) // under mu: from then on no session is added
	s.shared.Mu.Unlock()
	s.listener.Close()
}

// Wait waits until every session of a client has ended, by itself, or ctx is done, whose
// error it returns then. Those at the admin address are not waited for. StopAccepting must
// have been called.
func (s *Server) Wait(ctx context.Context) error {
	s.awaitEnd.Do(func() {
		go func() {
			s.clients.Wait()
			close(s.ended)
		}()
	})
	select {
	case <-s.ended:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Shutdown stops accepting and ends every session: those that wait for a command at
// once, the others when what they run has ended and no transaction is open. What is left
// when ctx is done is cut. It returns when every session has ended; the error says how
// many had to be cut.
func (s *Server) Shutdown(ctx context.Context) error {
	s.StopAccepting()
	if s.shared.Draining.Swap(true) {
		return errors.New("shutdown was asked for already")
	}
	defer s.stopWatching(ctx)
	close(s.shared.Stopping)
	s.eachAt(false, (*session.Session).Drain)
	cut := 0
	if s.Wait(ctx) != nil {
		s.eachAt(false, func(sess *session.Session) {
			cut++
			sess.Doomed().Set(kill.Drained)
			sess.Cut()
		})
		<-s.ended
	}
	cut += s.endAdminAddress(ctx)
	s.wg.Wait() // of the goroutines that served
	if cut > 0 {
		return fmt.Errorf("%d sessions were still busy and had to be closed", cut)
	}
	return nil
}

// closedTo reports whether nobody is accepted any more.
func (s *Server) closedTo(atAdmin bool) bool {
	if atAdmin {
		return s.shared.AdminEnds.Load()
	}
	return s.closed.Load()
}
